"""Gaussians that learn inside kernels: passes over a few rows, row by row, by moment matching, along a chain."""

from __future__ import annotations

from abc import abstractmethod
from math import prod

import numpy as np

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.families.gaussian_components import GaussianComponents
from headwater.families.gaussian_gap_sweeps import sweep_chain_with_gaps, sweep_with_gaps
from headwater.families.gaussian_records import (
    GappedStatistics,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    MomentStatistics,
    refuse_singular,
)
from headwater.families.gaussian_rounding import is_rounded
from headwater.kernels.mixture import READOUTS
from headwater.kernels.projection import PROJECTIONS


class GaussianSweeps(GaussianComponents):
    """The part of the Gaussian family that hands whole loops to a kernel."""

    # What the family says

    @abstractmethod
    def blank_parameters(self, origin: Array) -> GaussianParameters:
        """Return parameters that a kernel has yet to fill."""

    @abstractmethod
    def _prior_tuple(self, prior: GaussianPrior) -> tuple[Array | float, ...]:
        """The prior as kernels take it."""

    @abstractmethod
    def _is_dense(self, width: int) -> bool:
        """Whether E-steps are taken by products of matrices."""

    # Rows

    def climb(
        self, name: str, prior: GaussianPrior, concentration: Array, batch: Batch, passes: int, tol: float, before: float,
        totals: GaussianStatistics,
    ) -> tuple[Array, GaussianParameters, Array, bool] | None:  # fmt: skip
        """Make passes over one slab of rows inside a kernel, changing `totals` in place, if there is such a kernel.

        Returns log-weights, parameters, the mean score of each pass, and whether they converged.
        """
        gapped = isinstance(batch.X, GappedRows) or isinstance(totals, GappedStatistics)
        if self.kind.climb is None or gapped or self._is_dense(batch.X.shape[1]) or is_rounded(prior):
            return None
        parameters, log_weights, trace = self.blank_parameters(prior.origin), np.empty(self.n_components), np.empty(passes)
        made, converged, singular = self.kind.climb(
            batch.X, batch.weights, batch.labels, batch.size, prior.origin, READOUTS[name], concentration,
            self._prior_tuple(prior), tol, before, totals.count, totals.first, totals.second, parameters.means,
            parameters.factor, parameters.shift, parameters.offset, parameters.power, parameters.stretch, log_weights, trace,
            0, False,
        )  # fmt: skip
        refuse_singular(singular, prior)
        return log_weights, parameters, trace[:made], converged

    @property
    @abstractmethod
    def sweeps_rows(self) -> bool:
        """Whether there is a kernel: not for rounded columns."""

    def can_sweep(self, prior: GaussianPrior) -> bool:
        return not is_rounded(prior)

    def sweep(
        self, name: str, prior: GaussianPrior, concentration: Array, batch: Batch, steps: Array, gains: Array, n_eff: float,
        statistics: GaussianStatistics, average: GaussianStatistics | None, scores: Array,
    ) -> tuple[GaussianStatistics, GaussianStatistics | None, float]:  # fmt: skip
        """Learn row by row; return statistics and average, as means per row, and n_eff."""
        if isinstance(batch.X, GappedRows) or isinstance(statistics, GappedStatistics):
            return sweep_with_gaps(
                self.kind.matrix, READOUTS[name], prior.origin, self._prior_tuple(prior), concentration, batch, steps, gains,
                n_eff, statistics, average, scores,
            )  # fmt: skip
        totals = statistics.scaled(n_eff)
        moving = totals.zeros_like() if average is None else average.copy()
        n_eff = self.kind.sweep(
            batch.X, batch.weights, batch.labels, prior.origin, READOUTS[name], concentration, self._prior_tuple(prior),
            steps, gains, n_eff, totals.count, totals.first, totals.second,
            (moving.count, moving.first, moving.second), scores,
        )  # fmt: skip
        return totals.scaled(1.0 / n_eff), None if average is None else moving, n_eff

    def match(
        self, prior: GaussianPrior, concentration: Array, batch: Batch, steps: Array, n_eff: float,
        statistics: MomentStatistics, scores: Array, projection: tuple[str, str],
    ) -> tuple[MomentStatistics, float]:  # fmt: skip
        """Learn row by row by moment matching; return statistics, as means per row, and n_eff."""
        assert self.kind.match is not None
        totals = statistics.scaled(n_eff)
        weight_projection, dof_projection = (PROJECTIONS[name] for name in projection)
        n_eff = self.kind.match(
            batch.X, batch.weights, batch.labels, prior.origin, weight_projection, dof_projection, concentration,
            self._prior_tuple(prior), steps, n_eff, totals.count, totals.mean_count, totals.dof_count, totals.first,
            totals.second, scores,
        )  # fmt: skip
        return totals.scaled(1.0 / n_eff), n_eff

    # Chains

    def flat(self, statistics: GaussianStatistics) -> Array:
        """Return statistics as one row of numbers, the counts first."""
        arrays = statistics.to_arrays().items()
        return np.concatenate([array.ravel() for name, array in arrays if name != "from_base"])

    def unflat(self, row: Array, width: int) -> GaussianStatistics:
        """Return the statistics that such a row holds."""
        k, shape = self.n_components, self.kind.second_shape(self.n_components, width)
        end = k * (1 + width) + prod(shape)
        first, second = row[k : k * (1 + width)].reshape(k, width), row[k * (1 + width) : end].reshape(shape)
        if len(row) == end:
            return GaussianStatistics.of(row[:k].copy(), first.copy(), second.copy())
        return GappedStatistics.of(row[:k].copy(), first.copy(), second.copy(), *row[end:].reshape(2, k, width).copy())

    def sweep_chain(
        self, name: str, prior: GaussianPrior, chain: tuple[Array, ...], X: Array, steps: Array, gains: Array, n_eff: float,
        known: bool, now: Array, given: Array, mean: Array, average: Array, scores: Array,
    ) -> tuple[float, Array]:  # fmt: skip
        """Learn the rows of a sequence step by step (see kernels/chain_sweep.py); with gaps, if statistics know them."""
        k, width = self.n_components, X.shape[1]
        shape = self.kind.second_shape(k, width)
        if len(mean) > k * (k + 1) + k * (1 + width) + prod(shape):
            return sweep_chain_with_gaps(
                self.kind.matrix, len(shape) == 2, X, prior.origin, READOUTS[name], chain, self._prior_tuple(prior), steps,
                gains, n_eff, known, now, given, mean, average, scores,
            )  # fmt: skip
        return self.kind.sweep_chain(
            X, prior.origin, READOUTS[name], chain, self._prior_tuple(prior), steps, gains, n_eff, known, now, given,
            mean, average, scores,
        )  # fmt: skip
