"""The content of a report: what its template shows, made of the description, health and history of a model."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from headwater import __version__, plotting
from headwater.core.statistics import Array
from headwater.diagnostics.description import Description, Value, Word
from headwater.diagnostics.numbers import format_interval, format_number, format_percent, format_signed
from headwater.estimators.base import StreamingEstimator
from headwater.plotting.column_pair import telling_pair
from headwater.plotting.regressions import regression_weights
from headwater.plotting.shared import variances_of
from headwater.reports.cards import card_layout, draw_curve, draw_images, make_card, pixel_shape, show_matrix
from headwater.reports.colors import color_components
from headwater.reports.course import learning_course
from headwater.reports.figures import figure, image
from headwater.reports.headline import name_data, summarize_page
from headwater.reports.reading import Data, DataSummary, OddRow, summarize_data
from headwater.reports.series import draw_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA_LETTERS = 2000  # of the schema that are shown
ODD_VALUE_Z = 1.5  # standard deviations; a value closer than that does not explain an odd row
OTHER_ROWS = 3  # rows that are not odd, shown after those that are
DRAWN_WEIGHT = 0.002  # of the largest weight; lighter components are not drawn
SHOWN_ROWS = (0.005, 0.995)  # quantiles of the rows that a scatter plot has room for; ellipses always have


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


def context_of(model: StreamingEstimator, data: Data | None, options: PageOptions) -> dict[str, object]:
    """Return the variables of the template."""
    odd_rows = options.odd_rows
    if isinstance(odd_rows, bool) or not isinstance(odd_rows, int) or odd_rows < 1:
        raise ValueError(f"odd_rows must be a whole number of at least 1, got {odd_rows!r}")
    found = model.describe(values=options.values, components=options.components, level=options.level)
    health = model.health_
    findings = {finding.sentence for finding in health.findings}
    reading = None if data is None else summarize_data(model, data, odd_rows)
    size = pixel_shape(model, options.image_shape)
    pictures = {} if size is None else draw_images(model, found, size)
    pair = _choose_pair(model)
    shades = _colors(model, found, pair)
    cards = [make_card(found, one, shades[one.index]) for one in found.components]
    odd = () if reading is None else reading.odd[: reading.odd_number + OTHER_ROWS if reading.odd_number else None]
    return {
        "title": options.title or name_data(data, options.source) or f"{found.rows:,} {found.unit}",
        "summary": summarize_page(found, health, reading),
        "description": found,
        "notes": [note for note in found.notes if note not in findings],
        "health": health,
        "facts": [(fact.name, format_number(fact.value), format_interval(fact.low, fact.high)) for fact in found.facts],
        "cards": cards,
        "layout": card_layout(cards),
        "pictures": pictures,
        "curves": [(curve.title, draw_curve(curve, at)) for at, curve in enumerate(found.curves) if curve.component is None],
        "matrices": [show_matrix(matrix, shades) for matrix in found.matrices],
        "pair": None if pictures else _scatter(model, reading, pair, shades),
        "series": None if reading is None else draw_series(reading.series, shades),
        "course": learning_course(model, shades),
        "sure": _interval_figures(found, bool(pictures), shades),
        "reading": reading,
        "odd": [_odd_row(one, size if pictures else None) for one in odd],
        "kept": list(odd[0].kept) if odd else [],
        "explained": any(one.why for one in odd),
        "words_of_odd": any(isinstance(value, Word) for one in odd for value in one.why),
        "ranges_of_odd": any(value.low is not None for one in odd for value in one.why),
        "ranges": any(fact.low is not None for fact in found.facts),
        "measure": model._traits.measure,
        "warming": model._runtime.warming_up,
        "held": model._runtime.unlearned_rows,
        "reproduce": _reproduce(model, options.command, options.source),
        "number": format_number,
        "percent": format_percent,
    }


# Colours and scatter plots


def _choose_pair(model: StreamingEstimator) -> tuple[int, int] | None:
    """The columns of the scatter plot, if components are Gaussians over at least two columns."""
    gaussians = model._describer.gaussians()
    return None if gaussians is None or gaussians.means_.shape[1] < 2 else telling_pair(gaussians)


def _colors(model: StreamingEstimator, found: Description, pair: tuple[int, int] | None) -> list[str]:
    """One colour for each component of the model."""
    places, number = None, 1 + max([one.index for one in found.components], default=0)
    history = getattr(model, "history_", None)
    stacked = tuple(getattr(history, "components", ()))
    if pair is not None:
        gaussians = model._describer.gaussians()
        assert gaussians is not None
        means = np.asarray(gaussians.means_)[:, pair]
        places = means / np.maximum(np.std(means, axis=0), 1e-300)
        number = len(means)
    number = max([number, *(one + 1 for one in stacked), *([len(model.coef_)] if hasattr(model, "coef_") else [])])
    weights = np.zeros(number)
    for one in found.components:
        weights[one.index] = one.weight
    return color_components(weights.tolist(), stacked, places)


def _scatter(
    model: StreamingEstimator, reading: DataSummary | None, pair: tuple[int, int] | None, shades: Sequence[str]
) -> tuple[Markup, str] | None:
    """Rows and components in two columns, or regressions over the input that matters most."""
    sample = None if reading is None else reading.sample
    if model._traits.target_columns and sample is not None:
        return _regression_lines(model, sample, shades)
    if pair is None:
        return None
    gaussians = model._describer.gaussians()
    assert gaussians is not None
    weights, means = np.asarray(gaussians.weights_), np.asarray(gaussians.means_)[:, pair]
    heavy = np.flatnonzero(weights >= DRAWN_WEIGHT * weights.max())
    shown = None if sample is None else sample[~np.isnan(sample).any(axis=1)]
    reach = 2.2 * np.sqrt(variances_of(gaussians)[:, pair])
    low, high = (means - reach)[heavy].min(axis=0), (means + reach)[heavy].max(axis=0)
    if shown is not None and len(shown):
        ends = np.quantile(shown[:, pair], SHOWN_ROWS, axis=0)
        low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
    label = "Components as ellipses at one and two standard deviations, in the two columns that tell them apart best"
    if shown is not None:
        outside = int(((shown[:, pair] < low) | (shown[:, pair] > high)).any(axis=1).sum())
        label += f", with {len(shown) - outside:,} of the {reading.rows:,} {model._traits.unit}" if reading else ""

    def ellipses(axes: Axes) -> None:
        plotting.ellipses(gaussians, shown, pair, axes, components=heavy.tolist(), color=shades)
        if (high > low).all():
            axes.set_xlim(low[0], high[0])
            axes.set_ylim(low[1], high[1])

    return figure(ellipses, label, "pair", (5.0, 4.0)), label


def _regression_lines(model: StreamingEstimator, sample: Array, shades: Sequence[str]) -> tuple[Markup, str]:
    column = int(np.argmax(np.abs(regression_weights(model) @ np.abs(model.coef_)) * sample[:, :-1].std(axis=0)))
    label = "The regressions over the input that matters most, with some of the rows"

    def lines(axes: Axes) -> None:
        plotting.regressions(model, sample[:, :-1], sample[:, -1], column, axes, color=shades)

    return figure(lines, label, "pair", (5.0, 4.0)), label


# How sure it is


def _interval_figures(found: Description, pixels: bool, shades: Sequence[str]) -> list[tuple[Markup, str]]:
    """Credible intervals of the weights, and of the most distinctive values."""
    figures = []
    height = 0.9 + 0.24 * min(12, len(found.components))
    several = len(found.components) > 1

    def add(value: str | None, name: str, label: str) -> None:
        draw: Callable[[Axes], Axes] = lambda axes: plotting.intervals(found, value, axes, color=shades)  # noqa: E731
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
                    totals[value.name] = totals.get(value.name, 0.0) + component.weight * (value.standing or 0.0) ** 2
        for at, name in enumerate(sorted(totals, key=lambda name: -totals[name])[:3]):
            add(name, f"sure-{at}", f"Credible intervals of the {found.value}s of {name}")
    elif "probability" in found.value:
        for component in [one for one in found.components if one.values and one.values[0].low is not None][:3]:
            label = f"Probabilities in {found.component} {component.label}, with their credible intervals"
            bars = partial(plotting.words, found, component.index, color=shades[component.index])
            figures.append((figure(bars, label, f"sure-{component.index}", (3.6, 2.6)), label))
    return figures


# What is odd


def _odd_row(one: OddRow, size: tuple[int, int] | None) -> dict[str, object]:
    far = [value for value in one.why if value.standing is None or abs(value.standing) >= ODD_VALUE_Z]
    why = [_reason(value) for value in far or one.why[:1]]
    picture = image(one.numbers, size, f"Row {one.row} as an image") if size and one.numbers is not None else None
    return {"row": f"{one.row:,}", "score": format_number(one.score), "why": why, "values": one.values, "picture": picture,
            "size": format_number(one.size), "ranked": format_number(one.ranked), "kept": one.kept,
            "anomaly_score": format_number(one.anomaly_score)}  # fmt: skip


def _reason(value: Value) -> dict[str, str]:
    if isinstance(value, Word):
        return {"name": value.name, "value": value.word, "far": format_percent(value.value), "usual": value.expected}
    far = "" if value.standing is None else format_signed(value.standing)
    return {
        "name": value.name,
        "value": format_number(value.value),
        "far": far,
        "usual": format_interval(value.low, value.high),
    }


# How to reproduce it


def _reproduce(model: StreamingEstimator, command: str | None, source: str | None) -> dict[str, object]:
    defaults = type(model)().get_params(deep=False)
    changed = {
        name: " ".join(repr(value).split())[:200]
        for name, value in model.get_params(deep=False).items()
        if repr(value) != repr(defaults[name]) or name in ("algorithm", "random_state")
    }
    schema = getattr(model, "schema_", None)
    text = None if schema is None else json.dumps(schema, indent=1, default=str, ensure_ascii=False)
    text = text if text is None or len(text) <= SCHEMA_LETTERS else text[:SCHEMA_LETTERS] + " …"
    return {
        "command": command, "source": source, "parameters": changed, "schema": text,
        "versions": {"headwater": __version__, "NumPy": np.__version__, "Python": platform.python_version()},
    }  # fmt: skip
