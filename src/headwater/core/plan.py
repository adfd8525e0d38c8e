"""Plan: every decision that a learner implies, made once. The loop makes no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Protocol

from headwater.core.algorithm import Algorithm
from headwater.core.batch import Batch
from headwater.core.contracts import Inference, Model, Start, StartSettings
from headwater.core.learner import Learner
from headwater.core.policy import Folds, Policy, Restates
from headwater.core.schedules import Schedule, with_half_life
from headwater.core.state import Progress, Stream, Unfolded
from headwater.core.statistics import Array, Statistics

WARM_UP_BYTES = 2**23  # of waiting rows, at most
MOST_WARM_UP_BYTES = 2**27  # where these are too few to tell many components apart
MOST_BLOCKS = 8  # times its first size that a growing batch may have
ROWS_PER_BLOCK = 32  # batches seen for each block that a growing batch gets


class Step(Protocol):
    """How rows reach the statistics. `stream.unfolded` belongs to the step."""

    @property
    def nothing(self) -> Unfolded: ...  # unfolded between two batches

    def begin(self, plan: Plan, stream: Stream, batch: Batch) -> Stream: ...  # after the rows of the warm-up

    def adopt(self, plan: Plan, stream: Stream) -> Stream: ...  # finish what another step has begun

    def room(self, plan: Plan, stream: Stream) -> int: ...  # rows to the next fold

    def take(self, plan: Plan, stream: Stream, batch: Batch, scores: Array) -> tuple[Stream, float]: ...  # at most `room` rows


def policies_with(hook: str, policies: tuple[Policy, ...]) -> tuple[Policy, ...]:
    """Return the policies that override a hook."""
    return tuple(policy for policy in policies if getattr(type(policy), hook) is not getattr(Policy, hook))


@dataclass(frozen=True)
class Hooks:
    """The policies that a stream has records of, grouped by the hooks that they override. Found once."""

    policies: tuple[Policy, ...]
    rows_until_due: tuple[Policy, ...]
    after_fold: tuple[Policy, ...]
    after_batch: tuple[Policy, ...]
    holds_reference: tuple[Policy, ...]
    watches_batches: bool
    fold: Folds

    @classmethod
    def of(cls, policies: tuple[Policy, ...], plain: Folds) -> Hooks:
        """Return the hooks of these policies; the policy with its own fold folds batches, or else the plain fold."""
        return cls(
            policies,
            policies_with("rows_until_due", policies),
            policies_with("after_fold", policies),
            policies_with("after_batch", policies),
            policies_with("holds_reference", policies),
            any(policy.watches_batches for policy in policies),
            next((policy for policy in policies if isinstance(policy, Folds)), plain),
        )


@dataclass(frozen=True)
class Plan:
    """How a learner learns: one step, a tuple of policies, and the numbers that follow from its model and algorithm.

    `fold` is how batches are folded where no policy has its own way. `find_start` and `model_for` come from the policy that
    has its own, or from the model. `restates` is the policy that can restate statistics at other parameters, if there is one.
    """

    learner: Learner
    step: Step
    fold: Folds
    policies: tuple[Policy, ...]
    find_start: Callable[[Plan, Batch, int, StartSettings], Start]
    model_for: Callable[[Plan, Statistics], Model]
    restates: Restates | None

    # What the user chose

    @cached_property
    def model(self) -> Model:
        """The model that a stream begins with; a stream carries its own."""
        return self.learner.model

    @cached_property
    def algorithm(self) -> Algorithm:
        return self.learner.algorithm

    @cached_property
    def width(self) -> int:
        return self.learner.width

    @cached_property
    def n_threads(self) -> int | None:
        return self.learner.n_threads

    @cached_property
    def half_life(self) -> float | None:
        return self.learner.half_life

    # What follows from it

    @cached_property
    def inference(self) -> Inference:
        """How E-steps are taken."""
        return self.algorithm.inference(self.model)

    @cached_property
    def start_settings(self) -> StartSettings:
        """How to start, with E-steps of this kind."""
        return replace(self.learner.settings, inference=self.inference)

    @cached_property
    def sizing_model(self) -> Model:
        """The model whose size decides the length of the warm-up and the size of the reservoir."""
        return reduce(lambda model, policy: policy.sizing_model(model), self.policies, self.model)

    @cached_property
    def warm_up_rows(self) -> int:
        """Rows of the warm-up: those that the user asks for, or the usual ones."""
        return self.learner.warm_up or self.usual_warm_up_rows

    @cached_property
    def usual_warm_up_rows(self) -> int:
        """What the model asks for, at most 8 MB of rows, or 128 MB to tell many components apart."""
        wanted, row_bytes = self.sizing_model.rows_to_start(self.width), self.model.row_bytes(self.width)
        room = max(WARM_UP_BYTES // row_bytes, min(self.model.rows_to_tell_apart, MOST_WARM_UP_BYTES // row_bytes))
        return max(2 * self.model.n_components, min(wanted, room))

    @property
    def starts_at_once(self) -> bool:
        """Whether a stream begins with its first row, at a start that is given."""
        return self.learner.warm_up == 0

    @cached_property
    def sweeps(self) -> bool:
        """Whether rows are folded one by one, in a kernel."""
        alone = self.batch_rows(self.model) == 1 and not self.algorithm.counts_rows
        return alone and self.model.sweeps(self.inference)

    @cached_property
    def capacities(self) -> dict[int, int]:
        """Reservoir rows for each number of components, found once (`policies/reservoir_policy.py`)."""
        return {}

    @cached_property
    def _sizes(self) -> dict[int, tuple[int, Schedule]]:
        return {}

    def _size(self, model: Model) -> tuple[int, Schedule]:
        """Rows of a batch and step sizes, for a model of this plan with any number of components."""
        k = model.n_components
        if k not in self._sizes:
            enough = model.rows_to_learn(self.width)
            schedule = self.algorithm.schedule(k, enough, self.warm_up_rows)
            self._sizes[k] = self.algorithm.batch_rows(k, enough), with_half_life(schedule, self.half_life)
        return self._sizes[k]

    def batch_rows(self, model: Model) -> int:
        """Rows of a batch."""
        return self._size(model)[0]

    def schedule(self, model: Model) -> Schedule:
        """Step sizes of the folds."""
        return self._size(model)[1]

    def count(self, progress: Progress) -> float:
        """The weight of the statistics against the prior, in rows."""
        if self._counts_rows:
            return min(progress.weight_seen, self.learner.rows_at_hand)
        return progress.n_eff

    @cached_property
    def _counts_rows(self) -> bool:
        return self.algorithm.counts_rows and self.half_life is None

    def draw(self, stream: Stream, after: int = 0) -> Inference:
        """How the next E-step of a stream is taken, `after` rows after those it has folded."""
        return replace(self.inference, key=stream.key, first=stream.progress.rows_seen + after)

    # Of one stream

    @cached_property
    def adopting(self) -> tuple[Policy, ...]:
        """The policies that have something to do where a stream comes from another plan."""
        return policies_with("adopt", self.policies)

    def hooks(self, stream: Stream) -> Hooks:
        """Return the policies that the stream has records of, in the order of the plan, by their hooks."""
        names = tuple(stream.records)
        hooks = self._hooks.get(names)
        if hooks is None:
            active = tuple(policy for policy in self.policies if policy.name in names)
            hooks = self._hooks[names] = Hooks.of(active, self.fold)
        return hooks

    @cached_property
    def _hooks(self) -> dict[tuple[str, ...], Hooks]:
        return {}

    def holds(self, stream: Stream) -> bool:
        """Whether the parameters of the E-step are held until a policy moves them."""
        return any(policy.holds_reference(self, stream) for policy in self.hooks(stream).holds_reference)

    def fold_rows(self, stream: Stream) -> int:
        """Rows of the next batch: while parameters are held, batches grow with the stream, which costs less."""
        rows = self.batch_rows(stream.model)
        if not self.holds(stream) or self.hooks(stream).watches_batches:
            return rows
        return rows * min(max(stream.progress.rows_seen // (ROWS_PER_BLOCK * rows), 1), MOST_BLOCKS)

    def block_rows(self, stream: Stream) -> int:
        """Rows of the next batch of sequences: batches may grow with the stream, which costs less."""
        rows = self.batch_rows(stream.model)
        if not self.algorithm.blocks_grow:
            return rows
        most = MOST_BLOCKS * rows
        if self.half_life is not None:  # a batch is forgotten as one
            most = max(16, min(most, int(self.half_life / 8)))
        return min(max(stream.progress.rows_seen // 64, min(rows, most)), most)

    @cached_property
    def of_shard(self) -> Plan:
        """The plan of one shard: shards run side by side, so each has one thread, and each sees only its part of the rows."""
        learner, half_life = self.learner, self.half_life
        policies = tuple(one for one in (policy.in_shard() for policy in learner.policies) if one is not None)
        half_life = None if half_life is None else half_life / learner.shards
        return replace(learner, shards=1, n_threads=1, half_life=half_life, policies=policies).plan


def find_start(plan: Plan, batch: Batch, key: int, settings: StartSettings) -> Start:
    """Find a start of the model on these rows."""
    return plan.model.start(batch, key, settings, plan.n_threads)


def model_for(plan: Plan, statistics: Statistics) -> Model:
    """Return the model that has these statistics: the one of the plan."""
    return plan.model
