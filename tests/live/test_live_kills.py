"""After the end of the process at any instant, and a restart, all bytes are those of a run that was not disturbed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from live.live_models import events, learned_model, write_lines

SERVER = Path(__file__).parent / "kill_watch.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def check_kills(folder, number, kills, seed=0):
    learned_model().save(folder / "m.hw")
    write_lines(folder / "new.jsonl", events(number))
    asked = {"folder": str(folder), "kills": kills, "seed": seed}
    done = subprocess.run([sys.executable, str(SERVER), json.dumps(asked)], stdout=subprocess.PIPE, text=True, check=True)
    for codes, answered, same in json.loads(done.stdout):
        assert codes == [0, 0]
        assert answered == number
        assert same


def test_killed_a_few_times_it_ends_with_the_same_bytes(tmp_path):
    check_kills(tmp_path, 300, kills=2)


@pytest.mark.slow
def test_killed_fifty_times_it_ends_with_the_same_bytes(tmp_path):
    check_kills(tmp_path, 40_000, kills=50, seed=1)
