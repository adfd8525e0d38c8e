"""The words that a component is known by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.plotting.shared import axes_of, colors_of, component_of, description_of, hide_frame, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headwater.diagnostics.description import Description
    from headwater.plotting.shared import Colors, Described


def words(
    model: Described | Description,
    component: int | None = None,
    ax: Axes | None = None,
    *,
    most: int = 10,
    color: Colors | None = None,
) -> Axes:
    """Draw the most distinctive words of a topic or a component as bars, the most distinctive at the top.

    Parameters
    ----------
    model : LatentDirichletAllocation, MultinomialMixture, or any other model or description
        What was learned. Columns and coefficients of other models are drawn in the same way.
    component : int, optional
        Its index. Default: the heaviest.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    most : int, default=10
        Most words to draw.
    color : color, optional
        Of the bars. Default: that of the component in the palette.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import MultinomialMixture
    >>> from headwater.plotting import words
    >>> X = np.repeat([[5.0, 1.0, 0.0], [0.0, 1.0, 5.0]], 50, axis=0)
    >>> ax = words(MultinomialMixture(2, random_state=0).fit(X), most=2)
    >>> len(ax.patches), ax.get_xlabel()
    (2, 'probability')
    """
    axes, found = axes_of(ax), description_of(model)
    chosen = component_of(found, component)
    values = chosen.values[:most]
    shade = colors_of(color, chosen.index + 1)[chosen.index]
    places = range(len(values))
    axes.barh(places, [value.value for value in values], color=shade, height=0.7)
    for place, value in zip(places, values, strict=True):
        if value.low is not None and value.high is not None:
            axes.plot([value.low, value.high], [place, place], color="0.25", linewidth=1.0)
    axes.set_yticks(places, [shorten(value.name) for value in values])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel(found.value)
    axes.set_title(f"{found.component} {chosen.label}, {found.weight} {chosen.weight:.1%}", loc="left", fontsize="medium")
    return hide_frame(axes)
