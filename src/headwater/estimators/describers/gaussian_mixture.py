"""What a mixture of Gaussians says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.core.statistics import Array
from headwater.diagnostics.component_description import (
    ODD_COLUMN_Z,
    Limits,
    column_names,
    gaussian_components,
    gaussian_oddities,
)
from headwater.diagnostics.description import Description, Value
from headwater.diagnostics.health import PRUNE_ADVICE, Evidence, Finding
from headwater.diagnostics.health_gaps import gap_findings
from headwater.diagnostics.health_gaussian import GaussianChecks, constant_columns
from headwater.diagnostics.health_rounding import ROW_LIMIT, rounding_findings
from headwater.diagnostics.intervals import mean_intervals
from headwater.estimators.describers.mixture import MixtureDescriber

if TYPE_CHECKING:
    from headwater.estimators.describers.describer import GaussianView


def _with_names(model: object, row: Array) -> Chunk:
    return Chunk(np.asarray(row, dtype=float)[None], getattr(model, "feature_names_in_", None))


class GaussianMixtureDescriber(MixtureDescriber):
    """Means, spreads and shapes of Gaussians."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        belief, names = self.model._component_belief(), column_names(self.model, self.model.n_features_in_)
        return Description(
            **gaussian_components(
                names, self.model.weights_, self.model.means_, self.variances(), limits, self.weight_intervals(limits),
                lambda columns: mean_intervals(self.model._family, belief, limits.level, columns),
            )
        )  # fmt: skip

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        rows, family = self.model._rows_behind(), self.model._family
        (k, width), each = self.model.means_.shape, family.n_parameters(self.model.n_features_in_) / self.model.n_components_
        floor = family.reg_covar if self.model._modal and not self.model.scale_columns else 0.0

        def checks() -> GaussianChecks:
            names, (prior, statistics, _) = column_names(self.model, width), self.model._proper_belief()
            part = self.model._component_part
            constant = constant_columns(part(statistics), part(prior.components), family.kind.matrix)
            return GaussianChecks(
                rows, self.model.means_, self.model.covariances_, family.kind.matrix, names, each, floor, constant=constant,
                spherical=family.spherical, rounds=family.resolution is None,
            )  # fmt: skip

        _, statistics, count = self.model._proper_belief()
        known = (
            *gap_findings(self.model._component_part(statistics), count, column_names(self.model, width)),
            *self._rounding(),
        )
        return Evidence(rows, checks=checks, work=k * each * (k + 10 * width), remedy=PRUNE_ADVICE, known=known)

    def _rounding(self) -> list[Finding]:
        """What rows that are at hand say of steps that no resolution was given for."""
        if self.model._family.resolution is not None:
            return []
        kept, runtime = self.model._read().reservoir_rows(ROW_LIMIT), self.model._reader
        if kept is None and not runtime.waiting_rows:
            return []
        rows = runtime.waiting_batch().X if kept is None else kept.batch.X
        variances = self.variances()
        if self.model._family.kind.matrix:  # of each column given the others
            precisions = self.model.precisions_
            variances = np.broadcast_to(1.0 / np.diagonal(precisions, axis1=-2, axis2=-1), variances.shape)
        names = column_names(self.model, self.model.n_features_in_)
        return rounding_findings(rows, variances, self.model._rows_behind() >= 1.0, names)

    def moments(self) -> tuple[list[str], Array, Array]:
        """Return the names of the columns, and mean and variance (K, d) of each."""
        return column_names(self.model, self.model.n_features_in_), self.model.means_, self.variances()

    def patterns(self) -> Array:
        """Return what components are in all columns (K, d)."""
        return self.model.means_

    def gaussians(self) -> GaussianView:
        """Return what has weights, means and covariances of Gaussians over the columns."""
        return self.model

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first: from what the other columns expect.

        Where all go with one another, those that are far from their component together.
        """
        reasons = self.model.explain(_with_names(self.model, row))
        names, at = column_names(self.model, self.model.n_features_in_), reasons.order(most)[0]
        standing = reasons.deviations[0]
        if np.nanmax(np.abs(standing), initial=0.0) >= ODD_COLUMN_Z or np.isnan(reasons.values).any():
            return tuple(
                Value(names[j], float(row[j]), None, float(reasons.low[0, j]), float(reasons.high[0, j]), float(standing[j]))
                for j in at
                if not np.isnan(standing[j])
            )
        k = int(self.model.predict_one(row))
        covariances = self.model.covariances_
        covariance = covariances if self.model._family.covariance_type == "tied" else covariances[k]
        return gaussian_oddities(names, row, self.model.means_[k], covariance, most)

    def variances(self) -> Array:
        """Variance of each column in each component, whatever the kind (K, d)."""
        covariances, shape = self.model.covariances_, self.model.means_.shape
        if self.model._family.kind.matrix:
            return np.broadcast_to(np.diagonal(covariances, axis1=-2, axis2=-1), shape)
        return np.broadcast_to(covariances[:, None], shape) if covariances.ndim == 1 else covariances

    def columns(self, components: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        names = getattr(self.model, "feature_names_in_", [f"x{index}" for index in range(self.model.n_features_in_)])
        more = ["..."] if len(names) > 4 else []
        lines = [[*(f"{value:.4g}" for value in mean[:4]), *more] for mean in self.model.means_[components]]
        return "means", [*map(str, names[:4]), *more], lines
