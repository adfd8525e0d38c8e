"""Paper 003's update as it is printed, for comparison with the library's: equations 5 to 9, and the moments of equation 3.

Corrected is only what cannot be meant: the terms of the mixture in equation 6 weigh a_j c_j, normalised, and the moment in
equations 8 and 9 is lambda mu^2. Every array may have axes in front, one entry per run; the last axis (before those of a
matrix) is the component.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from headwater.core.statistics import Array
from papers.moment_matching_data import Truth, mixture_score

OFFSETS = (0.0, 10.0, 100.0)
COMPONENTS = 3


# One column


@dataclass(frozen=True)
class NormalGammas:
    """Dirichlet a; mean ~ N(alpha, 1 / (kappa lambda)), precision lambda ~ Gamma(beta, rate gamma), per component."""

    a: Array
    alpha: Array
    kappa: Array
    beta: Array
    gamma: Array

    def estimate(self, run: int) -> tuple[Array, Array, Array]:
        """Weights, means (K, 1) and covariances (K, 1, 1): equation 9's E of the posterior, with 1 / E[lambda]."""
        variances = self.gamma[run] / self.beta[run]
        return self.a[run] / self.a[run].sum(), self.alpha[run][:, None], variances[:, None, None]


@dataclass(frozen=True)
class Step:
    """A belief after one row, where an equation had no answer (and a stand-in was used), and what they disagreed about."""

    belief: Any
    broken: Array
    spread: Array  # of the values that equations for one and the same unknown ask for: largest over smallest


def posterior_term(belief: NormalGammas, x: Array) -> tuple[Array, NormalGammas]:
    """Equations 5 and 6: the probability of each term of the mixture, and its component's belief with the row."""
    distance = x[..., None] - belief.alpha
    kappa, beta = belief.kappa + 1.0, belief.beta + 0.5
    alpha = belief.alpha + distance / kappa
    gamma = belief.gamma + 0.5 * distance**2 * belief.kappa / kappa
    log_c = 0.5 * np.log(belief.kappa / kappa) + gammaln(beta) - gammaln(belief.beta)
    log_c += belief.beta * np.log(belief.gamma) - beta * np.log(gamma)
    return softmax(np.log(belief.a) + log_c), NormalGammas(belief.a + 1.0, alpha, kappa, beta, gamma)


def moments(belief: NormalGammas, p: Array, after: NormalGammas) -> dict[str, Array]:
    """Equation 8: expectations under the mixture, per component."""

    def mixed(function: Callable[[NormalGammas], Array]) -> Array:
        return p * function(after) + (1.0 - p) * function(belief)

    total = belief.a.sum(axis=-1, keepdims=True)
    return {
        "mu": mixed(lambda one: one.alpha),
        "lambda": mixed(lambda one: one.beta / one.gamma),
        "lambda^2": mixed(lambda one: one.beta * (one.beta + 1.0) / one.gamma**2),
        "lambda mu^2": mixed(lambda one: 1.0 / one.kappa + one.alpha**2 * one.beta / one.gamma),
        "w": (belief.a + p) / (total + 1.0),
        "w^2": (belief.a + 1.0) * (belief.a + 2.0 * p) / ((total + 1.0) * (total + 2.0)),
    }


def inverse_kappa(found: dict[str, Array]) -> Array:
    """Equation 9 says that this is 1 / kappa; nothing makes it positive."""
    return found["lambda mu^2"] - found["mu"] ** 2 * found["lambda"]


def step(belief: NormalGammas, x: Array) -> Step:
    """Equation 9 for one row per run. Where kappa is not positive, it grows by the row's share instead."""
    p, after = posterior_term(belief, x)
    found = moments(belief, p, after)
    inverse = inverse_kappa(found)
    bad = ~(inverse > 0.0)
    kappa = np.where(bad, belief.kappa + p, 1.0 / np.where(bad, 1.0, inverse))
    variance = found["lambda^2"] - found["lambda"] ** 2
    totals = (found["w"] - found["w^2"]) / (found["w^2"] - found["w"] ** 2)  # sum of a, as each component's equation has it
    projected = NormalGammas(
        found["w"] * totals, found["mu"], kappa, found["lambda"] ** 2 / variance, found["lambda"] / variance
    )
    return Step(projected, bad.any(axis=-1), totals.max(axis=-1) / totals.min(axis=-1))


# Several columns


@dataclass(frozen=True)
class NormalWisharts:
    """Dirichlet a; mean ~ N(m, (kappa L)^-1), precision L ~ Wishart(V^-1, nu), per component."""

    a: Array
    m: Array
    kappa: Array
    V: Array
    nu: Array

    def estimate(self, run: int) -> tuple[Array, Array, Array]:
        return self.a[run] / self.a[run].sum(), self.m[run], self.V[run] / self.nu[run][:, None, None]


def matrix_moments(belief: NormalWisharts, printed: bool) -> tuple[Array, Array, Array]:
    """Equation 3: covariance of the mean, expectation and entrywise variance of the precision.

    The covariance of the mean is V / (kappa (nu - d - 1)); as printed it is kappa + 1 times that.
    """
    d = belief.m.shape[-1]
    factor = (belief.kappa + 1.0 if printed else 1.0) / (belief.kappa * (belief.nu - d - 1.0))
    W = np.linalg.inv(belief.V)
    diagonal = np.diagonal(W, axis1=-2, axis2=-1)
    nu = belief.nu[..., None, None]
    return factor[..., None, None] * belief.V, nu * W, nu * (W**2 + diagonal[..., :, None] * diagonal[..., None, :])


def matrix_posterior_term(belief: NormalWisharts, x: Array) -> tuple[Array, NormalWisharts]:
    """Probability of each term of the mixture, and its component's belief with the row."""
    d = belief.m.shape[-1]
    distance = x[..., None, :] - belief.m
    ratio = belief.kappa / (belief.kappa + 1.0)
    outer = distance[..., :, None] * distance[..., None, :]
    after = NormalWisharts(
        belief.a + 1.0,
        belief.m + distance / (belief.kappa + 1.0)[..., None],
        belief.kappa + 1.0,
        belief.V + ratio[..., None, None] * outer,
        belief.nu + 1.0,
    )
    log_t = 0.5 * d * np.log(ratio) + gammaln(0.5 * after.nu) - gammaln(0.5 * (after.nu - d))
    log_t += 0.5 * belief.nu * np.linalg.slogdet(belief.V)[1] - 0.5 * after.nu * np.linalg.slogdet(after.V)[1]
    return softmax(np.log(belief.a) + log_t), after


def matrix_step(belief: NormalWisharts, x: Array, printed: bool = False) -> Step:
    """Match {mu, mu mu', L, L_ij^2} and the moments of the weights.

    There are d (d + 1) / 2 equations for nu and as many for kappa; nu takes the ratio of their sums, kappa that of their
    traces. nu must exceed d + 1 for the mean to have a covariance, and kappa must be positive; else stand-ins are used.
    """
    d = belief.m.shape[-1]
    p, after = matrix_posterior_term(belief, x)
    share, rest = p[..., None, None], 1.0 - p[..., None, None]
    (C0, L0, v0), (C1, L1, v1) = matrix_moments(belief, printed), matrix_moments(after, printed)
    moved = after.m - belief.m
    m = belief.m + p[..., None] * moved
    C = share * C1 + rest * C0 + share * rest * moved[..., :, None] * moved[..., None, :]
    L = share * L1 + rest * L0
    variance = share * v1 + rest * v0 + share * rest * (L1 - L0) ** 2
    diagonal = np.diagonal(L, axis1=-2, axis2=-1)
    asked = L**2 + diagonal[..., :, None] * diagonal[..., None, :]
    upper = np.triu_indices(d)
    asked, variance = asked[(..., *upper)], variance[(..., *upper)]
    nu = asked.sum(axis=-1) / variance.sum(axis=-1)
    low = ~(nu > d + 1.01)
    nu = np.where(low, d + 1.01, nu)
    V = nu[..., None, None] * np.linalg.inv(L)
    ratio = (nu - d - 1.0) * np.trace(C, axis1=-2, axis2=-1) / np.trace(V, axis1=-2, axis2=-1)
    inverse = ratio - 1.0 if printed else ratio
    bad = ~(inverse > 0.0)
    kappa = np.where(bad, belief.kappa + p, 1.0 / np.where(bad, 1.0, inverse))
    total = belief.a.sum(axis=-1, keepdims=True)
    w, w2 = (belief.a + p) / (total + 1.0), (belief.a + 1.0) * (belief.a + 2.0 * p) / ((total + 1.0) * (total + 2.0))
    each = asked / variance
    spread = (each.max(axis=-1) / each.min(axis=-1)).max(axis=-1)
    projected = NormalWisharts(w * (w - w2) / (w2 - w**2), m, kappa, V, nu)
    return Step(projected, (bad | low).any(axis=-1), spread)


def softmax(logs: Array) -> Array:
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


# What was measured


def random_steps(offset: float, steps: int, seed: int = 0) -> float:
    """Share of random single steps in which equation 9 asks for a kappa that is not positive."""
    rng = np.random.default_rng(np.random.SeedSequence((9, seed)))
    ones = np.ones((steps, 1))
    before = NormalGammas(
        ones,
        offset + rng.standard_normal((steps, 1)),
        rng.uniform(0.5, 20.0, (steps, 1)),
        rng.uniform(1.1, 20.0, (steps, 1)),
        rng.uniform(0.2, 10.0, (steps, 1)),
    )
    x = before.alpha + 3.0 * rng.standard_normal((steps, 1)) * np.sqrt(before.gamma / before.beta)
    p = rng.uniform(0.02, 0.98, (steps, 1))
    _, after = posterior_term(before, x[:, 0])
    return float(np.mean(inverse_kappa(moments(before, p, after)) <= 0.0))


@dataclass(frozen=True)
class Case:
    """A kind of stream: columns, offset of the data, units of the last column, rows of the warm-up, how (3) is read."""

    columns: int
    offset: float
    units: float
    warm_up: int
    printed: bool = False

    @property
    def name(self) -> str:
        form = "several columns, (3) as printed" if self.printed else "several columns" if self.columns > 1 else "one column"
        return f"{form}, offset {self.offset:g}, units {self.units:g}, warm-up of {self.warm_up} rows"


CASES = tuple(
    Case(columns, offset, units, warm_up, printed)
    for columns, printed, placed in (
        (1, False, tuple((offset, 1.0) for offset in OFFSETS)),
        (3, False, ((0.0, 1.0), (100.0, 1.0), (0.0, 100.0))),
        (3, True, ((0.0, 1.0), (100.0, 1.0), (0.0, 100.0))),
    )
    for warm_up in (50, 2000)
    for offset, units in placed
)


def streamed(case: Case, n_sets: int, rows: int, held_out: int, make: Callable[..., Any]) -> dict[str, Any]:
    """Run the printed update and the library's over the same rows from the same start.

    `make(components, seed, warm_up)` is the library's learner; its belief after the warm-up is where both go on from.
    """
    starts, streams, judges, gaps = [], [], [], []
    for seed in range(n_sets):
        truth = Truth.drawn(COMPONENTS, case.columns, 2.5, seed)
        drawn = truth.sample(rows + held_out, seed)
        score = truth.score(drawn[rows:]) - np.log(case.units)
        drawn += case.offset
        drawn[:, -1] *= case.units
        learn, judge = drawn[:rows], drawn[rows:]
        model = make(COMPONENTS, seed, case.warm_up).partial_fit(learn[: case.warm_up])
        starts.append(_belief(model))
        gaps.append(float(model.partial_fit(learn[case.warm_up :]).score(judge)) - score)
        streams.append(learn[case.warm_up :])
        judges.append((judge, score))
    belief: Any = type(starts[0])(*[np.stack(arrays) for arrays in zip(*[vars(one).values() for one in starts], strict=True)])
    stream = np.stack(streams, axis=1)
    broken, first, spread = np.zeros(n_sets), np.full(n_sets, np.nan), np.ones(n_sets)
    for number, x in enumerate(stream):
        one = step(belief, x[:, 0]) if case.columns == 1 else matrix_step(belief, x, case.printed)
        belief = one.belief
        first[(broken == 0) & one.broken] = number + 1
        broken += one.broken
        spread = np.fmax(spread, one.spread)
    mine = []
    for run, (judge, score) in enumerate(judges):
        estimate = belief.estimate(run)
        sound = all(np.isfinite(part).all() for part in estimate)
        mine.append(mixture_score(judge, *estimate) - score if sound else float("nan"))
    return {
        **vars(case), "broken_rows": (broken / len(stream)).tolist(), "first_broken": first[broken > 0].tolist(), "gaps": mine,
        "library_gaps": gaps, "spread": float(np.median(spread)),
    }  # fmt: skip


def _belief(model: Any) -> NormalGammas | NormalWisharts:
    """The library's belief, whose covariances are V / nu."""
    a, kappa, nu = model.weight_concentration_, model.mean_precision_, model.degrees_of_freedom_
    means, V = model.means_, model.covariances_ * nu[:, None, None]
    if means.shape[1] == 1:
        return NormalGammas(a, means[:, 0], kappa, 0.5 * nu, 0.5 * V[:, 0, 0])
    return NormalWisharts(a, means, kappa, V, nu)
