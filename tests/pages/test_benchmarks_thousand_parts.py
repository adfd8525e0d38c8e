"""The cost model of many machines: its formulas, its page, and the command run once with few parts."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from page_checks import page_of

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from benchmarks import thousand_parts, thousand_parts_pieces, thousand_parts_values
from benchmarks.thousand_parts_model import Constants, depth_of, pass_costs, round_cost
from pages.__main__ import main
from pages.page import DOCS

CONSTANTS = Constants(
    read=1.0, learn=2.0, exact=4.0, watch=0.5, task=10.0, add=5.0, watched_add=6.0, worker=3.0,
    scheduler=7.0, look=0.0, start=0.0, keep=0.0, message=100, scores=50, model=1000, checkpoint=2000, row=80,
)  # fmt: skip


@pytest.mark.parametrize(("parts", "depth"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1000, 10), (1024, 10), (1025, 11)])
def test_a_tree_is_as_deep_as_its_logarithm(parts, depth):
    assert depth_of(parts) == depth


def test_a_round_costs_what_its_tasks_do():
    cost = round_cost(CONSTANTS, 5, 2.0, 2)
    assert cost.workers == 5 * (2 * 3 + 10 + 3) + 4 * 5
    assert cost.busiest == 3 * 19 + 2 * 5
    assert cost.scheduler == 35
    assert (cost.merged, cost.path, cost.sent) == (400, 300, 2000)
    assert cost.on(2) == max(67, 35, (115 + 35) / 2)
    assert cost.on(1) == 150
    assert round_cost(CONSTANTS, 5, 2.0, 2, exact=True).workers == cost.workers + 5 * 2 * 2
    # Three levels of the tree after the busiest worker, and one transfer of the model between the workers.
    assert cost.apart(CONSTANTS, 2, link=100.0) == 1 * 10 + 67 + 3 * 5 + 3


def test_the_last_round_is_watched():
    first, last = pass_costs(CONSTANTS, [5, 5], 2.0, 2)
    assert first == round_cost(CONSTANTS, 5, 2.0, 2)
    assert last.workers == first.workers + 5 * 2 * 0.5 + 4 * 1
    assert last.merged == first.merged


def test_a_scheduler_may_be_what_all_wait_for():
    slow = replace(CONSTANTS, scheduler=1000.0)
    assert round_cost(slow, 5, 2.0, 2).on(100) == 5000.0


def test_bytes_are_as_predicted_or_the_page_says_no():
    one = {
        "parts": 3, "rounds": 1, "of_a_round": [3], "message": 1000, "merged": 1990, "path": 2000, "workers": 1.0,
        "scheduler": 0.5, "seconds": 1.0,
        "predicted": {"merged": 2000, "path": 2000, "workers": 1.2, "scheduler": 0.5, "seconds": 0.75},
    }  # fmt: skip
    facts = {"rows": 4096, "long": 100, "few": 16, "components": 10, "width": 10, "workers": 2, "tasks_a_second": 300.0}

    def text(run):
        figures = {**facts, "constants": asdict(CONSTANTS), "runs": [run]}
        found = page_of(thousand_parts.PAGE, runs={"runs": figures})
        assert found.count("Not measured.") == 1  # the tables of words
        return found

    assert thousand_parts_values.as_predicted(one)
    assert "| 3 | 1 | 1,000 | 2,000 | 1,990 | 2,000 | 2,000 | yes |" in text(one)
    assert "| 3 | 1 | 1.20 | 1.00 | +20 % | 0.50 | 0.50 | +0 % | 0.75 | 1.00 | -25 % | 1.5 |" in text(one)
    for wrong in ({"merged": 2001}, {"merged": 1000}, {"path": 1000}):
        assert not thousand_parts_values.as_predicted({**one, **wrong})
        assert "| NO |" in text({**one, **wrong})


def test_pages_have_lines_for_its_tables():
    text = (DOCS / "mechanisms" / "cluster-costs.md").read_text(encoding="utf-8")
    for name in ("constants", "check", "bytes", "scale", "once", "words"):
        assert text.count(f"<!-- table: thousand-parts-{name} -->") == 1
        assert text.count(f"<!-- end of table: thousand-parts-{name} -->") == 1


def test_what_watching_costs_is_timed_turn_by_turn():
    found = {"learn long": [1.0, 9.0, 1.0], "watch long": [1.5, 9.6, 1.4]}  # the machine was busy in one repeat
    assert thousand_parts_pieces.watched_more(found) == pytest.approx(0.5 / thousand_parts_pieces.LONG)
    assert thousand_parts_pieces.watched_more({"learn long": [1.5], "watch long": [1.4]}) == 0.0


@pytest.mark.slow
def test_a_few_parts_run(tmp_path):
    pytest.importorskip("distributed")
    assert main(["thousand_parts", "--quick", "--out", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "thousand_parts.json").read_text())["figures"]
    found, words = figures["runs"]["runs"], [*figures["words"].values()]
    assert [one["parts"] for one in found["runs"]] == [3, 8]
    assert all(thousand_parts_values.as_predicted(one) for one in found["runs"])
    assert all(one["rows"] == one["parts"] * found["rows"] for one in found["runs"])
    assert min(value for name, value in found["constants"].items() if name != "watch") > 0
    assert found["constants"]["watch"] >= 0  # storing a score costs hardly anything
    assert len(words) == 4
    for one in words:
        # Messages higher in the tree have more words, and the digits in their headers vary.
        assert np.diff(one["heights"]).min() > -thousand_parts_values.DIGITS
        assert one["heights"][-1] > one["heights"][0]
    assert "| NO |" not in (tmp_path / "thousand_parts.md").read_text()
