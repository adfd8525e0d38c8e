"""The page of anomalies: its command runs once on few rows."""

import json

import pytest

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from benchmarks.anomalies import PAGE
from pages.__main__ import main


@pytest.mark.slow
def test_the_command_runs(tmp_path):
    for name in PAGE.needs:  # which these parts do not read
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    parts, places = ["--only", "discoveries", "--only", "rates"], ["--data", str(tmp_path), "--out", str(tmp_path)]
    assert main(["anomalies", "--quick", *parts, *places]) == 0
    figures = json.loads((tmp_path / "anomalies.json").read_text())["figures"]
    assert figures["discoveries"]["0.01-5.0"]["streams"] == 3 and figures["rates"]["abrupt"]["follows"] > 0.0
    assert "| seasonal |" in (tmp_path / "anomalies.md").read_text()
