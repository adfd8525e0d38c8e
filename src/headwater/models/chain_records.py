"""Records of a hidden Markov model: statistics, prior, parameters, and what is carried between batches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Generic, Self

import numpy as np
from scipy.special import digamma, gammaln

from headwater.core.statistics import Array, Params, Prior, Statistics, Stats

# Default Dirichlet parameters of first states and of transitions, in counts.
DEFAULT_PRIOR = 0.1
TINY = 1e-300


@dataclass(frozen=True)
class ChainStatistics(Statistics, Generic[Stats]):
    """States that sequences began in (K,), passages (K, K), and the statistics of the family."""

    start: Array
    steps: Array
    emissions: Stats

    def averaged(self, newest: Self, gain: float) -> Self:
        """Return these statistics, a running average, moved towards the newest."""
        moved = self.toward(replace(newest, emissions=self.emissions), gain)
        return replace(moved, emissions=self.emissions.averaged(newest.emissions, gain))


@dataclass(frozen=True)
class ChainPrior(Generic[Prior, Params]):
    """Dirichlet parameters of the start (K,) and of the passages from each state (K, K), and the prior of the family.

    A parameter of 0 means that no sequence begins in a state, or that a transition does not exist: its probability is 0
    whatever is counted.

    `start_shift` and `steps_shift` are what a mode takes off them. `fixed` are parameters that stay as they are, if some do.
    """

    start: Array
    steps: Array
    start_shift: Array
    steps_shift: Array
    emissions: Prior
    fixed: ChainParameters[Params] | None = None

    def confined(self, parameters: ChainParameters[Params]) -> ChainPrior[Prior, Params]:
        """Return the prior under which probabilities that are 0 in these parameters stay 0."""
        begins, passes = parameters.start > 0.0, parameters.transitions > 0.0
        if begins.all() and passes.all():
            return self
        return replace(
            self,
            start=np.where(begins, self.start, 0.0),
            steps=np.where(passes, self.steps, 0.0),
            start_shift=np.where(begins, self.start_shift, 0.0),
            steps_shift=np.where(passes, self.steps_shift, 0.0),
        )


@dataclass(frozen=True)
class ChainParameters(Generic[Params]):
    """Probabilities, or what a readout puts in their place, and the parameters of the family."""

    start: Array
    transitions: Array
    emissions: Params


@dataclass(frozen=True)
class Carry:
    """What is known of open sequences: their states after the last row that was folded, by the number of the sequence.

    `apart` is for learning step by step: the statistics given each state (K, size), their mean at the time, and how much was
    `left` of old ones by then, as a logarithm.
    """

    filters: dict[int, Array] = field(default_factory=dict)
    apart: dict[int, tuple[Array, Array, float]] = field(default_factory=dict)
    left: float = 0.0

    def closed(self, number: int, waits: bool) -> Carry:
        """Return what is known after the end of a sequence; if rows of it still wait, they have to be learned."""
        filters = {-1 - one if one == number else one: value for one, value in self.filters.items() if waits or one != number}
        return Carry(filters, {one: value for one, value in self.apart.items() if one != number}, self.left)


def dirichlet(given: Array | float | None, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Dirichlet parameters, and what a mode subtracts from them: nothing for the default."""
    if given is None:
        return np.full(shape, DEFAULT_PRIOR), np.zeros(shape)
    # A copy: a broadcast array is read-only, and a kernel would be compiled again for it.
    parameters = np.array(np.broadcast_to(np.asarray(given, dtype=float), shape), order="C")
    return parameters, np.minimum(parameters, 1.0)


def shares_of(name: str, prior: Array, shift: Array, counts: Array) -> Array:
    """Probabilities, or exp E[log], of a belief in the last axis; 0 where the prior is."""
    belief = np.maximum((prior - shift) + counts, TINY) if name == "mode" else prior + counts
    possible = prior > 0.0
    if not possible.all():
        belief = np.where(possible, belief, 0.0)
    total = belief.sum(axis=-1, keepdims=True)
    if name != "expect_log":
        return np.asarray(belief / total)
    return np.where(possible, np.exp(digamma(np.where(possible, belief, 1.0)) - digamma(total)), 0.0)


def divergence(prior: Array, counts: Array) -> float:
    """KL(belief || prior) of Dirichlets in the last axis."""
    before = np.broadcast_to(prior, counts.shape)
    possible = before > 0.0
    counts = np.where(possible, counts, 0.0)
    after = before + counts
    sums = after.sum(axis=-1), before.sum(axis=-1)
    after, before = (np.where(possible, one, 1.0) for one in (after, before))
    expected = digamma(after) - digamma(sums[0])[..., None]
    return float(
        (gammaln(sums[0]) - gammaln(sums[1])).sum() - (gammaln(after) - gammaln(before)).sum() + (counts * expected).sum()
    )


def log_density(excess: Array, probabilities: Array) -> float:
    """What a Dirichlet prior adds to the log-likelihood, up to a constant."""
    return float((excess * np.log(np.maximum(probabilities, TINY))).sum()) if excess.any() else 0.0
