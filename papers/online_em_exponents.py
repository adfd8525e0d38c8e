"""Exponents of the steps on a mixture of regressions, from a poor start and from a good one, by the library."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

import headwater as hw
from headwater.core.statistics import Array
from pages.results import Figures
from papers.online_em_scale import Scale

DECAYS = (0.6, 0.7, 0.8, 0.9, 1.0)
# weight of the first, then intercept and slope of both, then their variances
CLOSE = np.array([0.4, 0.0, 2.0, 1.0, -1.0, 1.5, 1.5])
APART = np.array([0.4, 0.0, 2.0, 1.0, -1.0, 0.1, 0.1])
TRUTHS = {"close": CLOSE, "apart": APART}
POOR, GOOD = "a poor start", "a good start"
STARTS = (POOR, GOOD)
POOR_COEF, POOR_INTERCEPT = np.array([[0.5], [-0.5]]), np.array([0.0, 0.0])
WAIT, GOOD_WAIT = 50, 1000


def drawn(truth: Array, rows: int, *seeds: int) -> tuple[Array, Array]:
    """Inputs (rows, 1) and outputs."""
    rng = np.random.default_rng(np.random.SeedSequence((2, 15, *seeds)))
    second = (rng.random(rows) >= truth[0]).astype(int)
    x = rng.normal(size=rows)
    intercept, slope, variance = truth[[1, 3]][second], truth[[2, 4]][second], truth[[5, 6]][second]
    return x[:, None], intercept + slope * x + np.sqrt(variance) * rng.normal(size=rows)


@cache
def informations(case: str) -> tuple[Array, Array]:
    """Complete and observed Fisher information of a row, by quadrature over x and y."""
    truth = TRUTHS[case]
    nodes, masses = hermegauss(60)
    masses = masses / masses.sum()
    weights = (truth[0], 1.0 - truth[0])
    widest = 9.0 * np.sqrt(truth[5:].max())
    complete, observed = np.zeros((7, 7)), np.zeros((7, 7))
    for x, mass in zip(nodes, masses, strict=True):
        means = [truth[1 + 2 * k] + truth[2 + 2 * k] * x for k in range(2)]
        y = np.linspace(min(means) - widest, max(means) + widest, 2001)
        scores, joint = np.zeros((2, 7, len(y))), np.zeros((2, len(y)))
        for k in range(2):
            away, variance = y - means[k], truth[5 + k]
            joint[k] = weights[k] * np.exp(-0.5 * away**2 / variance) / np.sqrt(2.0 * np.pi * variance)
            scores[k, 0] = (1.0 if k == 0 else -1.0) / weights[k]
            scores[k, 1 + 2 * k], scores[k, 2 + 2 * k] = away / variance, away * x / variance
            scores[k, 5 + k] = (away**2 / variance - 1.0) / (2.0 * variance)
        step = (y[1] - y[0]) * mass
        density = joint.sum(axis=0)
        mean = np.einsum("ky,kpy->py", joint, scores) / np.maximum(density, 1e-300)
        complete += np.einsum("ky,kpy,kqy->pq", joint, scores, scores) * step
        observed += np.einsum("y,py,qy->pq", density, mean, mean) * step
    return complete, observed


def speeds(case: str) -> Array:
    """What a step of EM makes up of an error, by direction."""
    return np.sort(np.linalg.eigvals(np.linalg.solve(*informations(case))).real)


def parameters(model: Any) -> Array:
    """As in the truths, the steeper line first."""
    order = np.argsort(-model.coef_[:, 0])
    lines = np.column_stack([model.intercept_, model.coef_[:, 0]])[order].ravel()
    return np.array([model.weights_[order[0]], *lines, *np.broadcast_to(model.noise_variance_, 2)[order]])


def learner(start: str, algorithm: Any) -> Any:
    """The poor start is given and follows a few rows, the good one is the library's after a thousand."""
    given: dict[str, Any] = {"warm_up": GOOD_WAIT}
    if start == POOR:
        given = {"warm_up": WAIT, "weights_init": [0.5, 0.5], "coef_init": POOR_COEF, "intercept_init": POOR_INTERCEPT}
    return hw.RegressionMixture(2, algorithm=algorithm, random_state=0, n_threads=1, **given)


def loss(case: str, theta: Array, rows: int) -> float:
    """n (theta - truth)' I (theta - truth) / parameters."""
    error = theta - TRUTHS[case]
    return float(rows * error @ informations(case)[1] @ error / len(error))


def exponents_set(case: str, start: str, scale: Scale) -> Figures:
    """Losses by exponent, of the last iterate and averaged, and those of batch EM on the same rows."""
    rows, copies = min(scale.rows, 20_000), max(1, 3 * scale.few // 4)
    found: dict[str, list[list[float]]] = {name: [[] for _ in DECAYS] for name in ("last", "averaged")}
    batch = []
    for copy in range(copies):
        x, y = drawn(TRUTHS[case], rows, copy)
        whole = hw.RegressionMixture(2, algorithm="em", tol=1e-9, max_iter=300, n_threads=1, random_state=0).fit(x, y)
        batch.append(loss(case, parameters(whole), rows))
        for name, values in found.items():
            for decay, kept in zip(DECAYS, values, strict=True):
                algorithm = hw.OnlineEM(decay=decay, offset=0.0, batch_size=1, average=name == "averaged", average_exponent=1.0)
                kept.append(loss(case, parameters(learner(start, algorithm).partial_fit(x, y)), rows))
    return {
        "case": case, "start": start, "rows": rows, "copies": copies, "decays": [*DECAYS], "speeds": speeds(case).tolist(),
        "batch": float(np.median(batch)), **{name: np.median(values, axis=1).tolist() for name, values in found.items()},
        **{f"{name}_high": np.percentile(values, 90, axis=1).tolist() for name, values in found.items()},
    }  # fmt: skip
