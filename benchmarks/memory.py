"""Memory: the resident peak of a process that streams a tenth of the rows, and of one that streams them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.line import Line, Target
from benchmarks.process import run_python
from benchmarks.registry import benchmark
from benchmarks.scale import Scale

CHILD = Path(__file__).with_name("memory_child.py")


@dataclass(frozen=True)
class Peaks:
    """MB resident at most: before the stream (interpreter, libraries, one chunk) and by its end."""

    before: float
    after: float


@benchmark
def memory(scale: Scale) -> Iterator[Line]:
    yield flat("gaussian", "rows streamed K10 d10", 10_000_000, scale)
    yield flat("counts", "sparse documents streamed K10, 100,000 words", 2_000_000, scale)
    yield flat("symbols", "steps of one sequence streamed K10, 10 symbols", 10_000_000, scale)


def flat(kind: str, what: str, most: int, scale: Scale) -> Line:
    sizes = scale.rows(most // 10), scale.rows(most, least=20_000)
    streamed(kind, 10_000)  # compiling takes memory of its own
    runs: dict[int, list[Peaks]] = {rows: [] for rows in sizes}
    for _ in range(max(1, scale.repeats - 1)):
        for rows in sizes:
            runs[rows].append(streamed(kind, rows))
    short, long = (median(peaks.after for peaks in runs[rows]) for rows in sizes)
    before = median(peaks.before for peaks in runs[sizes[1]])
    return Line(
        f"peak memory, {sizes[1]:,} {what}", long, short, "MB", long / short,
        Target("ratio", "<=", 1.05),
        f"peer: itself with {sizes[0]:,} rows; ratio of peaks, 1 is best; {before:.0f} MB before the stream",
        details={str(rows): [[peaks.before, peaks.after] for peaks in runs[rows]] for rows in sizes},
    )  # fmt: skip


def streamed(kind: str, rows: int) -> Peaks:
    before, after, seen, _ = run_python(str(CHILD), kind, str(rows)).output.split()
    if int(seen) != rows:
        raise RuntimeError(f"the child learned {seen} rows instead of {rows}")
    return Peaks(float(before), float(after))
