"""Gaps filled, beside scikit-learn's imputers: error and time on real tables, time on many rows; and the time of reasons.

A tenth of the entries of a table is removed, at random or by value (large values more often), and filled again. The error is
the root mean square over removed entries, in standard deviations of their columns. Ours is a mixture of five Gaussians, learned
from the rows with gaps by ten passes of variational Bayes; IterativeImputer makes ten rounds, too. Both numbers were chosen on
banknote, gvhd_cytometry, cpu_act, anomaly_mammography and anomaly_thyroid; that passes had to be fewer was seen in times on the
tables here. Many rows are learned in one pass.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401, which makes the next import possible
from sklearn.impute import IterativeImputer, KNNImputer

from benchmarks.data import Array, make_truth
from benchmarks.line import Line, at_least, at_most, quotient, times
from benchmarks.refinement_real import Real
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import Timing, interleave, timed
from headwater import GaussianMixture

TABLES = (
    Real("abalone", "abalone.csv.gz", 5, ("sex",)),
    Real("ccpp", "ccpp.csv.gz", 5),
    Real("magic04", "magic04.csv.gz", 5, ("class",)),
    Real("airfoil", "airfoil.csv.gz", 5),
    Real("kin8nm", "kin8nm.csv.gz", 5),
)
SHARE = 0.1  # of the entries that are removed
ERROR = "deviations"


@dataclass(frozen=True)
class Result:
    """Errors and times of one table: ours, IterativeImputer's and KNNImputer's."""

    name: str
    errors: tuple[float, float, float]
    by_value: tuple[float, float]
    ours: Timing
    peer: Timing
    neighbours: float

    @property
    def ratio(self) -> float:
        """How many times larger the error of IterativeImputer is."""
        return quotient(self.errors[1], self.errors[0])


@benchmark
def imputation(scale: Scale) -> Iterator[Line]:
    tables = [found for table in TABLES if (found := read_table(table, scale)) is not None]
    results = [compare_table(name, rows, scale) for name, rows in tables]
    for result in results:
        yield error_line(result)
    if results:
        yield from median_lines(sorted(results, key=lambda result: result.ratio)[len(results) // 2])
    yield many_rows(scale)
    yield reasons(scale)


def read_table(table: Real, scale: Scale) -> tuple[str, Array] | None:
    """The rows of a table in HEADWATER_DATA, some of them in a quick run; None if it is not there."""
    path = table.path(Path(os.environ.get("HEADWATER_DATA", "")))
    if path is None:
        return None
    rows = table.read(path)
    return table.name, rows[np.random.default_rng(0).permutation(len(rows))[: scale.rows(len(rows), 300)]]


def fill(rows: Array) -> Array:
    """Fill gaps by what a mixture learns of the same rows."""
    model = GaussianMixture(5, algorithm="vb", max_iter=10, random_state=0, n_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows).impute(rows)


def fill_in_turns(rows: Array) -> Array:
    """Fill gaps by regressions of each column on the others, in turns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return IterativeImputer(random_state=0).fit_transform(rows)


def fill_by_neighbours(rows: Array) -> Array:
    """Fill gaps by the mean of the five nearest rows."""
    return KNNImputer().fit_transform(rows)


def compare_table(name: str, rows: Array, scale: Scale) -> Result:
    """Remove entries, and fill them by each contender."""
    rng = np.random.default_rng(scale.first_seed)
    removed = rng.random(rows.shape) < SHARE
    ranks = rows.argsort(axis=0).argsort(axis=0) / len(rows)
    large = rng.random(rows.shape) < 2.0 * SHARE * ranks
    gappy = np.where(removed, np.nan, rows)
    contenders: dict[str, Callable[[int], Array]] = {"ours": lambda _: fill(gappy), "peer": lambda _: fill_in_turns(gappy)}
    fill(gappy[:300])  # kernels are compiled before anything is timed
    errors = [error(one(gappy), rows, removed) for one in (fill, fill_in_turns)]
    seconds, found = timed(fill_by_neighbours, gappy)
    other = np.where(large, np.nan, rows)
    by_value = (error(fill(other), rows, large), error(fill_in_turns(other), rows, large))
    timings = interleave(contenders, scale.repeats)
    return Result(name, (*errors, error(found, rows, removed)), by_value, timings["ours"], timings["peer"], seconds)


def error(filled: Array, rows: Array, removed: Array) -> float:
    """Root mean square over removed entries, in standard deviations of their columns."""
    spread = rows.std(axis=0)
    apart = (filled - rows) / np.where(spread > 0.0, spread, 1.0)
    return math.sqrt(float(np.square(apart[removed.astype(bool)]).mean()))


def error_line(result: Result) -> Line:
    ours, peer, neighbours = result.errors
    note = (
        f"{result.ours.best:.2f} s, peer {result.peer.best:.2f} s; KNNImputer {neighbours:.3f} in {result.neighbours:.1f} s; "
        f"removed by value: {result.by_value[0]:.3f}, peer {result.by_value[1]:.3f}"
    )
    return Line(f"error of filled entries, {result.name}", ours, peer, ERROR, result.ratio, None, note)


def median_lines(result: Result) -> Iterator[Line]:
    """Error and time on the table whose ratio of errors is the median."""
    ours, peer, _ = result.errors
    yield Line("error of filled entries, median table", ours, peer, ERROR, result.ratio, at_least(1), result.name)
    yield times("time to fill, median table", result.ours, result.peer, target=at_least(1), note=result.name)


def many_rows(scale: Scale) -> Line:
    """Time to learn many generated rows with gaps in one pass and to fill them."""
    rng = np.random.default_rng(scale.first_seed)
    rows = make_truth(5, 10, rng, sep=3.0).sample(scale.rows(200_000), rng)
    removed = rng.random(rows.shape) < SHARE
    gappy = np.where(removed, np.nan, rows)

    def in_one_pass(_: int) -> Array:
        return GaussianMixture(5, random_state=0, n_threads=1).partial_fit(gappy).impute(gappy)

    filled = {"ours": in_one_pass(0), "peer": fill_in_turns(gappy)}
    errors = {name: error(found, rows, removed) for name, found in filled.items()}
    timings = interleave({"ours": in_one_pass, "peer": lambda _: fill_in_turns(gappy)}, scale.repeats)
    note = f"{len(rows):,} rows, one pass; errors {errors['ours']:.3f}, peer {errors['peer']:.3f}"
    return times("time to fill, K5 d10", timings["ours"], timings["peer"], target=at_least(10), note=note)


def reasons(scale: Scale) -> Line:
    """Time of `explain` for each row of a chunk."""
    rng = np.random.default_rng(scale.first_seed)
    truth = make_truth(8, 10, rng)
    model = GaussianMixture(8, random_state=0, n_threads=1).partial_fit(truth.sample(20_000, rng))
    rows = truth.sample(scale.rows(10_000), rng)
    gappy = np.where(rng.random(rows.shape) < SHARE, np.nan, rows)
    timings = interleave(
        {
            "complete": lambda _: model.explain(rows),
            "gaps": lambda _: model.explain(gappy),
            "pairs": lambda _: model.explain(rows).pairs(),
        },
        scale.repeats,
    )
    each = {name: Timing(found.best / len(rows), found.median / len(rows)) for name, found in timings.items()}
    others = ", ".join(f"with {name} {1e6 * each[name].best:.0f} us" for name in ("gaps", "pairs"))
    note = f"a row, in chunks of {len(rows):,}; {others}"
    return times("explain K8 d10", each["complete"], unit="us", target=at_most(100), note=note)
