"""A mixture from a folder of Parquet files, by one worker, by two, and by others.

``python -m pages many_machines`` measures it and writes docs/benchmarks/many_machines.md. Everything is learned from the same
files, one contender after the other in one run, and judged on the same held-out rows. Clusters are up and kernels are compiled
before a clock starts. One worker and two take turns. Others, once each, in interpreters that the environment names:

    HEADWATER_SPARK_PYTHON      an interpreter with pyspark (and Java on the machine): Spark MLlib's mixture
    HEADWATER_DASK_ML_PYTHON    an interpreter with dask-ml, to see whether it has a mixture
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from benchmarks import many_machines_data
from benchmarks import many_machines_values as values
from benchmarks.data import start_from
from benchmarks.density import mean_score, mixture_of
from benchmarks.many_machines_data import COMPONENTS, Rows
from benchmarks.many_machines_peers import dask_ml_says, sklearn_fit, spark_fits
from benchmarks.passes import per_pass
from benchmarks.timing import interleave
from headwater import distributed
from pages.page import Measures, Page
from pages.results import Figures

WORKERS = (1, 2)
KINDS = ("full", "diag")
WARM = 64_000  # rows in as many files, so that every worker loads its kernels
SPARK, DASK_ML = "HEADWATER_SPARK_PYTHON", "HEADWATER_DASK_ML_PYTHON"


@dataclass(frozen=True)
class Scale:
    """How much is done. Of scikit-learn: passes, threads, and rows at most (all that memory holds if None)."""

    rows: int = 10_000_000
    repeats: int = 3
    sklearn_passes: int = 10
    sklearn_threads: int = 2
    sklearn_rows: int | None = 1_000_000
    spark_passes: tuple[int, ...] = (2, 6)
    seed: int = 1000


def facts(rows: Rows) -> Figures:
    return {
        "rows": rows.rows, "files": len(rows.paths), "components": COMPONENTS, "width": rows.held_out.shape[1],
        "bytes": sum(path.stat().st_size for path in rows.paths), "held_out": len(rows.held_out),
        "truth": mean_score(rows.truth, rows.held_out),
    }  # fmt: skip


def measure_workers(scale: Scale, data: Path | None) -> Measures:
    """One pass by the workers of either cluster and by a single stream, then exact passes."""
    rows, warm = (many_machines_data.written(number, scale.seed) for number in (scale.rows, WARM))
    yield "files", partial(facts, rows)
    with ExitStack() as stack:
        clients = {n: stack.enter_context(distributed.connect(f"local:{n}")) for n in WORKERS}
        for kind in KINDS:
            for client in clients.values():
                one_pass(kind, warm, client)
            stream(kind, warm)
            yield f"one pass/{kind}", partial(streamed, kind, rows, clients, scale.repeats)
        for kind in KINDS:
            for client in clients.values():
                exact(kind, warm, client, 1)
            yield f"batch EM/{kind}", partial(passes, kind, rows, clients, scale.repeats)


def streamed(kind: str, rows: Rows, clients: dict[int, Any], repeats: int) -> Figures:
    found: dict[Any, Any] = {}

    def keep(name: Any, work: Callable[[], Any]) -> Callable[[int], None]:
        return lambda repeat: found.update({name: work()})

    contenders = {n: keep(n, partial(one_pass, kind, rows, client)) for n, client in clients.items()}
    timings = interleave({**contenders, "stream": keep("stream", partial(stream, kind, rows))}, repeats)
    fits = []
    for name, timing in timings.items():
        workers = {} if name == "stream" else {"workers": name, "report": str(found[name].distributed_report_)}
        fits.append({
            "name": "headwater, one stream" if name == "stream" else f"headwater, {name} worker{'s' if name > 1 else ''}",
            "covariance": kind, "seconds": timing.best, "rows": rows.rows, "passes": 1, "per_pass": timing.best,
            "score": score(found[name], rows), **workers,
        })  # fmt: skip
    return {"fits": fits, "pair": pair(f"one pass, {kind}", timings)}


def passes(kind: str, rows: Rows, clients: dict[int, Any], repeats: int) -> Figures:
    """Exact passes of batch EM from the truth on: a fit with three less a fit with one, halved."""
    fits = {n: partial(exact, kind, rows, client) for n, client in clients.items()}
    return {"pair": pair(f"a pass of batch EM, {kind}", per_pass(fits, repeats))}


def pair(name: str, timings: dict[Any, Any]) -> Figures:
    one, two = (timings[n] for n in WORKERS)
    return {
        "line": name, "one": one.best, "two": two.best, "ratio": one.best / two.best, "of_medians": one.median / two.median,
    }  # fmt: skip


def one_pass(kind: str, rows: Rows, client: Any) -> Any:
    return distributed.fit(mixture(kind), rows.glob, client=client)


def exact(kind: str, rows: Rows, client: Any, n_passes: int) -> Any:
    model = mixture(kind, algorithm="em", tol=0.0, max_iter=n_passes, **start_from(rows.truth, kind))
    return distributed.fit(model, rows.glob, client=client)


def stream(kind: str, rows: Rows) -> Any:
    model = mixture(kind)
    for chunk in hw.stream(rows.glob):
        model.partial_fit(chunk)
    _ = model.means_  # what a stream puts off until somebody asks is a part of it
    return model


def mixture(kind: str, **options: Any) -> Any:
    options = {"covariance_type": kind, "random_state": 0, "n_threads": 1, **options}
    return hw.GaussianMixture(COMPONENTS, **options)


def score(model: Any, rows: Rows) -> float:
    return mean_score(mixture_of(model.weights_, model.means_, model.covariances_), rows.held_out)


def measure_sklearn(scale: Scale, data: Path | None) -> Measures:
    rows = many_machines_data.written(scale.rows, scale.seed)
    for kind in KINDS:
        options = (scale.sklearn_passes, scale.sklearn_rows, scale.sklearn_threads)
        yield kind, lambda kind=kind, options=options: {"fits": [sklearn_fit(rows, kind, *options)]}


def measure_spark(scale: Scale, data: Path | None) -> Measures:
    if python := os.environ.get(SPARK):
        rows = many_machines_data.written(scale.rows, scale.seed)
        for cores, some in ((2, scale.spark_passes), (1, scale.spark_passes[:1])):
            yield f"local[{cores}]", lambda cores=cores, some=some: {"fits": [*spark_fits(rows, python, cores, [*some])]}


def measure_dask_ml(scale: Scale, data: Path | None) -> Measures:
    if python := os.environ.get(DASK_ML):
        yield "dask-ml", lambda: {"said": dask_ml_says(python)}


def absent(scale: Scale, data: Path | None) -> list[str]:
    return [f"{name} ({variable})" for name, variable in (("Spark", SPARK), ("dask-ml", DASK_ML)) if variable not in os.environ]


PAGE = Page(
    name="many_machines", room="benchmarks", full=Scale(), minutes=15, seeds="1000",
    quick=Scale(rows=160_000, repeats=1, sklearn_passes=2, spark_passes=(2, 4)),
    parts={"workers": measure_workers, "sklearn": measure_sklearn, "spark": measure_spark, "dask_ml": measure_dask_ml},
    values={"workers": values.workers, "dask_ml": values.dask_ml}, names={"code": values}, absent=absent,
    silent=(ConvergenceWarning,),
)  # fmt: skip
