"""One step of Bayesian moment matching, slow and obvious: form the posterior, take its moments, find the belief that has them.

A belief is Dirichlet(a) over the weights times, per component, with V the inverse of the usual scale matrix,

    full        Lambda ~ Wishart(nu, inverse(V)), mu | Lambda ~ N(m, inverse(kappa Lambda)): kappa, nu (K,), V (K, d, d)
    diag        lambda ~ Gamma(nu/2, rate V/2), mu | lambda ~ N(m, 1/(kappa lambda)) in each column: kappa, nu, V (K, d)
    spherical   lambda ~ Gamma(nu d/2, rate sum(V)/2), mu | lambda ~ N(m, I/(kappa lambda)): kappa, nu (K,), V (K, d)

The posterior after one row is a mixture of K such beliefs, so its moments are sums. Everything but the logarithms also works
on arrays of fractions, without any rounding.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

KINDS = ("full", "diag", "spherical")
RULES = ("second-moments", "kl")
SECOND = ("second-moments", "second-moments")


class Belief(NamedTuple):
    """Parameters of the belief about K components."""

    a: np.ndarray
    means: np.ndarray
    kappa: np.ndarray
    nu: np.ndarray
    V: np.ndarray


# The exact posterior


def log_predictive(kind, belief, x):
    """(K,) log-densities of a row under each component, its parameters integrated out."""
    out = np.empty(len(belief.a))
    width = len(x)
    for k, (mean, kappa, nu, V) in enumerate(zip(*belief[1:], strict=True)):
        if kind == "full":
            df = nu - width + 1
            out[k] = stats.multivariate_t(mean, V * (kappa + 1) / (kappa * df), df=df).logpdf(x)
        elif kind == "diag":
            out[k] = stats.t(nu, mean, np.sqrt(V * (kappa + 1) / (kappa * nu))).logpdf(x).sum()
        else:
            df = nu * width
            out[k] = stats.multivariate_t(mean, V.sum() * (kappa + 1) / (kappa * df) * np.eye(width), df=df).logpdf(x)
    return out


def responsibilities(kind, belief, x, label=-1):
    """Probability of each component, and the score: the log-density of the row, of row and label if it has one."""
    joint = np.log(belief.a / belief.a.sum()) + log_predictive(kind, belief, x)
    if label >= 0:
        return np.eye(len(joint))[label], joint[label]
    score = special.logsumexp(joint)
    return np.exp(joint - score), score


def learned(kind, belief, x, weight, j):
    """The belief if the row is known to be of component j: textbook conjugate update."""
    a, means, kappa, nu, V = (np.array(part) for part in belief)
    centred = x - means[j]
    square = np.outer(centred, centred) if kind == "full" else centred * centred
    V[j] = V[j] + kappa[j] * weight / (kappa[j] + weight) * square
    means[j] = means[j] + weight / (kappa[j] + weight) * centred
    kappa[j] = kappa[j] + weight
    nu[j] = nu[j] + weight
    a[j] = a[j] + weight
    return Belief(a, means, kappa, nu, V)


def posterior(kind, belief, x, weight=1.0, label=-1):
    """Return the mixture of K beliefs after one row: their probabilities, the beliefs, and the score of the row."""
    p, score = responsibilities(kind, belief, x, label)
    return p, [learned(kind, belief, x, weight, j) for j in range(len(p))], score


# Moments


def inverse(matrix):
    """Inverse of a matrix: NumPy's, or Gauss-Jordan without rounding for fractions."""
    if matrix.dtype != object:
        return np.linalg.inv(matrix)
    width = len(matrix)
    table = np.concatenate([matrix, np.eye(width, dtype=int).astype(object)], axis=1)
    for i in range(width):
        table[i] = table[i] / table[i, i]
        for other in range(width):
            if other != i:
                table[other] = table[other] - table[other, i] * table[i]
    return table[:, width:]


def moments(kind, belief, logs=True):
    """Return expectations under a belief, by name: w is the weights, L the precision of a component (diag: of each column)."""
    a, means, kappa, nu, V = belief
    width = means.shape[1]
    total = a.sum()
    out = {"w": a / total, "sum w^2": (a * (a + 1)).sum() / (total * (total + 1))}
    if logs:
        out["log w"] = special.psi(a) - special.psi(total)
    return out | (wishart_moments if kind == "full" else gamma_moments)(kind, width, means, kappa, nu, V, logs)


def wishart_moments(kind, width, means, kappa, nu, V, logs):
    """Of L, L mu, mu' L mu, all products L_ij L_kl, and log|L|."""
    out = {"L": [], "L mu": [], "mu L mu": [], "L L": []}
    for mean, kappa_k, nu_k, V_k in zip(means, kappa, nu, V, strict=True):
        W = inverse(V_k)
        out["L"].append(nu_k * W)
        out["L mu"].append(nu_k * W @ mean)
        out["mu L mu"].append(width / kappa_k + nu_k * mean @ W @ mean)
        crossed = np.einsum("ik,jl->ijkl", W, W) + np.einsum("il,jk->ijkl", W, W)
        out["L L"].append(nu_k**2 * np.einsum("ij,kl->ijkl", W, W) + nu_k * crossed)
    if logs:
        digammas = sum(special.psi((nu + 1 - i) / 2) for i in range(1, width + 1))
        out["log L"] = digammas + width * np.log(2) - np.linalg.slogdet(V)[1]
    return {name: np.array(values) for name, values in out.items()}


def gamma_moments(kind, width, means, kappa, nu, V, logs):
    """Of L, L mu, L mu^2 (spherical: summed over the columns), L^2 and log(L)."""
    if kind == "diag":
        shape, rate = nu / 2, V / 2
        product, square = shape / rate * means, 1 / kappa + shape / rate * means**2
    else:
        shape, rate = nu * width / 2, V.sum(axis=1) / 2
        product, square = (shape / rate)[:, None] * means, width / kappa + shape / rate * (means**2).sum(axis=1)
    out = {"L": shape / rate, "L mu": product, "mu L mu": square, "L L": shape * (shape + 1) / rate**2}
    if logs:
        out["log L"] = special.psi(shape) - np.log(rate)
    return out


def mixed(p, parts):
    """Moments of a mixture: sums."""
    return {name: sum(share * part[name] for share, part in zip(p, parts, strict=True)) for name in parts[0]}


# The projection


def dirichlet(wanted, rule):
    """Parameters of the Dirichlet with the wanted E[w] and sum of E[w^2], or with the wanted E[log w]."""
    mean = wanted["w"]
    total = (1 - wanted["sum w^2"]) / (wanted["sum w^2"] - (mean**2).sum())
    if rule == "second-moments":
        return total * mean
    log_a, last = np.log(total * mean), np.inf
    for _ in range(200):  # Newton's method for log(a), until its steps no longer shrink
        a = np.exp(log_a)
        error = special.psi(a) - special.psi(a.sum()) - wanted["log w"]
        slope = (np.diag(special.polygamma(1, a)) - special.polygamma(1, a.sum())) * a
        step = np.linalg.solve(slope, error)
        size = np.abs(step).max()
        if size < 1e-7 and size >= last / 2:
            return a
        last = size
        log_a = log_a - step / max(1.0, size)
    raise ArithmeticError("Newton's method for the Dirichlet goes on and on")


def dof_of_log(gap, width):
    """nu of the Wishart with E log|L| - log|E L| = gap."""

    def excess(t):
        nu = width - 1 + np.exp(t)
        return sum(special.psi((nu + 1 - i) / 2) - np.log(nu / 2) for i in range(1, width + 1)) - gap

    return width - 1 + np.exp(optimize.brentq(excess, -30.0, 30.0, xtol=1e-14, rtol=1e-14))


def normal_wishart(wanted, rule, nu0):
    """m, kappa, nu and V of the Normal-Wishart with the wanted moments."""
    width = len(wanted["L mu"])
    covariance = inverse(wanted["L"])
    mean = covariance @ wanted["L mu"]
    kappa = width / (wanted["mu L mu"] - mean @ wanted["L"] @ mean)
    if rule == "second-moments":  # E tr(C L C L) = d + d (d + 1)/nu, C being the inverse of E[L]
        nu = width * (width + 1) / (np.einsum("ij,kl,jkli", covariance, covariance, wanted["L L"]) - width)
    else:
        nu = dof_of_log(wanted["log L"] - np.linalg.slogdet(wanted["L"])[1], width)
    nu = max(nu, min(nu0, width + 1.01))
    return mean, kappa, nu, nu * covariance


def normal_gamma(wanted, rule, nu0, columns=1):
    """m, kappa, nu and the summed V of the Normal-Gamma with the wanted moments, of one or more columns with one precision."""
    mean = wanted["L mu"] / wanted["L"]
    kappa = columns / (wanted["mu L mu"] - wanted["L"] * np.sum(mean**2))
    if rule == "second-moments":  # E L^2 / (E L)^2 = 1 + 1/shape
        shape = 1 / (wanted["L L"] / wanted["L"] ** 2 - 1)
    else:
        shape = dof_of_log(wanted["log L"] - np.log(wanted["L"]), 1) / 2
    shape = max(shape, min(nu0 * columns / 2, 1.005))
    return mean, kappa, 2 * shape / columns, 2 * shape / wanted["L"]


def project(kind, wanted, projection=SECOND, nu0=np.inf):
    """The belief with the wanted moments; `projection` names what matches the weights, and the degrees of freedom.

    K = 1 has no weights to match, so its `a` is NaN. The summed V of a spherical component is spread evenly over its columns.
    """
    names = ("L", "L mu", "mu L mu", "L L", *(["log L"] if "log L" in wanted else []))
    shape = wanted["L mu"].shape
    found = []
    for k in range(shape[0]):
        part = {name: wanted[name][k] for name in names}
        if kind == "full":
            found.append(normal_wishart(part, projection[1], nu0))
        elif kind == "spherical":
            mean, kappa, nu, V = normal_gamma(part, projection[1], nu0, columns=shape[1])
            found.append((mean, kappa, nu, np.array([V / shape[1]] * shape[1])))
        else:
            columns = [{name: part[name][j] for name in names} for j in range(shape[1])]
            found.append(list(zip(*(normal_gamma(column, projection[1], nu0) for column in columns), strict=True)))
    a = dirichlet(wanted, projection[0]) if shape[0] > 1 else np.full(1, np.nan)
    return Belief(a, *(np.array(part) for part in zip(*found, strict=True)))


# Steps


def fractions(array):
    """The same numbers as fractions."""
    return np.frompyfunc(Fraction, 1, 1)(np.asarray(array, dtype=float))


def step(kind, belief, x, weight=1.0, label=-1, projection=SECOND, nu0=np.inf, exact=False):
    """The belief after one row, and the row's score before it. `exact` rounds nothing after the responsibilities."""
    p, terms, score = posterior(kind, belief, x, weight, label)
    if exact:
        p = fractions(p) / fractions(p).sum()
        held = Belief(*(fractions(part) for part in belief))
        terms = [learned(kind, held, fractions(x), Fraction(weight), j) for j in range(len(p))]
    after = project(kind, mixed(p, [moments(kind, term, logs=not exact) for term in terms]), projection, nu0)
    if len(belief.a) == 1:
        after = after._replace(a=belief.a + weight)
    return Belief(*(np.array(part, dtype=float) for part in after)), score


def steps(kind, belief, X, weights=None, labels=None, projection=SECOND, nu0=np.inf):
    """The belief after rows, one after the other, and their scores."""
    scores = np.empty(len(X))
    for i, x in enumerate(X):
        weight = 1.0 if weights is None else weights[i]
        label = -1 if labels is None else labels[i]
        belief, scores[i] = step(kind, belief, x, weight, label, projection, nu0)
    return belief, scores
