"""What the loop asks of a model. Anything that offers this learns by every algorithm whose readout it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from headwater.core.state import Batch, Summary
from headwater.core.statistics import Array
from headwater.policies.growth import Growth

NO_SCORES: Array = np.empty(0)


@dataclass(frozen=True)
class Inference:
    """How an E-step is taken: "exact", "simulated", "mean-field" or "collapsed".

    A simulated one draws the latent variables by a sampler of the model: the statistics of `n_samples` draws after `burn_in`
    others are averaged (paper 001, eq. 3), each Rao-Blackwellised or not. `kappa` is the sharpness of Metropolis proposals.
    What is drawn for a row depends on the key and on the row's place in the stream, `first` and those after it, alone.
    """

    way: str = "exact"
    sampler: str = ""
    burn_in: int = 0
    n_samples: int = 1
    kappa: float = 1.0
    rao_blackwell: bool = True
    key: int = 0
    first: int = 0


EXACT = Inference()


@dataclass(frozen=True)
class Sampler:
    """What a sampler does where nothing else is said: draws that are thrown away, draws that are kept, sharpness."""

    burn_in: int = 0
    n_samples: int = 1
    kappa: float = 1.0


class Given(Protocol):
    """Parameters to start from that the user gave."""

    @property
    def locates(self) -> bool:
        """Whether they say where every component lies, so that no seeds are needed."""

    @property
    def in_prior(self) -> bool:
        """Whether every component has a prior of its own, which holds it from the first row on."""

    def __call__(self, found: Any) -> Any:
        """Return parameters with the given ones in their place."""

    def seed(self, batch: Batch) -> tuple[Batch, Array]:
        """Return rows to find the rest from, those of the batch last, and their responsibilities by what is given."""

    def pseudo_rows(self, parameters: Any, batch: Batch) -> tuple[Array, Array]:
        """Return rows that say what the parameters say, and how much of a row of each component every one is."""


@dataclass(frozen=True)
class StartSettings:
    """How to start: the way of seeding, whether seeds compete, by which readout they climb, what replaces what they say.

    `held` is how many rows a given start counts as, beside those of the warm-up: statistics of a few rows would not hold it.
    And how the E-steps on the way are taken, if not exactly.

    Of chains: `hold` keeps what has to stay while seeds climb; `states` says the states of rows, where given components tell
    them; `order` says which state of a seed is which of a given chain, from first states and passages; and `whole` asks for
    samples of whole sequences, where given passages allow no others.
    """

    method: str = "kmeans"
    polish: bool = True
    readout: str = "mode"
    given: Given | None = None
    inference: Inference = EXACT
    held: float = 0.0
    hold: Callable[[Any, Any, Any], Any] | None = None
    states: Callable[[Batch], Array] | None = None
    order: Callable[[Array, Array, np.random.Generator], Any] | None = None
    whole: bool = False


@dataclass(frozen=True)
class Start:
    """Where a stream begins: a prior in the scale of the rows, parameters, and one summary of the rows at them.

    And how its number of components came about, if it was to be found; and how much of the summary are no rows, but what the
    user gave to start from.
    """

    prior: Any
    parameters: Any
    summary: Summary
    growth: Growth | None = None
    held: float = 0.0


class Model(Protocol):
    """Pure functions of parameters, statistics and rows. Priors, statistics and parameters are the model's own types.

    Where rows hang together (`chained`) it offers `Chained`, too.
    """

    @property
    def chained(self) -> bool: ...

    @property
    def n_components(self) -> int: ...

    @property
    def ways(self) -> frozenset[tuple[str, str]]: ...  # of an E-step, each with a readout that it takes

    @property
    def samplers(self) -> Mapping[str, Sampler]: ...  # the first is the default

    @property
    def has_prior(self) -> bool: ...

    def n_parameters(self, width: int) -> int: ...

    def rows_to_learn(self, width: int) -> int: ...

    def rows_to_start(self, width: int) -> int: ...

    def row_bytes(self, width: int) -> int: ...

    def kept(self, name: str, statistics: Any) -> Any: ...

    def flattened(self, prior: Any) -> Any: ...

    def zeros(self, width: int) -> Any: ...

    def blank_prior(self, width: int) -> Any: ...

    def problem(self, record: Any, width: int) -> str: ...  # of a record that comes from a file

    def repaired(self, prior: Any, totals: Any, parts: Sequence[Any]) -> tuple[Any, tuple[int, ...]]: ...

    def brought(self, prior: Any, own: Any, statistics: Any) -> Any: ...

    def permuted(self, statistics: Any, order: Any) -> Any: ...

    def chosen(self, prior: Any, order: Any) -> Any: ...

    def picked(self, parameters: Any, order: Any) -> Any: ...

    def separation(self, prior: Any, totals: Any, others: Any) -> Array: ...

    def contrast(self, prior: Any, totals: Any, others: Any) -> Array: ...

    def start(self, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start: ...

    def readout(self, name: str, prior: Any, statistics: Any, count: float) -> Any: ...

    def objective(self, name: str, prior: Any, parameters: Any, statistics: Any, count: float) -> float: ...

    def summarize(
        self,
        parameters: Any,
        batch: Batch,
        pending: Summary | None = None,
        scores: Array = NO_SCORES,
        n_threads: int | None = None,
        inference: Inference = EXACT,
    ) -> Summary: ...

    def sweeps(self, inference: Inference) -> bool: ...

    def widened(self, value: Any, width: int) -> Any: ...

    def sweep(
        self,
        name: str,
        prior: Any,
        statistics: Any,
        average: Any,
        n_eff: float,
        batch: Batch,
        steps: Array,
        gains: Array,
        scores: Array,
        projection: tuple[str, str] | None = None,
    ) -> tuple[Any, Any, float]: ...

    def climb(
        self, name: str, prior: Any, summary: Summary, batch: Batch, passes: int, tol: float, before: float
    ) -> tuple[Summary, Any, Array, bool] | None: ...

    def log_likelihood(self, parameters: Any, batch: Batch, n_threads: int | None = None) -> Array: ...

    def posterior(self, parameters: Any, batch: Batch, n_threads: int | None = None) -> Array: ...


class Chained(Model, Protocol):
    """A model of sequences: what is known of those that are open is carried from one batch to the next."""

    @property
    def lag(self) -> int: ...  # rows to look ahead to

    def blank_carry(self, width: int) -> Any: ...

    def summarize_open(
        self, parameters: Any, batch: Batch, carry: Any, rows: int, n_threads: int | None = None
    ) -> tuple[Summary, Any]: ...

    def follow(
        self,
        parameters: Any,
        batch: Batch,
        carry: Any,
        scores: Array = NO_SCORES,
        filtered: Array = NO_SCORES,
        n_threads: int | None = None,
    ) -> Any: ...

    def sweep_open(
        self,
        name: str,
        prior: Any,
        statistics: Any,
        average: Any,
        n_eff: float,
        batch: Batch,
        steps: Array,
        gains: Array,
        scores: Array,
        carry: Any,
    ) -> tuple[Any, Any, float, Any]: ...
