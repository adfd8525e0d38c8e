"""Decisions along a stream: a false discovery rate for tests that never end, and a threshold that follows drift.

LORD++ (Ramdas, Yang, Wainwright and Jordan 2017) tests hypothesis t at
``w gamma(t) + (a - w) gamma(t - t1) + a sum of gamma(t - tj)``, where tj is the time of rejection number j. gamma is here a sum
of geometric sequences, close to a power of time, so that the sums over all rejections are a few numbers.

The threshold that follows drift is that of conformal inference with quantile tracking (Gibbs and Candes 2021; Angelopoulos,
Candes and Tibshirani 2023): in nats, it rises by ``step * (1 - rate)`` after each alarm and falls by ``step * rate`` after each
other row. The p-values that it is compared with are cut at e^-30, so it stays between two bounds, and the share of alarms among
n rows is within ``(30 + step) / (step n)`` of the rate, whatever the rows are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array

DECAYS = np.exp2(-0.5 * np.arange(1, 49))  # of geometric sequences: they last from one row to sixteen million
POWER = 1.2  # gamma falls with about this power of time: the slower, the more is left after a long quiet time
SHARES = DECAYS ** (POWER - 1.0) / np.sum(DECAYS ** (POWER - 1.0))  # of each sequence, which sum to 1
FIRST_WEALTH = 0.5  # of the level, which the first tests may spend
STEP = 0.25  # nats
LARGEST_NATS = 30.0  # of a p-value
BLOCK = 256  # rows that are looked at together


@dataclass(frozen=True)
class Series:
    """The series of tests of a stream at one level: what each rejection still gives, by the decay of its share."""

    level: float
    tests: int
    rejections: int
    spending: Array  # (48,) what the next test gets of each geometric sequence

    @classmethod
    def begin(cls, level: float) -> Series:
        """Return a series before its first test."""
        return cls(level, 0, 0, FIRST_WEALTH * level * SHARES * DECAYS)

    def take(self, pvalues: Array) -> tuple[Series, NDArray[np.bool_]]:
        """Test rows in their order; return the series after them, and which hypotheses were rejected. NaN is no test.

        Examples
        --------
        >>> import numpy as np
        >>> from headwater.policies.online_testing import Series
        >>> series, rejected = Series.begin(0.05).take(np.array([0.9, 1e-9, 0.8, 1e-4, np.nan]))
        >>> rejected
        array([False,  True, False,  True, False])
        """
        known = np.flatnonzero(~np.isnan(pvalues))
        rejected = np.zeros(len(pvalues), dtype=bool)
        spending, rejections, at = self.spending, self.rejections, 0
        while at < len(known):
            block = pvalues[known[at : at + BLOCK]]
            powers = (1.0 - DECAYS) ** np.arange(len(block) + 1)[:, None]
            found = np.flatnonzero(block <= powers[:-1] @ spending)
            taken = int(found[0]) + 1 if len(found) else len(block)
            spending = spending * powers[taken]
            if len(found):
                rejected[known[at + taken - 1]] = True
                gift = self.level * (1.0 - FIRST_WEALTH if not rejections else 1.0)
                spending, rejections = spending + gift * SHARES * DECAYS, rejections + 1
            at += taken
        return Series(self.level, self.tests + len(known), rejections, spending), rejected


@dataclass(frozen=True)
class Follower:
    """A threshold, in nats, that follows a stream so that alarms come at a rate."""

    rate: float
    rows: int
    alarms: int
    nats: float

    @classmethod
    def begin(cls, rate: float) -> Follower:
        """Return the threshold before the first row."""
        return cls(rate, 0, 0, -math.log(rate))

    def take(self, pvalues: Array) -> tuple[Follower, NDArray[np.bool_]]:
        """Decide for rows in their order; return the threshold after them, and which rows are odd. NaN is no row."""
        known = np.flatnonzero(~np.isnan(pvalues))
        nats = np.minimum(-np.log(np.maximum(pvalues[known], math.exp(-LARGEST_NATS - 1.0))), LARGEST_NATS)
        odd = np.zeros(len(pvalues), dtype=bool)
        threshold, alarms, at = self.nats, self.alarms, 0
        while at < len(known):
            block = nats[at : at + BLOCK]
            falling = threshold - STEP * self.rate * np.arange(len(block))
            found = np.flatnonzero(block >= falling)
            taken = int(found[0]) + 1 if len(found) else len(block)
            threshold -= STEP * self.rate * taken
            if len(found):
                odd[known[at + taken - 1]] = True
                threshold, alarms = threshold + STEP, alarms + 1
            at += taken
        return replace(self, rows=self.rows + len(known), alarms=alarms, nats=threshold), odd
