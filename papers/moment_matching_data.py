"""The data of paper 003's experiments: generated mixtures, tables from a directory of data sets, and splits of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headwater.core.statistics import Array

LEAST_WEIGHT = 0.3  # of an equal share
TEST_SHARE = 0.1


# Generated rows


@dataclass(frozen=True)
class Truth:
    """A mixture of slanted Gaussians to draw rows from, and to score them by."""

    weights: Array
    means: Array
    factors: Array  # covariance = factor @ factor.T

    @classmethod
    def drawn(cls, components: int, columns: int, apart: float, seed: int) -> Truth:
        """Standard deviations of 0.5 to 1.5 along turned axes; the two closest means are so far apart."""
        rng = np.random.default_rng(np.random.SeedSequence((3, seed, components, columns)))
        means = rng.standard_normal((components, columns))
        if components > 1:
            gaps = np.linalg.norm(means[:, None] - means, axis=2)[np.triu_indices(components, 1)]
            means *= apart / gaps.min()
        turns = np.linalg.qr(rng.standard_normal((components, columns, columns)))[0]
        factors = turns * rng.uniform(0.5, 1.5, size=(components, 1, columns))
        weights = (LEAST_WEIGHT + (1.0 - LEAST_WEIGHT) * components * rng.dirichlet(np.full(components, 3.0))) / components
        return cls(weights, means, factors)

    def sample(self, rows: int, seed: int) -> Array:
        rng = np.random.default_rng(np.random.SeedSequence((33, seed, rows)))
        component = rng.choice(len(self.weights), size=rows, p=self.weights)
        drawn = rng.standard_normal((rows, self.means.shape[1]))
        for index, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            chosen = np.flatnonzero(component == index)
            drawn[chosen] = drawn[chosen] @ factor.T + mean
        return drawn

    def score(self, rows: Array) -> float:
        """Mean log-density of the rows."""
        covariances = self.factors @ self.factors.swapaxes(1, 2)
        return mixture_score(rows, self.weights, self.means, covariances)

    @property
    def parameters(self) -> int:
        components, columns = self.means.shape
        return components - 1 + components * (columns + columns * (columns + 1) // 2)


def mixture_score(rows: Array, weights: Array, means: Array, covariances: Array) -> float:
    """Mean log-density of rows (n, d) under a mixture of Gaussians."""
    total, piece = 0.0, 100_000
    factors = np.linalg.cholesky(covariances)
    constants = np.log(weights) - np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    constants -= 0.5 * rows.shape[1] * np.log(2.0 * np.pi)
    whiteners = np.linalg.inv(factors)
    for begin in range(0, len(rows), piece):
        part = rows[begin : begin + piece]
        joint = [
            constant - 0.5 * (((part - mean) @ whitener.T) ** 2).sum(axis=1)
            for constant, mean, whitener in zip(constants, means, whiteners, strict=True)
        ]
        total += float(np.logaddexp.reduce(joint, axis=0).sum())
    return total / len(rows)


# Tables


@dataclass(frozen=True)
class Source:
    """Where the rows of a data set are, or how they are generated; `paper` is what the paper calls the set, if it is in it.

    `file` is below the directory of data sets; `columns` are those to keep, `drop` those to leave out, `array` the one to
    take of an npz. A generated set has `generated` (rows, columns) and a known number of components.
    """

    name: str
    title: str
    file: str = ""
    paper: str = ""
    drop: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    array: str = ""
    generated: tuple[int, int] | None = None
    components: int | None = None
    splits: int = 10
    note: str = ""

    def path(self, directory: Path | None) -> Path | None:
        path = directory / self.file if directory is not None and self.file else None
        return path if path is not None and path.is_file() else None

    def available(self, directory: Path | None) -> bool:
        return self.generated is not None or self.path(directory) is not None

    def truth(self) -> Truth | None:
        if self.generated is None or self.components is None:
            return None
        return Truth.drawn(self.components, self.generated[1], 4.0, len(self.name))

    def load(self, directory: Path | None, at_most: int | None = None) -> Array:
        """All rows, or a random part of them, in the order of the file."""
        truth = self.truth()
        if truth is not None:
            assert self.generated is not None
            return truth.sample(min(self.generated[0], at_most or self.generated[0]), 0)
        path = self.path(directory)
        if path is None:
            raise FileNotFoundError(f"the directory of data sets has no {self.file}")
        rows = READERS[path.suffix](path, self)
        if at_most is not None and len(rows) > at_most:
            rows = rows[np.sort(np.random.default_rng(0).permutation(len(rows))[:at_most])]
        return np.ascontiguousarray(rows, dtype=float)


def _csv(path: Path, source: Source) -> Array:
    import pandas as pd

    frame = pd.read_csv(path)
    frame = frame[list(source.columns)] if source.columns else frame.drop(columns=list(source.drop))
    return frame.to_numpy(dtype=float)


def _npz(path: Path, source: Source) -> Array:
    with np.load(path) as arrays:
        return np.asarray(arrays[source.array], dtype=float)


def _parquet(path: Path, source: Source) -> Array:
    import polars as pl

    return pl.read_parquet(path).drop(*source.drop).to_numpy().astype(float)


READERS: dict[str, Callable[[Path, Source], Array]] = {".gz": _csv, ".npz": _npz, ".parquet": _parquet}


def table(name: str, title: str, paper: str = "", **settings) -> Source:
    return Source(name, title, f"{name}/{name}.csv.gz", paper, **settings)


SMALL = (
    table("abalone", "Abalone", "ABALONE", drop=("sex",)),
    table("banknote", "Banknote", "BANKNOTE", drop=("class",)),
    table("airfoil", "Airfoil", "AIRFOIL"),
    Source(
        "arabic_digits", "Arabic", "arabic_digits/arabic_digits.npz", "ARABIC", array="utterance_mean",
        note="the mean of each utterance's frames; the paper does not say how it made rows of equal length",
    ),
    table(
        "transfusion", "Transfusion", "TRANSFUSION", drop=("monetary_cc", "donated"),
        note="without the volume given, which is 250 times the number of donations: with it no density exists",
    ),
    table("ccpp", "CCPP", "CCPP"),
    table("cpu_act", "Comp. activity", "COMP. ACTIVITY"),
    table("kin8nm", "Kinematics", "KINEMATICS"),
    table("plastic", "Plastic", "PLASTIC"),
)  # fmt: skip
LARGE = (
    table("magic04", "Magic 04", "MAGIC 04", drop=("class",)),
    Source("bio_kdd04", "KDD Cup 2004 protein", "bio_kdd04/bio_kdd04.parquet", drop=("block_id", "target"), splits=1),
    Source("anomaly_http", "KDD Cup 1999 http", "anomaly_http/anomaly_http.npz", array="X"),
    Source("anomaly_skin", "Skin", "anomaly_skin/anomaly_skin.npz", array="X"),
    table(
        "heterogeneity_sample", "Heterogeneity, a sample", columns=("x", "y", "z"),
        note="40,000 rows of the same source, x, y and z only: not the paper's set",
    ),
    Source("arabic_frames", "Arabic, frames", "arabic_digits/arabic_digits.npz", array="frames", splits=6),
    Source(
        "generated_16", "generated, the size of Heterogeneity", paper="HETEROGENEITY", generated=(3_930_257, 16), components=5,
        splits=1,
    ),
    Source(
        "generated_91", "generated, the size of Year MSD", paper="YEAR MSD", generated=(515_345, 91), components=2, splits=1
    ),
    Source(
        "generated_50", "generated, the size of MiniBooNE", paper="MINIBOONE", generated=(130_064, 50), components=5, splits=2
    ),
)  # fmt: skip
MISSING = "Northridge (2929 rows), which is in the paper's Table 1, was not available and is left out."


# Splits


@dataclass(frozen=True)
class Split:
    """Rows to learn from and to judge by, as z-scores by the rows to learn from."""

    learn: Array
    judge: Array
    centre: Array
    spread: Array

    @classmethod
    def drawn(cls, rows: Array, seed: int, learn_at_most: int | None = None, judge_at_most: int | None = None) -> Split:
        order = np.random.default_rng(np.random.SeedSequence((333, seed))).permutation(len(rows))
        cut = len(rows) - max(1, round(TEST_SHARE * len(rows)))
        cut = min(cut, learn_at_most or cut)
        learn, judge = rows[order[:cut]], rows[order[cut:][: judge_at_most or None]]
        centre, spread = learn.mean(axis=0), learn.std(axis=0)
        spread[spread == 0.0] = 1.0
        for part in (learn, judge):
            part -= centre
            part /= spread
        return cls(learn, judge, centre, spread)

    def truth_score(self, truth: Truth) -> float:
        """What the truth scores on the rows to judge by, as a density of z-scores."""
        return truth.score(self.judge * self.spread + self.centre) + float(np.log(self.spread).sum())

    def inner(self, at_most: int) -> tuple[Array, Array]:
        """Four fifths of (some of) the rows to learn from, and the fifth to choose settings by."""
        rows = self.learn[:at_most]
        cut = len(rows) - len(rows) // 5
        return rows[:cut], rows[cut:]


def fewest_values(rows: Array) -> int:
    """Distinct values of the column that has the fewest."""
    return min(len(np.unique(column)) for column in rows.T)
