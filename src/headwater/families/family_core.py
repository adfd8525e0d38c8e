"""The core of a family, K components of one kind: the eight functions that every family must offer.

All else is a capability with a default that works (`family.py`). docs/contributing/new-family.md walks through a family with
only the eight.

Rule of shapes: the first axis of every array of a prior, of statistics and of parameters is the component; a plain number is
one that all components share. So components are selected, permuted, split and merged by the defaults.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.components import ComponentStatistics
from headwater.families.geometry import RowGeometry

Prior = TypeVar("Prior")
Stats = TypeVar("Stats", bound=ComponentStatistics)
Params = TypeVar("Params")


class FamilyCore(ABC, Generic[Prior, Stats, Params]):
    """What a family must offer: pure functions of a prior, statistics, parameters and rows."""

    n_components: int

    @abstractmethod
    def zeros(self, width: int) -> Stats:
        """Return the statistics of no rows that have `width` columns."""

    @abstractmethod
    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> Prior:
        """Return the prior: what the user gave, completed in the scale of the rows.

        The rows are those of the warm-up, `responsibilities` (n, K) those of the seeds, and `geometry` what the method found.
        """

    @abstractmethod
    def log_densities(self, parameters: Params, X: Matrix) -> Array:
        """Return the log-density (n, K) of every row under every component."""

    @abstractmethod
    def collect(self, parameters: Params, X: Matrix, responsibilities: Array) -> Stats:
        """Return total statistics of rows; responsibilities (n, K) are times the weights of the rows."""

    @abstractmethod
    def readout(self, name: str, prior: Prior, totals: Stats) -> Params:
        """Return parameters of the belief that prior and totals make: its "mode", "mean", "expect_log" or "predictive".

        With "expect_log", log-densities are expectations under the belief, as variational Bayes asks for. With "predictive",
        which a family need not have, they are those of rows with the parameters integrated out.
        """

    @abstractmethod
    def log_prior(self, prior: Prior, parameters: Params) -> float:
        """Return the log-density of the prior at parameters that are modes, up to a constant: the penalty of MAP-EM."""

    @abstractmethod
    def divergence(self, prior: Prior, totals: Stats) -> float:
        """Return KL(belief || prior), summed over the components: the penalty in the free energy of variational Bayes."""

    @abstractmethod
    def sample(self, parameters: Params, components: NDArray[np.int64], rng: np.random.Generator, *options: Values) -> Array:
        """Draw one row from each of the listed components."""
