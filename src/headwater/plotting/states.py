"""A series, coloured by the hidden state that each row is in."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.core.values import AnyArray
from headwater.plotting.shared import PALETTE, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from headwater.estimators.hidden_markov import HiddenMarkovEstimator


def states(
    model: HiddenMarkovEstimator,
    X: object,
    y: ArrayLike | None = None,
    *,
    dates: ArrayLike | None = None,
    column: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw a column of one sequence over time, on the colour of the most probable state of each row.

    Parameters
    ----------
    model : GaussianHMM or any other hidden Markov model
        What was learned.
    X : array-like of shape (n_samples, n_features)
        The rows of the sequence.
    y : array-like of shape (n_samples,), optional
        The target, for a `RegressionHMM`: it is drawn then.
    dates : array-like of shape (n_samples,), optional
        When the rows were taken: dates or numbers. Default: the index of a data frame if it holds dates, else the places of the
        rows.
    column : int, default=0
        Which column is drawn.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> from headwater.plotting import states
    >>> rows = np.random.default_rng(0).normal(size=(300, 1)) + 5.0 * (np.arange(300)[:, None] // 100 % 2)
    >>> months = np.datetime64("2000-01") + np.arange(300)
    >>> ax = states(hw.GaussianHMM(2, random_state=0).fit(rows), rows, dates=months)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['state 0', 'state 1']
    """
    traits = getattr(type(model), "_traits", None)
    if traits is None or not traits.chained:
        raise TypeError(f"model must be a hidden Markov model, got {type(model).__name__}")
    given: Any = model
    found = np.asarray(given.predict(X) if y is None else given.predict(X, y))
    values = _column(X, column) if y is None else np.asarray(y, dtype=float)
    when = _times(X, dates, len(found))
    axes = axes_of(ax)
    for begin, end, state in state_runs(found):
        color = PALETTE[state % len(PALETTE)]
        axes.axvspan(when[begin], when[min(end, len(found) - 1)], color=color, alpha=0.25, linewidth=0.0)
    axes.plot(when, values, color="0.2", linewidth=0.8)
    axes.set_xlim(when[0], when[-1])
    shown = np.unique(found)
    marks = [axes.fill_between([], [], color=PALETTE[int(k) % len(PALETTE)], alpha=0.4, label=f"state {k}") for k in shown]
    axes.legend(handles=marks, loc="upper left", ncols=min(len(shown), 6))
    return axes


def state_runs(found: AnyArray) -> Iterator[tuple[int, int, int]]:
    """Yield where each stay in a state begins, where it ends, and the state."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(found)) + 1, [len(found)]])
    for begin, end in pairwise(edges.tolist()):
        yield begin, end, int(found[begin])


def _column(X: object, column: int) -> AnyArray:
    """The values of a column, as numbers."""
    rows = np.asarray(X)
    width = rows.shape[1] if rows.ndim == 2 else 1
    if not isinstance(column, numbers.Integral) or not 0 <= column < width:
        raise ValueError(f"column must be one of the {width} of X, from 0 on, got {column!r}")
    chosen = rows[:, int(column)] if rows.ndim == 2 else rows
    try:
        return chosen.astype(float)
    except (TypeError, ValueError):
        raise ValueError(f"column {column} must hold numbers to be drawn") from None


def _times(X: object, dates: ArrayLike | None, rows: int) -> AnyArray:
    """When the rows were taken: what was given, the index of a frame, or the places of the rows."""
    index = getattr(X, "index", None)
    if dates is None and getattr(index, "dtype", None) is not None and np.issubdtype(np.asarray(index).dtype, np.datetime64):
        dates = np.asarray(index)
    if dates is None:
        return np.arange(rows)
    when = np.asarray(dates)
    if when.shape != (rows,):
        raise ValueError(f"dates must have one value for each of the {rows} rows, got shape {when.shape}")
    return when
