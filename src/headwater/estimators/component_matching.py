"""Match the components of two mixtures, also where a column has moved in nearly all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from headwater.core.gapped_rows import as_gapped
from headwater.core.statistics import Array
from headwater.estimators.mixture import MixtureEstimator

COMPONENT_ROWS = 512  # drawn from each component, to tell how far it is from those of the other model
APART = 2.0  # nats a row; components that are farther apart than two standard deviations of one column are others
TRIED = 3  # columns that may have moved, those whose distributions differ most
DIFFERENT = 0.05  # distance of the distributions of a column, below which it is taken to be where it was


@dataclass(frozen=True)
class Matching:
    """Pairs of components, how far apart (K, J) all of them are in all columns, and the columns that were not looked at."""

    pairs: tuple[tuple[int, int], ...]
    apart: Array
    hidden: tuple[int, ...] = ()


def match_components(first: MixtureEstimator, second: MixtureEstimator) -> Matching:
    """Match components so that the sum of their divergences is least; those more than two nats a row apart are others.

    Where components are left over on both sides, a column may have moved in all of them. The columns whose distributions differ
    most are hidden one by one, and one stays hidden if half of the weight that was left over finds a counterpart without it.
    """
    whole = _match(first, second, ())
    best, rows = whole, [_draw(model) for model in (first, second)]
    for _ in range(min(TRIED, rows[0].shape[1] // 2)):
        left = _left_over(first, best)
        if left == 0.0 or _left_over(second, Matching(tuple((j, k) for k, j in best.pairs), best.apart)) == 0.0:
            break
        trials = [_match(first, second, (*best.hidden, column)) for column in _candidates(rows, best.hidden)]
        found = min(trials, key=lambda one: _left_over(first, one), default=best)
        if _left_over(first, found) > 0.5 * left or not _moved_in_most(first, rows, found):
            break
        best = found
    return Matching(best.pairs, whole.apart, best.hidden)


def _match(first: MixtureEstimator, second: MixtureEstimator, hidden: tuple[int, ...]) -> Matching:
    apart = 0.5 * (_excess(first, second, hidden) + _excess(second, first, hidden).T)
    apart = np.maximum(np.nan_to_num(apart, nan=np.inf), 0.0)  # which draws may put below 0
    ones, others = linear_sum_assignment(np.minimum(apart, 1e3))
    pairs = [(int(k), int(j)) for k, j in zip(ones, others, strict=True) if apart[k, j] <= APART]
    return Matching(tuple(sorted(pairs, key=lambda pair: -first.weights_[pair[0]])), apart, hidden)


def _left_over(first: MixtureEstimator, found: Matching) -> float:
    """Return the weight of the components that have no counterpart."""
    paired = {k for k, _ in found.pairs}
    return float(sum(weight for k, weight in enumerate(first.weights_) if k not in paired))


def _excess(own: MixtureEstimator, other: MixtureEstimator, hidden: Sequence[int]) -> Array:
    """Kullback-Leibler divergences (K, J) of the components of another model from those of this one, by rows drawn."""
    k = len(own.weights_)
    components, rows = np.repeat(np.arange(k), COMPONENT_ROWS), _draw(own).copy()
    rows[:, list(hidden)] = np.nan
    densities = [
        model._model.family.log_densities(
            model._read().parameters.components,
            as_gapped(rows) if hidden and model._model.family.takes_gaps else rows,
        )
        for model in (own, other)
    ]
    found = densities[0][np.arange(len(rows)), components][:, None] - densities[1]
    return np.asarray(found.reshape(k, COMPONENT_ROWS, -1).mean(axis=1))


def _draw(own: MixtureEstimator) -> Array:
    components = np.repeat(np.arange(len(own.weights_)), COMPONENT_ROWS)
    return np.asarray(own._model.family.sample(own._read().parameters.components, components, np.random.default_rng(0)))


def _candidates(rows: Sequence[Array], hidden: Sequence[int]) -> list[int]:
    """Return the columns whose distributions differ most, by the largest distance of their distribution functions."""
    apart = np.array([_distance(one, other) for one, other in zip(rows[0].T, rows[1].T, strict=True)])
    apart[list(hidden)] = 0.0
    return [int(column) for column in np.argsort(-apart, kind="stable")[:TRIED] if apart[column] > DIFFERENT]


def _distance(one: Array, other: Array) -> float:
    one, other = np.sort(one[np.isfinite(one)]), np.sort(other[np.isfinite(other)])
    if not (len(one) and len(other)):
        return 0.0
    at = np.concatenate([one, other])
    shares = (np.searchsorted(rows, at, side="right") / len(rows) for rows in (one, other))
    return float(np.abs(np.subtract(*shares)).max())


def _moved_in_most(first: MixtureEstimator, rows: Sequence[Array], found: Matching) -> bool:
    """Whether the column that was hidden last differs in pairs that make up more than half of the weight of all pairs."""
    ones, others = (part[:, found.hidden[-1]].reshape(-1, COMPONENT_ROWS) for part in rows)
    weights = np.array([first.weights_[k] for k, _ in found.pairs])
    moved = np.array([_distance(ones[k], others[j]) > 3.0 * DIFFERENT for k, j in found.pairs])
    return bool(len(weights) and weights[moved].sum() > 0.5 * weights.sum())
