"""ParameterScores: gradients of the log-densities of components, by which observed information is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array


@dataclass(frozen=True)
class ParameterScores:
    """Gradients at rows, and what the prior knows.

    Attributes
    ----------
    component : callable
        Returns, for the number of a component, the gradient (n, p) of the log-density of each row by its p parameters, and the
        information (p, p) of the prior about these. Components that share a parameter share its prior, too.
    places : ndarray of shape (K, p)
        Number of each parameter; one that components share has one number.
    reported : ndarray of shape (m, p) or (K, m, p)
        What is reported, as linear functions of the p parameters: its derivative, up to a factor for each of the m.
    """

    component: Callable[[int], tuple[Array, Array]]
    places: NDArray[np.int64]
    reported: Array


def own_places(k: int, p: int) -> NDArray[np.int64]:
    """Return the numbers (K, p) of parameters of which no two components share one."""
    return np.arange(k * p).reshape(k, p)
