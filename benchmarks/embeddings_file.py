"""python -m benchmarks.embeddings_file [--rows 200000]: a thousand groups of 768 columns, learned from a file; the memory.

A first process writes generated embeddings in float32 to a file, a second one reads them 10,000 at a time, learns and answers.
What is printed is the resident peak of the whole second process: interpreter, libraries, rows and model.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

GROUPS, WIDTH, CHUNK = 1000, 768, 10_000
MOST = 1536  # MB


def write(path: Path, rows: int) -> None:
    from benchmarks.shapes_cell import embeddings

    embeddings(rows, GROUPS, WIDTH).rows.tofile(path)


def learn(path: Path, kind: str) -> None:
    from headwater import GaussianMixture

    begin = process_time()
    model = GaussianMixture(GROUPS, covariance_type=kind, random_state=0)
    with path.open("rb") as file:
        while (rows := np.fromfile(file, np.float32, CHUNK * WIDTH)).size:
            model.partial_fit(rows.reshape(-1, WIDTH))
    seen, spent = model.weights_.size and model.n_samples_seen_, process_time() - begin
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            peak = int(line.split()[1]) / 1024
    print(f"{kind}: {int(seen):,} rows, {spent:.0f} CPU s, resident peak {peak:.0f} MB of {MOST}")
    if peak > MOST:
        sys.exit("too much")


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.embeddings_file", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--kind", default="spherical")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--learn", type=Path)
    options = parser.parse_args()
    if options.write:
        return write(options.write, options.rows)
    if options.learn:
        return learn(options.learn, options.kind)
    with TemporaryDirectory(prefix="headwater-embeddings-") as folder:
        path = str(Path(folder) / "rows.f32")
        for step in (["--write", path, "--rows", str(options.rows)], ["--learn", path, "--kind", options.kind]):
            subprocess.run([sys.executable, "-m", "benchmarks.embeddings_file", *step], check=True)


if __name__ == "__main__":
    main()
