"""The laws every streaming estimator keeps, as functions that raise if it does not.

Each law takes an unfitted estimator and rows; a target is their last column. `check_estimator` runs all of them that apply, and
scikit-learn's own checks.

Examples
--------
>>> import numpy as np
>>> from headwater import GaussianMixture
>>> from headwater.checks import check_laws
>>> rows = np.random.default_rng(0).normal(size=(300, 2))
>>> check_laws(GaussianMixture(2, algorithm="online-em", warm_up=100, random_state=0), rows)
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import estimator_checks

from headwater.core.average import AVERAGE
from headwater.core.delta import Delta
from headwater.core.fold import fold
from headwater.core.loop import advance, branch, finalize
from headwater.core.merge import delta_of, grow
from headwater.core.merge import merge as merge_states
from headwater.core.plan import Plan
from headwater.core.schedules import Equal
from headwater.core.shards import Shards
from headwater.core.state import NO_WEIGHTS, Batch, Stream, Summary, arrays_of
from headwater.core.statistics import Array
from headwater.core.steps import EMPTY, Partial
from headwater.core.warm_up import UNKNOWN_ROWS
from headwater.estimators.component_count import GIVEN
from headwater.estimators.merge import merge
from headwater.estimators.model_file import from_bytes, to_bytes
from headwater.io.files import messages
from headwater.policies.drift_monitor import adapts
from headwater.policies.names import REFINEMENT, RESERVOIR
from headwater.policies.reservoir_policy import kept_rows
from headwater.policies.restate import restate_at
from headwater.policies.search_policy import stop_search

Law = Callable[[Any, Array], None]

# scikit-learn's checks that these estimators are not meant to pass, and why.
EXPECTED_FAILURES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "starts are drawn at random, and from repeated rows come other draws "
    "than from weighted ones; at one and the same start the two are equal (see weights_are_copies)"
    for kind in ("dense", "sparse")
}
SPARSE_FAILURES = {
    f"check_estimator_sparse_{kind}": "the check takes whoever has predict_proba for a classifier of four classes"
    for kind in ("array", "matrix")
}


TARGET_FAILURES = {
    "check_regressors_no_decision_function": "predict_proba is there, and gives the probabilities of the components",
    "check_methods_sample_order_invariance": "the check calls score_samples without the target, whose density it is",
    "check_methods_subset_invariance": "the check calls score_samples without the target, whose density it is",
}


def check_estimator(estimator: Any, rows: Array | None = None) -> None:
    """Run every law and scikit-learn's checks on an unfitted estimator.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance; it is cloned, not changed.
    rows : ndarray of shape (n_samples, n_features), optional
        Rows to try the laws on; a few hundred of three groups by default.
    """
    if rows is None:  # none negative, so that they may be counts
        rng = np.random.default_rng(0)
        rows = np.abs(rng.normal(size=(400, 2)) + 4.0 * rng.integers(3, size=(400, 1)))
    check_laws(estimator, rows)
    expected = {
        **EXPECTED_FAILURES,
        **(SPARSE_FAILURES if estimator.__sklearn_tags__().input_tags.sparse else {}),
        **(TARGET_FAILURES if estimator._traits.target_columns else {}),
    }
    estimator_checks.check_estimator(estimator, expected_failed_checks=expected)


def check_laws(estimator: Any, rows: Array) -> None:
    """Run every law that applies to the estimator's algorithm on these rows.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance; it is cloned, not changed.
    rows : ndarray of shape (n_samples, n_features)
        The rows, a few hundred, with the target, if there is one, as the last column. A warm-up that is "auto" is set to a
        third of them, so that there is a stream after it.
    """
    if estimator._make_learner(2).model.chained:
        raise ValueError("the laws are those of rows that stand for themselves, and rows of a sequence do not")
    for law in applicable_laws(estimator):
        candidate = clone(estimator)
        if candidate.random_state is None:
            candidate.set_params(random_state=0)
        if candidate.warm_up == "auto":
            candidate.set_params(warm_up=len(rows) // 3)
        law(candidate, rows)


def applicable_laws(estimator: Any) -> Iterator[Law]:
    """Yield the laws for streams if the algorithm is online, those for passes if it makes any, and those for all."""
    learner = estimator._make_learner(2)
    algorithm = learner.algorithm
    yield from LAWS
    if learner.plan.inference.way != "simulated":  # copies of a row are drawn for each by itself
        yield weights_are_copies
    if algorithm.online:
        yield from STREAM_LAWS
    if algorithm.online and learner.plan.sweeps and not algorithm.projection:  # a projection is no fold
        yield a_sweep_is_the_loop_row_by_row
    if (
        algorithm.online
        and isinstance(learner.plan.schedule(learner.model), Equal)
        and not (learner.half_life or adapts(learner) or algorithm.projection)
    ):
        yield learning_apart_is_learning_together
    if not algorithm.online or algorithm.finish:
        yield from PASS_LAWS


# Laws for all


def inputs_are_not_changed(estimator: Any, rows: Array) -> None:
    """Learning and reading leave the caller's arrays alone."""
    weights, labels = np.linspace(0.5, 2.0, len(rows)), np.full(len(rows), -1)
    labels[:3] = 0
    before = [array.copy() for array in (rows, weights, labels)]
    _fitted(estimator, rows, weights, labels if _takes_labels(estimator) else None)
    _read(estimator, rows)
    for array, original in zip((rows, weights, labels), before, strict=True):
        np.testing.assert_array_equal(array, original)


def reading_changes_nothing(estimator: Any, rows: Array) -> None:
    """Attributes, scores and predictions can be asked for at any time, and the state stays as it was."""
    _fitted(estimator, rows[: len(rows) - 7])
    before = pickle.dumps(list(arrays_of(estimator._state)))
    _read(estimator, rows)
    assert pickle.dumps(list(arrays_of(estimator._state))) == before


def threads_change_nothing(estimator: Any, rows: Array) -> None:
    """One thread or two, the same bits."""
    many = np.concatenate([rows] * (10_000 // len(rows) + 1))
    one = _fitted(clone(estimator).set_params(n_threads=1), many)
    two = _fitted(clone(estimator).set_params(n_threads=2), many)
    _assert_same(one._state, two._state)
    given = _given(estimator, many)
    np.testing.assert_array_equal(one.score_samples(*given), two.score_samples(*given))


def seeds_decide(estimator: Any, rows: Array) -> None:
    """The same seed gives the same model."""
    estimator.set_params(random_state=3)
    _assert_same(_fitted(clone(estimator), rows)._state, _fitted(clone(estimator), rows)._state)


def saved_and_resumed_is_never_stopped(estimator: Any, rows: Array) -> None:
    """A model that is stored, in a model file or in a pickle, and loaded goes on as if nothing had happened, bit for bit."""
    half = len(rows) // 2 + 1
    _fitted(estimator, rows[:half])
    functions = {name: value for name, value in estimator.get_params(deep=False).items() if callable(value)}
    others = [from_bytes(to_bytes(estimator), **functions), pickle.loads(pickle.dumps(estimator))]
    for model in (estimator, *others):
        if _online(estimator):
            model.partial_fit(*_given(estimator, rows[half:]))
    given = _given(estimator, rows)
    scores = estimator.score_samples(*given)
    for loaded in others:
        _assert_same(estimator._state, loaded._state)
        np.testing.assert_array_equal(scores, loaded.score_samples(*given))


def the_state_is_finite(estimator: Any, rows: Array) -> None:
    """Finite rows make a finite state and finite answers."""
    state = _fitted(estimator, rows)._state
    reservoir = state.records.get(RESERVOIR)
    if reservoir is not None and reservoir.limit == np.inf:  # which says that all rows have found room
        state = state.with_record(RESERVOIR, replace(reservoir.settled, limit=0.0))
    for array in arrays_of(state):
        assert np.isfinite(array).all(), "the state holds NaN or infinity"
    given = _given(estimator, rows)
    assert np.isfinite(estimator.score_samples(*given)).all()
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(estimator.predict_proba(*given).sum(axis=1), 1.0)
    for method in ("transform", "impute", "source"):
        if hasattr(estimator, method):
            assert np.isfinite(getattr(estimator, method)(rows)).all(), f"{method} is not finite"


def bad_input_is_refused(estimator: Any, rows: Array) -> None:
    """What makes no sense gets an error of one sentence and leaves the model exactly as it was."""
    learn = _fitted(estimator, rows).partial_fit if _online(estimator) else _fitted(estimator, rows).fit
    before = pickle.dumps(list(arrays_of(estimator._state)))
    n = 5
    good, *target = _given(estimator, rows[:n])
    width = good.shape[1]
    tags = estimator.__sklearn_tags__().input_tags
    nan, inf, huge, negative = (good.astype(np.result_type(good, float)) for _ in range(4))
    nan[1, 0], inf[2, 0], huge[0, 0], negative[3, 0] = np.nan, np.inf, 1e200, -1.0
    bad: list[tuple[Any, ...]] = [
        (inf, {}), (huge, {}), (good[:0], {}), (good[None], {}),
        (good.astype(str) + "x", {}), ([["a"] * width] * n, {}), (good.real if np.iscomplexobj(good) else good + 1j, {}),
        (good, {"sample_weight": -np.ones(n)}), (good, {"sample_weight": np.full(n, np.nan)}),
        (good, {"sample_weight": np.zeros(n)}), (good, {"sample_weight": np.ones(n - 1)}),
    ]  # fmt: skip
    if _takes_labels(estimator):
        wrong = (np.full(n, -2), np.full(n, estimator.n_components), np.full(n, 0.5), np.zeros(n - 1))
        bad += [(good, {"labels": labels}) for labels in wrong]
    if not estimator._traits.takes_sequences:
        bad += [(good[0], {}), (good[:, :0], {})]
        if _online(estimator) and not estimator._grows:
            bad.append((np.hstack([good, good]), {}))
    if not tags.allow_nan:
        bad.append((nan, {}))
    if estimator._traits.takes_sequences or tags.positive_only:
        bad.append((negative, {}))
    bad = [(X, *target, options) for X, options in bad]
    for y in target:
        targets = (None, y[:-1], np.full(n, np.nan), np.full(n, np.inf), y.astype(str) + "x", y[:, None] + y, y + 1j)
        bad += [(good, each, {}) for each in targets]
    for *given, options in bad:
        try:
            learn(*given, **options)
        except (ValueError, TypeError) as error:
            assert str(error) and "\n" not in str(error), f"not one sentence: {error}"
        else:
            raise AssertionError(f"accepted {given!r} with {options!r}")
        assert pickle.dumps(list(arrays_of(estimator._state))) == before, "a refused chunk changed the model"


def weights_are_copies(estimator: Any, rows: Array) -> None:
    """From one and the same state, weight k is k copies and weight 0 is absent, in the summary and in the fold."""
    plan, state = _streaming(estimator, rows)
    times = np.arange(len(rows)) % 4
    kept = times > 0

    def summarize(rows: Array, weights: Array = NO_WEIGHTS) -> Summary:
        return state.model.summarize(state.parameters, _batch(estimator, rows, weights), inference=plan.inference)

    copies, weighted = summarize(np.repeat(rows, times, axis=0)), summarize(rows[kept], times[kept].astype(float))
    _assert_close(copies.statistics, weighted.statistics, 1e-9)
    assert np.isclose(copies.size, weighted.size)
    assert np.isclose(copies.score, weighted.score)
    _assert_close(fold(plan, state, copies).statistics, fold(plan, state, weighted).statistics, 1e-9)


# Laws for streams


def the_cut_changes_nothing(estimator: Any, rows: Array) -> None:
    """Chunks of 1, of 37 and all rows at once give the same model, and every row is counted once."""
    given = _given(estimator, rows)
    whole = clone(estimator).partial_fit(*given)
    for size in (1, 37):
        cut = clone(estimator)
        for start in range(0, len(rows), size):
            cut.partial_fit(*_given(estimator, rows[start : start + size]))
        assert cut.n_samples_seen_ == whole.n_samples_seen_ == len(rows)
        _assert_close(cut._read().stream, whole._read().stream, 1e-7)
        np.testing.assert_allclose(cut.score_samples(*given), whole.score_samples(*given), rtol=1e-6, atol=1e-7)


def a_sweep_is_the_loop_row_by_row(estimator: Any, rows: Array) -> None:
    """An algorithm that folds every row does in its kernel what the loop with batches of one does."""
    plan, state = _streaming(estimator, rows)
    plan = plan.of_shard
    batch = _batch(estimator, rows[:25])
    swept, _ = advance(plan, state, batch)
    for row in range(25):
        summary = state.model.summarize(state.parameters, batch[row : row + 1], inference=plan.inference)
        state = fold(plan, state, summary)
    _assert_close(swept, state, 1e-7)


def updates_score_before_they_learn(estimator: Any, rows: Array) -> None:
    """`update` learns what `partial_fit` learns, and its scores do not know the rows that come later."""
    half = len(rows) // 2
    early, late = _given(estimator, rows[:half]), _given(estimator, rows[half:])
    silent = clone(estimator).partial_fit(*_given(estimator, rows))
    scored = clone(estimator)
    scores = np.concatenate([scored.update(*early), scored.update(*late)])
    _assert_close(scored._read().stream, silent._read().stream, 1e-7)
    np.testing.assert_allclose(clone(estimator).update(*early), scores[:half], rtol=1e-6, atol=1e-7)
    unknown = min(UNKNOWN_ROWS, scored._learner.plan.warm_up_rows)
    assert np.isnan(scores[:unknown]).all()
    assert np.isfinite(scores[unknown:]).all()


def memory_is_flat(estimator: Any, rows: Array) -> None:
    """The state does not grow with the rows once the warm-up is over, but for kept rows, up to as many as there may be."""
    given = _given(estimator, rows)
    for _ in range(3):
        estimator.partial_fit(*given)
    before = _bytes(estimator._state)
    for _ in range(5):
        estimator.partial_fit(*given)
    assert _bytes(estimator._state) == before
    state = estimator._state
    most = kept_rows(estimator._learner.plan, state.model)
    kept = len(state.records[RESERVOIR]) if RESERVOIR in state.records else 0
    assert kept == (min(most, state.rows) if REFINEMENT in state.records else 0)


def merging_is_adding(estimator: Any, rows: Array) -> None:
    """Models of one lineage merge in any order and tree, the base alone is the identity, and no row is lost.

    What they learned adds up to the same, when it is sent as bytes. Streams that healed apart are brought to one reference by
    the rows they keep: where these are all rows, that is exact, and otherwise in any tree these are the same, and the counts.
    """
    base = clone(estimator).partial_fit(*_given(estimator, rows))
    parts = [base.branch().partial_fit(*_given(estimator, rows[index::4])) for index in range(4)]
    one, two, three, four = parts
    whole = merge(parts)
    plan = whole._learner.plan
    heals, reservoir = plan.holds(whole._state), whole._state.records.get(RESERVOIR)
    assert whole.n_samples_seen_ == 2 * len(rows)
    if reservoir is not None and reservoir.limit == np.inf:
        assert len(reservoir) == 2 * len(rows)
    elif reservoir is not None:  # rows of one rank, as those of one place in different branches, stay or go together
        most = kept_rows(plan, whole._state.model)
        assert most - len(parts) < len(reservoir) <= most
    for tree in (
        merge([four, two, one, three]),
        merge([merge([one, two]), merge([three, four])]),
        merge([one, merge([two, merge([three, four])])]),
    ):
        if heals and reservoir.limit < np.inf:
            _assert_same(tree._state.records[RESERVOIR], reservoir)
            _assert_close(tree._state.progress, whole._state.progress, 1e-7)
            np.testing.assert_allclose(tree.weight_concentration_.sum(), whole.weight_concentration_.sum())
        else:
            _assert_close(tree._state, whole._state, 1e-7)
    if not heals and estimator._choice == GIVEN:  # otherwise each number of components, or reference, has deltas of its own
        a, b, c, d = (_sent(model) for model in parts)
        for total in ((a + b) + (c + d), d + (b + (a + c))):
            sent, _ = grow(one._learner.plan, finalize(one._learner.plan, one._state), total)
            sent, known = (stop_search(one._learner.plan, stream) for stream in (sent, whole._state))  # no rows are sent
            _assert_close(sent, known, 1e-7)
    same: Any = merge([one, base.branch()])._state
    alone: Any = finalize(one._learner.plan, one._state)
    if heals:
        alone = replace(alone, statistics=restate_at(one._learner.plan, alone, same.parameters))
    # How much of it is called base may differ, if steps were smaller than those of equal weights.
    _assert_close(replace(same.statistics, from_base=alone.statistics.from_base), alone.statistics, 1e-7)
    _assert_close(same.records.get(AVERAGE), alone.records.get(AVERAGE), 1e-7)
    assert same.progress.rows_seen == alone.progress.rows_seen
    assert np.isclose(same.progress.n_eff, alone.progress.n_eff)
    _assert_close(base.branch()._read().parameters, base._read().parameters, 1e-12)


def the_order_of_a_merge_changes_nothing(estimator: Any, rows: Array) -> None:
    """Models that share no base are matched, and come out the same, bit for bit, whatever their order; no row is lost."""
    one, other, third = (
        clone(estimator).set_params(random_state=seed).partial_fit(*_given(estimator, rows[seed :: 1 + seed]))
        for seed in range(3)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # which matches are in doubt is not the question
        merged, again = merge([one, other, third]), merge([third, one, other])
    assert merged.n_samples_seen_ == sum(model.n_samples_seen_ for model in (one, other, third))
    _assert_same(merged._state, again._state)


def learning_apart_is_learning_together(estimator: Any, rows: Array) -> None:
    """At fixed parameters, and where counts add, summaries folded apart and merged are the summary of all."""
    plan, state = _streaming(estimator, rows)
    state = branch(plan, state)
    batch = _batch(estimator, rows)

    def after(rows: Batch) -> Stream:
        return fold(plan, state, state.model.summarize(state.parameters, rows, inference=plan.inference))

    apart, together = [after(batch[i::3]) for i in range(3)], after(batch)
    _assert_close(merge_states(plan, apart).statistics, together.statistics, 1e-9)


# Laws for passes


def passes_never_lose(estimator: Any, rows: Array) -> None:
    """The objective of batch EM (without a floor under the covariances) and of variational Bayes never falls."""
    floor = {"reg_covar": 0.0} if hasattr(estimator, "reg_covar") else {}
    estimator.set_params(tol=0.0, max_iter=50, **floor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(*_given(estimator, rows))
    assert len(estimator.lower_bounds_) == 50
    assert np.diff(estimator.lower_bounds_).min() > -1e-10, "a pass lost"


LAWS: tuple[Law, ...] = (
    inputs_are_not_changed,
    reading_changes_nothing,
    threads_change_nothing,
    seeds_decide,
    saved_and_resumed_is_never_stopped,
    the_state_is_finite,
    bad_input_is_refused,
)
STREAM_LAWS: tuple[Law, ...] = (
    the_cut_changes_nothing,
    updates_score_before_they_learn,
    memory_is_flat,
    merging_is_adding,
    the_order_of_a_merge_changes_nothing,
)
PASS_LAWS: tuple[Law, ...] = (passes_never_lose,)


# Helpers


def _given(estimator: Any, rows: Array) -> tuple[Any, ...]:
    """Rows as the estimator takes them: the last column apart, if it learns a target."""
    return (rows[:, :-1], rows[:, -1]) if estimator._traits.target_columns else (rows,)


def _batch(estimator: Any, rows: Array, weights: Array = NO_WEIGHTS) -> Batch:
    return Batch(estimator._checked(estimator._chunk(*_given(estimator, rows))), weights)


def _online(estimator: Any) -> bool:
    unset = type(estimator)(**estimator.get_params(deep=False))  # what is set by hand belongs to columns of some number
    return bool(unset._make_learner(2).algorithm.online)


def _fitted(estimator: Any, rows: Array, weights: Any = None, labels: Any = None) -> Any:
    learn = estimator.partial_fit if _online(estimator) else estimator.fit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        options = {} if labels is None else {"labels": labels}
        return learn(*_given(estimator, rows), sample_weight=weights, **options)


def _takes_labels(estimator: Any) -> bool:
    return estimator._choice == GIVEN and "labels" in signature(estimator.partial_fit).parameters


def _streaming(estimator: Any, rows: Array) -> tuple[Plan, Stream]:
    """A plan and its finalized stream after these rows."""
    _fitted(estimator, rows)
    stream: Stream = estimator._read().stream
    return estimator._learner.for_state(stream).plan, stream


def _sent(estimator: Any) -> Delta:
    """What a model learned since its base, as another machine reads it."""
    found = delta_of(estimator._learner.plan, estimator._state)
    return messages.from_bytes(messages.to_bytes(found), estimator._learner, Delta)


def _bytes(stream: Stream) -> int:
    """Size of a stream without its partial batches, which come and go, and without its reservoir."""
    shards: tuple[Stream, ...] = getattr(stream.unfolded, "streams", ())
    own = replace(stream, unfolded=EMPTY) if isinstance(stream.unfolded, Partial | Shards) else stream
    held = sum(array.nbytes for array in arrays_of(own.without(RESERVOIR), dense=False))
    return held + sum(map(_bytes, shards))


def _read(estimator: Any, rows: Array) -> None:
    names = [name for name in dir(type(estimator)) if name.endswith("_") and not name.endswith("__")]
    for name in names:
        getattr(estimator, name)
    given = _given(estimator, rows)
    inputs = given[0]
    for method in ("score_samples", "predict_proba", "predictive_score_samples", "score"):
        if hasattr(estimator, method):
            getattr(estimator, method)(*given)
    for method in ("predict", "transform", "impute", "source"):
        if hasattr(estimator, method):
            getattr(estimator, method)(inputs)
    if hasattr(estimator, "score_one"):
        estimator.score_one(*(part[0] for part in given))
    for method in ("predict_one", "transform_one"):
        if hasattr(estimator, method):
            getattr(estimator, method)(inputs[0])
    repr(estimator)


def _assert_same(one: Any, other: Any) -> None:
    for left, right in zip(arrays_of(one), arrays_of(other), strict=True):
        np.testing.assert_array_equal(left, right)


def _assert_close(one: Any, other: Any, tolerance: float) -> None:
    for left, right in zip(arrays_of(one), arrays_of(other), strict=True):
        scale = max(1.0, float(np.abs(right).max(initial=0.0)))
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance * scale)
