"""Records of a mixture: prior and parameters. Statistics are those of its family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

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
