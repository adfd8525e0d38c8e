"""The rows of `many_machines`: a folder of Parquet files drawn from one mixture, and held-out rows.

Each file is drawn by a seed of its own and written before the next, so memory holds one file however many rows there are. A
folder that is complete is used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

import numpy as np

from benchmarks.data import Array, Truth, make_truth
from benchmarks.files import write_parquet

COMPONENTS, WIDTH, FILES, HELD_OUT = 10, 10, 16, 100_000


@dataclass(frozen=True)
class Rows:
    """Where the files are, how many rows they have together, and what they were drawn from."""

    folder: Path
    rows: int
    truth: Truth
    held_out: Array

    @property
    def glob(self) -> str:
        return str(self.folder / "*.parquet")

    @property
    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))


def written(rows: int, seed: int) -> Rows:
    """Return the files of so many rows in the folder of temporary files, written unless an earlier run has left them."""
    root = np.random.SeedSequence(seed)
    first, last, *others = (np.random.default_rng(one) for one in root.spawn(FILES + 2))
    truth = make_truth(COMPONENTS, WIDTH, first)
    place = Path(gettempdir()) / f"headwater-many-machines-{rows}-{seed}"
    complete = place / "complete"
    if not complete.exists():
        place.mkdir(parents=True, exist_ok=True)
        for at, (rng, size) in enumerate(zip(others, np.diff(np.linspace(0, rows, FILES + 1).astype(int)), strict=True)):
            write_parquet(truth.sample(int(size), rng), place / f"part-{at:02d}.parquet")
        complete.touch()
    return Rows(place, rows, truth, truth.sample(HELD_OUT, last))
