"""Section 4.2 of paper 001: the acceptance probability as printed and as it should be, on documents small enough to count.

One document, many chains side by side; what is expected of the tokens of each topic is known by counting every way to deal
the tokens of each word to the topics.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import gammaln

from headwater.core.batch import Batch, drop_zeros
from headwater.core.contracts import Inference
from headwater.core.statistics import Array
from headwater.models.topics import Topics
from pages.results import Figures
from papers.latent_factors_scale import Scale

COUNTS = np.array([12.0, 9.0, 6.0, 3.0])  # tokens of each word
TOPICS = np.array([[0.55, 0.25, 0.10, 0.10], [0.20, 0.50, 0.20, 0.10], [0.10, 0.15, 0.35, 0.40]])
ALPHAS = (0.1, 0.5, 1.0, 5.0)
KAPPA = 30.0
PRINTED, NO_PRIOR, RIGHT = "as printed", "right exponents, no prior", "right exponents and prior"
METROPOLIS, GIBBS = "the library's Metropolis", "the library's Gibbs"


def dealings(count: int, topics: int) -> Array:
    """Every way to deal so many tokens to the topics."""
    found = [deal for deal in product(range(count + 1), repeat=topics - 1) if sum(deal) <= count]
    return np.array([(*deal, count - sum(deal)) for deal in found])


def exact_tokens(counts: Array, topics: Array, alpha: float) -> Array:
    """E[N_k | words] by enumeration: p(z | w) is proportional to prod theta * prod Gamma(N_k + alpha)."""
    held, weight = np.zeros((1, len(topics))), np.zeros(1)
    for word, count in enumerate(counts):
        deals = dealings(int(count), len(topics))
        ways = gammaln(count + 1.0) - gammaln(deals + 1.0).sum(axis=1) + deals @ np.log(topics[:, word])
        held = (held[:, None] + deals[None]).reshape(-1, len(topics))
        weight = (weight[:, None] + ways[None]).ravel()
        held, at = np.unique(held, axis=0, return_inverse=True)  # only the totals matter from here on
        peak = weight.max()
        weight = peak + np.log(np.bincount(at.ravel(), np.exp(weight - peak)))
    weight = weight + gammaln(held + alpha).sum(axis=1)
    shares = np.exp(weight - weight.max())
    return np.asarray(shares @ held / shares.sum())


def log_proposal_ratio(kappa: float, current: Array, proposed: Array, as_printed: bool) -> Array:
    """log q(H | H*) / q(H* | H). Printed, both products of powers are those of H, and cancel."""
    total = (gammaln(kappa * current + 1.0) - gammaln(kappa * proposed + 1.0)).sum(axis=-1)
    if as_printed:
        return np.asarray(total)
    powers = kappa * proposed * np.log(current) - kappa * current * np.log(proposed)
    return np.asarray(total + powers.sum(axis=-1))


def metropolis(
    counts: Array, topics: Array, alpha: float, draws: int, chains: int, as_printed: bool, with_prior: bool, seed: int = 0
) -> tuple[Array, float]:
    """Expected tokens of each topic by chains of draws, the first quarter thrown away, and the share of accepted proposals."""
    rng = np.random.default_rng(np.random.SeedSequence((42, seed)))
    current, accepted, total = np.full((chains, len(topics)), 1.0 / len(topics)), 0, np.zeros(len(topics))

    def log_target(proportions: Array) -> Array:
        value = np.log(proportions @ topics) @ counts
        return value + (alpha - 1.0) * np.log(proportions).sum(axis=-1) if with_prior else value

    target, burn_in = log_target(current), draws // 4
    for draw in range(draws):
        proposed = rng.standard_gamma(KAPPA * current + 1.0)
        proposed = np.maximum(proposed / proposed.sum(axis=1, keepdims=True), 1e-300)
        after = log_target(proposed)
        ratio = after - target + log_proposal_ratio(KAPPA, current, proposed, as_printed)
        taken = np.log(rng.random(chains)) < ratio
        current, target = np.where(taken[:, None], proposed, current), np.where(taken, after, target)
        accepted += int(taken.sum())
        if draw >= burn_in:
            total += ((counts / (current @ topics)) @ topics.T * current).mean(axis=0)
    return total / (draws - burn_in), accepted / (draws * chains)


def library(sampler: str, counts: Array, topics: Array, alpha: float, draws: int, chains: int) -> tuple[Array, float | None]:
    """The same by a sampler of the library: a chain for each copy of the document."""
    model: Any = Topics(len(topics), 1.0, alpha)
    rows = drop_zeros(np.tile(counts, (chains, 1)))
    inference = Inference("simulated", sampler, draws // 4, draws - draws // 4, KAPPA)
    summary = model.summarize(model.given(topics), Batch(rows), inference=inference)
    accepted = float(summary.statistics.accepted[0]) / chains
    return summary.statistics.length[0] / chains, accepted if sampler == "metropolis" else None


def ratio_set(alpha: float, scale: Scale) -> Figures:
    """The largest error in the expected tokens of a topic, by version of the sampler."""
    exact = exact_tokens(COUNTS, TOPICS, alpha)
    own = partial(metropolis, COUNTS, TOPICS, alpha, scale.draws, scale.chains)
    found = {PRINTED: own(True, False), NO_PRIOR: own(False, False), RIGHT: own(False, True)}
    for name, sampler in ((METROPOLIS, "metropolis"), (GIBBS, "gibbs")):
        found[name] = library(sampler, COUNTS, TOPICS, alpha, scale.draws, scale.chains)  # type: ignore[assignment]
    return {
        "alpha": alpha, "tokens": float(COUNTS.sum()), "words": len(COUNTS), "topics": len(TOPICS), "kappa": KAPPA,
        "draws": scale.draws, "chains": scale.chains, "exact": exact.tolist(),
        "errors": {name: float(np.abs(value - exact).max()) for name, (value, _) in found.items()},
        "acceptance": {name: share for name, (_, share) in found.items()},
    }  # fmt: skip
