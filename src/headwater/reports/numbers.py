"""Numbers as people read them."""

from __future__ import annotations

import re

import numpy as np


def number(value: float | None) -> str:
    """A number that is read: four digits, no needless zeros."""
    if value is None or not np.isfinite(value):
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1e4 and abs(value) < 1e9 else f"{value:.4g}"
    return text.replace("-", "\u2212") if not re.search("e", text) else text


def with_spread(value: float, spread: float | None) -> tuple[str, str]:
    """A number, and how much it varies, in as many digits as that says something about."""
    if spread is None or not np.isfinite(spread) or not 1e-6 < spread < 1e5 or abs(value) >= 1e9:
        return number(value), "" if spread is None else number(spread)
    digits = max(0, 2 - int(np.floor(np.log10(spread))))
    return f"{value + 0.0:,.{digits}f}".replace("-", "\u2212"), f"{spread:,.{digits}f}"


def signed(value: float) -> str:
    """How far something stands out, with its sign."""
    text = f"{value:+.1f}" if abs(value) < 100.0 else f"{value:+,.0f}"
    return text.replace("-", "\u2212")


def percent(share: float) -> str:
    """A share that is read."""
    return f"{share:.1%}" if share >= 0.0995 or share == 0.0 else f"{share:.2%}" if share >= 1e-4 else "< 0.01%"
