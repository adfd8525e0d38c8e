"""What all pictures share: axes, colours, and the columns of a trace. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from headwater.core.statistics import Array
from headwater.diagnostics.description import Component, Description
from headwater.diagnostics.text_width import cut_to_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

    Colors: TypeAlias = ColorType | Sequence[ColorType]  # one for all components, or one for each

# A fitted model, or anything with the attributes that a picture reads; it is refused where it lacks one.
Drawable: TypeAlias = Any

MOST_ROWS = 5000  # drawn beneath a picture; more are no longer told apart
# Told apart by those who see few colours, too (Okabe and Ito); then the same, lighter.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7A6FB0", "#8C8C00")


class Described(Protocol):
    """A model that describes itself."""

    def describe(self) -> Description:
        """Return what was learned."""


def axes_of(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    try:
        from matplotlib import pyplot
    except ImportError as missing:
        raise ImportError("pictures need matplotlib: pip install 'headwater[plot]'") from missing
    return pyplot.subplots()[1] if ax is None else ax


def colors_of(color: Colors | None, number: int) -> list[ColorType]:
    """One color per component."""
    from matplotlib.colors import is_color_like, to_rgb

    if color is None:
        strong = [to_rgb(one) for one in PALETTE]
        cycle: list[ColorType] = [*strong, *((0.5 + 0.5 * r, 0.5 + 0.5 * g, 0.5 + 0.5 * b) for r, g, b in strong)]
        return [cycle[k % len(cycle)] for k in range(number)]
    if is_color_like(color):
        return [cast("ColorType", color)] * number
    several = cast("Sequence[ColorType]", color)
    return [several[k % len(several)] for k in range(number)]


def variances_of(model: Drawable) -> Array:
    """Variances of the columns of each component (K, d), whatever shape the covariance type gives them."""
    covariances, shape = np.asarray(model.covariances_), np.shape(model.means_)
    if model.covariance_type in ("full", "tied"):
        return np.broadcast_to(np.diagonal(covariances, axis1=-2, axis2=-1), shape)
    return np.broadcast_to(covariances[:, None] if covariances.ndim == 1 else covariances, shape)


def covariances_of(model: Drawable, columns: tuple[int, int]) -> Array:
    """Covariance matrices of two columns of each component (K, 2, 2); no others are made of what has none."""
    if model.covariance_type in ("full", "tied"):
        pair = np.asarray(model.covariances_)[..., columns, :][..., columns]
        return np.broadcast_to(pair, (len(model.means_), 2, 2))
    return variances_of(model)[:, columns][:, :, None] * np.eye(2)


def draw_rows(axes: Axes, X: ArrayLike, columns: tuple[int, int]) -> None:
    """Draw some of the rows as grey points, beneath all else."""
    rows = np.asarray(X, dtype=float)
    rows = rows[:: max(1, -(-len(rows) // MOST_ROWS))]
    axes.scatter(
        rows[:, columns[0]], rows[:, columns[1]], s=3.0, color="0.6", alpha=0.5, linewidths=0.0, zorder=1, rasterized=True
    )


def require_attributes(model: Drawable, what: str, *names: str) -> Drawable:
    """Return a model that has what a picture is drawn of, by these attributes, or refuse it."""
    lacks = [name for name in names if not hasattr(model, name)]
    if lacks:
        raise ValueError(f"{type(model).__name__} has no {what} to draw: it lacks {', '.join(lacks)}")
    return model


def gaussians_of(model: Drawable, columns: tuple[int, int]) -> Drawable:
    """Return what has weights, means and covariances of Gaussians over the columns, of which two are drawn."""
    found = model._describer.gaussians() if hasattr(type(model), "_describer") else model
    if found is None:
        raise ValueError(f"{type(model).__name__} has no Gaussians over the columns to draw")
    width = np.shape(require_attributes(found, "Gaussians", "weights_", "means_", "covariances_", "covariance_type").means_)[1]
    if not all(0 <= column < width for column in columns):
        raise ValueError(f"columns must be two of the {width} columns that the model has, got {columns}")
    return found


def trace_of(given: Drawable) -> Drawable:
    """How a stream went: a mapping, a frame or a history; or what a monitor, or the model that one watched, has of it."""
    if isinstance(given, Mapping) or (hasattr(given, "columns") and hasattr(given, "__getitem__")):
        return given
    found = getattr(given, "history_", getattr(given, "history", given))
    if not hasattr(found, "rows"):
        raise ValueError(
            f"trace must be a mapping or a History of how a stream went, got {type(given).__name__}: learn it with "
            f"headwater.Monitor(model).learn(...), which leaves model.history_"
        )
    return found


def column_of(trace: Drawable, name: str) -> Array:
    """A column of a trace: of a mapping, or of a history."""
    if not hasattr(trace, "__getitem__"):
        return np.asarray(getattr(trace, name), dtype=float)
    try:
        return np.asarray(trace[name], dtype=float)
    except KeyError:
        raise ValueError(f"a trace must have {name!r}, got {', '.join(map(repr, trace))}") from None


def description_of(model: Described | Description) -> Description:
    """What a model says of itself, if it is not a description already."""
    return model if isinstance(model, Description) else model.describe()


def component_of(description: Description, index: int | None) -> Component:
    """The component with this index, or the heaviest."""
    for component in description.components:
        if index is None or component.index == index:
            return component
    known = ", ".join(str(component.index) for component in description.components[:10])
    raise ValueError(f"component must be one of those described ({known or 'none'}), got {index!r}")


def hide_frame(axes: Axes) -> Axes:
    """Take away the frame, which says nothing."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def shorten(name: object, most: int = 28) -> str:
    """A name that fits beside a picture; dollars are no mathematics."""
    from matplotlib import rcParams

    text = cut_to_width(" ".join(str(name).split()), most)
    return text.replace("$", r"\$") if rcParams["text.parse_math"] else text


def label_rows_axis(axes: Axes, rows: Array, what: str) -> Axes:
    """Name the axes of what is drawn over rows, whose scale is logarithmic if they span much."""
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    if rows.size and rows.min() > 0.0 and rows.max() >= 100.0 * rows.min():
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("rows learned")
    axes.set_ylabel(what)
    return axes
