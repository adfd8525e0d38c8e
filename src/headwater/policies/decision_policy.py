"""What decisions along a stream depend on, as a record in model files: a series of tests, and a threshold that follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headwater.core.plan import Plan
from headwater.core.policy import Policy
from headwater.core.state import Stream
from headwater.policies.names import DECISIONS
from headwater.policies.online_testing import LARGEST_NATS, Follower, Series


@dataclass(frozen=True)
class Decisions:
    """A series of tests and a threshold; a level or a rate of 0 is one that was never asked for."""

    tests: Series
    follower: Follower

    @classmethod
    def blank(cls) -> Decisions:
        """Return the record before the first decision."""
        return cls(Series.begin(0.0), Follower(0.0, 0, 0, 0.0))

    def tests_at(self, level: float) -> Series:
        """Return the series of tests at this level; a new one if it was another."""
        return self.tests if self.tests.level == level else Series.begin(level)

    def follower_at(self, rate: float) -> Follower:
        """Return the threshold at this rate; a new one if it was another."""
        return self.follower if self.follower.rate == rate else Follower.begin(rate)


@dataclass(frozen=True)
class DecisionPolicy(Policy):
    """Carries the record from call to call. Merged streams begin anew: their rows have no common order."""

    name = DECISIONS

    def merge(self, plan: Plan, merged: Stream, streams: Sequence[Stream], shared: bool) -> Stream:
        return merged.without(DECISIONS) if len(streams) > 1 else merged

    def blank_record(self, plan: Plan, stream: Stream) -> Decisions:
        return Decisions.blank()

    def find_problem(self, plan: Plan, stream: Stream, record: object) -> str:
        assert isinstance(record, Decisions)
        tests, follower = record.tests, record.follower
        counts = 0 <= tests.rejections <= tests.tests and 0 <= follower.alarms <= follower.rows
        levels = 0.0 <= tests.level < 1.0 and 0.0 <= follower.rate < 1.0
        sound = (
            math.isfinite(follower.nats) and abs(follower.nats) <= 2.0 * LARGEST_NATS and bool((tests.spending >= 0.0).all())
        )
        return "" if counts and levels and sound else "has decided what no stream can have decided"
