"""Power spectra: frames over time, and the components that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from headwater.core.statistics import Array
from headwater.plotting.shared import axes_of, colors_of, hide_frame, require_attributes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from headwater.plotting.shared import Colors, Drawable


DYNAMIC_RANGE_DB = 80.0  # decibels below the loudest that are still told apart


def spectra(model: Drawable, ax: Axes | None = None, *, color: Colors | None = None) -> Axes:
    """Draw the spectra of the components, in decibels.

    Parameters
    ----------
    model : ItakuraSaitoNMF
        A fitted model. Anything will do that has `components_` (K, F).
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
    >>> from types import SimpleNamespace
    >>> from headwater.plotting import spectra
    >>> ax = spectra(SimpleNamespace(components_=[[4.0, 2.0, 1.0], [1.0, 2.0, 4.0]]))
    >>> len(ax.lines), ax.get_ylabel()
    (2, 'power, dB')
    """
    require_attributes(model, "spectra", "components_")
    axes, table = axes_of(ax), np.atleast_2d(np.asarray(model.components_, dtype=float))
    decibels = _decibels(table)
    for k, (curve, shade) in enumerate(zip(decibels, colors_of(color, len(table)), strict=True)):
        axes.plot(curve, color=shade, linewidth=1.6, label=f"component {k}")
    axes.set_xlabel("bin")
    axes.set_ylabel("power, dB")
    return hide_frame(axes)


def spectrogram(X: ArrayLike, ax: Axes | None = None, *, cmap: str | Colormap = "magma") -> Axes:
    """Draw frames of power as a picture: time to the right, bins upwards, decibels as brightness.

    Parameters
    ----------
    X : array-like of shape (n_frames, n_bins)
        Powers: frames that were learned, a part that `separate` returns, or spectra.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    cmap : str or colormap, default='magma'
        How bright is what.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.plotting import spectrogram
    >>> ax = spectrogram(np.random.default_rng(0).exponential(size=(30, 8)))
    >>> ax.get_xlabel(), ax.images[0].get_array().shape
    ('frame', (8, 30))
    """
    if hasattr(X, "describe") and hasattr(X, "partial_fit"):
        raise ValueError(f"X must hold frames of power, got {type(X).__name__}: draw a model's spectra with spectra(model)")
    axes, powers = axes_of(ax), np.atleast_2d(np.asarray(X, dtype=float))
    axes.imshow(_decibels(powers).T, origin="lower", aspect="auto", cmap=cmap, interpolation="nearest")
    axes.set_xlabel("frame")
    axes.set_ylabel("bin")
    return axes


def _decibels(powers: Array) -> Array:
    """Decibels, at most so many below the loudest."""
    loudest = max(float(np.max(powers, initial=0.0)), 1e-300)
    return 10.0 * np.log10(np.maximum(powers, loudest * 10.0 ** (-DYNAMIC_RANGE_DB / 10.0)))
