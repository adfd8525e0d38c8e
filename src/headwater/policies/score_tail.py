"""The tail of a sample of scores: a generalised Pareto law beyond the scores that are too few to count."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headwater.core.statistics import Array

TAIL_SHARE = 0.05  # of the scores, of which the law is estimated; at least
LEAST_TAIL, MOST_TAIL = 25.0, 500.0  # rows, if there are as many, and at most
GRID = 30  # values of Zhang and Stephens' profile, beside the square root of the number of scores
PRIOR_SHAPE, PRIOR_ROWS = 0.05, 10.0  # towards exponential tails, which densities of light-tailed components have
LARGEST_SHAPE = 2.0
LEAST_PROBABILITY = 1e-300


@dataclass(frozen=True)
class Tail:
    """P(score > s) = share * (1 + shape * (s - level) / scale) ** (-1 / shape) beyond a level."""

    level: float
    share: float
    scale: float
    shape: float

    def probability(self, scores: Array) -> Array:
        """Return the probability of a score beyond each of these, which lie beyond the level."""
        beyond = np.maximum(scores - self.level, 0.0) / self.scale
        nats = beyond if self.shape < 1e-9 else np.log1p(self.shape * beyond) / self.shape
        return np.maximum(self.share * np.exp(-nats), LEAST_PROBABILITY)

    def score(self, probability: float) -> float:
        """Return the score that is passed with this probability, which is no more than the share."""
        nats = math.log(self.share / max(probability, LEAST_PROBABILITY))
        beyond = nats if self.shape < 1e-9 else math.expm1(min(self.shape * nats, 700.0)) / self.shape
        return self.level + self.scale * beyond


def tail_of(scores: Array, edges: Array, weights: Array, join: float) -> Tail | None:
    """Return the tail of scores that rise, each of which stands for some rows below an edge; None if all are alike.

    It is estimated of the highest twentieth, and begins at the edge above which fewer than `join` rows lie.
    """
    n = float(weights.sum())
    above = n - np.cumsum(weights)  # rows beyond each edge
    rows = min(max(TAIL_SHARE * n, LEAST_TAIL), MOST_TAIL, 0.5 * n)
    first = max(int(np.count_nonzero(above >= rows * (1.0 - 1e-9))) - 1, 0)
    level, exceeding, each = float(edges[first]), scores[first + 1 :] - edges[first], weights[first + 1 :]
    if not len(exceeding) or exceeding[-1] <= 0.0:
        return None
    scale, shape = pareto_of(np.maximum(exceeding, 0.0), each)
    start = max(int(np.count_nonzero(above + weights >= join * (1.0 - 1e-9))) - 1, first)
    at, left = float(edges[start]), float(above[start])
    if left < 1e-9 * n:  # many rows are equally odd, and none is odder
        return None
    return Tail(at, left / n, scale + shape * (at - level), shape)


def pareto_of(exceeding: Array, weights: Array) -> tuple[float, float]:
    """Return scale and shape of a generalised Pareto law (Zhang and Stephens 2009), shape at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.policies.score_tail import pareto_of
    >>> draws = np.sort(np.random.default_rng(0).pareto(4.0, size=5000))
    >>> [round(one, 1) for one in pareto_of(draws, np.ones(5000))]
    [0.2, 0.3]
    """
    n = float(weights.sum())
    places = np.cumsum(weights) - 0.5 * weights
    quarter = float(np.interp(n / 4.0 + 0.5, places, exceeding))
    values = GRID + int(math.sqrt(n))
    grid = 1.0 - np.sqrt(values / (np.arange(1, values + 1) - 0.5))
    thetas = 1.0 / exceeding[-1] + grid / (3.0 * max(quarter, 1e-12 * exceeding[-1]))
    thetas = thetas[thetas < 0.0]  # of shapes above 0: no score is impossible
    if not len(thetas):
        return float(weights @ exceeding) / n, 0.0
    shapes = np.log1p(-thetas[:, None] * exceeding) @ weights / n
    heights = n * (np.log(-thetas / shapes) - shapes - 1.0)
    theta = float(thetas @ (np.exp(heights - heights.max()) / np.exp(heights - heights.max()).sum()))
    shape = float(np.log1p(-theta * exceeding) @ weights / n)
    scale = -shape / theta
    shape = min((n * shape + PRIOR_ROWS * PRIOR_SHAPE) / (n + PRIOR_ROWS), LARGEST_SHAPE)
    return scale, shape
