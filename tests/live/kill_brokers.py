"""Runs live models on events of brokers and requests, with and without kills at random instants, and compares what they leave.

Children are forked from a process that has everything loaded, and that has no other threads while it forks.
"""

import json
import os
import random
import signal
import sys
import time
from base64 import b64decode
from contextlib import suppress
from pathlib import Path

import httpx
import redis
from confluent_kafka import Producer
from live.brokers import free_port, kafka_cluster, mosquitto, redis_server
from live.kill_watch import child, ended
from live.live_models import events as made_events

import headwater.live.http.server
import headwater.live.sources.kafka_topic
import headwater.live.sources.redis_stream  # noqa: F401
from headwater.estimators.model_file import read
from headwater.live.seen_ids import DIGEST_BYTES, digest_of
from headwater.live.sinks.mqtt_sink import MqttSink
from headwater.live.sources.mqtt_topic import MqttTopic

PATIENCE = 60.0  # seconds for a step
FED_BATCH = 50  # events of a request
OPTIONS = ("--learn", "--id", "id", "--rate", "0.01", "--snapshot-seconds", "0.02")


def silent(kind, **parts):
    pass


class Answers:
    """The ids in a file of answers, which grows."""

    def __init__(self, path):
        self.path, self.ids, self._at = path, set(), 0

    def look(self):
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._at += len(line)
                with suppress(ValueError):  # half a line of a process that was killed, ended by the next one
                    self.ids.add(json.loads(line)["id"])
        return len(self.ids)

    def wait(self, number):
        end = time.monotonic() + PATIENCE
        while self.look() < number:
            assert time.monotonic() < end, f"{len(self.ids)} of {number} events were answered"
            time.sleep(0.005)


def stop(pid):
    os.kill(pid, signal.SIGTERM)
    return ended(pid)


def watch(folder, name, source):
    return child(["watch", source, "-m", str(folder / "m.hw"), *OPTIONS, "--state", str(folder / name),
                  "--sink", str(folder / f"{name}.jsonl")])  # fmt: skip


def with_kills(folder, name, source, feed, events, kills, chance, disturb=lambda place: None):
    """Feed a part of the events before each child, which is killed at a random instant; return the code of the last one."""
    found = Answers(folder / f"{name}.jsonl")
    *events, last = events  # when the last child has answered the last event, it has had all others
    for place in range(kills):
        feed(events[place * len(events) // kills : (place + 1) * len(events) // kills])
        before = found.look()
        pid = watch(folder, name, source)
        disturb(place)
        if chance.random() < 0.6:  # some while they learn, and some while they start
            end = time.monotonic() + 5.0
            while found.look() == before and time.monotonic() < end:
                time.sleep(0.002)
            time.sleep(chance.uniform(0.0, 0.06))
        else:
            time.sleep(chance.uniform(0.0, 0.5))
        os.kill(pid, signal.SIGKILL)
        assert ended(pid) is None
    feed([last])
    pid = watch(folder, name, source)
    found.wait(len(events) + 1)
    return stop(pid)


def calm(folder, name, source, events, begin=lambda: None):
    pid = watch(folder, name, source)
    begin()
    Answers(folder / f"{name}.jsonl").wait(len(events))
    return stop(pid)


def calm_by_standard_input(folder, name, events):
    given, feeding = os.pipe()
    command = ["watch", "-", "-m", str(folder / "m.hw"), *OPTIONS, "--state", str(folder / name)]
    pid = child([*command, "--sink", str(folder / f"{name}.jsonl")], given)
    os.close(given)
    with os.fdopen(feeding, "wb") as pipe:
        pipe.write(b"".join(json.dumps(event).encode() + b"\n" for event in events))
        pipe.flush()
        Answers(folder / f"{name}.jsonl").wait(len(events))
        return stop(pid)


def run_redis(folder, events, kills, chance):
    with redis_server(folder / "redis") as server:

        def feed(part):
            client = redis.Redis(port=server.port)
            for event in part:
                client.xadd("events", {"json": json.dumps(event)})
            client.close()

        def disturb(place):
            if place % 5 == 4:
                time.sleep(chance.uniform(0.0, 0.5))
                server.kill()
                server.start()

        source = f"redis://127.0.0.1:{server.port}/events"
        codes = [with_kills(folder, "killed", source, feed, events, kills, chance, disturb)]
        return [*codes, calm(folder, "calm", source, events)]


def run_kafka(folder, events, kills, chance):
    with kafka_cluster() as (holder, hosts):

        def feed(part):
            producer = Producer({"bootstrap.servers": hosts, "log_level": 0, "enable.idempotence": True})
            for event in part:
                producer.produce("events", json.dumps(event), partition=0)
            assert producer.flush(PATIENCE) == 0

        def disturb(place):
            if place % 5 == 4:
                holder.send_signal(signal.SIGSTOP)
                time.sleep(chance.uniform(0.1, 0.6))
                holder.send_signal(signal.SIGCONT)

        source = f"kafka://{hosts}/events"
        codes = [with_kills(folder, "killed", source, feed, events, kills, chance, disturb)]
        return [*codes, calm(folder, "calm", source, events)]


def in_order_of_arrival(folder, events):
    """Return the events as they were learned: a broker may send what waited for a connection in another order."""
    _, extra = read(folder / "snapshot.hw")
    digests = b64decode(extra["checkpoint"]["more"]["ids"])
    found = {digest_of(event["id"]): event for event in events}
    return [found[digests[at : at + DIGEST_BYTES]] for at in range(0, len(digests), DIGEST_BYTES)]


def run_mqtt(folder, events, kills, chance):
    with mosquitto(folder / "mosquitto") as server:

        def subscribe(name):
            source = MqttTopic(f"mqtt://127.0.0.1:{server.port}/{name}?client={name}", silent)
            source.fetch(1.0)
            source.close()

        def feed(part):
            sink = MqttSink(f"mqtt://127.0.0.1:{server.port}/killed", silent)
            sink.write(part)
            sink.flush()
            sink.close()

        subscribe("killed")
        source = f"mqtt://127.0.0.1:{server.port}/killed?client=killed"
        found = [with_kills(folder, "killed", source, feed, events, kills, chance)]
        return [*found, calm_by_standard_input(folder, "calm", in_order_of_arrival(folder / "killed", events))]


def post(client, part, until):
    """Send events until they are answered; return whether they were before a moment."""
    while time.monotonic() < until:
        with suppress(httpx.TransportError):
            answer = client.post("/events", json={"rows": part})
            if answer.status_code == 200:
                assert all("error" not in one for one in answer.json()["answers"])
                return True
        time.sleep(0.005)
    return False


def run_http(folder, events, kills, chance):
    parts = [events[at : at + FED_BATCH] for at in range(0, len(events), FED_BATCH)]
    found = []
    for name, moments in (("killed", [chance.uniform(0.0, 1.0) for _ in range(kills)]), ("calm", [])):
        port, place = free_port(), 0
        for number, seconds in enumerate([*moments, None]):
            pid = child(["serve", str(folder / "m.hw"), *OPTIONS, "--state", str(folder / name), "--port", str(port)])
            last = len(parts) if seconds is None else (number + 1) * len(parts) // kills
            until = time.monotonic() + (PATIENCE if seconds is None else seconds)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=0.5 if seconds is not None else 10.0) as client:
                while place < last and post(client, parts[place], until):
                    place += 1
            if seconds is None:
                found.append(stop(pid))
            else:
                time.sleep(max(0.0, until - time.monotonic()))
                os.kill(pid, signal.SIGKILL)
                ended(pid)
        assert place == len(parts), f"{place} of {len(parts)} requests were answered"
    return found


KINDS = {"redis": run_redis, "kafka": run_kafka, "mqtt": run_mqtt, "http": run_http}


def main(asked):
    folder = Path(asked["folder"])
    codes = KINDS[asked["kind"]](folder, made_events(asked["events"]), asked["kills"], random.Random(asked["seed"]))
    calm_bytes, killed_bytes = ((folder / name / "snapshot.hw").read_bytes() for name in ("calm", "killed"))
    return [codes, calm_bytes == killed_bytes]


if __name__ == "__main__":
    shown, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    found = main(json.loads(sys.argv[1]))
    print(json.dumps(found), file=shown)
