"""Answers for events by the parameters of the last fold: score, p-value, decision, reasons. None of them waits for a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwater.core.values import AnyArray
from headwater.diagnostics.history import quantile
from headwater.live.event_reader import EventReader
from headwater.live.events import Answer
from headwater.policies.testing import benjamini_hochberg

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
    from headwater.policies.score_sketch import ScoreSketch

REASONS = 3  # columns that are named for an odd event
Test: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.bool_]]

MOST_EXPLAINED = 64  # odd events of one group whose reasons are found; a flood of them must not stop the stream


@dataclass(frozen=True)
class Decision:
    """What is odd: what a share of usual events is, or what is found at a false discovery rate, or scores below a threshold."""

    rate: float | None = None
    threshold: float | None = None
    fdr: float | None = None

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.rate, self.threshold, self.fdr)) > 1:
            raise ValueError("of rate, fdr and threshold only one may be given")
        for name, level in (("rate", self.rate), ("fdr", self.fdr)):
            if level is not None and not 0.0 < level < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, got {level!r}")
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
        self._sketch = _find_sketch(self.model)
        self.threshold = decision.threshold  # of scores; a rate has one if there are no p-values of anomaly scores
        if decision.rate is not None and self._sketch is None and len(scores):
            self.threshold = quantile(scores, rows, decision.rate)

    @property
    def n_usual(self) -> int:
        """Learned rows whose scores new ones are compared with."""
        return int(self._below[-1] if self._sketch is None else self._sketch.rows)

    def scores(self, values: AnyArray) -> NDArray[np.float64]:
        """Return the log-density of each row; a ValueError if a row is beyond what the model takes."""
        return np.asarray(self.model.score_samples(self.reader.rows(values)["X"]), dtype=np.float64)

    def pvalues(self, scores: NDArray[np.float64], oddness: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Return the share of usual events that are at least as odd; None if none are known."""
        if self._sketch is not None and oddness is not None:
            found: NDArray[np.float64] = self._sketch.pvalues(oddness, np.full(len(oddness), 0.5))  # half of the equal ones
            return found
        if not len(self.usual):
            return None
        return np.asarray((self._below[np.searchsorted(self.usual, scores, side="right")] + 1.0) / (self._below[-1] + 1.0))

    def answers(self, values: AnyArray, scores: NDArray[np.float64], test: Test | None = None) -> list[Answer]:
        """Return the answer for each event: score, p-value, whether it is odd, and reasons if it is.

        At a false discovery rate, `test` says which p-values are odd; if there is none, the events are a table of their own.
        """
        if not len(values):
            return []
        oddness = None if self._sketch is None else self._oddness(values)
        pvalues = self.pvalues(scores, oddness)
        odd = None if self.threshold is None else scores < self.threshold
        if self._sketch is not None and pvalues is not None and self.decision.rate is not None:
            odd = pvalues <= self.decision.rate
        if self._sketch is not None and pvalues is not None and self.decision.fdr is not None:
            odd = benjamini_hochberg(pvalues, self.decision.fdr) if test is None else test(pvalues)
        parts = {
            "score": _plain(scores),
            **({} if oddness is None else {"anomaly_score": _plain(oddness)}),
            **({} if pvalues is None else {"pvalue": _plain(pvalues)}),
            "odd": [None] * len(scores) if odd is None else odd.tolist(),
        }
        names = tuple(parts)
        found: list[Answer] = [dict(zip(names, one, strict=True)) for one in zip(*parts.values(), strict=True)]
        if odd is not None and odd.any() and hasattr(self.model, "explain"):
            places = np.flatnonzero(odd)[:MOST_EXPLAINED]
            for place, reasons in zip(places.tolist(), self.reasons(values[places]), strict=True):
                found[place]["reasons"] = reasons
        return found

    def _oddness(self, values: AnyArray) -> NDArray[np.float64]:
        return np.asarray(self.model.anomaly_score(self.reader.rows(values)["X"]), dtype=np.float64)

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


def _find_sketch(model: Any) -> ScoreSketch | None:
    """The anomaly scores of usual rows, if the model has kept them."""
    if not hasattr(model, "anomaly_pvalue"):
        return None
    try:
        found: ScoreSketch = model._score_sketch()
    except ValueError:
        return None
    return found


def _plain(values: NDArray[np.float64]) -> Sequence[float | None]:
    if np.isfinite(values).all():
        return values.tolist()
    return [one if math.isfinite(one) else None for one in values.tolist()]


def _one(value: object) -> object:
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
