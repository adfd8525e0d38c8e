"""Adaptive forgetting: a component forgets when its rows score worse than reservoir rows predict.

Every component has an expectation, from the reservoir rows it is responsible for: how new rows should score at the parameters
of the E-step, and how much that varies. Each batch adds the deficit of its rows, in standard deviations and less a slack, to a
sum per component that never falls below zero (CUSUM). Another sum is that of surpluses, since a component that became narrower
has changed, too. When a sum exceeds chance, what the component knew is kept only as a prior for new rows: p parameters that
lose q nats a row are worth p / 2q rows, since p / 2n is the expected loss after n rows. Its weight and all other components
stay as they are. Shares of the components are watched separately, and weights forget separately. After that, rows count as in
any stream, and memories grow again.

A clock of the forgetting, in nats, makes the reservoir a sample by present weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.state import Progress, Summary
from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.models.mixture import Mixture
from headwater.policies.refinement_record import OPTIMISM_NATS

LEAST_ROWS = 50.0  # reservoir rows of a component, below which it has no expectation
MOST_DEVIATIONS = 3.0  # standard deviations that a row counts at most, so that a single row is never a change
SMALLEST_EFFECT = 0.05  # standard deviations that are too little to forget for
NOISE_Z = 4.0  # standard errors of the expectation
ALARM_NATS = 8.0  # a sum gets this high by chance with probability exp(-2 * ALARM_NATS)
WINDOW_BATCHES = 8  # batches that shares are counted over
GROWTH_TIMES = 1.25  # times the rows since something was forgotten, after which a new expectation is found
TICKS_PER_NAT = 1024.0  # of the clock in a nat, so that rounding errors make no ranks
TINY, LOWEST = 1e-300, -1e300
FARTHEST_SCORE = 1e120  # limit of a score, so that its square is finite
SIDES = np.array([[1.0], [-1.0]])  # rows that score worse than expected, and better


@dataclass(frozen=True)
class Drift:
    """The record of adaptive forgetting.

    Attributes
    ----------
    memory : ndarray of shape (K,)
        Rows that the moments of each component are worth.
    began : ndarray of int64, shape (K,)
        Rows seen when it forgot the last time; 0 if it never did.
    expected, deviation, level, slack : ndarray of shape (K,)
        What its rows should score, the standard deviation of that (0: not known yet), the mean of standardised deficits of kept
        rows, and what is allowed beyond it.
    sums, since : ndarray of shape (2, K)
        CUSUMs of deficits and of surpluses, and the weight of the rows in them.
    deficits : ndarray of shape (K,)
        Deficits of the batch that is not folded yet.
    shares : ndarray of shape (K,)
        Weight that each component was responsible for, in the batches of the window.
    following : bool
        Whether parameters follow the statistics at every batch, because something has changed.
    clock, present : float
        What was forgotten so far, in nats, and what all rows weigh now by this clock.
    alarms : int
        How often something was forgotten.
    last, found : int
        Rows seen when that was, and when expectations were found.
    """

    memory: Array
    began: NDArray[np.int64]
    expected: Array
    deviation: Array
    level: Array
    slack: Array
    sums: Array
    since: Array
    deficits: Array
    shares: Array
    following: bool = False
    clock: float = 0.0
    present: float = 0.0
    alarms: int = 0
    last: int = 0
    found: int = 0

    @classmethod
    def begin(cls, memory: Array) -> Drift:
        """Return the record before any row was watched."""
        k = len(memory)
        one, two = np.zeros(k), np.zeros((2, k))
        return cls(memory.copy(), np.zeros(k, dtype=np.int64), one, one, one, one, two, two, one, one)

    @property
    def due(self) -> float:
        """Rows from which on expectations are to be found again, while parameters follow."""
        return self.last + GROWTH_TIMES * (self.found - self.last)


def note_scores(drift: Drift, responsibilities: Array, scores: Array, weights: Array) -> Drift:
    """Return what is known after some rows of a batch."""
    known = drift.deviation > 0.0
    scales = known / np.where(known, drift.deviation, 1.0)
    z = drift.expected[:, None] - np.maximum(scores, LOWEST)
    z *= scales[:, None]
    np.minimum(z, MOST_DEVIATIONS, out=z)
    np.maximum(z, -MOST_DEVIATIONS, out=z)
    z *= responsibilities.T
    return replace(drift, deficits=drift.deficits + (z @ weights if weights.size else z.sum(axis=1)))


def set_expectations(
    drift: Drift, responsibilities: Array, scores: Array, weights: Array, places: NDArray[np.int64], each: float, seen: int
) -> Drift:
    """Return the expectations of new rows, from reservoir rows since each component last forgot.

    `each` is the number of parameters of a component, or the rows that it takes to learn one.
    """
    finite = np.isfinite(scores)
    weights = weights[:, None] * responsibilities * ((places[:, None] >= drift.began) & finite[:, None])
    scores = np.where(finite, np.clip(scores, -FARTHEST_SCORE, FARTHEST_SCORE), 0.0)
    total = np.maximum(weights.sum(axis=0), TINY)
    kept = total**2 / np.maximum((weights**2).sum(axis=0), TINY)
    mean = scores @ weights / total
    apart = scores[:, None] - mean
    deviation = np.sqrt((weights * apart**2).sum(axis=0) / total)
    known = (kept >= LEAST_ROWS) & (deviation > 0.0)
    scale = np.where(known, deviation, 1.0)
    z = np.clip(-apart / scale, -MOST_DEVIATIONS, MOST_DEVIATIONS)
    slack = (
        SMALLEST_EFFECT
        + OPTIMISM_NATS * each / np.maximum(drift.memory, 1.0) / scale
        + NOISE_Z / np.sqrt(np.maximum(kept, 1.0))
    )
    level = (weights * z).sum(axis=0) / total
    if drift.following:  # a component still moves, and old reservoir rows score ever less; the best expectation holds
        stays = ~known | (drift.expected - (drift.level + drift.slack) * drift.deviation > mean - (level + slack) * deviation)
        stays &= drift.deviation > 0.0
        known = known | stays
        mean, deviation, level, slack = (
            np.where(stays, before, now)
            for before, now in zip(
                (drift.expected, drift.deviation, drift.level, drift.slack), (mean, deviation, level, slack), strict=True
            )
        )
    found = {"expected": mean, "deviation": deviation, "level": level, "slack": slack, "sums": drift.sums, "since": drift.since}
    return replace(drift, found=seen, **{name: one * known for name, one in found.items()})


def judge_batch(
    drift: Drift, progress: Progress, shares: Array, summary: Summary, floor: float, apart: bool
) -> tuple[Drift, float]:
    """Return the record after a batch, and the memory of the weights; both are less if the batch was a surprise.

    `shares` are those of all rows so far, `floor` the rows that it takes to learn a component. If components cannot forget
    separately (`apart`), all of them do.
    """
    counts: Array = summary.statistics.count
    beyond = (drift.deficits - drift.level * counts) * SIDES
    sums = np.maximum(drift.sums + beyond - drift.slack * counts, 0.0) * (drift.deviation > 0.0)
    since = np.where(sums > 0.0, drift.since + counts, 0.0)
    alarms = (sums * drift.slack > ALARM_NATS).any(axis=0)
    loss = (sums / np.maximum(since, 1.0) + drift.slack).max(axis=0) * drift.deviation
    memory, mass, window = drift.memory, progress.mass, drift.shares + counts
    left = np.where(alarms, np.minimum(memory, np.maximum(0.5 * floor / np.maximum(loss, TINY), floor - counts)), memory)
    if alarms.any() and not apart:
        mass = min(mass, float((left[alarms] / np.maximum(shares[alarms], TINY)).max()))
        left, alarms = np.minimum(memory, mass * shares), np.ones_like(alarms)
    forgot = [float(np.log(np.maximum(memory / np.maximum(left, TINY), 1.0)).max())]
    size = float(window.sum())
    lost = _lost_nats(window, shares, progress.mass)
    surprised = lost > 0.0
    if surprised:
        mass = min(mass, max(0.5 * (len(window) - 1.0) / lost, floor - summary.size))
        forgot.append(float(np.log(progress.mass / mass)))
    changed = surprised or bool(alarms.any())
    over = surprised or size >= WINDOW_BATCHES * summary.size
    began = np.where(alarms, progress.rows_seen, drift.began)
    nats = float(np.ceil(TICKS_PER_NAT * max(forgot)) / TICKS_PER_NAT)
    zero = np.zeros_like(memory)
    after = replace(
        drift, memory=left, began=began, sums=sums * ~alarms, since=since * ~alarms, deficits=zero,
        shares=zero if over else window, deviation=np.where(alarms | surprised, zero, drift.deviation),
        clock=drift.clock + nats, present=(drift.present + summary.size) * float(np.exp(-nats)),
        following=drift.following or changed,
    )  # fmt: skip
    if changed:
        seen = progress.rows_seen + summary.rows
        after = replace(after, alarms=after.alarms + 1, last=seen, found=seen)
    return after, mass


def _lost_nats(window: Array, shares: Array, mass: float) -> float:
    """Nats a row that weights lose on recent rows, if these belong to other components by more than chance (G-test); or 0."""
    size = float(window.sum())
    recent = window / max(size, TINY)
    terms = np.where(window > 0.0, window * np.log(np.maximum(recent, TINY) / np.maximum(shares, TINY)), 0.0)
    lost, degrees = float(terms.sum()), len(window) - 1.0
    chance = degrees + 2.0 * np.sqrt(2.0 * ALARM_NATS * degrees) + 4.0 * ALARM_NATS
    return lost / size if 2.0 * lost > chance * (1.0 + size / mass) else 0.0


def fold_forgetting(
    model: Mixture,
    drift: Drift,
    statistics: ComponentStatistics,
    progress: Progress,
    summary: Summary,
    mass: float,
    folds: float,
    floor: float,
    pace: float = 1.0,
) -> tuple[ComponentStatistics, Progress, Drift]:
    """Fold a batch where something was forgotten: weights by their own memory, moments of each component by its own.

    Memory grows at `pace`, since the first rows were summed at worse parameters.
    """
    counts: Array = summary.statistics.count
    old, total = statistics.count, mass + summary.size
    shares = (mass * old + counts) / total
    worth = drift.memory + counts
    if model.has_own_moments:
        keep = shares * drift.memory / np.maximum(worth * old, TINY)
        after = model.recombine(statistics, np.diag(keep), summary.statistics, np.diag(shares / np.maximum(worth, TINY)))
        after = after.with_share_of_base(statistics.from_base * min(float(keep.min()), 1.0))
        memory = drift.memory + pace * counts
    else:
        after = statistics.toward(summary.statistics, summary.size / total, 1.0 / summary.size)
        memory, worth = (mass + pace * summary.size) * shares, total * shares
        total = mass + pace * summary.size
    just = drift.began == progress.rows_seen  # the batch of the change has rows from before and after it
    memory = np.where(just & (drift.clock > 0.0), np.minimum(memory, np.maximum(drift.memory, floor)), memory)
    alive = shares > 1.0 / total
    least = float((worth[alive] / shares[alive]).min()) if alive.any() else total
    progress = Progress(
        progress.rows_seen + summary.rows, progress.weight_seen + summary.size, progress.folds + folds, total, min(total, least)
    )
    return after, progress, replace(drift, memory=memory)
