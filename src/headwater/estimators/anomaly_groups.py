"""Windows of rows and groups of rows, such as customers or hosts: which of them are odd; for every mixture and chain."""

from __future__ import annotations

import numbers
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from headwater.core.validation import one_line
from headwater.core.values import AnyArray, RandomState, Rows, Values
from headwater.estimators.anomaly_marks import AnomalyMarks
from headwater.estimators.calls import answers_at_once
from headwater.estimators.reason_table import ReasonTable
from headwater.policies.group_testing import judge_groups


class AnomalyGroups(AnomalyMarks):
    """Which groups of rows are odd."""

    @answers_at_once
    def anomaly_groups(
        self,
        X: Rows,
        groups: Values = None,
        y: Values = None,
        *,
        window: int | None = None,
        lengths: Values = None,
        random_state: RandomState = None,
    ) -> ReasonTable:
        """Return how odd groups of rows are, or windows of rows, the oddest first.

        A group may be odd though none of its rows is: its p-value joins those of its rows (Fisher's method). P-values are right
        if those of rows are and rows are independent; rows of a group that depend on each other make them too small.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows, in their order.
        groups : array-like of shape (n_samples,), optional
            The group of each row, such as a customer or a host. By default all rows are one.
        y : array-like of shape (n_samples,), optional
            The target, for regressions.
        window : int, optional
            Rows of a group that are judged together, one window after the other. By default a group is judged as a whole.
        lengths : array-like of shape (n_sequences,), optional
            The length of each sequence, for chains and mixtures of sequences.
        random_state : int, RandomState or None, default=None
            Breaks ties between rows that are equally odd.

        Returns
        -------
        table : ReasonTable
            A line for each group, or window of a group. `group`; `first`, the place of its first row; `rows`; `score`, the mean
            anomaly score of its rows; `pvalue` against the rows that the model has learned; with windows `pvalue_past` against
            the rows of the same group before the window; with groups `pvalue_peers` against the rows of all other groups. NaN
            where there are fewer than 20 rows to compare with, or fewer than twice those of the line. Rows that say nothing,
            such as rows without a value, are not counted, and a group of nothing else has no line.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> model = hw.GaussianMixture(1, random_state=0).partial_fit(rng.normal(size=(5000, 2)))
        >>> rows, hosts = rng.normal(size=(600, 2)), np.repeat(["a", "b", "c"], 200)
        >>> rows[hosts == "b"] *= 1.3  # none of its rows is far out
        >>> table = model.anomaly_groups(rows, hosts)
        >>> print(table["group"], table["pvalue"][0] < 1e-4)
        ['b' 'a' 'c'] True
        """
        if window is not None and (isinstance(window, bool) or not isinstance(window, numbers.Integral) or window < 1):
            raise ValueError(f"window must be a positive number of rows, got {one_line(window)}")
        view = cast(Any, self)
        scores = view._odd_scores(X, y, lengths)
        named = None if groups is None else checked_groups(groups, len(scores))
        uniforms = 1.0 - check_random_state(0 if random_state is None else random_state).random_sample(len(scores))
        sketch = view._score_sketch()
        lines = judge_groups(
            scores, sketch.pvalues(scores, uniforms), named, None if window is None else int(window), sketch.rows, uniforms
        )
        return ReasonTable(f"{'Windows' if window else 'Groups'} of rows, the oddest first", lines)


def checked_groups(groups: Values, rows: int) -> AnyArray:
    """Return the group of each row, or refuse."""
    given = np.asarray(groups)
    if given.shape != (rows,):
        raise ValueError(f"groups must have a value for each of the {rows} rows, got an array of shape {given.shape}")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise ValueError("groups must name the group of each row, got NaN")
    if given.dtype == object:
        if any(one is None or one != one for one in given.tolist()):
            raise ValueError("groups must name the group of each row, got a missing value")
        given = given if len({type(one) for one in given.tolist()}) <= 1 else given.astype(str)
    return given
