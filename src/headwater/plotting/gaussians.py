"""Mixtures of Gaussians: ellipses of their components, and their density, in any two columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from headwater.plotting.shared import axes_of, colors_of, covariances_of, draw_rows, gaussians_of, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headwater.plotting.shared import Colors, Drawable


def ellipses(
    model: Drawable,
    X: ArrayLike | None = None,
    columns: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
    *,
    components: Sequence[int] | None = None,
    color: Colors | None = None,
    filled: bool = True,
    label: str | None = None,
) -> Axes:
    """Draw each component of a Gaussian mixture as its ellipses at 1 and 2 standard deviations, the heavier the darker.

    Parameters
    ----------
    model : GaussianMixture
        A fitted mixture of any covariance type. Anything will do that has a `covariance_type`, and `weights_`, `means_`
        and `covariances_` in the shapes of scikit-learn.
    X : array-like of shape (n_samples, n_features), optional
        Rows to draw beneath; of many, at most 5000 evenly spaced ones.
    columns : (int, int), default=(0, 1)
        The columns to look at. Other columns are integrated out.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    components : sequence of int, optional
        The components to draw. Default: all.
    color : color or sequence of colors, optional
        One for all components, or one for each. Default: a cycle that is safe for the colour-blind.
    filled : bool, default=True
        Whether to fill the ellipses, or to draw dashed outlines.
    label : str, optional
        What the legend calls the components.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.plotting import ellipses
    >>> X = np.random.default_rng(0).normal(size=(200, 3)) + np.repeat([[0.0], [5.0]], 100, axis=0)
    >>> ax = ellipses(GaussianMixture(2, random_state=0).fit(X), X, columns=(0, 2))
    >>> len(ax.patches), ax.get_xlabel()
    (4, 'column 0')
    """
    columns = (int(columns[0]), int(columns[1]))
    model = gaussians_of(model, columns)
    axes = axes_of(ax)
    from matplotlib.patches import Ellipse

    weights, means = np.asarray(model.weights_), np.asarray(model.means_)
    covariances = covariances_of(model, columns)
    chosen = np.arange(len(weights)) if components is None else np.asarray(components, dtype=int)
    if X is not None:
        draw_rows(axes, X, columns)
    colors = colors_of(color, len(weights))
    heaviest = max(float(weights[chosen].max(initial=0.0)), 1e-300)
    for number, k in enumerate(chosen):
        values, vectors = np.linalg.eigh(covariances[k])
        angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
        across, along = np.sqrt(np.maximum(values, 0.0))
        share = float(weights[k]) / heaviest
        outline: dict[str, object] = {"facecolor": "none", "linestyle": (0, (3, 2)), "linewidth": 1.1, "zorder": 4}
        body: dict[str, object] = {
            "facecolor": (colors[k], 0.08 + 0.22 * share),
            "linewidth": 0.6 + 0.6 * share,
            "zorder": 3,
        }
        for sigmas in (2.0, 1.0):
            patch = Ellipse(
                (float(means[k, columns[0]]), float(means[k, columns[1]])),
                width=2.0 * sigmas * along,
                height=2.0 * sigmas * across,
                angle=angle,
                edgecolor=colors[k],
                label=label if number == 0 and sigmas == 2.0 else None,
                **(body if filled else outline),
            )
            axes.add_patch(patch)
    axes.autoscale_view()
    names = getattr(model, "feature_names_in_", [f"column {column}" for column in range(means.shape[1])])
    axes.set_xlabel(shorten(names[columns[0]], 48))
    axes.set_ylabel(shorten(names[columns[1]], 48))
    return axes


def density(
    model: Drawable,
    X: ArrayLike | None = None,
    columns: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
    *,
    color: Colors | None = None,
    levels: int = 7,
) -> Axes:
    """Draw the density of a Gaussian mixture in two columns, as contours that each hold twice the density of the next.

    Parameters
    ----------
    model : GaussianMixture
        A fitted mixture of any covariance type, or anything with its attributes.
    X : array-like of shape (n_samples, n_features), optional
        Rows to draw beneath; of many, at most 5000 evenly spaced ones.
    columns : (int, int), default=(0, 1)
        The columns to look at. Other columns are integrated out.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    color : color, optional
        Of the contours. Default: the first of the palette.
    levels : int, default=7
        Number of contours.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.plotting import density
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> ax = density(GaussianMixture(1, random_state=0).fit(X), columns=(0, 2))
    >>> ax.get_ylabel()
    'column 2'
    """
    columns = (int(columns[0]), int(columns[1]))
    model = gaussians_of(model, columns)
    axes = axes_of(ax)
    weights, means = np.asarray(model.weights_), np.asarray(model.means_)
    pair, parts = means[:, columns], covariances_of(model, columns)
    spread = 3.0 * np.sqrt(np.diagonal(parts, axis1=1, axis2=2))
    heavy = weights >= 1e-3 * weights.max()
    (left, bottom), (right, top) = (pair - spread)[heavy].min(axis=0), (pair + spread)[heavy].max(axis=0)
    x, y = np.meshgrid(np.linspace(left, right, 160), np.linspace(bottom, top, 160))
    apart = np.stack([x, y], axis=-1)[:, :, None] - pair
    precisions = np.linalg.inv(parts)
    exponents = -0.5 * np.einsum("abki,kij,abkj->abk", apart, precisions, apart)
    heights = np.exp(exponents) @ (weights * np.sqrt(np.linalg.det(precisions)) / (2.0 * np.pi))
    if X is not None:
        draw_rows(axes, X, columns)
    steps = heights.max() * 0.5 ** np.arange(levels, 0, -1)
    axes.contour(x, y, heights, levels=steps, colors=[colors_of(color, 1)[0]], linewidths=np.linspace(0.5, 1.4, levels))
    names = getattr(model, "feature_names_in_", [f"column {column}" for column in range(means.shape[1])])
    axes.set_xlabel(shorten(names[columns[0]], 48))
    axes.set_ylabel(shorten(names[columns[1]], 48))
    return axes
