"""How states, or symbols, follow one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.plotting.shared import axes_of, description_of, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from headwater.diagnostics.description import Description
    from headwater.plotting.shared import Described


NUMBERED_STATES = 10  # states of a matrix whose numbers are still read


def transitions(
    model: Described | Description, component: int | None = None, ax: Axes | None = None, *, cmap: str | Colormap = "Blues"
) -> Axes:
    """Draw a transition matrix: from the state at the left to the one above, the darker the more probable.

    Parameters
    ----------
    model : GaussianHMM, CategoricalHMM, MarkovMixture, or a description
        What was learned.
    component : int, optional
        Which component of a mixture. Default: the heaviest.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    cmap : str or colormap, default='Blues'
        How dark is what.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> from headwater import CategoricalHMM
    >>> from headwater.plotting import transitions
    >>> X = [[0]] * 20 + [[1]] * 20 + [[0]] * 20
    >>> ax = transitions(CategoricalHMM(2, random_state=0).fit(X))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['state 0', 'state 1']
    """
    axes, found = axes_of(ax), description_of(model)
    matrix = next((one for one in found.matrices if component is None or one.component == component), None)
    if matrix is None:
        which = "" if component is None else f" of component {component!r}"
        raise ValueError(f"the model must have a transition matrix{which}, got none")
    values = np.array(matrix.values)
    axes.imshow(values, vmin=0.0, vmax=1.0, cmap=cmap)
    names, places = [shorten(name, 16) for name in matrix.names], range(len(matrix.names))
    axes.set_xticks(places, names, rotation=90 if max(map(len, names)) > 3 else 0)
    axes.set_yticks(places, names)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if len(names) <= NUMBERED_STATES:
        for (row, column), value in np.ndenumerate(values):
            if value >= 0.005:
                ink = "white" if value > 0.55 else "black"
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=ink, fontsize="small")
    return axes
