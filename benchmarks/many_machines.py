"""python -m benchmarks.many_machines [--rows N]: a mixture from a folder of Parquet files, by one worker, two, and others.

Everything is learned from the same files, one contender after the other in one run, and judged on the same rows, which nobody
learned from. Clusters are up and kernels are compiled before a clock starts. One worker and two take turns. Others, once each:

    --spark-python PATH       an interpreter with pyspark (and Java on the machine): Spark MLlib's mixture
    --dask-ml-python PATH     an interpreter with dask-ml, to see whether it has an answer
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from benchmarks import many_machines_data, page
from benchmarks.data import start_from
from benchmarks.density import mean_score, mixture_of
from benchmarks.many_machines_data import COMPONENTS, Rows
from benchmarks.many_machines_page import PAGE
from benchmarks.many_machines_peers import dask_ml_says, sklearn_fits, spark_fits
from benchmarks.passes import per_pass
from benchmarks.timing import interleave, one_thread
from headwater import distributed

WORKERS = (1, 2)
KINDS = ("full", "diag")
WARM = 64_000  # rows in as many files, so that every worker loads its kernels


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    page.run(PAGE, options, partial(measure, options))


def parser() -> argparse.ArgumentParser:
    result = page.parser(PAGE, __doc__)
    result.add_argument("--rows", type=int, help="rows in all (10,000,000; a quick run 160,000)")
    result.add_argument("--go-on", action="store_true", help="keep the figures there are, and measure others only")
    result.add_argument("--folder", type=Path, help="where files are kept from run to run; that of temporary files by default")
    result.add_argument("--repeats", type=int, default=3, help="turns of one worker and two; the best counts")
    result.add_argument("--sklearn-passes", type=int, default=20, help="max_iter of scikit-learn; 0 leaves it out")
    result.add_argument("--sklearn-rows", type=int, help="at most so many; all that memory holds by default")
    result.add_argument("--sklearn-threads", type=int, default=2, help="of its products of matrices")
    result.add_argument("--spark-python", metavar="PATH", help="an interpreter with pyspark; left out by default")
    result.add_argument("--spark-passes", type=int, nargs="*", default=[2, 10, 30], help="maxIter of its fits, 100 by itself")
    result.add_argument("--dask-ml-python", metavar="PATH", help="an interpreter with dask-ml; not asked by default")
    return result


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    size = options.rows or (160_000 if options.quick else 10_000_000)
    rows = many_machines_data.written(size, options.seed, options.folder)
    warm = many_machines_data.written(WARM, options.seed, options.folder)
    figures: dict[str, Any] = {
        "rows": size, "files": len(rows.paths), "components": COMPONENTS, "width": rows.held_out.shape[1],
        "bytes": sum(path.stat().st_size for path in rows.paths), "held_out": len(rows.held_out),
        "truth": mean_score(rows.truth, rows.held_out), "fits": [], "pairs": [],
        "spark": options.spark_python is not None, "dask_ml": dask_ml_says(options.dask_ml_python),
    }  # fmt: skip
    if options.go_on:
        known = json.loads((options.out / f"{PAGE.name}.json").read_text(encoding="utf-8"))
        if known["rows"] != size:
            raise SystemExit(f"the figures in {options.out} are of {known['rows']:,} rows")
        figures |= {name: known[name] for name in ("fits", "pairs")}
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for entry in () if options.go_on else ours(rows, warm, 1 if options.quick else options.repeats):
            said(entry)
            figures["pairs" if "one" in entry else "fits"].append(entry)
            yield figures
    for entry in others(rows, options):
        said(entry)
        figures["fits"].append(entry)
        yield figures


def said(entry: dict[str, Any]) -> None:
    """One line on the screen for what was measured just now."""
    shown = {name: value for name, value in entry.items() if name != "report"}
    print(
        "  ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{value}" for name, value in shown.items()),
        flush=True,
    )


def ours(rows: Rows, warm: Rows, repeats: int) -> Iterator[dict[str, Any]]:
    """One pass by the workers of either cluster and by a single stream, then exact passes."""
    with ExitStack() as stack:
        clients = {n: stack.enter_context(distributed.connect(f"local:{n}")) for n in WORKERS}
        for kind in KINDS:
            for client in clients.values():
                one_pass(kind, warm, client)
            stream(kind, warm)
            yield from streamed(kind, rows, clients, repeats)
        for kind in KINDS:
            for client in clients.values():
                exact(kind, warm, client, 1)
            yield from passes(kind, rows, clients, repeats)


def streamed(kind: str, rows: Rows, clients: dict[int, Any], repeats: int) -> Iterator[dict[str, Any]]:
    found: dict[Any, Any] = {}

    def keep(name: Any, work: Callable[[], Any]) -> Callable[[int], None]:
        return lambda repeat: found.update({name: work()})

    contenders = {n: keep(n, partial(one_pass, kind, rows, client)) for n, client in clients.items()}
    timings = interleave({**contenders, "stream": keep("stream", partial(stream, kind, rows))}, repeats)
    for name, timing in timings.items():
        workers = {} if name == "stream" else {"workers": name, "report": str(found[name].distributed_report_)}
        yield {
            "name": "headwater, one stream" if name == "stream" else f"headwater, {name} worker{'s' if name > 1 else ''}",
            "covariance": kind, "seconds": timing.best, "rows": rows.rows, "passes": 1, "per_pass": timing.best,
            "score": score(found[name], rows), **workers,
        }  # fmt: skip
    yield pair(f"one pass, {kind}", timings)


def passes(kind: str, rows: Rows, clients: dict[int, Any], repeats: int) -> Iterator[dict[str, Any]]:
    """Exact passes of batch EM from the truth on: a fit with three less a fit with one, halved."""
    fits = {n: partial(exact, kind, rows, client) for n, client in clients.items()}
    yield pair(f"a pass of batch EM, {kind}", per_pass(fits, repeats))


def pair(name: str, timings: dict[Any, Any]) -> dict[str, Any]:
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


def others(rows: Rows, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if options.sklearn_passes:
        for kind in KINDS:
            number = 2 if options.quick else options.sklearn_passes
            yield from sklearn_fits(rows, kind, number, options.sklearn_rows, options.sklearn_threads)
    if options.spark_python:
        every = [2, 4] if options.quick else options.spark_passes
        yield from spark_fits(rows, options.spark_python, 2, every)
        yield from spark_fits(rows, options.spark_python, 1, every[:2])


if __name__ == "__main__":
    main()
