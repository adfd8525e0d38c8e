"""Values for the page of `many_machines`: two workers against one, and the fits of all contenders."""

from __future__ import annotations

from typing import Any

from pages.results import Figures, Results
from pages.words import listed

TARGET = 1.7  # the target: the speed-up of two workers over one


def workers(results: Results) -> dict[str, Any]:
    ours = [fit for one in results.of("workers", "one pass/") for fit in one["fits"]]
    peers = [fit for part in ("sklearn", "spark") for one in results.of(part) for fit in one["fits"]]
    pairs = [one["pair"] for name, one in results.figures["workers"].items() if name != "files"]
    return {
        **results.figures["workers"]["files"], "pairs": pairs, "fits": ours + peers, "reached": reached(pairs),
        "last": max(ours, key=lambda fit: fit.get("workers", 0)),
    }  # fmt: skip


def reached(pairs: list[Figures]) -> str:
    """The lines that are as much faster as wanted."""
    return listed([one["line"] for one in pairs if one["ratio"] >= TARGET]) or "none"


def dask_ml(results: Results) -> Figures | None:
    return results.one("dask_ml", "dask-ml")
