"""Laws for every estimator: inputs, reading, threads, seeds, files, finite states, bad input, weights."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from headwater.checks.support import (
    Law,
    assert_close,
    assert_same,
    fit,
    fit_stream,
    is_online,
    learns_row_by_row,
    make_batch,
    read_everything,
    split_target,
    takes_labels,
)
from headwater.core.batch import NO_WEIGHTS
from headwater.core.records import arrays_of
from headwater.core.sequences import OpenRows
from headwater.core.state import Stream, Summary
from headwater.core.statistics import Array
from headwater.core.steps import fold
from headwater.estimators.model_file import from_bytes, to_bytes
from headwater.kernels.parallel import SLAB_ROWS
from headwater.policies.names import RESERVOIR

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


def inputs_are_not_changed(estimator: StreamingEstimator, rows: Array) -> None:
    """Learning and reading leave the caller's arrays alone.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import inputs_are_not_changed
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> inputs_are_not_changed(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    weights, labels = np.linspace(0.5, 2.0, len(rows)), np.full(len(rows), -1)
    labels[:3] = 0
    before = [array.copy() for array in (rows, weights, labels)]
    fit(estimator, rows, weights, labels if takes_labels(estimator) else None)
    read_everything(estimator, rows)
    for array, original in zip((rows, weights, labels), before, strict=True):
        np.testing.assert_array_equal(array, original)


def reading_changes_nothing(estimator: StreamingEstimator, rows: Array) -> None:
    """Attributes, scores and predictions can be asked for at any time, and the state stays as it was.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import reading_changes_nothing
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> reading_changes_nothing(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    fit(estimator, rows[: len(rows) - 7])
    before = pickle.dumps(list(arrays_of(estimator._state)))
    read_everything(estimator, rows)
    assert pickle.dumps(list(arrays_of(estimator._state))) == before


def threads_change_nothing(estimator: StreamingEstimator, rows: Array) -> None:
    """One thread or two, the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import threads_change_nothing
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> threads_change_nothing(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    many = np.concatenate([rows] * (2 * SLAB_ROWS // len(rows) + 1))
    learned = rows if learns_row_by_row(estimator) else many  # there is nothing to share of one row
    one = fit(clone(estimator).set_params(n_threads=1), learned)
    two = fit(clone(estimator).set_params(n_threads=2), learned)
    assert_same(one._state, two._state)
    given = split_target(estimator, many)
    np.testing.assert_array_equal(one.score_samples(*given), two.score_samples(*given))


def seeds_decide(estimator: StreamingEstimator, rows: Array) -> None:
    """The same seed gives the same model.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import seeds_decide
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> seeds_decide(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    estimator.set_params(random_state=3)
    assert_same(fit(clone(estimator), rows)._state, fit(clone(estimator), rows)._state)


def saved_and_resumed_is_never_stopped(estimator: StreamingEstimator, rows: Array) -> None:
    """A model that is stored, in a model file or in a pickle, and loaded goes on as if nothing had happened, bit for bit.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import saved_and_resumed_is_never_stopped
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> saved_and_resumed_is_never_stopped(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    half = len(rows) // 2 + 1
    fit(estimator, rows[:half])
    functions = {name: value for name, value in estimator.get_params(deep=False).items() if callable(value)}
    others = [from_bytes(to_bytes(estimator), **functions), pickle.loads(pickle.dumps(estimator))]
    for model in (estimator, *others):
        if is_online(estimator):
            model.partial_fit(*split_target(estimator, rows[half:]))
    given = split_target(estimator, rows)
    scores = estimator.score_samples(*given)
    for loaded in others:
        assert_same(estimator._state, loaded._state)
        np.testing.assert_array_equal(scores, loaded.score_samples(*given))


def the_state_is_finite(estimator: StreamingEstimator, rows: Array) -> None:
    """Finite rows make a finite state and finite answers.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import the_state_is_finite
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> the_state_is_finite(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    state = fit(estimator, rows)._state
    reservoir = state.records.get(RESERVOIR) if isinstance(state, Stream) else None
    if reservoir is not None and reservoir.holds_all:
        state = state.with_record(RESERVOIR, replace(reservoir.settled, limit=0.0))
    if reservoir is not None and np.isnan(rows).any():  # kept rows have the gaps that they came with
        state = state.without(RESERVOIR)
    if isinstance(state, Stream) and isinstance(state.unfolded, OpenRows):  # rows that wait have them, too
        state = replace(state, unfolded=replace(state.unfolded, waiting=()))
    for array in arrays_of(state):
        assert np.isfinite(array).all(), "the state holds NaN or infinity"
    given = split_target(estimator, rows)
    assert np.isfinite(estimator.score_samples(*given)).all()
    if hasattr(estimator, "predict_proba"):
        outside = estimator.background_proba(*given) if hasattr(estimator, "background_proba") else 0.0
        np.testing.assert_allclose(estimator.predict_proba(*given).sum(axis=1) + outside, 1.0)
        assert np.max(outside) == 0.0 or estimator.background, "rows belong to a background that is not there"
    for method in ("transform", "impute", "source"):
        if hasattr(estimator, method):
            assert np.isfinite(getattr(estimator, method)(rows)).all(), f"{method} is not finite"


def bad_input_is_refused(estimator: StreamingEstimator, rows: Array) -> None:
    """Bad input gets an error of one sentence and leaves the model exactly as it was.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import bad_input_is_refused
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> bad_input_is_refused(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    learn = fit(estimator, rows).partial_fit if is_online(estimator) else fit(estimator, rows).fit
    before = pickle.dumps(list(arrays_of(estimator._state)))
    n = 5
    good, *target = split_target(estimator, rows[:n])
    width = good.shape[1]
    tags = estimator.__sklearn_tags__().input_tags
    nan, inf, huge, negative = (good.astype(np.result_type(good, float)) for _ in range(4))
    nan[1, 0], inf[2, 0], huge[0, 0], negative[3, 0] = np.nan, np.inf, 1e200, -1.0
    bad: list[tuple[Any, ...]] = [
        (inf, {}), (huge, {}), (good[:0], {}), (good[None], {}),
        (good.real if np.iscomplexobj(good) else good + 1j, {}),
        (good, {"sample_weight": -np.ones(n)}), (good, {"sample_weight": np.full(n, np.nan)}),
        (good, {"sample_weight": np.zeros(n)}), (good, {"sample_weight": np.ones(n - 1)}),
    ]  # fmt: skip
    if takes_labels(estimator):
        wrong = (np.full(n, -2), np.full(n, estimator.n_components), np.full(n, 0.5), np.zeros(n - 1))
        bad += [(good, {"labels": labels}) for labels in wrong]
    if not estimator._traits.takes_sequences:
        bad += [(good[0], {}), (good[:, :0], {})]
        if is_online(estimator) and not estimator._vocabulary_is_open:
            bad.append((np.hstack([good, good]), {}))
    if not tags.allow_nan:
        bad.append((nan, {}))
    if not tags.string or is_online(estimator):  # text is no number, and no category of a column of numbers
        bad += [(good.astype(str) + "x", {}), ([["a"] * width] * n, {})]
    if estimator._traits.takes_sequences or tags.positive_only:
        bad.append((negative, {}))
    bad = [(X, *target, options) for X, options in bad]
    for y in target:
        targets = [None, y[:-1], np.full(n, np.inf), y.astype(str) + "x", y[:, None] + y, y + 1j]
        targets += [] if tags.allow_nan else [np.full(n, np.nan)]
        bad += [(good, each, {}) for each in targets]
    for *given, options in bad:
        try:
            learn(*given, **options)
        except (ValueError, TypeError) as error:
            assert str(error) and "\n" not in str(error), f"not one sentence: {error}"
        else:
            raise AssertionError(f"accepted {given!r} with {options!r}")
        assert pickle.dumps(list(arrays_of(estimator._state))) == before, "a refused chunk changed the model"


def weights_are_copies(estimator: StreamingEstimator, rows: Array) -> None:
    """From one and the same state, weight k is k copies and weight 0 is absent, in the summary and in the fold.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import weights_are_copies
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> weights_are_copies(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    plan, state = fit_stream(estimator, rows)
    times = np.arange(len(rows)) % 4
    kept = times > 0

    def summarize(rows: Array, weights: Array = NO_WEIGHTS) -> Summary:
        return state.model.summarize(state.parameters, make_batch(estimator, rows, weights), inference=plan.inference)

    copies, weighted = summarize(np.repeat(rows, times, axis=0)), summarize(rows[kept], times[kept].astype(float))
    assert_close(copies.statistics, weighted.statistics, 1e-9)
    assert np.isclose(copies.size, weighted.size)
    assert np.isclose(copies.score, weighted.score)
    assert_close(fold(plan, state, copies).statistics, fold(plan, state, weighted).statistics, 1e-9)


LAWS: tuple[Law, ...] = (
    inputs_are_not_changed,
    reading_changes_nothing,
    threads_change_nothing,
    seeds_decide,
    saved_and_resumed_is_never_stopped,
    the_state_is_finite,
    bad_input_is_refused,
)
