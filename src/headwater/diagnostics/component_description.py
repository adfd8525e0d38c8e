"""Descriptions of components: distinctive columns and words, intervals of beliefs, odd values; for all models alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from headwater.core.statistics import Array
from headwater.core.values import AnyArray, Rows
from headwater.diagnostics.description import Component, Curve, DescribedComponents, LeftOut, Matrix, Value

SYMBOL_LIMIT = 24  # states of a matrix that a person can still read
MATRIX_LIMIT = 8  # matrices of a description
CURVE_POINTS = 256  # of a curve
# The weight of log probability in the relevance of a word; the rest is that of log lift (Sievert and Shirley 2014).
PROBABILITY_WEIGHT = 0.6
TINY = 1e-300  # in place of zero, in divisors and logarithms
ODD_COLUMN_Z = 2.5  # standard deviations from the mean; a column beyond it is odd by itself


class ColumnTraits(Protocol):
    """What a class of models says of columns."""

    @property
    def column_word(self) -> str:
        """What a column without a name is called, before its number."""


class NamedColumns(Protocol):
    """A model whose columns may have names, in `feature_names_in_`."""

    _traits: ClassVar[ColumnTraits]  # its `column_word` stands before the number of a column without a name


@dataclass(frozen=True)
class Limits:
    """How long a description may be: values of a component, components, and the level of intervals."""

    values: int = 12
    components: int = 32
    level: float = 0.9

    @property
    def tails(self) -> tuple[float, float]:
        """Probabilities below the ends of an interval."""
        return 0.5 - 0.5 * self.level, 0.5 + 0.5 * self.level


def finite_number(value: float) -> float | None:
    """A float, or None of what is not finite."""
    return float(value) if np.isfinite(value) else None


def column_names(model: NamedColumns, width: int) -> list[str]:
    """Return the names of the columns; where they have none, a word and their number."""
    known = [str(name) for name in getattr(model, "feature_names_in_", ())][:width]
    return known + [f"{model._traits.column_word}{place}" for place in range(len(known), width)]


def symbol_names(model: object, width: int) -> list[str]:
    """Return the names of symbols, if the stream had them; otherwise their numbers."""
    schema = getattr(model, "schema_", None) or {}
    known = [str(name) for name in schema.get("symbols", None) or ()][:width]
    return known + [str(place) for place in range(len(known), width)]


def heaviest_components(weights: Array, most: int) -> NDArray[np.int64]:
    """The heaviest components, in falling order."""
    return np.argsort(-np.asarray(weights), kind="stable")[:most]


def count_left_out(weights: Array, shown: NDArray[np.int64]) -> LeftOut:
    """What a description says of components that it leaves out."""
    rest = max(0.0, float(np.sum(weights) - np.sum(np.asarray(weights)[shown])))
    number = len(weights) - len(shown)
    return {"left_out": number, "weight_left_out": rest if number else 0.0}


def distinctive_columns(weights: Array, means: Array, variances: Array, most: int) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the columns in which components differ most, in their order; with mean and standard deviation of all rows."""
    share = np.asarray(weights) / np.sum(weights)
    middle = share @ means
    spread = np.sqrt(np.maximum(share @ (variances + (means - middle) ** 2), TINY))
    # Absolute differences: squares would put a column first in which only a few rows are far off.
    apart = share @ np.abs(means - middle) / spread
    return np.sort(np.argsort(-apart, kind="stable")[:most]), middle, spread


def distinctive_words(probabilities: Array, overall: Array, most: int) -> NDArray[np.int64]:
    """Return the most relevant words of a component, the most probable first."""
    frequent = np.argsort(-probabilities, kind="stable")[: max(50, 10 * most)]
    lift = np.log(np.maximum(probabilities[frequent], TINY) / np.maximum(overall[frequent], TINY))
    chosen = np.argsort(-relevance(probabilities[frequent], lift), kind="stable")[:most]
    return frequent[np.sort(chosen)]


def relevance(probability: Array, lift: Array) -> Array:
    """Return the relevance of words: a weighted mean of log probability and log lift."""
    return PROBABILITY_WEIGHT * np.log(np.maximum(probability, TINY)) + (1.0 - PROBABILITY_WEIGHT) * lift


def dirichlet_interval(concentration: Array, total: float | Array, limits: Limits) -> Array:
    """Central intervals (n, 2) of some probabilities of Dirichlet beliefs, whose parameters sum to `total`."""
    own = np.asarray(concentration, dtype=float)[:, None]
    rest = np.reshape(total, (-1, 1)) - own
    with np.errstate(all="ignore"):
        found = betaincinv(own, np.maximum(rest, TINY), np.array(limits.tails))
    return np.asarray(found)


def gaussian_components(
    names: Sequence[str],
    weights: Array,
    means: Array,
    variances: Array,
    limits: Limits,
    weight_intervals: Array | None = None,
    mean_intervals: Callable[[NDArray[np.int64]], Array] | None = None,
) -> DescribedComponents:
    """Describe components that have a mean and a variance in each column; `mean_intervals` is asked for some columns."""
    shown = heaviest_components(weights, limits.components)
    columns, middle, spread = distinctive_columns(weights, means, variances, limits.values)
    intervals = None if mean_intervals is None else mean_intervals(columns)

    def value(k: int, at: int, column: int) -> Value:
        low, high = (None, None) if intervals is None else map(finite_number, intervals[k, at])
        standing = (means[k, column] - middle[column]) / spread[column]
        return Value(
            names[column], float(means[k, column]), float(np.sqrt(variances[k, column])), low, high, float(standing)
        )  # fmt: skip

    components = tuple(
        Component(
            int(k), float(weights[k]), tuple(value(k, at, column) for at, column in enumerate(columns)),
            *interval_of(weight_intervals, k),
        )
        for k in shown
    )  # fmt: skip
    return {
        "value": "mean", "spread": "standard deviation", "components": components,
        "values_left_out": means.shape[1] - len(columns), **count_left_out(weights, shown),
    }  # fmt: skip


def word_components(
    names: Sequence[str],
    weights: Array,
    probabilities: Array,
    limits: Limits,
    concentration: Array | None = None,
    weight_intervals: Array | None = None,
) -> DescribedComponents:
    """Describe components that have a probability of each word; `concentration` is the Dirichlet belief about them."""
    shown = heaviest_components(weights, limits.components)
    overall = np.asarray(weights) @ probabilities / max(float(np.sum(weights)), TINY)
    components = []
    for k in shown:
        words = distinctive_words(probabilities[k], overall, limits.values)
        intervals = None
        if concentration is not None:
            intervals = dirichlet_interval(concentration[k, words], float(concentration[k].sum()), limits)
        lift = np.log(np.maximum(probabilities[k, words], TINY) / np.maximum(overall[words], TINY))
        values = tuple(
            Value(
                names[word], float(probabilities[k, word]), None, *interval_of(intervals, at), standing=float(lift[at])
            )
            for at, word in enumerate(words)
        )  # fmt: skip
        components.append(Component(int(k), float(weights[k]), values, *interval_of(weight_intervals, k)))
    left = max(0, probabilities.shape[1] - limits.values)
    return {
        "value": "probability", "spread": "", "components": tuple(components), "values_left_out": left,
        **count_left_out(weights, shown),
    }  # fmt: skip


def step_components(
    names: Sequence[str],
    weights: Array,
    probabilities: Array,
    concentration: Array,
    limits: Limits,
    weight_intervals: Array | None = None,
) -> DescribedComponents:
    """Describe Markov chains by their most relevant first symbols and transitions, the most relevant first.

    Columns are the first symbols, and then the transitions from each symbol; `concentration` is the Dirichlet belief.
    """
    size = len(names)
    shown = heaviest_components(weights, limits.components)
    taken = concentration / np.maximum(concentration.sum(axis=1, keepdims=True), TINY)
    often = (np.asarray(weights) @ taken).reshape(size + 1, size)
    overall = (often / np.maximum(often.sum(axis=1, keepdims=True), TINY)).ravel()
    totals = np.repeat(concentration.reshape(-1, size + 1, size).sum(axis=2), size, axis=1)
    components = []
    for k in shown:
        lift = np.log(np.maximum(probabilities[k], TINY) / np.maximum(overall, TINY))
        columns = np.argsort(-relevance(taken[k], lift), kind="stable")[: limits.values]
        intervals = dirichlet_interval(concentration[k, columns], totals[k, columns], limits)
        values = tuple(
            Value(
                f"{names[at // size - 1]} → {names[at % size]}" if at >= size else f"starts with {names[at]}",
                float(probabilities[k, at]), None, *interval_of(intervals, place), standing=float(lift[at]),
            )
            for place, at in enumerate(columns)
        )  # fmt: skip
        components.append(Component(int(k), float(weights[k]), values, *interval_of(weight_intervals, k)))
    left = max(0, size * (size + 1) - limits.values)
    return {
        "value": "probability", "spread": "", "components": tuple(components), "values_left_out": left,
        **count_left_out(weights, shown),
    }  # fmt: skip


@dataclass(frozen=True)
class GaussianComponents:
    """Gaussians over the columns, with the attributes that pictures read."""

    weights_: Array
    means_: Array
    covariances_: Array
    feature_names_in_: Sequence[str] | AnyArray
    covariance_type: str = "full"


def gaussian_oddities(names: Sequence[str], row: Array, mean: Array, covariance: Array, most: int) -> tuple[Value, ...]:
    """Return the columns far from the mean of a component; if none is, those far from what the other columns predict."""
    values = np.asarray(row, dtype=float)
    apart = values - mean
    matrix = np.ndim(covariance) == 2
    scale = np.sqrt(np.maximum(np.diagonal(covariance) if matrix else covariance, TINY))
    standing = apart / scale
    if matrix and np.abs(standing).max() < ODD_COLUMN_Z and len(apart) > 1:
        precision = np.linalg.pinv(covariance / scale / scale[:, None], hermitian=True)  # columns may be in any units
        standing = precision @ standing / np.sqrt(np.maximum(np.diagonal(precision), TINY))
    columns = np.argsort(-np.abs(standing), kind="stable")[:most]
    return tuple(Value(names[at], float(values[at]), standing=float(standing[at])) for at in columns)


def count_oddities(names: Sequence[str], row: Array, probabilities: Array, most: int) -> tuple[Value, ...]:
    """Return the words that are more frequent than in a component."""
    counts = np.asarray(row, dtype=float)
    total = max(float(counts.sum()), TINY)
    lift = np.log(np.maximum(counts / total, TINY) / np.maximum(probabilities, TINY))
    words = np.argsort(-counts * lift, kind="stable")[:most]
    return tuple(Value(names[at], float(counts[at]), standing=float(lift[at])) for at in words if counts[at] > 0.0)


def row_totals(X: Rows) -> Array:
    """Return the sum of the counts of each row, dense or sparse."""
    rows = X.tocsr() if hasattr(X, "tocsr") else X
    if hasattr(rows, "indptr") and hasattr(rows, "data"):
        data = np.asarray(rows.data, dtype=np.float64)
        return np.diff(np.concatenate([[0.0], np.cumsum(data)])[np.asarray(rows.indptr)])
    return np.asarray(rows, dtype=float).sum(axis=1)


def scores_per_size(scores: Array, sizes: Array | None) -> Array:
    """Return the scores by which rows are ranked: per word or symbol if rows have sizes, NaN for an empty row."""
    if sizes is None:
        return scores
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sizes > 0.0, scores / sizes, np.nan)


def interval_of(intervals: Array | None, at: int) -> tuple[float | None, float | None]:
    """Ends of one of some intervals."""
    return (None, None) if intervals is None else (finite_number(intervals[at, 0]), finite_number(intervals[at, 1]))


def matrix_of(
    title: str, names: Sequence[str], values: Array, often: Array, shown: NDArray[np.int64], component: int | None = None
) -> Matrix:
    """Describe the transitions between some of the states."""
    table = tuple(tuple(map(float, row)) for row in values[np.ix_(shown, shown)])
    return Matrix(title, tuple(names[at] for at in shown), table, tuple(map(float, often[shown])), component)


def curve_of(title: str, positions: Array, values: Array, along: str, what: str, component: int | None = None) -> Curve:
    """Describe a curve by few points: of many, the highest of each interval."""
    size = -(-len(values) // CURVE_POINTS)
    starts = np.arange(0, len(values), size)
    return Curve(
        title, tuple(map(float, np.asarray(positions)[starts])), tuple(map(float, np.maximum.reduceat(values, starts))),
        along, what, component,
    )  # fmt: skip


def stationary_distribution(transitions: Array) -> Array:
    """How often a chain is in each state in the long run."""
    k = len(transitions)
    equations = np.vstack([transitions.T - np.eye(k), np.ones(k)])
    found = np.maximum(np.linalg.lstsq(equations, np.append(np.zeros(k), 1.0), rcond=None)[0], 0.0)
    return np.asarray(found / max(float(found.sum()), TINY))
