"""python -m benchmarks.live [parts...]: a live model behind HTTP and beside brokers, with its clients on the same machine."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from benchmarks.data import make_truth
from benchmarks.live_brokers import kafka_cluster, redis_server
from headwater import GaussianMixture, Monitor
from pages import machine

COMPONENTS, COLUMNS = 8, 10
BATCH = 100  # events of a request
CONNECTIONS = 8
RATE = 300  # single events a second
MARK = {"id": "end", "x0": 1e6}  # an event that is odd for sure: when its alarm is written, all before it are answered
Found = dict[str, object]


class Bench:
    """A model in a folder, and events as lines of JSON."""

    def __init__(self, folder: Path, seconds: float, seed: int, memory_events: int = 10**7) -> None:
        self.folder, self.seconds, self.memory_events = folder, seconds, memory_events
        self.rng = np.random.default_rng(seed)
        self.truth = make_truth(COMPONENTS, COLUMNS, self.rng)
        model = GaussianMixture(COMPONENTS, random_state=0)
        monitor = Monitor(model, timed=False)
        for _ in range(4):
            monitor.learn(self.truth.sample(5000, self.rng))
        self.model = folder / "model.hw"
        model.save(self.model)

    def events(self, number: int) -> list[bytes]:
        names = [f"x{at}" for at in range(COLUMNS)]
        rows = self.truth.sample(number, self.rng).round(4).tolist()
        return [json.dumps({"id": place, **dict(zip(names, row, strict=True))}).encode() for place, row in enumerate(rows)]

    @contextmanager
    def process(self, name: str, *arguments: str, stdin: int | None = None) -> Iterator[subprocess.Popen[str]]:
        """Yield a process that learns, when it has started."""
        command = [
            sys.executable,
            "-m",
            "headwater",
            *arguments,
            "--learn",
            "--rate",
            "0.001",
            "--state",
            str(self.folder / name),
        ]
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if " started " in line:
                break
        else:
            raise RuntimeError("".join(lines))
        threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True).start()
        process.notes = lines  # type: ignore[attr-defined]
        before = _cpu_seconds(process.pid)
        try:
            yield process
        finally:
            self.cpu = _cpu_seconds(process.pid) - before
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    @contextmanager
    def server(self, name: str, *arguments: str) -> Iterator[int]:
        from benchmarks.live_brokers import free_port

        port = free_port()
        with self.process(name, "serve", str(self.model), "--port", str(port), *arguments) as process:
            while True:
                with suppress(OSError):
                    if _ask(http.client.HTTPConnection("127.0.0.1", port), "GET", "/ready", b"")[0] == 200:
                        break
                time.sleep(0.05)
            yield port
        slow = [float(one.split("seconds=")[1]) for one in process.notes if " snapshot " in one]  # type: ignore[attr-defined]
        self.snapshots = (len(slow), max(slow, default=0.0))


def _ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def batches(bench: Bench) -> Iterator[Found]:
    """Events a second by POST /events in batches of 100, with learning."""
    lines = bench.events(20_000)
    bodies = [b'{"rows": [' + b",".join(lines[at : at + BATCH]) + b"]}" for at in range(0, len(lines), BATCH)]
    with bench.server("batches") as port:
        done, refused = [0] * CONNECTIONS, [0]
        end = time.monotonic() + bench.seconds

        def run(which: int) -> None:
            connection, place = http.client.HTTPConnection("127.0.0.1", port), which
            while time.monotonic() < end:
                status, _ = _ask(connection, "POST", "/events", bodies[place % len(bodies)])
                if status == 200:
                    done[which] += BATCH
                    place += CONNECTIONS
                else:
                    refused[0] += 1

        began = time.monotonic()
        _together([lambda which=which: run(which) for which in range(CONNECTIONS)])  # type: ignore[misc]
        rate = sum(done) / (time.monotonic() - began)
    yield {"what": "POST /events, batches of 100", "events/s": round(rate), "target": ">= 20,000", "refused": refused[0],
           "server's CPU us/event": round(1e6 * bench.cpu / sum(done), 1)}  # fmt: skip


def singles(bench: Bench) -> Iterator[Found]:
    """Milliseconds until single events are answered, at 300 a second, with learning, searches and two snapshots a second."""
    bodies = [b'{"rows": [' + line + b"]}" for line in bench.events(5000)]
    waits: list[float] = []
    with bench.server("singles", "--snapshot-seconds", "0.5") as port:
        begin = time.monotonic() + 0.1
        number = int(bench.seconds * RATE)
        taken = iter(range(number))
        lock = threading.Lock()

        def run() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            while True:
                with lock:
                    place = next(taken, None)
                if place is None:
                    return
                due = begin + place / RATE  # an answer that is late delays no question
                time.sleep(max(0.0, due - time.monotonic()))
                status, _ = _ask(connection, "POST", "/events", bodies[place % len(bodies)])
                assert status == 200, status
                waits.append(time.monotonic() - due)

        _together([run] * 8)
    p50, p99, most = (1000.0 * float(one) for one in (*np.quantile(waits, [0.5, 0.99]), max(waits)))
    yield {
        "what": f"single events, {RATE} a second",
        "p50 ms": round(p50, 2), "p99 ms": round(p99, 2), "most ms": round(most, 1), "target": "p50 <= 5, p99 <= 25",
        "snapshots": bench.snapshots[0], "longest snapshot ms": round(1000 * bench.snapshots[1]), "events": len(waits),
    }  # fmt: skip


def redis(bench: Bench) -> Iterator[Found]:
    """Events a second from a stream of Redis."""
    import redis as client_of

    with redis_server(bench.folder / "redis", "--save", "") as port:
        client = client_of.Redis(port=port)
        number = int(40_000 * bench.seconds / 5)
        for line in [*bench.events(number), json.dumps(MARK).encode()]:
            client.execute_command("XADD", "events", "*", "json", line)
        yield _source(bench, "redis", f"redis://127.0.0.1:{port}/events")


def kafka(bench: Bench) -> Iterator[Found]:
    """Events a second from a topic of Kafka."""
    from confluent_kafka import Producer

    with kafka_cluster() as (_, hosts):
        producer = Producer({"bootstrap.servers": hosts, "queue.buffering.max.messages": 10**6})
        number = int(40_000 * bench.seconds / 5)
        for line in [*bench.events(number), json.dumps(MARK).encode()]:
            producer.produce("events", line, partition=0)
        producer.flush()
        yield _source(bench, "kafka", f"kafka://{hosts}/events")


def _source(bench: Bench, name: str, address: str) -> Found:
    alarms = bench.folder / f"{name}.jsonl"
    with bench.process(name, "watch", address, "-m", str(bench.model), "--id", "id", "--alarm", str(alarms)) as process:
        began = time.monotonic()
        while not alarms.exists() or b'"end"' not in alarms.read_bytes()[-4000:]:
            time.sleep(0.01)
        seconds = time.monotonic() - began
    number = _answered(process)  # the cluster that librdkafka makes keeps the last megabytes of a topic only
    return {"what": f"{name}, JSON, with ids and learning", "events/s": round(number / seconds), "events": number,
            "target": ">= 30,000", "its CPU us/event": round(1e6 * bench.cpu / number, 1)}  # fmt: skip


def _answered(process: subprocess.Popen[str]) -> int:
    """Events that a process has answered, as it says when it ends."""
    end = time.monotonic() + 5.0
    while time.monotonic() < end:
        for line in reversed(process.notes):  # type: ignore[attr-defined]
            if " stopped " in line:
                return int(line.split("events=")[1].split()[0])
        time.sleep(0.01)
    raise RuntimeError("the process did not say how many events it answered")


def memory(bench: Bench) -> Iterator[Found]:
    """Resident megabytes after each tenth of ten million events by standard input, each with an id."""
    rests = [line.split(b", ", 1)[1] for line in bench.events(10_000)]
    number, sizes = bench.memory_events, []
    arguments = ("watch", "-", "-m", str(bench.model), "--id", "id", "--alarm", str(bench.folder / "memory.jsonl"))
    with bench.process("memory", *arguments, stdin=subprocess.PIPE) as process:
        began = time.monotonic()
        with open(process.stdin.fileno(), "wb", closefd=False) as pipe:  # type: ignore[union-attr]
            for first in range(0, number, len(rests)):
                pipe.write(b"".join(b'{"id": %d, %b\n' % (first + at, rest) for at, rest in enumerate(rests)))
                if (first + len(rests)) % (number // 10) < len(rests):
                    sizes.append(_resident(process.pid))
        rate = number / (time.monotonic() - began)
    yield {"what": f"memory over {number:,} events", "MB": " ".join(map(str, sizes)), "events/s": round(rate), "target": "flat"}


def _cpu_seconds(process: int) -> float:
    """Seconds that a process has worked: what stays the same on a busy machine."""
    parts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def _resident(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return round(int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024)


def _together(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


PARTS = {"batches": batches, "singles": singles, "redis": redis, "kafka": kafka, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.live", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; all by default")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each part, about")
    parser.add_argument("--memory-events", type=int, default=10**7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write")
    asked = parser.parse_args()
    about = machine.describe()
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load_average']:.2f}; {about['date']}")
    folder = Path(tempfile.mkdtemp())
    found = []
    try:
        bench = Bench(folder, asked.seconds, asked.seed, asked.memory_events)
        for name in asked.parts or PARTS:
            for line in PARTS[name](bench):
                found.append(line)
                print(
                    "  ".join(f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}" for key, value in line.items())
                )
    finally:
        shutil.rmtree(folder)
    if asked.json:
        asked.json.write_text(json.dumps({"machine": about, "lines": found}, indent=1))


if __name__ == "__main__":
    main()
