"""The laws of every streaming estimator, as functions that raise if it breaks one.

Each law takes an unfitted estimator and rows; a target is their last column. `check_estimator` runs all laws that apply and
the checks of scikit-learn.

Examples
--------
>>> import numpy as np
>>> from headwater import GaussianMixture
>>> from headwater.checks import check_laws
>>> rows = np.random.default_rng(0).normal(size=(300, 2))
>>> check_laws(GaussianMixture(2, algorithm="online-em", warm_up=100, random_state=0), rows)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone
from sklearn.utils import estimator_checks

from headwater.checks.density_laws import (
    density_laws,
    modes_are_the_best_parameters,
    rows_are_drawn_from_the_density_that_scores_them,
)
from headwater.checks.row_laws import (
    LAWS,
    bad_input_is_refused,
    inputs_are_not_changed,
    reading_changes_nothing,
    saved_and_resumed_is_never_stopped,
    seeds_decide,
    the_state_is_finite,
    threads_change_nothing,
    weights_are_copies,
)
from headwater.checks.stream_laws import (
    PASS_LAWS,
    STREAM_LAWS,
    a_sweep_is_the_loop_row_by_row,
    learning_apart_is_learning_together,
    memory_is_flat,
    merging_is_adding,
    passes_never_lose,
    the_cut_changes_nothing,
    the_order_of_a_merge_changes_nothing,
    updates_score_before_they_learn,
)
from headwater.checks.support import Law
from headwater.core.schedules import Equal
from headwater.core.statistics import Array
from headwater.estimators.provisional_learner import learner_without_columns
from headwater.policies.drift_monitor import adapts

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

__all__ = [
    "EXPECTED_FAILURES",
    "LAWS",
    "Law",
    "PASS_LAWS",
    "SPARSE_FAILURES",
    "STREAM_LAWS",
    "TARGET_FAILURES",
    "a_sweep_is_the_loop_row_by_row",
    "applicable_laws",
    "bad_input_is_refused",
    "check_estimator",
    "check_laws",
    "inputs_are_not_changed",
    "learning_apart_is_learning_together",
    "memory_is_flat",
    "merging_is_adding",
    "modes_are_the_best_parameters",
    "passes_never_lose",
    "reading_changes_nothing",
    "rows_are_drawn_from_the_density_that_scores_them",
    "saved_and_resumed_is_never_stopped",
    "seeds_decide",
    "the_cut_changes_nothing",
    "the_order_of_a_merge_changes_nothing",
    "the_state_is_finite",
    "threads_change_nothing",
    "updates_score_before_they_learn",
    "weights_are_copies",
]

# scikit-learn's checks that these estimators are not meant to pass, and why.
EXPECTED_FAILURES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "starts are drawn at random, and from repeated rows come other draws "
    "than from weighted ones; at one and the same start the two are equal (see weights_are_copies)"
    for kind in ("dense", "sparse")
}
SPARSE_FAILURES = {
    f"check_estimator_sparse_{kind}": "the check takes every estimator with predict_proba for a classifier of four classes"
    for kind in ("array", "matrix")
}


GAP_FAILURES = {
    "check_supervised_y_no_nan": "a target that is missing says nothing, and the row's inputs are learned",
}
TARGET_FAILURES = {
    "check_regressors_no_decision_function": "predict_proba is there, and gives the probabilities of the components",
    "check_methods_sample_order_invariance": "the check calls score_samples without the target, whose density it is",
    "check_methods_subset_invariance": "the check calls score_samples without the target, whose density it is",
}

DIRECTION_FAILURES = {
    "check_estimators_dtypes": "the check rounds rows to whole numbers, which makes rows of zeros, and those have no direction",
}


def check_estimator(estimator: StreamingEstimator, rows: Array | None = None) -> None:
    """Run every law and scikit-learn's checks on an unfitted estimator.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance. It is cloned and not changed.
    rows : ndarray of shape (n_samples, n_features), optional
        Rows to check the laws on. Default: a few hundred, in three clusters.

    Examples
    --------
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import check_estimator
    >>> check_estimator(GaussianMixture(2, algorithm="online-em"))  # doctest: +SKIP
    """
    if rows is None:  # none negative, so that they may be counts
        rng = np.random.default_rng(0)
        rows = np.abs(rng.normal(size=(400, 2)) + 4.0 * rng.integers(3, size=(400, 1)))
    check_laws(estimator, rows)
    expected = {
        **EXPECTED_FAILURES,
        **(SPARSE_FAILURES if estimator.__sklearn_tags__().input_tags.sparse else {}),
        **(DIRECTION_FAILURES if estimator._traits.needs_directions else {}),
        **(TARGET_FAILURES if estimator._traits.target_columns else {}),
        **(GAP_FAILURES if estimator._traits.target_columns and estimator.__sklearn_tags__().input_tags.allow_nan else {}),
    }
    estimator_checks.check_estimator(estimator, expected_failed_checks=expected)


def check_laws(estimator: StreamingEstimator, rows: Array) -> None:
    """Run every law that applies to the estimator's algorithm on these rows.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance. It is cloned and not changed.
    rows : ndarray of shape (n_samples, n_features)
        The rows, a few hundred, with the target, if there is one, as the last column. A warm-up that is "auto" is set to a
        third of them, so that there is a stream after it.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import check_laws
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> check_laws(GaussianMixture(2, algorithm="online-em", warm_up=60, random_state=0), rows)
    """
    if learner_without_columns(estimator).model.chained:
        raise ValueError("the laws are for rows that are independent, and rows of a sequence are not")
    for law in applicable_laws(estimator):
        candidate = clone(estimator)
        if candidate.random_state is None:
            candidate.set_params(random_state=0)
        if candidate.warm_up == "auto":
            candidate.set_params(warm_up=len(rows) // 3)
        law(candidate, rows)


def applicable_laws(estimator: StreamingEstimator) -> Iterator[Law]:
    """Yield the laws for streams if the algorithm is online, those for passes if it makes any, and those for all.

    Examples
    --------
    >>> from headwater import GaussianMixture
    >>> from headwater.checks import applicable_laws
    >>> "merging_is_adding" in [law.__name__ for law in applicable_laws(GaussianMixture(2, algorithm="online-em"))]
    True
    """
    learner = learner_without_columns(estimator)
    algorithm = learner.algorithm
    yield from LAWS
    if learner.plan.inference.way != "simulated":  # each copy of a row has its own draws
        yield weights_are_copies
    if algorithm.online:
        yield from STREAM_LAWS
    if algorithm.online and learner.plan.sweeps and not algorithm.projection:  # a projection does not fold statistics
        yield a_sweep_is_the_loop_row_by_row
    if (
        algorithm.online
        and isinstance(learner.plan.schedule(learner.model), Equal)
        and not (learner.half_life or adapts(learner) or algorithm.projection)
        and learner.plan.inference.way != "simulated"  # draws go by the place of a row
    ):
        yield learning_apart_is_learning_together
    if not algorithm.online or algorithm.finish:
        yield from PASS_LAWS
    if not algorithm.online:  # they are about the family, whatever learns it
        yield from density_laws(estimator, learner.model)
