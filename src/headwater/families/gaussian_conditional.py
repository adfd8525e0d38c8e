"""Missing columns of rows under K Gaussians, or under the Student-t laws of their predictive density, given the observed ones.

With the inverse Cholesky factor F of a component, w = F (x - mu) with 0 for what is missing, and F_m = Q R its missing columns:
the missing columns have the conditional mean mu_m - R^-1 Q'w and covariance (R'R)^-1, and |w - QQ'w|^2 is the squared distance
of the observed columns. No factor is squared, so this loses no more than the factor itself. Rows that lack the same columns
share Q and R.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtri, gammaln, ndtri

from headwater.core.statistics import Array
from headwater.families.conditional_law import ConditionalLaw, IndependentColumns, Mask, Places
from headwater.families.entry_law import FARTHEST, EntryLaw, NormalEntries, StudentEntries
from headwater.families.gap_patterns import PatternGroup, find_groups
from headwater.families.gaussian_records import GaussianParameters

LOG_PI, LOG_TWO_PI = float(np.log(np.pi)), float(np.log(2.0 * np.pi))


def conditional_law(kind: str, parameters: GaussianParameters, X: Array, missing: Mask) -> ConditionalLaw:
    """Return the distribution of missing columns given observed ones, under components of this kind of covariance."""
    units = parameters.units if parameters.units.size else np.ones(X.shape[1])
    means, factor = parameters.means * units + parameters.origin, parameters.factor / units
    heavy = bool(np.any(parameters.power > 0.0))
    rows = np.where(missing, 0.0, X)
    if kind == "diag" or (kind == "spherical" and not heavy):
        return IndependentColumns(rows, missing, len(means), _ColumnLaws(means, factor, parameters if heavy else None))
    if kind == "spherical":
        factor = factor[:, :, None] * np.eye(X.shape[1])
    factor = np.broadcast_to(factor, (len(means), *factor.shape[-2:]))
    if not heavy:
        return EllipticalLaw(rows, missing, means, factor, None)
    factor = factor * np.sqrt(parameters.stretch)[:, None, None]
    return EllipticalLaw(rows, missing, means, factor, 2.0 * parameters.power - X.shape[1])


@dataclass(frozen=True)
class _ColumnLaws:
    """Laws of independent columns: normal, or Student's t with the degrees of freedom of their own belief."""

    means: Array
    factor: Array
    predictive: GaussianParameters | None

    def __call__(self, rows: Places, columns: Places) -> EntryLaw:
        centre, scale = self.means.T[columns], 1.0 / self.factor.T[columns]
        if self.predictive is None:
            return NormalEntries(centre, scale)
        power, stretch = (
            np.broadcast_to(each.reshape(len(each), -1), self.means.shape).T[columns]
            for each in (self.predictive.power, self.predictive.stretch)
        )
        dof = 2.0 * power - 1.0
        return StudentEntries(centre, scale / np.sqrt(stretch * dof), dof)


@dataclass(frozen=True)
class EllipticalLaw(ConditionalLaw):
    """Components with elliptical contours: normal, or Student's t where `dof` (K,) is given.

    A squared distance is |F (x - mu)|^2; Student's t has the density of (1 + distance)^-(dof + d)/2.
    """

    rows: Array
    missing: Mask
    means: Array
    factor: Array
    dof: Array | None

    # Observed columns

    @cached_property
    def _white(self) -> tuple[Array, list[PatternGroup]]:
        """Distances F (x - mu) (K, n, d) with what is missing at its conditional mean, and the rows with gaps, by pattern."""
        away = np.where(self.missing, 0.0, self.rows - self.means[:, None, :])
        white = away @ np.swapaxes(self.factor, 1, 2)
        groups = find_groups(self.missing, self.factor, white, self.means)
        return white, groups

    @cached_property
    def _distance(self) -> Array:
        return np.asarray(np.square(np.clip(self._white[0], -FARTHEST, FARTHEST)).sum(axis=2).T)

    @cached_property
    def _observed(self) -> Array:
        return np.asarray((~self.missing).sum(axis=1, keepdims=True).astype(float))

    @cached_property
    def _log_det(self) -> Array:
        """Half the log-determinant (n, K) of the precision of the observed columns."""
        whole = np.log(np.diagonal(self.factor, axis1=1, axis2=2)).sum(axis=1)
        found = np.tile(whole, (len(self.rows), 1))
        for group in self._white[1]:
            found[group.rows] -= group.log_det[group.which]
        return found

    @cached_property
    def log_marginal(self) -> Array:
        if self.dof is None:
            return np.asarray(self._log_det - 0.5 * self._observed * LOG_TWO_PI - 0.5 * self._distance)
        return self._log_student(self._observed, self._log_det, self._distance)

    def _log_student(self, size: Array, log_det: Array, distance: Array) -> Array:
        """Log-density of `size` columns of Student's t with these half log-determinants and squared distances; K comes last."""
        assert self.dof is not None
        power = 0.5 * (self.dof + size)
        return np.asarray(gammaln(power) - gammaln(0.5 * self.dof) - 0.5 * size * LOG_PI + log_det - power * np.log1p(distance))

    # Missing columns

    def _stretch(self, rows: Places) -> tuple[Array, Array]:
        """1 + distance and degrees of freedom (g, K) of the conditional Student's t."""
        assert self.dof is not None
        return 1.0 + self._distance[rows], self.dof + self._observed[rows]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Centres and squared scales (n, K, d) of missing entries."""
        n, width = self.rows.shape
        centres, squares = np.zeros((2, n, len(self.means), width))
        for group in self._white[1]:
            rows = group.rows[:, None]
            centres[rows, :, group.columns] = np.swapaxes(group.centre, 1, 2)
            scale = np.square(group.root).sum(axis=3)[group.which]
            if self.dof is not None:
                spread, dof = self._stretch(group.rows)
                scale = scale * (spread / dof)[..., None]
            squares[rows, :, group.columns] = np.swapaxes(scale, 1, 2)
        return centres, squares

    def entries(self, rows: Places, columns: Places) -> EntryLaw:
        centres, squares = (each[rows, :, columns] for each in self._moments)
        if self.dof is None:
            return NormalEntries(centres, np.sqrt(squares))
        return StudentEntries(centres, np.sqrt(squares), (self.dof + self._observed)[rows])

    def covariances(self) -> Array:
        n, width = self.rows.shape
        found = np.zeros((n, len(self.means), width, width))
        for group in self._white[1]:
            covariance = (group.root @ np.swapaxes(group.root, 2, 3))[group.which]
            if self.dof is not None:
                spread, dof = self._stretch(group.rows)
                with np.errstate(divide="ignore"):
                    factor = np.where(dof > 2.0, spread / np.maximum(dof - 2.0, 0.0), np.inf)
                covariance = covariance * factor[..., None, None]
            rows, columns = group.rows[:, None, None], group.columns
            found[rows, :, columns[:, :, None], columns[:, None, :]] = np.moveaxis(covariance, 1, 3)
        return found

    def draw(self, components: Places, uniforms: Array) -> Array:
        filled = self.rows.copy()
        for group in self._white[1]:
            at, chosen = np.arange(len(group.rows)), components[group.rows]
            noise = ndtri(uniforms[group.rows[:, None], group.columns])
            step = (group.root[group.which, chosen] @ noise[:, :, None])[:, :, 0]
            if self.dof is not None:
                spread, dof = (each[at, chosen] for each in self._stretch(group.rows))
                step *= np.sqrt(spread / chdtri(dof, uniforms[group.rows, -1]))[:, None]
            filled[group.rows[:, None], group.columns] = group.centre[at, chosen] + step
        return filled

    def log_density(self, of: Array) -> Array:
        found = np.zeros((len(self.rows), len(self.means)))
        for group in self._white[1]:
            size, distance = group.columns.shape[1], self._group_distance(group, of)
            log_det = group.log_det[group.which]
            if self.dof is None:
                found[group.rows] = log_det - 0.5 * size * LOG_TWO_PI - 0.5 * distance
            else:
                spread, dof = self._stretch(group.rows)
                power = 0.5 * (dof + size)
                constant = gammaln(power) - gammaln(0.5 * dof) - 0.5 * size * (LOG_PI + np.log(spread)) + log_det
                found[group.rows] = constant - power * np.log1p(distance / spread)
        return found

    def _group_distance(self, group: PatternGroup, of: Array) -> Array:
        """Squared distance (g, K) of values in place of the missing ones."""
        away = of[group.rows[:, None], group.columns][:, None, :] - group.centre
        return np.asarray(np.square((group.triangle[group.which] @ away[..., None])[..., 0]).sum(axis=2))

    def ascend(self, of: Array, shares: Array) -> Array:
        better = of.copy()
        for group in self._white[1]:
            precision = (np.swapaxes(group.triangle, 2, 3) @ group.triangle)[group.which]
            weights = shares[group.rows]
            if self.dof is not None:  # a normal law of unknown scale: distant values count less
                spread, dof = self._stretch(group.rows)
                weights = weights * (dof + group.columns.shape[1]) / (spread + self._group_distance(group, of))
            precision = precision * (weights / weights.sum(axis=1, keepdims=True))[..., None, None]
            pull = (precision @ group.centre[..., None]).sum(axis=1)
            better[group.rows[:, None], group.columns] = np.linalg.solve(precision.sum(axis=1), pull)[:, :, 0]
        return better

    # One observed column, or two, given the others

    @cached_property
    def _gradient(self) -> Array:
        """F'F (x - mu) (n, K, d) for rows whose missing columns are at their conditional mean: 0 there."""
        return np.ascontiguousarray(np.swapaxes(self._white[0] @ self.factor, 0, 1))

    def without_column(self) -> tuple[Array, EntryLaw, Places, Places]:
        precision = np.tile(np.square(self.factor).sum(axis=1), (len(self.rows), 1, 1))
        for group in self._white[1]:
            precision[group.rows] = np.square(group.project(self.factor)).sum(axis=2)[group.which]
        seen = ~self.missing
        rows, columns = np.nonzero(seen)
        slope, precision = (np.swapaxes(each, 1, 2)[seen] for each in (self._gradient, precision))
        centre = self.rows[rows, columns][:, None] - slope / precision
        gain = np.square(slope) / precision
        if self.dof is None:
            others = self.log_marginal[rows] + 0.5 * (gain - np.log(precision) + LOG_TWO_PI)
            return others, NormalEntries(centre, precision**-0.5), rows, columns
        distance, size = np.maximum(self._distance[rows] - gain, 0.0), self._observed[rows] - 1.0
        others = self._log_student(size, self._log_det[rows] - 0.5 * np.log(precision), distance)
        dof = self.dof + size
        return others, StudentEntries(centre, np.sqrt((1.0 + distance) / (dof * precision)), dof), rows, columns

    def without_pair(self) -> tuple[Array, Array, Array]:
        precision = np.tile(np.swapaxes(self.factor, 1, 2) @ self.factor, (len(self.rows), 1, 1, 1))
        for group in self._white[1]:
            projected = group.project(self.factor)
            precision[group.rows] = (np.swapaxes(projected, 2, 3) @ projected)[group.which]
        own = np.diagonal(precision, axis1=2, axis2=3)
        det = own[..., :, None] * own[..., None, :] - np.square(precision)
        seen = ~self.missing[:, None, :, None] & ~self.missing[:, None, None, :] & ~np.eye(self.rows.shape[1], dtype=bool)
        det = np.where(seen & (det > 0.0), det, 1.0)
        slope = self._gradient
        squares = np.square(slope)
        cross = slope[..., :, None] * slope[..., None, :] * precision
        gain = (squares[..., :, None] * own[..., None, :] - 2.0 * cross + squares[..., None, :] * own[..., :, None]) / det
        gain = np.maximum(gain, 0.0)
        whole = self.log_marginal[..., None, None]
        if self.dof is None:
            others = whole + 0.5 * (gain - np.log(det)) + LOG_TWO_PI
            return others, whole - others, -0.5 * gain
        distance = np.maximum(self._distance[..., None, None] - gain, 0.0)
        others = self._log_student_pair(distance, det)
        dof = (self.dof + np.maximum(self._observed - 2.0, 0.0))[..., None, None]
        return others, whole - others, -0.5 * dof * np.log1p(gain / (1.0 + distance))

    def _log_student_pair(self, distance: Array, det: Array) -> Array:
        size = np.maximum(self._observed - 2.0, 0.0)[:, None, None, :]
        log_det = self._log_det[:, None, None, :] - 0.5 * np.moveaxis(np.log(det), 1, 3)
        return np.moveaxis(self._log_student(size, log_det, np.moveaxis(distance, 1, 3)), 3, 1)
