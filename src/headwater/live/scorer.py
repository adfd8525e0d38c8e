"""Answers for events by the parameters of the last fold: score, p-value, decision, reasons. None of them waits for a search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.values import AnyArray
from headwater.diagnostics.score_window import quantile
from headwater.live.event_reader import EventReader
from headwater.live.events import Answer

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

REASONS = 3  # columns that are named for an odd event
MOST_EXPLAINED = 64  # odd events of one group whose reasons are found; a flood of them must not stop the stream


@dataclass(frozen=True)
class Decision:
    """What is odd: scores below a threshold, or as low as at most this share of the usual scores."""

    rate: float | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and self.threshold is not None:
            raise ValueError("rate and threshold must not both be given")
        if self.rate is not None and not 0.0 < self.rate < 1.0:
            raise ValueError(f"rate must lie between 0 and 1, got {self.rate!r}")
        if self.threshold is not None and math.isnan(self.threshold):
            raise ValueError("threshold must be a number, got nan")


class Scorer:
    """A model as of its last fold, which other threads may ask while the model goes on learning.

    Parameters
    ----------
    model : estimator
        The model.
    reader : EventReader
        What made the values.
    decision : Decision
        What is odd.
    goes_on : bool
        Whether the model goes on learning; if not, it is read as everywhere else, rows that wait for a fold among them.
    """

    def __init__(self, model: StreamingEstimator, reader: EventReader, decision: Decision, goes_on: bool) -> None:
        self.model, self.reader, self.decision = copy(model), reader, decision
        if goes_on:
            self.model._runtime = model._runtime.without_search()
        history = getattr(model, "history_", None)
        scores, rows = history.usual if history is not None else (np.empty(0), np.empty(0))
        self.usual, self._below = scores, np.concatenate([[0.0], np.cumsum(rows)])
        if decision.rate is not None:
            self.threshold: float | None = quantile(scores, rows, decision.rate) if len(scores) else None
        else:
            self.threshold = decision.threshold

    @property
    def n_usual(self) -> int:
        """Learned rows whose scores new ones are compared with."""
        return int(self._below[-1])

    def scores(self, values: AnyArray) -> NDArray[np.float64]:
        """Return the log-density of each row; a ValueError if a row is beyond what the model takes."""
        return np.asarray(self.model.score_samples(self.reader.rows(values)["X"]), dtype=np.float64)

    def pvalues(self, scores: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the share of usual scores that are no higher, the event among them; None if none are known."""
        if not len(self.usual):
            return None
        return np.asarray((self._below[np.searchsorted(self.usual, scores, side="right")] + 1.0) / (self._below[-1] + 1.0))

    def answers(self, values: AnyArray, scores: NDArray[np.float64]) -> list[Answer]:
        """Return the answer for each event: score, p-value, whether it is odd, its cluster, and reasons if it is odd."""
        pvalues = self.pvalues(scores)
        odd = None if self.threshold is None else scores < self.threshold
        found: list[Answer] = [{"score": one} for one in _plain(scores)]
        if pvalues is not None:
            for answer, pvalue in zip(found, _plain(pvalues), strict=True):
                answer["pvalue"] = pvalue
        for answer, one in zip(found, [None] * len(found) if odd is None else odd.tolist(), strict=True):
            answer["odd"] = one
        if odd is not None and odd.any() and hasattr(self.model, "explain"):
            places = np.flatnonzero(odd)[:MOST_EXPLAINED]
            for place, reasons in zip(places.tolist(), self.reasons(values[places]), strict=True):
                found[place]["reasons"] = reasons
        return found

    def reasons(self, values: AnyArray) -> list[list[Mapping[str, object]]]:
        """Return the columns of each row that are oddest given the others, the oddest first."""
        told = self.model.explain(self.reader.rows(values)["X"])
        names, parts = told.columns, ("values", "expected", "low", "high", "tail")
        arrays = [np.asarray(getattr(told, name), dtype=object) for name in parts]
        return [
            [
                {
                    "column": names[at],
                    **{part.rstrip("s"): _one(array[row, at]) for part, array in zip(parts, arrays, strict=True)},
                }
                for at in order
                if not math.isnan(told.tail[row, at])
            ]
            for row, order in enumerate(told.order(min(REASONS, len(names))).tolist())
        ]


def _plain(values: NDArray[np.float64]) -> Sequence[float | None]:
    return [one if math.isfinite(one) else None for one in values.tolist()]


def _one(value: Any) -> object:
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
