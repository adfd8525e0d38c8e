"""What the demo prints: progress, what was found beside the truth, and the contenders side by side."""

from __future__ import annotations

import numpy as np
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text
from scipy.optimize import linear_sum_assignment

from headwater.core.statistics import Array
from headwater.demo.contenders import Moment, Result
from headwater.demo.truth import Truth


class Display:
    """Shows the progress of a stream: live in a terminal, as a few lines elsewhere."""

    def __init__(self, console: Console, rows: int) -> None:
        self.console, self.rows = console, rows
        self.printed = 0.0
        columns = (TextColumn("rows"), BarColumn(bar_width=30), MofNCompleteColumn())
        self.bar = Progress(*columns, console=console, auto_refresh=False)
        self.task = self.bar.add_task("rows", total=rows)
        self.live = Live(Text("starting ..."), console=console, refresh_per_second=20) if console.is_terminal else None

    def __enter__(self) -> Display:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, moment: Moment) -> None:
        """Show the progress."""
        # The first rows are only stored for the warm-up, which says nothing about speed.
        speed = f"{moment.rows / moment.seconds:,.0f}" if moment.seconds > 0.01 else "-"
        line = f"{speed:>10} rows/s   held-out score {moment.score:.4f}   weights {self.bars(moment.weights)}"
        if self.live is not None:
            self.bar.update(self.task, completed=moment.rows)
            self.live.update(Group(self.bar, Text(line)))
        elif moment.rows >= self.printed or moment.rows == self.rows:
            self.console.print(f"{moment.rows:12,} rows {line}", highlight=False, soft_wrap=True)
            self.printed = max(3.0 * moment.rows, self.printed)

    def bars(self, weights: Array) -> str:
        """Return the weights as small bars, or as numbers where bars cannot be written."""
        if not self.console.encoding.lower().startswith("utf"):
            return " ".join(f"{weight:.2f}" for weight in weights)
        heights = np.ceil(8.0 * weights / weights.max()).astype(int)
        return "".join("▁▂▃▄▅▆▇█"[max(height, 1) - 1] for height in heights)


def match_components(truth: Truth, found: Result) -> Array:
    """Return the found component for each true one, by the assignment with the least total distance."""
    precisions = np.linalg.inv(truth.covariances_)
    between = found.means_ - truth.means_[:, None]
    distances = np.sqrt(np.einsum("kfi,kij,kfj->kf", between, precisions, between))
    return linear_sum_assignment(np.minimum(distances, 1e3))[1]


def components_table(truth: Truth, found: Result) -> tuple[Table, str]:
    """Return a table of found and true weights and means, and a sentence about the largest errors."""
    order = match_components(truth, found)
    table = Table(
        title="Components that were found, beside the true ones",
        title_justify="left",
        box=box.SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in ("weight", "true", "mean", "true mean"):
        table.add_column(name, justify="right", no_wrap=True)
    for k in np.argsort(-truth.weights_):
        means = (" ".join(f"{value:5.2f}" for value in mean) for mean in (found.means_[order[k]], truth.means_[k]))
        table.add_row(f"{found.weights_[order[k]]:.3f}", f"{truth.weights_[k]:.3f}", *means)
    weight = np.abs(found.weights_[order] - truth.weights_).max()
    deviations = np.sqrt(np.diagonal(truth.covariances_, axis1=1, axis2=2))
    mean = (np.abs(found.means_[order] - truth.means_) / deviations).max()
    return table, f"Farthest from the truth: a weight by {weight:.4f}, a mean by {mean:.3f} standard deviations."


def contenders_table(truth_score: float, found: Result, peer: Result) -> tuple[Table, str]:
    """Return a table of both contenders, and a sentence with the ratios."""
    table = Table(title="Beside scikit-learn, on the same rows", title_justify="left", box=box.SIMPLE)
    table.add_column("", no_wrap=True)
    for name in ("score", "below truth", "passes", "seconds", "memory"):
        table.add_column(name, justify="right")
    table.add_row("the truth", f"{truth_score:.4f}", "", "", "", "")
    for name, one in (("headwater", found), ("scikit-learn", peer)):
        memory = "not measured" if one.memory is None else format_memory(one.memory)
        gap = f"{truth_score - one.score:.4f}"
        table.add_row(name, f"{one.score:.4f}", gap, str(one.passes), f"{one.seconds:.2f}", memory)
    parts = [ratio_words(found.seconds, peer.seconds, "the time")]
    if found.memory is not None and peer.memory is not None:
        parts.append(ratio_words(max(found.memory, 2.0**20), peer.memory, "the memory"))
    better = "more" if found.score >= peer.score else "less"
    return (
        table,
        f"headwater took {' and '.join(parts)}; it scored {abs(found.score - peer.score):.4f} nats per row {better}.",
    )


def format_memory(memory: float) -> str:
    """Return bytes as a text. The peak of a process does not resolve less than 1 MB."""
    return "under 1 MB" if memory < 2**20 else f"{memory / 2**20:,.{0 if memory >= 10 * 2**20 else 1}f} MB"


def ratio_words(ours: float, theirs: float, what: str) -> str:
    """Return a ratio in words: a fraction or a multiple."""
    ratio = theirs / max(ours, 1e-9)
    return f"1/{ratio:.3g} of {what}" if ratio >= 1.0 else f"{1.0 / ratio:.3g} times {what}"
