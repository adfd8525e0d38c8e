"""Numbers as people read them."""

from __future__ import annotations

import math
import re


def format_number(value: float | None) -> str:
    """A number that is read: four digits, no needless zeros."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
    return text.replace("-", "\u2212") if not re.search("e", text) else text


def format_with_spread(value: float, spread: float | None, digits: int = 3) -> tuple[str, str]:
    """A number, and how much it varies in so many digits: it has as many as that says something about."""
    if spread is None or not math.isfinite(spread) or not math.isfinite(value) or spread <= 0.0:
        return format_number(value), "" if spread is None else format_number(spread)
    # A spread that begins with 1 has one digit more: otherwise it would be told ten times as coarsely as one of 0.9.
    places = digits - 1 - math.floor(math.log10(spread / 2.0))
    if 1e-6 < spread < 1e5 and abs(value) < 1e12:
        places = max(0, places)
        rounded = round(float(value), places) + 0.0  # no negative zero
        return f"{rounded:,.{places}f}".replace("-", "\u2212"), f"{spread:,.{places}f}"
    known = places + 1 + math.floor(math.log10(max(abs(value), spread)))
    return f"{value:.{min(known, 15)}g}", f"{spread:.{digits}g}"


def format_interval(low: float | None, high: float | None) -> str:
    """An interval, in digits that tell its ends apart."""
    if low is None or high is None:
        return ""
    width = high - low
    return f"{format_with_spread(low, width, 2)[0]} to {format_with_spread(high, width, 2)[0]}"


def format_signed(value: float) -> str:
    """How far something stands out, with its sign."""
    text = f"{value:+.1f}" if abs(value) < 100.0 else f"{value:+,.0f}"
    return text.replace("-", "\u2212")


def format_percent(share: float) -> str:
    """A share that is read."""
    return f"{share:.1%}" if share >= 0.0995 or share == 0.0 else f"{share:.2%}" if share >= 1e-4 else "< 0.01%"
