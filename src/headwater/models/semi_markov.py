"""Semi-Markov chain: states whose durations have a law of their own, as a chain of states and of rows that are left in them.

State k with r rows left after this one is number k * D + r, D the longest duration. With r > 0 it passes to (k, r - 1) for
sure; with r = 0 to another state j, for d rows with probability A_kj p_j(d). So filter, smoother, paths, blocks and carries are
those of `HiddenMarkov`, by kernels that know where places lead to, at a cost of K (K D) a row; transitions are read out in
another way: A from all passages to j, p_j from all passages into j by the rows that were left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.contracts import Start, StartSettings
from headwater.core.statistics import Array
from headwater.families.repeated import Repeated
from headwater.models.chain_records import DEFAULT_PRIOR, ChainParameters, ChainPrior, ChainStatistics
from headwater.models.chain_start import start_chain
from headwater.models.durations import NEGATIVE_BINOMIAL, geometric, log_prior, read_durations
from headwater.models.hidden_markov import HiddenMarkov
from headwater.models.passages import StayPassages

FIRST_PASSES = 5  # over the warm-up, that a start makes
TINY = 1e-300


@dataclass(frozen=True)
class SemiMarkovChain(HiddenMarkov):
    """The model. `family` repeats the components of K states D times."""

    spares_states = False  # each is a place in a stay

    longest: int = 1
    law: str = NEGATIVE_BINOMIAL
    duration_prior: float = 1.0

    @property
    def passages(self) -> StayPassages:
        """The kernels for stays."""
        return StayPassages(self.longest)

    @property
    def n_states(self) -> int:
        """Number of states, whatever rows are left."""
        return self.n_components // self.longest

    @property
    def ways(self) -> frozenset[tuple[str, str]]:
        return frozenset({("exact", "mode"), ("exact", "mean")})

    @property
    def has_prior(self) -> bool:
        return self.family.has_prior

    def n_parameters(self, width: int) -> int:
        """Number of free parameters."""
        k = self.n_states
        durations = 2 if self.law == NEGATIVE_BINOMIAL else self.longest - 1
        return self.family.n_parameters(width) + k - 1 + k * (k - 2) + k * durations

    # States and rows that are left

    @property
    def _exits(self) -> NDArray[np.int64]:
        """Numbers (K,) of the states of which no rows are left."""
        return np.arange(self.n_states) * self.longest

    def pooled(self, states: Array) -> Array:
        """Return probabilities (..., K D) as those (..., K) of the states, whatever rows are left."""
        return np.asarray(states.reshape(*states.shape[:-1], self.n_states, self.longest).sum(axis=-1))

    def expand(self, start: Array, passages: Array, durations: Array, emissions: object) -> ChainParameters:
        """Return the chain of first states (K,), passages (K, K) and durations (K, D)."""
        k, d = durations.shape
        transitions = np.zeros((k * d, k * d))
        inside = np.setdiff1d(np.arange(k * d), self._exits)
        transitions[inside, inside - 1] = 1.0
        transitions[self._exits] = (passages[:, :, None] * durations).reshape(k, k * d)
        return ChainParameters((start[:, None] * durations).ravel(), transitions, emissions)

    def parts(self, parameters: ChainParameters) -> tuple[Array, Array, Array]:
        """Return first states (K,), passages (K, K) and durations (K, D) of a chain."""
        k, d = self.n_states, self.longest
        into = parameters.transitions[self._exits].reshape(k, k, d)
        durations = into.sum(axis=0) + parameters.start.reshape(k, d)
        return (
            self.pooled(parameters.start / parameters.start.sum()),
            into.sum(axis=2) / into.sum(axis=(1, 2))[:, None],
            durations / durations.sum(axis=1, keepdims=True),
        )

    def _with_parts(self, first: Array, passages: Array, durations: Array, emissions: object) -> ChainParameters:
        passages = np.maximum(passages, TINY) * (1.0 - np.eye(self.n_states))
        first = np.maximum(first, TINY)
        durations = np.maximum(durations, TINY)
        return self.expand(first / first.sum(), passages / passages.sum(axis=1, keepdims=True), durations, emissions)

    # Priors and readouts

    def _chain_prior(self, emissions: object) -> ChainPrior:
        """A tenth of a count for each first state and each passage to another state."""
        k, d = self.n_states, self.longest
        every = DEFAULT_PRIOR / d
        spread = self.expand(np.ones(k), 1.0 - np.eye(k), np.full((k, d), every), emissions)
        return ChainPrior(np.full(k * d, every), spread.transitions, np.zeros(k * d), np.zeros((k * d, k * d)), emissions)

    def blank_prior(self, width: int) -> ChainPrior:
        """A prior of the right shape."""
        return self._chain_prior(self.family.blank_prior(width))

    def flatten_prior(self, prior: ChainPrior) -> ChainPrior:
        """The prior whose mode is maximum likelihood, but for that of the durations."""
        flatten = self.family.flatten_parts if self.family.has_prior else self.family.flatten_prior
        return replace(prior, start_shift=prior.start, steps_shift=prior.steps, emissions=flatten(prior.emissions))

    def readout(self, name: str, prior: ChainPrior, statistics: ChainStatistics, count: float) -> ChainParameters:
        """Parameters of the belief prior + count * statistics: "mode" or "mean"."""
        totals = statistics if count == 1.0 else statistics.scaled(count)
        k, d = self.n_states, self.longest
        own = self.pooled(prior.start - prior.start_shift)
        passed = (prior.steps - prior.steps_shift)[self._exits].reshape(k, k, d).sum(axis=2)
        into = np.maximum(totals.steps[self._exits], 0.0).reshape(k, k, d)
        first = np.maximum(totals.start, 0.0).reshape(k, d)
        durations = read_durations(self.law, into.sum(axis=0) + first, self.duration_prior)
        emissions = self.family.readout(name, prior.emissions, totals.emissions)
        return self._with_parts(own + first.sum(axis=1), passed + into.sum(axis=2), durations, emissions)

    def objective(
        self, name: str, prior: ChainPrior, parameters: ChainParameters, statistics: ChainStatistics, count: float
    ) -> float:
        """The term that makes the summed score an objective that passes of the mode never lower."""
        if name != "mode":
            return 0.0
        chain = log_prior(self.law, self.parts(parameters)[2], self.duration_prior)
        return chain + self.family.log_prior(prior.emissions, parameters.emissions)

    # Starts

    def start(self, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start:
        """Start at a chain whose durations are geometric, and make a few passes."""
        family = self.family
        assert isinstance(family, Repeated)
        plain = HiddenMarkov(self.n_states, family.inner, lag=self.lag)
        begun = start_chain(plain, batch, key, settings, n_threads)
        found: ChainParameters = begun.parameters
        stays, apart = np.diag(found.transitions), found.transitions * (1.0 - np.eye(self.n_states))
        durations = geometric(stays, self.longest)
        parameters = self._with_parts(found.start, apart, durations, found.emissions)
        prior = self._chain_prior(begun.prior.emissions)
        summary = self.summarize(parameters, batch, n_threads=n_threads)
        for _ in range(FIRST_PASSES):
            parameters = self.readout(settings.readout, prior, summary.statistics, 1.0)
            summary = self.summarize(parameters, batch, n_threads=n_threads)
        return Start(prior, parameters, summary)
