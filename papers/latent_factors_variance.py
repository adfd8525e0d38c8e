"""Proposition 1 of paper 001: how much the m draws of an E-step add to the variance of what is learned.

Two cases. The weight of a mixture of two known normal distributions, simulated here with many copies side by side; and a whole
mixture of two multinomials, learned by the library. The information matrices of formula 4 are exact in both: a sum over a
fine grid, and over all rows that there can be.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm

import headwater as hw
from headwater.core.statistics import Array
from pages.results import Figures
from papers.latent_factors_scale import Scale

NUMBERS: tuple[int | None, ...] = (1, 2, 5, 20, None)  # None: an exact E-step
DECAY = 0.6
WEIGHT, APART = 0.3, 1.5  # the true weight, and the distance of the two means in standard deviations
PROBABILITIES = np.array([[0.6, 0.3, 0.1], [0.15, 0.3, 0.55]])
WORDS = 5  # of each row of counts
BATCH, BATCH_OFFSET = 16, 30
OFFSET = 1000  # a first step of 1 would leave a weight of 0 or 1, for good


def formula(complete: Array, observed: Array, number: int | None) -> Array:
    """Formula 4: the asymptotic covariance of (theta_n - theta) / sqrt(gamma_n)."""
    first, whole = np.linalg.inv(complete), np.linalg.inv(observed)
    return np.asarray((first + (whole - first) / number if number else first) / 2.0)


def at_hand(complete: Array, observed: Array, number: int | None, steps: int, offset: int) -> Array:
    """The same after so many steps, from the truth: the recursion of proposition 1, made linear, has not forgotten all."""
    first = np.linalg.inv(complete)
    noise = first @ (observed + (complete - observed) / number if number else observed) @ first
    covariance, step = np.zeros_like(complete), 1.0
    for turn in range(1, steps + 1):
        step = (turn + offset) ** -DECAY
        kept = np.eye(len(complete)) - step * first @ observed
        covariance = kept @ covariance @ kept.T + step**2 * noise
    return covariance / step


# A weight


def weight_information() -> tuple[float, float]:
    """Complete and observed Fisher information of the weight."""
    y = np.linspace(-12.0, 12.0 + APART, 200_001)
    one, other = norm.pdf(y, APART), norm.pdf(y)
    density = WEIGHT * one + (1.0 - WEIGHT) * other
    observed = np.trapezoid((one - other) ** 2 / density, y)
    return 1.0 / (WEIGHT * (1.0 - WEIGHT)), float(observed)


def weight_variance(number: int | None, steps: int, copies: int, seed: int = 0) -> float:
    """Variance over the copies of (weight - truth) / sqrt(gamma_n) after so many rows, from the truth."""
    rng = np.random.default_rng(np.random.SeedSequence((31, seed)))
    weight = np.full(copies, WEIGHT)
    for step in range(1, steps + 1):
        y = rng.normal(APART * (rng.random(copies) < WEIGHT))
        odds = np.exp(APART * (y - APART / 2.0)) * weight / (1.0 - weight)
        shares = odds / (1.0 + odds)
        expected = shares if number is None else rng.binomial(number, shares) / number
        weight += (step + OFFSET) ** -DECAY * (expected - weight)
    return float(np.mean((weight - WEIGHT) ** 2)) / (steps + OFFSET) ** -DECAY


# A mixture, by the library


def all_rows() -> Array:
    width = PROBABILITIES.shape[1]
    return np.array([row for row in product(range(WORDS + 1), repeat=width) if sum(row) == WORDS], dtype=float)


def mixture_information() -> tuple[Array, Array]:
    """Information about the weight of the first component and all free probabilities (the last of each follows)."""
    rows, width = all_rows(), PROBABILITIES.shape[1]
    weights = np.array([WEIGHT, 1.0 - WEIGHT])
    ways = gammaln(WORDS + 1.0) - gammaln(rows + 1.0).sum(axis=1)
    joint = weights * np.exp(ways[:, None] + rows @ np.log(PROBABILITIES).T)
    scores = np.zeros((2, len(rows), 1 + 2 * (width - 1)))
    for k in range(2):
        scores[k, :, 0] = 1.0 / WEIGHT if k == 0 else -1.0 / (1.0 - WEIGHT)
        at = slice(1 + k * (width - 1), 1 + (k + 1) * (width - 1))
        scores[k, :, at] = rows[:, :-1] / PROBABILITIES[k, :-1] - rows[:, -1:] / PROBABILITIES[k, -1]
    density = joint.sum(axis=1)
    mean = np.einsum("rk,krp->rp", joint / density[:, None], scores)
    complete = np.einsum("rk,krp,krq->pq", joint, scores, scores)
    return complete, np.einsum("r,rp,rq->pq", density, mean, mean)


def mixture_errors(number: int | None, rows: int, copies: int) -> Array:
    """Errors (copies, parameters) over sqrt(gamma), times sqrt(rows of a batch), of the library's estimates."""
    settings: dict[str, Any] = {"decay": DECAY, "offset": float(BATCH_OFFSET), "batch_size": BATCH, "average": False}
    exact = hw.OnlineEM(**settings)
    algorithm = exact if number is None else hw.SimulatedEM(n_samples=number, rao_blackwell=False, **settings)
    truth = np.concatenate([[WEIGHT], PROBABILITIES[:, :-1].ravel()])
    errors = []
    for seed in range(copies):
        rng = np.random.default_rng(np.random.SeedSequence((32, seed)))
        chosen = (rng.random(rows) >= WEIGHT).astype(int)
        model = hw.MultinomialMixture(
            2, algorithm=algorithm, weights_init=[WEIGHT, 1.0 - WEIGHT], probabilities_init=PROBABILITIES, warm_up=BATCH,
            probability_concentration_prior=1.0, random_state=seed, n_threads=1,
        )  # fmt: skip
        model.partial_fit(rng.multinomial(WORDS, PROBABILITIES[chosen]).astype(float))
        errors.append(np.concatenate([[model.weights_[0]], model.probabilities_[:, :-1].ravel()]) - truth)
    return np.array(errors) * np.sqrt(BATCH * (rows / BATCH + BATCH_OFFSET) ** DECAY)


def variance_set(number: int | None, scale: Scale) -> Figures:
    """What formula 4 says, and what was measured, of the weight alone and summed over the parameters of the mixture."""
    complete, observed = weight_information()
    weight, mixture = (np.array([[complete]]), np.array([[observed]])), mixture_information()
    folds = scale.library_rows // BATCH
    errors = mixture_errors(number, scale.library_rows, scale.library_copies)
    return {
        "draws": number, "formula": float(formula(*weight, number)[0, 0]),
        "finite": float(at_hand(*weight, number, scale.steps, OFFSET)[0, 0]),
        "measured": weight_variance(number, scale.steps, scale.copies),
        "copies": scale.copies, "steps": scale.steps, "missing": 1.0 - observed / complete,
        "mixture_formula": float(np.trace(formula(*mixture, number))),
        "mixture_finite": float(np.trace(at_hand(*mixture, number, folds, BATCH_OFFSET))),
        "mixture_measured": float((errors**2).mean(axis=0).sum()),
        "library_copies": scale.library_copies, "library_rows": scale.library_rows, "batch": BATCH,
        "parameters": len(mixture[0]), "weight": WEIGHT, "apart": APART, "words": WORDS,
        "offset": OFFSET, "decay": DECAY, "batch_offset": BATCH_OFFSET,
    }  # fmt: skip
