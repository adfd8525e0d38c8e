"""What `refinement` measures on real rows, in the order of their file and shuffled.

Every fifth row is held out to judge by. Columns are measured in units of their spread. Values repeat, so that without a floor
some densities would have no bound: both libraries add the same `reg_covar`. Each contender runs five times, with another seed
and, where rows are shuffled, another order each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Array
from benchmarks.refinement_contenders import streamed
from benchmarks.refinement_peers import Task, peers_of
from benchmarks.refinement_sets import Entry, Plan, peer_entries, run_entry

REPEATS = 5
FLOOR = 1e-3
FILE_ORDER, SHUFFLED = "as in the file", "shuffled"


@dataclass(frozen=True)
class Real:
    """A data set: its file, columns that are no numbers to learn, and a number of components that is of use."""

    name: str
    file: str
    n_components: int
    without: tuple[str, ...] = ()

    def path(self, data: Path | None) -> Path | None:
        """Its file in the directory of data sets, if it is there."""
        path = data / self.name / self.file if data else None
        return path if path and path.is_file() else None

    def read(self, path: Path) -> Array:
        """All rows in the order of the file."""
        if path.suffix == ".npz":
            with np.load(path) as found:
                return np.asarray(found["X"], dtype=float)
        import pandas as pd

        # Cells are read as text, since pandas before 3.0 reads numbers only nearly to the last bit.
        cells = pd.read_csv(path, dtype=str).drop(columns=list(self.without))
        return cells.to_numpy(dtype=object).astype(float)


REALS = (
    Real("magic04", "magic04.csv.gz", 8, ("class",)),
    Real("ccpp", "ccpp.csv.gz", 6),
    Real("cpu_act", "cpu_act.csv.gz", 6),
    Real("gvhd_cytometry", "gvhd_cytometry.csv.gz", 8, ("sample",)),
    Real("anomaly_shuttle", "anomaly_shuttle.npz", 8),
    Real("abalone", "abalone.csv.gz", 5, ("sex",)),
)


def parted(rows: Array) -> tuple[Array, Array]:
    """Rows to learn and every fifth one to judge by, in units of the spread of the first."""
    held = np.arange(len(rows)) % 5 == 4
    learned = rows[~held]
    spread = learned.std(axis=0)
    scale = np.where(spread > 0.0, spread, 1.0)
    return (learned - learned.mean(axis=0)) / scale, (rows[held] - learned.mean(axis=0)) / scale


def real_set(plan: Plan, real: Real, repeats: int, data: Path | None) -> Entry | None:
    """What is measured on one set; None if it is absent."""
    path = real.path(data)
    if path is None:
        return None
    learned, held_out = parted(real.read(path))
    task = Task(f"refinement-{real.name}", real.n_components, learned, held_out, FLOOR, plan.restarts)
    peers = peers_of(task, plan.cache)
    runs: list[dict[str, Any]] = []
    for repeat in range(repeats):
        mixed = learned[np.random.default_rng([plan.seed, REALS.index(real), repeat]).permutation(len(learned))]
        for order, given in ((FILE_ORDER, learned), (SHUFFLED, mixed)):
            for one in plan.contenders:
                run = streamed(one.model(real.n_components, repeat, reg_covar=FLOOR), given, held_out, True)
                lost = peers.reference_learned - run.learned
                runs.append({**run_entry(order, one.name, run, peers), "learned_loss": lost})
    theirs = [{**each, "learned_loss": peers.reference_learned - peers.learned(each["n_init"])} for each in peer_entries(peers)]
    about = {"set": real.name, "rows": len(learned), "n_components": real.n_components, "width": learned.shape[1]}
    return {**about, "peers": theirs, "runs": runs}


def of_learned(entry: Entry) -> Entry:
    """The same set with the losses on the rows learned."""
    swapped = {name: [{**each, "loss": each["learned_loss"]} for each in entry[name]] for name in ("peers", "runs")}
    return {**entry, **swapped}
