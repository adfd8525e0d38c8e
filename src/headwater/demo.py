"""The demo: a stream of a million rows learned while you watch, next to the truth and to scikit-learn.

Run it with ``python -m headwater.demo``.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text
from scipy.optimize import linear_sum_assignment

from headwater.core.statistics import Array

COMPONENTS, WIDTH = 8, 5
CHUNK_ROWS = 1000
HELD_OUT_ROWS = 20_000
PALETTE = ("#0b7fab", "#e07b39", "#4f9d4d", "#b8435a", "#7a5ea8", "#c79a1b", "#2a9d8f", "#a0567f")


# The stream


@dataclass(frozen=True)
class Truth:
    """The mixture that the rows are drawn from, under the names of a fitted one."""

    weights_: Array
    means_: Array
    covariances_: Array
    covariance_type: str = "full"

    @classmethod
    def drawn(cls, seed: int) -> Truth:
        """Draw components of uneven weight and slanted shape, the nearest of which overlap."""
        rng = np.random.default_rng(np.random.SeedSequence((seed, 0)))
        weights = 0.4 / COMPONENTS + 0.6 * rng.dirichlet(np.full(COMPONENTS, 3.0))
        means = rng.normal(scale=2.5, size=(COMPONENTS, WIDTH))
        axes = np.linalg.qr(rng.normal(size=(COMPONENTS, WIDTH, WIDTH)))[0]
        spreads = rng.uniform(0.4, 1.3, size=(COMPONENTS, 1, WIDTH))
        return cls(weights, means, (axes * spreads**2) @ axes.swapaxes(1, 2))

    def rows(self, number: int, rng: np.random.Generator) -> Array:
        """Draw rows."""
        component = rng.choice(COMPONENTS, size=number, p=self.weights_)
        roots = np.linalg.cholesky(self.covariances_)
        noise = rng.standard_normal((number, WIDTH))
        return self.means_[component] + np.einsum("nij,nj->ni", roots[component], noise)

    def score(self, X: Array) -> float:
        """Mean log-density per row."""
        factors = np.linalg.inv(np.linalg.cholesky(self.covariances_))
        scaled = np.einsum("kij,knj->kni", factors, X - self.means_[:, None])
        offsets = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1) - 0.5 * WIDTH * np.log(2.0 * np.pi)
        joint = (np.log(self.weights_) + offsets)[:, None] - 0.5 * (scaled**2).sum(axis=2)
        return float(np.logaddexp.reduce(joint, axis=0).mean())


def stream(truth: Truth, rows: int, seed: int) -> Iterator[Array]:
    """Yield the rows in chunks, the same ones every time; no more than a chunk is ever there."""
    for index, start in enumerate(range(0, rows, CHUNK_ROWS)):
        rng = np.random.default_rng(np.random.SeedSequence((seed, 2, index)))
        yield truth.rows(min(CHUNK_ROWS, rows - start), rng)


def held_out(truth: Truth, seed: int) -> Array:
    """Rows that nobody learns from."""
    return truth.rows(HELD_OUT_ROWS, np.random.default_rng(np.random.SeedSequence((seed, 1))))


# The contenders


@dataclass(frozen=True)
class Moment:
    """Where a contender is: rows learned, seconds spent learning them, held-out score and weights at that moment."""

    rows: int
    seconds: float
    score: float
    weights: Array


@dataclass(frozen=True)
class Result:
    """What a contender found, and what it took. Memory is bytes at the peak over what was there before the rows."""

    weights_: Array
    means_: Array
    covariances_: Array
    seconds: float
    score: float
    passes: int
    memory: float | None = None
    moments: list[Moment] = field(default_factory=list)
    covariance_type: str = "full"


Watch = Callable[[Moment], None]
Contender = Callable[[int, int, Watch], Result]


def learn_stream(rows: int, seed: int, watch: Watch) -> Result:
    """Learn the stream in one pass; only `partial_fit` is timed, not the drawing of rows or the looks at the model."""
    import headwater as hw

    truth = Truth.drawn(seed)
    judge = held_out(truth, seed)
    warm_kernels()
    before = reset_peak_memory()
    model = hw.GaussianMixture(COMPONENTS, random_state=seed)
    looks = iter(np.union1d(np.geomspace(CHUNK_ROWS, rows, 25), np.linspace(0, rows, 21)[1:]))
    look, learned, seconds = next(looks), 0, 0.0
    moments = []
    for chunk in stream(truth, rows, seed):
        began = time.perf_counter()
        model.partial_fit(chunk)
        seconds += time.perf_counter() - began
        learned += len(chunk)
        if learned >= look:
            moments.append(Moment(learned, seconds, float(model.score(judge)), model.weights_))
            watch(moments[-1])
            look = next((point for point in looks if point > learned), np.inf)
    memory = memory_since(before)
    return Result(
        model.weights_, model.means_, model.covariances_, seconds, moments[-1].score, 1, memory, moments
    )  # fmt: skip


def fit_scikit_learn(rows: int, seed: int, watch: Watch) -> Result:
    """Gather the same rows and fit scikit-learn's mixture to them with its default settings; only `fit` is timed."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    truth = Truth.drawn(seed)
    judge = held_out(truth, seed)
    model = GaussianMixture(COMPONENTS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        GaussianMixture(COMPONENTS, max_iter=1).fit(judge[:1000])  # loads what a first fit loads
        before = reset_peak_memory()
        table = np.empty((rows, WIDTH))
        for index, chunk in enumerate(stream(truth, rows, seed)):
            table[index * CHUNK_ROWS : index * CHUNK_ROWS + len(chunk)] = chunk
        began = time.perf_counter()
        model.fit(table)
        seconds = time.perf_counter() - began
    memory = memory_since(before)
    score = float(model.score(judge))
    watch(Moment(rows, seconds, score, model.weights_))
    return Result(model.weights_, model.means_, model.covariances_, seconds, score, model.n_iter_, memory)


def warm_kernels() -> float:
    """Run every kernel that the stream needs on a few rows; return the seconds it took."""
    import headwater as hw

    began = time.perf_counter()
    rows = np.random.default_rng(0).normal(size=(2500, WIDTH))
    hw.GaussianMixture(COMPONENTS, random_state=0).partial_fit(rows).score(rows)
    return time.perf_counter() - began


def run(contender: Contender, rows: int, seed: int, watch: Watch, apart: bool) -> Result:
    """Run a contender here, or apart in a fresh process, so that its memory is its own."""
    if not apart:
        return replace(contender(rows, seed, watch), memory=None)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_all, args=(contender, rows, seed, sender), daemon=True)
    process.start()
    sender.close()
    try:
        while isinstance(message := receiver.recv(), Moment):
            watch(message)
    except EOFError:
        process.join()
        raise RuntimeError(f"the process of {contender.__name__} ended early, with code {process.exitcode}") from None
    process.join()
    return message


def _send_all(contender: Contender, rows: int, seed: int, sender: Any) -> None:
    sender.send(contender(rows, seed, sender.send))
    sender.close()


# Memory. Linux keeps a peak per process that can be reset; elsewhere the peak since the start has to do.


def peak_memory() -> float | None:
    """Return the most memory that this process has held, in bytes; None where that cannot be asked."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024.0 * float(line.split()[1])
    try:
        import resource
    except ImportError:
        return None
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def reset_peak_memory() -> float | None:
    """Let the peak start over from what is held now, where that can be done; return it."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)  # glibc: give back what was freed, or its reuse would look like no memory at all
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def memory_since(before: float | None) -> float | None:
    """Return by how many bytes the peak has grown."""
    now = peak_memory()
    return None if before is None or now is None else now - before


# What is shown


class Display:
    """Shows a stream being learned: live in a terminal, as a few lines elsewhere."""

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
        """Show where the stream is."""
        # The first rows are only kept for the warm-up, which says nothing about speed.
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


def matched(truth: Truth, found: Result) -> Array:
    """Return, for each true component, the found one that is its match: the assignment with the least distance."""
    precisions = np.linalg.inv(truth.covariances_)
    between = found.means_ - truth.means_[:, None]
    distances = np.sqrt(np.einsum("kfi,kij,kfj->kf", between, precisions, between))
    return linear_sum_assignment(np.minimum(distances, 1e3))[1]


def components_table(truth: Truth, found: Result) -> tuple[Table, str]:
    """Return weights and means found beside the true ones, and a sentence on how far apart they are."""
    order = matched(truth, found)
    table = Table(
        title="What the stream hid, and what was found",
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
    """Return both contenders side by side, and the ratios in a sentence."""
    table = Table(title="Beside scikit-learn, on the same rows", title_justify="left", box=box.SIMPLE)
    table.add_column("", no_wrap=True)
    for name in ("score", "below truth", "passes", "seconds", "memory"):
        table.add_column(name, justify="right")
    table.add_row("the truth", f"{truth_score:.4f}", "", "", "", "")
    for name, one in (("headwater", found), ("scikit-learn", peer)):
        memory = "not measured" if one.memory is None else megabytes(one.memory)
        gap = f"{truth_score - one.score:.4f}"
        table.add_row(name, f"{one.score:.4f}", gap, str(one.passes), f"{one.seconds:.2f}", memory)
    parts = [compared(found.seconds, peer.seconds, "the time")]
    if found.memory is not None and peer.memory is not None:
        parts.append(compared(max(found.memory, 2.0**20), peer.memory, "the memory"))
    better = "more" if found.score >= peer.score else "less"
    return (
        table,
        f"headwater took {' and '.join(parts)}; it scored {abs(found.score - peer.score):.4f} nats per row {better}.",
    )


def megabytes(memory: float) -> str:
    """Return bytes as a text; less than 1 MB is beneath what the peak of a process can tell."""
    return "under 1 MB" if memory < 2**20 else f"{memory / 2**20:,.{0 if memory >= 10 * 2**20 else 1}f} MB"


def compared(ours: float, theirs: float, what: str) -> str:
    """Say a ratio in words that are true whichever way it points."""
    ratio = theirs / max(ours, 1e-9)
    return f"1/{ratio:.3g} of {what}" if ratio >= 1.0 else f"{1.0 / ratio:.3g} times {what}"


def draw(path: Path, truth: Truth, rows: Array, truth_score: float, found: Result, peer: Result) -> None:
    """Draw what was found over what there was, and how the score came to the truth's."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from headwater import plotting

    water, peer_color, ink = "#0b7fab", "#e07b39", "#222222"
    style: dict[Any, Any] = {
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
        name = f"scikit-learn, all rows at once, {peer.passes} passes: {peer.seconds:.1f} s{_megabytes(peer)}"
        right.axhline(peer.score, color=peer_color, linewidth=1.6, label=name)
        name = f"headwater, each row once: {found.seconds:.1f} s{_megabytes(found)}"
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


def _megabytes(result: Result) -> str:
    return "" if result.memory is None else f", {megabytes(result.memory)}"


def clearest_columns(truth: Truth) -> tuple[int, int]:
    """Return the two columns in which the closest true means are farthest apart."""

    def clearance(pair: tuple[int, int]) -> float:
        means = truth.means_[:, pair]
        return min(float(np.linalg.norm(one - other)) for one, other in combinations(means, 2))

    return max(combinations(range(WIDTH), 2), key=clearance)


# The command


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m headwater.demo",
        description="Learn a stream of rows while you watch; then compare with the truth and with scikit-learn.",
    )
    made.add_argument("--rows", type=int, default=None, help="rows of the stream (default: 1000000; quick: 20000)")
    made.add_argument("--picture", type=Path, default=Path("headwater-demo.png"), help="where to leave the picture")
    made.add_argument("--seed", type=int, default=0, help="seed of the truth and of the rows (default: 0)")
    made.add_argument("--quick", action="store_true", help="few rows, all in this process, memory not measured")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the command line by default.

    Returns
    -------
    code : int
        0.
    """
    options = parser().parse_args(argv)
    rows = options.rows if options.rows is not None else 20_000 if options.quick else 1_000_000
    if rows < CHUNK_ROWS:
        parser().error(f"--rows must be at least {CHUNK_ROWS}, got {rows}")
    console = Console(highlight=False)
    truth = Truth.drawn(options.seed)
    console.print(f"A stream of {rows:,} rows of {WIDTH} columns, drawn from {COMPONENTS} hidden components.")
    seconds = warm_kernels()
    console.print(f"Kernels ready after {seconds:.1f} s (compiled once per machine, then read from a cache).\n")

    with Display(console, rows) as display:
        found = run(learn_stream, rows, options.seed, display, apart=not options.quick)
    table, sentence = components_table(truth, found)
    console.print()
    console.print(table)
    console.print(sentence + "\n")

    with console.status("scikit-learn is fitting the same rows") if console.is_terminal else contextlib.nullcontext():
        peer = run(fit_scikit_learn, rows, options.seed, lambda moment: None, apart=not options.quick)
    judge = held_out(truth, options.seed)
    truth_score = truth.score(judge)
    table, sentence = contenders_table(truth_score, found, peer)
    console.print(table)
    console.print(sentence)
    console.print(
        "Scores are nats per row on rows that neither saw; seconds are those of learning alone; scikit-learn's passes of EM "
        "come after its k-means start."
    )
    if not options.quick:
        console.print("Memory is the peak of each one's own process over what it held before the first row.")
    try:
        draw(options.picture, truth, judge, truth_score, found, peer)
    except ImportError:
        console.print("\nNo picture was drawn: that needs matplotlib (pip install 'headwater\\[plot]').")
    else:
        console.print(f"\nPicture: {options.picture}", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
