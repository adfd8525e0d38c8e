"""Learner: what the user chose for a run. It holds nothing that is learned, and is compiled once into a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.algorithm import Algorithm
from headwater.core.contracts import Model, StartSettings
from headwater.core.policy import Policy
from headwater.core.state import State, Stream

if TYPE_CHECKING:
    from headwater.core.plan import Plan


@dataclass(frozen=True)
class Learner:
    """A model, an algorithm and the settings of a run.

    `half_life`, `warm_up` and `n_threads` are None for what the plan chooses. `shards` is the number of streams that rows are
    dealt to. `rows_at_hand` is the weight of all rows that `fit` has: rows that are read again do not add to it.
    `averages_after` is the weight that was seen before the running average began.
    """

    model: Model
    algorithm: Algorithm
    width: int
    settings: StartSettings = StartSettings()
    half_life: float | None = None
    warm_up: int | None = None
    n_threads: int | None = None
    shards: int = 1
    rows_at_hand: float = np.inf
    averages_after: float = 0.0
    policies: tuple[Policy, ...] = ()

    @cached_property
    def plan(self) -> Plan:
        """What this learner does: the step and the policies of its streams."""
        from headwater.core.compile import compile_plan  # imports this module

        return compile_plan(self)

    def with_policy(self, policy: Policy) -> Learner:
        """Return the learner with a policy in the place of the one of this name; behind all others if there is none."""
        names = [one.name for one in self.policies]
        if policy.name in names:
            return replace(self, policies=tuple(policy if one.name == policy.name else one for one in self.policies))
        return replace(self, policies=(*self.policies, policy))

    def for_state(self, state: State) -> Learner:
        """Return the learner with the model of a stream, whose number of components may have been found since."""
        found = state.model if isinstance(state, Stream) else self.model
        return self if found.n_components == self.model.n_components else replace(self, model=found)

    def has(self, name: str) -> bool:
        """Whether there is a policy of this name."""
        return any(policy.name == name for policy in self.policies)

    def without(self, name: str) -> Learner:
        """Return the learner without the policy of this name."""
        return replace(self, policies=tuple(one for one in self.policies if one.name != name))

    @property
    def at_hand(self) -> Learner:
        """The learner for rows that are all in memory and have no order."""
        policies = tuple(policy.at_hand() for policy in self.policies)
        same = all(one is other for one, other in zip(policies, self.policies, strict=True))
        return self if same else replace(self, policies=policies)
