"""The picture of the demo: what was found over the truth, and the score by rows."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from headwater.core.statistics import Array
from headwater.demo.contenders import Result
from headwater.demo.display import format_memory
from headwater.demo.truth import COMPONENTS, WIDTH, Truth

PALETTE = ("#0b7fab", "#e07b39", "#4f9d4d", "#b8435a", "#7a5ea8", "#c79a1b", "#2a9d8f", "#a0567f")


def draw_picture(path: Path, truth: Truth, rows: Array, truth_score: float, found: Result, peer: Result) -> None:
    """Draw the found components over the true ones, and the held-out score by rows beside that of the truth."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from headwater import plotting

    water, peer_color, ink = "#0b7fab", "#e07b39", "#222222"
    style: dict[Any, object] = {
        "font.size": 9.5, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "0.5",
        "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left", "legend.frameon": False,
        "xtick.color": "0.35", "ytick.color": "0.35",
    }  # fmt: skip
    with rc_context(style):
        figure = Figure(figsize=(10.0, 4.2), dpi=100, layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.15))
        columns = clearest_columns(truth)
        plotting.ellipses(found, rows[:5000], columns, left, color=PALETTE)
        plotting.ellipses(truth, None, columns, left, color=ink, filled=False)
        left.set_title(f"{COMPONENTS} components found, two of {WIDTH} columns shown")
        handles = [
            Patch(facecolor=(PALETTE[0], 0.3), edgecolor=PALETTE[0], label="found, 1 and 2 sd"),
            Line2D([], [], color=ink, linestyle=(0, (3, 2)), linewidth=1.1, label="truth"),
        ]
        left.margins(x=0.06, y=0.09)
        left.legend(handles=handles, loc="upper left", ncols=2, fontsize=8.5, borderaxespad=0.1)

        learned, reached = [moment.rows for moment in found.moments], [moment.score for moment in found.moments]
        right.axhline(truth_score, color=ink, linestyle=(0, (3, 2)), linewidth=1.2, label="truth", zorder=4)
        name = f"scikit-learn, all rows at once, {peer.passes} passes: {peer.seconds:.1f} s{_memory_suffix(peer)}"
        right.axhline(peer.score, color=peer_color, linewidth=1.6, label=name)
        name = f"headwater, each row once: {found.seconds:.1f} s{_memory_suffix(found)}"
        plotting.scores({"rows": learned, "scores": reached}, right, color=water, label=name)
        right.set_xscale("log")
        right.plot(learned[-1], reached[-1], "o", color=water, markersize=5)
        right.set_title(f"One pass over {learned[-1]:,} rows")
        right.set_ylabel("held-out score, nats per row")
        right.legend(loc="lower right", fontsize=8.5)
        right.grid(axis="y", color="0.92", linewidth=0.8)
        right.set_axisbelow(True)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _memory_suffix(result: Result) -> str:
    return "" if result.memory is None else f", {format_memory(result.memory)}"


def clearest_columns(truth: Truth) -> tuple[int, int]:
    """Return the two columns in which the closest true means are farthest apart."""

    def clearance(pair: tuple[int, int]) -> float:
        means = truth.means_[:, pair]
        return min(float(np.linalg.norm(one - other)) for one, other in combinations(means, 2))

    return max(combinations(range(WIDTH), 2), key=clearance)
