"""Slow twin of merging, from the equations: densities, divergences and natural parameters of beliefs."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy import special, stats


def wishart_kl(nu, V, nu0, V0):
    """KL of Wisharts with E[precision] = nu * inverse(V), by their log-normalisers and expected log-densities."""
    d = len(V)

    def log_normaliser(nu, V):
        return 0.5 * nu * (d * np.log(2.0) - np.linalg.slogdet(V)[1]) + special.multigammaln(0.5 * nu, d)

    expected = nu * np.linalg.inv(V)
    expected_log = sum(special.digamma(0.5 * (nu - i)) for i in range(d)) + d * np.log(2.0) - np.linalg.slogdet(V)[1]
    own = 0.5 * (nu - d - 1.0) * expected_log - 0.5 * np.trace(V @ expected) - log_normaliser(nu, V)
    other = 0.5 * (nu0 - d - 1.0) * expected_log - 0.5 * np.trace(V0 @ expected) - log_normaliser(nu0, V0)
    return own - other


def gamma_kl(shape, rate, shape0, rate0):
    mean, mean_log = shape / rate, special.digamma(shape) - np.log(rate)
    own = shape * np.log(rate) - special.gammaln(shape) + (shape - 1.0) * mean_log - rate * mean
    return own - (shape0 * np.log(rate0) - special.gammaln(shape0) + (shape0 - 1.0) * mean_log - rate0 * mean)


def mean_kl(kappa, kappa0, distance, d):
    """KL of the Gaussians of a mean, averaged over the precision: `distance` is E[(m - m0)' precision (m - m0)]."""
    return 0.5 * (d * (np.log(kappa / kappa0) + kappa0 / kappa - 1.0) + kappa0 * distance)


def component_kl(kind, one, other):
    """KL of the beliefs (mean, kappa, nu, V) about one component each; V is a matrix, a vector (diag) or a number."""
    (m, kappa, nu, V), (m0, kappa0, nu0, V0) = one, other
    d, gap = len(m), m - m0
    if kind in ("full", "tied"):
        return wishart_kl(nu, V, nu0, V0) + mean_kl(kappa, kappa0, gap @ (nu * np.linalg.inv(V)) @ gap, d)
    if kind == "spherical":
        precision = gamma_kl(0.5 * d * nu, 0.5 * d * V, 0.5 * d * nu0, 0.5 * d * V0)
        return precision + mean_kl(kappa, kappa0, nu / V * gap @ gap, d)
    kappa, nu, kappa0, nu0 = (np.broadcast_to(value, (d,)) for value in (kappa, nu, kappa0, nu0))
    return sum(
        gamma_kl(0.5 * nu[j], 0.5 * V[j], 0.5 * nu0[j], 0.5 * V0[j])
        + mean_kl(kappa[j], kappa0[j], nu[j] / V[j] * gap[j] ** 2, 1)
        for j in range(d)
    )


def component(kind, belief, k):
    """(mean, kappa, nu, V) of one component of a belief."""
    V = belief.scale if kind == "tied" else belief.scale[k]
    return belief.means[k], belief.mean_precision[k], belief.dof[k], V


def jeffreys(kind, belief, other):
    """KL(a || b) + KL(b || a) of all pairs of components."""
    out = np.empty((len(belief.means), len(other.means)))
    for a, b in np.ndindex(out.shape):
        one, two = component(kind, belief, a), component(kind, other, b)
        out[a, b] = component_kl(kind, one, two) + component_kl(kind, two, one)
    return out


def sampled_jeffreys(kind, one, other, n, rng):
    """The same for one pair, and its standard error, from draws and SciPy's densities alone (full and diag)."""
    means, errors = [], []
    for a, b in ((one, other), (other, one)):
        ratios = _log_density(kind, a, *(draws := _draw(kind, a, n, rng))) - _log_density(kind, b, *draws)
        means.append(ratios.mean())
        errors.append(ratios.std() / np.sqrt(n))
    return sum(means), np.hypot(*errors)


def _draw(kind, belief, n, rng):
    m, kappa, nu, V = belief
    if kind == "full":
        precision = stats.wishart(nu, np.linalg.inv(V)).rvs(n, random_state=rng)
        root = np.linalg.cholesky(np.linalg.inv(kappa * precision))
        return m + np.einsum("nij,nj->ni", root, rng.normal(size=(n, len(m)))), precision
    precision = rng.gamma(0.5 * nu, 2.0 / V, size=(n, len(m)))
    return m + rng.normal(size=(n, len(m))) / np.sqrt(kappa * precision), precision


def _log_density(kind, belief, mu, precision):
    m, kappa, nu, V = belief
    if kind == "full":
        wishart = stats.wishart(nu, np.linalg.inv(V)).logpdf(np.moveaxis(precision, 0, -1))
        _, log_det = np.linalg.slogdet(kappa * precision)
        return wishart + 0.5 * log_det - 0.5 * kappa * np.einsum("ni,nij,nj->n", mu - m, precision, mu - m)
    gamma = stats.gamma(0.5 * nu, scale=2.0 / V).logpdf(precision)
    return (gamma + stats.norm(m, 1.0 / np.sqrt(kappa * precision)).logpdf(mu)).sum(axis=1)


def natural(model):
    """Return the natural parameters of a belief about a fixed point: they add up when posteriors are multiplied."""
    belief = model._component_belief()
    kappa = belief.mean_precision.reshape(len(belief.means), -1)
    first = kappa * belief.means
    if model.covariance_type in ("full", "tied"):
        outer = kappa[:, :, None] * belief.means[:, :, None] * belief.means[:, None, :]
        second = belief.scale + (outer.sum(axis=0) if model.covariance_type == "tied" else outer)
    elif model.covariance_type == "diag":
        second = belief.scale + kappa * belief.means**2
    else:  # of the columns together
        second = belief.scale + (kappa * belief.means**2).mean(axis=1)
    return [model.weight_concentration_, kappa, belief.dof, first, second]


def assignment(cost):
    """Return the cheapest permutation and, for every row, the extra cost of the best one without its partner."""
    K = len(cost)
    totals = {order: sum(cost[k, order[k]] for k in range(K)) for order in permutations(range(K))}
    best = min(totals, key=totals.get)
    margin = [min(total for order, total in totals.items() if order[k] != best[k]) - totals[best] for k in range(K)]
    return np.array(best), np.array(margin)


def dealt(base, rows, parts, block, weights=None, labels=None):
    """Return branches of a model to which blocks of rows were dealt in turn."""
    owners = np.arange(len(rows)) // block % parts
    branches = [base.branch().set_params(parts=1) for _ in range(parts)]
    for part, branch in enumerate(branches):
        own = owners == part
        if own.any():
            given = {} if weights is None else {"sample_weight": weights[own]}
            branch.partial_fit(rows[own], **given, labels=None if labels is None else labels[own])
    return branches
