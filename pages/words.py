"""Small pieces of text that tables and sentences are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def row(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    return "\n".join([row(*heads), "|---" * len(heads) + "|", *[row(*line) for line in lines]])


def number_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of Markdown in which all columns but the first are numbers."""
    return "\n".join([row(*heads), "|---|" + "---:|" * (len(heads) - 1), *[row(*line) for line in lines]])


def form(value: Any, spec: str) -> str:
    """A value by a format of Python's."""
    return f"{value:{spec}}"


def thousands(value: Any) -> str:
    """A number with commas between thousands."""
    return f"{value:,}"


def each(values: Iterable[Any], spec: str) -> list[str]:
    """Values, each by the same format."""
    return [form(value, spec) for value in values]


def listed(names: Iterable[str]) -> str:
    """Names with an "and" before the last."""
    names = [*names]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{100.0 * share:.0f} %"


def fine_percent(share: float) -> str:
    """A share in percent, with a digit more where it is small."""
    return percent(share) if share >= 0.0995 or share == 0.0 else f"{100 * share:.1f} %"


def median(values: Sequence[float]) -> float:
    return float(np.median(values))


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def median_and_range(values: Sequence[float], digits: int) -> str:
    """Median and range of some runs; the median alone if they all agree in these digits, and no -0."""
    low, middle, high = (f"{round(one, digits) + 0.0:.{digits}f}" for one in (min(values), median(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def mean_and_range(values: Sequence[float], spec: str = ".1f") -> str:
    """Mean, lowest and highest of some runs; the value alone if there is one."""
    if len(values) == 1:
        return form(values[0], spec)
    return f"{form(mean(values), spec)} ({form(min(values), spec)} to {form(max(values), spec)})"
