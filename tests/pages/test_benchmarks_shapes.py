"""The page of shapes: its command runs once on few rows, and better peers are marked."""

import json

import pytest

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from benchmarks import shapes
from benchmarks.shapes_cell import SHAPES, measure
from benchmarks.shapes_methods import METHODS
from pages.__main__ import main


def test_every_shape_has_methods_and_words():
    assert set(SHAPES) == set(METHODS) == set(shapes.ABOUT) == set(shapes.TITLES)
    assert {method for methods in METHODS.values() for method in methods} >= set(shapes.PEERS)


def test_a_cell_says_what_it_cost_and_how_good_it_is():
    found = measure("table", "headwater, one pass", 40)
    assert {"seconds", "cpu", "memory", "peak", "score", "rand"} == set(found) and found["rand"] > 0.5


def test_the_better_figure_wins():
    assert shapes.is_better("score", -1.0, -2.0) and not shapes.is_better("score", -2.0, -1.0)
    assert shapes.is_better("perplexity", 90.0, 100.0) and not shapes.is_better("rand", 0.5, 0.5)


@pytest.mark.slow
def test_the_command_runs(tmp_path):
    assert main(["shapes", "--quick", "--only", "small", "--only", "chain", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "shapes.md").read_text()
    figures = json.loads((tmp_path / "shapes.json").read_text())["figures"]
    assert set(figures["small"]) <= set(METHODS["small"]) and "headwater GaussianHMM" in page


def test_a_peer_that_is_better_is_bold(tmp_path):
    results = shapes.PAGE.results(tmp_path)
    results.figures["small"] = {
        name: {"method": name, "seconds": seconds, "cpu": 1.0, "memory": 1.0, "peak": 9.0, "score": score, "rand": 0.5}
        for name, seconds, score in (("headwater, one pass", 2.0, -3.0), ("peer", 1.0, -2.0), ("slow", 4.0, -4.0))
    }
    lines = {one["method"]: one for one in shapes.cells("small", results)["lines"]}
    assert lines["peer"]["faster"] and lines["peer"]["loses"] == ["score"]
    assert not lines["slow"]["faster"] and lines["slow"]["loses"] == [] and lines["slow"]["ratio"] == 2.0
