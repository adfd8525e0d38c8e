"""Killed at random instants, with brokers and requests: all bytes are those of a run that was not disturbed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from live.brokers import MOSQUITTO, REDIS
from live.live_models import learned_model

RUNNER = Path(__file__).parent / "kill_brokers.py"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]
for package in ("redis", "confluent_kafka", "paho.mqtt", "uvicorn"):
    pytest.importorskip(package, reason="an extra of headwater")


@pytest.mark.parametrize("kind", [
    pytest.param("redis", marks=pytest.mark.skipif(REDIS is None, reason="there is no redis-server")),
    "kafka",
    pytest.param("mqtt", marks=pytest.mark.skipif(MOSQUITTO is None, reason="there is no mosquitto")),
    "http",
])  # fmt: skip
def test_killed_fifty_times_it_ends_with_the_same_bytes(tmp_path, kind):
    learned_model().save(tmp_path / "m.hw")
    asked = {"folder": str(tmp_path), "kind": kind, "events": 20_000, "kills": 50, "seed": 1}
    paths = os.pathsep.join([str(RUNNER.parent.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(RUNNER), json.dumps(asked)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert json.loads(done.stdout) == [[0, 0], True]
