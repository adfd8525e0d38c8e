"""K components that are mixtures of Gaussians themselves: each has a group of them, with weights of its own.

The Gaussians of all groups are one family of K times `size`, whose kernels do the work: a row is shared among the components as
ever, and its share of a component among the Gaussians of the group. Component k has those from k * size on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, logsumexp

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Index, Matrix, Values
from headwater.families.components import sum_rows
from headwater.families.family import Family
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_prior import given_prior
from headwater.families.gaussian_records import GaussianParameters, GaussianPrior, GaussianStatistics
from headwater.families.geometry import Geometry
from headwater.families.product import ProductStatistics
from headwater.families.soundness import NO_PARAMETERS, find_count_problem

CLIMBS = 5  # of k-means within each component, where a start is found
LEAST_WEIGHT = 1e-300


@dataclass(frozen=True)
class GroupedPrior:
    """Dirichlet parameter of the weights in every group, and the prior of the Gaussians."""

    concentration: float
    inner: GaussianPrior


@dataclass(frozen=True)
class GroupedParameters:
    """Logarithms (K, size) of the weights, or their expectations, and the parameters of the Gaussians."""

    log_weights: Array
    inner: GaussianParameters


@dataclass(frozen=True)
class Grouped(Family[GroupedPrior, ProductStatistics, GroupedParameters]):
    """The family. `inner` are the Gaussians of all groups; statistics hold theirs as the one block."""

    n_components: int
    size: int
    inner: Gaussian
    concentration: float = 1.0

    @classmethod
    def of(cls, n_components: int, size: int, inner: Gaussian, concentration: float = 1.0) -> Grouped:
        """Return the family with as many Gaussians as it takes."""
        return cls(n_components, size, replace(inner, n_components=n_components * size), concentration)

    @property
    def readouts(self) -> frozenset[str]:
        return frozenset({"mode", "mean", "expect_log"})

    @property
    def stream_readout(self) -> StreamReadout:
        return self.inner.stream_readout

    @property
    def has_prior(self) -> bool:
        return self.inner.has_prior

    @property
    def takes_gaps(self) -> bool:
        return True

    def resize(self, n_components: int) -> Self:
        return replace(self, n_components=n_components, inner=self.inner.resize(n_components * self.size))

    def n_parameters(self, width: int) -> int:
        return self.inner.n_parameters(width) + self.n_components * (self.size - 1)

    def zeros(self, width: int) -> ProductStatistics:
        return ProductStatistics.of(np.zeros(self.n_components), (self.inner.zeros(width),))

    # Priors and starts

    def geometry(self, batch: Batch) -> Geometry:
        return self.inner.geometry(batch)

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> GroupedPrior:
        shares = self._split(geometry, responsibilities)
        return GroupedPrior(self.concentration, self.inner.prior(geometry, batch, shares))

    def blank_prior(self, width: int) -> GroupedPrior:
        return GroupedPrior(self.concentration, self.inner.blank_prior(width))

    def flatten_prior(self, prior: GroupedPrior) -> GroupedPrior:
        return replace(prior, inner=self.inner.flatten_prior(prior.inner))

    def flatten_parts(self, prior: GroupedPrior) -> GroupedPrior:
        return replace(prior, inner=given_prior(self.inner, prior.inner))

    def refine_prior(
        self, prior: GroupedPrior, parameters: GroupedParameters, weights: Array, geometry: Geometry
    ) -> GroupedPrior:
        each = (weights[:, None] * np.exp(parameters.log_weights)).ravel()
        return replace(prior, inner=self.inner.refine_prior(prior.inner, parameters.inner, each, geometry))

    def collect_seeds(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> ProductStatistics:
        inner = self.inner.collect_seeds(geometry, batch, self._split(geometry, responsibilities))
        return ProductStatistics.of(sum_rows(responsibilities), (inner,))

    def _split(self, geometry: Geometry, responsibilities: Array) -> Array:
        """Return shares (n, K * size) of rows whose components are known: cut along their main axes, and then by k-means."""
        rows = geometry.views(np.arange(len(responsibilities)))[0]
        found = np.zeros((len(rows), self.n_components, self.size))
        for k, weights in enumerate(responsibilities.T):
            own = weights + 1e-12
            apart = (rows - np.average(rows, axis=0, weights=own)) * np.sqrt(own)[:, None]
            axis = np.linalg.svd(apart.T @ apart, hermitian=True)[0][:, 0]
            order = np.argsort(rows @ axis, kind="stable")
            level = np.empty(len(rows))
            level[order] = (np.cumsum(own[order]) - 0.5 * own[order]) / own.sum()
            group = np.minimum((level * self.size).astype(int), self.size - 1)
            for _ in range(CLIMBS):
                shares = np.eye(self.size)[group] * own[:, None]
                centres = (shares.T @ rows) / np.maximum(shares.sum(axis=0), 1e-12)[:, None]
                group = ((centres**2).sum(axis=1) - 2.0 * rows @ centres.T).argmin(axis=1)
            found[:, k] = np.eye(self.size)[group] * weights[:, None]
        return found.reshape(len(rows), -1)

    # Readouts

    def _weights(self, name: str, prior: GroupedPrior, totals: ProductStatistics) -> Array:
        count = np.maximum(totals.blocks[0].count, 0.0).reshape(self.n_components, self.size)
        belief = count + prior.concentration - (min(prior.concentration, 1.0) if name == "mode" else 0.0)
        if name == "expect_log":
            return np.asarray(digamma(belief) - digamma(belief.sum(axis=1, keepdims=True)))
        belief = np.maximum(belief, LEAST_WEIGHT)
        return np.log(belief / belief.sum(axis=1, keepdims=True))

    def readout(self, name: str, prior: GroupedPrior, totals: ProductStatistics) -> GroupedParameters:
        inner = self.inner.readout(name, prior.inner, _inner(totals))
        return GroupedParameters(self._weights(name, prior, totals), inner)

    def log_prior(self, prior: GroupedPrior, parameters: GroupedParameters) -> float:
        excess = max(prior.concentration - 1.0, 0.0)
        return float(excess * parameters.log_weights.sum()) + self.inner.log_prior(prior.inner, parameters.inner)

    def divergence(self, prior: GroupedPrior, totals: ProductStatistics) -> float:
        count = np.maximum(totals.blocks[0].count, 0.0).reshape(self.n_components, self.size)
        before, after = prior.concentration, count + prior.concentration
        all_before, all_after = self.size * before, after.sum(axis=1)
        expected = digamma(after) - digamma(all_after)[:, None]
        weights = (gammaln(all_after) - gammaln(all_before)).sum() - (gammaln(after) - gammaln(before)).sum()
        return float(weights + (count * expected).sum()) + self.inner.divergence(prior.inner, _inner(totals))

    # Rows

    def _joint(self, parameters: GroupedParameters, X: Matrix) -> Array:
        """Log-densities (n, K, size) of the Gaussians, with their weights."""
        logs = self.inner.log_densities(parameters.inner, X).reshape(len(X), self.n_components, self.size)
        return np.asarray(logs + parameters.log_weights)

    def log_densities(self, parameters: GroupedParameters, X: Matrix) -> Array:
        return np.asarray(logsumexp(self._joint(parameters, X), axis=2))

    def collect(self, parameters: GroupedParameters, X: Matrix, responsibilities: Array) -> ProductStatistics:
        joint = self._joint(parameters, X)
        joint -= joint.max(axis=2, keepdims=True)
        shares = np.exp(joint, out=joint)
        shares *= (responsibilities / shares.sum(axis=2))[:, :, None]
        inner = self.inner.collect(parameters.inner, X, shares.reshape(len(X), -1))
        return ProductStatistics.of(sum_rows(responsibilities), (inner,))

    def log_densities_with_gaps(self, parameters: GroupedParameters, X: GappedRows) -> Array:
        return self.log_densities(parameters, X)

    def collect_with_gaps(self, parameters: GroupedParameters, X: GappedRows, responsibilities: Array) -> ProductStatistics:
        return self.collect(parameters, X, responsibilities)

    def sample(
        self, parameters: GroupedParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        bounds = np.cumsum(np.exp(parameters.log_weights), axis=1)[components]
        drawn = np.minimum((rng.random((len(components), 1)) >= bounds).sum(axis=1), self.size - 1)
        return self.inner.sample(parameters.inner, components * self.size + drawn, rng)

    # Components

    def _places(self, order: Index) -> NDArray[np.int64]:
        """The Gaussians of these components."""
        return (np.asarray(order)[:, None] * self.size + np.arange(self.size)).ravel()

    def select_statistics(self, statistics: ProductStatistics, order: Index) -> ProductStatistics:
        inner = self.inner.select_statistics(_inner(statistics), self._places(order))
        return ProductStatistics(statistics.from_base, statistics.count[order], (inner,))

    def select_prior(self, prior: GroupedPrior, order: Index) -> GroupedPrior:
        return replace(prior, inner=self.inner.select_prior(prior.inner, self._places(order)))

    def select_parameters(self, parameters: GroupedParameters, order: Index) -> GroupedParameters:
        inner = self.inner.select_parameters(parameters.inner, self._places(order))
        return GroupedParameters(parameters.log_weights[order], inner)

    def move_to_prior(self, prior: GroupedPrior, own: GroupedPrior, statistics: ProductStatistics) -> ProductStatistics:
        return replace(statistics, blocks=(self.inner.move_to_prior(prior.inner, own.inner, _inner(statistics)),))

    def find_impossible(self, totals: ProductStatistics) -> NDArray[np.bool_]:
        inner = self.inner.find_impossible(_inner(totals)).reshape(self.n_components, self.size)
        return np.asarray((totals.count < 0.0) | inner.any(axis=1))

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, ProductStatistics):
            return find_count_problem(record.count) or self.inner.find_problem(record.blocks[0], width)
        if isinstance(record, GroupedParameters):
            bad = record.log_weights.max() > 1e-9
            return NO_PARAMETERS if bad else self.inner.find_problem(record.inner, width)
        return self.inner.find_problem(record.inner, width) if isinstance(record, GroupedPrior) else ""

    # What users see and set

    def with_parameters(self, given: Mapping[str, Array], found: GroupedParameters | None) -> GroupedParameters:
        """Return the parameters of given weights (K, size), means (K, size, d) and inverse factors of covariances."""
        weights, means, factor = given["weights"], given["centres"], given["factor"]
        means = means.reshape(-1, means.shape[2])
        origin = means.mean(axis=0) if found is None else found.inner.origin
        inner = self.inner.from_precisions(origin, means, factor.reshape(len(means), *factor.shape[2:]))
        return GroupedParameters(np.log(np.maximum(weights, LEAST_WEIGHT)), inner)

    def pseudo_rows(self, parameters: GroupedParameters) -> tuple[Array, Array]:
        """Return points whose moments are those of the Gaussians, and their shares of the components."""
        means, covariances = self.inner.means(parameters.inner), self.inner.covariances(parameters.inner)
        k, width = means.shape
        if self.inner.kind.matrix:
            roots = np.linalg.cholesky(covariances)
        else:
            variances = np.broadcast_to(covariances[:, None] if covariances.ndim == 1 else covariances, (k, width))
            roots = np.sqrt(variances)[:, :, None] * np.eye(width)
        steps = np.sqrt(width) * np.swapaxes(roots, 1, 2)
        points = np.concatenate([means[:, None] + steps, means[:, None] - steps], axis=1).reshape(-1, width)
        each = np.exp(parameters.log_weights).ravel() / (2 * width)
        owners = np.repeat(np.arange(self.n_components), 2 * width * self.size)
        return points, np.eye(self.n_components)[owners] * np.repeat(each, 2 * width)[:, None]


def _inner(totals: ProductStatistics) -> GaussianStatistics:
    (inner,) = totals.blocks
    assert isinstance(inner, GaussianStatistics)
    return inner
