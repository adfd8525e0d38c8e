"""Slow, obvious twins of the topic kernels: enumeration, NumPy and Python loops, from the equations.

A document is a list of words, one for each token, or a row of counts (V,). Topics are (V, K), alpha (K,).
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
from scipy import special, stats

# All assignments of topics to tokens


def assignments(n_topics, length):
    return np.array(list(product(range(n_topics), repeat=length)), dtype=int).reshape(-1, length)


def topic_counts(chosen, n_topics, weights=None):
    """Return the tokens of each topic (K,), or their weight."""
    return np.bincount(chosen, weights=weights, minlength=n_topics).astype(float)


def log_joint(words, chosen, topics, alpha):
    """log p(words, their topics), the proportions integrated out."""
    held = topic_counts(chosen, len(alpha))
    emitted = sum(np.log(topics[word, k]) for word, k in zip(words, chosen, strict=True))
    rising = (special.gammaln(held + alpha) - special.gammaln(alpha)).sum()
    return emitted + rising + special.gammaln(alpha.sum()) - special.gammaln(alpha.sum() + len(words))


def conditional(words, chosen, i, topics, alpha, weights=None):
    """p(topic of token i | those of the others): topics * (n + alpha)."""
    others = np.delete(np.arange(len(words)), i)
    held = topic_counts(np.asarray(chosen)[others], len(alpha), None if weights is None else np.asarray(weights)[others])
    found = topics[words[i]] * (held + alpha)
    return found / found.sum()


def posterior(words, topics, alpha):
    """p(assignment | words) of each of them, and log p(words)."""
    joint = np.array([log_joint(words, chosen, topics, alpha) for chosen in assignments(len(alpha), len(words))])
    return special.softmax(joint), float(special.logsumexp(joint))


def swept(words, topics, alpha, sweeps, weights=None):
    """Return the probability of each assignment: tokens are placed in order, and then redrawn this many times."""
    k, length = len(alpha), len(words)
    every = assignments(k, length)
    weights = np.ones(length) if weights is None else np.asarray(weights)
    now = np.ones(len(every))
    for i in range(length):
        for row, chosen in enumerate(every):
            held = topic_counts(chosen[:i], k, weights[:i])
            share = topics[words[i]] * (held + alpha)
            now[row] *= share[chosen[i]] / share.sum()
    for _ in range(sweeps):
        for i in range(length):
            after = np.zeros(len(every))
            for row, chosen in enumerate(every):
                share = conditional(words, chosen, i, topics, alpha, weights)
                for topic in range(k):
                    after[row + (topic - chosen[i]) * k ** (length - 1 - i)] += now[row] * share[topic]
            now = after
    return now


def expected(words, probabilities, topics, alpha, weights=None):
    """Return expected tokens of each word in each topic (V, K), expected proportions (K,) and expected tables (K + 1,)."""
    weights = np.ones(len(words)) if weights is None else np.asarray(weights)
    target, share, found = np.zeros(topics.shape), np.zeros(len(alpha)), np.zeros(len(alpha) + 1)
    for probability, chosen in zip(probabilities, assignments(len(alpha), len(words)), strict=True):
        held = topic_counts(chosen, len(alpha), weights)
        np.add.at(target, (words, chosen), probability * weights)
        share += probability * (held + alpha) / (weights.sum() + alpha.sum())
        found += probability * tables(held, alpha)
    return target, share, found


def tables(held, alpha):
    """alpha (psi(n + alpha) - psi(alpha)) of each topic, and psi(N + A) - psi(A)."""
    own = alpha * (special.digamma(held + alpha) - special.digamma(alpha))
    return np.append(own, special.digamma(held.sum() + alpha.sum()) - special.digamma(alpha.sum()))


# Metropolis-Hastings on the proportions


def log_step(kappa, current, proposed, alpha):
    """log of q(current | proposed) p(proposed) / (q(proposed | current) p(current)), q(x | y) = Dirichlet(kappa y + 1)."""
    log = stats.dirichlet.logpdf
    back, forth = log(current, kappa * proposed + 1.0), log(proposed, kappa * current + 1.0)
    return back - forth + log(proposed, alpha) - log(current, alpha)


def printed_step(kappa, current, proposed, alpha):
    """Return the ratio as printed in paper 001: exponents without their stars, which cancel, and no prior."""
    return (special.gammaln(kappa * current + 1.0) - special.gammaln(kappa * proposed + 1.0)).sum()


def metropolis(counts, topics, alpha, kappa, step, draws, rng):
    """Expected tokens of each topic (K,) along one chain, with this step for the ratio of proposals."""
    current, held = np.full(len(alpha), 1.0 / len(alpha)), np.zeros(len(alpha))
    for _ in range(draws):
        proposed = rng.dirichlet(kappa * current + 1.0)
        ratio = counts @ np.log((topics @ proposed) / (topics @ current)) + step(kappa, current, proposed, alpha)
        if np.log(rng.uniform()) < ratio:
            current = proposed
        held += counts @ (topics * current / (topics @ current)[:, None]) / draws
    return held


# Deterministic E-steps


def mean_field(counts, topics, alpha, iterations):
    """Hoffman, Blei and Bach (2010), algorithm 1: gamma, statistic (V, K) and bound after so many iterations."""
    gamma = alpha + counts.sum() / len(alpha)
    for _ in range(iterations):
        gamma = alpha + counts @ shares(gamma, topics)
    phi, log_theta = shares(gamma, topics), expect_log(gamma)
    words = counts > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        tokens = np.where(phi > 0.0, phi * (log_theta + np.log(topics) - np.log(phi)), 0.0)[words]
    bound = counts[words] @ tokens.sum(axis=1)
    bound += special.gammaln(alpha.sum()) - special.gammaln(alpha).sum() + (alpha - 1.0) @ log_theta
    bound -= special.gammaln(gamma.sum()) - special.gammaln(gamma).sum() + (gamma - 1.0) @ log_theta
    return gamma, counts[:, None] * phi, bound


def expect_log(gamma):
    return special.digamma(gamma) - special.digamma(gamma.sum())


def shares(gamma, topics):
    """q(topic | word), (V, K)."""
    found = topics * np.exp(expect_log(gamma))
    return found / found.sum(axis=1, keepdims=True)


def collapsed(words, counts, topics, alpha, burn_in):
    """SCVB0 (Foulds et al., 2013), eq. 5 and 9 with clumping: N_theta, the statistic (V, K) and the score of the last sweep."""
    length, target, score, step = counts.sum(), np.zeros(topics.shape), 0.0, 0
    held = length * alpha / alpha.sum()
    for sweep in range(burn_in + 1):
        for word, count in zip(words, counts, strict=True):
            gamma = topics[word] * (held + alpha)
            likelihood = gamma.sum() / (length + alpha.sum())
            gamma = gamma / gamma.sum()
            step += 1
            keep = (1.0 - (10.0 + step) ** -0.9) ** count
            held = keep * held + (1.0 - keep) * length * gamma
            if sweep == burn_in:
                target[word] += count * gamma
                score += count * np.log(likelihood)
    return held, target, score


# Beliefs


def topic_table(name, table, beta):
    """Probabilities (V, K), or exp(E[log]), under the belief beta + table."""
    belief = beta + table
    if name == "expect_log":
        return np.exp(special.digamma(belief) - special.digamma(belief.sum(axis=0)))
    return belief / belief.sum(axis=0)


def completed(counts, topics, proportions):
    """log p(words | proportions) of each document (n, V)."""
    return float(sum(row @ np.log(topics @ share) for row, share in zip(counts, proportions, strict=True)))


def counts_of(words, width):
    found = np.zeros(width)
    for word, count in Counter(words).items():
        found[word] = count
    return found
