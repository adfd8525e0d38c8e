"""Rows of `start_costs`: mixtures of many components of many columns, and real tables of some thousand rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import Array
from benchmarks.refinement_data import Labels

ROWS, HELD_OUT = 30_000, 10_000
MOST_ROWS = 20_000  # of a table
SEPARATIONS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.5)  # deviation of a mean's column, by that within a component; a set has one


@dataclass(frozen=True)
class Large:
    """A shape with many components of many columns."""

    covariance_type: str
    n_components: int
    width: int

    def __str__(self) -> str:
        return f"{self.covariance_type} K{self.n_components} d{self.width}"


LARGE = (Large("spherical", 256, 256), Large("diag", 100, 128), Large("full", 32, 64))


@dataclass(frozen=True)
class Known:
    """Rows to learn and rows held out, with the component that each is from."""

    rows: Array
    held_out: Array
    held_out_labels: Labels


def draw_large(shape: Large, number: int, seed: int, rows: int = ROWS, held_out: int = HELD_OUT) -> Known:
    """Draw the set of this number: separations go round, weights and spreads of components differ."""
    k, width, size = shape.n_components, shape.width, rows + held_out
    rng = np.random.default_rng((seed, number, k, width))
    labels = rng.choice(k, size, p=rng.dirichlet(np.full(k, 3.0)))
    means = SEPARATIONS[number % len(SEPARATIONS)] * rng.standard_normal((k, width))
    X = rng.standard_normal((size, width))
    if shape.covariance_type == "full":
        for component in range(k):
            axes = np.linalg.qr(rng.standard_normal((width, width)))[0]
            own = labels == component
            X[own] = (X[own] * np.exp(0.5 * rng.standard_normal(width))) @ axes.T
    elif shape.covariance_type == "diag":
        X *= np.exp(0.4 * rng.standard_normal((k, width)))[labels]
    else:
        X *= np.exp(0.2 * rng.standard_normal((k, 1)))[labels]
    X += means[labels]
    return Known(X[:rows], X[rows:], labels[rows:])


@dataclass(frozen=True)
class Table:
    """A real table of some thousand rows: its file, the columns to learn, and a number of components that is of use."""

    name: str
    file: str
    n_components: int
    columns: tuple[str, ...] = ()  # all, if none are named; of an archive, the array

    def read(self, folder: Path) -> Array | None:
        """At most 20,000 of its rows, in mixed order and units of their spread, if the folder has it."""
        path = folder / self.file
        if not path.is_file():
            return None
        if path.suffix == ".npz":
            with np.load(path) as found:
                X = np.asarray(found[self.columns[0]], dtype=float)
        else:
            import pandas as pd

            cells = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
            X = cells.loc[:, list(self.columns or cells.columns)].to_numpy(dtype=float)
        X = X[np.random.default_rng(len(X)).permutation(len(X))[:MOST_ROWS]]
        spread = X.std(axis=0)
        return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


ABALONE = ("length", "diameter", "height", "whole_weight", "shucked_weight", "viscera_weight", "shell_weight", "rings")
MAGIC = ("fLength", "fWidth", "fSize", "fConc", "fConc1", "fAsym", "fM3Long", "fM3Trans", "fAlpha", "fDist")
# Constants of starts and searches were chosen on the first four tables; figures are told of the others.
CHOSEN_ON = (
    Table("magic04", "magic04/magic04.csv.gz", 8, MAGIC),
    Table("ccpp", "ccpp/ccpp.csv.gz", 6),
    Table("shuttle", "anomaly_shuttle/anomaly_shuttle.npz", 12, ("X",)),
    Table("digits, means", "arabic_digits/arabic_digits.npz", 10, ("utterance_mean",)),
)
TOLD_OF = (
    Table("cytometry", "gvhd_cytometry/gvhd_cytometry.csv.gz", 8, ("CD4", "CD8b", "CD3", "CD8")),
    Table("kin8nm", "kin8nm/kin8nm.csv.gz", 8),
    Table("mammography", "anomaly_mammography/anomaly_mammography.npz", 6, ("X",)),
    Table("digits, frames", "arabic_digits/arabic_digits.npz", 12, ("frames",)),
    Table("cpu_act", "cpu_act/cpu_act.csv.gz", 6),
    Table("abalone", "abalone/abalone.csv.gz", 6, ABALONE),
)


def data_folder() -> Path:
    return Path(os.environ.get("HEADWATER_DATA", ""))


def part(X: Array) -> tuple[Array, Array]:
    """Return rows to learn, and every fifth one to judge by."""
    held = np.arange(len(X)) % 5 == 4
    return X[~held], X[held]
