"""How estimators describe themselves: which columns tell most, names, intervals of beliefs; nothing of any one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from headwater.core.statistics import Array
from headwater.diagnostics.description import Component, Curve, Description, Matrix, Value

MOST_SYMBOLS = 24  # of a matrix that is still read
MOST_MATRICES = 8
MOST_POINTS = 256  # of a curve
RELEVANCE = 0.6  # how much of a word's rank is its probability; the rest is how much more probable than elsewhere it is
TINY = 1e-300
FAR = 2.5  # standard deviations of a column that is odd by itself


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


def number(value: Any) -> float | None:
    """A float, or None of what is not finite."""
    return float(value) if np.isfinite(value) else None


def column_names(model: Any, width: int) -> list[str]:
    """Names of the columns, made up where they have none, as the last words of an open vocabulary may."""
    known = [str(name) for name in getattr(model, "feature_names_in_", ())][:width]
    return known + [f"{model._column_word}{place}" for place in range(len(known), width)]


def symbol_names(model: Any, width: int) -> list[str]:
    """Names of symbols, if the stream told them."""
    schema = getattr(model, "schema_", None) or {}
    known = [str(name) for name in schema.get("symbols", None) or ()][:width]
    return known + [str(place) for place in range(len(known), width)]


def heaviest(weights: Array, most: int) -> NDArray[np.int64]:
    """The heaviest components, in falling order."""
    return np.argsort(-np.asarray(weights), kind="stable")[:most]


def hidden(weights: Array, shown: NDArray[np.int64]) -> dict[str, Any]:
    """What a description says of components that it leaves out."""
    rest = max(0.0, float(np.sum(weights) - np.sum(np.asarray(weights)[shown])))
    number = len(weights) - len(shown)
    return {"left_out": number, "weight_left_out": rest if number else 0.0}


def telling_columns(weights: Array, means: Array, variances: Array, most: int) -> tuple[NDArray[np.int64], Array, Array]:
    """Columns in which components differ most, in their order; with mean and standard deviation of all rows by column."""
    share = np.asarray(weights) / np.sum(weights)
    middle = share @ means
    spread = np.sqrt(np.maximum(share @ (variances + (means - middle) ** 2), TINY))
    # Not squared: a column that but a few rows make out would come first.
    apart = share @ np.abs(means - middle) / spread
    return np.sort(np.argsort(-apart, kind="stable")[:most]), middle, spread


def telling_words(probabilities: Array, overall: Array, most: int) -> NDArray[np.int64]:
    """Words that a component is known by, which are probable, and more so than elsewhere; the most probable first."""
    frequent = np.argsort(-probabilities, kind="stable")[: max(50, 10 * most)]
    lift = np.log(np.maximum(probabilities[frequent], TINY) / np.maximum(overall[frequent], TINY))
    chosen = np.argsort(-relevance(probabilities[frequent], lift), kind="stable")[:most]
    return frequent[np.sort(chosen)]


def relevance(probability: Any, standing: Any) -> Any:
    """How much a word tells: it is probable, and more so than elsewhere, by the logarithm of how much more."""
    return RELEVANCE * np.log(np.maximum(probability, TINY)) + (1.0 - RELEVANCE) * standing


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
    mean_intervals: Any = None,
) -> dict[str, Any]:
    """Describe components that have a mean and a variance in each column; `mean_intervals` is asked for some columns."""
    shown = heaviest(weights, limits.components)
    columns, middle, spread = telling_columns(weights, means, variances, limits.values)
    intervals = None if mean_intervals is None else mean_intervals(columns)

    def value(k: int, at: int, column: int) -> Value:
        low, high = (None, None) if intervals is None else map(number, intervals[k, at])
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
        "values_left_out": means.shape[1] - len(columns), **hidden(weights, shown),
    }  # fmt: skip


def word_components(
    names: Sequence[str],
    weights: Array,
    probabilities: Array,
    limits: Limits,
    concentration: Array | None = None,
    weight_intervals: Array | None = None,
) -> dict[str, Any]:
    """Describe components that have a probability of each word; `concentration` is the Dirichlet belief about them."""
    shown = heaviest(weights, limits.components)
    overall = np.asarray(weights) @ probabilities / max(float(np.sum(weights)), TINY)
    components = []
    for k in shown:
        words = telling_words(probabilities[k], overall, limits.values)
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
    return {"value": "probability", "components": tuple(components), "values_left_out": left, **hidden(weights, shown)}


def step_components(
    names: Sequence[str],
    weights: Array,
    probabilities: Array,
    concentration: Array,
    limits: Limits,
    weight_intervals: Array | None = None,
) -> dict[str, Any]:
    """Describe chains by those first symbols and steps that tell most, the most telling first.

    Columns are the first symbols, and then the steps from each symbol; the belief counts how often each is taken.
    """
    size = len(names)
    shown = heaviest(weights, limits.components)
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
    return {"value": "probability", "components": tuple(components), "values_left_out": left, **hidden(weights, shown)}


@dataclass(frozen=True)
class Gaussians:
    """Gaussians over the columns, as pictures want them."""

    weights_: Array
    means_: Array
    covariances_: Array
    feature_names_in_: Any
    covariance_type: str = "full"


def gaussian_oddities(names: Sequence[str], row: Any, mean: Array, covariance: Array, most: int) -> tuple[Value, ...]:
    """Columns that are far from the mean of a component; if none is, those that do not fit the other columns."""
    values = np.asarray(row, dtype=float)
    apart = values - mean
    matrix = np.ndim(covariance) == 2
    scale = np.sqrt(np.maximum(np.diagonal(covariance) if matrix else covariance, TINY))
    standing = apart / scale
    if matrix and np.abs(standing).max() < FAR and len(apart) > 1:
        precision = np.linalg.pinv(covariance / scale / scale[:, None], hermitian=True)  # columns may be in any units
        standing = precision @ standing / np.sqrt(np.maximum(np.diagonal(precision), TINY))
    columns = np.argsort(-np.abs(standing), kind="stable")[:most]
    return tuple(Value(names[at], float(values[at]), standing=float(standing[at])) for at in columns)


def count_oddities(names: Sequence[str], row: Any, probabilities: Array, most: int) -> tuple[Value, ...]:
    """Words that are there more often than a component has them."""
    counts = np.asarray(row, dtype=float)
    total = max(float(counts.sum()), TINY)
    lift = np.log(np.maximum(counts / total, TINY) / np.maximum(probabilities, TINY))
    words = np.argsort(-counts * lift, kind="stable")[:most]
    return tuple(Value(names[at], float(counts[at]), standing=float(lift[at])) for at in words if counts[at] > 0.0)


def row_totals(X: Any) -> Array:
    """Words of each document: sums of counts, dense or sparse."""
    X = X.tocsr() if hasattr(X, "tocsr") else X
    if hasattr(X, "indptr"):
        return np.diff(np.concatenate([[0.0], np.cumsum(X.data, dtype=float)])[np.asarray(X.indptr)])
    return np.asarray(X, dtype=float).sum(axis=1)


def per_size(scores: Array, sizes: Array | None) -> Array:
    """Scores by which rows are ranked: of one word or symbol, and NaN of what has none."""
    if sizes is None:
        return scores
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sizes > 0.0, scores / sizes, np.nan)


def interval_of(intervals: Array | None, at: int) -> tuple[float | None, float | None]:
    """Ends of one of some intervals."""
    return (None, None) if intervals is None else (number(intervals[at, 0]), number(intervals[at, 1]))


def matrix_of(
    title: str, names: Sequence[str], values: Array, often: Array, shown: NDArray[np.int64], component: int | None = None
) -> Matrix:
    """Describe passages between some of the states."""
    table = tuple(tuple(map(float, row)) for row in values[np.ix_(shown, shown)])
    return Matrix(title, tuple(names[at] for at in shown), table, tuple(map(float, often[shown])), component)


def curve_of(title: str, positions: Array, values: Array, along: str, what: str, component: int | None = None) -> Curve:
    """Describe a curve by few points: of many, the highest of each stretch."""
    size = -(-len(values) // MOST_POINTS)
    starts = np.arange(0, len(values), size)
    return Curve(
        title, tuple(map(float, np.asarray(positions)[starts])), tuple(map(float, np.maximum.reduceat(values, starts))),
        along, what, component,
    )  # fmt: skip


def stationary(transitions: Array) -> Array:
    """How often a chain is in each state in the long run."""
    k = len(transitions)
    equations = np.vstack([transitions.T - np.eye(k), np.ones(k)])
    found = np.maximum(np.linalg.lstsq(equations, np.append(np.zeros(k), 1.0), rcond=None)[0], 0.0)
    return np.asarray(found / max(float(found.sum()), TINY))


def notes_of(model: Any, found: Description) -> tuple[str, ...]:
    """Sentences about a state that a reader should know."""
    runtime, notes = model._runtime, []
    if runtime.warming_up:
        waiting, wanted = runtime.waiting_rows, model._learner.warm_up_rows
        until = f"{waiting:,} of about {wanted:,} rows"
        if waiting >= wanted and runtime.waiting_labels:
            until = f"{waiting:,} rows so far, since labels have named only some of the {found.component}s"
        notes.append(
            f"The warm-up is not over ({until}): what is said here comes from a start on these rows, and may change."
        )  # fmt: skip
    held = runtime.unlearned_rows
    if held:
        wait = "s, which wait to be learned and are" if held != 1 else ", which waits to be learned and is"
        notes.append(f"The model holds {held:,} raw row{wait} saved with it.")
    notes.extend(finding.sentence for finding in model.health_.findings)
    race = getattr(model, "race_", None)
    if race is not None and race.rivals:
        others = ", ".join(str(one.n_components) for one in race.rivals)
        how = f"{race.leader} {'won' if race.over else 'leads'} a race of {others}."
        if len(race.rivals) == 1:
            how = f"of {runtime.rows:,} rows there are too few to compare several, so that it is {race.leader}."
        notes.append(f"The number of components was not given: {how}")
    growth = getattr(model, "growth_", None)
    if growth is not None:
        notes.append(f"The number of components was not given: the model {growth.sentence}")
    report = getattr(model, "merge_report_", None)
    if report is not None:
        notes.extend(str(report).splitlines())
    spread = getattr(model, "distributed_report_", None)
    if spread is not None:
        notes.append(spread.sentence)
    if getattr(model, "converged_", True) is False:
        notes.append(f"The last fit had not converged after {model.n_iter_} passes.")
    return tuple(dict.fromkeys(notes))
