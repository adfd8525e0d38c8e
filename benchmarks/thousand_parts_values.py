"""Values for the page of `thousand_parts`: the predictions of the cost model."""

from __future__ import annotations

from typing import Any

from benchmarks.thousand_parts_model import LINK, Constants, depth_of, pass_costs, round_cost
from pages.results import Figures, Results

# What is predicted: rows, workers, and parts and rounds of one pass; first the most parts that files are cut into by default.
ROWS, WORKERS = 10**12, 1000
CUTS = ((4_096, 1), (4_096, 4), (4_000, 4), (40_000, 4), (400_000, 4))
DIGITS = 300  # bytes by which messages differ: numbers in their headers have more or fewer digits


def as_predicted(one: Figures) -> bool:
    """Whether bytes are what the model says, but for the digits in headers of messages."""
    sizes = {
        "merged": sum(parts - 1 for parts in one["of_a_round"]),
        "path": sum(depth_of(parts) for parts in one["of_a_round"]),
    }
    return all(0 <= one["predicted"][name] - one[name] <= DIGITS * messages for name, messages in sizes.items())


def runs(results: Results) -> dict[str, Any]:
    figures = results.figures["runs"]["runs"]
    constants = Constants(**figures["constants"])
    return {
        **figures, "one": constants, "cores": results.runs["runs"]["machine"]["cores"] if results.runs else "the",
        "cuts": [cut_costs(constants, parts, rounds) for parts, rounds in CUTS], "once": once(constants),
    }  # fmt: skip


def cut_costs(constants: Constants, parts: int, rounds: int) -> dict[str, Any]:
    """One pass over 10^12 rows in so many parts and rounds."""
    rows, cut = ROWS / parts, [-(-(parts - at) // rounds) for at in range(rounds)]
    costs = pass_costs(constants, cut, rows, WORKERS)
    seconds, path = sum(cost.apart(constants, WORKERS) for cost in costs), sum(cost.path for cost in costs)
    return {
        "parts": parts, "rounds": rounds, "rows": rows, "depth": max(cost.depth for cost in costs), "path": path,
        "busiest": sum(cost.busiest for cost in costs), "scheduler": sum(cost.scheduler for cost in costs),
        "merged": sum(cost.merged for cost in costs), "seconds": seconds,
        "climb": sum(cost.depth for cost in costs) * constants.add + path / LINK,
        "useful": ROWS * (constants.read + constants.learn) / WORKERS / seconds,
    }  # fmt: skip


def once(constants: Constants) -> dict[str, Any]:
    parts = CUTS[2][0]
    exact = round_cost(constants, parts, ROWS / parts, WORKERS, exact=True)
    return {
        "parts": parts, "broadcast": exact.broadcast(constants, WORKERS), "exact": exact.apart(constants, WORKERS),
        "rate": constants.row / (constants.read + constants.learn),
    }  # fmt: skip


def words_of_parts(results: Results) -> list[dict[str, Any]]:
    return [
        {**one, "moved": one["merged"] / one["dense"] / (2 ** (len(one["heights"]) - 1) - 1)} for one in results.of("words")
    ]
