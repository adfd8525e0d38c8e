"""Paper 000's recursions as printed, row by row and slowly: what the library's answers are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.core.statistics import Array
from papers import boem_learners as learners
from papers.boem_data import Truth, uniform_start

TINY = 1e-300  # in place of a zero under a logarithm


@dataclass(frozen=True)
class Streamed:
    """Where a recursion ended, and in which share of its divisions by h_c that was zero."""

    weights: Array
    probabilities: Array
    undefined: float = 0.0


def responsibilities(x: Array, weights: Array, probabilities: Array) -> Array:
    """Equation 1."""
    joint = np.log(np.maximum(weights, TINY)) + np.log(np.maximum(probabilities, TINY)) @ x
    shares = np.exp(joint - joint.max())
    return np.asarray(shares / shares.sum())


def bayesian(rows: Array, start: Array, alpha: float, beta_0: float, mode: bool = False) -> Streamed:
    """Equations 9 to 12; a division by h_c = 0 in (12) leaves the cluster as it is.

    The mode's recursion is the same with alpha_0 - n_c and beta_0 - n_a in place of alpha_0 and beta_0.
    """
    n_c, n_a = start.shape
    weights, probabilities = np.full(n_c, 1.0 / n_c), start.copy()
    alpha_0, counted = n_c * alpha - (n_c if mode else 0.0), np.full(n_c, beta_0 - (n_a if mode else 0.0))
    undefined = 0
    for t, x in enumerate(rows, start=1):
        xi = responsibilities(x, weights, probabilities)
        weights = weights + (xi - weights) / (alpha_0 + t)  # (9), (10)
        h = x.sum() * xi
        counted += h
        seen = h > 0.0
        undefined += n_c - int(seen.sum())
        eta = h[seen] / counted[seen]  # (11)
        probabilities[seen] += eta[:, None] * (x * xi[seen, None] / h[seen, None] - probabilities[seen])  # (12)
    return Streamed(weights, probabilities, undefined / (n_c * len(rows)))


def weighted(rows: Array, start: Array, length: float, rate: Callable[[int], float]) -> Streamed:
    """Equation 6 from the statistics of the start: equal weights, and so many words a document."""
    n_c = len(start)
    count, words = np.full(n_c, 1.0 / n_c), start * length / n_c
    for t, x in enumerate(rows, start=1):
        xi = responsibilities(x, count, words / words.sum(axis=1, keepdims=True))
        eta = rate(t)
        count = count + eta * (xi - count)
        words = words + eta * (xi[:, None] * x - words)
    return Streamed(count, words / words.sum(axis=1, keepdims=True))


def forgetting(rows: Array, start: Array, kappa: float, t0: float) -> Streamed:
    """Equations 4 and 5 as they stand: no start but for the first document's responsibilities, and sums over all past rows."""
    weights, probabilities = np.full(len(start), 1.0 / len(start)), start
    factors, shares = [], []
    for t in range(1, len(rows) + 1):
        factors.append(1.0 - 1.0 / ((t - 2.0) * kappa + t0))
        shares.append(responsibilities(rows[t - 1], weights, probabilities))
        kept = np.append(np.cumprod(factors[:0:-1])[::-1], 1.0)  # products of zeta_s over s > tau, for every tau
        weights = kept @ np.array(shares) / kept.sum()
        words = (kept[:, None] * np.array(shares)).T @ rows[:t]
        sums = words.sum(axis=1, keepdims=True)
        probabilities = np.divide(words, sums, out=np.full_like(words, 1.0 / rows.shape[1]), where=sums > 0.0)
    return Streamed(weights, probabilities)


# Beside the library


@dataclass(frozen=True)
class Case:
    name: str
    clusters: int
    columns: int
    documents: int
    length: int


SHORT = Case("short documents", 3, 6, 120, 30)
LONG = Case("documents as in the paper", 5, 1000, 150, 5000)
BETA = 5.0
FEW = 10


def agreement(case: Case) -> dict[str, Any]:
    """The largest difference between the recursions and the library in any weight or probability."""
    truth = Truth.drawn(case.clusters, case.columns, 7)
    rows = truth.sample(case.documents, case.length / 10.0, 7, case.length)
    start = uniform_start(case.clusters, case.columns, np.random.default_rng(7))
    n_a = case.columns
    recursions: dict[str, tuple[Streamed, Any]] = {
        learners.LITERAL.name: (bayesian(rows, start, 1.0, n_a), learners.bayesian(start, 1.0)),
        learners.VANISHING.name: (bayesian(rows, start, 1.0, n_a * learners.FLAT), learners.bayesian(start, learners.FLAT)),
        f"BOEM, mode, beta = {BETA:g}": (bayesian(rows, start, 1.0, n_a * BETA, True), learners.bayesian(start, BETA, True)),
        learners.POWER.name: (
            weighted(rows, start, case.length, lambda t: (t + learners.T0) ** -learners.KAPPA),
            learners.power(start, case.length),
        ),
        learners.HARMONIC.name: (
            weighted(rows, start, case.length, lambda t: 1.0 / (learners.KAPPA * t + learners.T0)),
            learners.harmonic(start, case.length),
        ),
    }
    differences = {name: difference(ended, model.partial_fit(rows)) for name, (ended, model) in recursions.items()}
    if case is SHORT:  # a few rows only: the first leaves all clusters the same, and rounding is all that sets them apart
        ended = forgetting(rows[:FEW], start, learners.KAPPA, learners.T0)
        differences[learners.FACTOR.name] = difference(ended, learners.forgetting(start).partial_fit(rows[:FEW]))
    undefined = {name: ended.undefined for name, (ended, _) in recursions.items() if name.startswith("BOEM")}
    return {**vars(case), "few": FEW, "differences": differences, "undefined": undefined}


def difference(ended: Streamed, model: Any) -> float:
    weights = np.abs(ended.weights - model.weights_).max()
    return float(max(weights, np.abs(ended.probabilities - model.probabilities_).max()))
