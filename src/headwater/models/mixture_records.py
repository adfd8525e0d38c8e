"""Records of a mixture: prior and parameters. Statistics are those of its family. And how far weights are from their prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from scipy.special import digamma, gammaln

from headwater.core.statistics import Array
from headwater.families.family_core import Params, Prior


@dataclass(frozen=True)
class MixturePrior(Generic[Prior]):
    """Dirichlet concentration of the weights (K,) and the prior of the components."""

    concentration: Array
    components: Prior


@dataclass(frozen=True)
class MixtureParameters(Generic[Params]):
    """Log-weights, or what a readout puts in their place, and the parameters of the components."""

    log_weights: Array
    components: Params


def dirichlet_divergence(before: Array, after: Array) -> float:
    """Return KL(belief || prior) of weights with these Dirichlet parameters (K,)."""
    return float(
        gammaln(after.sum()) - gammaln(after).sum() - gammaln(before.sum()) + gammaln(before).sum()
        + ((after - before) * (digamma(after) - digamma(after.sum()))).sum()
    )  # fmt: skip
