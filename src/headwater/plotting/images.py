"""Components as images, where columns are pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.statistics import Array
from headwater.plotting.shared import axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from headwater.plotting.shared import Drawable


GAP_PIXELS = 1  # pixels between two images


def images(
    model: Drawable,
    shape: tuple[int, int] | None = None,
    ax: Axes | None = None,
    *,
    cmap: str | Colormap = "gray_r",
    most: int = 36,
) -> Axes:
    """Draw the mean, or the probabilities, of each component as an image, the heaviest first, with its index.

    Parameters
    ----------
    model : GaussianMixture, GaussianHMM, MultinomialMixture or LatentDirichletAllocation
        A fitted model whose columns are pixels, row by row.
    shape : (int, int), optional
        Height and width of an image. Default: a square.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    cmap : str or colormap, default='gray_r'
        How values are drawn.
    most : int, default=36
        Most images to draw.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.plotting import images
    >>> X = np.random.default_rng(0).normal(size=(300, 16))
    >>> ax = images(GaussianMixture(2, covariance_type="diag", random_state=0).fit(X))
    >>> ax.images[0].get_array().shape
    (4, 9)
    """
    axes = axes_of(ax)
    patterns, weights = model._describer.patterns(), model._describer.shares_now()
    if patterns is None:
        raise ValueError(f"the components of {type(model).__name__} are no images")
    height, width = image_shape(patterns.shape[1], shape)
    order = np.argsort(-weights, kind="stable")[:most] if len(weights) else np.arange(len(patterns))[:most]
    across = max(1, int(np.ceil(np.sqrt(len(order) * height / width))))
    down = -(-len(order) // across)
    sheet = np.full((down * (height + GAP_PIXELS) - GAP_PIXELS, across * (width + GAP_PIXELS) - GAP_PIXELS), np.nan)
    for place, k in enumerate(order):
        top, left = place // across * (height + GAP_PIXELS), place % across * (width + GAP_PIXELS)
        sheet[top : top + height, left : left + width] = scale_to_unit(patterns[k]).reshape(height, width)
        axes.text(left - 0.3, top - 0.3, str(k), fontsize="small", color="0.5", va="top")
    axes.imshow(sheet, cmap=cmap, interpolation="nearest", vmin=0.0, vmax=1.0)
    axes.set_axis_off()
    return axes


def image_shape(width: int, shape: Sequence[int] | None = None) -> tuple[int, int]:
    """Height and width of an image with so many pixels."""
    if shape is None:
        side = round(float(np.sqrt(width)))
        if side == 1:
            raise ValueError("shape must be given, since one column makes no image")
        if side * side != width:
            raise ValueError(f"shape must be given, since {width} columns make no square image")
        return side, side
    height, across = int(shape[0]), int(shape[1])
    if height < 1 or height * across != width:
        raise ValueError(f"shape must have {width} pixels, one for each column, got {height} x {across}")
    return height, across


def scale_to_unit(pattern: Array) -> Array:
    """Values between 0 and 1."""
    low, high = float(pattern.min()), float(pattern.max())
    return (pattern - low) / (high - low) if high > low else np.zeros_like(pattern)
