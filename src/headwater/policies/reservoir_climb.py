"""EM on reservoir rows with the control variate of all rows (`control_variate.py`), from the reference or after a move.

While all rows are in the reservoir a climb is batch EM. Later the control variate is noisy in directions about which rows hold
little information, and a climb may diverge along them: then proposing rows climb, and it ends before judging rows score worse.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwater.core.batch import Batch
from headwater.core.block_climb import climb_blocks
from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.models.extrapolation import ClimbEnd, climb_rows
from headwater.models.mixture_records import MixtureParameters
from headwater.policies.refinement_record import LEAST_PASS_GAIN, LEAST_ROWS
from headwater.policies.search_context import Budget, SearchContext, compare_scores

MOST_PASSES = 60  # of a climb
DEAR_PASSES, DEAR_GAIN_SHARE = 4, 1e-2  # of a climb where passes are dear: at most, and by what part of p / rows they gain
SLOW_PASSES = 15  # over all rows, after which a climb is in doubt
ASTRAY_Z = 2.0  # standard errors by which judging rows must score worse to end a climb
BESIDE_Z = 1.0  # the same for the end of a climb not to count: gains of the last rows are less than the noise of few that judge
HEIR_CORRELATION = 0.9  # of responsibilities, for the statistics of a component to pass to its successor
HEIR_ROWS = 100  # of each component, by which successors are found
CLIMB_ROWS, CLIMB_TIMES = 10_000, 20  # rows to climb on first, and times the rows that estimate every parameter
RESTATE_NATS = 2.5e-4  # a row, that may be lost by restating from some reservoir rows


def climb_reservoir(
    search: SearchContext, landed: ClimbEnd | None, budget: Budget
) -> tuple[MixtureParameters, ComponentStatistics, bool]:
    """Climb with the control variate; return parameters, the statistics at them, and whether the climb did not converge."""
    if landed is None and search.forgets:  # parameters follow the statistics at every batch
        return search.parameters, search.statistics, False
    if landed is not None:
        reached = _climb_from_move(search, landed, budget)
    else:
        reached = _climb_all_rows(search, budget) if search.whole else _climb_watched(search, budget)
    statistics = reached.statistics.with_share_of_base(search.statistics.from_base)
    return reached.parameters, statistics, landed is None and search.whole and reached.passes >= SLOW_PASSES


def _climb_from_move(search: SearchContext, landed: ClimbEnd, budget: Budget) -> ClimbEnd:
    """Climb after a move; the statistics of rows outside the reservoir pass to the successors of components."""
    everyone = search.reservoir.batch
    kept = search.beside(everyone)
    if kept.beside is not None:
        kept = replace(kept, beside=search.model.recombine(kept.beside, _find_heirs(search, landed.parameters, everyone)))
    passes = max(2, min(MOST_PASSES, budget.passes(len(everyone))))
    reached = climb_rows(kept, kept.look(landed.parameters)[0], passes, LEAST_PASS_GAIN)
    budget.pay((reached.passes + 2.0) * len(everyone))
    return reached


def _climb_all_rows(search: SearchContext, budget: Budget) -> ClimbEnd:
    """Climb when all rows are in the reservoir: batch EM, for as long as it gains."""
    kept = search.beside(search.reservoir.batch)
    passes = max(2, min(MOST_PASSES, budget.passes(len(kept.batch))))
    if search.is_dear:
        passes, tol = min(passes, DEAR_PASSES), DEAR_GAIN_SHARE * search.enough / search.rows
        end = climb_blocks(
            search.model, search.readout, search.prior, search.statistics, kept.batch, passes, tol, search.n_threads
        )
        reached = ClimbEnd(end.parameters, end.summary.mean, end.trace[-1], len(end.trace))
    else:
        reached = climb_rows(kept, search.statistics, passes, search.content)
    budget.pay(reached.passes * len(kept.batch))
    return reached


def _climb_watched(search: SearchContext, budget: Budget) -> ClimbEnd:
    """Climb on proposing rows with the control variate, checked by judging rows; then on all, for as many passes.

    The statistics of all rows are sums at the reference. In directions with little information a climb may diverge: it ends
    before judging rows score worse. If the second pass gains nothing, the first was enough.
    """
    few, judge = (batch[: max(CLIMB_ROWS, CLIMB_TIMES * search.enough)] for batch in (search.proposing, search.judging))
    stay = ClimbEnd(search.parameters, search.statistics, np.nan, 0)
    if not len(few) or not len(judge):
        return stay
    kept, judges, weights = search.beside(few), search.on(judge), judge.row_weights
    first = kept.parameters(search.statistics)
    at_first, before = kept.look(first)
    at_second, score = kept.look(kept.parameters(at_first))
    budget.pay(3.0 * len(few))
    best = ClimbEnd(first, at_first, before, 0)
    if score - before > search.content:
        here, made, tries, ended = ClimbEnd(kept.parameters(at_first), at_second, score, 2), 2, 2, False
        known = judges.scores(first)
        while True:
            found = judges.scores(here.parameters)
            budget.pay(0.5 * len(judge))
            verdict = compare_scores(found, known, weights)
            if verdict.z > -BESIDE_Z:
                best = replace(here, passes=made)
                known = found if verdict.gain > 0.0 else known
            ended = ended or verdict.z < -ASTRAY_Z or made >= MOST_PASSES or not budget.affords(tries * len(few))
            if ended:
                break
            here = climb_rows(kept, here.statistics, tries, search.content)
            budget.pay(here.passes * len(few))
            ended, made, tries = here.passes < tries, made + here.passes, 2 * tries
    if best.passes == 0 and search.thorough:  # the reported parameters are one pass from the reference anyway
        return stay
    more = _rows_to_restate(search)
    if best.passes and more > len(few) and budget.affords((best.passes + 1.0) * more):
        kept = search.beside(search.reservoir.batch[:more])
        best = climb_rows(kept, search.statistics, best.passes)
        budget.pay((best.passes + 1.0) * more)
    return best


def _rows_to_restate(search: SearchContext) -> int:
    """Reservoir rows that are enough to restate statistics at the end of a climb.

    The expected loss is the noise of the reference, p / rows, times p / reservoir rows.
    """
    p = search.enough
    return int(min(p * (p / max(search.record.rows, 1)) / RESTATE_NATS, len(search.reservoir.batch)))


def _find_heirs(search: SearchContext, parameters: MixtureParameters, batch: Batch) -> Array:
    """Return how much of each earlier component (columns) has passed to each present one (rows).

    Where the responsibilities of a component nearly equal those of an earlier one, its statistics outside the reservoir are
    taken over with the coefficient of a regression of one on the other. Elsewhere they would only be noise.
    """
    some = batch[: max(LEAST_ROWS, HEIR_ROWS * search.model.n_components)]
    old, new = (search.model.posterior_and_scores(one, some, search.n_threads)[0] for one in (search.parameters, parameters))
    return find_heirs(old, new)


def find_heirs(old: Array, new: Array) -> Array:
    """Return the same of responsibilities before and after, whose numbers of components may differ."""
    products, squares = new.T @ old, np.einsum("ij,ij->j", old, old) + 1e-12
    alike = products / np.sqrt(np.outer(np.einsum("ij,ij->j", new, new) + 1e-12, squares))
    return np.where(alike > HEIR_CORRELATION, np.minimum(products / squares, 1.0), 0.0)
