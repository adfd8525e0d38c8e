"""Pictures of a mixture, of a beam, and of how a stream was learned. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.statistics import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 5000


def ellipses(
    model: Any,
    X: Any = None,
    columns: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
    *,
    components: Sequence[int] | None = None,
    color: Any = None,
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
        One for all components, or one for each. Default: matplotlib's cycle.
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
    axes = _axes(ax)
    from matplotlib.patches import Ellipse

    columns = (int(columns[0]), int(columns[1]))
    weights, means = np.asarray(model.weights_), np.asarray(model.means_)
    covariances = _matrices(np.asarray(model.covariances_), model.covariance_type, *means.shape)
    chosen = np.arange(len(weights)) if components is None else np.asarray(components, dtype=int)
    if X is not None:
        _draw_rows(axes, X, columns)
    colors = _colors(color, len(weights))
    heaviest = max(float(weights[chosen].max(initial=0.0)), 1e-300)
    for number, k in enumerate(chosen):
        values, vectors = np.linalg.eigh(covariances[k][np.ix_(columns, columns)])
        angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
        across, along = np.sqrt(np.maximum(values, 0.0))
        share = float(weights[k]) / heaviest
        outline: dict[str, Any] = {"facecolor": "none", "linestyle": (0, (3, 2)), "linewidth": 1.1, "zorder": 4}
        body: dict[str, Any] = {
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
    axes.set_xlabel(str(names[columns[0]]))
    axes.set_ylabel(str(names[columns[1]]))
    return axes


def regressions(
    model: Any, X: Any = None, y: Any = None, column: int = 0, ax: Axes | None = None, *, color: Any = None
) -> Axes:
    """Draw each component of a regression mixture as its line, with a band of two standard deviations; the heavier, the darker.

    Parameters
    ----------
    model : RegressionMixture
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
        One for all components, or one for each. Default: matplotlib's cycle.

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
    axes = _axes(ax)
    weights, coef = np.asarray(model.weights_), np.asarray(model.coef_)
    middle, ends = np.zeros(coef.shape[1]), np.array([-1.0, 1.0])
    if X is not None:
        inputs = np.asarray(X, dtype=float)
        middle, ends = inputs.mean(axis=0), np.array([inputs[:, column].min(), inputs[:, column].max()])
        if y is not None:
            _draw_rows(axes, np.column_stack([inputs[:, column], np.asarray(y, dtype=float)]), (0, 1))
    points = np.repeat(middle[None], 2, axis=0)
    points[:, column] = ends
    colors = _colors(color, len(weights))
    for k, share in enumerate(weights / max(float(weights.max()), 1e-300)):
        line, band = points @ coef[k] + model.intercept_[k], 2.0 * np.sqrt(model.noise_variance_[k])
        axes.plot(ends, line, color=(colors[k], 0.4 + 0.6 * float(share)), linewidth=2.0, zorder=3)
        axes.fill_between(ends, line - band, line + band, color=colors[k], alpha=0.05 + 0.15 * float(share), linewidth=0.0)
    names = getattr(model, "feature_names_in_", [f"column {index}" for index in range(coef.shape[1])])
    axes.set_xlabel(str(names[column]))
    axes.set_ylabel("target")
    return axes


def scores(trace: Mapping[str, Any], ax: Axes | None = None, *, label: str | None = None, color: Any = None) -> Axes:
    """Draw a score against the rows learned when it was taken.

    Parameters
    ----------
    trace : mapping
        `rows`, how many rows had been learned, and `scores`, the mean log-density per row at that moment: on rows held
        out, or of the next rows before they were learned. A data frame with these columns will do.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    label : str, optional
        What the legend calls the curve.
    color : color, optional
        Default: the next of matplotlib's cycle.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> from headwater.plotting import scores
    >>> rng = np.random.default_rng(0)
    >>> model = GaussianMixture(2, random_state=0)
    >>> trace = {"rows": [], "scores": []}
    >>> for _ in range(10):
    ...     trace["scores"].append(np.nanmean(model.update(rng.normal(size=(300, 2)))))
    ...     trace["rows"].append(model.n_samples_seen_)
    >>> ax = scores(trace, label="before learning")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('rows learned', 'score, nats per row')
    """
    axes = _axes(ax)
    rows, values = _column(trace, "rows"), _column(trace, "scores")
    if rows.shape != values.shape or rows.ndim != 1:
        raise ValueError(f"rows and scores of a trace must be equally long, got {rows.shape} and {values.shape}")
    axes.plot(rows, values, color=color, label=label, linewidth=2.0)
    return _against_rows(axes, rows, "score, nats per row")


def weights(trace: Mapping[str, Any], ax: Axes | None = None, *, color: Any = None) -> Axes:
    """Draw the weights of the components over the rows learned, stacked so that they fill the height.

    Parameters
    ----------
    trace : mapping
        `rows`, how many rows had been learned, and `weights` of shape (moments, n_components) at those moments.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    color : color or sequence of colors, optional
        One for all components, or one for each. Default: matplotlib's cycle.

    Returns
    -------
    ax : matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> from headwater.plotting import weights
    >>> ax = weights({"rows": [100, 200, 400], "weights": [[0.5, 0.5], [0.4, 0.6], [0.3, 0.7]]})
    >>> len(ax.collections), ax.get_ylabel()
    (2, 'weight')
    """
    axes = _axes(ax)
    rows, table = _column(trace, "rows"), _column(trace, "weights")
    if table.ndim != 2 or rows.shape != table.shape[:1]:
        raise ValueError(f"weights of a trace must be one line per entry of rows, got {table.shape} and {rows.shape}")
    axes.stackplot(rows, table.T, colors=_colors(color, table.shape[1]), alpha=0.7, edgecolor="white", linewidth=0.5)
    axes.set_ylim(0.0, 1.0)
    return _against_rows(axes, rows, "weight")


def beam(model: Any, angles: Any = None, ax: Axes | None = None, *, label: str | None = None, color: Any = None) -> Axes:
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
    axes = _axes(ax)
    low, high = model.angle_range_
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


def _axes(ax: Axes | None) -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError as missing:
        raise ImportError("pictures need matplotlib: pip install 'headwater[plot]'") from missing
    return pyplot.subplots()[1] if ax is None else ax


def _colors(color: Any, number: int) -> list[Any]:
    """One color per component."""
    from matplotlib import colormaps
    from matplotlib.colors import is_color_like

    if color is None:
        cycle = colormaps["tab10" if number <= 10 else "tab20"]
        return [cycle(k % cycle.N) for k in range(number)]
    if is_color_like(color):
        return [color] * number
    return [color[k % len(color)] for k in range(number)]


def _matrices(covariances: Array, covariance_type: str, k: int, width: int) -> Array:
    """Covariance matrices (K, d, d), whatever shape the covariance type gives them."""
    if covariance_type == "full":
        return covariances
    if covariance_type == "tied":
        return np.broadcast_to(covariances, (k, width, width))
    variances = covariances if covariance_type == "diag" else np.broadcast_to(covariances[:, None], (k, width))
    return variances[:, :, None] * np.eye(width)


def _draw_rows(axes: Axes, X: Any, columns: tuple[int, int]) -> None:
    rows = np.asarray(X, dtype=float)
    rows = rows[:: max(1, -(-len(rows) // MOST_ROWS))]
    axes.scatter(rows[:, columns[0]], rows[:, columns[1]], s=3.0, color="0.6", alpha=0.5, linewidths=0.0, zorder=1)


def _column(trace: Mapping[str, Any], name: str) -> Array:
    try:
        return np.asarray(trace[name], dtype=float)
    except KeyError:
        raise ValueError(f"a trace must have {name!r}, got {', '.join(map(repr, trace))}") from None


def _against_rows(axes: Axes, rows: Array, what: str) -> Axes:
    if rows.size and rows.min() > 0.0 and rows.max() >= 100.0 * rows.min():
        axes.set_xscale("log")
    axes.set_xlabel("rows learned")
    axes.set_ylabel(what)
    return axes
