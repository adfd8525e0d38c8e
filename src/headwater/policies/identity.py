"""Identity: each component of a stream has a number that stays with it, wherever searches and growth move it.

A component keeps its number if it holds mostly the same reservoir rows after a search as before it; a new one gets the next
number that is free. Only streams whose components were given names have this record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.plan import Plan
from headwater.core.policy import Policy
from headwater.core.state import State, Stream
from headwater.core.statistics import Array
from headwater.models.mixture import mixture_of
from headwater.policies.names import IDENTITY, RESERVOIR

LEAST_SHARED = 0.25  # of the rows of a component before and after, together; with less it is another one
MOST_ROWS = 4000  # of the reservoir, that are looked at
MOST_NUMBER = 2**53


@dataclass(frozen=True)
class Identity:
    """The number (K,) of each component, and the next one that is free."""

    numbers: NDArray[np.int64]
    free: int

    @classmethod
    def of(cls, n_components: int) -> Identity:
        """Return the numbers of components that have none yet: their places."""
        return cls(np.arange(n_components), n_components)

    def select(self, components: NDArray[np.int64]) -> Identity:
        """Return the numbers of some of the components."""
        return Identity(self.numbers[components], self.free)

    def follow(self, before: Array, after: Array, weights: Array) -> Identity:
        """Return the numbers after a search, by the responsibilities (n, K) and (n, J) of rows before and after it."""
        from scipy.optimize import linear_sum_assignment  # takes a tenth of a second, and few streams have names

        common = after.T @ (weights[:, None] * before)
        either = (weights @ after)[:, None] + weights @ before - common
        shared = common / np.maximum(either, 1e-300)  # Jaccard's index
        ones, others = linear_sum_assignment(-shared)
        numbers, free = np.full(after.shape[1], -1), self.free
        for one, other in zip(ones, others, strict=True):
            if shared[one, other] >= LEAST_SHARED:
                numbers[one] = self.numbers[other]
        new = np.flatnonzero(numbers < 0)
        numbers[new] = free + np.arange(len(new))
        return Identity(numbers, free + len(new))


def carry_identity(before: State, after: State) -> State:
    """Return a state with the numbers of the one that it was learned from, if it has as many components."""
    record = before.records.get(IDENTITY) if isinstance(before, Stream) else None
    if record is None or not isinstance(after, Stream) or mixture_of(after).n_components != len(record.numbers):
        return after
    return after.with_record(IDENTITY, record)


@dataclass(frozen=True)
class IdentityPolicy(Policy):
    """Follows components through searches."""

    name = IDENTITY

    def after_move(self, plan: Plan, before: Stream, stream: Stream) -> Stream:
        record, reservoir = stream.records[IDENTITY], stream.records.get(RESERVOIR)
        one, other = mixture_of(before), mixture_of(stream)
        if before.parameters is stream.parameters or len(record.numbers) != one.n_components:
            return stream
        if reservoir is None or not len(reservoir):
            return stream
        rows: Batch = reservoir.batch[:MOST_ROWS]
        shares = [model.posterior(at.parameters, rows, plan.n_threads) for model, at in ((one, before), (other, stream))]
        return stream.with_record(IDENTITY, record.follow(shares[0], shares[1], rows.row_weights))

    def blank_record(self, plan: Plan, stream: Stream) -> Identity:
        return Identity.of(mixture_of(stream).n_components)

    def find_problem(self, plan: Plan, stream: Stream, record: object) -> str:
        assert isinstance(record, Identity)
        numbers = record.numbers
        sound = len(np.unique(numbers)) == len(numbers) and numbers.min(initial=0) >= 0
        return "" if sound and numbers.max(initial=-1) < record.free <= MOST_NUMBER else "numbers components twice, or wrongly"
