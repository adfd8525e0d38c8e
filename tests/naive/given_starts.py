"""Streams that begin at a start that is given, worth some rows: each recursion in a few lines of NumPy.

A start is worth n rows that are distributed as it says, so its statistics are the moments of that distribution. They are means
per row; a belief is the prior and n times these, and n grows with the rows. Everything is about the origin of coordinates.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from scipy import special

from tests.naive import gaussian, moments, multinomial, topics


def gaussian_moments(kind, weights, means, covariances):
    """Count, first and second moments per row of a mixture of Gaussians; `covariances` (K, d, d)."""
    second = weights[:, None, None] * (covariances + means[:, :, None] * means[:, None, :])
    if kind == "tied":
        second = second.sum(axis=0)
    elif kind != "full":
        second = np.diagonal(second, axis1=1, axis2=2).copy()
    return weights, weights[:, None] * means, second


def gaussian_prior(mean, mean_precision, dof, scale):
    """What the twins read of a prior."""
    return SimpleNamespace(
        origin=np.zeros(len(mean)), mean=mean, mean_precision=mean_precision, dof=dof, scale=scale, floor=0.0
    )


def matched(kind, prior, concentration, start, rows, X):
    """Moment matching (paper 003): the belief of prior and start, then one projection after every row."""
    count, first, second = (rows * part for part in start)
    known = gaussian.belief(kind, prior, count, first, second)
    scale = known.scale if kind != "spherical" else np.repeat(known.scale[:, None], X.shape[1], axis=1)
    kappa, nu = known.kappa, known.nu
    if kind == "diag":
        kappa, nu = (np.repeat(part[:, None], X.shape[1], axis=1) for part in (kappa, nu))
    return moments.steps(kind, moments.Belief(concentration + count, known.means, kappa, nu, scale), X)[0]


def counts_per_row(weights, probabilities, length):
    """Count (K,) and table (V, K) per row of a mixture of multinomials with rows of this length."""
    return weights, length * (weights[:, None] * probabilities).T


def chain_table(weights, start, steps, length):
    """The same for Markov chains: the first symbol, then `length` - 1 steps, one after the other."""
    table = []
    for weight, first, matrix in zip(weights, start, steps, strict=True):
        counts, now = np.zeros_like(matrix), first
        for _ in range(length - 1):
            counts += now[:, None] * matrix
            now = now @ matrix
        table.append(weight * np.concatenate([first, counts.ravel()]))
    return weights, np.array(table).T


def regression_moments(weights, coef, intercept, noise, centre, spread):
    """Moments of inputs N(centre, spread^2) and target, (K, d + 1, ...) per row."""
    count, first, second = weights, [], []
    for weight, slope, level, variance in zip(weights, coef, intercept, noise, strict=True):
        mean = np.append(centre, slope @ centre + level)
        inputs = np.diag(spread**2)
        covariance = np.block([[inputs, (inputs @ slope)[:, None]], [inputs @ slope, slope @ inputs @ slope + variance]])
        first.append(weight * mean)
        second.append(weight * (covariance + np.outer(mean, mean)))
    return count, np.array(first), np.array(second)


def regression_boem(prior, concentration, start, rows, X, y):
    """Bayesian online EM of regressions: E-step at the mean of the belief, then counts add. `prior`: (L, m, nu, V)."""
    L, m, nu, V = prior
    count, first, second = (rows * part for part in start)
    for x, target in zip(X, y, strict=True):
        logs, phi = np.empty(len(count)), np.append(1.0, x)
        weights = (concentration + count) / (concentration + count).sum()
        for k in range(len(count)):
            coef, noise = regression_mean(L, m, nu, V, count[k], first[k], second[k])
            logs[k] = np.log(weights[k]) - 0.5 * np.log(2 * np.pi * noise) - 0.5 * (target - phi @ coef) ** 2 / noise
        r, row = special.softmax(logs), np.append(x, target)
        count, first, second = count + r, first + np.outer(r, row), second + r[:, None, None] * np.outer(row, row)
    return [regression_mean(L, m, nu, V, count[k], first[k], second[k]) for k in range(len(count))]


def regression_mean(L, m, nu, V, count, first, second):
    """Coefficients (intercept first) and noise of a Normal-inverse-Gamma belief, from its normal equations."""
    design = np.block([[np.array([[count]]), first[None, :-1]], [first[:-1, None], second[:-1, :-1]]])
    target, square = np.append(first[-1], second[:-1, -1]), second[-1, -1]
    after = L + design
    coef = np.linalg.solve(after, L @ m + target)
    return coef, (V + m @ L @ m + square - coef @ after @ coef) / (nu + count)


def documents_per_row(given, alpha, length):
    """Expected words (V, K) of a document of this length, with proportions Dirichlet(alpha)."""
    return length * given.T * (alpha / alpha.sum())


def mean_field(x, now, alpha, tol=1e-3, most=100):
    """Words (V, K) of a document by the coordinate ascent of Hoffman, Blei and Bach (2010), until proportions move little."""
    gamma = alpha + x.sum() / len(alpha)
    for _ in range(most):
        after = alpha + x @ topics.shares(gamma, now)
        moved, gamma = np.abs(after - gamma).sum(), after
        if moved <= tol * x.sum():
            break
    return x[:, None] * topics.shares(gamma, now)


def topic_stream(name, estep, start, rows, beta, X, batch_rows, step):
    """Topics by batches: an E-step at the belief of `rows` and those seen, a step towards its mean; returns the belief."""
    table, seen = start, float(rows)
    for t, at in enumerate(range(0, len(X), batch_rows), start=1):
        part = X[at : at + batch_rows]
        now = topics.topic_table(name, seen * table, beta)
        table = table + step(t) * (sum(estep(x, now) for x in part) / len(part) - table)
        seen += len(part)
    return beta + seen * table


def stationary(transitions):
    """How often a chain is in each state, with a thousandth of mixing."""
    values, vectors = np.linalg.eig((0.999 * transitions + 0.001 / len(transitions)).T)
    found = np.real(vectors[:, np.argmax(np.real(values))])
    return found / found.sum()


def multinomial_stream(name, prior, shift, concentration, start, rows, X, steps):
    """Any row-by-row algorithm: the belief is read out, a row is shared by it, and the statistics move towards the row."""
    (count, table), _, n_eff, _ = multinomial.sweep(name, prior, shift, concentration, start, rows, X, steps)
    return concentration + n_eff * count, prior + n_eff * table
