"""Which rows of a file are odd, by their p-values among the rows that the model has learned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING

from headwater.cli.support.failures import usage_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from headwater.core.chunk import Chunk
    from headwater.estimators.base import StreamingEstimator

NO_TARGET = "only with the target, whose density is the score"


@dataclass(frozen=True)
class Judge:
    """Rows are odd whose p-value is at most `rate`; `ties` between them are broken in the order of all rows."""

    model: StreamingEstimator
    rate: float
    ties: np.random.RandomState

    def rate_warning(self) -> str:
        """Return a sentence if the rate is too small for the number of scores, or an empty text."""
        known = self.model._score_sketch().rows
        if self.rate <= 0.0 or self.rate * known >= 1.0:
            return ""
        return f"note: --rate {self.rate:g} is finer than the {known:,.0f} usual scores that are known: a fitted tail decides"

    def columns(self, chunk: Chunk) -> dict[str, object]:
        """Return the anomaly score of each row, its p-value, and whether it is odd."""
        import numpy as np

        if not len(chunk):
            return {"anomaly_score": np.empty(0), "pvalue": np.empty(0), "odd": np.empty(0, dtype=bool)}
        scores, pvalues = _ask(self.model, "anomaly_score", chunk), _ask(self.model, "anomaly_pvalue", chunk, self.ties)
        return {"anomaly_score": scores, "pvalue": pvalues, "odd": np.asarray(pvalues <= self.rate)}

    def at_discovery_rate(self, level: float, chunks: Iterable[Chunk]) -> Judge:
        """Return a judge of these rows, of those called odd at most `level` are usual on average (Benjamini and Hochberg)."""
        import numpy as np

        from headwater.policies.testing import benjamini_hochberg

        ties = np.random.RandomState(0)
        pvalues = [_ask(self.model, "anomaly_pvalue", chunk, ties) for chunk in chunks if len(chunk)]
        known = np.concatenate(pvalues) if pvalues else np.empty(0)
        odd = benjamini_hochberg(known, level)
        return replace(self, rate=float(known[odd].max()) if odd.any() else -1.0, ties=np.random.RandomState(0))


def find_judge(model: StreamingEstimator, rate: float) -> Judge | None:
    """Return the judge of a model that knows how odd the rows were that it has learned; None of others, and of sequences."""
    import numpy as np

    if type(model)._traits.chained or not hasattr(model, "anomaly_pvalue"):
        return None
    try:
        model._score_sketch()
    except ValueError:
        return None
    return Judge(model, rate, np.random.RandomState(0))


def refuse_discovery_rate(model: StreamingEstimator) -> None:
    """Refuse a false discovery rate of a model without p-values."""
    if find_judge(model, 0.0) is None:
        raise usage_error("--fdr needs the scores of rows that were learned, which this model has not kept: use --rate")


def _ask(model: StreamingEstimator, name: str, chunk: Chunk, ties: np.random.RandomState | None = None) -> NDArray[np.float64]:
    """Return what a method of the model says of the rows of a chunk."""
    import numpy as np

    if chunk.y is None and type(model)._traits.target_columns:
        raise ValueError(f"rows can be called odd {NO_TARGET}")
    method = getattr(model, name)
    taken = signature(method).parameters
    given = {name: chunk[name] for name in chunk.keys() if name in taken}  # noqa: SIM118
    given |= {} if ties is None else {"random_state": ties}
    return np.asarray(method(**given), dtype=np.float64)
