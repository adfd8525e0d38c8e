"""Refinement: split/merge moves and new starts, proposed on some reservoir rows and judged on others; then a climb.

Between two searches the parameters of the E-step are held, so the statistics are sums at one reference. A search may move that
reference anywhere: the statistics of all rows are restated at the new one by the reservoir (`control_variate.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwater.core.batch import Batch
from headwater.families.components import ComponentStatistics
from headwater.models.extrapolation import ClimbEnd, climb_rows
from headwater.models.mixture_records import MixtureParameters
from headwater.policies.control_variate import ControlVariate
from headwater.policies.refinement_record import (
    ACCEPT_Z,
    JUDGING_TIMES,
    LEAST_ROWS,
    PASSES_EACH,
    PROPOSING_TIMES,
    START_PASSES,
    Refinement,
)
from headwater.policies.reservoir_climb import climb_reservoir
from headwater.policies.search_context import Budget, SearchContext, Verdict, compare_scores
from headwater.policies.split_merge import Move, Split, View, apply_move, find_removals, find_split, seed_method

THOROUGH_TIMES = 4  # times as many rows, if only a reader waits
MOVES_AT_ONCE = 3  # tried in a round
WON_BACK = 0.5  # of what a removal is rated to cost: the other components will adapt
MOST_ROUNDS = 6  # of moves
DEAR_JUDGES = 5000  # rows that tell what new ones should score, where passes are dear
LIKELY_Z = 1.0  # standard errors that are enough if new rows are unlike those before, or all rows are at hand to go on with


def refine(search: SearchContext, allowed: float = np.inf) -> tuple[MixtureParameters, ComponentStatistics, Refinement]:
    """Return parameters, statistics at them, and the record of the search, after moves, comparisons and a climb.

    `allowed` bounds the cost, in rows; if it is infinite, all reservoir rows are climbed on.
    """
    budget = Budget(allowed)
    record = replace(search.record, contested=search.rows, gain=0.0, z=0.0, chosen="stream")
    landed, record = _search_moves(search, record, budget)
    parameters, statistics, slow = climb_reservoir(search, landed, budget)
    record = replace(record, doubt=record.doubt or slow)
    judges = search.judges(DEAR_JUDGES if search.is_dear else max(LEAST_ROWS, JUDGING_TIMES * search.enough))
    scores = search.model.log_likelihood(parameters, judges, search.n_threads)
    budget.pay(0.5 * len(judges))
    weights = judges.row_weights
    spent = record.spent + budget.spent
    return parameters, statistics, replace(record.begin_at(search.rows, scores, weights, search.enough), spent=spent)


def _search_moves(search: SearchContext, record: Refinement, budget: Budget) -> tuple[ClimbEnd | None, Refinement]:
    """Propose, climb and judge until nothing is better; return the result, or None if the stream is as good."""
    before = search.record
    surprised = record.doubt or before.surprise > 0.0
    full = not search.reservoir.holds_all
    hopeless = record.content or (before.contested > 0 and before.z == 0.0 and not full and not search.thorough)
    if (hopeless or search.is_dear) and not surprised:
        return None, record
    needed = 1.5 * START_PASSES if surprised else 6.0
    thorough = search.thorough or (
        full and budget.affords(needed * THOROUGH_TIMES * max(LEAST_ROWS, PROPOSING_TIMES * search.enough))
    )
    times = THOROUGH_TIMES if search.thorough else 2 if thorough else 1
    propose = search.proposing[: times * max(LEAST_ROWS, PROPOSING_TIMES * search.enough)]
    judge = search.judging[: times * max(LEAST_ROWS, JUDGING_TIMES * search.enough)]
    k = search.model.n_components
    if len(propose) < 10 * k or len(judge) < 10 * k or search.model.n_components < 2:
        return None, record
    kept, weights = search.on(propose), judge.row_weights
    rng = np.random.default_rng(np.random.SeedSequence((search.key, search.rows)))
    record = replace(record, doubt=surprised)
    standing = climb_rows(kept, kept.look(search.parameters)[0], 1)  # by this readout
    budget.pay(2.0 * len(propose))
    landed: ClimbEnd | None = None
    strange = before.surprise > 0.0
    judges = search.on(judge)
    if strange:  # the statistics of all rows at other parameters are then worth less than reservoir rows alone
        standing = climb_rows(kept, standing.statistics, 2 * PASSES_EACH)
        now = search.model.readout(kept.readout, search.prior, search.statistics, search.count)
        verdict = compare_scores(judges.scores(standing.parameters), judges.scores(now), weights)
        budget.pay(2.0 * PASSES_EACH * len(propose) + len(judge))
        if verdict.z > LIKELY_Z:
            landed, record = standing, replace(record, gain=verdict.gain, z=verdict.z, chosen="climb")
    worthwhile = strange or (surprised and thorough)  # otherwise a new start is no better than that of the warm-up
    if worthwhile and search.restart is not None and not search.named and budget.affords(START_PASSES * len(propose)):
        standing = standing if strange else climb_rows(kept, standing.statistics, 2 * PASSES_EACH)
        start = search.restart(propose, search.rows)
        fresh = search.model.move_to_prior(search.prior, start.prior, start.summary.mean)
        anew = climb_rows(kept, fresh, PASSES_EACH)
        budget.pay(START_PASSES * len(propose))
        verdict = compare_scores(judges.scores(anew.parameters), judges.scores(standing.parameters), weights)
        record = replace(record, doubt=not thorough)
        if landed is None:
            record = replace(record, gain=verdict.gain, z=verdict.z)
        if verdict.z > (LIKELY_Z if strange else ACCEPT_Z):
            standing = landed = anew
            record = replace(record, gain=verdict.gain, z=verdict.z, chosen="restart", moves=record.moves + 1)
    for _ in range(2 * k if surprised else MOST_ROUNDS):
        if not budget.affords(4.0 * len(propose)):
            break
        found, after = _try_moves(search, kept, judge, standing, rng, budget)
        if after is not None and after.z > record.z:
            record = replace(record, gain=after.gain, z=after.z)
        if found is None:
            break
        standing = landed = found
        record = replace(record, chosen="restart" if record.chosen == "restart" else "move", moves=record.moves + 1)
    content = thorough and full and landed is None and not surprised and not search.forgets
    return landed, replace(record, content=content)


def _try_moves(
    search: SearchContext, kept: ControlVariate, judge: Batch, standing: ClimbEnd, rng: np.random.Generator, budget: Budget
) -> tuple[ClimbEnd | None, Verdict | None]:
    """Try the most promising moves side by side; return the best if it is better on judging rows."""
    moves = _propose_moves(search, kept, standing, rng)
    budget.pay(4.0 * len(kept.batch))
    if not moves or not budget.affords((len(moves) + 1.0) * PASSES_EACH * len(kept.batch)):
        return None, None
    incumbent = climb_rows(kept, standing.statistics, PASSES_EACH)
    reached = [climb_rows(kept, apply_move(search.model, standing.statistics, move), PASSES_EACH) for move in moves]
    budget.pay((len(moves) + 1.0) * (PASSES_EACH * len(kept.batch) + 0.5 * len(judge)))
    judges, weights = search.on(judge), judge.row_weights
    before = judges.scores(incumbent.parameters)
    verdicts = [compare_scores(judges.scores(one.parameters), before, weights) for one in reached]
    best = max(range(len(moves)), key=lambda at: verdicts[at].gain)
    found, verdict = reached[best], verdicts[best]
    more = len(search.judging) > 1.5 * len(judge)
    if (
        0.0 < verdict.z <= ACCEPT_Z and more and budget.affords(2.0 * PASSES_EACH * len(search.proposing))
    ):  # compare on all reservoir rows
        everyone = search.on(search.proposing)
        found, incumbent = (climb_rows(everyone, one.statistics, PASSES_EACH) for one in (found, incumbent))
        judges, weights = search.on(search.judging), search.judging.row_weights
        verdict = compare_scores(judges.scores(found.parameters), judges.scores(incumbent.parameters), weights)
        budget.pay(2.0 * PASSES_EACH * len(search.proposing) + len(search.judging))
    return (found if verdict.z > (LIKELY_Z if search.at_hand else ACCEPT_Z) else None), verdict


def _propose_moves(search: SearchContext, kept: ControlVariate, standing: ClimbEnd, rng: np.random.Generator) -> list[Move]:
    """Rate every split with every merger; return the most promising ones, each component once."""
    model = search.model
    view = View.of(
        model, kept.readout, search.prior, standing.parameters, kept.batch, seed_method(search.method), search.n_threads
    )
    price = 0.5 * search.enough / model.n_components / len(kept.batch)
    given_up = find_removals(view, standing.statistics, kept.count, search.named)
    splits: list[Split] = []
    for k in range(model.n_components):
        found = None if k in search.named else find_split(view, k, rng)
        if found is not None:
            splits.append(found)
    moves = [
        Move(one, fall, one.gain + fall.gain - price)
        for one in splits
        for fall in given_up
        if one.component not in fall.components
    ]
    recovered = WON_BACK if search.at_hand else 0.0
    chosen: list[Move] = []
    for move in sorted(moves, key=lambda one: -one.gain):
        if len(chosen) == MOVES_AT_ONCE:
            break
        likely = move.gain - recovered * min(move.fall.gain, 0.0) > 0.0
        if likely and all(move.split.component != other.split.component for other in chosen):
            chosen.append(move)
    return chosen
