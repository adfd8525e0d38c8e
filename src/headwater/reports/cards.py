"""What was learned, as a page shows it: a card for each component, images, matrices of transitions, curves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from markupsafe import Markup

from headwater.diagnostics.description import Component, Curve, Description, Matrix
from headwater.diagnostics.numbers import format_interval, format_percent, format_with_spread
from headwater.diagnostics.text_width import text_width
from headwater.estimators.base import StreamingEstimator
from headwater.plotting.images import image_shape as shape_of
from headwater.reports.colors import page_palette
from headwater.reports.drawings import CROWDED_STATES, sparkline, transition_graph
from headwater.reports.figures import WATER, figure, image

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_IMAGE_COLUMNS = 36  # that are taken for an image, without an image_shape
NUMBERED_STATES = 10  # states of a matrix; with more, its numbers are too small to read
FULL_BAR_Z = 2.5  # standard deviations from the mean of all rows that fill half a bar
WIDE_NAME = 18  # letters; if a name is wider, names get a line of their own
SMALL_TEXT = 0.86  # size of the spread beside a value
WIDE_LETTERS = 0.6  # of a percent sign or a minus, beyond the width of a digit

Card: TypeAlias = dict[str, Any]  # what the template of a card reads


def make_card(found: Description, component: Component, color: str) -> Card:
    """Return what the card of a component shows."""
    signed = found.value in ("mean", "coefficient")
    largest = max([abs(value.value) for value in component.values], default=1.0) or 1.0
    lines = []
    for value in component.values:
        bar = None
        if signed and value.standing is not None:
            reach = max(-1.0, min(1.0, value.standing / (FULL_BAR_Z if found.value == "mean" else 1.0)))
            bar = {"left": 50.0 + 50.0 * min(reach, 0.0), "width": 50.0 * abs(reach)}
        elif not signed:
            bar = {"left": 0.0, "width": 100.0 * max(0.0, value.value) / largest}
        if "probability" in found.value or value.is_share:
            shown, spread, interval = format_percent(value.value), "", percent_range(value.low, value.high)
        else:
            (shown, spread), interval = format_with_spread(value.value, value.spread), format_interval(value.low, value.high)
        lines.append({"name": value.name, "value": shown, "spread": spread, "bar": bar, "range": interval})
    curve = next((one for one in found.curves if one.component == component.index), None)
    spark = None
    if curve is not None:
        loud = np.maximum(curve.values, max(curve.values) * 1e-8)
        spark = sparkline((10.0 * np.log10(np.maximum(loud, 1e-300))).tolist(), f"{curve.title}, in decibels over bins")
    return {
        "index": component.index, "label": component.label, "weight": component.weight,
        "range": percent_range(component.low, component.high),
        "remark": component.remark, "lines": lines, "color": color, "signed": signed, "spark": spark,
    }  # fmt: skip


def card_layout(cards: Sequence[Card]) -> dict[str, object]:
    """Return how wide numbers are, in digits, and whether names need a line of their own: the same in all cards."""
    lines = [line for card in cards for line in card["lines"]]
    digits = max([_digits(line["value"]) + _digits(line["spread"], " ± ") * SMALL_TEXT for line in lines], default=0.0)
    return {"digits": round(digits + 0.5, 1), "stacked": any(text_width(line["name"]) > WIDE_NAME for line in lines)}


def _digits(text: str, before: str = "") -> float:
    return len(before + text) + WIDE_LETTERS * sum(text.count(one) for one in "%−<e+") if text else 0.0


def percent_range(low: float | None, high: float | None) -> str:
    """An interval of a share, as percents; empty if there is none."""
    return "" if low is None or high is None or low == high else f"{format_percent(low)} to {format_percent(high)}"


def pixel_shape(model: StreamingEstimator, shape: tuple[int, int] | None) -> tuple[int, int] | None:
    """Height and width of components as images, where columns are pixels."""
    patterns = model._describer.patterns()
    if patterns is None or (shape is None and not _look_like_pixels(model, patterns.shape[1])):
        return None
    return shape_of(patterns.shape[1], shape)


def draw_images(model: StreamingEstimator, found: Description, size: tuple[int, int]) -> dict[int, Markup]:
    """Return components as images, by their index."""
    patterns = model._describer.patterns()
    assert patterns is not None
    return {
        one.index: image(patterns[one.index], size, f"{found.component} {one.index} as an image") for one in found.components
    }


def _look_like_pixels(model: StreamingEstimator, width: int) -> bool:
    """Whether columns make a square, and have no names or only a word and a number each."""
    side = round(float(np.sqrt(width)))
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    words = {re.sub(r"\d+", "", name) for name in names}
    numbered = all(re.search(r"\d", name) for name in names)
    return width >= LEAST_IMAGE_COLUMNS and side * side == width and len(words) <= 1 and numbered


def show_matrix(matrix: Matrix, shades: Sequence[str]) -> dict[str, object]:
    """Return a matrix of transitions as a table and a graph; states of a chain have the colours of their cards."""
    palette = page_palette()
    states = [re.fullmatch(r"state (\d+)", name) for name in matrix.names]
    own = [
        shades[int(one[1])] if one and int(one[1]) < len(shades) else palette[at % len(palette)]
        for at, one in enumerate(states)
    ]
    rows = [
        (name, [(f"{value:.2f}".lstrip("0") if value >= 0.005 else "", round(100.0 * value)) for value in row])
        for name, row in zip(matrix.names, matrix.values, strict=True)
    ]
    drawn = transition_graph(matrix, own, f"tip{matrix.component or 0}")
    return {
        "title": matrix.title, "names": matrix.names, "rows": rows, "graph": drawn, "many": len(rows) > NUMBERED_STATES,
        "crowded": len(rows) > CROWDED_STATES,
    }  # fmt: skip


def draw_curve(curve: Curve, at: int) -> Markup:
    """Draw a curve with axes."""

    def draw(axes: Axes) -> None:
        axes.plot(curve.positions, curve.values, color=WATER, linewidth=1.6)
        axes.set_xlabel(curve.along)
        axes.set_ylabel(curve.what)

    return figure(draw, curve.title, f"curve{at}")
