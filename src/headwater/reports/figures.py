"""Figures of a page: drawn by headwater.plotting, put into it as SVG whose colours follow the page."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup, escape

from headwater.core.statistics import Array
from headwater.diagnostics.text_width import is_wide
from headwater.plotting.images import scale_to_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, WATER = "#010203", "#040506", "#070809"  # stand for colours of the page, which are not known yet
ROOM = "\ue000"  # a letter for private use
STYLE = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.formatter.useoffset": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "headwater",
}


def figure(draw: Callable[[Axes], object], label: str, name: str, size: tuple[float, float] = (5.4, 2.7)) -> Markup:
    """Return what a function draws on axes, as SVG with a label for those who cannot see it."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context(STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        picture = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(picture)
        axes = picture.add_subplot()
        draw(axes)
        _reserve_room(axes)
        out = io.BytesIO()
        # Letters that matplotlib's font lacks are drawn by the browser, in its own.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        picture.savefig(out, format="svg", dpi=160, metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    return _inline_svg(out.getvalue().decode().replace(ROOM, ""), label, name)


def _reserve_room(axes: Axes) -> None:
    """Put a letter beside each wide one, which is taken away later: matplotlib has no font to measure wide letters by."""
    from matplotlib.ticker import FixedFormatter

    for axis in (axes.xaxis, axes.yaxis):
        formatter = axis.get_major_formatter()
        if isinstance(formatter, FixedFormatter):
            axis.set_major_formatter(FixedFormatter([_widen(text) for text in formatter.seq]))
        axis.label.set_text(_widen(axis.label.get_text()))


def _widen(text: str) -> str:
    return "".join(letter + ROOM if is_wide(letter) else letter for letter in text)


def _inline_svg(svg: str, label: str, name: str) -> Markup:
    """SVG as a part of a page: names of its own, no header, colours of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(|href=")#', rf"\g<1>#{name}-", svg)
    svg = svg.replace(INK, "currentColor").replace(FAINT, "var(--faint)").replace(WATER, "var(--water)")
    svg = re.sub(r'^<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'^<svg ([^>]*?)height="[^"]*"', r"<svg \1", svg, count=1)
    return Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1))


def image(pattern: Array, shape: tuple[int, int], label: str) -> Markup:
    """Return a component as a small image."""
    from matplotlib.image import imsave

    out = io.BytesIO()
    imsave(
        out, 1.0 - scale_to_unit(np.asarray(pattern, dtype=float)).reshape(shape), cmap="gray", vmin=0.0, vmax=1.0, format="png"
    )
    data = base64.b64encode(out.getvalue()).decode()
    return Markup('<img class="pixels" src="data:image/png;base64,{}" alt="{}" width="{}" height="{}">').format(
        data, label, 8 * shape[1], 8 * shape[0]
    )
