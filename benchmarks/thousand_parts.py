"""python -m benchmarks.thousand_parts: what a round of 10 to 1,000 parts costs on this machine, against the cost model.

The constants of `thousand_parts_model` are measured one by one (`thousand_parts_pieces`), and then real runs of
`hw.distributed.fit` by two worker processes, whose rounds the model has to foretell. The same code foretells what no machine
here can run: 10^12 rows by 1,000 workers. Then the messages of large tables of words (`thousand_parts_words`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from math import nan
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

import headwater as hw
from benchmarks import page, thousand_parts_words
from benchmarks.data import make_truth
from benchmarks.files import write_parquet
from benchmarks.thousand_parts_model import Constants, pass_costs
from benchmarks.thousand_parts_page import PAGE
from benchmarks.thousand_parts_pieces import FEW, LONG, Bench, of_dask, of_tasks, on_workers
from benchmarks.timing import one_thread, timed
from headwater import distributed

COMPONENTS = WIDTH = 10
ROWS = 4096
WORKERS = 2
RUNS = ((10, 1), (100, 1), (300, 1), (1000, 1), (1000, 4))  # parts and rounds
QUICK = ((3, 1), (8, 2))
FILES = {"long": 4, "few": 40}  # by which tasks are measured
MIDDLE = 8  # ... and so many parts


def main(arguments: Sequence[str] | None = None) -> None:
    result = page.parser(PAGE, __doc__)
    result.add_argument("--repeats", type=int, default=3, help="of the constants of tasks; the medians count")
    result.add_argument("--no-words", action="store_true", help="leave out the tables of words")
    options = result.parse_args(arguments)
    page.run(PAGE, options, partial(measure, options))


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    runs = QUICK if options.quick else RUNS
    figures: dict[str, Any] = {
        "rows": ROWS, "long": LONG, "few": FEW, "components": COMPONENTS, "width": WIDTH, "workers": WORKERS,
        "runs": [], "words": [],
    }  # fmt: skip
    with one_thread(), TemporaryDirectory(prefix="headwater-parts-") as folder:
        full, long, few = written(Path(folder), max(parts for parts, _ in runs), options.seed)
        bench = Bench.of(long, full[:MIDDLE], ROWS, few, begun(long))
        with distributed.connect(f"local:{WORKERS}") as client:
            run(client, full[:10], 1)  # kernels are loaded
            constants_of = partial(pieces, client, bench, options)
            before = constants_of()
            found = [run(client, full[:parts], rounds) for parts, rounds in runs]
            after = constants_of()
            kept = Path(folder) / "kept.hw"
            model = fit(client, full[: runs[0][0]], 1, checkpoint=kept)
            checkpoint = kept.stat().st_size
            keep = median(timed(model.save, Path(folder) / "model.hw")[0] for _ in range(5))
    largest = max(found, key=lambda one: one["parts"])
    # The machine may be busier at one time than at another: what lies between was made under the mean of both.
    measured: dict[str, Any] = {name: (before[name] + after[name]) / 2 for name in before}
    rate = measured.pop("tasks_a_second")
    bytes_of = {name: round(measured.pop(name)) for name in ("message", "scores", "model")}
    constants = Constants(
        **measured, **bytes_of,
        look=largest["look"] / largest["parts"], start=median(one["start"] for one in found), keep=keep,
        checkpoint=checkpoint, row=8 * WIDTH,
    )  # fmt: skip
    figures |= {"constants": asdict(constants), "tasks_a_second": rate}
    for one in found:
        one["foretold"] = foretold(constants, one)
        print("  ".join(f"{name} {value}" for name, value in one.items()), flush=True)
        figures["runs"].append(one)
    yield figures
    if not options.no_words:
        for entry in thousand_parts_words.tables(options.seed, options.quick):
            print("  ".join(str(value) for value in entry.values()), flush=True)
            figures["words"].append(entry)
        yield figures


def pieces(client: Any, bench: Bench, options: argparse.Namespace) -> dict[str, float]:
    """Return the constants that are measured without a run."""
    found = of_tasks(bench, 1 if options.quick else options.repeats)
    return {**found, **of_dask(client, bench, 30 if options.quick else 1000)}


def written(folder: Path, parts: int, seed: int) -> list[list[Path]]:
    """Write a file for every part, some with many rows and some with a few; return their paths."""
    rng = np.random.default_rng(seed)
    truth = make_truth(COMPONENTS, WIDTH, rng)
    paths = []
    for name, number, rows in (("part", parts, ROWS), ("long", FILES["long"], LONG), ("few", FILES["few"], FEW)):
        paths.append([folder / f"{name}-{at:04d}.parquet" for at in range(number)])
        for path in paths[-1]:
            write_parquet(truth.sample(rows, rng), path)
    return paths


def mixture() -> Any:
    return hw.GaussianMixture(COMPONENTS, random_state=0, n_threads=1)


def begun(paths: Sequence[Path]) -> Any:
    """Return a model that has learned some files, which parts are to begin with."""
    model = mixture()
    for chunk in hw.stream([str(path) for path in paths]):
        model.partial_fit(**chunk)
    return model.branch()


def fit(client: Any, paths: Sequence[Path], rounds: int, **more: Any) -> Any:
    return distributed.fit(mixture(), [str(path) for path in paths], client=client, rounds=rounds, **more)


@dataclass
class Clock:
    """When each stage began, and what workers and this process had spent when rounds began."""

    client: Any
    began: dict[str, float] = field(default_factory=dict)
    workers: float = nan
    here: float = nan

    def __call__(self, step: Any) -> None:
        if step.stage not in self.began:
            self.began[step.stage] = perf_counter()
            if step.stage == "learning":
                self.workers, self.here = on_workers(self.client), process_time()


def run(client: Any, paths: Sequence[Path], rounds: int) -> dict[str, Any]:
    """Learn some files; return what it took and what was moved."""
    clock = Clock(client)
    begin = perf_counter()
    report = fit(client, paths, rounds, watch=clock).distributed_report_
    here, workers = process_time() - clock.here, on_workers(client) - clock.workers
    return {
        "parts": report.parts, "rounds": len(report.rounds),
        "of_a_round": [one.parts for one in report.rounds],
        "rows": sum(one.rows for one in report.rounds),
        "look": clock.began["starting"] - begin,
        "start": clock.began["learning"] - clock.began["starting"],
        "seconds": sum(one.seconds for one in report.rounds),
        "workers": workers, "scheduler": here,
        "message": max(one.message for one in report.rounds), "model": max(one.sent for one in report.rounds),
        "merged": sum(one.merged for one in report.rounds), "path": sum(one.path for one in report.rounds),
    }  # fmt: skip


def foretold(constants: Constants, one: dict[str, Any]) -> dict[str, float]:
    """Return what the model says of a run, whose rounds come one after the other."""
    costs = pass_costs(constants, one["of_a_round"], ROWS, WORKERS)
    return {
        "seconds": sum(cost.on(WORKERS) for cost in costs),
        "workers": sum(cost.workers for cost in costs),
        "scheduler": sum(cost.scheduler for cost in costs),
        "merged": sum((parts - 1) * one["message"] for parts in one["of_a_round"]),
        "path": sum(cost.depth * one["message"] for cost in costs),
    }


if __name__ == "__main__":
    main()
