"""Slow, obvious twins of the multinomial kernels and of their loop: dense NumPy, SciPy and Python loops, from the equations.

Tables are (V, K) and dense. `groups` (V,) names the columns that are normalised together; None if all are. A Dirichlet prior is
an array (V, K) of parameters, and `shift` what a mode takes off them (1 everywhere in the textbook).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import special

READOUTS = ("mode", "mean", "expect_log", "predictive")


# E-step


def log_joint(log_weights, log_probabilities, X):
    """(n, K): log of lambda_c * prod_a phi_ac^x_a."""
    out = np.empty((len(X), len(log_weights)))
    for i, x in enumerate(X):
        for k, log_weight in enumerate(log_weights):
            out[i, k] = log_weight + sum(x[a] * log_probabilities[a, k] for a in np.flatnonzero(x))
    return out


def responsibilities(joint, labels=None):
    """Responsibilities (n, K) and the score of every row; a label clamps its row, which scores its joint log-probability."""
    resp, scores = np.empty_like(joint), np.empty(len(joint))
    for i, row in enumerate(joint):
        if labels is not None and labels[i] >= 0:
            resp[i], scores[i] = np.eye(len(row))[labels[i]], row[labels[i]]
        else:
            resp[i], scores[i] = special.softmax(row), special.logsumexp(row)
    return resp, scores


def totals(X, resp, weights=None, groups=None):
    """Rows (K,), counts of each group (G, K) and of each column (V, K)."""
    resp = resp if weights is None else resp * weights[:, None]
    table = X.T @ resp
    return resp.sum(axis=0), group_sums(table, groups), table


def group_sums(table, groups=None):
    """Sums over the columns of each group (G, ...)."""
    if groups is None:
        return table.sum(axis=0, keepdims=True)
    return np.array([table[groups == g].sum(axis=0) for g in range(max(groups) + 1)])


# Beliefs and readouts


def in_groups(sums, groups, width):
    """Sums of groups (G, K), a row for each column (V, K)."""
    return np.broadcast_to(sums, (width, sums.shape[1])) if groups is None else sums[groups]


def log_probabilities(name, belief, shift=1.0, groups=None):
    """Return log-probabilities (V, K) under the named readout of a Dirichlet belief."""
    believed = belief - shift if name == "mode" else belief
    sums = in_groups(group_sums(believed, groups), groups, len(believed))
    if name == "expect_log":
        return special.psi(believed) - special.psi(sums)
    with np.errstate(divide="ignore"):
        return np.log(believed) - np.log(sums)


def log_weights(name, concentration):
    """Log-weights of a Dirichlet belief (K,)."""
    if name == "mode":
        return np.log(concentration - 1) - np.log((concentration - 1).sum())
    if name == "expect_log":
        return special.psi(concentration) - special.psi(concentration.sum())
    return np.log(concentration / concentration.sum())


def polya(belief, X, groups=None):
    """(n, K): log-probability of a row in the order it was drawn, with the probabilities of each group integrated out."""
    out = np.zeros((len(X), belief.shape[1]))
    of_group = np.zeros(len(belief), dtype=int) if groups is None else np.asarray(groups)
    for i, x in enumerate(X):
        for g in range(of_group.max() + 1):
            own, counts = belief[of_group == g], x[of_group == g]
            out[i] += special.gammaln(own.sum(axis=0)) - special.gammaln(own.sum(axis=0) + counts.sum())
            out[i] += (special.gammaln(own + counts[:, None]) - special.gammaln(own)).sum(axis=0)
    return out


def log_densities(name, belief, X, shift=1.0, groups=None):
    """Return log-probabilities (n, K) of every row under every component, for the named readout."""
    if name == "predictive":
        return polya(belief, X, groups)
    return log_joint(np.zeros(belief.shape[1]), log_probabilities(name, belief, shift, groups), X)


# The loop


def sweep(
    name, prior, shift, concentration, start, n_eff, X, steps, gains=None, weights=None, labels=None, groups=None, average=None
):
    """Row by row: E-step at the readout of prior + n_eff * S, then S <- (1 - s) S + s r x, then A <- (1 - g) A + g S.

    `start` is (count, table), means per row; the average starts there, too, unless it is given. Returns statistics, average,
    n_eff and scores.
    """
    count, table = (np.array(part) for part in start)
    average_count, average_table = (np.array(part) for part in (average or start))
    scores = np.empty(len(X))
    for i, x in enumerate(X):
        weight = 1.0 if weights is None else weights[i]
        joint = log_densities(name, prior + n_eff * table, x[None], shift, groups)
        joint += log_weights(name, concentration + n_eff * count)
        resp, score = responsibilities(joint, None if labels is None else labels[i : i + 1])
        scores[i] = score[0]
        s = steps[i]
        count = (1 - s) * count + s * resp[0]
        table = (1 - s) * table + s * np.outer(x, resp[0])
        n_eff = 1 / ((1 - s) ** 2 / n_eff + s**2 / weight)
        if gains is not None:
            average_count = (1 - gains[i]) * average_count + gains[i] * count
            average_table = (1 - gains[i]) * average_table + gains[i] * table
    return (count, table), (average_count, average_table), n_eff, scores


# Paper 000


def boem(alpha, beta, X, estimate="mean"):
    """Equations (7) to (12) as printed: recursions of the estimates with the adaptive rates r_t and eta_c.

    `alpha` (K,) and `beta` (V, K) are the prior, at whose estimate it starts, as the derivation of (9) and (12) has it.
    The printed rates are those of the mean; a mode has denominators that are smaller by n_c and n_a. Where a component has no
    counts, (12) is 0/0 times 0 and nothing is moved. Yields lambda (K,) and phi (V, K) after every row.
    """
    less = 1.0 if estimate == "mode" else 0.0
    weights = (alpha - less) / (alpha - less).sum() if (alpha > less).all() else np.full(len(alpha), 1 / len(alpha))
    phi = (beta - less) / (beta - less).sum(axis=0)
    heard = np.zeros(len(alpha))
    for t, x in enumerate(X, start=1):
        xi = responsibilities(log_joint(np.log(weights), np.log(phi), x[None]))[0][0]
        r = 1 / ((alpha - less).sum() + t)  # (10)
        weights = weights + r * (xi - weights)  # (9)
        h = xi * x.sum()
        heard = heard + h
        eta = h / ((beta - less).sum(axis=0) + heard)  # (11)
        for k in np.flatnonzero(h > 0):
            phi[:, k] += eta[k] * (x * xi[k] / h[k] - phi[:, k])  # (12)
        yield weights.copy(), phi.copy()


def em_pass(weights, phi, X, alpha=1.0, beta=1.0, sample_weight=None):
    """One pass of MAP-EM (section 2): weights (K,) and phi (V, K) after it, and the log-likelihood before."""
    with np.errstate(divide="ignore"):
        resp, scores = responsibilities(log_joint(np.log(weights), np.log(phi), X))
    count, _, table = totals(X, resp, sample_weight)
    count, table = count + alpha - 1, table + beta - 1
    size = np.ones(len(X)) if sample_weight is None else sample_weight
    return count / count.sum(), table / table.sum(axis=0), size @ scores


# Markov chains


def chain_log_probability(start, steps, sequence):
    """Log-probability of one sequence: the first symbol, and every step."""
    total = np.log(start[sequence[0]]) if len(sequence) else 0.0
    for one, other in pairwise(sequence):
        total += np.log(steps[one, other])
    return total


def chain_predictive(start, steps, sequence):
    """The same by the chain rule of Pólya's urns: `start` (S,) and `steps` (S, S) are their balls, and each draw adds one."""
    start, steps, total = np.array(start), np.array(steps), 0.0
    if len(sequence):
        total = np.log(start[sequence[0]] / start.sum())
    for one, other in pairwise(sequence):
        total += np.log(steps[one, other] / steps[one].sum())
        steps[one, other] += 1
    return total


def chain_counts(sequences, n_symbols):
    """First symbols (n, S) and steps (n, S, S) of sequences."""
    first, steps = np.zeros((len(sequences), n_symbols)), np.zeros((len(sequences), n_symbols, n_symbols))
    for i, sequence in enumerate(sequences):
        if len(sequence):
            first[i, sequence[0]] = 1
        for one, other in pairwise(sequence):
            steps[i, one, other] += 1
    return first, steps
