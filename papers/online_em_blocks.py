"""Mini-batches and a component that is rare: blocks of rows folded as one, as Liang and Klein do."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

import headwater as hw
from headwater.core.statistics import Array
from pages.results import Figures
from papers.online_em_scale import Scale

WEIGHTS = np.array([0.49, 0.49, 0.02])
MEANS = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 4.0]])
SHIFT = np.array([[0.5, -0.5], [-0.5, -0.5], [0.0, -1.0]])  # of a rough start
SIZES = (1, 10, 30, 100, 300, 1000)
DECAY, WAIT, HELD_OUT = 0.6, 100, 10_000
KEPT = 1.0  # how near to the rare component's mean its estimate has to be
LIKELIEST, PRIOR, ROUGH = (
    "maximum likelihood, from the truth",
    "the library's prior, from the truth",
    "the library's prior, a rough start",
)
LINES = (LIKELIEST, PRIOR, ROUGH)
FLAT: dict[str, Any] = {"mean_precision_prior": 1e-9, "degrees_of_freedom_prior": 2.0, "covariance_prior": 1e-9 * np.eye(2)}


def drawn(rows: int, seed: int) -> Array:
    rng = np.random.default_rng(np.random.SeedSequence((2, 4, seed)))
    return MEANS[rng.choice(3, size=rows, p=WEIGHTS)] + rng.normal(size=(rows, 2))


def true_score(rows: Array) -> float:
    squares = ((rows[:, None] - MEANS) ** 2).sum(axis=-1)
    return float(logsumexp(np.log(WEIGHTS) - np.log(2.0 * np.pi) - 0.5 * squares, axis=1).mean())


def learner(line: str, size: int) -> hw.GaussianMixture:
    rough = line == ROUGH
    return hw.GaussianMixture(
        3, algorithm=hw.OnlineEM(decay=DECAY, offset=0.0, batch_size=size, average_exponent=1.0), warm_up=WAIT,
        weights_init=np.full(3, 1.0 / 3.0) if rough else WEIGHTS, means_init=MEANS + SHIFT if rough else MEANS,
        precisions_init=np.stack([np.eye(2)] * 3), n_threads=1, random_state=0, **(FLAT if line == LIKELIEST else {}),
    )  # fmt: skip


def blocks_set(line: str, size: int, scale: Scale) -> Figures:
    """The rare component after a stream in blocks of this size, and its weight along the first streams."""
    rows, copies = min(scale.rows, 20_000), max(2, 3 * scale.few // 5)
    judge = drawn(HELD_OUT, 10_000)
    truth = true_score(judge)
    marks = np.unique(np.geomspace(WAIT, rows, scale.marks).round().astype(int))
    weights, away, gaps, paths = [], [], [], []
    for copy in range(copies):
        y, model, path = drawn(rows, copy), learner(line, size), []
        for chunk in np.split(y, marks[:-1]):
            model.partial_fit(chunk)
            path.append(float(model.weights_[2]))
        weights.append(path[-1])
        away.append(float(np.linalg.norm(model.means_[2] - MEANS[2])))
        gaps.append(float(model.score(judge)) - truth)
        paths.append(path)
    kept = [distance < KEPT and 0.5 < weight / WEIGHTS[2] < 2.0 for distance, weight in zip(away, weights, strict=True)]
    return {
        "line": line, "size": size, "rows": rows, "copies": copies, "marks": marks.tolist(), "weights": weights, "away": away,
        "gaps": gaps, "paths": paths[:4], "kept": float(np.mean(kept)),
    }  # fmt: skip
