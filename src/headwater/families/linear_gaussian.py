"""K linear regressions of several targets on the same inputs: y = B [1, x] + noise, each with its own noise covariance.

A row is the inputs x and then the targets y. The prior of the coefficients B and of the noise covariance is matrix-normal
inverse-Wishart, as in chapter 9 of Rossi, Allenby and McCulloch (2005): B given the noise has the column precision `precision`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import HEAVIEST, LARGEST, Array
from headwater.core.values import Index, Matrix, Values
from headwater.families.components import select_components
from headwater.families.conditional_law import ConditionalLaw, IndependentColumns, Mask, Places
from headwater.families.entry_law import NormalEntries
from headwater.families.family import Family
from headwater.families.geometry import Geometry
from headwater.families.linear_gaussian_belief import (
    LOG_TWO_PI,
    LinearGaussianParameters,
    LinearGaussianPrior,
    LinearGaussianStatistics,
    belief_divergence,
    expected_log_determinant,
    lower_factor,
    precision_root,
    solve_normal_equations,
)
from headwater.families.soundness import (
    BEYOND,
    FARTHEST,
    MOST_ROWS,
    NO_PARAMETERS,
    NO_PRIOR,
    SLACK,
    exceeds,
    has_indefinite,
)

COEF_ROWS = 1e-3  # that the prior of the coefficients counts as
FLAT = 1e-9  # part of the default prior that is left where there is none: it matters to states without rows only
MOST_LEVERAGE = 1e155  # of a row of ones, where the rows behind a belief are as small as 1e-150
SMOOTHED = 5  # rows over which a seed looks for times of much and of little noise


@dataclass(frozen=True)
class LinearGaussian(Family[LinearGaussianPrior, LinearGaussianStatistics, LinearGaussianParameters]):
    """The family. The last `n_targets` columns of a row are the targets; `noise_floor` is a part of their variances."""

    n_components: int
    n_targets: int = 1
    intercept: bool = True
    noise_floor: float = 1e-6

    @property
    def stream_readout(self) -> StreamReadout:
        """Means stream best where states have few rows."""
        return "mean"

    @property
    def has_prior(self) -> bool:
        """Passes of EM have no prior."""
        return False

    def n_inputs(self, width: int) -> int:
        """Number of coefficients of a target, for rows of this width."""
        return width - self.n_targets + self.intercept

    def n_parameters(self, width: int) -> int:
        d = self.n_targets
        return self.n_components * (d * self.n_inputs(width) + d * (d + 1) // 2)

    def zeros(self, width: int) -> LinearGaussianStatistics:
        size = self.n_inputs(width) + self.n_targets
        return LinearGaussianStatistics.of(np.zeros(self.n_components), np.zeros((self.n_components, size, size)))

    # Seeds and prior

    def geometry(self, batch: Batch) -> Geometry:
        """Views: a design and the last target, whose planes are groups; and how far rows are from one regression, smoothed."""
        whole = Geometry.of(batch, matrix=False)
        scaled = np.where(whole.spread > 0.0, whole.coordinates[0], 0.0)
        design = np.hstack([np.ones((len(batch), 1)), scaled])
        inputs, targets = design[:, : -self.n_targets], design[:, -self.n_targets :]
        away = np.log(np.square(targets - inputs @ np.linalg.lstsq(inputs, targets, rcond=None)[0]) + 1e-6)
        window = np.ones(min(SMOOTHED, len(batch))) / min(SMOOTHED, len(batch))
        calm = np.column_stack([np.convolve(column, window, mode="same") for column in away.T])
        calm = (calm - calm.mean(axis=0)) / np.maximum(calm.std(axis=0), 1e-12)
        origin = whole.origin if self.intercept else np.zeros_like(whole.origin)
        spread = whole.spread if self.intercept else whole.spread + np.square(whole.origin)
        return Geometry(origin, spread, (design, calm))

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> LinearGaussianPrior:
        d, spread = self.n_targets, np.where(geometry.spread > 0.0, geometry.spread, 1.0)
        design, targets = self._split(geometry.origin, batch.X)
        rest = targets - design @ np.linalg.lstsq(design, targets, rcond=None)[0]
        noise = np.maximum((rest**2).mean(axis=0), 1e-6 * spread[-d:])
        units = np.concatenate([np.ones(int(self.intercept)), spread[:-d]])
        dof = d + 2.0
        return LinearGaussianPrior(
            geometry.origin, COEF_ROWS * np.diag(units), dof, dof * np.diag(noise), self.noise_floor * spread[-d:]
        )

    def blank_prior(self, width: int) -> LinearGaussianPrior:
        d, q = self.n_targets, self.n_inputs(width)
        return LinearGaussianPrior(np.zeros(width), np.eye(q), d + 2.0, np.eye(d), np.zeros(d))

    def flatten_prior(self, prior: LinearGaussianPrior) -> LinearGaussianPrior:
        """The prior whose mode is maximum likelihood, but for a floor under the noise."""
        dof = FLAT - (self.n_targets + 1.0 + len(prior.precision))
        return replace(prior, precision=FLAT * prior.precision, dof=dof, scale=FLAT * prior.scale / prior.dof)

    def select_prior(self, prior: LinearGaussianPrior, order: Index) -> LinearGaussianPrior:
        """All components share one prior."""
        return prior

    def select_parameters(self, parameters: LinearGaussianParameters, order: Index) -> LinearGaussianParameters:
        return select_components(parameters, order, ("origin",))

    def move_to_prior(
        self, prior: LinearGaussianPrior, own: LinearGaussianPrior, statistics: LinearGaussianStatistics
    ) -> LinearGaussianStatistics:
        """Return statistics gathered about the origin of `own`, about that of `prior`."""
        if not self.intercept:
            return statistics
        shift = np.eye(statistics.cross.shape[1])
        shift[1:, 0] = own.origin - prior.origin
        return replace(statistics, cross=shift @ statistics.cross @ shift.T)

    # Beliefs and readouts

    def belief(self, prior: LinearGaussianPrior, totals: LinearGaussianStatistics) -> tuple[Array, Array, Array, Array]:
        """Return precision (K, q, q) and mean (K, d, q) of the coefficients, degrees of freedom (K,) and scale (K, d, d)."""
        q, cross = len(prior.precision), 0.5 * (totals.cross + np.swapaxes(totals.cross, 1, 2))
        precision = prior.precision + cross[:, :q, :q]
        mean = np.swapaxes(solve_normal_equations(precision, cross[:, :q, q:]), 1, 2)
        # Of a sum of squares that rounding made smaller than nothing only the prior is left.
        shared = mean @ cross[:, :q, q:]
        rest = cross[:, q:, q:] - shared - np.swapaxes(shared, 1, 2) + mean @ precision @ np.swapaxes(mean, 1, 2)
        values, vectors = np.linalg.eigh(0.5 * (rest + np.swapaxes(rest, 1, 2)))
        rest = (vectors * np.maximum(values, 0.0)[:, None]) @ np.swapaxes(vectors, 1, 2)
        return precision, mean, prior.dof + totals.count, prior.scale + rest

    def readout(self, name: str, prior: LinearGaussianPrior, totals: LinearGaussianStatistics) -> LinearGaussianParameters:
        precision, mean, dof, scale = self.belief(prior, totals)
        d, q = self.n_targets, len(prior.precision)
        rows = dof + (d + 1.0 + q if name == "mode" else 0.0)
        covariance = scale / np.maximum(rows, FLAT)[:, None, None]  # the mean of a flat belief of few rows is none
        if name == "mode":
            covariance = covariance + np.diag(prior.floor)
        factor = precision_root(covariance)
        log_precision = 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        leverage = np.zeros_like(precision)
        if name == "expect_log":
            log_precision = expected_log_determinant(dof, scale)
            leverage = np.sqrt(d) * np.linalg.inv(lower_factor(precision))
        return LinearGaussianParameters(prior.origin, mean, factor, 0.5 * (log_precision - d * LOG_TWO_PI), leverage)

    def log_prior(self, prior: LinearGaussianPrior, parameters: LinearGaussianParameters) -> float:
        d, q = self.n_targets, len(prior.precision)
        precisions = np.swapaxes(parameters.factor, 1, 2) @ parameters.factor
        logs = 2.0 * np.log(np.diagonal(parameters.factor, axis1=1, axis2=2)).sum(axis=1)
        away = prior.scale + parameters.coef @ prior.precision @ np.swapaxes(parameters.coef, 1, 2)
        return float(0.5 * ((prior.dof + d + 1.0 + q) * logs - np.einsum("kij,kji->k", precisions, away)).sum())

    def divergence(self, prior: LinearGaussianPrior, totals: LinearGaussianStatistics) -> float:
        return belief_divergence(prior, *self.belief(prior, totals))

    # Rows

    def _split(self, origin: Array, X: Matrix) -> tuple[Array, Array]:
        """Design (n, q) and targets (n, d) about the origin."""
        rows = (X.values if isinstance(X, GappedRows) else X) - origin
        inputs, targets = rows[:, : -self.n_targets], rows[:, -self.n_targets :]
        return (np.hstack([np.ones((len(rows), 1)), inputs]) if self.intercept else inputs), targets

    def log_densities(self, parameters: LinearGaussianParameters, X: Matrix) -> Array:
        design, targets = self._split(parameters.origin, X)
        found, uncertain = np.empty((len(design), self.n_components)), bool(parameters.leverage.any())
        for k in range(self.n_components):
            away = (targets - design @ parameters.coef[k].T) @ parameters.factor[k].T
            squares = np.einsum("ij,ij->i", away, away)
            if uncertain:
                spread = design @ parameters.leverage[k].T
                squares += np.einsum("ij,ij->i", spread, spread)
            found[:, k] = parameters.offset[k] - 0.5 * squares
        return found

    def collect(self, parameters: LinearGaussianParameters, X: Matrix, responsibilities: Array) -> LinearGaussianStatistics:
        rows = np.hstack(self._split(parameters.origin, X))
        cross = np.array([(rows * share[:, None]).T @ rows for share in responsibilities.T])
        return LinearGaussianStatistics.of(responsibilities.sum(axis=0), cross)

    def sample(
        self, parameters: LinearGaussianParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        """Draw targets for rows (n, w) whose inputs are known (`options`), or for the mean inputs; return whole rows."""
        rows = np.tile(parameters.origin, (len(components), 1))
        if options:
            rows[:, : -self.n_targets] = np.asarray(options[0], dtype=float)[:, : rows.shape[1] - self.n_targets]
        design, _ = self._split(parameters.origin, rows)
        means = np.einsum("nij,nj->ni", parameters.coef[components], design) + parameters.origin[-self.n_targets :]
        noise = rng.normal(size=means.shape)
        roots = np.linalg.inv(parameters.factor)
        rows[:, -self.n_targets :] = means + np.einsum("nij,nj->ni", roots[components], noise)
        return rows

    def conditional(self, parameters: LinearGaussianParameters, X: Matrix, missing: Mask) -> ConditionalLaw:
        """Return the law of missing targets of rows whose inputs are known; each target by itself."""
        rows = np.where(missing, 0.0, X.values if isinstance(X, GappedRows) else X)
        design, _ = self._split(parameters.origin, rows)
        width = rows.shape[1]
        means = np.einsum("kij,nj->nki", parameters.coef, design) + parameters.origin[-self.n_targets :]
        deviations = np.sqrt(np.diagonal(self.covariances(parameters), axis1=1, axis2=2))

        def law_of(at: Places, columns: Places) -> NormalEntries:
            target = columns - (width - self.n_targets)
            return NormalEntries(means[at, :, target], deviations[:, target].T)

        return IndependentColumns(rows, missing, self.n_components, law_of, tuple(range(width - self.n_targets)))

    # What users see

    def covariances(self, parameters: LinearGaussianParameters) -> Array:
        """Noise covariances (K, d, d)."""
        roots = np.linalg.inv(parameters.factor)
        return np.asarray(roots @ np.swapaxes(roots, 1, 2))

    def coefficients(self, parameters: LinearGaussianParameters) -> tuple[Array, Array]:
        """Coefficients (K, d, p) and intercepts (K, d), in the coordinates of the rows."""
        d, origin = self.n_targets, parameters.origin
        if not self.intercept:
            return parameters.coef.copy(), np.zeros((self.n_components, d))
        slopes = parameters.coef[:, :, 1:]
        return slopes.copy(), parameters.coef[:, :, 0] + origin[-d:] - slopes @ origin[:-d]

    def with_parameters(self, given: Mapping[str, Array], found: LinearGaussianParameters | None) -> LinearGaussianParameters:
        """Return the parameters of given coefficients (K, d, p), intercepts (K, d) and covariances (K, d, d)."""
        slopes, level, factor = given["coef"], given["intercept"], precision_root(given["covariance"])
        k, d, p = slopes.shape
        origin = np.zeros(p + d) if found is None else found.origin
        coef = slopes
        if self.intercept:
            level = level + slopes @ origin[:-d] - origin[-d:]
            coef = np.concatenate([level[:, :, None], slopes], axis=2)
        logs = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        return LinearGaussianParameters(
            origin, np.ascontiguousarray(coef), factor, logs - 0.5 * d * LOG_TWO_PI, np.zeros((k, coef.shape[2], coef.shape[2]))
        )

    def pseudo_rows(self, parameters: LinearGaussianParameters) -> tuple[Array, Array]:
        """Return rows whose targets are those that components expect, and their noise to both sides, at some inputs."""
        d, origin = self.n_targets, parameters.origin
        p = len(origin) - d
        inputs = np.vstack([np.zeros((1, p)), np.eye(p), -np.eye(p)]) + origin[:p]
        spread = np.sqrt(d) * np.linalg.inv(parameters.factor)  # whose products sum to the covariance
        rows, shares = [], []
        for k in range(self.n_components):
            design, _ = self._split(origin, np.hstack([inputs, np.zeros((len(inputs), d))]))
            means = design @ parameters.coef[k].T + origin[p:]
            for direction in range(d):
                for sign in (-1.0, 1.0):
                    rows.append(np.hstack([inputs, means + sign * spread[k][:, direction]]))
                    shares.append(np.tile(np.eye(self.n_components)[k] / (2.0 * d * len(inputs)), (len(inputs), 1)))
        return np.vstack(rows), np.vstack(shares)

    # Files

    def find_impossible(self, totals: LinearGaussianStatistics) -> NDArray[np.bool_]:
        negative = np.diagonal(totals.cross, axis1=1, axis2=2).min(axis=1) < 0.0
        return np.asarray((totals.count < 0.0) | negative)

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, LinearGaussianPrior):
            sound = record.scale.trace() > 0.0 and not has_indefinite(record.precision[None], np.array([1.0]))
            sound = sound and record.dof > -float(width) - 3.0 and record.floor.min(initial=0.0) >= 0.0
            beyond = exceeds(LARGEST, record.origin) or exceeds(HEAVIEST, record.dof) or exceeds(LARGEST**2, record.floor)
            return NO_PRIOR if beyond or not sound else ""
        if isinstance(record, LinearGaussianParameters):
            sound = np.diagonal(record.factor, axis1=1, axis2=2).min() > 0.0
            far = exceeds(LARGEST, record.origin) or exceeds(MOST_LEVERAGE, record.leverage)
            if far or not sound or exceeds(MOST_ROWS, record.offset):
                return NO_PARAMETERS
            logs = np.log(np.diagonal(record.factor, axis1=1, axis2=2)).sum(axis=1) - 0.5 * self.n_targets * LOG_TWO_PI
            exact = not record.leverage.any()  # else the offset is that of an expected density
            return NO_PARAMETERS if exact and exceeds(SLACK, (record.offset - logs) / (1.0 + np.abs(logs))) else ""
        if isinstance(record, LinearGaussianStatistics):
            sizes = np.maximum(np.trace(record.cross, axis1=1, axis2=2), 1e-300)
            if has_indefinite(0.5 * (record.cross + np.swapaxes(record.cross, 1, 2)), sizes):  # which is what `belief` reads
                return "has a scatter that is not positive definite"
        return super().find_problem(record, width)

    def find_mismatch(
        self, parameters: LinearGaussianParameters, prior: LinearGaussianPrior, totals: LinearGaussianStatistics
    ) -> str:
        """Residuals of the rows behind prior and statistics have squares, in units of the noise."""
        d, q = self.n_targets, len(prior.precision)
        products = 0.5 * (totals.cross + np.swapaxes(totals.cross, 1, 2))
        products[:, :q, :q] += prior.precision
        products[:, q:, q:] += prior.scale
        targets = np.broadcast_to(np.eye(d), (self.n_components, d, d))
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = parameters.factor @ np.concatenate([-parameters.coef, targets], axis=2)
            squares = np.einsum("kij,kjl,kil->k", residuals, products, residuals)
            squares += np.einsum("kij,kjl,kil->k", parameters.leverage, products[:, :q, :q], parameters.leverage)
        return BEYOND if exceeds(FARTHEST, squares) else ""
