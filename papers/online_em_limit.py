"""The limiting EM recursion: EM under the law of the rows itself, which the library runs on nodes that carry its density.

KL(law ‖ model) has to fall at every step, for laws that are in the model and for others; and online EM has to end there, too.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.stats import gamma, laplace, norm
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.core.statistics import Array
from pages.results import Figures
from papers.online_em_normals import START, library, ordered, parameters
from papers.online_em_scale import Scale

NODES = 4001
EPSILON = 1e-9  # nats, which rounding may cost


@dataclass(frozen=True)
class Law:
    """Where rows come from: densities of a mixture's parts, and draws."""

    name: str
    weights: tuple[float, ...]
    parts: tuple[object, ...]
    low: float
    high: float

    def density(self, y: Array) -> Array:
        return np.asarray(sum(w * part.pdf(y) for w, part in zip(self.weights, self.parts, strict=True)))  # type: ignore[attr-defined]

    def drawn(self, rows: int, seed: int) -> Array:
        rng = np.random.default_rng(np.random.SeedSequence((2, 9, seed)))
        chosen = rng.choice(len(self.parts), size=rows, p=self.weights)
        y = np.empty(rows)
        for k, part in enumerate(self.parts):
            which = chosen == k
            y[which] = part.rvs(size=int(which.sum()), random_state=rng)  # type: ignore[attr-defined]
        return y


LAWS = (
    Law("in the model: two normals", (0.3, 0.7), (norm(0.0, 1.0), norm(2.0, 1.0)), -9.0, 11.0),
    Law("three normals", (0.25, 0.35, 0.4), (norm(-2.0, 0.6), norm(0.5, 0.8), norm(3.0, 1.0)), -8.0, 12.0),
    Law("two Laplace distributions", (0.4, 0.6), (laplace(0.0, 0.7), laplace(3.0, 0.7)), -20.0, 23.0),
    Law("one gamma distribution, skewed", (1.0,), (gamma(2.0, scale=1.0),), 0.0, 40.0),
)


def quadrature(law: Law) -> tuple[Array, Array]:
    """Nodes and their weights, which sum to one: Simpson's rule."""
    y = np.linspace(law.low, law.high, NODES)
    simpson = np.where(np.arange(NODES) % 2, 4.0, 2.0)
    simpson[[0, -1]] = 1.0
    weights = law.density(y) * simpson * (y[1] - y[0]) / 3.0
    return y, weights


def mixture_density(theta: Array, y: Array) -> Array:
    weight, first, second, variance = theta
    deviation = np.sqrt(variance)
    return np.asarray(weight * norm.pdf(y, first, deviation) + (1.0 - weight) * norm.pdf(y, second, deviation))


def gradient(theta: Array, y: Array, weights: Array) -> Array:
    """Of KL(law ‖ model), by central differences."""
    slopes = []
    for p in range(len(theta)):
        step = np.zeros(len(theta))
        step[p] = 1e-5
        up, down = (float(weights @ np.log(mixture_density(theta + sign * step, y))) for sign in (1.0, -1.0))
        slopes.append((down - up) / 2e-5)
    return np.array(slopes)


def limit_set(law: Law, scale: Scale) -> Figures:
    """KL(law ‖ model) after every step of the limiting recursion, and online EM's way to where it ends."""
    y, weights = quadrature(law)
    used = weights > 0.0
    entropy = float(weights[used] @ np.log(law.density(y[used])))
    weight, first, second, variance = START
    model = hw.GaussianMixture(
        2, covariance_type="tied", algorithm="em", weights_init=[weight, 1.0 - weight], means_init=[[first], [second]],
        precisions_init=[[1.0 / variance]], max_iter=6 * scale.passes, tol=0.0, reg_covar=0.0, n_threads=1, random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(y[used, None], sample_weight=weights[used])
    divergences = entropy - np.array(model.lower_bounds_) * weights.sum()
    end = parameters(model)
    stream = law.drawn(scale.rows, 0)
    marks = np.unique(np.geomspace(100, scale.rows, scale.marks).round().astype(int))
    online, path = library(0.6), []
    for chunk in np.split(stream, marks[:-1]):
        path.append(parameters(online.partial_fit(chunk[:, None])))

    def divergence(theta: Array) -> float:
        return entropy - float(weights @ np.log(mixture_density(theta, y)))

    def steepest(theta: Array) -> float:
        return float(np.abs(gradient(theta, y, weights)).max())

    return {
        "name": law.name, "mass": float(weights.sum()), "divergences": divergences.tolist(),
        "rise": float(max(0.0, np.diff(divergences).max())), "end": ordered(end).tolist(), "least": divergence(end),
        "gradient": steepest(end), "gradient_start": steepest(START),
        "rows": marks.tolist(), "online": [divergence(theta) for theta in path], "streamed": ordered(path[-1]).tolist(),
    }  # fmt: skip
