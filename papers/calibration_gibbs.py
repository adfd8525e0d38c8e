"""The exact posterior of a mixture of Gaussians, by Gibbs sampling: what a belief would be if nothing were approximated.

All simulations are sampled side by side. Each chain begins at the truth, which is itself a draw from the posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from headwater.core.statistics import Array
from papers.calibration_ranks import PROBABILITIES, Observed, Way, ambiguity, gathered, placed
from papers.calibration_subjects import Drawn, Gaussians, wishart_factors


def chains(subject: Gaussians, drawn: Sequence[Drawn], sweeps: int, seed: int = 0) -> dict[str, Array]:
    """Draws (simulations, sweeps, K, ...) of weights, means and covariances."""
    rng = np.random.default_rng(np.random.SeedSequence((10, seed)))
    rows = np.stack([one.rows[0] for one in drawn])
    k, width = subject.components, subject.columns
    weights = np.stack([one.start["weights_init"] for one in drawn])
    means = np.stack([one.start["means_init"] for one in drawn])
    factor = np.linalg.cholesky(np.stack([one.start["precisions_init"] for one in drawn]))
    kept: dict[str, list[Array]] = {"weights": [], "means": [], "covariances": []}
    for _ in range(sweeps):
        scaled = np.einsum("snki,skij->snkj", rows[:, :, None] - means[:, None], factor)
        log_det = np.log(np.diagonal(factor, axis1=2, axis2=3)).sum(axis=2)
        joint = (np.log(weights) + log_det)[:, None] - 0.5 * (scaled**2).sum(axis=3)
        of = np.argmax(joint + rng.gumbel(size=joint.shape), axis=2)[..., None] == np.arange(k)
        counts, first = of.sum(axis=1), np.einsum("snk,sni->ski", of, rows)
        second = np.einsum("snk,sni,snj->skij", of, rows, rows)
        weights = rng.gamma(subject.concentration + counts)
        weights /= weights.sum(axis=1, keepdims=True)
        kappa = subject.mean_precision + counts
        centre = first / kappa[..., None]
        scale = subject.dof * np.eye(width) + second - kappa[..., None, None] * centre[..., :, None] * centre[..., None, :]
        factor = wishart_factors(rng, subject.dof + counts, scale)
        noise = rng.standard_normal(means.shape)[..., None]
        means = centre + np.linalg.solve(np.swapaxes(factor, -1, -2), noise)[..., 0] / np.sqrt(kappa)[..., None]
        kept["weights"].append(weights)
        kept["means"].append(means)
        kept["covariances"].append(np.linalg.inv(factor @ np.swapaxes(factor, -1, -2)))
    return {name: np.stack(many, axis=1) for name, many in kept.items()}


def nearest_order(means: Array, covariances: Array, model: object) -> Array:
    """The components of each draw (T, K) in the order of the model's, by Jeffreys' divergence."""
    learned_means, learned = model.means_, model.covariances_  # type: ignore[attr-defined]
    inverse, inverses = np.linalg.inv(covariances), np.linalg.inv(learned)
    gap = means[:, :, None] - learned_means
    cost = np.einsum("tabi,taij,tabj->tab", gap, inverse, gap) + np.einsum("tabi,bij,tabj->tab", gap, inverses, gap)
    cost += np.einsum("taij,bji->tab", inverse, learned) + np.einsum("bij,taji->tab", inverses, covariances)
    orders = np.array([*permutations(range(means.shape[1]))])
    totals = cost[:, orders, np.arange(means.shape[1])].sum(axis=2)
    return np.asarray(orders[totals.argmin(axis=1)])


def observe_exact(subject: Gaussians, way: Way, drawn: Sequence[Drawn], sweeps: int) -> Observed:
    """Ranks of the truth in the exact posterior, whose components are named after those that a way to learn has found."""
    sampled = chains(subject, drawn, sweeps)
    burnt = sweeps // 5
    found, shared = [], []
    for at, one in enumerate(drawn):
        model = way.learned(subject, one, at)
        posterior = {name: many[at, burnt:] for name, many in sampled.items()}
        order = nearest_order(posterior["means"], posterior["covariances"], model)
        posterior["weights"] = posterior["weights"][..., None]
        posterior["variances"] = np.diagonal(posterior.pop("covariances"), axis1=2, axis2=3)
        start = one.start
        own = nearest_order(start["means_init"][None], np.linalg.inv(start["precisions_init"])[None], model)[0]
        places = np.arange(len(order))[:, None]
        found.append(
            {
                name: placed(truth[own], np.quantile(posterior[name][places, order], PROBABILITIES, axis=0))
                for name, truth in one.truth.items()
            }
        )
        shared.append(ambiguity(model, one.rows[0]))
    return gathered(found, np.stack(shared))
