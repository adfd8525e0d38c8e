"""Where the truth lies in a belief: ranks among the quantiles that credible intervals have, and what follows from many."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning

from headwater.statistics import Array
from papers.calibration_subjects import Drawn, Subject

# The interval of no width is the median; the ends of all are the quantiles at 0.05, 0.1, ..., 0.95: twenty bins of one size.
MEDIAN = 1e-9
LEVELS = (MEDIAN, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BINS = 2 * len(LEVELS)
NOMINAL = (0.5, 0.9)
Ranks = NDArray[np.int64]


# One model


def intervals(model: Any, level: float) -> dict[str, Array]:
    """Credible intervals (K, columns, 2) of all that a model has such of."""
    if hasattr(model, "credible_intervals"):
        found = model.credible_intervals(level)
        return {"weights": found.weights[:, None], "means": found.means, "variances": found.variances}
    told = model.describe(values=2**20, components=2**20, level=level)
    places = {f"x{column}": column for column in range(model.n_features_in_)}
    weights = np.empty((len(told.components), 1, 2))
    values = np.empty((len(told.components), len(places), 2))
    for component in told.components:
        weights[component.index, 0] = component.low, component.high
        for value in component.values:
            if value.low is not None:
                values[component.index, places[value.name]] = value.low, value.high
    word = "probabilities" if told.value == "probability" else "coefficients"
    return {"weights": weights, word: values}


def matched(drawn: Drawn, model: Any) -> Any:
    """Learned components in the order of the true ones: those that are nearest in sum."""
    return linear_sum_assignment(drawn.distances(model))[1]


def placed(drawn: Drawn, model: Any) -> dict[str, tuple[Ranks, Array]]:
    """The rank (K, columns) of every true parameter among the quantiles, and how far out it lies.

    It is as far out as the 90 % interval would have to be stretched from the median to end there.
    """
    order = matched(drawn, model)
    by_level = [intervals(model, level) for level in LEVELS]
    found = {}
    for name, truth in drawn.truth.items():
        ends = np.stack([one[name][order] for one in by_level])
        below, above = ends[..., 0], ends[..., 1]
        ranks = (truth > below).sum(axis=0) + (truth > above).sum(axis=0)
        median = 0.5 * (below[0] + above[0])
        reach = np.where(truth > median, above[-1] - median, median - below[-1])
        with np.errstate(all="ignore"):
            far = np.abs(truth - median) / reach
        found[name] = ranks - (ranks > len(LEVELS)), far
    return found


# Many


@dataclass(frozen=True)
class Way:
    """One way to learn: an algorithm in `fit`, or in a stream."""

    name: str
    algorithm: Any
    streamed: bool = False
    settings: tuple[tuple[str, Any], ...] = ()
    from_truth: bool = False

    def learned(self, subject: Subject, drawn: Drawn, seed: int) -> Any:
        given = {"warm_up": subject.warm_up, "random_state": seed} | drawn.settings | dict(self.settings)
        if self.from_truth:
            given |= drawn.start
        model = subject.estimator(subject.components, algorithm=self.algorithm, **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.partial_fit(*drawn.rows) if self.streamed else model.fit(*drawn.rows)


def calibrated(subject: Subject, ways: Sequence[Way], seeds: Iterable[int]) -> dict[str, Any]:
    """Figures of every way to learn, on the same draws."""
    found: dict[str, dict[str, list[tuple[Ranks, Array]]]] = {way.name: {} for way in ways}
    for seed in seeds:
        drawn = subject.draw(np.random.default_rng(np.random.SeedSequence((9, seed))))
        for way in ways:
            for name, one in placed(drawn, way.learned(subject, drawn, seed)).items():
                found[way.name].setdefault(name, []).append(one)
    return {
        way: {
            name: figures(np.stack([rank for rank, _ in many]), np.stack([far for _, far in many]))
            for name, many in quantities.items()
            if name != "weights" or subject.components > 1
        }
        for way, quantities in found.items()
    }


def figures(ranks: Ranks, far: Array) -> dict[str, Any]:
    """What ranks (simulations, K, columns) come to.

    Parameters of one simulation are not independent, so errors are those of the means of simulations, and the test of
    uniformity takes one parameter of each.
    """
    n = len(ranks)
    flat = ranks.reshape(n, -1)
    found: dict[str, Any] = {"simulations": n, "parameters": flat.shape[1]}
    for level in NOMINAL:
        edge = round(BINS * (1.0 - level) / 2.0)
        held = ((flat >= edge) & (flat < BINS - edge)).mean(axis=1)
        found[f"{level:g}"] = [float(held.mean()), float(held.std(ddof=1) / np.sqrt(n))]
    histogram = np.bincount(flat.ravel(), minlength=BINS) / flat.size
    found["histogram"] = histogram.tolist()
    found["deviation"] = float(np.abs(np.cumsum(histogram)[:-1] - np.arange(1, BINS) / BINS).max())
    chosen = flat[np.arange(n), np.random.default_rng(n).integers(flat.shape[1], size=n)]
    found["p"] = float(chisquare(np.bincount(chosen // 2, minlength=BINS // 2)).pvalue)
    found["stretch"] = float(np.quantile(far, NOMINAL[1]))
    return found
