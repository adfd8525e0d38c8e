"""How much is done for the page about paper 000, and how runs are summed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.core.statistics import Array
from pages.results import Figures

SHRINK_BETA = 5.0  # the paper's, in figure 2
BAND = (10, 50, 90)  # percentiles over the starts


@dataclass(frozen=True)
class Scale:
    """How much is done. `few` starts do where a table has many cells, `own` runs where the library seeks the start."""

    starts: int = 50
    documents: int = 10_000
    few: int = 16
    own: int = 10
    columns: int = 1000
    passes: int = 15
    corpus_passes: int = 30
    check_points: int = 12

    @property
    def set_starts(self) -> int:
        """Starts of each of several sets, of which there are as many as runs of the library's own start."""
        return min(self.few, 3)

    @property
    def set_documents(self) -> int:
        return min(self.documents, 4000)


def banded(documents: Sequence[int], values: Sequence[Sequence[float]]) -> Figures:
    """Percentiles over the starts (rows of values) at each number of documents."""
    low, median, high = np.percentile(np.array(values), BAND, axis=0)
    return {"documents": [*documents], "low": low.tolist(), "median": median.tolist(), "high": high.tolist()}


def mean(line: Figures, key: str = "final") -> float:
    return float(np.mean(line[key]))


def settled(line: Figures, within: float) -> int:
    """Documents from which on the median over the starts stays so close to where it ends."""
    median = np.array(line["median"])
    away = np.flatnonzero(np.abs(median - median[-1]) > within)
    return int(line["documents"][min(away[-1] + 1, len(median) - 1) if away.size else 0])


def check_points(documents: int, number: int, first: int = 20) -> list[int]:
    """Numbers of documents, evenly spaced on a log scale, that end with all."""
    return sorted({round(point) for point in np.geomspace(min(first, documents), documents, number)})


def padded(trace: Sequence[float], passes: int) -> Array:
    """A trace of passes that may have ended early, since nothing changed any more."""
    return np.pad(np.asarray(trace, dtype=float), (0, passes - len(trace)), mode="edge")
