"""What would correct it: intervals widened by the information that is missing, since nobody says which component a row is of.

Complete rows, whose component is known, would tell of the parameters of component k what c_k c_k' sums up to, where c_k(x) is
the gradient of its log-density. A row as it is tells s s', where s = (r_1 c_1, ..., r_K c_K) is the gradient of the mixture's
log-density (Louis, 1982). A belief that counts rows has the width of the first; the second says what it should be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logit

from headwater.core.statistics import Array
from papers.calibration_ranks import LEVELS, Observed, Way, ambiguity, gathered, matched, placed, quantiles
from papers.calibration_subjects import Drawn, Gaussians

SCALES = {"weights": (logit, expit), "means": (np.asarray, np.asarray), "variances": (np.log, np.exp)}


def gradients(rows: Array, mean: Array, covariance: Array) -> Array:
    """Gradients (n, 1 + d + d (d + 1) / 2) of a Gaussian's log-density: of its weight's logarithm, mean and covariance."""
    precision = np.linalg.inv(covariance)
    pull = (rows - mean) @ precision
    below, beside = np.tril_indices(len(mean))
    twice = np.where(below == beside, 0.5, 1.0)  # what is off the diagonal stands there twice
    turn = (pull[:, :, None] * pull[:, None] - precision)[:, below, beside] * twice
    return np.hstack([np.ones((len(rows), 1)), pull, turn])


def prior_information(covariance: Array, mean_precision: float, dof: float) -> Array:
    """What a prior that is worth so many rows tells of a component: as many rows as its mean and its covariance have."""
    precision = np.linalg.inv(covariance)
    width = len(precision)
    below, beside = np.tril_indices(width)
    units = np.zeros((len(below), width, width))
    units[np.arange(len(below)), below, beside] = units[np.arange(len(below)), beside, below] = 1.0
    turned = precision @ units
    found = np.zeros((1 + width + len(below),) * 2)
    found[1 : 1 + width, 1 : 1 + width] = mean_precision * precision
    found[1 + width :, 1 + width :] = 0.5 * dof * np.einsum("aij,bji->ab", turned, turned)
    return found


def missing_information(model: Any, rows: Array) -> dict[str, Array]:
    """By what factor (K, columns) each interval is too narrow, on the scale of logarithms for weights and variances.

    The model has full covariances and was given its prior.
    """
    shares, weights, means, covariances = model.predict_proba(rows), model.weights_, model.means_, model.covariances_
    n, (k, width) = len(rows), means.shape
    own = [gradients(rows, means[at], covariances[at]) for at in range(k)]
    size = own[0].shape[1]
    places = np.arange(k) * size
    seen = np.hstack([shares[:, [at]] * own[at] for at in range(k)])
    seen[:, places] -= weights
    complete, prior = np.zeros((2, k * size, k * size))
    for at in range(k):
        part = slice(at * size, (at + 1) * size)
        complete[part, part] = (shares[:, [at]] * own[at]).T @ own[at]
        prior[part, part] = prior_information(covariances[at], model.mean_precision_prior, model.degrees_of_freedom_prior)
    complete[places] = complete[:, places] = 0.0
    spread = np.diag(weights) - np.outer(weights, weights)
    at_weights = np.ix_(places, places)
    complete[at_weights] = n * spread
    prior[at_weights] = k * model.weight_concentration_prior * spread + n  # weights sum to one, so this direction is known
    variances = [np.linalg.inv(one + prior) for one in (seen.T @ seen, complete)]
    diagonal = [1 + width + at * (at + 3) // 2 for at in range(width)]
    ratios = {"weights": [np.diag(spread @ one[at_weights] @ spread)[:, None] for one in variances]}
    by_component = [np.diag(one).reshape(k, size) for one in variances]
    for name, columns in (("means", [*range(1, 1 + width)]), ("variances", diagonal)):
        ratios[name] = [one[:, columns] for one in by_component]
    with np.errstate(invalid="ignore"):  # of one component all the weight is known
        return {name: np.sqrt(np.fmax(one / other, 1.0)) for name, (one, other) in ratios.items()}


def widened(beliefs: dict[str, Array], factors: dict[str, Array]) -> dict[str, Array]:
    """Quantiles (19, K, columns) that are so many times as far from the median."""
    found = {}
    for name, among in beliefs.items():
        there, back = SCALES[name]
        scaled = there(among)
        median = scaled[len(LEVELS) - 1]
        found[name] = back(median + factors[name] * (scaled - median))
    return found


def observe_widened(subject: Gaussians, way: Way, drawn: Sequence[Drawn]) -> tuple[Observed, Observed]:
    """Ranks of the truth in beliefs as they are, and in the same widened by what is missing."""
    plain, stretched, shared = [], [], []
    for seed, one in enumerate(drawn):
        model = way.learned(subject, one, seed)
        order = matched(one, model)
        as_is = quantiles(model)
        wider = widened(as_is, missing_information(model, one.rows[0]))
        for found, beliefs in ((plain, as_is), (stretched, wider)):
            found.append({name: placed(truth, beliefs[name][:, order]) for name, truth in one.truth.items()})
        shared.append(ambiguity(model, one.rows[0])[order])
    return gathered(plain, np.stack(shared)), gathered(stretched, np.stack(shared))
