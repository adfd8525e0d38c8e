"""The process whose memory is measured: stream this many rows, print the resident peak before and after, in MB."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from headwater import GaussianMixture

CHUNK = 50_000


def peak() -> float:
    """Largest resident memory so far. VmHWM starts anew with a program; ru_maxrss would remember who started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status says nothing of VmHWM")


def main(rows: int) -> None:
    rng = np.random.default_rng(0)
    chunk = rng.normal(size=(CHUNK, 10)) + 3.0 * rng.normal(size=(10, 10))[rng.integers(10, size=CHUNK)]
    model = GaussianMixture(10, random_state=0, n_threads=1)
    before = peak()
    while rows > 0:
        fresh = chunk[:rows] + 0.1 * rng.standard_normal((min(rows, CHUNK), 10))
        model.partial_fit(fresh)
        rows -= len(fresh)
    print(before, peak(), model.n_samples_seen_, model.score(chunk))


if __name__ == "__main__":
    main(int(sys.argv[1]))
