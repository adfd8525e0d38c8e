"""A server for minutes or an hour: drift, bad events, brokers and processes that are killed. Nothing is lost or learned twice.

Two minutes by default; `make soak` goes on for an hour (HEADWATER_SOAK_SECONDS).
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from live.brokers import free_port, redis_server
from live.live_models import COLUMNS, learned_model

import headwater as hw

httpx = pytest.importorskip("httpx", reason="asks the server")
redis = pytest.importorskip("redis", reason="an extra of headwater")
pytest.importorskip("uvicorn", reason="an extra of headwater")

SECONDS = float(os.environ.get("HEADWATER_SOAK_SECONDS", "120"))
STEP_SECONDS = 0.1
FROM_REDIS, FROM_HTTP = 60, 20  # events of a step
BAD_SHARE = 0.01
BROKER_KILLS, PROCESS_KILLS = 12, 8
GROWTH = 1.15  # of the resident memory between the first and the last quarter
PATIENCE = 120.0


class Server:
    def __init__(self, folder, address):
        self.port, self.folder, self.process = free_port(), folder, None
        options = {
            "--rate": 0.001, "--id": "id", "--source": address, "--port": self.port, "--snapshot-seconds": 2,
            "--state": folder / "state", "--dead-letter": folder / "bad.jsonl", "--alarm": folder / "odd.parquet",
        }  # fmt: skip
        self.command = [sys.executable, "-m", "headwater", "serve", str(folder / "m.hw"), "--learn"]
        self.command += [str(part) for option in options.items() for part in option]
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30.0)

    def start(self):
        with (self.folder / "journal.txt").open("ab") as journal:
            self.process = subprocess.Popen(self.command, stderr=journal)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def post(self, events):
        """Send events until they are answered; those that cannot be read are answered with a sentence."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(httpx.TransportError):
                answer = self.client.post("/events", json={"rows": events})
                if answer.status_code == 200:
                    return
                assert answer.status_code in (429, 503), answer.text
            time.sleep(0.1)
        raise TimeoutError("the server does not answer")

    def megabytes(self):
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def made(rng, first, number, share):
    """Events, of which some are bad, while their means drift; and how many are bad."""
    rows = (
        rng.normal(size=(number, 3)) + np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 3.0]])[rng.integers(2, size=number)] + 8.0 * share
    )
    found = [{"id": first + at, **dict(zip(COLUMNS, row, strict=True))} for at, row in enumerate(rows.round(4).tolist())]
    bad = np.flatnonzero(rng.random(number) < BAD_SHARE).tolist()
    for at in bad:
        found[at]["b"] = "broken"
    return found, len(bad)


def add(client, events):
    """Add entries under ids of our own, so that what a killed server has already taken is not added twice."""
    for event in events:
        while True:
            try:
                client.xadd("events", {"json": json.dumps(event)}, id=f"{event['id'] + 1}-0")
            except redis.ResponseError as error:
                assert "equal or smaller" in str(error)
            except redis.RedisError:
                time.sleep(0.05)
                continue
            break


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process in /proc")
def test_nothing_is_lost_and_nothing_grows(tmp_path):
    learned_model().save(tmp_path / "m.hw")
    rng, sent, bad, memory = np.random.default_rng(0), 0, 0, []
    with redis_server(tmp_path / "redis") as broker:
        server, client = Server(tmp_path, f"redis://127.0.0.1:{broker.port}/events"), redis.Redis(port=broker.port)
        server.start()
        began = time.monotonic()
        kills = [*((share, broker) for share in np.linspace(0.1, 0.9, BROKER_KILLS)),
                 *((share, server) for share in np.linspace(0.05, 0.45, PROCESS_KILLS))]  # fmt: skip
        kills.sort(key=lambda one: one[0])
        try:
            while (share := (time.monotonic() - began) / SECONDS) < 1.0:
                step = time.monotonic()
                for number, send in ((FROM_REDIS, lambda events: add(client, events)), (FROM_HTTP, server.post)):
                    events, found = made(rng, sent, number, share)
                    send(events)
                    sent, bad = sent + number, bad + found
                if kills and share > kills[0][0]:
                    which = kills.pop(0)[1]
                    which.kill()
                    which.start()
                if share > 0.5:
                    memory.append(server.megabytes())
                time.sleep(max(0.0, STEP_SECONDS - (time.monotonic() - step)))
            wait_for_all(server)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 0
        finally:
            server.kill()
            server.client.close()
    more = hw.load(tmp_path / "state" / "snapshot.hw").n_samples_seen_ - 2000
    assert sent - bad - 64 < more <= sent - bad  # but for those that fill no block yet
    refused = {json.loads(line)["id"] for line in (tmp_path / "bad.jsonl").read_bytes().splitlines()}
    assert len(refused) == bad
    quarter = max(len(memory) // 4, 1)
    assert np.median(memory[-quarter:]) < GROWTH * np.median(memory[:quarter]), memory[:: max(len(memory) // 20, 1)]
    assert not kills


def wait_for_all(server):
    """Wait until all events are taken and learned."""
    time.sleep(6.0)  # until the source has asked the broker again
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = dict(
            line.rsplit(" ", 1) for line in server.client.get("/metrics").text.splitlines() if not line.startswith("#")
        )
        waiting = [float(value) for name, value in found.items() if "lag" in name or "backlog" in name]
        assert len(waiting) == 3
        if not any(waiting):
            return
        time.sleep(0.5)
    raise TimeoutError(f"{waiting} events wait")
