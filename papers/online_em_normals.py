"""Two normal distributions with one variance: the small model of paper 002's experiments, in plain compiled code.

Parameters are (w, m1, m2, v): the weight of the first, both means, the variance. Statistics are (E r, E r y, E y, E y^2), r
being the probability of the first. The library learns the same model (`GaussianMixture` with tied covariance) and is held
against this code in the tests; what it rightly lacks is here: averages of parameters, Titterington's recursion, Neal and
Hinton's, and thousands of copies at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import headwater as hw
from headwater.core.statistics import Array
from headwater.kernels._jit import kernel

NAMES = ("weight", "first mean", "second mean", "variance")
TRUTH = np.array([0.3, 0.0, 2.0, 1.0])  # 92 % of the information about the slowest direction is missing
APART = np.array([0.3, 0.0, 4.0, 1.0])  # the same, far apart: 36 % are missing
START = np.array([0.5, 0.5, 2.5, 1.0])
FAR = np.array([0.1, -1.0, 2.0, 2.0])  # off in the slowest direction
BAD = np.array([0.7, 0.5, 3.0, 1.0])  # from where some streams of online EM go astray
WAIT = 20  # rows whose statistics are gathered before the first M-step, as Cappé advises
LAST, THETA, STATISTICS, GROWING = range(4)
KINDS = ("the last iterate", "averaged parameters", "averaged statistics", "averaged statistics, weights that grow")
PARAMETERS = len(TRUTH)


def drawn(theta: Array, rows: int, *seeds: int) -> Array:
    """So many rows of the mixture."""
    rng = np.random.default_rng(np.random.SeedSequence((2, *seeds)))
    return rng.normal(np.where(rng.random(rows) < theta[0], theta[1], theta[2]), math.sqrt(theta[3]))


def information(theta: Array) -> tuple[Array, Array]:
    """Complete and observed Fisher information of a row, by quadrature."""
    weight, first, second, variance = theta
    deviation = math.sqrt(variance)
    y = np.linspace(min(first, second) - 12.0 * deviation, max(first, second) + 12.0 * deviation, 20_001)
    scores, joint = [], []
    for share, mean, sign in ((weight, first, 1.0), (1.0 - weight, second, -1.0)):
        z = (y - mean) / deviation
        joint.append(share * np.exp(-0.5 * z**2) / (deviation * math.sqrt(2.0 * math.pi)))
        about = z / deviation
        still = np.zeros_like(y)
        means = (about, still) if sign > 0.0 else (still, about)
        scores.append(np.stack([np.full_like(y, sign / share), *means, (z**2 - 1.0) / (2.0 * variance)]))
    step = y[1] - y[0]
    complete = sum(np.einsum("y,py,qy->pq", p, s, s) for p, s in zip(joint, scores, strict=True)) * step
    density = joint[0] + joint[1]
    mean_score = (joint[0] * scores[0] + joint[1] * scores[1]) / density
    return np.asarray(complete), np.einsum("y,py,qy->pq", density, mean_score, mean_score) * step


def speeds(theta: Array) -> Array:
    """What a step of EM makes up of an error, by direction: eigenvalues of complete^-1 observed."""
    return np.sort(np.linalg.eigvals(np.linalg.solve(*information(theta))).real)


def ordered(theta: Array) -> Array:
    """The same mixtures (..., parameters), the lower mean first."""
    swapped = np.stack([1.0 - theta[..., 0], theta[..., 2], theta[..., 1], theta[..., 3]], axis=-1)
    return np.where(theta[..., 1:2] > theta[..., 2:3], swapped, theta)


def loss(theta: Array, truth: Array, rows: int) -> Array:
    """n (theta - truth)' I (theta - truth) / parameters: 1 on average for an efficient estimate."""
    error = ordered(theta) - truth
    return np.asarray(rows * np.einsum("...p,pq,...q->...", error, information(truth)[1], error) / PARAMETERS)


# Recursions


@kernel
def first_share(y, theta):
    """P(first | y)."""
    odds = ((y - theta[1]) ** 2 - (y - theta[2]) ** 2) / (2.0 * theta[3])
    return theta[0] / (theta[0] + (1.0 - theta[0]) * math.exp(min(odds, 700.0)))


@kernel
def fold(y, theta, step, statistics):
    r = first_share(y, theta)
    statistics[0] += step * (r - statistics[0])
    statistics[1] += step * (r * y - statistics[1])
    statistics[2] += step * (y - statistics[2])
    statistics[3] += step * (y * y - statistics[3])


@kernel
def readout(statistics, theta):
    """The M-step."""
    share = min(max(statistics[0], 1e-12), 1.0 - 1e-12)
    rest = statistics[2] - statistics[1]
    theta[0] = share
    theta[1] = statistics[1] / share
    theta[2] = rest / (1.0 - share)
    theta[3] = max(statistics[3] - statistics[1] * theta[1] - rest * theta[2], 1e-12)


@kernel
def batch_em(y, start, passes):
    """Parameters after 0, 1, ... passes of EM."""
    path = np.empty((passes + 1, start.size))
    path[0] = start
    statistics = np.empty(start.size)
    for turn in range(passes):
        statistics[:] = 0.0
        for i in range(y.size):
            fold(y[i], path[turn], 1.0 / (i + 1.0), statistics)
        readout(statistics, path[turn + 1])
    return path


@kernel
def online_em(y, start, decay, offset, wait, begin, marks):
    """Online EM row by row with steps (n + offset)^-decay; (marks, KINDS, parameters) after so many rows.

    The first `wait` rows are gathered at the start, as in the library's warm-up. Averages of parameters and of statistics
    begin after row `begin`; those with weights that grow, the library's, after the warm-up.
    """
    found = np.empty((marks.size, 4, start.size))
    theta, theta_mean = start.copy(), start.copy()
    statistics, mean, growing = np.zeros(start.size), np.zeros(start.size), np.zeros(start.size)
    at = 0
    for i in range(y.size):
        n = i + 1.0
        if i < wait:
            fold(y[i], theta, 1.0 / n, statistics)
            if i == wait - 1:
                readout(statistics, theta)
                growing[:] = statistics
        else:
            fold(y[i], theta, (n + offset) ** -decay, statistics)
            readout(statistics, theta)
            gain = min(1.0, 2.0 / n)
            for p in range(start.size):
                growing[p] += gain * (statistics[p] - growing[p])
        if i < begin or i < wait:
            mean[:] = statistics
            theta_mean[:] = theta
        else:
            gain = 1.0 / (n - max(begin, wait))
            for p in range(start.size):
                mean[p] += gain * (statistics[p] - mean[p])
                theta_mean[p] += gain * (theta[p] - theta_mean[p])
        while at < marks.size and marks[at] == i + 1:
            found[at, 0] = theta
            found[at, 1] = theta_mean
            readout(mean, found[at, 2])
            readout(growing, found[at, 3])
            at += 1
    return found


@kernel
def incremental_em(y, start, order, wait, marks):
    """Neal and Hinton's: each row's share in the statistics is replaced when its turn comes; rows not yet seen have none."""
    found = np.empty((marks.size, start.size))
    theta, statistics = start.copy(), np.zeros(start.size)
    shares = np.full(y.size, -1.0)
    seen, at = 0, 0
    for t in range(order.size):
        row = y[order[t]]
        r = first_share(row, theta)
        if shares[order[t]] < 0.0:
            seen += 1
            fold(row, theta, 1.0 / seen, statistics)
        else:
            statistics[0] += (r - shares[order[t]]) / seen
            statistics[1] += (r - shares[order[t]]) * row / seen
        shares[order[t]] = r
        if t >= wait - 1:
            readout(statistics, theta)
        while at < marks.size and marks[at] == t + 1:
            found[at] = theta
            at += 1
    return found


# The library's


def library(decay: float = 0.6, start: Array = START, wait: int = WAIT, **settings: Any) -> hw.GaussianMixture:
    """The library's online EM for this model, row by row unless said otherwise, under a prior too weak to be seen."""
    weight, first, second, variance = start
    algorithm = hw.OnlineEM(**{"decay": decay, "offset": 0.0, "batch_size": 1, "average_exponent": 1.0, **settings})
    return hw.GaussianMixture(
        2, covariance_type="tied", algorithm=algorithm, weights_init=[weight, 1.0 - weight], means_init=[[first], [second]],
        precisions_init=[[1.0 / variance]], warm_up=wait, mean_precision_prior=1e-9, degrees_of_freedom_prior=1e-9,
        covariance_prior=[[1e-9]], n_threads=1, random_state=0,
    )  # fmt: skip


def parameters(model: hw.GaussianMixture) -> Array:
    return np.array([model.weights_[0], *model.means_.ravel(), model.covariances_.item()])
