"""How a stream was learned: scores and weights over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.plotting.shared import axes_of, colors_of, column_of, label_rows_axis, trace_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headwater.plotting.shared import Colors, Drawable


def scores(trace: Drawable, ax: Axes | None = None, *, label: str | None = None, color: Colors | None = None) -> Axes:
    """Draw a score against the rows learned when it was taken.

    Parameters
    ----------
    trace : mapping, History, Monitor or model that a Monitor watched
        `rows`, how many rows had been learned, and `scores`, the mean log-density per row at that moment: on rows held
        out, or of the next rows before they were learned. A data frame with these columns will do.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    label : str, optional
        What the legend calls the curve.
    color : color, optional
        Default: the next of matplotlib's cycle.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.plotting import scores
    >>> rng = np.random.default_rng(0)
    >>> model = GaussianMixture(2, random_state=0)
    >>> trace = {"rows": [], "scores": []}
    >>> for _ in range(10):
    ...     trace["scores"].append(np.nanmean(model.update(rng.normal(size=(300, 2)))))
    ...     trace["rows"].append(model.n_samples_seen_)
    >>> ax = scores(trace, label="before learning")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('rows learned', 'score, nats per row')
    """
    trace = trace_of(trace)
    axes = axes_of(ax)
    rows, values = column_of(trace, "rows"), column_of(trace, "scores")
    if rows.shape != values.shape or rows.ndim != 1:
        raise ValueError(f"rows and scores of a trace must be equally long, got {rows.shape} and {values.shape}")
    axes.plot(rows, values, color=color, label=label, linewidth=2.0)
    return label_rows_axis(axes, rows, "score, nats per row")


def weights(trace: Drawable, ax: Axes | None = None, *, color: Colors | None = None) -> Axes:
    """Draw the weights of the components over the rows learned, stacked so that they fill the height.

    Parameters
    ----------
    trace : mapping, History, Monitor or model that a Monitor watched
        `rows`, how many rows had been learned, and `weights` of shape (moments, n_components) at those moments; moments at
        which they are NaN are left out.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    color : color or sequence of colors, optional
        One for all components, or one for each. Default: a cycle that is safe for the colour-blind.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> from headwater.plotting import weights
    >>> ax = weights({"rows": [100, 200, 400], "weights": [[0.5, 0.5], [0.4, 0.6], [0.3, 0.7]]})
    >>> len(ax.collections), ax.get_ylabel()
    (2, 'weight')
    """
    trace = trace_of(trace)
    axes = axes_of(ax)
    rows, table = column_of(trace, "rows"), column_of(trace, "weights")
    if table.ndim != 2 or rows.shape != table.shape[:1]:
        raise ValueError(f"weights of a trace must be one line per entry of rows, got {table.shape} and {rows.shape}")
    known = ~np.isnan(table).any(axis=1)
    rows, table = rows[known], table[known]
    axes.stackplot(rows, table.T, colors=colors_of(color, table.shape[1]), alpha=0.7, edgecolor="white", linewidth=0.5)
    axes.set_ylim(0.0, 1.0)
    return label_rows_axis(axes, rows, "weight")
