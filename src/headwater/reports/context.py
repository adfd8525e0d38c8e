"""The content of a report: what its template shows, made of the description, health and history of a model."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from headwater import __version__, plotting
from headwater.core.statistics import Array
from headwater.diagnostics.component_description import distinctive_columns
from headwater.diagnostics.description import Component, Curve, Description, Matrix
from headwater.diagnostics.history import History
from headwater.estimators.base import StreamingEstimator
from headwater.plotting.images import image_shape as shape_of
from headwater.plotting.shared import colors_of, variances_of
from headwater.reports.drawings import sparkline, transition_graph
from headwater.reports.figures import WATER, figure, image
from headwater.reports.numbers import format_interval, format_number, format_percent, format_signed, format_with_spread
from headwater.reports.reading import Data, DataSummary, OddRow, summarize_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

LEAST_IMAGE_COLUMNS = 36  # that are taken for an image, without an image_shape
SCHEMA_LETTERS = 2000  # of the schema that are shown
NUMBERED_STATES = 10  # states of a matrix; with more, its numbers are too small to read
FULL_BAR_Z = 2.5  # standard deviations from the mean of all rows that fill half a bar
ODD_VALUE_Z = 1.5  # standard deviations; a value closer than that does not explain an odd row


@dataclass(frozen=True)
class PageOptions:
    """What the user asked of a page; `report` describes each."""

    title: str | None
    command: str | None
    source: str | None
    image_shape: tuple[int, int] | None
    components: int
    values: int
    odd_rows: int
    level: float


def context_of(model: StreamingEstimator, data: Data | None, options: PageOptions) -> dict[str, Any]:
    """Return the variables of the template."""
    odd_rows = options.odd_rows
    if isinstance(odd_rows, bool) or not isinstance(odd_rows, int) or odd_rows < 1:
        raise ValueError(f"odd_rows must be a whole number of at least 1, got {odd_rows!r}")
    found = model.describe(values=options.values, components=options.components, level=options.level)
    health = model.health_
    findings = {finding.sentence for finding in health.findings}
    reading = None if data is None else summarize_data(model, data, odd_rows)
    size = _pixels(model, options.image_shape)
    pictures = {} if size is None else _pictures(model, found, size)
    shades = [_hex(color) for color in colors_of(None, 1 + max([one.index for one in found.components], default=0))]
    return {
        "title": options.title or found.model,
        "description": found,
        "notes": [note for note in found.notes if note not in findings],
        "health": health,
        "facts": [(fact.name, format_number(fact.value), format_interval(fact.low, fact.high)) for fact in found.facts],
        "cards": [_card(found, one, shades[one.index]) for one in found.components],
        "pictures": pictures,
        "curves": [(curve.title, _curve_figure(curve, at)) for at, curve in enumerate(found.curves) if curve.component is None],
        "matrices": [_matrix(matrix) for matrix in found.matrices],
        "pair": None if pictures else _pair(model, reading),
        "course": _learning_course(model),
        "sure": _interval_figures(found, bool(pictures)),
        "reading": reading,
        "odd": [] if reading is None else [_odd_row(one, size if pictures else None) for one in reading.odd],
        "told": any(one.why for one in reading.odd) if reading else False,
        "ranges": any(fact.low is not None for fact in found.facts),
        "measure": model._traits.measure,
        "warming": model._runtime.warming_up,
        "held": model._runtime.unlearned_rows,
        "reproduce": _reproduce(model, options.command, options.source),
        "number": format_number,
        "percent": format_percent,
    }


def _hex(color: ColorType) -> str:
    from matplotlib.colors import to_hex

    return to_hex(color)


# What was learned


def _card(found: Description, component: Component, color: str) -> dict[str, Any]:
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
        if "probability" in found.value:
            shown, spread, told = format_percent(value.value), "", _percent_range(value.low, value.high)
        else:
            (shown, spread), told = format_with_spread(value.value, value.spread), format_interval(value.low, value.high)
        lines.append({"name": value.name, "value": shown, "spread": spread, "bar": bar, "range": told})
    curve = next((one for one in found.curves if one.component == component.index), None)
    spark = None
    if curve is not None:
        loud = np.maximum(curve.values, max(curve.values) * 1e-8)
        spark = sparkline((10.0 * np.log10(np.maximum(loud, 1e-300))).tolist(), f"{curve.title}, in decibels over bins")
    return {
        "index": component.index, "weight": component.weight, "range": _percent_range(component.low, component.high),
        "remark": component.remark, "lines": lines, "color": color, "signed": signed, "spark": spark,
    }  # fmt: skip


def _percent_range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None or low == high else f"{format_percent(low)} to {format_percent(high)}"


def _pixels(model: StreamingEstimator, shape: tuple[int, int] | None) -> tuple[int, int] | None:
    """Height and width of components as images, where columns are pixels."""
    patterns = model._describer.patterns()
    if patterns is None or (shape is None and not _look_like_pixels(model, patterns.shape[1])):
        return None
    return shape_of(patterns.shape[1], shape)


def _pictures(model: StreamingEstimator, found: Description, size: tuple[int, int]) -> dict[int, Markup]:
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


def _matrix(matrix: Matrix) -> dict[str, Any]:
    shades = [_hex(color) for color in colors_of(None, len(matrix.names))]
    rows = [
        (name, [(f"{value:.2f}".lstrip("0") if value >= 0.005 else "", round(100.0 * value)) for value in row])
        for name, row in zip(matrix.names, matrix.values, strict=True)
    ]
    drawn = transition_graph(matrix, shades, f"tip{matrix.component or 0}")
    return {"title": matrix.title, "names": matrix.names, "rows": rows, "graph": drawn, "many": len(rows) > NUMBERED_STATES}


def _curve_figure(curve: Curve, at: int) -> Markup:
    def draw(axes: Axes) -> None:
        axes.plot(curve.positions, curve.values, color=WATER, linewidth=1.6)
        axes.set_xlabel(curve.along)
        axes.set_ylabel(curve.what)

    return figure(draw, curve.title, f"curve{at}")


def _pair(model: Any, reading: DataSummary | None) -> tuple[Markup, str] | None:
    """Rows and components in the two most distinctive columns."""
    sample = None if reading is None else reading.sample
    if model._traits.target_columns and sample is not None:
        column = int(np.argmax(np.abs(model.weights_ @ np.abs(model.coef_)) * sample[:, :-1].std(axis=0)))
        label = "The regressions over the input that matters most, with some of the rows"

        def lines(axes: Axes) -> None:
            plotting.regressions(model, sample[:, :-1], sample[:, -1], column, axes)

        return figure(lines, label, "pair", (5.0, 4.0)), label
    gaussians = model._describer.gaussians()
    if gaussians is None or gaussians.means_.shape[1] < 2:
        return None
    weights, means = np.asarray(gaussians.weights_), np.asarray(gaussians.means_)
    columns, _, _ = distinctive_columns(weights, means, variances_of(gaussians), 2)
    heavy = np.flatnonzero(weights >= 0.002 * weights.max())
    label = "Components as ellipses at one and two standard deviations, in the two most distinctive columns"
    label += ", with some of the rows" if sample is not None else ""

    def ellipses(axes: Axes) -> None:
        shown = None if sample is None else sample[~np.isnan(sample).any(axis=1)]
        plotting.ellipses(gaussians, shown, (int(columns[0]), int(columns[1])), axes, components=heavy.tolist())

    return figure(ellipses, label, "pair", (5.0, 4.0)), label


# How it went


def _learning_course(model: StreamingEstimator) -> dict[str, Any] | None:
    history = getattr(model, "history_", None)
    if history is not None and len(history.points) > 1 and np.isfinite(history.scores).sum() > 1:
        return {**_stream_course(history), "perplexity": history.late_perplexity if type(model)._traits.measure else np.nan}
    bounds = list(getattr(model, "lower_bounds_", ()))
    if len(bounds) > 1:

        def draw(axes: Axes) -> None:
            axes.plot(range(1, len(bounds) + 1), bounds, color=WATER, linewidth=1.8)
            axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
            axes.set_xlabel("pass over all rows")
            axes.set_ylabel("objective per row")

        label = f"The objective after each of {len(bounds)} passes over all rows"
        return {"figures": [(figure(draw, label, "passes", (4.9, 2.3)), label)], "seconds": None, "last": float(bounds[-1])}
    return None


def _stream_course(history: History) -> dict[str, Any]:
    scored = np.isfinite(history.scores)
    label = "Score of rows before they were learned, over the stream: higher is better"

    def score(axes: Axes) -> None:
        low, high = np.quantile(history.scores[scored], [0.02, 1.0])
        rows, values = history.rows[scored], history.scores[scored]
        axes.plot(rows, values, color=WATER, linewidth=0.8, alpha=0.35)
        plotting.scores({"rows": rows, "scores": _running_medians(values)}, axes, color=WATER)
        if high > low:
            axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))

    figures = [(figure(score, label, "scores", (4.9, 2.3)), label)]
    known = ~np.isnan(history.weights).any(axis=1)
    if history.components and len(history.components) > 1 and known.sum() > 2:
        label = "Weights of the components over the stream"

        def weights(axes: Axes) -> None:
            shades = colors_of(None, max(history.components) + 1)
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


def _running_medians(values: Array) -> Array:
    """Medians of neighbours, of which there are fewer at the ends."""
    size = max(1, len(values) // 24)
    return np.array([np.median(values[max(0, at - size) : at + size + 1]) for at in range(len(values))])


# How sure it is


def _interval_figures(found: Description, pixels: bool) -> list[tuple[Markup, str]]:
    """Credible intervals of the weights, and of the most distinctive values."""
    figures = []
    height = 0.9 + 0.24 * min(12, len(found.components))
    several = len(found.components) > 1

    def add(value: str | None, name: str, label: str) -> None:
        draw: Callable[[Axes], Axes] = lambda axes: plotting.intervals(found, value, axes)  # noqa: E731
        figures.append((figure(draw, label, name, (3.6, height)), label))

    if several and found.components[0].low is not None:
        add(None, "sure-weights", f"Credible intervals of the {found.weight}s")
    if pixels:
        return figures
    if found.value in ("mean", "coefficient"):
        totals: dict[str, float] = {}
        for component in found.components:
            for value in component.values:
                if value.low is not None:
                    telling = component.weight * (value.standing or 0.0) ** 2
                    totals[value.name] = totals.get(value.name, 0.0) + telling
        for at, name in enumerate(sorted(totals, key=lambda name: -totals[name])[:3]):
            add(name, f"sure-{at}", f"Credible intervals of the {found.value}s of {name}")
    elif "probability" in found.value:
        for component in [one for one in found.components if one.values and one.values[0].low is not None][:3]:
            label = f"Probabilities in {found.component} {component.index}, with their credible intervals"
            bars = partial(plotting.words, found, component.index)
            figures.append((figure(bars, label, f"sure-{component.index}", (3.6, 2.6)), label))
    return figures


# What is odd


def _odd_row(one: OddRow, size: tuple[int, int] | None) -> dict[str, Any]:
    far = [value for value in one.why if value.standing is None or abs(value.standing) >= ODD_VALUE_Z]
    why = [
        {
            "name": value.name,
            "value": format_number(value.value),
            "far": "" if value.standing is None else format_signed(value.standing),
        }
        for value in far or one.why[:1]
    ]
    picture = image(one.numbers, size, f"Row {one.row} as an image") if size and one.numbers is not None else None
    return {"row": f"{one.row:,}", "score": format_number(one.score), "why": why, "values": one.values, "picture": picture,
            "size": format_number(one.size), "ranked": format_number(one.ranked)}  # fmt: skip


# How to reproduce it


def _reproduce(model: StreamingEstimator, command: str | None, source: str | None) -> dict[str, Any]:
    defaults = type(model)().get_params(deep=False)
    changed = {
        name: " ".join(repr(value).split())[:200]
        for name, value in model.get_params(deep=False).items()
        if repr(value) != repr(defaults[name]) or name == "random_state"
    }
    schema = getattr(model, "schema_", None)
    told = None if schema is None else json.dumps(schema, indent=1, default=str, ensure_ascii=False)
    told = told if told is None or len(told) <= SCHEMA_LETTERS else told[:SCHEMA_LETTERS] + " …"
    return {
        "command": command, "source": source, "parameters": changed, "schema": told,
        "versions": {"headwater": __version__, "NumPy": np.__version__, "Python": platform.python_version()},
    }  # fmt: skip
