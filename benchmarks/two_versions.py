"""Two versions of the package, beside each other: ``python -m benchmarks.two_versions OLD_SOURCE NEW_SOURCE``.

Each version runs in a process of its own. They take turns, case by case, and what is compared are CPU seconds of one thread:
the median of the turns of each, and their ratio. Where arrays lie in memory is chance, and stays as it is while a process
lives: by it alone, cases of a few milliseconds differ by a quarter. So both are started several times.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

REPEATS = 3
STARTS = 5


def cases() -> dict[str, Callable[[], object]]:
    """Return the timed cases by name; rows and models are made here, and each case runs once, so that kernels are loaded."""
    import numpy as np
    from scipy.sparse import random_array

    import headwater as hw

    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(10, 10))
    rows = centres[rng.integers(10, size=100_000)] + rng.normal(size=(100_000, 10))
    wide = rng.normal(size=(8, 50))[rng.integers(8, size=20_000)] * 3.0 + rng.normal(size=(20_000, 50))
    counts = rng.poisson(0.3 + 2.0 * rng.gamma(0.3, size=(5, 200)))[rng.integers(5, size=4000)].astype(float)
    documents = random_array((2000, 500), density=0.05, rng=rng, data_sampler=lambda size: rng.integers(1, 5, size=size))
    documents = documents.astype(float).tocsr()
    spectra = rng.gamma(1.0, size=(300, 4)) @ rng.gamma(0.5, size=(4, 40)) + 1e-3
    symbols = rng.integers(6, size=(20_000, 1))
    target = rows[:20_000, :3] @ np.array([1.0, -2.0, 0.5]) + rng.normal(size=20_000)
    few = rows[:3000]
    one = list(rows[:400])

    def stream(kind: str, X: object, chunk: int, **settings: object) -> Callable[[], object]:
        def run() -> object:
            model = getattr(hw, kind)(random_state=0, n_threads=1, **settings)
            for at in range(0, X.shape[0], chunk):  # type: ignore[attr-defined]
                model.partial_fit(X[at : at + chunk])  # type: ignore[index]
            return model

        return run

    def fit(kind: str, X: object, **settings: object) -> Callable[[], object]:
        return lambda: getattr(hw, kind)(random_state=0, n_threads=1, **settings).fit(X)

    def read(run: Callable[[], object]) -> Callable[[], object]:
        return lambda: run().means_  # type: ignore[attr-defined]

    def regression() -> object:
        model = hw.RegressionMixture(2, random_state=0, n_threads=1, algorithm="online-em")
        for at in range(0, 20_000, 2000):
            model.partial_fit(rows[at : at + 2000, :3], target[at : at + 2000])
        return model

    def merge() -> object:
        base = hw.GaussianMixture(10, random_state=0, n_threads=1).warm_start_from(rows[:5000])
        parts = [base.branch().partial_fit(rows[at : at + 5000]) for at in range(5000, 45_000, 5000)]
        return hw.merge(parts)

    fitted = hw.GaussianMixture(10, random_state=0, n_threads=1, algorithm="em", max_iter=5, tol=0.0).fit(rows[:20_000])
    slow = hw.GaussianMixture(10, random_state=0, n_threads=1, algorithm="online-em").partial_fit(rows[:20_000])

    def one_by_one() -> object:
        for row in one:
            slow.learn_one(row)
        return slow

    found: dict[str, Callable[[], object]] = {
        f"EM, {kind} (passes)": fit(
            "GaussianMixture", rows, n_components=10, algorithm="em", covariance_type=kind, max_iter=10, tol=0.0,
            init_params="random_from_data",
        )
        for kind in ("full", "diag", "tied", "spherical")
    }  # fmt: skip
    for kind in ("full", "diag"):
        options = {"n_components": 10, "covariance_type": kind}
        found[f"online EM, {kind}"] = stream("GaussianMixture", rows, 5000, algorithm="online-em", **options)
        found[f"online VB, {kind}"] = stream("GaussianMixture", rows, 5000, algorithm="online-vb", **options)
        found[f"Bayesian online EM, {kind} (row_sweep)"] = stream(
            "GaussianMixture", rows[:20_000], 5000, algorithm="boem", **options
        )
        found[f"moment matching, {kind}"] = stream(
            "GaussianMixture", rows[:10_000], 1000, algorithm="moment-matching", **{**options, "warm_up": 1000}
        )
    found |= {
        "online EM, 50 columns": stream("GaussianMixture", wide, 1000, n_components=8, algorithm="online-em", warm_up=2000),
        "auto, without reading": stream("GaussianMixture", rows, 5000, n_components=10),
        "auto, with a reading (refinement)": read(stream("GaussianMixture", rows, 5000, n_components=10)),
        "auto, chunks of 100 rows": stream("GaussianMixture", rows[:20_000], 100, n_components=10),
        "growth (choices)": read(stream("GaussianMixture", few, 1000, n_components="auto")),
        "drift": stream("GaussianMixture", rows[:40_000], 2000, n_components=10, half_life="auto"),
        "fit, defaults (converge)": fit("GaussianMixture", rows[:20_000], n_components=10),
        "fit of 150 rows (small_fit)": fit("GaussianMixture", rows[:150, :4], n_components=3),
        "score_samples (scoring)": lambda: fitted.score_samples(rows),
        "predict_proba": lambda: fitted.predict_proba(rows),
        "learn_one, 400 rows (one_row)": one_by_one,
        "score_one, 400 rows": lambda: [slow.score_one(row) for row in one],
        "regression": regression,
        "merge of 8": merge,
        "counts": stream("MultinomialMixture", counts, 500, n_components=5),
        "counts, fit": fit("MultinomialMixture", counts, n_components=5),
        "topics": stream("LatentDirichletAllocation", documents, 500, n_components=5),
        "spectra": stream("ItakuraSaitoNMF", spectra, 100, n_components=4),
        "chains": stream("GaussianHMM", rows[:20_000, :3], 2000, n_components=4),
        "chains of symbols": stream("CategoricalHMM", symbols, 2000, n_components=3),
    }
    return found


def answer() -> None:
    """Answer each line of standard input, the name of a case, by its CPU seconds; a case that cannot run gets an empty line."""
    import warnings

    from threadpoolctl import threadpool_limits

    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1):
        known = cases()
        print(json.dumps(list(known)), flush=True)
        for line in sys.stdin:
            begin = process_time()
            known[line.strip()]()
            print(process_time() - begin, flush=True)


class Version:
    """A process that runs the cases with the sources of one version."""

    def __init__(self, source: Path) -> None:
        script = Path(__file__).resolve()
        environment = {**os.environ, "PYTHONPATH": f"{source}", "NUMBA_CACHE_DIR": f"{source.parent / '.two_versions'}"}
        self.process = subprocess.Popen(
            [sys.executable, f"{script}", "--answer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.names: list[str] = json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a version ended with {self.process.wait()}")
        return line

    def seconds(self, name: str) -> float:
        """Run a case, and return its CPU seconds."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        return float(self._line())

    def end(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def chosen(name: str, words: list[str]) -> bool:
    """Whether a case is asked for: its name holds one of the words, or there are none."""
    return not words or any(word in name for word in words)


def time_turns(given: argparse.Namespace) -> dict[str, tuple[list[float], list[float]]]:
    """Start both versions and let them take turns; return the CPU seconds of each case, of the old and of the new one."""
    versions = Version(given.old), Version(given.new)
    wanted = [name for at, name in enumerate(versions[0].names) if at % given.parts == given.part and chosen(name, given.only)]
    spent: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in wanted}
    for name, both in spent.items():
        for turn in range(given.repeats + 1):
            for version, seconds in zip(versions, both, strict=True):
                took = version.seconds(name)
                if turn:  # the first turn loads kernels
                    seconds.append(took)
    for version in versions:
        version.end()
    return spent


def main() -> None:
    """Print a table: medians of CPU seconds of both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="the src folder of one version")
    parser.add_argument("new", type=Path, help="the src folder of the other")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="turns of each pair of processes")
    parser.add_argument("--starts", type=int, default=STARTS, help="pairs of processes, one after the other")
    parser.add_argument("--only", action="append", default=[], help="cases whose name holds this; may be given several times")
    parser.add_argument("--parts", type=int, default=1, help="parts that the cases are dealt to")
    parser.add_argument("--part", type=int, default=0, help="the part that is measured, from 0")
    given = parser.parse_args()
    runs = [time_turns(given) for _ in range(given.starts)]
    print("| case | old, CPU s | new, CPU s | new / old | of each start |\n|---|---|---|---|---|")
    for name in runs[0]:
        old, new = (median(took for run in runs for took in run[name][at]) for at in (0, 1))
        each = ", ".join(f"{median(run[name][1]) / median(run[name][0]):.2f}" for run in runs)
        print(f"| {name} | {old:.4f} | {new:.4f} | {new / old:.3f} | {each} |", flush=True)


if __name__ == "__main__":
    answer() if sys.argv[1:] == ["--answer"] else main()
