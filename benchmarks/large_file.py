"""python -m benchmarks.large_file [--gigabytes 10] [--folder DIR]: stream a large CSV file, and watch the memory."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks.process import run_python

CHILD = Path(__file__).with_name("large_file_child.py")
MOST = 1024  # MB


def appended(block: Path, path: Path, size: int) -> int:
    """Make a CSV file of at least this size of the rows of another, again and again; return its size."""
    head, _, body = block.read_bytes().partition(b"\n")
    free = shutil.disk_usage(path.parent).free
    if free < size + 2 * len(body):
        raise RuntimeError(f"{path.parent} has {free / 1e9:.1f} GB left, and {size / 1e9:.1f} GB are needed")
    with path.open("wb") as file:
        written = file.write(head + b"\n")
        while written < size:
            written += file.write(body)
    return written


def streamed(path: Path) -> float:
    """Fit a model to a file in a new process, and return its resident peak in MB."""
    return float(run_python(str(CHILD), str(path)).output.split()[0])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.large_file", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, help="where there is room; the usual place of temporary files by default")
    options = parser.parse_args(arguments)
    from benchmarks.files import write_csv

    with TemporaryDirectory(prefix="headwater-large-", dir=options.folder) as folder:
        block, path = Path(folder) / "block.csv", Path(folder) / "large.csv"
        write_csv(np.random.default_rng(0).normal(size=(500_000, 10)), block)
        size = appended(block, path, int(options.gigabytes * 1e9))
        print(f"a CSV file of {size / 1e9:.2f} GB; streaming ...")
        begin = perf_counter()
        peak, rows = run_python(str(CHILD), str(path)).output.split()
        seconds = perf_counter() - begin
    print(f"{int(rows):,} rows in {seconds:.0f} s ({size / 1e6 / seconds:.0f} MB/s), peak {float(peak):.0f} MB")
    if float(peak) > MOST:
        sys.exit(f"the peak should stay below {MOST} MB")


if __name__ == "__main__":
    main()
