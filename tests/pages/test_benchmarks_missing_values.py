"""The page of rows with gaps: its command runs once on few rows."""

import json

import pytest

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from pages.__main__ import main


@pytest.mark.slow
def test_the_command_runs(tmp_path):
    assert main(["missing_values", "--quick", "--only", "intervals", "--only", "streams", "--out", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "missing_values.json").read_text())["figures"]
    assert figures["intervals"]["full-0.0"]["held"] > 0.0 and figures["streams"]["em"]["errors"][0] > 0.0
    assert "| online-vb |" in (tmp_path / "missing_values.md").read_text()
