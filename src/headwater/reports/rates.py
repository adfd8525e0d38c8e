"""How many rows would be called odd at several rates, by their p-values among the rows that were learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from headwater.estimators.anomaly_decisions import AnomalyDecisions
    from headwater.estimators.base import StreamingEstimator

RATES = (0.0001, 0.001, 0.01, 0.05)
EXTRAPOLATED_ROWS = 1.0  # of the learned rows as odd, below which the rate rests on a fitted tail


@dataclass(frozen=True)
class RateLine:
    """How many rows are odd at a rate, and how many chance alone would call so; `extrapolated` beyond what was learned."""

    rate: float
    odd: int
    expected: float
    extrapolated: bool


class RateCounts:
    """Counts rows by their p-values, chunk by chunk; nothing for models that have kept no scores, and for chains."""

    def __init__(self, model: StreamingEstimator) -> None:
        self.model: AnomalyDecisions | None = None
        self.ties = np.random.RandomState(0)  # broken in the order of all rows, whatever the chunks
        self.counts, self.rows, self.known = np.zeros(len(RATES), dtype=np.int64), 0, 0.0
        if model._traits.chained or not hasattr(model, "anomaly_pvalue"):
            return
        try:
            self.known = cast("AnomalyDecisions", model)._score_sketch().rows
        except ValueError:
            return
        self.model = cast("AnomalyDecisions", model)

    def take(self, given: dict[str, object]) -> None:
        """Count the rows of a chunk, with what the model reads beside them."""
        if not self.judges(given):
            return
        assert self.model is not None
        asked = {name: value for name, value in given.items() if name != "key"}
        pvalues: NDArray[np.float64] = self.model.anomaly_pvalue(**asked, random_state=self.ties)
        pvalues = pvalues[~np.isnan(pvalues)]
        self.rows += len(pvalues)
        self.counts += [int(np.sum(pvalues <= rate)) for rate in RATES]

    def judges(self, given: dict[str, object]) -> bool:
        """Whether these rows have p-values."""
        return self.model is not None and not (self.model._traits.target_columns and "y" not in given)

    def anomaly_scores(self, given: dict[str, object]) -> NDArray[np.float64] | None:
        """Return how odd the rows of a chunk are; None of models without p-values."""
        if not self.judges(given):
            return None
        asked = {name: value for name, value in given.items() if name != "key"}
        return np.asarray(cast(Any, self.model).anomaly_score(**asked), dtype=np.float64)

    def lines(self) -> tuple[RateLine, ...]:
        """Return a line for each rate; none if nothing was counted."""
        if not self.rows:
            return ()
        return tuple(
            RateLine(rate, int(count), rate * self.rows, rate * self.known < EXTRAPOLATED_ROWS)
            for rate, count in zip(RATES, self.counts, strict=True)
        )
