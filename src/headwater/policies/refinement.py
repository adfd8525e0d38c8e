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

from headwater.core.contracts import Start
from headwater.core.state import Batch
from headwater.core.statistics import Array
from headwater.models.mixture import Mixture
from headwater.policies.control_variate import Kept, Reached, climbed
from headwater.policies.reservoir import Reservoir
from headwater.policies.split_merge import Move, Split, View, exchanged, falls, seeds_of, split

FEW = 2000  # rows that propose, and that judge, at least
PROPOSING, JUDGING = 5, 10  # and as many times what moves every parameter
THOROUGH = 4  # times as many, where nothing waits for it but who reads
RIVALS = 3  # moves that are tried at once
ROUNDS = 6
PASSES = 8  # of every contender in a round
SURE = 2.5  # standard errors by which a contender must be better
LIKELY = 1.0  # and if all that is known came from other rows
SURPRISE = 0.02  # nats a row that new rows score less than kept ones did
SURPRISED = 5.0  # and standard errors
OPTIMISM = 2.0  # nats a row, per parameter and row, by which rows that were fitted to score more
CLIMB = 60  # passes, at most
CONTENT = 1e-5  # nats a row that a pass gains
PATIENCE = 1e-3  # and as a part of what noise costs, on the way
SLOW = 15  # passes over all rows, from which on a climb may be one that leads nowhere
ASTRAY = 2.0  # standard errors by which rows that judge say so
START = 100  # passes that a new start costs
ALIKE = 0.9  # correlation of responsibilities, for what all rows say of a component to be worth something to its heir
WITNESSES = 100  # rows, of each component, that tell
SOME, CLIMBING = 5000, 20  # rows to climb on first, and times what moves every parameter
PRECISE = 2.5e-4  # nats a row that may be lost by telling from some kept rows what all would say
OFTEN = 100.0  # times that rows may be looked at again, of twice as many as the warm-up has
SHARE = 0.15  # and of all others, times
ODD = 10.0  # nats that a row counts for at most where contenders are compared
ALARMED = 200.0  # times that rows of a warm-up may be looked at again where new rows are unlike them


@dataclass(frozen=True)
class Refinement:
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
        Whether rows came as a surprise, or a climb had no end, and no new start was tried since.
    content : bool
        Whether a contest on as many rows as are ever kept found nothing better: another one would not, either.
    contested : int
        Rows seen at the last contest; 0 if there was none.
    gain, z : float
        What its best contender gained on rows that judge, in nats a row, and that in standard errors.
    chosen : str
        What was kept: "stream", "climb", "move" or "restart".
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
    content: bool = False
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

    def begun(self, rows: int, scores: Array, weights: Array, parameters: int) -> Refinement:
        """Return the same at a new reference, at which kept rows score so much. It was fitted to them, so others score less."""
        mean = float(weights @ scores / weights.sum())
        deviation = float(weights @ (scores - mean) ** 2 / weights.sum()) ** 0.5
        expected = mean - OPTIMISM * parameters / max(rows, 1) - 3.0 * deviation / len(scores) ** 0.5
        return replace(self, rows=rows, expected=expected, deviation=deviation, score=0.0, weight=0.0)

    def after(self, score: float, weight: float) -> Refinement:
        """Return the same after rows that score so much."""
        return replace(self, score=self.score + score, weight=self.weight + weight)

    def allowance(self, rows: int, warm_up: int) -> float:
        """Rows that may be looked at again now, so that healing never costs more than a part of the stream.

        Where rows come as a surprise, it may cost as much as the warm-up did: what is known does not hold any more.
        """
        left = OFTEN * min(rows, 2 * warm_up) + SHARE * rows - self.spent
        return max(left, ALARMED * warm_up) if self.surprise else left


@dataclass(frozen=True)
class SearchContext:
    """A mixture in a stream: its belief, the reference, and the rows that are kept."""

    model: Mixture
    readout: str
    prior: Any
    statistics: Any
    parameters: Any
    count: float
    reservoir: Reservoir
    healing: Refinement
    rows: int
    key: int
    method: str = "kmeans"
    contest_readout: str = "mode"
    restart: Callable[[Batch, int], Start] | None = None
    forgets: bool = False
    thorough: bool = False  # nothing waits for it but who reads
    forgot: bool = False  # some of what came, so that kept rows are not all there is
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

    @cached_property
    def whole(self) -> bool:
        """Whether all rows are kept, and count alike."""
        return bool(self.reservoir.limit == np.inf) and not self.forgets and not self.forgot

    @property
    def content(self) -> float:
        """Nats a row that a pass has to gain: little, beside what the noise of the rows costs, p / 2 rows."""
        return CONTENT if self.thorough else max(CONTENT, PATIENCE * self.enough / max(self.rows, 1))

    def beside(self, batch: Batch) -> Kept:
        """Climbs on some kept rows, beside what all rows say, if these are not all."""
        alone = Kept(self.model, self.readout, self.prior, batch, self.count, None, self.n_threads)
        if self.whole and len(batch) == len(self.reservoir.batch):
            return alone
        return replace(alone, beside=self.statistics - alone.look(self.parameters)[0])

    def on(self, batch: Batch) -> Kept:
        """Contests on some rows alone, by the readout that starts climb by."""
        return Kept(self.model, self.contest_readout, self.prior, batch, batch.size, None, self.n_threads)


@dataclass
class Budget:
    """What may be spent, and what was."""

    allowed: float
    spent: float = 0.0

    def pay(self, rows: float) -> None:
        self.spent += rows

    def affords(self, rows: float) -> bool:
        return self.spent + rows <= self.allowed

    def passes(self, rows: int) -> int:
        """Passes over so many rows that it affords."""
        return int(min((self.allowed - self.spent) / max(rows, 1), 1e6))


@dataclass(frozen=True)
class Verdict:
    """How a contender did on rows that judge: nats a row gained, and that in standard errors."""

    gain: float
    z: float


def judged(contender: Array, incumbent: Array, weights: Array) -> Verdict:
    """Compare scores of the same rows; no row, however odd, counts for more than a few nats."""
    difference = np.clip(contender - incumbent, -ODD, ODD)
    total = weights.sum()
    gain = float(weights @ difference / total)
    spread = float(weights**2 @ (difference - gain) ** 2) ** 0.5 / total
    return Verdict(gain, gain / (spread + 1e-12)) if np.isfinite(gain) else Verdict(-np.inf, -np.inf)


def healed(search: SearchContext, allowed: float = np.inf) -> tuple[Any, Any, Refinement]:
    """Return parameters, statistics at them, and what is known of healing, after moves, a contest and a climb.

    Without an end to what is `allowed`, in rows looked at, all kept rows are climbed on.
    """
    budget = Budget(allowed)
    healing = replace(search.healing, contested=search.rows, gain=0.0, z=0.0, chosen="stream")
    landed, healing = _contested(search, healing, budget)
    parameters, statistics, slow = _climbed(search, landed, budget)
    healing = replace(healing, doubt=healing.doubt or slow)
    judges = search.judging[: max(FEW, JUDGING * search.enough)]
    scores = search.model.log_likelihood(parameters, judges, search.n_threads)
    budget.pay(0.5 * len(judges))
    weights = judges.row_weights
    spent = healing.spent + budget.spent
    return parameters, statistics, replace(healing.begun(search.rows, scores, weights, search.enough), spent=spent)


def _contested(search: SearchContext, healing: Refinement, budget: Budget) -> tuple[Reached | None, Refinement]:
    """Propose, climb and judge until nothing is better; return where that led, or None if the stream is as good."""
    before = search.healing
    surprised = healing.doubt or before.surprise > 0.0
    full = bool(np.isfinite(search.reservoir.limit))
    hopeless = healing.content or (before.contested > 0 and before.z == 0.0 and not full and not search.thorough)
    if hopeless and not surprised:
        return None, healing
    needed = 1.5 * START if surprised else 6.0
    thorough = search.thorough or (full and budget.affords(needed * THOROUGH * max(FEW, PROPOSING * search.enough)))
    times = THOROUGH if search.thorough else 2 if thorough else 1
    propose = search.proposing[: times * max(FEW, PROPOSING * search.enough)]
    judge = search.judging[: times * max(FEW, JUDGING * search.enough)]
    k = search.model.n_components
    if len(propose) < 10 * k or len(judge) < 10 * k or search.model.n_components < 2:
        return None, healing
    kept, weights = search.on(propose), judge.row_weights
    rng = np.random.default_rng(np.random.SeedSequence((search.key, search.rows)))
    healing = replace(healing, doubt=surprised)
    standing = climbed(kept, kept.look(search.parameters)[0], 1)  # by this readout
    budget.pay(2.0 * len(propose))
    landed: Reached | None = None
    strange = before.surprise > 0.0
    judges = search.on(judge)
    if strange:  # then what all rows said at other parameters is worth little beside what kept ones say by themselves
        standing = climbed(kept, standing.statistics, 2 * PASSES)
        now = search.model.readout(kept.readout, search.prior, search.statistics, search.count)
        verdict = judged(judges.scores(standing.parameters), judges.scores(now), weights)
        budget.pay(2.0 * PASSES * len(propose) + len(judge))
        if verdict.z > LIKELY:
            landed, healing = standing, replace(healing, gain=verdict.gain, z=verdict.z, chosen="climb")
    worthwhile = strange or (surprised and thorough)  # few rows of the same kind find no better start than the warm-up did
    if worthwhile and search.restart is not None and not search.named and budget.affords(START * len(propose)):
        standing = standing if strange else climbed(kept, standing.statistics, 2 * PASSES)
        start = search.restart(propose, search.rows)
        fresh = search.model.brought(search.prior, start.prior, start.summary.mean)
        anew = climbed(kept, fresh, PASSES)
        budget.pay(START * len(propose))
        verdict = judged(judges.scores(anew.parameters), judges.scores(standing.parameters), weights)
        healing = replace(healing, doubt=not thorough)
        if landed is None:
            healing = replace(healing, gain=verdict.gain, z=verdict.z)
        if verdict.z > (LIKELY if strange else SURE):
            standing = landed = anew
            healing = replace(healing, gain=verdict.gain, z=verdict.z, chosen="restart", moves=healing.moves + 1)
    for _ in range(2 * k if surprised else ROUNDS):
        if not budget.affords(4.0 * len(propose)):
            break
        found, after = _round(search, kept, judge, standing, rng, budget)
        if after is not None and after.z > healing.z:
            healing = replace(healing, gain=after.gain, z=after.z)
        if found is None:
            break
        standing = landed = found
        healing = replace(healing, chosen="restart" if healing.chosen == "restart" else "move", moves=healing.moves + 1)
    content = thorough and full and landed is None and not surprised and not search.forgets
    return landed, replace(healing, content=content)


def _round(
    search: SearchContext, kept: Kept, judge: Batch, standing: Reached, rng: np.random.Generator, budget: Budget
) -> tuple[Reached | None, Verdict | None]:
    """Try the moves that promise most, all at once; return the best if it is better on rows that judge."""
    moves = _promising(search, kept, standing, rng)
    budget.pay(4.0 * len(kept.batch))
    if not moves or not budget.affords((len(moves) + 1.0) * PASSES * len(kept.batch)):
        return None, None
    incumbent = climbed(kept, standing.statistics, PASSES)
    reached = [climbed(kept, exchanged(search.model, standing.statistics, move), PASSES) for move in moves]
    budget.pay((len(moves) + 1.0) * (PASSES * len(kept.batch) + 0.5 * len(judge)))
    judges, weights = search.on(judge), judge.row_weights
    before = judges.scores(incumbent.parameters)
    verdicts = [judged(judges.scores(one.parameters), before, weights) for one in reached]
    best = max(range(len(moves)), key=lambda at: verdicts[at].gain)
    found, verdict = reached[best], verdicts[best]
    more = len(search.judging) > 1.5 * len(judge)
    if 0.0 < verdict.z <= SURE and more and budget.affords(2.0 * PASSES * len(search.proposing)):  # a race on all kept rows
        everyone = search.on(search.proposing)
        found, incumbent = (climbed(everyone, one.statistics, PASSES) for one in (found, incumbent))
        judges, weights = search.on(search.judging), search.judging.row_weights
        verdict = judged(judges.scores(found.parameters), judges.scores(incumbent.parameters), weights)
        budget.pay(2.0 * PASSES * len(search.proposing) + len(search.judging))
    return (found if verdict.z > SURE else None), verdict


def _promising(search: SearchContext, kept: Kept, standing: Reached, rng: np.random.Generator) -> list[Move]:
    """Rate every split beside every merger; return those that promise most, of each component once."""
    model = search.model
    view = View.of(
        model, kept.readout, search.prior, standing.parameters, kept.batch, seeds_of(search.method), search.n_threads
    )
    price = 0.5 * search.enough / model.n_components / len(kept.batch)
    given_up = falls(view, standing.statistics, kept.count, search.named)
    splits: list[Split] = []
    for k in range(model.n_components):
        found = None if k in search.named else split(view, k, rng)
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


def _climbed(search: SearchContext, landed: Reached | None, budget: Budget) -> tuple[Any, Any, bool]:
    """Climb on kept rows beside what all rows say; return parameters, what all rows say at them, and whether it had no end."""
    if landed is None and search.forgets:  # parameters follow the statistics at every batch
        return search.parameters, search.statistics, False
    if landed is not None:
        reached = _settled_in(search, landed, budget)
    else:
        reached = _risen(search, budget) if search.whole else _watched(search, budget)
    statistics = reached.statistics.writable()
    statistics.from_base[...] = search.statistics.from_base
    return reached.parameters, statistics, landed is None and search.whole and reached.passes >= SLOW


def _settled_in(search: SearchContext, landed: Reached, budget: Budget) -> Reached:
    """Climb from where a move led; what all rows say beside those that are kept goes over to heirs of components."""
    everyone = search.reservoir.batch
    kept = search.beside(everyone)
    if kept.beside is not None:
        kept = replace(kept, beside=search.model.recombined(kept.beside, _heirs(search, landed.parameters, everyone)))
    passes = max(2, min(CLIMB, budget.passes(len(everyone))))
    reached = climbed(kept, kept.look(landed.parameters)[0], passes, CONTENT)
    budget.pay((reached.passes + 2.0) * len(everyone))
    return reached


def _risen(search: SearchContext, budget: Budget) -> Reached:
    """Climb on all rows, which are all kept: that is batch EM. As long as it pays, for later rows start from here."""
    kept = search.beside(search.reservoir.batch)
    passes = max(2, min(CLIMB, budget.passes(len(kept.batch))))
    reached = climbed(kept, search.statistics, passes, search.content)
    budget.pay(reached.passes * len(kept.batch))
    return reached


def _watched(search: SearchContext, budget: Budget) -> Reached:
    """Climb on rows that propose beside what all rows say, watched by others; then on all kept rows, as far as these agreed.

    What all rows say was summed at the reference. In directions in which rows say little, a climb beside that may go
    astray: it ends where rows that judge score best. Where the second pass gains nothing, the first was enough.
    """
    few, judge = (batch[: max(SOME, CLIMBING * search.enough)] for batch in (search.proposing, search.judging))
    stay = Reached(search.parameters, search.statistics, np.nan, 0)
    if not len(few) or not len(judge):
        return stay
    kept, judges, weights = search.beside(few), search.on(judge), judge.row_weights
    first = kept.parameters(search.statistics)
    at_first, before = kept.look(first)
    at_second, score = kept.look(kept.parameters(at_first))
    budget.pay(3.0 * len(few))
    best = Reached(first, at_first, before, 0)
    if score - before > search.content:
        here, made, tries, ended = Reached(kept.parameters(at_first), at_second, score, 2), 2, 2, False
        known = judges.scores(first)
        while True:
            found = judges.scores(here.parameters)
            budget.pay(0.5 * len(judge))
            verdict = judged(found, known, weights)
            if verdict.gain > 0.0:
                best, known = replace(here, passes=made), found
            ended = ended or verdict.z < -ASTRAY or made >= CLIMB or not budget.affords(tries * len(few))
            if ended:
                break
            here = climbed(kept, here.statistics, tries, search.content)
            budget.pay(here.passes * len(few))
            ended, made, tries = here.passes < tries, made + here.passes, 2 * tries
    if best.passes == 0 and search.thorough:  # what is read is one pass from the reference anyway
        return stay
    more = _rows_to_tell(search)
    if best.passes and more > len(few) and budget.affords((best.passes + 1.0) * more):
        kept = search.beside(search.reservoir.batch[:more])
        best = climbed(kept, search.statistics, best.passes)
        budget.pay((best.passes + 1.0) * more)
    return best


def _rows_to_tell(search: SearchContext) -> int:
    """Kept rows that it takes to tell what changes from the reference to where a climb ends.

    What the reference lost by the noise of the rows it was found on, p / rows, times p / kept rows, is what is lost.
    """
    p = search.enough
    return int(min(p * (p / max(search.healing.rows, 1)) / PRECISE, len(search.reservoir.batch)))


def _heirs(search: SearchContext, parameters: Any, batch: Batch) -> Array:
    """Return which component (columns) has gone over to which of those that there are now (rows), and how much of it.

    Where responsibilities are nearly those of one before, what all rows say of that, beside the kept ones, is worth as much as
    the regression of the ones on the others. Elsewhere it says nothing: it would be the noise of other rows.
    """
    some = batch[: max(FEW, WITNESSES * search.model.n_components)]
    old, new = (search.model.looked_at(one, some, search.n_threads)[0] for one in (search.parameters, parameters))
    return heirs(old, new)


def heirs(old: Array, new: Array) -> Array:
    """Return the same of responsibilities before and after, whose numbers of components may differ."""
    products, squares = new.T @ old, np.einsum("ij,ij->j", old, old) + 1e-12
    alike = products / np.sqrt(np.outer(np.einsum("ij,ij->j", new, new) + 1e-12, squares))
    return np.where(alike > ALIKE, np.minimum(products / squares, 1.0), 0.0)
