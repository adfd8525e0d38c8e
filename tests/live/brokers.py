"""Real brokers on free ports of this machine, each ended by the test that started it."""

import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

START_SECONDS = 20.0
MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
REDIS = shutil.which("redis-server")
OPENSSL = shutil.which("openssl")
CLUSTER = """
import sys
from confluent_kafka import Producer
holder = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
told = holder.list_topics(timeout=20.0)
print(",".join(f"{one.host}:{one.port}" for one in told.brokers.values()), flush=True)
sys.stdin.read()
"""  # librdkafka's own cluster, which lasts as long as its process


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Broker:
    """A server that can be killed and started again on the same port, with what it has saved."""

    def __init__(self, command, port):
        self.command, self.port, self.process = command, port, None

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return self
            assert self.process.poll() is None, f"{self.command[0]} has ended"
            time.sleep(0.02)
        raise TimeoutError(self.command[0])

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextmanager
def running(command, port):
    found = Broker(command, port).start()
    try:
        yield found
    finally:
        found.kill()


def certificate(folder):
    """Files of an authority, and of a certificate of localhost and its key."""
    if OPENSSL is None:
        pytest.skip("there is no openssl")
    authority, own, key, request = (str(folder / name) for name in ("authority.crt", "own.crt", "own.key", "own.csr"))
    root = str(folder / "authority.key")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    for line in (
        f"req -x509 -newkey rsa:2048 -nodes -keyout {root} -out {authority} -days 2 -subj /CN=authority",
        f"req -newkey rsa:2048 -nodes -keyout {key} -out {request} -subj /CN=localhost",
        f"x509 -req -in {request} -CA {authority} -CAkey {root} -CAcreateserial -out {own} -days 2 -extfile {folder}/names",
    ):
        subprocess.run([OPENSSL, *line.split()], check=True, capture_output=True)
    return authority, own, key


@contextmanager
def redis_server(folder, *options):
    """Yield a Redis that has each entry on the disk before it answers; `options` may name its {port}."""
    if REDIS is None:
        pytest.skip("there is no redis-server")
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [REDIS, "--port", str(port), "--dir", str(folder), "--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    command += [option.format(port=port) for option in options]
    with running(command, port) as found:
        yield found


@contextmanager
def mosquitto(folder, saves=False, lines=""):
    """Yield a mosquitto, which `saves` each change if it is to be killed; `lines` are more of its settings."""
    if MOSQUITTO is None:
        pytest.skip("there is no mosquitto")
    folder.mkdir(parents=True, exist_ok=True)
    port, config = free_port(), folder / "mosquitto.conf"
    saving = f"autosave_on_changes {'true' if saves else 'false'}\nautosave_interval {int(saves)}\n"
    config.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {folder}/\n"
        f"{saving}max_queued_messages 0\nmax_inflight_messages 1000\nuser root\n{lines}"
    )
    with running([MOSQUITTO, "-c", str(config)], port) as found:
        yield found


@contextmanager
def kafka_cluster():
    """Yield the process of a cluster, and its address."""
    pytest.importorskip("confluent_kafka", reason="an extra of headwater")
    holder = subprocess.Popen([sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield holder, holder.stdout.readline().strip()
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
