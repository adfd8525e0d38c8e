"""compare_models: components of two mixtures matched, and what has changed from one to the other."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from headwater.core.statistics import Array
from headwater.diagnostics.comparison import Change, Comparison, ComponentChange
from headwater.diagnostics.component_description import column_names
from headwater.estimators.component_matching import match_components
from headwater.estimators.component_names import shown_names
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.gaussian_mixture import GaussianMixture
from headwater.estimators.merge import check_columns
from headwater.estimators.mixture import MixtureEstimator

MODEL_ROWS = 20_000  # drawn from each model, for the divergence of the whole
Moments: TypeAlias = tuple[list[str], Array, Array, Array]


def compare_models(before: MixtureEstimator, after: MixtureEstimator) -> Comparison:
    """Compare two mixtures of the same columns: last week's model and this week's, or models of two places.

    Components are matched so that the sum of their divergences is least. A component whose density is more than two nats a row
    from its counterpart, about two standard deviations of one column, is lost, and the counterpart is new. Where a column has
    moved in most components, as when a sensor drifts or a unit changes, components are matched by the other columns, and the
    column is named. Standard errors are those of two samples of independent rows.

    Parameters
    ----------
    before, after : GaussianMixture, MixedMixture, CategoricalMixture, BernoulliMixture or PoissonMixture
        Two models of one class, with the same columns. Their numbers of components may differ.

    Returns
    -------
    comparison : Comparison
        What has changed; `print` shows it as a table, `to_dict()` gives it as data.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> def week(weight, mean):
    ...     second = rng.random((2000, 1)) < weight
    ...     return hw.GaussianMixture(2, random_state=0).fit(rng.normal(size=(2000, 1)) + mean * second)
    >>> found = hw.compare_models(week(0.3, 6.0), week(0.5, 7.0))
    >>> moved = found.components[1]
    >>> round(moved.weight.before, 1), round(moved.weight.after, 1), round(moved.changes[0].after)
    (0.3, 0.5, 7)
    """
    kinds = FamilyMixture | GaussianMixture
    for model in (before, after):
        if not isinstance(model, kinds):
            raise TypeError(f"compare_models takes mixtures of rows of a table, got {type(model).__name__}")
        check_is_fitted(model)
    if type(before) is not type(after):
        raise ValueError(f"models must be of one class, got {type(before).__name__} and {type(after).__name__}")
    if before.n_features_in_ != after.n_features_in_:
        raise ValueError(f"models must have one width, got {before.n_features_in_} and {after.n_features_in_} columns")
    check_columns([before, after])
    first, second = before._aligned_models([before, after])
    matching = match_components(first, second)
    pairs, one, two = matching.pairs, _moments(first), _moments(second)
    components = tuple(_compare(first, second, one, two, k, j, float(matching.apart[k, j])) for k, j in pairs)
    columns = column_names(first, first.n_features_in_)
    names = tuple(tuple(shown_names(model) or ()) for model in (first, second))
    forth, back = _whole(first, second), _whole(second, first)
    return Comparison(
        components,
        tuple(sorted(set(range(len(first.weights_))) - {k for k, _ in pairs})),
        tuple(sorted(set(range(len(second.weights_))) - {j for _, j in pairs})),
        *(forth[0], back[0], forth[1], back[1]),
        names[0],
        names[1],
        tuple(columns[column] for column in matching.hidden),
    )


def _moments(model: MixtureEstimator) -> Moments:
    """Names of the columns, mean and variance (K, d) in each component, and rows (K,) behind it."""
    names, means, variances = model._describer.moments()
    return names, means, variances, np.maximum(model._rows_behind(), 1.0)


def _compare(
    first: MixtureEstimator, second: MixtureEstimator, one: Moments, two: Moments, k: int, j: int, apart: float
) -> ComponentChange:
    names, means, variances, rows = one
    _, other_means, other_variances, other_rows = two
    error = np.sqrt(variances[k] / rows[k] + other_variances[j] / other_rows[j])
    moved = (other_means[j] - means[k]) / np.maximum(error, 1e-300)
    order = np.argsort(-np.abs(moved), kind="stable")
    changes = tuple(Change(names[at], float(means[k, at]), float(other_means[j, at]), float(moved[at])) for at in order)
    shares = float(first.weights_[k]), float(second.weights_[j])
    spread = sum(
        share * (1.0 - share) / max(model.n_samples_seen_, 1) for share, model in zip(shares, (first, second), strict=True)
    )
    weight = Change("weight", *shares, (shares[1] - shares[0]) / max(spread, 1e-300) ** 0.5)
    return ComponentChange(k, j, weight, apart, changes)


def _whole(own: MixtureEstimator, other: MixtureEstimator) -> tuple[float, float]:
    """The divergence of another model from this one in nats a row, and its standard error."""
    rng = np.random.default_rng(1)
    weights = own.weights_ / own.weights_.sum()
    parameters, family = own._read().parameters, own._model.family
    rows = family.sample(parameters.components, rng.choice(len(weights), size=MODEL_ROWS, p=weights), rng)
    apart = _log_density(own, rows) - _log_density(other, rows)
    return float(apart.mean()), float(apart.std() / MODEL_ROWS**0.5)


def _log_density(model: MixtureEstimator, rows: Array) -> Array:
    parameters = model._read().parameters
    joint = model._model.family.log_densities(parameters.components, rows) + parameters.log_weights
    return np.asarray(np.logaddexp.reduce(joint, axis=1))
