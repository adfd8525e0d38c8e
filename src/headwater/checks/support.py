"""What the laws share: rows as an estimator takes them, fitting, reading, and comparisons of states."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from headwater.core.batch import NO_WEIGHTS, Batch
from headwater.core.delta import Delta
from headwater.core.merge import delta_of
from headwater.core.plan import Plan
from headwater.core.records import arrays_of
from headwater.core.sequences import OpenRows
from headwater.core.shards import Shards
from headwater.core.state import Stream
from headwater.core.statistics import Array
from headwater.core.steps import EMPTY, Partial
from headwater.core.values import Values
from headwater.estimators.component_count import GIVEN
from headwater.estimators.provisional_learner import learner_without_columns
from headwater.io.files import messages
from headwater.policies.names import RESERVOIR

if TYPE_CHECKING:
    from headwater.core.algorithm import Algorithm
    from headwater.estimators.base import StreamingEstimator

Law = Callable[[Any, Array], None]


def split_target(estimator: StreamingEstimator, rows: Array) -> tuple[Array, ...]:
    """Return rows as arguments of the estimator: the last column apart, if it learns a target."""
    return (rows[:, :-1], rows[:, -1]) if estimator._traits.target_columns else (rows,)


def make_batch(estimator: StreamingEstimator, rows: Array, weights: Array = NO_WEIGHTS) -> Batch:
    """Return rows as a checked batch."""
    return Batch(estimator._checked(estimator._chunk(*split_target(estimator, rows))), weights)


def is_online(estimator: StreamingEstimator) -> bool:
    """Whether the algorithm of an estimator learns streams."""
    return bool(_algorithm_of(estimator).online)


def learns_row_by_row(estimator: StreamingEstimator) -> bool:
    """Whether the algorithm of an estimator folds every row."""
    return getattr(_algorithm_of(estimator), "batch_size", None) == 1


def _algorithm_of(estimator: StreamingEstimator) -> Algorithm:
    return learner_without_columns(estimator).algorithm


def fit(estimator: Any, rows: Array, weights: object = None, labels: Values = None) -> Any:
    """Fit an estimator to rows, as one chunk of a stream if its algorithm learns streams."""
    learn = estimator.partial_fit if is_online(estimator) else estimator.fit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        options = {} if labels is None else {"labels": labels}
        return learn(*split_target(estimator, rows), sample_weight=weights, **options)


def takes_labels(estimator: StreamingEstimator) -> bool:
    """Whether an estimator learns from labels of rows."""
    return estimator._choice == GIVEN and "labels" in signature(estimator.partial_fit).parameters


def fit_stream(estimator: StreamingEstimator, rows: Array) -> tuple[Plan, Stream]:
    """Return the plan and the finalized stream after these rows."""
    fit(estimator, rows)
    stream: Stream = estimator._read().stream
    return estimator._learner.for_state(stream).plan, stream


def send_delta(estimator: StreamingEstimator) -> Delta:
    """Return what a model learned since its base, written to bytes and read again."""
    found = delta_of(estimator._learner.plan, estimator._state)
    return messages.from_bytes(messages.to_bytes(found), estimator._learner, Delta)


def stream_bytes(stream: Stream) -> int:
    """Return the bytes of a stream without rows that are not folded yet, whose number varies, and without its reservoir."""
    shards: tuple[Stream, ...] = getattr(stream.unfolded, "streams", ())
    own = replace(stream, unfolded=EMPTY) if isinstance(stream.unfolded, Partial | Shards) else stream
    if isinstance(stream.unfolded, OpenRows):
        own = replace(stream, unfolded=replace(stream.unfolded, waiting=(), now=None))
    held = sum(array.nbytes for array in arrays_of(own.without(RESERVOIR), dense=False))
    return held + sum(map(stream_bytes, shards))


def read_everything(estimator: StreamingEstimator, rows: Array) -> None:
    """Call every method that reads, and get every learned attribute."""
    names = [name for name in dir(type(estimator)) if name.endswith("_") and not name.endswith("__")]
    for name in names:
        getattr(estimator, name, None)  # what a setting leaves out is not there
    given = split_target(estimator, rows)
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


def assert_same(one: object, other: object) -> None:
    """Raise an error unless all arrays of two states are equal."""
    for left, right in zip(arrays_of(one), arrays_of(other), strict=True):
        np.testing.assert_array_equal(left, right)


def assert_close(one: object, other: object, tolerance: float) -> None:
    """Raise an error unless all arrays of two states agree up to a tolerance, relative to the largest value."""
    for left, right in zip(arrays_of(one), arrays_of(other), strict=True):
        scale = max(1.0, float(np.abs(right).max(initial=0.0)))
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance * scale)
