"""What the core asks of a model, and what else a model may offer.

A model that has the eight functions of `Model` learns by every algorithm that folds batches and whose readout it has. It can be
merged and saved. The protocols after it are capabilities: each is needed by one step or policy only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.state import Summary
from headwater.core.statistics import Array, Params, Prior, Stats
from headwater.core.values import Index, Matrix, Records

NO_SCORES: Array = np.empty(0)

PriorIn = TypeVar("PriorIn", contravariant=True)
ParamsIn = TypeVar("ParamsIn", contravariant=True)
Carry = TypeVar("Carry")
Record = TypeVar("Record")


@dataclass(frozen=True)
class Inference:
    """How an E-step is taken: "exact", "simulated", "mean-field" or "collapsed".

    A simulated one draws the latent variables by a sampler of the model: the statistics of `n_samples` draws after `burn_in`
    others are averaged (paper 001, eq. 3), Rao-Blackwellised or not. `kappa` is the sharpness of Metropolis proposals.
    The draws of a row depend only on the key and on the row's place in the stream, which begins at `first`.
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
    """Defaults of a sampler: draws that are discarded, draws that are kept, sharpness."""

    burn_in: int = 0
    n_samples: int = 1
    kappa: float = 1.0


class Given(Protocol[Params]):
    """Parameters to start from that the user gave."""

    @property
    def locates(self) -> bool:
        """Whether they say where every component lies, so that no seeds are needed."""

    @property
    def in_prior(self) -> bool:
        """Whether every component has its own prior, which holds it from the first row on."""

    def __call__(self, found: Params) -> Params:
        """Return parameters with the given ones in their place."""

    def seed(self, batch: Batch) -> tuple[Batch, Array]:
        """Return rows to find the other parameters from, the batch last, and their responsibilities under the given ones."""

    def pseudo_rows(self, parameters: Params, batch: Batch) -> tuple[Array, Array]:
        """Return pseudo-rows that represent the parameters, and how much each counts for every component."""

    def alone(self) -> Params:
        """Return the parameters that are given, if they say everything; or refuse them with what is missing."""


@dataclass(frozen=True)
class StartSettings:
    """How to start: the way of seeding, whether seeds compete, by which readout they climb, what replaces what they say.

    `factors` are what is given of a model of latent factors.

    `held` is how many rows a given start counts as, in addition to the warm-up: statistics of a few rows would not hold it.
    `weight` is what the user says that it is, None if that follows from the model. With `at_once` there is no warm-up: the row
    that is passed is the first of the stream, which says no more than how long rows are, and is not learned.
    `inference` says how E-steps are taken, if not exactly.

    For chains: `hold` fixes given parameters while seeds climb; `states` finds the states of rows from given components;
    `order` matches states of a seed to those of a given chain, from first states and transitions; and `whole` asks for samples
    of whole sequences, where the given transitions need them.
    """

    method: str = "kmeans"
    polish: bool = True
    readout: str = "mode"
    given: Given | None = None
    factors: Array | None = None
    inference: Inference = EXACT
    held: float = 0.0
    weight: float | None = None
    at_once: bool = False
    hold: Callable[..., Any] | None = None
    states: Callable[[Batch], Array] | None = None
    order: Callable[[Array, Array, np.random.Generator], NDArray[np.int64]] | None = None
    whole: bool = False

    @property
    def locates(self) -> bool:
        """Whether it is given where every component lies."""
        return self.factors is not None or (self.given is not None and self.given.locates)


@dataclass(frozen=True)
class Start(Generic[Prior, Stats, Params]):
    """Where a stream begins: a prior in the scale of the rows, parameters, and one summary of the rows at them.

    `held` is the weight of the summary that comes from a given start, not from rows. `records` is what policies know of the
    start, by their names.
    """

    prior: Prior
    parameters: Params
    summary: Summary[Stats]
    held: float = 0.0
    records: Records = field(default_factory=dict)


class Model(ABC, Generic[Prior, Stats, Params]):
    """A latent structure: pure functions of a prior, statistics, parameters and rows. A subclass is a frozen dataclass."""

    restates: ClassVar[bool] = False  # whether statistics can be restated at other parameters from reservoir rows
    chained: ClassVar[bool] = False  # whether rows form sequences: then the model offers `Chained`

    # The core: what a model must offer.

    if TYPE_CHECKING:  # a field of most models, and a property of some

        @property
        def n_components(self) -> int:
            """Number of components, states or factors."""

    @property
    @abstractmethod
    def ways(self) -> frozenset[tuple[str, str]]:
        """The kinds of E-steps ("exact", "simulated", ...), each with a readout that it takes."""

    @abstractmethod
    def zeros(self, width: int) -> Stats:
        """Return the statistics of no rows that have `width` columns."""

    @abstractmethod
    def blank_prior(self, width: int) -> Prior:
        """Return a prior of the right shape, for model files."""

    @abstractmethod
    def start(
        self, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None
    ) -> Start[Prior, Stats, Params]:
        """Find a prior and parameters to start from on the rows of a warm-up, and summarize these rows."""

    @abstractmethod
    def readout(self, name: str, prior: Prior, statistics: Stats, count: float) -> Params:
        """Return parameters of the belief prior + count * statistics: "mode", "mean", "expect_log", ..."""

    @abstractmethod
    def summarize(
        self,
        parameters: Params,
        batch: Batch,
        pending: Summary[Stats] | None = None,
        scores: Array = NO_SCORES,
        n_threads: int | None = None,
        inference: Inference = EXACT,
    ) -> Summary[Stats]:
        """E-step: add the rows to the pending summary, which may be changed, or to a fresh one. Fills `scores`, if any."""

    @abstractmethod
    def log_likelihood(self, parameters: Params, batch: Batch, n_threads: int | None = None) -> Array:
        """Return the log-density (n,) of every row, or a bound of it."""

    @abstractmethod
    def posterior(self, parameters: Params, batch: Batch, n_threads: int | None = None) -> Array:
        """Return the posterior of the latent variables of every row: responsibilities (n, K), expected weights."""

    # Sizes

    def n_parameters(self, width: int) -> int:
        """Return the number of free parameters; by default one for each statistic."""
        return sum(np.size(array) for name, array in self.zeros(width).to_arrays().items() if name != "from_base")

    def rows_to_learn(self, width: int) -> int:
        """Return the number of rows that it takes to estimate every parameter."""
        return self.n_parameters(width)

    def rows_to_start(self, width: int) -> int:
        """Return the rows of a warm-up: by default ten times those that it takes to estimate all parameters, at least 2000."""
        return max(2000, 10 * self.rows_to_learn(width))

    @property
    def rows_to_tell_apart(self) -> int:
        """The rows below which a start misses some of many components, however wide rows are."""
        return 2 * self.n_components

    def row_bytes(self, width: int) -> int:
        """Return the memory of a row that waits."""
        return 8 * width

    # Prior and readouts

    @property
    def samplers(self) -> Mapping[str, Sampler]:
        """Samplers of simulated E-steps with their defaults; the first is the default sampler."""
        return {}

    @property
    def has_prior(self) -> bool:
        """Whether EM finds the mode under the prior. If not, it uses the prior of `flatten_prior`."""
        return True

    @property
    def is_regularized(self) -> bool:
        """Whether parameters may be regularized; the user can turn it off for pure maximum likelihood."""
        return True

    def flatten_prior(self, prior: Prior) -> Prior:
        """Return the prior whose mode is maximum likelihood, where there is one."""
        return prior

    def refit_prior(self, prior: Prior, parameters: Params, batch: Batch) -> Prior:
        """Return the prior of what was found on rows, where a prior is found on rows at all."""
        return prior

    def objective(self, name: str, prior: Prior, parameters: Params, statistics: Stats, count: float) -> float:
        """Return the term that makes the summed score an objective that passes of the named readout never lower."""
        return 0.0

    def climb(
        self, name: str, prior: Prior, summary: Summary[Stats], batch: Batch, passes: int, tol: float, before: float
    ) -> tuple[Summary[Stats], Params, Array, bool] | None:
        """Make passes over few rows in a kernel; None, by default, if there is none and the loop makes them."""
        return None

    def sweeps(self, inference: Inference) -> bool:
        """Whether rows are learned one by one by `sweep`, by such E-steps; if not, the loop folds batches of one row."""
        return False

    def sweep(
        self,
        name: str,
        prior: Prior,
        statistics: Stats,
        average: Stats | None,
        n_eff: float,
        batch: Batch,
        steps: Array,
        gains: Array,
        scores: Array,
        projection: tuple[str, str] | None = None,
    ) -> tuple[Stats, Stats | None, float]:
        """Learn row by row: return statistics, average and n_eff. By default a readout, an E-step and a fold for each row.

        With a projection (of weights, of degrees of freedom), which only moment matching has, there is no default.
        """
        for at, step in enumerate(steps.tolist()):
            row = batch[at : at + 1]
            summary = self.summarize(self.readout(name, prior, statistics, n_eff), row, None, scores[at : at + 1], 1)
            statistics = statistics.toward(summary.statistics, step, 1.0 / row.size)
            n_eff = 1.0 / ((1.0 - step) ** 2 / n_eff + step**2 / row.size)
            average = None if average is None else average.averaged(statistics, float(gains[at]))
        return statistics, average, n_eff

    def statistics_for(self, name: str, statistics: Stats) -> Stats:
        """Return statistics in the form that the named readout keeps: only moment matching has its own."""
        return statistics

    def widen(self, value: Record, width: int) -> Record:
        """Return a prior, or statistics, for rows of more columns; as they are, if rows never become wider."""
        return value

    # Merging and files

    def find_problem(self, record: object, width: int) -> str:
        """Return what is wrong with a record read from a file, as the end of a sentence; "" if nothing is."""
        return ""

    def repair(self, prior: Prior, totals: Stats, parts: Sequence[Stats]) -> tuple[Stats, tuple[int, ...]]:
        """Return totals that form a valid belief with the prior, and the components that had to be repaired for it."""
        return totals, ()

    def common_prior(self, priors: Sequence[Prior]) -> Prior:
        """Return the prior of models that are merged, each of which has found its own; by default that of the first."""
        return priors[0]

    def move_to_prior(self, prior: Prior, own: Prior, statistics: Stats) -> Stats:
        """Return statistics gathered under the prior `own`, moved to the origin of another prior."""
        return statistics

    def align(self, known: Stats, statistics: Stats) -> Stats:
        """Return statistics rotated to the axes of others, where axes are arbitrary; by default unchanged."""
        return statistics

    def select_statistics(self, statistics: Stats, order: Index) -> Stats:
        """Return statistics with the components in another order; by default the one they have (see `separation`)."""
        return statistics

    def separation(self, prior: Prior, totals: Stats, others: Stats) -> Array:
        """Return the symmetric divergence (K, K) of the beliefs about these components and about those, up to a constant.

        Models that share no base are matched by it. By default each component is matched to the one of its number.
        """
        return 1.0 - np.eye(self.n_components)

    def contrast(self, prior: Prior, totals: Stats, others: Stats) -> Array:
        """Return the symmetric divergence (K,) of the densities of each component here and there, in nats a row."""
        return np.zeros(self.n_components)


class SelectsComponents(Protocol[Prior, Stats, Params]):
    """Capability: a model can be reduced to some of its components."""

    def select_prior(self, prior: Prior, order: Index) -> Prior: ...

    def select_statistics(self, statistics: Stats, order: Index) -> Stats: ...

    def select_parameters(self, parameters: Params, order: Index) -> Params: ...


class Chained(Protocol[PriorIn, Stats, ParamsIn, Carry]):
    """Capability: rows form sequences. What is known of open sequences is carried from one batch to the next."""

    @property
    def lag(self) -> int: ...  # rows to look ahead to

    def blank_carry(self, statistics: Stats) -> Carry: ...

    def is_beyond(self, prior: PriorIn, X: Matrix) -> bool: ...  # whether rows cannot be learned: no number holds their squares

    def summarize_open(
        self, parameters: ParamsIn, batch: Batch, carry: Carry | None, rows: int, n_threads: int | None = None
    ) -> tuple[Summary[Stats], Carry]: ...

    def follow(
        self,
        parameters: ParamsIn,
        batch: Batch,
        carry: Carry | None,
        scores: Array = NO_SCORES,
        filtered: Array = NO_SCORES,
        n_threads: int | None = None,
    ) -> Carry: ...

    def sweep_open(
        self,
        name: str,
        prior: PriorIn,
        statistics: Stats,
        average: Stats | None,
        n_eff: float,
        batch: Batch,
        steps: Array,
        gains: Array,
        scores: Array,
        carry: Carry | None,
    ) -> tuple[Stats, Stats | None, float, Carry]: ...


def chain_of(model: Model[Prior, Stats, Params]) -> Chained[Prior, Stats, Params, Any]:
    """Return a model of sequences, typed by its capability."""
    assert model.chained
    return cast("Chained[Prior, Stats, Params, Any]", model)
