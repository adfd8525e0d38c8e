"""From a file to a fitted model: reading and learning overlap, so the slower of the two, each alone, is the limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv
from pyarrow.parquet import ParquetFile, write_table

from benchmarks.data import Array, make_truth
from benchmarks.large_file import appended, streamed
from benchmarks.line import Line, Target, at_least, rates
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import interleave
from headwater import GaussianMixture, stream

ROWS, WIDTH, COMPONENTS = 2_000_000, 10, 10
LONG = 2**30  # bytes of the file whose stream must need no more memory than a tenth of it


@benchmark
def files(scale: Scale) -> Iterator[Line]:
    rng = np.random.default_rng(scale.first_seed)
    rows = make_truth(COMPONENTS, WIDTH, rng).sample(scale.rows(ROWS), rng)
    with TemporaryDirectory(prefix="headwater-files-") as folder:
        for name, write, read in (("CSV", write_csv, read_csv), ("Parquet", write_parquet, read_parquet)):
            path = Path(folder) / f"rows.{name.lower()}"
            write(rows, path)
            yield pace(name, path, read, len(rows), scale)
            path.unlink()
        yield flat(rows, Path(folder), scale)


def pace(name: str, path: Path, read: Callable[[Path], None], rows: int, scale: Scale) -> Line:
    """Compare a fit from the file with the slower of reading alone and learning alone."""
    chunks = [chunk.X for chunk in stream(path)]
    learn(chunks)
    timings = interleave(
        {
            "pyarrow": lambda repeat: read(path),
            "kernel": lambda repeat: learn(chunks),
            "both": lambda repeat: learn(stream(path)),
        },
        scale.repeats,
    )
    peer = max(timings["pyarrow"], timings["kernel"], key=lambda timing: timing.best)
    alone = ", ".join(f"{what} {rows / 1e6 / timings[what].best:.2f}" for what in ("pyarrow", "kernel"))
    return rates(
        f"{name} to a fitted diag K{COMPONENTS} d{WIDTH}", timings["both"], peer, rows=rows, target=at_least(0.7),
        note=f"{rows:,} rows; peer: the slower of the two alone, in Mrow/s: {alone}",
    )  # fmt: skip


def learn(chunks: Iterable[Any]) -> GaussianMixture:
    model = GaussianMixture(COMPONENTS, covariance_type="diag", random_state=0, n_threads=1)
    for chunk in chunks:
        model.partial_fit(chunk)
    return model


def flat(rows: Array, folder: Path, scale: Scale) -> Line:
    """Compare the peak memory of a process that streams a long CSV file with one that streams a tenth of it."""
    block = folder / "block.csv"
    write_csv(rows[:50_000], block)
    peaks = {}
    for part in (10, 1):
        path = folder / "long.csv"
        size = appended(block, path, scale.rows(LONG, least=2**20) // part)
        peaks[part] = streamed(path)
        path.unlink()
    return Line(
        f"peak memory, a CSV file of {size / 2**20:,.0f} MB", peaks[1], peaks[10], "MB", peaks[1] / peaks[10],
        Target("ratio", "<=", 1.05), "peer: itself with a tenth of the file; ratio of peaks, 1 is best",
    )  # fmt: skip


def table(rows: Array) -> pa.Table:
    return pa.table({f"x{place}": rows[:, place] for place in range(rows.shape[1])})


def write_csv(rows: Array, path: Path) -> None:
    csv.write_csv(table(rows), path)


def write_parquet(rows: Array, path: Path) -> None:
    write_table(table(rows), path)


def read_csv(path: Path) -> None:
    for _ in csv.open_csv(path, csv.ReadOptions(use_threads=False)):
        pass


def read_parquet(path: Path) -> None:
    for _ in ParquetFile(path).iter_batches(use_threads=False):
        pass
