"""What a round of 10 to 1,000 parts costs on this machine, against the cost model.

``python -m pages thousand_parts`` measures it and writes docs/benchmarks/thousand_parts.md: the constants of
`thousand_parts_model`, one by one (`thousand_parts_pieces`); real runs of `hw.distributed.fit` by two worker processes, whose
rounds the model has to predict; and the messages of large tables of words (`thousand_parts_words`).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from benchmarks import thousand_parts_values as values
from benchmarks import thousand_parts_words
from benchmarks.data import make_truth
from benchmarks.files import write_parquet
from benchmarks.thousand_parts_model import LINK, Constants, pass_costs
from benchmarks.thousand_parts_pieces import FEW, LONG, Bench, of_dask, of_tasks, on_workers
from benchmarks.timing import one_thread, timed
from headwater import distributed
from pages.page import Measures, Page
from pages.results import Figures

COMPONENTS = WIDTH = 10
ROWS = 4096
WORKERS = 2
RUNS = ((10, 1), (100, 1), (300, 1), (1000, 1), (1000, 4))  # parts and rounds
FILES = {"long": 4, "few": 40}  # by which tasks are measured
MIDDLE = 8  # ... and so many parts


@dataclass(frozen=True)
class Scale:
    """How much is done: parts and rounds of the runs, repeats of the constants of tasks, and how large tables of words are."""

    runs: tuple[tuple[int, int], ...] = RUNS
    repeats: int = 3
    nothing: int = 1000  # tasks that do nothing
    words: int = thousand_parts_words.WORDS
    components: int = thousand_parts_words.COMPONENTS
    documents: tuple[int, ...] = thousand_parts_words.DOCUMENTS
    seed: int = 1000


def measure_runs(scale: Scale, data: Path | None) -> Measures:
    yield "runs", partial(constants_and_runs, scale)


def constants_and_runs(scale: Scale) -> Figures:
    """The constants, before and after the runs; and the runs."""
    with one_thread(), TemporaryDirectory(prefix="headwater-parts-") as folder:
        full, long, few = written(Path(folder), max(parts for parts, _ in scale.runs), scale.seed)
        bench = Bench.of(long, full[:MIDDLE], ROWS, few, begun(long))
        with distributed.connect(f"local:{WORKERS}") as client:
            run(client, full[:10], 1)  # kernels are loaded
            before = pieces(client, bench, scale)
            found = [run(client, full[:parts], rounds) for parts, rounds in scale.runs]
            after = pieces(client, bench, scale)
            kept = Path(folder) / "kept.hw"
            model = fit(client, full[: scale.runs[0][0]], 1, checkpoint=kept)
            checkpoint = kept.stat().st_size
            keep = median(timed(model.save, Path(folder) / "model.hw")[0] for _ in range(5))
    largest = max(found, key=lambda one: one["parts"])
    # The load of the machine may change: runs are compared with the mean of the constants before and after.
    measured: dict[str, Any] = {name: (before[name] + after[name]) / 2 for name in before}
    rate = measured.pop("tasks_a_second")
    bytes_of = {name: round(measured.pop(name)) for name in ("message", "scores", "model")}
    constants = Constants(
        **measured, **bytes_of,
        look=largest["look"] / largest["parts"], start=median(one["start"] for one in found), keep=keep,
        checkpoint=checkpoint, row=8 * WIDTH,
    )  # fmt: skip
    return {
        "rows": ROWS, "long": LONG, "few": FEW, "components": COMPONENTS, "width": WIDTH, "workers": WORKERS,
        "constants": asdict(constants), "tasks_a_second": rate,
        "runs": [{**one, "predicted": predicted(constants, one)} for one in found],
    }  # fmt: skip


def measure_words(scale: Scale, data: Path | None) -> Measures:
    for kind in thousand_parts_words.KINDS:
        for number in scale.documents:
            yield f"{kind.__name__}/{number}", partial(thousand_parts_words.table_set, kind, number, scale)


def pieces(client: Any, bench: Bench, scale: Scale) -> dict[str, float]:
    """Return the constants that are measured without a run."""
    return {**of_tasks(bench, scale.repeats), **of_dask(client, bench, scale.nothing)}


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


def predicted(constants: Constants, one: dict[str, Any]) -> dict[str, float]:
    """Return what the model says of a run, whose rounds come one after the other."""
    costs = pass_costs(constants, one["of_a_round"], ROWS, WORKERS)
    return {
        "seconds": sum(cost.on(WORKERS) for cost in costs),
        "workers": sum(cost.workers for cost in costs),
        "scheduler": sum(cost.scheduler for cost in costs),
        "merged": sum((parts - 1) * one["message"] for parts in one["of_a_round"]),
        "path": sum(cost.depth * one["message"] for cost in costs),
    }


PAGE = Page(
    name="thousand_parts", room="benchmarks", full=Scale(), minutes=4, seeds="1000",
    quick=Scale(((3, 1), (8, 2)), 1, 30, 1000, 5, (50, 500)),
    parts={"runs": measure_runs, "words": measure_words},
    values={"runs": values.runs, "words_of_parts": values.words_of_parts}, names={"code": values, "LINK": LINK},
)  # fmt: skip
