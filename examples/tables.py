"""Small pieces of text that the sections of the page are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 9, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.edgecolor": "0.75",
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
}  # fmt: skip


def row(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """A table with its heads."""
    return [row(*heads), "|---" * len(heads) + "|", *[row(*line) for line in lines]]


def listed(names: Sequence[str]) -> str:
    """Names with an "and" before the last."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0.0 else f"{100 * share:.1f} %"


def middle(values: Sequence[float]) -> float:
    """The median over the seeds."""
    return float(np.median(values))


def spread(values: Sequence[float], digits: int) -> str:
    """Median and range of some runs; the median alone if they all agree in these digits, and no -0."""
    low, mid, high = (f"{round(one, digits) + 0.0:.{digits}f}" for one in (min(values), middle(values), max(values)))
    return mid if low == high else f"{mid} ({low} to {high})"


@contextmanager
def drawing(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure to draw on, written to the path at the end."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        figure.savefig(path)
