"""How a mixture that streams leaves a bad start: moves proposed on some kept rows and judged on others, and a climb.

Between two healings the parameters of the E-step stand still, so the statistics are sums at one reference. A healing may
move that reference anywhere: what all rows say at the new one is told by those that are kept (`models/kept_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from headwater.models.kept_rows import Kept, Reached, climbed
from headwater.models.mixture import Mixture
from headwater.models.moves import Move, Split, View, exchanged, falls, seeds_of, split
from headwater.models.protocol import Start
from headwater.reservoir import Reservoir
from headwater.state import Batch
from headwater.statistics import Array

FEW = 2000  # rows that propose, and that judge, at least
PROPOSING, JUDGING = 5, 10  # and as many times what moves every parameter
THOROUGH = 4  # times as many, where nothing waits for it but who reads
RIVALS = 3  # moves that are tried at once
ROUNDS = 6
PASSES = 8  # of every contender in a round
SURE = 2.5  # standard errors by which a contender must be better
SURPRISE = 0.02  # nats a row that new rows score less than kept ones did
SURPRISED = 5.0  # and standard errors
OPTIMISM = 2.0  # nats a row, per parameter and row, by which rows that were fitted to score more
CLIMB = 30
LAST = 4  # on all kept rows
ON_THE_WAY = 6  # where the stream goes on, and the climb with it
CONTENT = 1e-6  # nats a row that a pass gains
START = 100  # passes that a new start costs
ALIKE = 0.9  # correlation of responsibilities, for what all rows say of a component to be worth something to its heir
WITNESSES = 100  # rows, of each component, that tell
HEIRS = 3  # climbs, after each of which it is asked who they are
OFTEN = 30.0  # times that rows may be looked at again, of twice as many as the warm-up has
SHARE = 0.15  # and of all others, times
WORSE = 0.01  # nats a row on kept rows that no healing may cost


@dataclass(frozen=True)
class Healing:
    """What a stream that heals itself knows of that.

    Attributes
    ----------
    rows : int
        Rows seen when the reference was found, by the warm-up or by a healing.
    next : int
        Rows at which it is to heal next.
    expected, deviation : float
        What rows to come should score at the reference at least, by those that are kept, and the standard deviation of these.
    score, weight : float
        Sum of the scores of the rows since then, and their weight.
    spent : float
        Rows that were looked at again so far, as E-steps.
    moves : int
        Moves that were made.
    doubt : bool
        Whether rows came as a surprise, and no new start was tried since.
    contested : int
        Rows seen at the last contest; 0 if there was none.
    gain, z : float
        What its best contender gained on rows that judge, in nats a row, and that in standard errors.
    chosen : str
        What was kept: "stream", "move" or "restart".
    """

    rows: int = 0
    next: int = 0
    expected: float = 0.0
    deviation: float = 0.0
    score: float = 0.0
    weight: float = 0.0
    spent: float = 0.0
    moves: int = 0
    doubt: bool = False
    contested: int = 0
    gain: float = 0.0
    z: float = 0.0
    chosen: str = "stream"

    @property
    def surprise(self) -> float:
        """Nats a row by which rows since then score less than expected, if that is more than chance; or 0."""
        if self.weight <= 0.0:
            return 0.0
        drop = self.expected - self.score / self.weight
        return drop if drop > max(SURPRISE, SURPRISED * self.deviation / self.weight**0.5) else 0.0

    def begun(self, rows: int, scores: Array, weights: Array, parameters: int) -> Healing:
        """Return the same at a new reference, at which kept rows score so much. It was fitted to them, so others score less."""
        mean = float(weights @ scores / weights.sum())
        deviation = float(weights @ (scores - mean) ** 2 / weights.sum()) ** 0.5
        expected = mean - OPTIMISM * parameters / max(rows, 1) - 3.0 * deviation / len(scores) ** 0.5
        return replace(self, rows=rows, expected=expected, deviation=deviation, score=0.0, weight=0.0)

    def after(self, score: float, weight: float) -> Healing:
        """Return the same after rows that score so much."""
        return replace(self, score=self.score + score, weight=self.weight + weight)

    def allowance(self, rows: int, warm_up: int) -> float:
        """Rows that may be looked at again now, so that healing never costs more than a part of the stream."""
        return OFTEN * min(rows, 2 * warm_up) + SHARE * rows - self.spent


@dataclass(frozen=True)
class Patient:
    """A mixture in a stream: its belief, the reference, and the rows that are kept."""

    model: Mixture
    readout: str
    prior: Any
    statistics: Any
    parameters: Any
    count: float
    reservoir: Reservoir
    healing: Healing
    rows: int
    key: int
    method: str = "kmeans"
    contest_readout: str = "mode"
    restart: Callable[[Batch, int], Start] | None = None
    forgets: bool = False
    n_threads: int | None = None

    @cached_property
    def enough(self) -> int:
        """Rows that move every parameter."""
        return self.model.rows_to_learn(self.reservoir.batch.X.shape[1])

    @cached_property
    def proposing(self) -> Batch:
        """All rows that propose."""
        return self.reservoir.batch[np.flatnonzero(self.reservoir.proposes)]

    @cached_property
    def judging(self) -> Batch:
        """All rows that judge."""
        return self.reservoir.batch[np.flatnonzero(~self.reservoir.proposes)]

    @cached_property
    def named(self) -> frozenset[int]:
        """Components that labels name."""
        labels = self.reservoir.batch.labels
        return frozenset(np.unique(labels[labels >= 0]).tolist())

    def on(self, batch: Batch) -> Kept:
        """Contests on some rows alone, by the readout that starts climb by."""
        return Kept(self.model, self.contest_readout, self.prior, batch, batch.size, None, self.n_threads)


@dataclass
class Purse:
    """What may be spent, and what was."""

    allowed: float
    spent: float = 0.0

    def pay(self, rows: float) -> None:
        self.spent += rows

    def affords(self, rows: float) -> bool:
        return self.spent + rows <= self.allowed


@dataclass(frozen=True)
class Verdict:
    """How a contender did on rows that judge: nats a row gained, and that in standard errors."""

    gain: float
    z: float


def judged(contender: Array, incumbent: Array, weights: Array) -> Verdict:
    """Compare scores of the same rows."""
    difference = contender - incumbent
    total = weights.sum()
    gain = float(weights @ difference / total)
    spread = float(weights**2 @ (difference - gain) ** 2) ** 0.5 / total
    return Verdict(gain, gain / (spread + 1e-12)) if np.isfinite(gain) else Verdict(-np.inf, -np.inf)


def healed(patient: Patient, allowed: float = np.inf) -> tuple[Any, Any, Healing]:
    """Return parameters, statistics at them, and what is known of healing, after moves, a contest and a climb.

    Without an end to what is `allowed`, in rows looked at, all kept rows are climbed on.
    """
    purse = Purse(allowed)
    healing = replace(patient.healing, contested=patient.rows, gain=0.0, z=0.0, chosen="stream")
    landed, healing = _contested(patient, healing, purse)
    parameters, statistics = _climbed(patient, landed, purse)
    judges = patient.judging[: max(FEW, JUDGING * patient.enough)]
    scores = patient.model.log_likelihood(parameters, judges, patient.n_threads)
    purse.pay(0.5 * len(judges))
    weights = judges.row_weights
    spent = healing.spent + purse.spent
    return parameters, statistics, replace(healing.begun(patient.rows, scores, weights, patient.enough), spent=spent)


def _contested(patient: Patient, healing: Healing, purse: Purse) -> tuple[Reached | None, Healing]:
    """Propose, climb and judge until nothing is better; return where that led, or None if the stream is as good."""
    times = 1 if np.isfinite(purse.allowed) else THOROUGH
    propose = patient.proposing[: times * max(FEW, PROPOSING * patient.enough)]
    judge = patient.judging[: times * max(FEW, JUDGING * patient.enough)]
    k = patient.model.n_components
    if len(propose) < 10 * k or len(judge) < 10 * k or patient.model.n_components < 2:
        return None, healing
    kept, weights = patient.on(propose), judge.row_weights
    rng = np.random.default_rng(np.random.SeedSequence((patient.key, patient.rows)))
    surprised = healing.doubt or patient.healing.surprise > 0.0
    healing = replace(healing, doubt=surprised)
    standing = climbed(kept, kept.look(patient.parameters)[0], 1)  # by this readout
    purse.pay(2.0 * len(propose))
    landed: Reached | None = None
    if surprised and patient.restart is not None and not patient.named and purse.affords(START * len(propose)):
        standing = climbed(kept, standing.statistics, 2 * PASSES)
        start = patient.restart(propose, patient.rows)
        fresh = patient.model.brought(patient.prior, start.prior, start.summary.mean)
        anew = climbed(kept, fresh, PASSES)
        purse.pay(START * len(propose))
        verdict = judged(patient.on(judge).scores(anew.parameters), patient.on(judge).scores(standing.parameters), weights)
        healing = replace(healing, doubt=False, gain=verdict.gain, z=verdict.z)
        if verdict.z > 1.0:
            standing = landed = anew
            healing = replace(healing, chosen="restart", moves=healing.moves + 1)
    for _ in range(2 * k if surprised else ROUNDS):
        if not purse.affords(4.0 * len(propose)):
            break
        found, after = _round(patient, kept, judge, standing, rng, purse)
        if after is not None and after.z > healing.z:
            healing = replace(healing, gain=after.gain, z=after.z)
        if found is None:
            break
        standing = landed = found
        healing = replace(healing, chosen="move" if healing.chosen == "stream" else healing.chosen, moves=healing.moves + 1)
    return landed, healing


def _round(
    patient: Patient, kept: Kept, judge: Batch, standing: Reached, rng: np.random.Generator, purse: Purse
) -> tuple[Reached | None, Verdict | None]:
    """Try the moves that promise most, all at once; return the best if it is better on rows that judge."""
    moves = _promising(patient, kept, standing, rng)
    purse.pay(4.0 * len(kept.batch))
    if not moves or not purse.affords((len(moves) + 1.0) * PASSES * len(kept.batch)):
        return None, None
    incumbent = climbed(kept, standing.statistics, PASSES)
    reached = [climbed(kept, exchanged(patient.model, standing.statistics, move), PASSES) for move in moves]
    purse.pay((len(moves) + 1.0) * (PASSES * len(kept.batch) + 0.5 * len(judge)))
    judges, weights = patient.on(judge), judge.row_weights
    before = judges.scores(incumbent.parameters)
    verdicts = [judged(judges.scores(one.parameters), before, weights) for one in reached]
    best = max(range(len(moves)), key=lambda at: verdicts[at].gain)
    found, verdict = reached[best], verdicts[best]
    more = len(patient.judging) > 1.5 * len(judge)
    if 0.0 < verdict.z <= SURE and more and purse.affords(2.0 * PASSES * len(patient.proposing)):  # a race on all kept rows
        everyone = patient.on(patient.proposing)
        found, incumbent = (climbed(everyone, one.statistics, PASSES) for one in (found, incumbent))
        judges, weights = patient.on(patient.judging), patient.judging.row_weights
        verdict = judged(judges.scores(found.parameters), judges.scores(incumbent.parameters), weights)
        purse.pay(2.0 * PASSES * len(patient.proposing) + len(patient.judging))
    return (found if verdict.z > SURE else None), verdict


def _promising(patient: Patient, kept: Kept, standing: Reached, rng: np.random.Generator) -> list[Move]:
    """Rate every split beside every merger; return those that promise most, of each component once."""
    model = patient.model
    view = View.of(
        model, kept.readout, patient.prior, standing.parameters, kept.batch, seeds_of(patient.method), patient.n_threads
    )
    price = 0.5 * patient.enough / model.n_components / len(kept.batch)
    given_up = falls(view, standing.statistics, kept.count, patient.named)
    splits: list[Split] = []
    for k in range(model.n_components):
        found = None if k in patient.named else split(view, k, rng)
        if found is not None:
            splits.append(found)
    moves = [
        Move(one, fall, one.gain + fall.gain - price)
        for one in splits
        for fall in given_up
        if one.component not in fall.components
    ]
    chosen: list[Move] = []
    for move in sorted(moves, key=lambda one: -one.gain):
        if move.gain <= 0.0 or len(chosen) == RIVALS:
            break
        if all(move.split.component != other.split.component for other in chosen):
            chosen.append(move)
    return chosen


def _climbed(patient: Patient, landed: Reached | None, purse: Purse) -> tuple[Any, Any]:
    """Climb on kept rows beside what all rows say, on some of them first; return parameters, and what all rows say at them."""
    if patient.forgets and landed is None:  # parameters follow the statistics at every batch
        return patient.parameters, patient.statistics
    everyone = patient.reservoir.batch
    enough, most, passes, last = max(FEW, JUDGING * patient.enough), len(everyone), CLIMB, LAST
    if np.isfinite(purse.allowed):
        left, passes, last = purse.allowed - purse.spent, ON_THE_WAY, 2
        most = int(np.clip(left / 6.0, enough, most))
    here = Stand(patient.parameters, patient.statistics)
    if landed is not None:
        here = Stand(landed.parameters, None)
    elif np.isfinite(patient.reservoir.limit) and not patient.healing.surprise:  # nothing is far from what it was
        most = min(most, 2 * enough)
    for rows, tries in ((enough, passes), (most, last if enough < most else 0)):
        if tries:
            here = _carried(patient, everyone[: min(rows, most)], here, tries, purse)
    if landed is None and not here.gain > -WORSE:
        return patient.parameters, patient.statistics
    statistics = here.statistics.writable()
    statistics.from_base[...] = patient.statistics.from_base
    return here.parameters, statistics


@dataclass(frozen=True)
class Stand:
    """Where a climb stands: parameters, what all rows say at them, if that is known, and what kept rows have gained so far."""

    parameters: Any
    statistics: Any
    gain: float = 0.0


def _carried(patient: Patient, batch: Batch, here: Stand, passes: int, purse: Purse) -> Stand:
    """Climb on some of the kept rows. What all rows say beside them goes over to those that components have become."""
    model = patient.model
    whole = patient.reservoir.limit == np.inf and len(batch) == len(patient.reservoir.batch) and not patient.forgets
    alone = Kept(model, patient.readout, patient.prior, batch, patient.count, None, patient.n_threads)
    at_reference, before = alone.look(patient.parameters)
    beside = None if whole else patient.statistics - at_reference
    moved = here.parameters is not patient.parameters
    parameters, known, spent = here.parameters, np.eye(model.n_components), 1.0
    for turn in range(1 if whole else HEIRS):
        kept = alone
        if beside is not None and moved:
            heirs = _heirs(patient, parameters, batch)
            if turn and np.array_equal(heirs > 0.0, known > 0.0):
                break
            known, kept = heirs, replace(alone, beside=model.recombined(beside, heirs))
        elif beside is not None:
            kept = replace(alone, beside=beside)
        start = kept.look(parameters)[0] if moved else patient.statistics
        reached = climbed(kept, start, passes, CONTENT)
        parameters, moved, spent = reached.parameters, True, spent + reached.passes + 1.0
    purse.pay(spent * len(batch))
    return Stand(parameters, reached.statistics, reached.score - before)


def _heirs(patient: Patient, parameters: Any, batch: Batch) -> Array:
    """Return which component (columns) has gone over to which of those that there are now (rows), and how much of it.

    Where responsibilities are nearly those of one before, what all rows say of that, beside the kept ones, is worth as much as
    the regression of the ones on the others. Elsewhere it says nothing: it would be the noise of other rows.
    """
    some = batch[: max(FEW, WITNESSES * patient.model.n_components)]
    old, new = (patient.model.looked_at(one, some, patient.n_threads)[0] for one in (patient.parameters, parameters))
    return heirs(old, new)


def heirs(old: Array, new: Array) -> Array:
    """Return the same of responsibilities before and after, whose numbers of components may differ."""
    products, squares = new.T @ old, np.einsum("ij,ij->j", old, old) + 1e-12
    alike = products / np.sqrt(np.outer(np.einsum("ij,ij->j", new, new) + 1e-12, squares))
    return np.where(alike > ALIKE, np.minimum(products / squares, 1.0), 0.0)
