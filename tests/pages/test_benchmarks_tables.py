"""The page of tables: its command runs once on few rows."""

import json

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from benchmarks import tables
from benchmarks.tables_broken import measure_broken
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


def test_broken_rows_cost_a_plain_mixture_most():
    lost = measure_broken(3000, seed=0)["lost"]
    assert lost["GaussianMixture, background=True"] < 0.1 < lost["GaussianMixture"]


def test_claims_are_counted_by_what_was_claimed():
    shares = np.array([[0.4, 0.6], [0.995, 0.005], [0.97, 0.03]])
    counted = tables.count_claims(shares, np.array(["a", "b"]), np.array(["b", "a", "b"]))
    assert [int(part[0]) for part in counted] == [0, 1, 0, 0, 0, 1, 1]
    assert [part[1] for part in counted] == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
