"""The rows by which a mixture computes observed information: given ones, those of a reservoir, or rows drawn from the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

from headwater.core.batch import Batch
from headwater.core.plan import Plan
from headwater.core.statistics import Array
from headwater.core.values import AnyArray, Matrix, Rows
from headwater.diagnostics.intervals import tails
from headwater.diagnostics.observed_information import (
    SHARES,
    InformedRows,
    Scale,
    Widening,
    rows_wanted,
    stretched,
    widening,
)
from headwater.families.parameter_scores import ParameterScores

if TYPE_CHECKING:
    from headwater.estimators.mixture_answers import MixtureAnswers

METHODS = ("observed-information", "mean-field")


def find_widening(
    model: MixtureAnswers,
    method: str,
    X: Rows | None,
    wanted: int,
    scores: Callable[[Array], ParameterScores],
    options: Callable[[int], tuple[AnyArray, ...]] = lambda n: (),
) -> Widening | None:
    """Return by how much intervals are wider than those of the mean-field belief, or None if they are as wide.

    `wanted` is the number of parameters, and `scores` returns their gradients at rows. `options` returns what drawing so many
    rows takes beside the parameters.
    """
    if method not in METHODS:
        raise ValueError(f"method must be 'observed-information' or 'mean-field', got {method!r}")
    if method == "mean-field":
        if X is not None:
            raise ValueError("X goes with method='observed-information': mean-field intervals follow from what was learned")
        return None
    reading = model._read()
    if model._model.n_components == 1:
        return None
    batch = _drawn(model, wanted, options) if X is None else Batch(_complete(model._rows(X).X))
    shares = model._model.posterior(reading.parameters, batch, model._threads)
    _, statistics, count = model._proper_belief()
    own, others = model._weight_marginals()
    known = count * float(statistics.count.sum())
    rows = InformedRows(batch.row_weights, _known_shares(batch, shares), known, _share_of_start(reading.plan, known))
    weights = np.exp(reading.parameters.log_weights)
    return widening(rows, weights, max(float((own + others).min()) - known, 0.0), scores(batch.X))


def _share_of_start(plan: Plan, rows: float) -> float:
    """Share of the rows that a stream began with, if what it counted them as is never corrected; else 1."""
    if plan.algorithm.corrects or plan.half_life is not None:
        return 1.0
    return min(max(plan.warm_up_rows, 1) / max(rows, 1.0), 1.0)


def component_values(
    model: MixtureAnswers, level: float, wider: Widening | None, quantiles: Callable[[Array], Array], scale: Scale
) -> tuple[Array, Array]:
    """Return intervals of the weights (K, 2), and of values (K, m, 2), widened if they are to be.

    `quantiles` returns those of the belief about the values, at some probabilities along a last axis.
    """
    own, others = model._weight_marginals()
    if len(own) == 1:
        return np.ones((1, 2)), quantiles(tails(level))
    weights, values = betaincinv(own[:, None], others[:, None], tails(level)), quantiles(tails(level))
    if wider is None:
        return weights, values
    middle = quantiles(np.array([0.5]))[..., 0]
    return stretched(weights, betaincinv(own, others, 0.5), wider.weights, SHARES), stretched(
        values, middle, wider.values, scale
    )


def _complete(X: Matrix) -> Matrix:
    if not isinstance(X, np.ndarray):
        raise ValueError("X must hold rows without missing values")
    return X


def _drawn(model: MixtureAnswers, wanted: int, options: Callable[[int], tuple[AnyArray, ...]]) -> Batch:
    """Reservoir rows, if there are enough of them and nothing is missing; else rows of the model."""
    n = rows_wanted(wanted)
    kept = model._read().reservoir_rows(n)
    if kept is not None and isinstance(kept.batch.X, np.ndarray) and len(kept.batch) >= min(wanted, n):
        return kept.batch
    X, _ = model._model.sample(model._read().parameters, n, np.random.default_rng(0), *options(n))
    return Batch(np.ascontiguousarray(X))


def _known_shares(batch: Batch, shares: Array) -> Array:
    """Shares of the components, all or nothing in rows that have a label."""
    labels = batch.row_labels
    named = np.flatnonzero(labels >= 0)
    if len(named):
        shares = shares.copy()
        shares[named] = np.arange(shares.shape[1]) == labels[named, None]
    return shares
