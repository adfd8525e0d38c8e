"""What the guide gives to run a live model as a service: its files are read, and do what they say."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from live.live_models import events, learned_model, write_lines

from headwater.cli.app import COMMANDS
from headwater.cli.serve import ServerOptions
from headwater.cli.support.live_options import FURTHER, LiveOptions

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "live.md"
pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="run from a checkout")


def block(kind):
    return re.search(rf"^```{kind}\n(.*?)^```\n", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[1]


def check_command(parts):
    """A command line of the guide names a command, and options that it has."""
    assert Path(parts[0]).name == "headwater"
    assert parts[1] in {module.__name__.rsplit(".", 1)[1] for module in COMMANDS}
    known = {f"--{name.replace('_', '-')}" for name in (*LiveOptions.__annotations__, *ServerOptions.__annotations__)}
    assert {part for part in parts[2:] if part.startswith("--")} <= known


def test_the_unit_of_systemd_starts_a_server():
    unit = ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(block("ini"))
    check_command(shlex.split(unit["Service"]["ExecStart"]))
    assert unit["Service"]["WorkingDirectory"] in unit["Service"]["ReadWritePaths"].split()
    assert unit["Service"]["Restart"] == "on-failure" and unit["Install"]["WantedBy"]


def test_the_image_starts_a_server_as_a_user():
    lines = dict(line.split(" ", 1) for line in block("docker").splitlines() if not line.startswith("RUN"))
    check_command(json.loads(lines["CMD"]))
    assert lines["USER"] != "root" and "headwater compile" in block("docker")
    extras = re.search(r"source\[(\w+)\]", block("docker"))[1]
    assert f"\n{extras} = [" in (GUIDE.parents[2] / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGTERM")
def test_the_options_of_the_file_run_until_they_are_to_stop(tmp_path):
    learned_model().save(tmp_path / "plant.hw")
    (tmp_path / "logs").mkdir()
    write_lines(
        tmp_path / "logs" / "a.jsonl", [*events(100), {"id": "odd", "a": 99.0, "b": 0.0, "c": 0.0}, {"id": "bad", "a": "?"}]
    )
    (tmp_path / "live.toml").write_text(block("toml"))
    options, more = LiveOptions(config=str(tmp_path / "live.toml")).completed(FURTHER)
    assert options.learn and options.rate and more["port"] == 8400
    command = [sys.executable, "-m", "headwater", "watch", "--config", "live.toml", "--sink", "all.csv"]
    said = []
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        for line in process.stderr:
            said.append(line)
            if " started " in line:
                while not (tmp_path / "all.csv").exists() or len((tmp_path / "all.csv").read_bytes().splitlines()) < 103:
                    assert process.poll() is None
                process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, said
    assert " stopped events=101 " in said[-1] and " snapshot events=101 " in said[-2]
    (alarm,) = (tmp_path / "odd.jsonl").read_text().splitlines()
    assert json.loads(alarm)["id"] == "odd" and json.loads(alarm)["reasons"][0]["column"] == "a"
    assert "99.0" not in "".join(said)  # the journal has no rows
