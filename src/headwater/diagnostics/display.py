"""Small tables for terminals and notebooks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

# Of parts of a strip: told apart by the colour-blind, too (Okabe and Ito).
STRIP_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7A6FB0", "#8C8C00")


def text_table(line: str, header: list[str], rows: list[list[str]], urgent: Sequence[str] = (), more: str = "") -> str:
    """Return a line and a right-aligned table beneath it; under that what is urgent, a line each, and what else there is."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    beneath = [*(f"! {sentence}" for sentence in urgent), *([more] if more else [])]
    return "\n".join([line, *("  " + text for text in [*lines, *beneath])])


def html_table(line: str, header: list[str], rows: list[list[str]], urgent: Sequence[str] = (), more: str = "") -> str:
    """Return the same as HTML."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    beneath = "".join(f"<p><strong>{escape(sentence)}</strong></p>" for sentence in urgent)
    beneath += f"<p>{escape(more)}</p>" if more else ""
    return f"<p>{escape(line)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{beneath}"


def html_strip(shares: Sequence[float], names: Sequence[str], width: int = 320, height: int = 18) -> str:
    """Return shares as a strip of coloured parts, the largest first; empty if there is none. Names are shown by hovering."""
    total = sum(share for share in shares if math.isfinite(share))
    order = sorted(range(len(shares)), key=lambda at: -shares[at])
    parts, left = [], 0.0
    for at in order if total > 0.0 else ():
        wide = width * shares[at] / total
        label = escape(f"{names[at]}: {shares[at] / total:.1%}")
        color = STRIP_COLORS[at % len(STRIP_COLORS)]
        shape = f'x="{left:.1f}" y="0" width="{max(wide - 1.0, 0.5):.1f}" height="{height}" fill="{color}"'
        parts.append(f"<rect {shape}><title>{label}</title></rect>")
        left += wide
    return f'<svg width="{width}" height="{height}" role="img"><title>weights</title>{"".join(parts)}</svg>' if parts else ""


def html_curve(values: Sequence[float], title: str, width: int = 320, height: int = 64) -> str:
    """Return a curve as an inline picture in the colour of the text; empty if fewer than two values are finite."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return ""
    low, high = _usual_range(finite)
    span = (high - low) or 1.0
    points = " ".join(
        f"{width * at / (len(values) - 1):.1f},{height - 4 - (height - 8) * min(1.0, max(0.0, (value - low) / span)):.1f}"
        for at, value in enumerate(values)
        if math.isfinite(value)
    )
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img"><title>{escape(title)}</title>'
        f'<polyline fill="none" stroke="currentColor" stroke-width="1.5" points="{points}"/></svg>'
        f"<p>{escape(title)}: from {low:.4g} to {high:.4g}</p>"
    )


def _usual_range(values: Sequence[float]) -> tuple[float, float]:
    """The range of values without outliers, which would flatten the rest of a curve (Tukey's outer fences)."""
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    reach = 3.0 * (high - low)
    inside = [value for value in ordered if low - reach <= value <= high + reach]
    return inside[0], inside[-1]
