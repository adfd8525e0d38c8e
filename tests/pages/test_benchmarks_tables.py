"""The page of tables: its command runs once on few rows."""

import json

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from benchmarks import tables
from pages.__main__ import main


def test_a_sure_and_right_classifier_has_no_calibration_error():
    truth = np.array(["a", "b", "a", "b"])
    shares = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert tables.judge(shares, np.array(["a", "b"]), truth) == (1.0, 0.0)
    half = tables.judge(np.full((4, 2), 0.5), np.array(["a", "b"]), truth)
    assert half == (0.5, 0.0)


@pytest.mark.slow
def test_the_command_runs(tmp_path):
    assert main(["tables", "--quick", "--only", "rate", "--out", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "tables.json").read_text())["figures"]
    assert figures["rate"]["stream"]["rate"] > 0.0 and "million rows a second" in (tmp_path / "tables.md").read_text()
