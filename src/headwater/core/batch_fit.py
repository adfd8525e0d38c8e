"""Learning when all rows are in memory: an online algorithm makes one pass, the others passes until convergence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.climb import Climb, climb, climb_on
from headwater.core.contracts import Start
from headwater.core.fit_result import FIT_RESULT
from headwater.core.lineage import root_stream
from headwater.core.loop import advance, finalize, read, report
from headwater.core.plan import Plan
from headwater.core.row_keys import order_labelled_first
from headwater.core.state import State, Stream, Summary, WarmUp
from headwater.core.statistics import Prior
from headwater.core.steps import belief, report_parameters
from headwater.core.warm_up import find_start, start_policies

TRIAL_PASSES = 10  # of each of several starts, before those that cannot win any more are left
CHAIN_WARM_UPS = 4  # a start on sequences in memory uses a quarter of the rows, and at most this many warm-ups
STRETCHES = 16  # of sequences, at least, that such a start uses
MOST_PERMUTED = 2**24  # rows up to which all are permuted; of more, some are drawn


@dataclass(frozen=True)
class Passes:
    """How long passes over all rows go on: `max_iter` at most, until one gains less than `tol` a row; from `n_init` starts."""

    max_iter: int
    tol: float
    n_init: int = 1


def learn(
    plan: Plan,
    batch: Batch,
    key: int,
    passes: Passes,
    resume: tuple[State, float] | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> tuple[State, Climb]:
    """Learn rows that are all in memory (see `_learn`); policies see them at the end.

    `resume` is a state to continue from, and the objective it had reached.
    """
    state, end = _learn(plan, batch, key, passes, resume, watch)
    if isinstance(state, Stream):
        for policy in plan.policies:
            state = policy.after_passes(plan, state, batch)
    return state, end


def _learn(
    plan: Plan,
    batch: Batch,
    key: int,
    passes: Passes,
    resume: tuple[State, float] | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> tuple[State, Climb]:
    """Learn by an online algorithm in one pass, by the others in passes until the objective converges."""
    algorithm = plan.algorithm
    if algorithm.again:
        return _stream_again(plan, batch, key, passes, resume, watch)
    if algorithm.online and not algorithm.finish:
        return _stream_once(plan, batch, resume[0] if resume else WarmUp(key))
    several = passes.n_init > 1 and not resume
    first = min(passes.max_iter, TRIAL_PASSES) if several else passes.max_iter
    reached: list[tuple[Start, Climb]] = []
    for run in range(passes.n_init if several else 1):
        start = resume_start(plan, resume[0]) if resume else _find_first(plan, batch, key + run)
        prior = pass_prior(plan, start.prior)
        end = climb(
            plan.model, plan.algorithm.pass_readout, prior, start.parameters, start.summary, batch, first, passes.tol,
            plan.n_threads, resume[1] if resume else -np.inf, plan.model.has_prior or prior is start.prior, watch,
        )  # fmt: skip
        reached.append((start, end))
    start, end = _climb_on(plan, batch, passes, reached, watch) if several else reached[0]
    return end_passes(plan, key, start, end), end


def _climb_on(
    plan: Plan,
    batch: Batch,
    passes: Passes,
    reached: list[tuple[Start, Climb]],
    watch: Callable[[int, float], None] | None,
) -> tuple[Start, Climb]:
    """Return the best of several starts, after more passes from each that may still win, the best one first.

    A start that would stay behind even if all passes to come gained as much as its last one is left where it is: one on a
    plateau would take thousands.
    """
    best = max(reached, key=_objective)
    for start, end in sorted(reached, key=_objective, reverse=True):
        prior, reach = pass_prior(plan, start.prior), len(end.trace)
        penalised = plan.model.has_prior or prior is start.prior
        while not end.converged and reach < passes.max_iter and (start is best[0] or _may_win(end, best[1], passes.max_iter)):
            reach = passes.max_iter if start is best[0] else min(2 * reach, passes.max_iter)
            end = climb_on(
                plan.model, plan.algorithm.pass_readout, prior, end, batch, reach, passes.tol, plan.n_threads, penalised, watch
            )
            best = max(best, (start, end), key=_objective)
    return best


def _objective(pair: tuple[Start, Climb]) -> float:
    return pair[1].trace[-1] if pair[1].trace else -np.inf


def _may_win(end: Climb, best: Climb, passes: int) -> bool:
    """Whether a climb could still overtake the best if every pass to come gained as much as its last one."""
    gain = end.trace[-1] - end.trace[-2] if len(end.trace) > 1 else np.inf
    return end.trace[-1] + (passes - len(end.trace)) * gain > best.trace[-1]


def pass_prior(plan: Plan, prior: Prior) -> Prior:
    """Return the prior that passes use: a flat one for maximum likelihood; else that of the stream."""
    algorithm = plan.algorithm
    modes = algorithm.finish and algorithm.pass_readout == "mode"
    flat = algorithm.likelihood or (modes and not plan.model.is_regularized)
    return plan.model.flatten_prior(prior) if flat else prior


def end_passes(plan: Plan, key: int, start: Start, end: Climb) -> Stream:
    """Return the stream after passes from a start."""
    algorithm = plan.algorithm
    prior = start.prior if algorithm.finish else pass_prior(plan, start.prior)
    differs = algorithm.pass_readout != "mode" and bool(end.trace)  # what is reported is read out of the belief
    stream = root_stream(plan, key, Start(prior, end.parameters, end.summary))
    return stream.with_record(FIT_RESULT, None if differs else end.parameters)


def sample_places(
    plan: Plan, n: int, labels: NDArray[np.int64], begins: NDArray[np.int64] | None, key: int
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return the rows that a start for passes over n rows is found on: a sample as large as a warm-up, labelled rows first.

    For sequences the sample consists of stretches of them; `begins` are the first rows of sequences.
    """
    rows = min(n, plan.warm_up_rows)
    if plan.model.chained:
        rows = int(np.clip(n // CHAIN_WARM_UPS, rows, CHAIN_WARM_UPS * rows))
        longest = n if plan.learner.settings.whole else max(rows // STRETCHES, 1)
        assert begins is not None
        return (np.arange(n), None) if rows == n else _draw_stretches(n, begins, rows, longest, key)
    if rows == n:
        return np.arange(n), None
    return _draw_rows(n, rows, labels, key), None


def seeds_compete(plan: Plan) -> bool:
    """Whether several seeds are compared on the sample: not if the user chose one."""
    searches = plan.algorithm.finish and plan.algorithm.searches
    return plan.learner.settings.polish and (searches or plan.model.chained)


def resume_start(plan: Plan, state: State) -> Start:
    """Continue from where earlier passes, or a stream, ended."""
    stream = finalize(plan, state)
    prior, statistics, count = belief(plan, stream)
    summary = Summary(statistics.scaled(count), stream.progress.rows_seen, count)
    return Start(prior, report_parameters(plan, stream), summary)


def _stream_once(plan: Plan, batch: Batch, state: State) -> tuple[State, Climb]:
    """Learn all rows in one pass of an online algorithm."""
    state, info = advance(plan, state, batch)
    parameters, score = report(plan, state), info.score
    if plan.model.chained:
        score = float(plan.model.log_likelihood(parameters, batch, plan.n_threads).mean())
    elif isinstance(state, WarmUp):
        summary = plan.model.summarize(parameters, batch, None, n_threads=plan.n_threads, inference=plan.inference)
        score = summary.score / batch.size
    statistics = state.statistics if isinstance(state, Stream) else plan.model.zeros(plan.width)
    return state, Climb(Summary(statistics), parameters, (score,), True)


def _find_on_sample(plan: Plan, batch: Batch, key: int, polish: bool = True) -> Start:
    """Start on a sample of the rows."""
    n = len(batch)
    begins = np.concatenate([[0], np.flatnonzero(np.diff(batch.sequences)) + 1]) if plan.model.chained else None
    places, numbers = sample_places(plan, n, batch.labels, begins, key)
    sample = batch if len(places) == n else batch[places]
    return find_start(plan, sample if numbers is None else replace(sample, sequences=numbers), key, polish)


def _find_first(plan: Plan, batch: Batch, key: int) -> Start:
    """Start on a sample; search on a larger one, or stream all rows in an order that mixes sorted ones."""
    n = len(batch)
    plan = plan.learner.at_hand.plan
    finish, chained, polish = plan.algorithm.finish, plan.model.chained, seeds_compete(plan)
    searches = finish and polish and plan.learner.settings.hold is None
    rows = max((policy.rows_to_search(plan, n) for policy in plan.policies), default=0) if searches else 0
    if rows:
        return _find_by_search(plan, batch, key, max(rows, plan.warm_up_rows))
    start = _find_on_sample(plan, batch, key, polish)
    if n <= plan.warm_up_rows:
        return start
    if not searches:  # passes begin at what is given
        summary = plan.model.summarize(start.parameters, batch, n_threads=plan.n_threads)
        return Start(start.prior, start.parameters, summary)
    some = batch if chained else batch[:: max(1, n // plan.warm_up_rows)]
    state: State = start_policies(plan, root_stream(plan, key, start), start, some, counts=False)
    stride = 1 if chained else max(1, n // plan.batch_rows(plan.model))
    for offset in range(stride):
        state, _ = advance(plan, state, batch[offset::stride])
    return resume_start(plan, read(plan, state))


def _find_by_search(plan: Plan, batch: Batch, key: int, rows: int) -> Start:
    """Start on some of a sample, search on all of it, and take the prior of the components that were found."""
    model, n = plan.model, len(batch)
    sample = batch if n <= rows else batch[_draw_rows(n, rows, batch.labels, key)]
    begun = _find_on_sample(plan, sample, key)
    summary = model.summarize(begun.parameters, sample, n_threads=plan.n_threads)
    stream = root_stream(plan, key, Start(begun.prior, begun.parameters, summary))
    stream = start_policies(plan, stream, begun, sample)
    for policy in plan.hooks(stream).policies:
        stream = policy.search_at_hand(plan, stream)
    start = resume_start(plan, stream)
    prior = model.refit_prior(start.prior, start.parameters, sample)
    found = start.summary if sample is batch else model.summarize(start.parameters, batch, n_threads=plan.n_threads)
    return Start(prior, start.parameters, found)


def _draw_rows(n: int, rows: int, labels: NDArray[np.int64], key: int) -> NDArray[np.int64]:
    """Return the places of a random sample of this many rows, labelled ones first, in the order of the rows."""
    rng = np.random.default_rng(np.random.SeedSequence((key, n)))
    order = rng.permutation(n) if n <= MOST_PERMUTED else rng.choice(n, min(n, 4 * rows), replace=False)
    return np.sort(order_labelled_first(labels, order, rows)[:rows])


def _draw_stretches(
    n: int, begins: NDArray[np.int64], rows: int, longest: int, key: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a sample of sequences, or of stretches of long ones: the first rows may be unlike the rest."""
    at = np.arange(n)
    within = at - np.repeat(begins, np.diff(np.append(begins, n)))
    cuts = np.flatnonzero(within % longest == 0)
    lengths = np.diff(np.append(cuts, n))
    order = np.random.default_rng(np.random.SeedSequence((key, n))).permutation(len(cuts))
    chosen = np.sort(order[: int(np.searchsorted(np.cumsum(lengths[order]), rows)) + 1])
    places = np.concatenate([np.arange(cuts[one], cuts[one] + lengths[one]) for one in chosen])
    return places, np.repeat(-1 - cuts[chosen], lengths[chosen])


def _stream_again(
    plan: Plan,
    batch: Batch,
    key: int,
    passes: Passes,
    resume: tuple[State, float] | None,
    watch: Callable[[int, float], None] | None,
) -> tuple[State, Climb]:
    """Stream all rows again and again, each time in another order, until two passes improve the score by less than tol."""
    n = len(batch)
    begun = finalize(plan, resume[0]) if resume else None
    rows, weight = (begun.progress.rows_seen, begun.progress.weight_seen) if begun else (0, 0.0)
    at_hand = replace(plan.learner, rows_at_hand=batch.size + weight).plan
    state: State = begun or root_stream(at_hand, key, _find_on_sample(at_hand, batch, key))
    trace: list[float] = []
    converged = False
    for turn in range(max(1, passes.max_iter)):
        order = np.random.default_rng(np.random.SeedSequence((key, n, turn))).permutation(n)
        state, info = advance(at_hand, state, batch[order])
        trace.append(info.score)
        if watch is not None:
            watch(turn + 1, info.score)
        gained = max(trace[-2:]) - max(trace[:-2], default=-np.inf)
        if passes.tol and turn > 2 and gained < passes.tol * abs(trace[-1]):  # scores of draws go up and down
            converged = True
            break
    stream = finalize(at_hand, state)
    progress = replace(stream.progress, rows_seen=n + rows, weight_seen=at_hand.learner.rows_at_hand)
    stream = replace(stream, progress=progress)
    return stream, Climb(Summary(stream.statistics), report_parameters(plan, stream), tuple(trace), converged)
