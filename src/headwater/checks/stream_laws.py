"""Laws for estimators that learn streams: cuts, sweeps, scores, memory, merges; and for those that make passes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from headwater.checks.support import (
    Law,
    assert_close,
    assert_same,
    fit_stream,
    make_batch,
    send_delta,
    split_target,
    stream_bytes,
)
from headwater.core.average import AVERAGE
from headwater.core.batch import Batch
from headwater.core.loop import advance, branch, finalize
from headwater.core.merge import grow
from headwater.core.merge import merge as merge_states
from headwater.core.state import Stream
from headwater.core.statistics import Array
from headwater.core.steps import fold
from headwater.core.warm_up import UNKNOWN_ROWS
from headwater.estimators.component_count import GIVEN
from headwater.estimators.merge import merge
from headwater.policies.names import REFINEMENT, RESERVOIR, SCORES
from headwater.policies.reservoir_policy import kept_rows
from headwater.policies.restate import restate_at
from headwater.policies.search_policy import stop_search

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


def the_cut_changes_nothing(estimator: StreamingEstimator, rows: Array) -> None:
    """Chunks of 1, of 37 and all rows at once give the same model, and every row is counted once.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import the_cut_changes_nothing
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> the_cut_changes_nothing(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    given = split_target(estimator, rows)
    whole = clone(estimator).partial_fit(*given)
    for size in (1, 37):
        cut = clone(estimator)
        for start in range(0, len(rows), size):
            cut.partial_fit(*split_target(estimator, rows[start : start + size]))
        assert cut.n_samples_seen_ == whole.n_samples_seen_ == len(rows)
        assert_close(cut._read().stream, whole._read().stream, 1e-7)
        np.testing.assert_allclose(cut.score_samples(*given), whole.score_samples(*given), rtol=1e-6, atol=1e-7)


def a_sweep_is_the_loop_row_by_row(estimator: StreamingEstimator, rows: Array) -> None:
    """An algorithm that folds every row does in its kernel what the loop with batches of one does.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import a_sweep_is_the_loop_row_by_row
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> a_sweep_is_the_loop_row_by_row(GaussianMixture(2, algorithm="soem", warm_up=60, random_state=0), rows)
    """
    plan, state = fit_stream(estimator, rows)
    plan = plan.of_shard
    batch = make_batch(estimator, rows[:25])
    swept, _ = advance(plan, state, batch)
    for row in range(25):
        summary = state.model.summarize(state.parameters, batch[row : row + 1], inference=plan.inference)
        state = fold(plan, state, summary)
    assert_close(swept, state, 1e-7)


def updates_score_before_they_learn(estimator: StreamingEstimator, rows: Array) -> None:
    """`update` learns what `partial_fit` learns, and its scores do not depend on later rows.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import updates_score_before_they_learn
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> updates_score_before_they_learn(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    half = len(rows) // 2
    early, late = split_target(estimator, rows[:half]), split_target(estimator, rows[half:])
    silent = clone(estimator).partial_fit(*split_target(estimator, rows))
    scored = clone(estimator)
    scores = np.concatenate([scored.update(*early), scored.update(*late)])
    assert_close(scored._read().stream, silent._read().stream, 1e-7)
    np.testing.assert_allclose(clone(estimator).update(*early), scores[:half], rtol=1e-6, atol=1e-7)
    plan = scored._learner.plan
    unknown = 0 if plan.starts_at_once else min(UNKNOWN_ROWS, plan.warm_up_rows)
    assert np.isnan(scores[:unknown]).all()
    assert np.isfinite(scores[unknown:]).all()


def memory_is_flat(estimator: Any, rows: Array) -> None:
    """The state does not grow with the rows once the warm-up is over, but for kept rows, up to as many as there may be.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import memory_is_flat
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> memory_is_flat(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    given = split_target(estimator, rows)
    for _ in range(3):
        estimator.partial_fit(*given)
    before = stream_bytes(estimator._state)
    for _ in range(5):
        estimator.partial_fit(*given)
    assert stream_bytes(estimator._state) == before
    state, plan = estimator._state, estimator._learner.plan
    if state.model.chained:
        assert state.unfolded.rows < plan.block_rows(state) + state.model.lag, "rows wait for no reason"
    most = kept_rows(estimator._learner.plan, state.model)
    kept = len(state.records[RESERVOIR]) if RESERVOIR in state.records else 0
    assert kept == (min(most, state.rows) if REFINEMENT in state.records else 0)


def merging_is_adding(estimator: StreamingEstimator, rows: Array) -> None:
    """Models of one lineage merge in any order and tree, the base alone is the identity, and no row is lost.

    What they learned adds up to the same, when it is sent as bytes. Streams that were refined apart come to one reference by
    the rows they keep: where these are all rows, that is exact, and otherwise in any tree these are the same, and the counts.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import merging_is_adding
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> merging_is_adding(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    base = clone(estimator).partial_fit(*split_target(estimator, rows))
    parts = [base.branch().partial_fit(*split_target(estimator, rows[index::4])) for index in range(4)]
    one, two, three, four = parts
    whole = merge(parts)
    plan = whole._learner.plan
    refines, reservoir = plan.holds(whole._state), whole._state.records.get(RESERVOIR)
    assert whole.n_samples_seen_ == 2 * len(rows)
    if reservoir is not None and reservoir.holds_all:
        assert len(reservoir) == 2 * len(rows)
    elif reservoir is not None:  # rows of one rank, as those of one place in different branches, stay or go together
        most = kept_rows(plan, whole._state.model)
        assert most - len(parts) < len(reservoir) <= most
    for tree in (
        merge([four, two, one, three]),
        merge([merge([one, two]), merge([three, four])]),
        merge([one, merge([two, merge([three, four])])]),
    ):
        if refines and not reservoir.holds_all:
            assert_same(tree._state.records[RESERVOIR], reservoir)
            assert_close(tree._state.progress, whole._state.progress, 1e-7)
            np.testing.assert_allclose(tree.weight_concentration_.sum(), whole.weight_concentration_.sum())
        else:
            assert_close(tree._state, whole._state, 1e-7)
    if not refines and estimator._choice == GIVEN:  # otherwise each number of components, or reference, has deltas of its own
        a, b, c, d = (send_delta(model) for model in parts)
        for total in ((a + b) + (c + d), d + (b + (a + c))):
            sent, _ = grow(one._learner.plan, finalize(one._learner.plan, one._state), total)
            # Neither rows nor scores are sent.
            sent, known = (stop_search(one._learner.plan, stream).without(SCORES) for stream in (sent, whole._state))
            assert_close(sent, known, 1e-7)
    same = merge([one, base.branch()])._state
    alone = finalize(one._learner.plan, one._state)
    if refines:
        alone = replace(alone, statistics=restate_at(one._learner.plan, alone, same.parameters))
    # How much of it is called base may differ, if steps were smaller than those of equal weights.
    assert_close(replace(same.statistics, from_base=alone.statistics.from_base), alone.statistics, 1e-7)
    assert_close(same.records.get(AVERAGE), alone.records.get(AVERAGE), 1e-7)
    assert same.progress.rows_seen == alone.progress.rows_seen
    assert np.isclose(same.progress.n_eff, alone.progress.n_eff)
    assert_close(base.branch()._read().parameters, base._read().parameters, 1e-12)


def the_order_of_a_merge_changes_nothing(estimator: StreamingEstimator, rows: Array) -> None:
    """Models that share no base are matched, and come out the same, bit for bit, whatever their order; no row is lost.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import the_order_of_a_merge_changes_nothing
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> the_order_of_a_merge_changes_nothing(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    one, other, third = (
        clone(estimator).set_params(random_state=seed).partial_fit(*split_target(estimator, rows[seed :: 1 + seed]))
        for seed in range(3)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # which matches are in doubt is not the question
        merged, again = merge([one, other, third]), merge([third, one, other])
    assert merged.n_samples_seen_ == sum(model.n_samples_seen_ for model in (one, other, third))
    assert_same(merged._state, again._state)


def learning_apart_is_learning_together(estimator: StreamingEstimator, rows: Array) -> None:
    """At fixed parameters, and where counts add, summaries folded apart and merged are the summary of all.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import learning_apart_is_learning_together
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> learning_apart_is_learning_together(GaussianMixture(2, algorithm="boem", warm_up=60, random_state=0), rows)
    """
    plan, state = fit_stream(estimator, rows)
    state = branch(plan, state)
    batch = make_batch(estimator, rows)

    def after(rows: Batch) -> Stream:
        return fold(plan, state, state.model.summarize(state.parameters, rows, inference=plan.inference))

    apart, together = [after(batch[i::3]) for i in range(3)], after(batch)
    assert_close(merge_states(plan, apart).statistics, together.statistics, 1e-9)


def passes_never_lose(estimator: StreamingEstimator, rows: Array) -> None:
    """The objective of batch EM (without a floor under the covariances) and of variational Bayes never falls.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import passes_never_lose
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> passes_never_lose(GaussianMixture(2, algorithm="em", random_state=0), rows)
    """
    floor = {"reg_covar": 0.0} if hasattr(estimator, "reg_covar") else {}
    estimator.set_params(tol=0.0, max_iter=50, **floor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(*split_target(estimator, rows))
    assert len(estimator.lower_bounds_) == 50
    assert np.diff(estimator.lower_bounds_).min() > -1e-10, "a pass lost"


STREAM_LAWS: tuple[Law, ...] = (
    the_cut_changes_nothing,
    updates_score_before_they_learn,
    memory_is_flat,
    merging_is_adding,
    the_order_of_a_merge_changes_nothing,
)
PASS_LAWS: tuple[Law, ...] = (passes_never_lose,)
