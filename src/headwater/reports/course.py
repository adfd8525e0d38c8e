"""How learning went, as figures: scores and weights over a stream, or the objective over passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater import plotting
from headwater.core.statistics import Array
from headwater.diagnostics.history import History
from headwater.estimators.base import StreamingEstimator
from headwater.reports.figures import WATER, figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

FENCE = 3.0  # times the distance of the quartiles, beyond which a value is an outlier (Tukey)
MARGIN = 0.05  # of the height of a figure


def learning_course(model: StreamingEstimator, shades: Sequence[str]) -> dict[str, object] | None:
    """Return figures of how the model learned, with the numbers beside them; None if nothing is known of it."""
    history = getattr(model, "history_", None)
    if history is not None and len(history.points) > 1 and np.isfinite(history.scores).sum() > 1:
        perplexity = history.late_perplexity if type(model)._traits.measure else np.nan
        return {**_stream_course(history, shades), "perplexity": perplexity}
    bounds = np.asarray(getattr(model, "lower_bounds_", ()), dtype=float)
    if len(bounds) < 2:
        return None

    def draw(axes: Axes) -> None:
        axes.plot(range(1, len(bounds) + 1), bounds, color=WATER, linewidth=1.8)
        axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
        axes.set_xlabel("pass over all rows")
        axes.set_ylabel("objective per row")
        limit_height(axes, bounds)

    label = f"The objective after each of {len(bounds)} passes over all rows{count_cut_off(bounds)}"
    return {"figures": [(figure(draw, label, "passes", (4.9, 2.3)), label)], "seconds": None, "last": float(bounds[-1])}


def _stream_course(history: History, shades: Sequence[str]) -> dict[str, object]:
    scored = np.isfinite(history.scores)
    rows, values = history.rows[scored], history.scores[scored]
    label = f"Score of rows before they were learned, over the stream: higher is better{count_cut_off(values)}"

    def score(axes: Axes) -> None:
        axes.plot(rows, values, color=WATER, linewidth=0.8, alpha=0.35)
        plotting.scores({"rows": rows, "scores": running_medians(values)}, axes, color=WATER)
        limit_height(axes, values)

    figures = [(figure(score, label, "scores", (4.9, 2.3)), label)]
    known = ~np.isnan(history.weights).any(axis=1)
    if history.components and len(history.components) > 1 and known.sum() > 2:
        label = "Weights of the components over the stream"

        def weights(axes: Axes) -> None:
            plotting.weights(history, axes, color=[shades[k] for k in history.components])

        figures.append((figure(weights, label, "weights", (4.9, 2.3)), label))
    return {
        "figures": figures,
        "seconds": history.seconds,
        "last": history.late_score,
        "late": history.late_scored,
        "rows": history.seen,
        "scored": history.all_scored,
    }


def running_medians(values: Array) -> Array:
    """Medians of neighbours: fewer at the ends, but at least three, so that one outlier is none of them."""
    size = max(1, len(values) // 24)
    starts = [min(max(0, at - size), max(0, len(values) - 3)) for at in range(len(values))]
    return np.array([np.median(values[start : max(at + size + 1, start + 3)]) for at, start in enumerate(starts)])


def fence(values: Array) -> tuple[float, float]:
    """The range of values without outliers."""
    low, high = np.quantile(values, [0.25, 0.75])
    reach = FENCE * (high - low)
    inside = values[(values >= low - reach) & (values <= high + reach)]
    return float(inside.min()), float(inside.max())


def limit_height(axes: Axes, values: Array) -> None:
    """Fit the height of a figure to values that are no outliers, so that one of them does not flatten the curve."""
    low, high = fence(values)
    if high > low:
        axes.set_ylim(low - MARGIN * (high - low), high + MARGIN * (high - low))


def count_cut_off(values: Array) -> str:
    """Say how many values lie outside a figure; nothing if none does."""
    low, high = fence(values)
    out = values[(values < low) | (values > high)] if high > low else values[:0]
    if not len(out):
        return ""
    points = f"a point at {out[0]:.4g} lies" if len(out) == 1 else f"{len(out)} points lie"
    return f" ({points} outside the picture)"
