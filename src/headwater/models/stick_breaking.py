"""A mixture whose weights are sticks broken off one after another: a Dirichlet process, truncated at K components.

Component k takes a part v_k ~ Beta(1, gamma) of what those before it have left, w_k = v_k prod_{j<k} (1 - v_j). With counts N
the belief is v_k ~ Beta(1 + N_k, gamma + sum_{j>k} N_j) (Blei and Jordan, 2006). Components that are not needed stay empty.
The last stick breaks like the others, and what it leaves belongs to no component, as scikit-learn has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np
from scipy.special import betaln, digamma

from headwater.core.batch import Batch
from headwater.core.state import Summary
from headwater.core.statistics import Array
from headwater.families.family_core import Params, Prior, Stats
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters, MixturePrior


def stick_belief(concentration: Array, count: Array) -> tuple[Array, Array]:
    """Return both parameters (K,) of the Beta of every stick; the concentration of the process stands in every entry."""
    after = np.append(np.cumsum(count[::-1])[-2::-1], 0.0)
    return 1.0 + count, concentration + after


def mean_log_weights(concentration: Array, count: Array) -> Array:
    """Return the logarithms of the expected weights, which are scaled to sum to one."""
    taken, left = stick_belief(concentration, count)
    total = np.log(taken + left)
    log_weights = np.log(taken) - total + np.append(0.0, np.cumsum(np.log(left) - total)[:-1])
    return np.asarray(log_weights - np.logaddexp.reduce(log_weights))


def expected_log_weights(concentration: Array, count: Array) -> Array:
    """Return the expected logarithms of the weights."""
    taken, left = stick_belief(concentration, count)
    total = digamma(taken + left)
    return np.asarray(digamma(taken) - total + np.append(0.0, np.cumsum(digamma(left) - total)[:-1]))


def stick_divergence(concentration: Array, count: Array) -> float:
    """Return KL(belief || prior) of all sticks."""
    taken, left = stick_belief(concentration, count)
    total = digamma(taken + left)
    each = (
        betaln(1.0, concentration) - betaln(taken, left)
        + (taken - 1.0) * (digamma(taken) - total) + (left - concentration) * (digamma(left) - total)
    )  # fmt: skip
    return float(each.sum())


def stick_marginals(concentration: Array, count: Array) -> tuple[Array, Array]:
    """Return both parameters (K,) of the Beta that has the mean and the variance of each weight, before they are scaled."""
    taken, left = stick_belief(concentration, count)
    total = taken + left
    before, squared = (
        np.append(1.0, np.cumprod(part)[:-1]) for part in (left / total, left * (left + 1.0) / (total * (total + 1.0)))
    )
    mean, second = taken / total * before, taken * (taken + 1.0) / (total * (total + 1.0)) * squared
    rows = mean * (1.0 - mean) / np.maximum(second - mean**2, 1e-300) - 1.0
    return mean * rows, (1.0 - mean) * rows


@dataclass(frozen=True)
class StickBreakingMixture(Mixture[Prior, Stats, Params], Generic[Prior, Stats, Params]):
    """A mixture with a truncated Dirichlet process for its weights, which variational Bayes learns."""

    @property
    def ways(self) -> frozenset[tuple[str, str]]:
        """Exact E-steps of variational Bayes."""
        return frozenset({("exact", "expect_log")})

    def log_weights(self, name: str, prior: MixturePrior[Prior], count: Array) -> Array:
        """Log-weights of the belief, or what the readout puts in their place; modes are replaced by means."""
        read = expected_log_weights if name == "expect_log" else mean_log_weights
        return read(prior.concentration, count)

    def weights_divergence(self, prior: MixturePrior[Prior], count: Array) -> float:
        """KL(belief || prior) of the weights."""
        return stick_divergence(prior.concentration, count)

    def weight_marginals(self, prior: MixturePrior[Prior], count: Array) -> tuple[Array, Array]:
        """Both parameters (K,) of the Beta with the mean and the variance of each weight."""
        return stick_marginals(prior.concentration, count)

    def climb(
        self,
        name: str,
        prior: MixturePrior[Prior],
        summary: Summary[Stats],
        batch: Batch,
        passes: int,
        tol: float,
        before: float,
    ) -> tuple[Summary[Stats], MixtureParameters[Params], Array, bool] | None:
        """There is no fast path: kernels know Dirichlet weights only."""
        return None

    def sweeps_rows(self, prior: MixturePrior[Prior]) -> bool:
        """Rows are folded as batches of one: kernels know Dirichlet weights only."""
        return False
