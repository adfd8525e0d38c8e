"""Brokers on free ports of this machine, for as long as they are measured."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CLUSTER = """
import sys
from confluent_kafka import Producer
holder = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
told = holder.list_topics(timeout=20.0)
print(",".join(f"{one.host}:{one.port}" for one in told.brokers.values()), flush=True)
sys.stdin.read()
"""  # librdkafka's own cluster, which lasts as long as its process


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def redis_server(folder: Path, *options: str) -> Iterator[int]:
    folder.mkdir()
    port = free_port()
    command = ["redis-server", "--port", str(port), "--dir", str(folder), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                    break
                time.sleep(0.02)
            yield port
        finally:
            process.kill()


@contextmanager
def kafka_cluster() -> Iterator[tuple[subprocess.Popen[str], str]]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", CLUSTER], text=True, **pipes) as holder:  # type: ignore[call-overload]
        try:
            yield holder, holder.stdout.readline().strip()
        finally:
            holder.kill()
