"""The learners of paper 003's experiments: who they are, how they are fitted and timed, and how their settings are chosen."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.mixture import GaussianMixture as Peer

import headwater as hw
from headwater.core.statistics import Array
from papers.moment_matching_data import Split, Truth

DMM_PARTS = 5
SHORT = 100  # rows of the short warm-up
ALPHAS = (0.6, 0.8, 1.0)
REFERENCE_ROWS = 50_000
CHOOSING_ROWS = 10_000  # at most, by which settings are chosen
WIDE = 50  # columns
WarmUp = int | Literal["auto"]


@dataclass(frozen=True)
class Learner:
    """`algorithm` is the library's name for it, or makes it of alpha, or is None for scikit-learn's."""

    name: str
    meaning: str
    algorithm: str | Callable[[float], Any] | None
    alphas: tuple[float, ...] = (0.6,)
    parts: int = 1

    def make(self, components: int, seed: int, warm_up: WarmUp = "auto", alpha: float = 0.6, n_threads: int = 1) -> Any:
        if self.algorithm is None:
            return Peer(components, random_state=seed)
        algorithm = self.algorithm(alpha) if callable(self.algorithm) else self.algorithm
        return hw.GaussianMixture(
            components, algorithm=algorithm, warm_up=warm_up, random_state=seed, n_threads=n_threads, parts=self.parts
        )


BMM = Learner("oBMM", '`algorithm="moment-matching"`', "moment-matching")
DMM = Learner(
    f"oDMM, {DMM_PARTS} parts",
    f'`algorithm="moment-matching", parts={DMM_PARTS}`: parts that start from one warm-up, learn apart and are merged',
    "moment-matching",
    parts=DMM_PARTS,
)
KL = Learner(
    "oBMM, kl",
    '`hw.MomentMatching("kl", "kl")`: expected logarithms matched in place of second moments',
    hw.MomentMatching("kl", "kl"),
)
VB = Learner("online VB", '`algorithm="online-vb"`, row by row', "online-vb")
QB = Learner("quasi-Bayes", '`algorithm="quasi-bayes"`, row by row', "quasi-bayes")
BATCHES = Learner(
    "online EM, batches",
    '`algorithm="online-em"`, the library\'s default: batches, steps (k + 2)^-0.6, averaged statistics',
    "online-em",
)
ROWS = Learner(
    "online EM, row by row",
    "`hw.OnlineEM(batch_size=1, offset=3, average=False)`, as in the paper: the step at row n is (n + 3)^-alpha",
    lambda alpha: hw.OnlineEM(batch_size=1, decay=alpha, offset=3.0, average=False),
    ALPHAS,
)
BATCH_EM = Learner(
    "batch EM (scikit-learn)",
    f"`sklearn.mixture.GaussianMixture` as it comes, on all rows at once, {REFERENCE_ROWS:,} of them at most: for reference",
    None,
)
FIGURE_LEARNERS = (BMM, KL, DMM, VB, QB, BATCHES, ROWS)
TABLE_LEARNERS = (ROWS, BATCHES, BMM, DMM, VB, BATCH_EM)
OVERFITTING_LINES: tuple[tuple[Learner, WarmUp], ...] = (
    (BMM, "auto"), (BMM, SHORT), (BATCHES, "auto"), (BATCHES, SHORT), (ROWS, SHORT), (BATCH_EM, "auto"),
)  # fmt: skip


def line_name(learner: Learner, warm_up: WarmUp) -> str:
    return learner.name if warm_up == "auto" else f"{learner.name}, warm-up of {warm_up} rows"


def learned(model: Any, rows: Array, clock: Callable[[], float] = time.process_time) -> tuple[Any, float]:
    """The model once it has seen the rows and can be read, and the CPU seconds that took, or those of another clock."""
    began = clock()
    if isinstance(model, Peer):
        model.fit(rows[:REFERENCE_ROWS])
    else:
        model.partial_fit(rows)
    assert model.weights_ is not None  # what waits in a warm-up is learned when it is read
    return model, clock() - began


def compile_kernels() -> None:
    """Learn a few rows with each, so that no timing has the compiler in it."""
    rows = Truth.drawn(2, 2, 3.0, 0).sample(400, 0)
    for learner in (*FIGURE_LEARNERS, BATCH_EM):
        for threads in (1, 2):
            learned(learner.make(2, 0, SHORT, n_threads=threads), rows)[0].score(rows)


def warm_up_rows(model: Any) -> int:
    return int(model._learner.plan.warm_up_rows)


# Settings


@dataclass(frozen=True)
class Choice:
    components: int
    alpha: float


def selection_rows(columns: int) -> int:
    """Rows that settings are chosen on: fewer in many columns, where every fit is dear."""
    return int(min(CHOOSING_ROWS, 4e7 // columns**2))


def choose(learner: Learner, split: Split, components: Sequence[int], warm_up: WarmUp) -> Choice:
    """The settings that score best on a fifth of the rows to learn from; the largest alpha where it makes no difference."""
    columns = split.learn.shape[1]
    learn, judge = split.inner(selection_rows(columns))
    wanted = components[:: 2 if columns > WIDE else 1]
    best, best_score = Choice(wanted[0], max(learner.alphas)), -np.inf
    if len(wanted) * len(learner.alphas) == 1:
        return best
    for number in wanted:
        for alpha in sorted(learner.alphas, reverse=True):
            model, _ = learned(learner.make(number, 0, warm_up, alpha), learn)
            score = float(model.score(judge))
            if score > best_score:
                best, best_score = Choice(number, alpha), score
            if len(learner.alphas) > 1 and warm_up_rows(model) >= len(learn):
                break  # no step was made
    return best
