"""Where the truth lies in a belief: ranks among the quantiles that credible intervals have, and what follows from many."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.core.statistics import Array
from papers.calibration_subjects import Drawn, Subject

# The interval of no width is the median; the ends of all are the quantiles at 0.05, 0.1, ..., 0.95: twenty bins of one size.
LEVELS = (1e-9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BINS = 2 * len(LEVELS)
PROBABILITIES = np.arange(1, BINS) / BINS
NOMINAL = (0.5, 0.9)
MEAN_FIELD, INFORMED = "mean-field", "observed-information"  # methods of credible intervals
# A component is ambiguous by what its rows share with other components: 1 - sum r^2 / sum r, of responsibilities r.
AMBIGUITY = (0.0, 0.01, 0.05, 0.15, 0.3, 1.0)
Ranks = NDArray[np.int64]


# One model


def intervals(model: Any, level: float, method: str = MEAN_FIELD) -> dict[str, Array]:
    """Credible intervals (K, columns, 2) of all that a model has such of."""
    if isinstance(model, hw.GaussianMixture):
        found = model.credible_intervals(level, method=method)
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


def quantiles(model: Any, method: str = MEAN_FIELD) -> dict[str, Array]:
    """Quantiles (19, K, columns) of the belief, at 0.05, 0.1, ..., 0.95."""
    by_level = [intervals(model, level, method) for level in LEVELS]
    found = {}
    for name in by_level[0]:
        ends = np.stack([one[name] for one in by_level])
        found[name] = np.concatenate([ends[:0:-1, ..., 0], ends[:1].mean(axis=-1), ends[1:, ..., 1]])
    return found


def placed(truth: Array, among: Array) -> tuple[Ranks, Array]:
    """The rank (K, columns) of every true parameter among its quantiles, and how far out it lies.

    It is as far out as the 90 % interval would have to be stretched from the median to end there.
    """
    low, median, high = among[0], among[len(LEVELS) - 1], among[-1]
    with np.errstate(all="ignore"):
        far = np.abs(truth - median) / np.where(truth > median, high - median, median - low)
    return (truth > among).sum(axis=0), far


def matched(drawn: Drawn, model: Any) -> Any:
    """Learned components in the order of the true ones: those that are nearest in sum."""
    return linear_sum_assignment(drawn.distances(model))[1]


def ambiguity(model: Any, rows: Array) -> Array:
    """How ambiguous each component is (K,)."""
    shares = model.predict_proba(rows)
    return np.asarray(1.0 - (shares**2).sum(axis=0) / np.maximum(shares.sum(axis=0), 1e-300))


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


@dataclass(frozen=True)
class Observed:
    """Ranks and distances (simulations, K, columns) by quantity, and how ambiguous components were (simulations, K)."""

    ranks: dict[str, Ranks]
    far: dict[str, Array]
    ambiguity: Array


def draws(subject: Subject, seeds: Iterable[int]) -> list[Drawn]:
    """Draws that have nothing in common with those of another subject."""
    own = crc32(repr(subject).encode())
    return [subject.draw(np.random.default_rng(np.random.SeedSequence((own, seed)))) for seed in seeds]


def observe(subject: Subject, way: Way, drawn: Sequence[Drawn]) -> Observed:
    """Learn what was drawn and look where the truth lies."""
    found: list[dict[str, tuple[Ranks, Array]]] = []
    shared = []
    for seed, one in enumerate(drawn):
        model = way.learned(subject, one, seed)
        order, beliefs = matched(one, model), quantiles(model)
        found.append({name: placed(truth, beliefs[name][:, order]) for name, truth in one.truth.items()})
        # Of inputs alone nobody knows the component.
        shared.append(ambiguity(model, one.rows[0])[order] if len(one.rows) == 1 else np.zeros(subject.components))
    return gathered(found, np.stack(shared))


def gathered(found: Sequence[dict[str, tuple[Ranks, Array]]], shared: Array) -> Observed:
    names = [name for name in found[0] if name != "weights" or shared.shape[1] > 1]
    ranks = {name: np.stack([one[name][0] for one in found]) for name in names}
    return Observed(ranks, {name: np.stack([one[name][1] for one in found]) for name in names}, shared)


# What it comes to


def figures(observed: Observed) -> dict[str, Any]:
    return {name: summed_up(ranks, observed.far[name]) for name, ranks in observed.ranks.items()}


def held(ranks: Ranks, level: float) -> NDArray[np.bool_]:
    """Whether a central interval of this level held the truth."""
    edge = round(BINS * (1.0 - level) / 2.0)
    return (ranks >= edge) & (ranks < BINS - edge)


def summed_up(ranks: Ranks, far: Array) -> dict[str, Any]:
    """What ranks (simulations, K, columns) come to.

    Parameters of one simulation are not independent, so errors are those of the means of simulations, and the test of
    uniformity takes one parameter of each.
    """
    n = len(ranks)
    flat = ranks.reshape(n, -1)
    found: dict[str, Any] = {"simulations": n, "parameters": flat.shape[1]}
    for level in NOMINAL:
        shares = held(flat, level).mean(axis=1)
        found[f"{level:g}"] = [float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(n))]
    histogram = np.bincount(flat.ravel(), minlength=BINS) / flat.size
    found["histogram"] = histogram.tolist()
    found["deviation"] = float(np.abs(np.cumsum(histogram)[:-1] - PROBABILITIES).max())
    chosen = flat[np.arange(n), np.random.default_rng(n).integers(flat.shape[1], size=n)]
    found["p"] = float(chisquare(np.bincount(chosen // 2, minlength=BINS // 2)).pvalue)
    found["stretch"] = float(np.quantile(far, NOMINAL[1]))
    return found


def by_ambiguity(observed: Sequence[Observed]) -> dict[str, Any]:
    """Coverage of 90 % intervals and the stretch they need, of components that are ambiguous by so much."""
    found: dict[str, Any] = {}
    for low, high in pairwise(AMBIGUITY):
        cell: dict[str, Any] = {}
        for name in observed[0].ranks:
            picked = [(one.ambiguity >= low) & (one.ambiguity < high) for one in observed]
            ranks = np.concatenate([one.ranks[name][inside] for one, inside in zip(observed, picked, strict=True)])
            far = np.concatenate([one.far[name][inside] for one, inside in zip(observed, picked, strict=True)])
            if len(ranks):
                shares = held(ranks, NOMINAL[1]).mean(axis=1)
                cell[name] = {
                    "components": len(ranks), "stretch": float(np.quantile(far, NOMINAL[1])),
                    "0.9": [float(shares.mean()), float(shares.std() / np.sqrt(len(shares)))],
                }  # fmt: skip
        found[f"{low:g}"] = cell
    return found
