"""What a latent structure asks of a family of K components. Priors, statistics and parameters are the family's own types."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headwater.core.state import Batch
from headwater.core.statistics import Array, Statistics


class Family(Protocol):
    """Pure functions of parameters, totals and rows. A geometry is whatever a start needs to know of the rows."""

    @property
    def readouts(self) -> frozenset[str]: ...

    @property
    def has_prior(self) -> bool: ...

    @property
    def stream(self) -> str: ...

    def n_parameters(self, width: int) -> int: ...

    def rows_to_learn(self, width: int) -> int: ...

    def rows_to_seed(self, width: int) -> int: ...

    def row_bytes(self, width: int) -> int: ...

    def work(self, batch: Batch) -> float: ...

    def zeros(self, width: int) -> Statistics: ...

    def brought(self, prior: Any, own: Any, statistics: Any) -> Any: ...

    def permuted(self, statistics: Any, order: Any) -> Any: ...

    def chosen(self, prior: Any, order: Any) -> Any: ...

    def resized(self, n_components: int) -> Any: ...

    def recombined(self, statistics: Any, matrix: Array, others: Any = None, other_matrix: Array | None = None) -> Any: ...

    def mended(self, prior: Any, totals: Any, sound: Any, share: float) -> Any: ...  # totals that rows could have made

    def separation(self, prior: Any, totals: Any, others: Any) -> Array: ...

    def contrast(self, prior: Any, totals: Any, others: Any) -> Array: ...

    def geometry(self, batch: Batch) -> Any: ...

    def flattened(self, prior: Any) -> Any: ...

    def prior(self, geometry: Any, batch: Batch, responsibilities: Array) -> Any: ...

    def refined(self, prior: Any, parameters: Any, weights: Array, geometry: Any) -> Any: ...

    def picked(self, parameters: Any, order: Any) -> Any: ...

    def readout(self, name: str, prior: Any, totals: Any) -> Any: ...

    def blank_prior(self, width: int) -> Any: ...

    def problem(self, record: Any, width: int) -> str: ...

    def log_prior(self, prior: Any, parameters: Any) -> float: ...

    def divergence(self, prior: Any, totals: Any) -> float: ...

    def estep(
        self,
        parameters: Any,
        log_weights: Array,
        batch: Batch,
        totals: Any = ...,
        scores: Array = ...,
        responsibilities: Array = ...,
        given: bool = ...,
        n_threads: int | None = ...,
    ) -> tuple[float, Any]: ...

    def collect(self, geometry: Any, batch: Batch, responsibilities: Array) -> Any: ...

    def climb(
        self,
        name: str,
        prior: Any,
        concentration: Array,
        batch: Batch,
        passes: int,
        tol: float,
        before: float,
        totals: Any,
    ) -> tuple[Array, Any, Array, bool] | None: ...

    def sweep(
        self,
        name: str,
        prior: Any,
        concentration: Array,
        batch: Batch,
        steps: Array,
        gains: Array,
        n_eff: float,
        statistics: Any,
        average: Any,
        scores: Array,
    ) -> tuple[Any, Any, float]: ...

    def sample(self, parameters: Any, components: NDArray[np.int64], rng: np.random.Generator, *options: Any) -> Array: ...


class Linked(Family, Protocol):
    """A family whose components can be the states of a chain, learned step by step by kernels/chain_sweep.py, too."""

    def log_densities(self, parameters: Any, batch: Batch) -> Array: ...

    def flat(self, statistics: Any) -> Array: ...

    def unflat(self, row: Array, width: int) -> Any: ...

    def sweep_chain(
        self,
        name: str,
        prior: Any,
        chain: tuple[Array, ...],
        X: Array,
        steps: Array,
        gains: Array,
        n_eff: float,
        known: bool,
        now: Array,
        given: Array,
        mean: Array,
        average: Array,
        scores: Array,
    ) -> tuple[float, Array]: ...


class Projected(Family, Protocol):
    """A family that can be learned by moment matching: it has "match_moments" among its readouts."""

    def kept(self, statistics: Any) -> Any: ...

    def valid(self, prior: Any, totals: Any) -> NDArray[np.bool_]: ...

    def replaced(self, statistics: Any, other: Any, which: Any) -> Any: ...

    def match(
        self,
        prior: Any,
        concentration: Array,
        batch: Batch,
        steps: Array,
        n_eff: float,
        statistics: Any,
        scores: Array,
        projection: tuple[str, str],
    ) -> tuple[Any, float]: ...
