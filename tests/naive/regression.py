"""Slow, obvious twins of the kernels of regressions: NumPy, SciPy and Python loops, written from the equations.

Rows are about the origin, the target last. A belief is made of rows and responsibilities, not of their moments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from naive import gaussian as naive


def design(X, intercept):
    """(n, p): the inputs, after a column of ones."""
    return np.column_stack([np.ones(len(X)), X[:, :-1]]) if intercept else X[:, :-1]


@dataclass(frozen=True)
class Belief:
    """beta | noise ~ N(m, noise L^-1) and 1 / noise ~ Gamma(a, b) of one component."""

    m: np.ndarray
    L: np.ndarray
    a: float
    b: float


def belief(prior, intercept, X, resp):
    """Conjugate update of each component; the residuals are those of the rows."""
    phi, y, L0 = design(X, intercept), X[:, -1], np.diag(prior.precision)
    out = []
    for r in resp.T:
        L = L0 + (phi * r[:, None]).T @ phi
        m = np.linalg.solve(L, L0 @ prior.mean + phi.T @ (r * y))
        b = prior.scale / 2 + (r @ (y - phi @ m) ** 2 + (m - prior.mean) @ L0 @ (m - prior.mean)) / 2
        out.append(Belief(m, L, prior.dof / 2 + r.sum() / 2, b))
    return out


def noise(name, known, floor=0.0):
    """Noise variance: the joint mode of coefficients and precision, or the inverse of the mean precision."""
    if name == "mode":  # exponents of the precision: a - 1 of the Gamma, p / 2 of the normal
        return max(known.b / (known.a - 1 + len(known.m) / 2), floor)
    return known.b / known.a


def log_densities(name, intercept, beliefs, X, floor=0.0):
    """Return log-densities (n, K) of every target under every component, for the named readout."""
    phi, y = design(X, intercept), X[:, -1]
    out = np.empty((len(X), len(beliefs)))
    for k, known in enumerate(beliefs):
        mean, leverage = phi @ known.m, np.array([x @ np.linalg.solve(known.L, x) for x in phi])
        if name in ("mode", "mean"):
            out[:, k] = stats.norm.logpdf(y, mean, np.sqrt(noise(name, known, floor)))
        elif name == "predictive":
            out[:, k] = stats.t.logpdf(y, 2 * known.a, mean, np.sqrt(known.b / known.a * (1 + leverage)))
        else:
            expected = special.psi(known.a) - np.log(known.b) - np.log(2 * np.pi)
            out[:, k] = 0.5 * (expected - known.a / known.b * (y - mean) ** 2 - leverage)
    return out


def log_joint(parameters, log_weights, X, intercept):
    """Joint log-densities (n, K) of parameters that are ready for the kernels, as their docstring defines them; and those
    of the inputs alone.
    """
    rows = np.column_stack([design(X, intercept), X[:, -1]])
    out = np.empty((len(X), len(log_weights)))
    for k in range(len(log_weights)):
        turned = rows @ np.tril(parameters.factor[k]).T
        e, h = turned[:, -1], (turned[:, :-1] ** 2).sum(axis=1)
        if parameters.power[k] > 0.0:
            log_density = -0.5 * np.log1p(h) - parameters.power[k] * np.log1p(e**2 / (1 + h))
        else:
            log_density = -0.5 * (e**2 + parameters.leverage[k] * h)
        out[:, k] = parameters.offset[k] + log_density
    if parameters.gate is None:
        return out + log_weights, np.broadcast_to(log_weights, out.shape)
    gate = naive.log_joint("full", parameters.gate, log_weights, X[:, :-1] + parameters.gate.origin)
    return out + gate, gate


def sweep(name, family, prior, concentration, rows, resp, X, steps, gains=None, weights=None, labels=None):
    """Learn row by row: E-step at the belief of all rows so far, each with its remaining mass; fold; average.

    The first rows, with their responsibilities, were learned before. Returns count, first and second per observation,
    their average, n_eff and scores.
    """
    n_eff = resp.sum()
    mean = [part / n_eff for part in naive.totals("full", rows, resp)]
    average, scores = [part.copy() for part in mean], np.empty(len(X))
    masses = resp.copy()
    for i, x in enumerate(X):
        count = masses.sum(axis=0)
        joint = log_densities(name, family.intercept, belief(prior, family.intercept, rows, masses), x[None])
        shares = naive.log_weights(name, concentration + count)
        if family.gate is not None:
            held = naive.totals("full", rows[:, :-1], masses)
            gates = naive.log_densities(name, "full", naive.belief("full", prior.gate, *held), 0.0, x[None, :-1])
            joint, inputs = joint + gates, special.logsumexp(gates + shares, axis=1)
        r, score = naive.responsibilities(joint + shares, None if labels is None else labels[i : i + 1])
        scores[i] = score[0] - (inputs[0] if family.gate is not None else 0.0)
        g, weight = steps[i], 1.0 if weights is None else weights[i]
        mean = [(1 - g) * old + g * new for old, new in zip(mean, naive.totals("full", x[None], r), strict=True)]
        after = 1 / ((1 - g) ** 2 / n_eff + g**2 / weight)
        rows = np.vstack([rows, x])
        masses = np.vstack([masses * (1 - g) * after / n_eff, r * g * after])
        n_eff = after
        if gains is not None:
            average = [old + gains[i] * (new - old) for old, new in zip(average, mean, strict=True)]
    return mean, average, n_eff, scores


def em(X, y, coef, intercept, noise, weights, passes):
    """Plain EM for maximum likelihood; returns coefficients (intercept first), noise, weights and the last log-likelihood."""
    phi = np.column_stack([np.ones(len(X)), X])
    beta, noise, weights = np.column_stack([intercept, coef]), np.array(noise), np.array(weights)
    for _ in range(passes):
        joint = np.log(weights) + stats.norm.logpdf(y[:, None], phi @ beta.T, np.sqrt(noise))
        r, scores = naive.responsibilities(joint)
        for k in range(len(beta)):
            beta[k] = np.linalg.lstsq(phi * np.sqrt(r[:, k, None]), y * np.sqrt(r[:, k]), rcond=None)[0]
            noise[k] = r[:, k] @ (y - phi @ beta[k]) ** 2 / r[:, k].sum()
        weights = r.mean(axis=0)
    return beta, noise, weights, scores.mean()
