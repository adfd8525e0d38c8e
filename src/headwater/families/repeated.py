"""The components of a family, each several times: what the states of a chain emit of which some differ in other ways only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self

import numpy as np
from numpy.typing import NDArray

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.components import ComponentStatistics, sum_rows
from headwater.families.family import Family
from headwater.families.family_core import Params, Prior
from headwater.families.geometry import RowGeometry
from headwater.families.product import ProductStatistics
from headwater.families.soundness import find_count_problem


@dataclass(frozen=True)
class Repeated(Family[Prior, ProductStatistics, Params], Generic[Prior, Params]):
    """The family. Component k of `inner` is each of those from k * times on; prior and parameters are those of `inner`."""

    n_components: int
    times: int
    inner: Family[Prior, Any, Params]

    @classmethod
    def of(cls, inner: Family[Prior, Any, Params], times: int) -> Repeated[Prior, Params]:
        """Return the components of a family, each so many times."""
        return cls(inner.n_components * times, times, inner)

    @property
    def readouts(self) -> frozenset[str]:
        return frozenset({"mode", "mean"})

    @property
    def stream_readout(self) -> StreamReadout:
        return self.inner.stream_readout

    @property
    def has_prior(self) -> bool:
        return self.inner.has_prior

    @property
    def takes_gaps(self) -> bool:
        return self.inner.takes_gaps

    def n_parameters(self, width: int) -> int:
        return self.inner.n_parameters(width)

    def zeros(self, width: int) -> ProductStatistics:
        return ProductStatistics.of(np.zeros(self.n_components), (self.inner.zeros(width),))

    # Priors and readouts

    def geometry(self, batch: Batch) -> RowGeometry:
        return self.inner.geometry(batch)

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> Prior:
        return self.inner.prior(geometry, batch, self.pooled(responsibilities))

    def blank_prior(self, width: int) -> Prior:
        return self.inner.blank_prior(width)

    def flatten_prior(self, prior: Prior) -> Prior:
        return self.inner.flatten_prior(prior)

    def flatten_parts(self, prior: Prior) -> Prior:
        return self.inner.flatten_parts(prior)

    def common_prior(self, priors: Sequence[Prior]) -> Prior:
        return self.inner.common_prior(priors)

    def readout(self, name: str, prior: Prior, totals: ProductStatistics) -> Params:
        return self.inner.readout(name, prior, _inner(totals))

    def log_prior(self, prior: Prior, parameters: Params) -> float:
        return self.inner.log_prior(prior, parameters)

    def divergence(self, prior: Prior, totals: ProductStatistics) -> float:
        return self.inner.divergence(prior, _inner(totals))

    # Rows

    def profile(self, X: Matrix) -> Array:
        return self.inner.profile(X)

    def pooled(self, shares: Array) -> Array:
        """Return shares (n, K * times) of rows as those (n, K) of the components of `inner`."""
        return np.ascontiguousarray(shares.reshape(len(shares), -1, self.times).sum(axis=2))

    def log_densities(self, parameters: Params, X: Matrix) -> Array:
        gapped = isinstance(X, GappedRows)
        logs = (self.inner.log_densities_with_gaps if gapped else self.inner.log_densities)(parameters, self.inner.prepare(X))
        return np.repeat(logs, self.times, axis=1)

    def collect(self, parameters: Params, X: Matrix, responsibilities: Array) -> ProductStatistics:
        collect = self.inner.collect_with_gaps if isinstance(X, GappedRows) else self.inner.collect
        inner = collect(parameters, self.inner.prepare(X), self.pooled(responsibilities))
        return ProductStatistics.of(sum_rows(responsibilities), (inner,))

    def log_densities_with_gaps(self, parameters: Params, X: GappedRows) -> Array:
        return self.log_densities(parameters, X)

    def collect_with_gaps(self, parameters: Params, X: GappedRows, responsibilities: Array) -> ProductStatistics:
        return self.collect(parameters, X, responsibilities)

    def sample(self, parameters: Params, components: NDArray[np.int64], rng: np.random.Generator, *options: Values) -> Array:
        return self.inner.sample(parameters, components // self.times, rng, *options)

    # Components

    def resize(self, n_components: int) -> Self:
        return replace(self, n_components=n_components, inner=self.inner.resize(n_components // self.times))

    def move_to_prior(self, prior: Prior, own: Prior, statistics: ProductStatistics) -> ProductStatistics:
        return replace(statistics, blocks=(self.inner.move_to_prior(prior, own, _inner(statistics)),))

    def density_divergences(self, ones: Params, others: Params) -> Array:
        """Those of the components of `inner`, each pair as often as it is repeated."""
        found = self.inner.density_divergences(ones, others)
        return np.repeat(np.repeat(found, self.times, axis=0), self.times, axis=1)

    def find_impossible(self, totals: ProductStatistics) -> NDArray[np.bool_]:
        return np.asarray((totals.count < 0.0) | np.repeat(self.inner.find_impossible(_inner(totals)), self.times))

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, ProductStatistics):
            return find_count_problem(record.count) or self.inner.find_problem(_inner(record), width)
        return self.inner.find_problem(record, width)


def _inner(totals: ProductStatistics) -> ComponentStatistics:
    return totals.blocks[0]
