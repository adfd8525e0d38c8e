"""Mixtures of regressions: their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from headwater.core.statistics import Array
from headwater.plotting.shared import axes_of, colors_of, draw_rows, require_attributes, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headwater.plotting.shared import Colors, Drawable


def regressions(
    model: Drawable,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    column: int = 0,
    ax: Axes | None = None,
    *,
    color: Colors | None = None,
) -> Axes:
    """Draw each regression of a model as its line, with a band of two standard deviations; the heavier, the darker.

    Parameters
    ----------
    model : RegressionMixture or RegressionHMM
        A fitted mixture. Anything will do that has `weights_`, `coef_`, `intercept_` and `noise_variance_`.
    X : array-like of shape (n_samples, n_features), optional
        Inputs, which say where lines begin and end; with their targets they are drawn beneath, at most 5000 of them.
    y : array-like of shape (n_samples,), optional
        The targets.
    column : int, default=0
        The input to look at. The others are held at their mean, or at 0 if there are no rows.
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
    >>> import numpy as np
    >>> from headwater import RegressionMixture
    >>> from headwater.plotting import regressions
    >>> X = np.linspace(-1.0, 1.0, 200)[:, None]
    >>> y = np.where(np.arange(200) % 2, X[:, 0], -X[:, 0])
    >>> ax = regressions(RegressionMixture(2, random_state=0).fit(X, y), X, y)
    >>> len(ax.lines), ax.get_ylabel()
    (2, 'target')
    """
    require_attributes(model, "regressions", "coef_", "intercept_", "noise_variance_")
    axes = axes_of(ax)
    weights, coef = regression_weights(model), np.asarray(model.coef_)
    middle, ends = np.zeros(coef.shape[1]), np.array([-1.0, 1.0])
    if X is not None:
        inputs = np.asarray(X, dtype=float)
        middle, ends = inputs.mean(axis=0), np.array([inputs[:, column].min(), inputs[:, column].max()])
        if y is not None:
            draw_rows(axes, np.column_stack([inputs[:, column], np.asarray(y, dtype=float)]), (0, 1))
    points = np.repeat(middle[None], 2, axis=0)
    points[:, column] = ends
    colors = colors_of(color, len(weights))
    for k, share in enumerate(weights / max(float(weights.max()), 1e-300)):
        line, band = points @ coef[k] + model.intercept_[k], 2.0 * np.sqrt(model.noise_variance_[k])
        axes.plot(ends, line, color=(colors[k], 0.4 + 0.6 * float(share)), linewidth=2.0, zorder=3)
        axes.fill_between(ends, line - band, line + band, color=colors[k], alpha=0.05 + 0.15 * float(share), linewidth=0.0)
    names = getattr(model, "feature_names_in_", [f"column {index}" for index in range(coef.shape[1])])
    axes.set_xlabel(shorten(names[column], 48))
    axes.set_ylabel("target")
    return axes


def regression_weights(model: Drawable) -> Array:
    """Return how much each regression counts: its weight, or how often its state occurs."""
    return np.asarray(model.weights_ if hasattr(model, "weights_") else model.get_stationary_distribution())
