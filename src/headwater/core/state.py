"""State: how far a stream has come, its base, and the two records of a learner: rows that warm up, or a stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias

from headwater.core.batch import Buffer
from headwater.core.statistics import Params, Prior, Statistics, Stats
from headwater.core.values import Records

if TYPE_CHECKING:
    from headwater.core.contracts import Model
    from headwater.core.plan import Plan


@dataclass(frozen=True)
class Progress:
    """How far the stream has come.

    `mass` is the weight behind the last step, m / g for a step g with a batch of weight m; `n_eff` the effective number of
    rows of the statistics: after that step 1/n' = (1-g)^2/n + g^2/m.
    """

    rows_seen: int = 0
    weight_seen: float = 0.0
    folds: float = 0.0
    mass: float = 0.0
    n_eff: float = 0.0

    def after(self, rows: int, size: float, step: float, folds: float) -> Progress:
        """Return the progress after one fold of `rows` rows that weigh `size`, with this step."""
        return Progress(
            rows_seen=self.rows_seen + rows,
            weight_seen=self.weight_seen + size,
            folds=self.folds + folds,
            mass=size / step,
            n_eff=1.0 / ((1.0 - step) ** 2 / self.n_eff + step**2 / size),
        )


@dataclass(frozen=True)
class Summary(Generic[Stats]):
    """What the rows of a batch yield at fixed parameters: totals, their weight, and the score before learning."""

    statistics: Stats
    rows: int = 0
    size: float = 0.0
    score: float = 0.0

    def __add__(self, other: Summary[Stats]) -> Summary[Stats]:
        statistics = self.statistics + other.statistics
        return Summary(statistics, self.rows + other.rows, self.size + other.size, self.score + other.score)

    @property
    def mean(self) -> Stats:
        """Statistics per observation."""
        return self.statistics.scaled(1.0 / self.size)


@dataclass(frozen=True)
class Base(Generic[Prior, Stats]):
    """What streams that can be merged have in common: the end of a warm-up, or all that was learned before a branch.

    Holds the prior, statistics with the progress they came from, a name (lineage), the names of the bases below it, and what
    policies knew there, by their names.
    """

    prior: Prior
    statistics: Stats
    progress: Progress
    lineage: str
    ancestors: tuple[str, ...] = ()
    records: Records = field(default_factory=dict)

    def with_record(self, name: str, record: object) -> Base[Prior, Stats]:
        """Return the base with what a policy knew there; None removes it."""
        return replace(self, records=_put(self.records, name, record))


@dataclass(frozen=True)
class WarmUp:
    """Rows that wait until there are enough to choose a prior and a start."""

    key: int
    buffer: Buffer = field(default_factory=Buffer)

    @property
    def rows(self) -> int:
        """Rows that wait."""
        return self.buffer.rows


class Unfolded(Protocol):
    """Rows that a step has taken and not folded yet. Each step has a record of its own for them (steps.py, shards.py)."""

    @property
    def rows(self) -> int: ...

    @property
    def sums(self) -> tuple[Statistics, ...]: ...  # statistics that they have been made into already

    def finish(self, plan: Plan, stream: Stream) -> Stream: ...  # the stream with all of them folded

    def widen(self, plan: Plan) -> Unfolded: ...  # the same for rows with more columns


@dataclass(frozen=True)
class Stream(Generic[Prior, Stats, Params]):
    """Everything that a stream knows after its warm-up.

    It carries its own model, since the number of components may change. `parameters` are those of the next E-step. `unfolded`
    belongs to the step of the plan. `records` holds what each policy knows, by its name; a policy without a record is idle.
    """

    key: int
    model: Model[Prior, Stats, Params] = field(compare=False)  # which follows from what was chosen and the number of components
    base: Base[Prior, Stats]
    statistics: Stats
    parameters: Params
    progress: Progress
    unfolded: Unfolded
    records: Records = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows taken: those folded and those that the step has begun."""
        return self.progress.rows_seen + self.unfolded.rows

    def replace(self, **changes: object) -> Stream[Prior, Stats, Params]:
        """Return the stream with some fields changed. `dataclasses.replace` takes four times as long, and a batch has five."""
        stream = object.__new__(Stream)
        stream.__dict__.update(self.__dict__, **changes)
        return stream

    def with_record(self, name: str, record: object) -> Stream[Prior, Stats, Params]:
        """Return the stream with what a policy knows; None removes it."""
        return self.replace(records=_put(self.records, name, record))

    def without(self, *names: str) -> Stream[Prior, Stats, Params]:
        """Return the stream without the records of some policies."""
        if not any(name in self.records for name in names):
            return self
        return self.replace(records={name: one for name, one in self.records.items() if name not in names})


State: TypeAlias = WarmUp | Stream


def _put(records: Records, name: str, record: object) -> Records:
    if record is None:
        return {other: one for other, one in records.items() if other != name}
    return {**records, name: record}


@dataclass(frozen=True)
class Info:
    """What one call to the loop did, for monitors: rows, their mean score before learning, the last step size."""

    rows: int
    score: float
    step_size: float
