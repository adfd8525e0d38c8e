"""python -m benchmarks.start_costs: seconds and scores at many shapes, ours beside a peer's, one line a method.

Parts: `large` (many components of many columns), `tables` (real ones of some thousand rows, if HEADWATER_DATA has them; a
fit stands beside one pass there), `iris` and `fixed` (120,000 rows of ten components). Seconds are CPU seconds of one thread;
those of one pass have the first reading in them. Scores are nats a row on rows held out.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Peer

from benchmarks.data import Array, make_truth
from benchmarks.start_costs_data import CHOSEN_ON, LARGE, TOLD_OF, Large, Table, data_folder, draw_large, part
from benchmarks.timing import one_thread
from headwater import GaussianMixture

CHUNK = 10_000
FLOOR = 1e-3  # of covariances, for both libraries: values of tables repeat
KINDS = ("full", "tied", "diag", "spherical")


@dataclass(frozen=True)
class CostLine:
    """Cost and score of one method at one shape; `peer` names the library. The score is nats per held-out row."""

    shape: str
    method: str
    peer: str
    seconds: float
    score: float
    index: float = float("nan")  # adjusted Rand index, where components are known
    number: int = 0  # of the set

    def __str__(self) -> str:
        index = "" if np.isnan(self.index) else f" {self.index:6.3f}"
        return (
            f"{self.shape:28} {self.number:3} {self.peer:13} {self.method:28} {self.seconds:9.4f} s {self.score:11.4f}{index}"
        )


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = process_time()
    result = work()
    return process_time() - begin, result


def stream(model: GaussianMixture, rows: Array) -> GaussianMixture:
    """Learn rows in chunks, and read."""
    for at in range(0, len(rows), CHUNK):
        model.partial_fit(rows[at : at + CHUNK])
    _ = model.weights_
    return model


def large(numbers: Sequence[int], seed: int, shapes: Sequence[Large] = LARGE) -> Iterator[CostLine]:
    for shape in shapes:
        kind, k = shape.covariance_type, shape.n_components
        for number in numbers:
            known = draw_large(shape, number, seed)
            rows, held_out, labels = known.rows, known.held_out, known.held_out_labels
            if number == numbers[0]:
                compile_kernels(shape, rows)

            def line(method: str, peer: str, seconds: float, model: Any, score: float, number: int = number) -> CostLine:
                index = float(adjusted_rand_score(labels, model.predict(held_out)))  # noqa: B023
                return CostLine(str(shape), method, peer, seconds, score, index, number)  # noqa: B023

            model = GaussianMixture(k, covariance_type=kind, random_state=number, n_threads=1)
            seconds, model = timed(lambda: stream(model, rows))  # noqa: B023
            score = float(model.score(held_out))
            yield line("one pass and reading", "headwater", seconds, model, score)
            begun = {"weights_init": model.weights_, "means_init": model.means_, "precisions_init": model.precisions_}
            options = {"covariance_type": kind, "tol": 0.0, "random_state": 0, **begun}
            ours, theirs = GaussianMixture(k, algorithm="em", n_threads=1, **options), Peer(k, **options)
            yield line("EM pass", "headwater", pass_seconds(ours, rows), ours, float(ours.score(held_out)))
            yield line("EM pass", "scikit-learn", pass_seconds(theirs, rows), theirs, float(theirs.score(held_out)))
            means = MiniBatchKMeans(k, n_init=1, max_iter=3, random_state=number)
            seconds, _ = timed(lambda: means.fit(rows))  # noqa: B023
            yield line("k-means of mini-batches", "scikit-learn", seconds, means, float("nan"))


def pass_seconds(model: Any, rows: Array, passes: int = 5, tries: int = 2) -> float:
    """Seconds of one pass of EM: those of a fit with more, less those of a fit with one."""
    found = [min(timed(lambda: model.set_params(max_iter=n).fit(rows))[0] for _ in range(tries)) for n in (1, passes)]  # noqa: B023
    return (found[1] - found[0]) / (passes - 1)


def compile_kernels(shape: Large, rows: Array) -> None:
    for k, some in ((2, rows[:3000, :4]), (shape.n_components, rows[:6000])):
        _ = GaussianMixture(k, covariance_type=shape.covariance_type, n_threads=1, warm_up=2000).partial_fit(some).weights_


def tables(numbers: Sequence[int], seed: int, some: Sequence[Table] = (*CHOSEN_ON, *TOLD_OF)) -> Iterator[CostLine]:
    """One pass over a real table and a fit, beside a fit of scikit-learn, with another seed and order each time."""
    for table in some:
        X = table.read(data_folder())
        if X is None:
            continue
        learned, held_out = part(X)
        k = table.n_components
        shape = f"{table.name}, {len(learned)} rows, K{k} d{X.shape[1]}"
        _ = stream(GaussianMixture(k, reg_covar=FLOOR, n_threads=1, random_state=99), learned[:6000])
        for number in numbers:
            rows = learned[np.random.default_rng((seed, number)).permutation(len(learned))]
            options = {"reg_covar": FLOOR, "random_state": number}
            model = GaussianMixture(k, n_threads=1, **options)
            for method, peer, work in (
                ("one pass and reading", "headwater", lambda: stream(model, rows)),  # noqa: B023
                ("fit", "headwater", lambda: GaussianMixture(k, n_threads=1, **options).fit(rows)),  # noqa: B023
                ("fit em", "headwater", lambda: GaussianMixture(k, n_threads=1, algorithm="em", **options).fit(rows)),  # noqa: B023
                ("fit", "scikit-learn", lambda: Peer(k, **options).fit(rows)),  # noqa: B023
            ):
                seconds, found = timed(work)
                yield CostLine(shape, method, peer, seconds, float(found.score(held_out)), number=number)


def iris(numbers: Sequence[int], seed: int) -> Iterator[CostLine]:
    """Small fits: medians over seeds; scores are those of the rows learned."""
    rows = load_iris().data
    for kind in KINDS:
        for peer, make in (("headwater", GaussianMixture), ("scikit-learn", Peer)):
            found, scores = [], []
            for repeat in range(-1, 10 * len(numbers)):
                model = make(3, covariance_type=kind, random_state=seed + repeat + 1)
                seconds, _ = timed(lambda: model.fit(rows))  # noqa: B023
                if repeat >= 0:  # the one before the first compiles
                    found.append(seconds)
                    scores.append(float(model.score(rows)))
            yield CostLine(f"iris {kind} K3", "fit", peer, float(np.median(found)), float(np.mean(scores)))


def fixed(numbers: Sequence[int], seed: int) -> Iterator[CostLine]:
    """120,000 rows of ten components with ten columns: most of the cost does not grow with the rows."""
    methods: dict[str, Callable[[Array, int], GaussianMixture]] = {
        "fit": lambda rows, at: GaussianMixture(10, random_state=at, n_threads=1).fit(rows),
        "one pass and reading": lambda rows, at: stream(GaussianMixture(10, random_state=at, n_threads=1), rows),
        "online-em": lambda rows, at: GaussianMixture(10, random_state=at, n_threads=1, algorithm="online-em").fit(rows),
    }
    for number in numbers:
        rng = np.random.default_rng((seed, number))
        truth = make_truth(10, 10, rng, 0.8)
        rows, held_out = truth.sample(120_000, rng), truth.sample(50_000, rng)
        for method, work in methods.items():
            if number == numbers[0]:
                work(rows[:30_000], 99)
            seconds, model = timed(lambda: work(rows, number))  # noqa: B023
            yield CostLine("K10 d10 120,000 rows", method, "headwater", seconds, float(model.score(held_out)), number=number)
        seconds, peer = timed(lambda: Peer(10, random_state=number).fit(rows))  # noqa: B023
        yield CostLine("K10 d10 120,000 rows", "fit", "scikit-learn", seconds, float(peer.score(held_out)), number=number)


PARTS: dict[str, Callable[[Sequence[int], int], Iterator[CostLine]]] = {
    "large": large,
    "tables": tables,
    "iris": iris,
    "fixed": fixed,
}


def measure(parts: Sequence[str], numbers: Sequence[int], seed: int) -> Iterator[CostLine]:
    """Yield the lines of some parts."""
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in parts:
            yield from PARTS[name](numbers, seed)


def ratios(found: Sequence[CostLine]) -> Iterator[str]:
    """Yield the times of each shape's methods by those of one fit of scikit-learn, and how far `fit` ends from one pass."""
    for shape in dict.fromkeys(line.shape for line in found):
        runs: dict[tuple[str, str], list[CostLine]] = {}
        for line in found:
            if line.shape == shape:
                runs.setdefault((line.peer, line.method), []).append(line)
        peer = runs.get(("scikit-learn", "fit"))
        for (name, method), lines in runs.items():
            if name == "headwater" and peer is not None and len(lines) == len(peer):
                pairs = list(zip(lines, peer, strict=True))
                ratio = float(np.median([one.seconds / other.seconds for one, other in pairs]))
                gain = float(np.mean([one.score - other.score for one, other in pairs]))
                yield f"{shape:28} {method:28} {ratio:6.2f} of scikit-learn's time, {gain:+9.4f} nats a row beside its fit"
        passes, fits = (runs.get(("headwater", method), []) for method in ("one pass and reading", "fit"))
        if passes and len(passes) == len(fits):
            gains = np.array([one.score - other.score for one, other in zip(fits, passes, strict=True)])
            error = float(gains.std(ddof=1)) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
            yield f"{shape:28} fit beside one pass          {gains.mean():+9.4f} nats a row, standard error {error:.4f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="with commas between")
    parser.add_argument("--first", type=int, default=0, help="number of the first set")
    parser.add_argument("--sets", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shape", help="only large shapes, or tables, whose name begins so")
    parser.add_argument("--out", type=Path, help="a file of JSON lines")
    options = parser.parse_args(arguments)
    if options.shape:
        PARTS["large"] = lambda numbers, seed: large(
            numbers, seed, [one for one in LARGE if str(one).startswith(options.shape)]
        )
        PARTS["tables"] = lambda numbers, seed: tables(
            numbers, seed, [one for one in (*CHOSEN_ON, *TOLD_OF) if one.name.startswith(options.shape)]
        )
    numbers = range(options.first, options.first + options.sets)
    found = []
    for line in measure(options.parts.split(","), numbers, options.seed):
        print(line, flush=True)
        found.append(line)
    for told in ratios(found):
        print(told)
    if options.out:
        options.out.write_text("".join(json.dumps(asdict(line)) + "\n" for line in found))


if __name__ == "__main__":
    main()
