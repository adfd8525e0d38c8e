"""Whether residuals are those of the right model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from headwater.plotting.shared import PALETTE, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

LEVEL = 2.576  # standard errors of a share: 99 of 100 bars of the right model are within the band


def residuals(values: ArrayLike, ax: Axes | None = None, *, kind: str = "normal", bins: int = 20) -> Axes:
    """Draw how often residuals are where: bars of equal height for the right model, within the band for 99 of 100 of them.

    High bars at both ends: the laws are too narrow. A high middle: they are too wide. A slope: they are too high or too low.

    Parameters
    ----------
    values : array-like
        What `residuals` of a hidden Markov model returns; all columns together.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    kind : {'normal', 'uniform'}, default='normal'
        What the values are.
    bins : int, default=20
        Number of bars.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> from headwater.plotting import residuals
    >>> counts = np.random.default_rng(0).poisson(3.0, size=(500, 1))
    >>> ax = residuals(hw.PoissonHMM(1, random_state=0).fit(counts).residuals(counts))
    >>> len(ax.patches) >= 20
    True
    """
    if kind not in ("normal", "uniform"):
        raise ValueError(f"kind must be 'normal' or 'uniform', got {kind!r}")
    given = np.asarray(values, dtype=float).ravel()
    given = given[~np.isnan(given)]
    if not len(given):
        raise ValueError("values must hold at least one residual, got none")
    axes = axes_of(ax)
    shares = ndtr(given) if kind == "normal" else given
    counts, edges = np.histogram(shares, bins=bins, range=(0.0, 1.0))
    usual, error = 1.0, LEVEL * np.sqrt((bins - 1.0) / len(given))
    axes.axhspan(max(usual - error, 0.0), usual + error, color="0.85", zorder=0)
    axes.bar(edges[:-1], counts * bins / len(given), width=np.diff(edges), align="edge", color=PALETTE[0], edgecolor="white")
    axes.axhline(usual, color="0.4", linewidth=0.8)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("probability of a smaller value, given the rows before")
    axes.set_ylabel("density")
    return axes
