"""The picture that suits a model, whichever model it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from headwater.plotting.arrivals import beam
from headwater.plotting.beliefs import intervals
from headwater.plotting.chains import transitions
from headwater.plotting.column_pair import telling_pair
from headwater.plotting.gaussians import ellipses
from headwater.plotting.regressions import regressions
from headwater.plotting.shared import axes_of, colors_of, description_of, hide_frame
from headwater.plotting.spectra import spectra
from headwater.plotting.words import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headwater.plotting.shared import Drawable


def overview(model: Drawable, X: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
    """Draw what a model has learned, by the picture that suits it.

    Gaussians are ellipses in the two columns that tell them apart best; chains and mixtures of chains are matrices of
    transitions; topics and counts are the words of the heaviest component; regressions are lines, spectra are curves, a
    direction of arrival is a beam. Other models show the weights of their components.

    Parameters
    ----------
    model : estimator
        A fitted model of any kind.
    X : array-like of shape (n_samples, n_features), optional
        Rows to draw beneath Gaussians.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.plotting import overview
    >>> X = np.random.default_rng(0).normal(size=(300, 3)) + [[0.0, 0.0, 5.0]] * (np.arange(300) % 2)[:, None]
    >>> ax = overview(GaussianMixture(2, random_state=0).fit(X), X)
    >>> "column 2" in (ax.get_xlabel(), ax.get_ylabel())
    True
    """
    described = hasattr(type(model), "_describer")
    if not described:
        raise ValueError(f"model must be a headwater model, got {type(model).__name__}")
    if hasattr(model, "angle_"):
        return beam(model, ax=ax)
    if hasattr(model, "noise_variance_") and hasattr(model, "coef_") and hasattr(model, "weights_"):
        return regressions(model, ax=ax)
    found = description_of(model)
    if found.matrices:
        return transitions(found, ax=ax)
    gaussians = model._describer.gaussians()
    if gaussians is not None and np.shape(gaussians.means_)[1] > 1:
        return ellipses(model, X, telling_pair(gaussians), ax)
    if found.value == "power":
        return spectra(model, ax=ax)
    if "probability" in found.value:
        return words(found, ax=ax)
    return intervals(found, ax=ax) if any(one.low is not None for one in found.components) else _weights(model, ax)


def _weights(model: Drawable, ax: Axes | None) -> Axes:
    """The weights of components as bars."""
    found, axes = description_of(model), axes_of(ax)
    shown = found.components[:24]
    shades = colors_of(None, 1 + max([one.index for one in shown], default=0))
    axes.barh(range(len(shown)), [one.weight for one in shown], color=[shades[one.index] for one in shown])
    axes.set_yticks(range(len(shown)), [one.name or f"{found.component} {one.index}" for one in shown])
    axes.invert_yaxis()
    axes.set_xlabel(found.weight)
    return hide_frame(axes)
