"""Titterington's recursion (1984) beside online EM: a gradient, divided by the information of complete data.

theta_n = theta_{n-1} + gamma_n I(theta_{n-1})^-1 grad log f(Y_n). It is written for the two normals with one variance, with the
variance or the precision as the parameter, and for two normals that each have a variance of their own. Nothing keeps it in
the parameter space, so it may leave it; a run ends there.
"""

from __future__ import annotations

import math

import numpy as np

from headwater.core.statistics import Array
from headwater.kernels._jit import kernel
from pages.results import Figures
from papers.online_em_normals import START, TRUTH, WAIT, drawn, first_share, fold, loss, online_em, readout
from papers.online_em_scale import Scale

DECAYS = (0.6, 0.8, 1.0)
RARE = (0.5, 0.2, 0.1, 0.05, 0.02)
COLLAPSED = 1e-3  # of the true variance
RARE_WAIT = 100


@kernel
def titterington(y, start, decay, wait, marks, by_precision):
    """(marks, parameters), NaN after the parameter space was left, and the row at which that was (0: never)."""
    found = np.full((marks.size, start.size), np.nan)
    theta, statistics = start.copy(), np.zeros(start.size)
    at = 0
    for i in range(y.size):
        if i < wait:
            fold(y[i], theta, 1.0 / (i + 1.0), statistics)
            if i == wait - 1:
                readout(statistics, theta)
        else:
            step = (i + 1.0) ** -decay
            r = first_share(y[i], theta)
            first, second = y[i] - theta[1], y[i] - theta[2]
            square = r * first * first + (1.0 - r) * second * second
            theta[1] += step * r / theta[0] * first
            theta[2] += step * (1.0 - r) / (1.0 - theta[0]) * second
            theta[0] += step * (r - theta[0])
            if by_precision:
                precision = 1.0 / theta[3]
                precision += step * precision * (1.0 - precision * square)
                if not precision > 0.0:
                    return found, i + 1
                theta[3] = 1.0 / precision
            else:
                theta[3] += step * (square - theta[3])
        while at < marks.size and marks[at] == i + 1:
            found[at] = theta
            at += 1
    return found, 0


@kernel
def own_variances(y, start, decay, wait, gradient):
    """Two normals with variances of their own, start = (w, m1, m2, v1, v2); the row at which one is left (0: never), and the
    smallest variance on the way."""
    mass, mean, variance = np.array([start[0], 1.0 - start[0]]), start[1:3].copy(), start[3:5].copy()
    count, total, square, share = np.zeros(2), np.zeros(2), np.zeros(2), np.empty(2)
    lowest = variance.min()
    for i in range(y.size):
        for k in range(2):
            share[k] = mass[k] * math.exp(-0.5 * (y[i] - mean[k]) ** 2 / variance[k]) / math.sqrt(variance[k])
        share /= max(share.sum(), 1e-300)
        step = 1.0 / (i + 1.0) if i < wait else (i + 1.0) ** -decay
        for k in range(2):
            if gradient and i >= wait:
                away = y[i] - mean[k]
                mean[k] += step * share[k] / mass[k] * away
                variance[k] += step * share[k] / mass[k] * (away * away - variance[k])
                mass[k] += step * (share[k] - mass[k])
                if not variance[k] > 0.0:
                    return i + 1, lowest
            else:
                count[k] += step * (share[k] - count[k])
                total[k] += step * (share[k] * y[i] - total[k])
                square[k] += step * (share[k] * y[i] * y[i] - square[k])
                if i >= wait - 1:
                    mass[k] = max(count[k], 1e-300)
                    mean[k] = total[k] / mass[k]
                    variance[k] = max(square[k] / mass[k] - mean[k] ** 2, 1e-12)
            lowest = min(lowest, variance[k])
    return 0, lowest


def beside_set(decay: float, scale: Scale) -> Figures:
    """How far Titterington's estimates are from online EM's, and both from the truth, as rows arrive."""
    marks = np.unique(np.geomspace(100, scale.rows, scale.marks).round().astype(int))
    found: dict[str, list[Array]] = {"em": [], "gradient": [], "apart": []}
    left = {"variance": 0, "precision": 0}
    for copy in range(scale.copies):
        y = drawn(TRUTH, scale.rows, 5, copy)
        em = online_em(y, START, decay, 0.0, WAIT, WAIT, marks)[:, 0]
        gradient, row = titterington(y, START, decay, WAIT, marks, False)
        left["variance"] += row > 0
        left["precision"] += titterington(y, START, decay, WAIT, marks, True)[1] > 0
        found["em"].append(np.sqrt(loss(em, TRUTH, 1)))
        found["gradient"].append(np.sqrt(loss(gradient, TRUTH, 1)))
        found["apart"].append(np.sqrt(loss(TRUTH + gradient - em, TRUTH, 1)))
    return {
        "decay": decay, "rows": marks.tolist(), "copies": scale.copies, "left": left,
        **{name: np.median(values, axis=0).tolist() for name, values in found.items()},
    }  # fmt: skip


def leaving_set(decay: float, scale: Scale) -> Figures:
    """Shares of runs that left the parameter space, by the weight of the rarer of two normals, four standard deviations apart.

    Online EM cannot leave it; what can happen to it is that a variance shrinks to nothing.
    """
    lines: dict[str, list[float]] = {"gradient": [], "collapsed": []}
    rows = min(scale.rows, 5000)
    for weight in RARE:
        truth = np.array([weight, 0.0, 4.0, 1.0])
        start = np.array([*truth, 1.0])
        streams = [drawn(truth, rows, 6, copy) for copy in range(scale.copies)]
        gradient = [own_variances(y, start, decay, RARE_WAIT, True) for y in streams]
        em = [own_variances(y, start, decay, RARE_WAIT, False) for y in streams]
        lines["gradient"].append(float(np.mean([row > 0 for row, _ in gradient])))
        lines["collapsed"].append(float(np.mean([lowest < COLLAPSED for _, lowest in em])))
    return {"decay": decay, "rows": rows, "copies": scale.copies, "weights": [*RARE], "wait": RARE_WAIT, **lines}
