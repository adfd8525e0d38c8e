"""K Gaussians of which each has a prior of its own.

The prior of component k is Normal-Wishart or Normal-Gamma with mean m_k, mean precision kappa_k, degrees of freedom nu_k and
scale V_k. Conjugate priors add like rows, so it is a common prior and totals beside it:

    kappa_k - kappa_0,  nu_k - nu_0,  kappa_k m_k - kappa_0 m_0,  V_k - V_0 + kappa_k m_k m_k' - kappa_0 m_0 m_0'

These are added to the totals of rows whenever a belief is read out. So no kernel needs to know of them; what kernels do with
the prior and single rows has a readout for each row instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headwater.core.batch import Batch
from headwater.core.statistics import HEAVIEST, LARGEST, Array
from headwater.core.values import Index
from headwater.families.components import select_components
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_belief import divergence, log_prior
from headwater.families.gaussian_prior import prior_dof
from headwater.families.gaussian_records import (
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    MomentStatistics,
    masses,
)
from headwater.families.geometry import Geometry
from headwater.families.soundness import NO_PRIOR, exceeds

KINDS = ("full", "diag", "spherical")  # covariances that components do not share


@dataclass(frozen=True)
class OwnPrior(GaussianPrior):
    """The common prior, and what components have of their own: means (K, d) about the origin, precisions and dofs (K,).

    `scales` are (K, d, d) or (K, d), or empty if the covariance of the common prior is that of all.
    """

    means: Array = field(default_factory=lambda: np.empty((0, 0)))
    precisions: Array = field(default_factory=lambda: np.empty(0))
    dofs: Array = field(default_factory=lambda: np.empty(0))
    scales: Array = field(default_factory=lambda: np.empty(0))

    @property
    def every_scale(self) -> Array:
        """Scale of each component."""
        if self.scales.size:
            return self.scales
        return self.scale * (self.dofs / self.dof).reshape(-1, *[1] * self.scale.ndim)

    @property
    def each(self) -> Iterator[GaussianPrior]:
        """The prior of each component alone."""
        for mean, precision, dof, scale in zip(self.means, self.precisions, self.dofs, self.every_scale, strict=True):
            yield GaussianPrior(self.origin, mean, float(precision), float(dof), scale, self.floor, self.units)


def add_own(prior: OwnPrior, totals: GaussianStatistics, kind: str) -> MomentStatistics:
    """Return totals to which what the components' priors have beside the common one is added."""
    matrix, (mean_count, dof_count) = kind == "full", masses(totals, kind)
    weighted = prior.precisions[:, None] * prior.means - prior.mean_precision * prior.mean
    squares = _squares(prior.precisions, prior.means, matrix) - _squares(
        np.array([prior.mean_precision]), prior.mean[None], matrix
    )
    second = prior.every_scale - prior.scale + squares
    return MomentStatistics(
        totals.from_base, totals.count, totals.first + weighted, totals.second + (np.tril(second) if matrix else second),
        mean_count + (prior.precisions - prior.mean_precision)[:, None], dof_count + (prior.dofs - prior.dof)[:, None],
    )  # fmt: skip


def _squares(precisions: Array, means: Array, matrix: bool) -> Array:
    if matrix:
        return precisions[:, None, None] * means[:, :, None] * means[:, None]
    return precisions[:, None] * means**2


@dataclass(frozen=True)
class OwnPriorGaussian(Gaussian):
    """The family. Of each hyperparameter there is one for all, or one for each component: its first axis is the component."""

    @property
    def readouts(self) -> frozenset[str]:
        return super().readouts - {"match_moments"}

    @property
    def sweeps_rows(self) -> bool:
        """Kernels that learn rows one by one know one prior for all."""
        return False

    def can_sweep(self, prior: GaussianPrior) -> bool:
        return False

    def climb(self, *_: object) -> None:
        """There is no fast path: kernels know one prior for all."""

    @property
    def takes_gaps(self) -> bool:
        return self.covariance_type == "full"  # other covariances have masses for each column then

    # The prior

    @property
    def _common(self) -> Gaussian:
        """The family with one prior for all: means and least counts of those of the components."""
        mean, scale = self.mean_prior, self.covariance_prior
        if mean is not None and np.ndim(mean) == 2:
            mean = mean.mean(axis=0)
        if self._has_own_scales:
            scale = np.mean(np.asarray(scale), axis=0)
        precision, dof = self.mean_precision_prior, self.degrees_of_freedom_prior
        return Gaussian(
            self.n_components, self.covariance_type, self.reg_covar, mean,
            None if precision is None else float(np.min(precision)), None if dof is None else float(np.min(dof)), scale,
        )  # fmt: skip

    @property
    def _has_own_scales(self) -> bool:
        given: Any = self.covariance_prior
        return given is not None and np.ndim(given) == {"full": 3, "diag": 2, "spherical": 1}[self.covariance_type]

    def check_prior(self, width: int) -> None:
        """Refuse hyperparameters that are not valid priors for rows of this width."""
        common = self._common
        common.check_prior(width)
        if self._has_own_scales:
            for one in np.asarray(self.covariance_prior):
                replace(common, covariance_prior=one).check_prior(width)

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> OwnPrior:
        """The user's priors, completed in the scale of the rows."""
        return self._with_own(self._common.prior(geometry, batch, responsibilities))

    def _with_own(self, common: GaussianPrior) -> OwnPrior:
        k, width = self.n_components, len(common.origin)
        means = common.mean if self.mean_prior is None else self.mean_prior - common.origin
        precision = common.mean_precision if self.mean_precision_prior is None else self.mean_precision_prior
        dof = prior_dof(self._common, width) if self.degrees_of_freedom_prior is None else self.degrees_of_freedom_prior
        scales = np.empty(0)
        if self._has_own_scales:
            scales = np.array(self.covariance_prior, dtype=float)
            scales = np.repeat(scales[:, None], width, axis=1) if self.spherical else scales
        means, precisions, dofs = (
            np.array(np.broadcast_to(np.asarray(one, dtype=float), size))
            for one, size in ((means, (k, width)), (precision, (k,)), (dof, (k,)))
        )
        return OwnPrior(
            common.origin, common.mean, common.mean_precision, common.dof, common.scale, common.floor, common.units,
            means, precisions, dofs, scales,
        )  # fmt: skip

    def blank_prior(self, width: int) -> OwnPrior:
        blank, k = super().blank_prior(width), self.n_components
        scales = np.zeros((k, *blank.scale.shape)) if self._has_own_scales else np.empty(0)
        return OwnPrior(
            blank.origin, blank.mean, blank.mean_precision, blank.dof, blank.scale, blank.floor, blank.units,
            np.zeros((k, width)), np.zeros(k), np.zeros(k), scales,
        )  # fmt: skip

    def refine_prior(
        self, prior: GaussianPrior, parameters: GaussianParameters, weights: Array, geometry: Geometry
    ) -> GaussianPrior:
        """The prior with the covariance of the components, unless the user gave it."""
        return replace(prior, scale=self._common.refine_prior(prior, parameters, weights, geometry).scale)

    def select_prior(self, prior: GaussianPrior, order: Index) -> GaussianPrior:
        """Return the priors of some of the components."""
        if not isinstance(prior, OwnPrior):
            return prior
        scales = prior.scales[order] if prior.scales.size else prior.scales
        own = {name: getattr(prior, name)[order] for name in ("means", "precisions", "dofs")}
        return replace(prior, **own, scales=scales)

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, OwnPrior):
            counts = np.concatenate([record.precisions, record.dofs])
            if np.any(counts <= 0.0) or exceeds(HEAVIEST, counts) or exceeds(4.0 * LARGEST, record.means):
                return NO_PRIOR
            problems = (super(OwnPriorGaussian, self).find_problem(one, width) for one in record.each)
            return next((one for one in problems if one), "")
        return super().find_problem(record, width)

    # Readouts

    def _lifted(self, prior: GaussianPrior, totals: GaussianStatistics, name: str = "mean") -> GaussianStatistics:
        """Totals to which what components have of their own is added."""
        return add_own(prior, totals, self.covariance_type) if isinstance(prior, OwnPrior) else totals

    def log_prior(self, prior: GaussianPrior, parameters: GaussianParameters) -> float:
        """Return what MAP-EM adds to the likelihood."""
        if not isinstance(prior, OwnPrior):
            return super().log_prior(prior, parameters)
        alone = (select_components(parameters, [one], self._shared) for one in range(self.n_components))
        return sum(log_prior(self.covariance_type, own, part) for own, part in zip(prior.each, alone, strict=True))

    def divergence(self, prior: GaussianPrior, totals: GaussianStatistics) -> float:
        """Return KL(belief || prior), summed over the components."""
        if not isinstance(prior, OwnPrior):
            return super().divergence(prior, totals)
        alone = (select_components(totals, [one], self._shared) for one in range(self.n_components))
        return sum(divergence(self.covariance_type, own, part) for own, part in zip(prior.each, alone, strict=True))
