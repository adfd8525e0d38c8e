"""Laws for mixtures: rows are drawn from the density that scores them, and a mode is where the posterior density is highest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headwater.checks.support import Law, fit, fit_stream, make_batch
from headwater.core.batch import Batch
from headwater.core.statistics import Array, Statistics
from headwater.models.mixture import Mixture, mixture_of

if TYPE_CHECKING:
    from headwater.core.contracts import Model
    from headwater.estimators.base import StreamingEstimator
    from headwater.estimators.mixture import MixtureEstimator
    from headwater.families.components import ComponentStatistics
    from headwater.models.mixture_records import MixtureParameters

DRAWN_ROWS = 20_000
BLENDS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4)  # parts of a component that are the next one's, in another density
WIDEST_RATIO = 0.7  # standard deviation of a ratio of densities whose mean can be told
MOST_DEVIATIONS = 5.0  # of a mean: chance exceeds them once in a million
DIRECTIONS, STEPS = 12, (0.3, 0.1, 0.03)  # in which rows are left out or counted twice, and the part of them
ROUNDING = 1e-9  # of an objective
MODE_ROWS = 60  # so few that a prior, and the way from a mean to a mode, show


def rows_are_drawn_from_the_density_that_scores_them(estimator: MixtureEstimator, rows: Array) -> None:
    """`sample` draws from what `score_samples` scores.

    For rows that are drawn from a density p, the mean of q / p is one, whatever the density q. Here it is that of components
    which are a little of the next one each. And components are drawn as often as `predict_proba` gives them to rows.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import rows_are_drawn_from_the_density_that_scores_them
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = GaussianMixture(2, algorithm="online-vb", warm_up=60, random_state=0)
    >>> rows_are_drawn_from_the_density_that_scores_them(model, rows)
    """
    fit(estimator, rows)
    X, components = estimator.sample(DRAWN_ROWS)
    scores, reading = estimator.score_samples(X), estimator._read()
    plan, stream = reading.plan, reading.stream
    model, batch = mixture_of(stream), Batch(estimator._checked(X))
    k, name = model.n_components, plan.algorithm.report
    ring = np.roll(np.eye(k), 1, axis=0) if k > 1 else np.zeros((1, 1))
    for blend in BLENDS:
        others = model.recombine(stream.statistics, (1.0 - blend) * np.eye(k) + blend * ring)
        parameters = model.readout(name, stream.base.prior, others, plan.count(stream.progress))
        ratios = np.exp(model.log_likelihood(parameters, batch) - scores)
        if ratios.std() < WIDEST_RATIO:
            break
    deviations = abs(ratios.mean() - 1.0) * np.sqrt(DRAWN_ROWS) / max(ratios.std(), 1e-12)
    assert deviations < MOST_DEVIATIONS, f"rows are not drawn from the density: a ratio of densities is {ratios.mean():.4f}"
    gaps = estimator.predict_proba(X) - (components[:, None] == np.arange(k))
    far = np.abs(gaps.mean(axis=0)) * np.sqrt(DRAWN_ROWS) / np.maximum(gaps.std(axis=0), 1e-12)
    assert far[gaps.std(axis=0) > 1e-6].max(initial=0.0) < MOST_DEVIATIONS, "components are not drawn with their rows"


def modes_are_the_best_parameters(estimator: MixtureEstimator, rows: Array) -> None:
    """No other parameters explain rows and prior better than the mode: not those of the same rows, weighed otherwise.

    Rows with gaps are left out: what is expected of a gap depends on the parameters that it is expected at. So does what is
    expected of other hidden values, which the columns of a table may turn out to have: then there is nothing to check.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import modes_are_the_best_parameters
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> modes_are_the_best_parameters(GaussianMixture(2, algorithm="online-vb", warm_up=60, random_state=0), rows)
    """
    _, stream = fit_stream(estimator, rows)
    if mixture_of(stream).family.has_hidden_values:
        return
    complete = rows[~np.isnan(rows).any(axis=1)] if rows.dtype.kind == "f" else rows
    model, prior, batch = mixture_of(stream), stream.base.prior, make_batch(estimator, complete[:MODE_ROWS])
    shares = model.posterior(stream.parameters, batch)
    totals = _totals(model, stream.parameters, batch, shares)

    def explained(statistics: Statistics) -> float:
        parameters = model.readout("mode", prior, statistics.scaled(1.0 / len(batch)), float(len(batch)))
        densities = model.family.log_densities(parameters.components, batch.X)
        score = float(np.sum(shares * (densities + parameters.log_weights)))
        weights = float(np.sum((prior.concentration - 1.0) * parameters.log_weights))
        return score + weights + float(model.family.log_prior(prior.components, parameters.components))

    best, rng = explained(totals), np.random.default_rng(0)
    for _ in range(DIRECTIONS):
        some = _totals(model, stream.parameters, batch, shares * rng.random((len(batch), 1)))
        for step in STEPS:
            for sign in (1.0, -1.0):
                other = explained(totals + some.scaled(sign * step))
                assert other <= best + ROUNDING * abs(best), f"a mode is none: {other:.9g} is more than {best:.9g}"


def _totals(model: Mixture, parameters: MixtureParameters, batch: Batch, shares: Array) -> ComponentStatistics:
    """Statistics of rows whose responsibilities, times their weights, are given."""
    return model.family.collect(parameters.components, batch.X, np.ascontiguousarray(shares))


def readouts(model: Mixture) -> set[str]:
    """Return the readouts that some algorithm learns a mixture by."""
    return {readout for _, readout in model.ways}


def density_laws(estimator: StreamingEstimator, model: Model) -> Iterator[Law]:
    """Yield those of the two that apply: `sample` may ask for inputs, scores may be bounds, a family without a mean keeps no
    beliefs, and hidden values of rows are expected at other parameters than the mode.
    """
    if isinstance(model, Mixture) and not (estimator._traits.target_columns or estimator._traits.scores_bound):
        yield rows_are_drawn_from_the_density_that_scores_them
    if isinstance(model, Mixture) and {"mode", "mean"} <= readouts(model) and not model.family.has_hidden_values:
        yield modes_are_the_best_parameters
