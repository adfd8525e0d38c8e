"""Slow, obvious twins of the kernels and of the loop: NumPy, SciPy and Python loops, written from the equations.

Everything is dense and about the origin of the coordinates: covariances are (K, d, d) whatever their kind, and a total is
(count, first, second) with `second` in the shape of the kind: (K, d, d) full, (d, d) tied, (K, d) diag and spherical.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

KINDS = ("full", "tied", "diag", "spherical")
READOUTS = ("mode", "mean", "expect_log", "predictive")


# E-step


def log_joint(kind, parameters, log_weights, X):
    """(n, K) joint log-densities of parameters that are ready for the kernels, as their docstring defines them."""
    out = np.empty((len(X), len(log_weights)))
    for k, log_weight in enumerate(log_weights):
        factor = parameters.factor if kind == "tied" else parameters.factor[k]
        factor = np.tril(factor) if factor.ndim == 2 else np.diag(factor)
        squares = ((X - parameters.origin) @ factor.T - parameters.shift[k]) ** 2
        power, stretch = parameters.power[k], parameters.stretch[k]
        if power == 0.0:
            tail = 0.5 * squares.sum(axis=1)
        elif kind == "diag":
            tail = power * np.log1p(stretch * squares).sum(axis=1)
        else:
            tail = power * np.log1p(stretch * squares.sum(axis=1))
        out[:, k] = log_weight + parameters.offset[k] - tail
    return out


def responsibilities(joint, labels=None):
    """Responsibilities (n, K) and the score of every row; a label clamps its row, which scores its joint log-density."""
    scores = special.logsumexp(joint, axis=1)
    out = np.exp(joint - scores[:, None])
    for i in np.flatnonzero(labels >= 0) if labels is not None else ():
        out[i] = np.eye(joint.shape[1])[labels[i]]
        scores[i] = joint[i, labels[i]]
    return out, scores


def totals(kind, X, resp, weights=None):
    """Count, first and second moments of rows about zero."""
    resp = resp if weights is None else resp * weights[:, None]
    dense = np.stack([(X * r[:, None]).T @ X for r in resp.T])
    if kind == "tied":
        second = dense.sum(axis=0)
    elif kind == "full":
        second = dense
    else:
        second = np.diagonal(dense, axis1=1, axis2=2).copy()
    return resp.sum(axis=0), resp.T @ X, second


# Beliefs and readouts


@dataclass(frozen=True)
class Belief:
    """kappa (K,), means (K, d), nu (K,) and V: (K, d, d) full and tied, (K, d) diag, (K,) spherical."""

    kappa: np.ndarray
    means: np.ndarray
    nu: np.ndarray
    scale: np.ndarray


def belief(kind, prior, count, first, second):
    """Textbook update: V = V0 + scatter about the sample mean + kappa0 N / (kappa0 + N) (xbar - m0)(xbar - m0)'."""
    n_components, width = first.shape
    matrix = kind in ("full", "tied")

    def square(x):
        return np.outer(x, x) if matrix else x * x

    kappa, means, scale = np.empty(n_components), np.empty((n_components, width)), []
    between = []
    for k in range(n_components):
        sample_mean = first[k] / count[k] if count[k] > 0 else prior.mean
        kappa[k] = prior.mean_precision + count[k]
        share = prior.mean_precision / kappa[k]
        means[k] = share * prior.mean + (1 - share) * sample_mean
        between.append(share * count[k] * square(sample_mean - prior.mean))
        if kind != "tied":
            scale.append(prior.scale + second[k] - count[k] * square(sample_mean) + between[k])
    if kind == "tied":
        within = second - sum(n * np.outer(f / n, f / n) for n, f in zip(count, first, strict=True) if n > 0)
        scale = [prior.scale + within + sum(between)] * n_components
        nu = np.full(n_components, prior.dof + count.sum())
    else:
        nu = prior.dof + count
    scale = np.array(scale)
    return Belief(kappa, means, nu, scale.mean(axis=1) if kind == "spherical" else scale)


def covariances(name, kind, believed, floor):
    """(K, d, d) plug-in covariances: the mode of (mean, precision) jointly, or the inverse of the mean precision."""
    n_components, width = believed.means.shape
    nu = believed.nu
    if name == "mode":
        # Exponent of the precision in the joint density, e.g. (nu - d - 1)/2 of the Wishart + 1/2 of the normal.
        nu = {
            "full": nu - width,
            "tied": nu - width - 1 + n_components,
            "diag": nu - 1,
            "spherical": nu + 1 - 2 / width,
        }[kind]
    out = np.empty((n_components, width, width))
    for k in range(n_components):
        v = believed.scale[k]
        out[k] = (v if np.ndim(v) == 2 else np.diag(np.broadcast_to(v, width))) / nu[k]
        if name == "mode":
            out[k] += floor * np.eye(width)
    return out


def log_densities(name, kind, believed, floor, X):
    """Return (n, K): log-densities of every row under every component, for the named readout."""
    n_components, width = believed.means.shape
    out = np.empty((len(X), n_components))
    plugged = covariances(name, kind, believed, floor)
    for k in range(n_components):
        kappa, mean, nu, v = believed.kappa[k], believed.means[k], believed.nu[k], believed.scale[k]
        if name in ("mode", "mean"):
            out[:, k] = stats.multivariate_normal(mean, plugged[k]).logpdf(X)
        elif name == "predictive":
            grow = (kappa + 1) / kappa
            if kind == "diag":
                out[:, k] = stats.t(nu, mean, np.sqrt(grow * v / nu)).logpdf(X).sum(axis=1)
            elif kind == "spherical":
                out[:, k] = stats.multivariate_t(mean, grow * v / nu * np.eye(width), df=nu * width).logpdf(X)
            else:
                df = nu - width + 1
                out[:, k] = stats.multivariate_t(mean, grow * v / df, df=df).logpdf(X)
        else:
            centred = X - mean
            if kind in ("full", "tied"):
                expected = sum(special.psi((nu + 1 - i) / 2) for i in range(1, width + 1))
                expected += width * np.log(2) - np.linalg.slogdet(v)[1]
                precision = nu * np.linalg.inv(v)
            else:  # every column has a precision ~ Gamma(shape, rate)
                shape = nu / 2 * (width if kind == "spherical" else 1)
                rate = np.broadcast_to(v, width) / 2 * (width if kind == "spherical" else 1)
                expected = (special.psi(shape) - np.log(rate)).sum()
                precision = np.diag(shape / rate)
            distance = np.einsum("ni,ij,nj->n", centred, precision, centred)
            out[:, k] = 0.5 * (expected - width * np.log(2 * np.pi) - width / kappa - distance)
    return out


def log_weights(name, concentration):
    """Log-weights of a Dirichlet belief."""
    if name == "mode":
        return np.log((concentration - 1) / (concentration.sum() - len(concentration)))
    if name == "expect_log":
        return special.psi(concentration) - special.psi(concentration.sum())
    return np.log(concentration / concentration.sum())


# The loop


def sweep(name, kind, prior, concentration, start, n_eff, X, steps, gains=None, weights=None, labels=None):
    """Row by row: E-step at the readout of n_eff * statistics, fold with step g, move the average.

    `start` is (count, first, second) per observation about the origin of `prior`. Returns statistics, average, n_eff
    and scores.
    """
    mean = [np.array(part) for part in start]
    average = [np.array(part) for part in start]
    scores = np.empty(len(X))
    for i, x in enumerate(X - prior.origin):
        weight = 1.0 if weights is None else weights[i]
        count, first, second = (n_eff * part for part in mean)
        believed = belief(kind, prior, count, first, second)
        joint = log_densities(name, kind, believed, prior.floor, x[None]) + log_weights(name, concentration + count)
        resp, score = responsibilities(joint, None if labels is None else labels[i : i + 1])
        scores[i] = score[0]
        fresh = totals(kind, x[None], resp)
        g = steps[i]
        mean = [(1 - g) * old + g * new for old, new in zip(mean, fresh, strict=True)]
        n_eff = 1 / ((1 - g) ** 2 / n_eff + g**2 / weight)
        if gains is not None:
            average = [old + gains[i] * (new - old) for old, new in zip(average, mean, strict=True)]
    return mean, average, n_eff, scores


def folds(plan, state, batch):
    """Full batches by the library's own parts, one after the other: summarize, fold, average, read out.

    Returns statistics, average, progress, parameters and scores.
    """
    statistics, average, progress, parameters = state.statistics, state.records.get("average"), state.progress, state.parameters
    scores = np.empty(len(batch))
    for at in range(0, len(batch), plan.batch_rows(plan.model)):
        rows = slice(at, at + plan.batch_rows(plan.model))
        part = batch[rows]
        size = part.row_weights.sum()
        summary = plan.model.summarize(parameters, part, scores=scores[rows])
        step = float(plan.schedule(plan.model)(progress, np.array([size]), plan.batch_rows(plan.model))[0])
        statistics = statistics.toward(summary.mean, step)
        progress = progress.after(len(part), size, step, size / plan.batch_rows(plan.model))
        if average is not None:
            gain = min(1.0, (1.0 + plan.algorithm.average_exponent) * size / progress.weight_seen)
            if plan.half_life is not None:
                gain = max(gain, 1.0 - 0.5 ** (size / plan.half_life))
            average = average.toward(statistics, gain)
        by_rows = plan.algorithm.counts_rows and plan.half_life is None
        count = progress.weight_seen if by_rows else progress.n_eff
        parameters = plan.model.readout(plan.algorithm.readout, state.base.prior, statistics, count)
    return statistics, average, progress, parameters, scores


# Schedules: the steps of folds that weigh `sizes`


def equal_steps(sizes, half_life=None, mass=0.0):
    """Steps m / (n + m), n fading by half every `half_life` rows."""
    steps = []
    for size in sizes:
        mass = mass * (1.0 if half_life is None else 0.5 ** (size / half_life)) + size
        steps.append(size / mass)
    return np.array(steps)


def timed_steps(rate, sizes, batch_size=1.0, time=0.0):
    """Steps rate(t), t being time in batches; a batch filled to a part takes that part of a step, geometrically."""
    steps = []
    for size in sizes:
        time += size / batch_size
        steps.append(1 - (1 - min(rate(time), 1.0)) ** (size / batch_size))
    return np.array(steps)


def forgetting_sum(zeta, values):
    """Paper 000, eq. 4-5 as printed; zeta[t] and values[t] belong to fold t + 1. Returns (<f>_t, eta_t) for every t."""
    averages, etas = [], []
    for t in range(len(values)):
        total, normaliser = 0.0, 0.0
        for tau in range(t + 1):
            kept = 1.0
            for s in range(tau + 1, t + 1):
                kept *= zeta[s]
            total = total + kept * values[tau]
            normaliser += kept
        averages.append(total / normaliser)
        etas.append(1 / normaliser)
    return np.array(averages), np.array(etas)
