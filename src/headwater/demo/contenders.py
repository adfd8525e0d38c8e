"""The contenders of the demo: headwater on the stream, scikit-learn on all rows; each may run in its own process."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection

import numpy as np

from headwater.core.statistics import Array
from headwater.demo.memory import memory_since, reset_peak_memory
from headwater.demo.truth import CHUNK_ROWS, COMPONENTS, WIDTH, Truth, held_out_rows, make_stream


@dataclass(frozen=True)
class Moment:
    """The progress of a contender: rows learned, seconds spent on them, held-out score and weights."""

    rows: int
    seconds: float
    score: float
    weights: Array


@dataclass(frozen=True)
class Result:
    """What a contender found, and its cost. Memory is the peak in bytes over what was held before the rows."""

    weights_: Array
    means_: Array
    covariances_: Array
    seconds: float
    score: float
    passes: int
    memory: float | None = None
    moments: list[Moment] = field(default_factory=list)
    covariance_type: str = "full"


Watch = Callable[[Moment], None]
Contender = Callable[[int, int, Watch], Result]


def learn_stream(rows: int, seed: int, watch: Watch) -> Result:
    """Learn the stream in one pass. Only `partial_fit` is timed, not the drawing of rows or the scoring."""
    import headwater as hw

    truth = Truth.draw(seed)
    judge = held_out_rows(truth, seed)
    compile_kernels()
    before = reset_peak_memory()
    model = hw.GaussianMixture(COMPONENTS, random_state=seed)
    looks = iter(np.union1d(np.geomspace(CHUNK_ROWS, rows, 25), np.linspace(0, rows, 21)[1:]))
    look, learned, seconds = next(looks), 0, 0.0
    moments = []
    for chunk in make_stream(truth, rows, seed):
        began = time.perf_counter()
        model.partial_fit(chunk)
        seconds += time.perf_counter() - began
        learned += len(chunk)
        if learned >= look:
            moments.append(Moment(learned, seconds, float(model.score(judge)), model.weights_))
            watch(moments[-1])
            look = next((point for point in looks if point > learned), np.inf)
    memory = memory_since(before)
    return Result(
        model.weights_, model.means_, model.covariances_, seconds, moments[-1].score, 1, memory, moments
    )  # fmt: skip


def fit_scikit_learn(rows: int, seed: int, watch: Watch) -> Result:
    """Collect the same rows and fit scikit-learn's mixture with its default settings. Only `fit` is timed."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    truth = Truth.draw(seed)
    judge = held_out_rows(truth, seed)
    model = GaussianMixture(COMPONENTS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        GaussianMixture(COMPONENTS, max_iter=1).fit(judge[:1000])  # loads what a first fit loads
        before = reset_peak_memory()
        table = np.empty((rows, WIDTH))
        for index, chunk in enumerate(make_stream(truth, rows, seed)):
            table[index * CHUNK_ROWS : index * CHUNK_ROWS + len(chunk)] = chunk
        began = time.perf_counter()
        model.fit(table)
        seconds = time.perf_counter() - began
    memory = memory_since(before)
    score = float(model.score(judge))
    watch(Moment(rows, seconds, score, model.weights_))
    return Result(model.weights_, model.means_, model.covariances_, seconds, score, model.n_iter_, memory)


def compile_kernels() -> float:
    """Run every kernel of the stream on a few rows; return the seconds it took."""
    import headwater as hw

    began = time.perf_counter()
    rows = np.random.default_rng(0).normal(size=(2500, WIDTH))
    hw.GaussianMixture(COMPONENTS, random_state=0).partial_fit(rows).score(rows)
    return time.perf_counter() - began


def run_contender(contender: Contender, rows: int, seed: int, watch: Watch, apart: bool) -> Result:
    """Run a contender in this process, or `apart` in a fresh one, so that its memory can be measured."""
    if not apart:
        return replace(contender(rows, seed, watch), memory=None)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_all, args=(contender, rows, seed, sender), daemon=True)
    process.start()
    sender.close()
    try:
        while isinstance(message := receiver.recv(), Moment):
            watch(message)
    except EOFError:
        process.join()
        raise RuntimeError(f"the process of {contender.__name__} ended early, with code {process.exitcode}") from None
    process.join()
    return message


def _send_all(contender: Contender, rows: int, seed: int, sender: Connection) -> None:
    sender.send(contender(rows, seed, sender.send))
    sender.close()
