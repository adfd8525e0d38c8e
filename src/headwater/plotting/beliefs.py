"""How sure a model is: credible intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.plotting.shared import axes_of, colors_of, description_of, hide_frame, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headwater.diagnostics.description import Description
    from headwater.plotting.shared import Colors, Described


def intervals(
    model: Described | Description,
    value: str | None = None,
    ax: Axes | None = None,
    *,
    most: int = 12,
    color: Colors | None = None,
) -> Axes:
    """Draw credible intervals: of the weights of the components, or of one of their values.

    Parameters
    ----------
    model : estimator or Description
        What was learned.
    value : str, optional
        The column, word or coefficient to look at. Default: the weights.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    most : int, default=12
        Most components to draw: the heaviest.
    color : color or sequence of colors, optional
        One for all components, or one for each. Default: a cycle that is safe for the colour-blind.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.plotting import intervals
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> ax = intervals(GaussianMixture(2, random_state=0).fit(X), "x1")
    >>> ax.get_xlabel()
    'x1'
    """
    axes, found = axes_of(ax), description_of(model)
    shown = []
    for component in found.components:
        parts = [part for part in component.values if part.name == value]
        middle, low, high = component.weight, component.low, component.high
        if value is not None:
            middle, low, high = (parts[0].value, parts[0].low, parts[0].high) if parts else (0.0, None, None)
        if low is not None and high is not None:
            shown.append((component.index, middle, low, high))
    shown = shown[:most]
    if not shown:
        raise ValueError(f"{found.model} has no credible intervals of {value or found.weight!r}")
    shades = colors_of(color, max(index for index, *_ in shown) + 1)
    for place, (index, middle, low, high) in enumerate(shown):
        axes.plot([low, high], [place, place], color=shades[index], linewidth=3.0, alpha=0.5, solid_capstyle="butt")
        axes.plot([middle], [place], "o", color=shades[index], markersize=4.5)
    axes.set_yticks(range(len(shown)), [f"{found.component} {index}" for index, *_ in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(found.weight if value is None else shorten(value))
    return hide_frame(axes)
