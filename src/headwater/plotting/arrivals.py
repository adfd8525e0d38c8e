"""The power by angle, and the direction of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from headwater.plotting.shared import axes_of, require_attributes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headwater.plotting.shared import Colors, Drawable


def beam(
    model: Drawable,
    angles: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    label: str | None = None,
    color: Colors | None = None,
) -> Axes:
    """Draw the power that arrives from each angle, and the angle of the source with two standard errors to either side.

    Parameters
    ----------
    model : DirectionOfArrival
        A fitted model.
    angles : array-like, optional
        The angles, in the meaning of `model.angle_`. Default: 1000 evenly spaced ones of those that are searched.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    label : str, optional
        What the legend calls the curve.
    color : color, optional
        Default: the next of matplotlib's cycle.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn. Bearings of a linear array are in degrees.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import DirectionOfArrival
    >>> from headwater.plotting import beam
    >>> draws = np.random.default_rng(0).normal(size=(300, 7, 2)) @ [1.0, 1.0j]
    >>> X = draws[:, :1] * np.exp(0.7j * np.arange(6)) + draws[:, 1:]
    >>> ax = beam(DirectionOfArrival(random_state=0).fit(X))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('degrees from broadside', 'power, dB of the highest')
    """
    low, high = require_attributes(model, "direction", "angle_range_", "spectrum").angle_range_
    axes = axes_of(ax)
    places = np.linspace(low, high, 1000) if angles is None else np.asarray(angles, dtype=float)
    power = np.maximum(model.spectrum(places), 1e-300)
    unit = 1.0 if np.isnan(model.omega_) else np.degrees(1.0)
    (line,) = axes.plot(unit * places, 10.0 * np.log10(power / power.max()), color=color, label=label, linewidth=2.0)
    angle, spread = unit * model.angle_, 2.0 * unit * model.angle_std_
    axes.axvline(angle, color=line.get_color(), linewidth=1.0, linestyle=(0, (3, 2)))
    if np.isfinite(spread):
        axes.axvspan(angle - spread, angle + spread, color=line.get_color(), alpha=0.2, linewidth=0.0)
    axes.set_xlabel("angle" if np.isnan(model.omega_) else "degrees from broadside")
    axes.set_ylabel("power, dB of the highest")
    return axes
