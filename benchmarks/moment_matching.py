"""Bayesian moment matching row by row: rank-one updates against a factorisation for every row; two parts on two threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np

from benchmarks.data import Array, make_truth
from benchmarks.line import Line, Target, at_least, rates
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import interleave
from headwater import GaussianMixture, MomentMatching
from headwater.kernels.projection import project_dirichlet, project_wishart
from pages.machine import cores

RATE = Target("ours", ">=", 0.4)


@benchmark
def moment_matching(scale: Scale) -> Iterator[Line]:
    rng = np.random.default_rng(scale.first_seed)
    truth = make_truth(10, 10, rng)
    warm_up = truth.sample(scale.rows(10_000, least=8000), rng)
    rows = truth.sample(scale.rows(200_000), rng)
    kl = MomentMatching("kl", "kl")
    for kind, algorithm in (
        ("full", "moment-matching"),
        ("full", kl),
        ("diag", "moment-matching"),
        ("spherical", "moment-matching"),
    ):
        model = matching(kind, algorithm, n_threads=1).partial_fit(warm_up)
        contenders = {"ours": lambda repeat, model=model: model.partial_fit(rows)}
        first = kind == "full" and algorithm != kl
        if first:
            contenders["peer"] = plainly(model, rows)
        timings = interleave(contenders, scale.repeats)
        name = f"moment matching {kind} K10 d10{', kl' if algorithm == kl else ''}"
        if first:
            yield rates(name, timings["ours"], rows=len(rows), target=RATE, note=f"{len(rows):,} rows")
            note = "peer: a Cholesky factor per component and row, O(K d^3), compiled by Numba, too"
            yield rates(f"{name}, rank one", timings["ours"], timings["peer"], rows=len(rows), target=at_least(4.0), note=note)
        else:
            yield rates(name, timings["ours"], rows=len(rows), note=f"{len(rows):,} rows")
    many = np.concatenate([rows] * 4)
    models = {n: matching("full", "moment-matching", n_threads=n, parts=2).partial_fit(warm_up) for n in (1, 2)}
    timings = interleave({n: lambda repeat, n=n: models[n].partial_fit(many) for n in (1, 2)}, 2 * scale.repeats)
    note = f"{len(many):,} rows; peer: the same two parts on 1 thread; {cores()} cores here"
    yield rates(
        "moment matching, 2 parts on 2 threads", timings[2], timings[1], rows=len(many), target=at_least(1.8), note=note
    )


def matching(kind: str, algorithm: Any, **settings: Any) -> GaussianMixture:
    return GaussianMixture(10, covariance_type=kind, algorithm=algorithm, random_state=0, **settings)  # type: ignore[arg-type]


def plainly(model: GaussianMixture, rows: Array) -> Callable[[int], Any]:
    """Start from the belief of the model, about the means of the rows; the first call compiles."""
    belief = model._component_belief()
    state = [model.weight_concentration_, belief.means, belief.mean_precision, belief.dof, belief.scale]
    plain_matching(rows[:10], *[array.copy() for array in state])
    return lambda repeat: plain_matching(rows, *[array.copy() for array in state])


@numba.njit(fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy", nogil=True)
def plain_matching(X, alpha, mean, kappa, dof, scale):
    """Plain moment matching: factor every scale matrix, solve, project."""
    n_components, width = mean.shape
    factor, y = np.empty((width, width)), np.empty(width)
    log_joint, p, distance = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    work = np.empty((2, n_components))
    for row in range(X.shape[0]):
        for k in range(n_components):
            log_det, distance[k] = 0.0, 0.0
            for i in range(width):
                for j in range(i + 1):
                    value = scale[k, i, j]
                    for q in range(j):
                        value -= factor[i, q] * factor[j, q]
                    factor[i, j] = math.sqrt(value) if i == j else value / factor[j, j]
                log_det += 2.0 * math.log(factor[i, i])
                y[i] = X[row, i] - mean[k, i]
                for q in range(i):
                    y[i] -= factor[i, q] * y[q]
                y[i] /= factor[i, i]
                distance[k] += y[i] * y[i]
            ratio = kappa[k] / (kappa[k] + 1.0)
            gammas = math.lgamma(0.5 * (dof[k] + 1.0)) - math.lgamma(0.5 * (dof[k] + 1.0 - width))
            constant = gammas + 0.5 * width * math.log(ratio / math.pi) - 0.5 * log_det
            tail = 0.5 * (dof[k] + 1.0) * math.log(1.0 + ratio * distance[k])
            log_joint[k] = math.log(alpha[k]) + constant - tail
        peak = log_joint.max()
        for k in range(n_components):
            p[k] = math.exp(log_joint[k] - peak)
        p /= p.sum()
        project_dirichlet(p, 1.0, 0, alpha, work)
        for k in range(n_components):
            kappa[k], dof[k], g, s, t = project_wishart(
                p[k], 1.0 - p[k], 1.0, width, kappa[k], dof[k], distance[k], 0, width + 1.01
            )
            for i in range(width):
                y[i] = X[row, i] - mean[k, i]
            for i in range(width):
                for j in range(i + 1):
                    scale[k, i, j] = s * (scale[k, i, j] + t * y[i] * y[j])
            for i in range(width):
                mean[k, i] += g * y[i]
