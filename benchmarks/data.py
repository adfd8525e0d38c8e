"""Rows to learn from: draws of a random Gaussian mixture whose overlap one number sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """The mixture that rows are drawn from: weights (K,), means (K, d), covariances (K, d, d)."""

    weights: Array
    means: Array
    covariances: Array

    def sample(self, rows: int, rng: np.random.Generator, *, shuffled: bool = True) -> Array:
        """Draw rows in random order, or component after component."""
        counts = rng.multinomial(rows, self.weights)
        factors = np.linalg.cholesky(self.covariances)
        parts = [
            rng.standard_normal((count, mean.size)) @ factor.T + mean
            for count, mean, factor in zip(counts, self.means, factors, strict=True)
        ]
        drawn = np.concatenate(parts)
        return drawn[rng.permutation(rows)] if shuffled else drawn


def make_truth(n_components: int, width: int, rng: np.random.Generator, sep: float = 0.8) -> Truth:
    """Draw a mixture: weights Dirichlet(5), means N(0, sep² I), covariances Wishart(2d)/2d, which average to I.

    So `sep` is the spread of the means in each coordinate, in units of the deviation within components. Two means lie
    about sep * sqrt(2d) apart: 3.6 at sep 0.8 and d 10, 8 at d 50.
    """
    weights = rng.dirichlet(np.full(n_components, 5.0))
    means = sep * rng.standard_normal((n_components, width))
    roots = rng.standard_normal((n_components, width, 2 * width))
    return Truth(weights, means, roots @ np.swapaxes(roots, 1, 2) / (2 * width))


PRECISIONS = {
    "full": lambda covariances: np.linalg.inv(covariances),
    "tied": lambda covariances: np.linalg.inv(covariances.mean(axis=0)),
    "diag": lambda covariances: 1.0 / np.diagonal(covariances, axis1=1, axis2=2),
    "spherical": lambda covariances: 1.0 / np.diagonal(covariances, axis1=1, axis2=2).mean(axis=1),
}


def start_from(truth: Truth, covariance_type: str) -> dict[str, Any]:
    """Arguments that make both libraries start from the truth, and so do the same work."""
    return {
        "covariance_type": covariance_type,
        "weights_init": truth.weights,
        "means_init": truth.means,
        "precisions_init": PRECISIONS[covariance_type](truth.covariances),
    }
