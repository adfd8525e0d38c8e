"""K von Mises-Fisher distributions: directions, rows of length one, about a mean direction; with their conjugate prior.

The sufficient statistics of a component are its rows and their sum, the resultant. See von_mises_fisher_belief.py for the
belief that prior and statistics make.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.bessel import LARGEST_ARGUMENT, solve_bessel_ratio
from headwater.families.components import ComponentStatistics, sum_rows
from headwater.families.direction_sampling import sample_directions
from headwater.families.family import EMPTY, EMPTY_TABLE, Family
from headwater.families.geometry import ROWS_EACH, Geometry, RowGeometry
from headwater.families.soundness import NO_PARAMETERS, NO_PRIOR, SLACK
from headwater.families.von_mises_fisher_belief import expectations, log_constant, mean_length
from headwater.kernels.parallel import one_blas_thread

LEAST_DISPERSION = 1e-6  # least dispersion of a prior, in rows
LONGEST = 1.0 - 1e-12  # length of a resultant, as a part of its rows
SMALL_PRODUCT = 8192  # multiplications below which no library uses threads
MOST_NARROW = 3e3  # of a natural parameter, for products in float32: log-densities are then off by some 1e-4
BLOCK_ROWS = 1024
MOST_CONCENTRATED = 1e12  # largest concentration in a file


@dataclass(frozen=True)
class DirectionStatistics(ComponentStatistics):
    """Rows (K,) of each component, and their sum (K, d)."""

    resultant: Array


@dataclass(frozen=True)
class DirectionPrior:
    """Rows (K,) that the prior counts as, and their sum (K, d), which is shorter than their number."""

    rows: Array
    resultant: Array


@dataclass(frozen=True)
class DirectionParameters:
    """Concentration times mean direction (K, d), or its expectation, and log C (K,), or its expectation."""

    natural: Array
    log_constant: Array


def bound_lengths(width: int, rows: Array, lengths: Array) -> Array:
    """Return the lengths of sums of so many rows, or of those whose expected concentration is `LARGEST_ARGUMENT`.

    Where it is large, the concentration is a Gamma variate (`von_mises_fisher_belief.py`).
    """
    most = rows - (0.5 * (width - 1.0) * (rows + 1.0) + 1.0) / LARGEST_ARGUMENT
    return np.asarray(np.minimum(lengths, np.maximum(np.minimum(most, LONGEST * rows), 0.0)))


@dataclass(frozen=True)
class VonMisesFisher(Family[DirectionPrior, DirectionStatistics, DirectionParameters]):
    """The family. Hyperparameters that are None are set from the warm-up rows."""

    n_components: int
    mean_prior: Array | None = None
    mean_precision_prior: float | None = None

    @property
    def stream_readout(self) -> StreamReadout:
        """Means, which are modes, too: expectations under the belief are integrals, and differ from them by a row or so."""
        return "mean"

    def zeros(self, width: int) -> DirectionStatistics:
        """Return the statistics of no rows."""
        return DirectionStatistics.of(np.zeros(self.n_components), np.zeros((self.n_components, width)))

    @property
    def rows_to_tell_apart(self) -> int:
        """The rows below which a start misses some of many components."""
        return ROWS_EACH * self.n_components

    # Prior

    def geometry(self, batch: Batch) -> Geometry:
        """Return the rows unchanged: distances between directions need no units."""
        mean = batch.row_weights @ batch.X / batch.size
        return Geometry(mean, np.maximum(1.0 - mean**2, 0.0), (batch.X,))

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> DirectionPrior:
        """Return the user's prior; by default it adds the dispersion of one row in its seeded group."""
        k, width = self.n_components, batch.X.shape[1]
        mean = np.zeros(width) if self.mean_prior is None else self.mean_prior
        rows = self.mean_precision_prior
        if rows is None:
            with one_blas_thread():
                weighted = responsibilities * batch.row_weights[:, None]
                groups, sums = weighted.sum(axis=0), np.linalg.norm(weighted.T @ batch.X, axis=1)
            free = max(len(batch) - k, 1) / len(batch)  # a group of one row has no dispersion
            dispersion = float(np.sum(groups - sums)) / max(float(groups.sum()) * free, 1e-300)
            rows = min(max(dispersion, LEAST_DISPERSION), 1.0)
        return DirectionPrior(np.full(k, float(rows)), np.tile(float(rows) * mean, (k, 1)))

    def blank_prior(self, width: int) -> DirectionPrior:
        """Return a prior of the right shape."""
        return DirectionPrior(np.ones(self.n_components), np.zeros((self.n_components, width)))

    # Readouts

    def readout(self, name: str, prior: DirectionPrior, totals: DirectionStatistics) -> DirectionParameters:
        """Return parameters of the belief.

        The posterior mean of the mean of a row, which has the length A(kappa), is R / rows (Diaconis and Ylvisaker 1979). The
        mode of theta gives the same. So both readouts are equal.
        """
        rows, resultant = prior.rows + totals.count, prior.resultant + totals.resultant
        width = resultant.shape[1]
        lengths = np.linalg.norm(resultant, axis=1)
        directions = resultant / np.maximum(lengths, 1e-300)[:, None]
        if name == "expect_log":
            found = expectations(width, rows, bound_lengths(width, rows, lengths))
            return DirectionParameters(found.length[:, None] * directions, found.log_constant)
        shares = np.minimum(lengths / np.maximum(rows, 1e-300), LONGEST)
        concentration = solve_bessel_ratio(0.5 * width - 1.0, shares)
        return DirectionParameters(concentration[:, None] * directions, log_constant(width, concentration))

    def log_prior(self, prior: DirectionPrior, parameters: DirectionParameters) -> float:
        """Return the log-density of the prior at modes, up to a constant."""
        return float(np.sum(prior.resultant * parameters.natural) + prior.rows @ parameters.log_constant)

    def divergence(self, prior: DirectionPrior, totals: DirectionStatistics) -> float:
        """Return KL(belief || prior), summed over the components."""
        width = totals.resultant.shape[1]
        rows, resultant = prior.rows + totals.count, prior.resultant + totals.resultant
        lengths = np.linalg.norm(resultant, axis=1)
        after = expectations(width, rows, bound_lengths(width, rows, lengths))
        before = expectations(width, prior.rows, np.linalg.norm(prior.resultant, axis=1))
        directions = resultant / np.maximum(lengths, 1e-300)[:, None]
        along = np.einsum("kd,kd->k", totals.resultant, directions) * after.length
        return float(np.sum(totals.count * after.log_constant + along - after.log_normaliser + before.log_normaliser))

    # Rows

    def log_densities(self, parameters: DirectionParameters, X: Matrix) -> Array:
        """Return the log-density (n, K) of rows of length one, with respect to the surface of the sphere."""
        natural = parameters.natural
        if X.dtype == np.float32 and np.abs(natural).max() <= MOST_NARROW:
            natural = natural.astype(np.float32)
        return np.asarray(X @ natural.T + parameters.log_constant)

    def collect(self, parameters: DirectionParameters, X: Matrix, responsibilities: Array) -> DirectionStatistics:
        """Return total statistics of rows."""
        if X.dtype == np.float64:
            return DirectionStatistics.of(sum_rows(responsibilities), responsibilities.T @ X)
        resultant, shares = np.zeros((self.n_components, X.shape[1])), responsibilities.astype(np.float32)
        for at in range(0, len(X), BLOCK_ROWS):  # sums of float32 stay short
            resultant += shares[at : at + BLOCK_ROWS].T @ X[at : at + BLOCK_ROWS]
        return DirectionStatistics.of(sum_rows(responsibilities), resultant)

    def estep(
        self,
        parameters: DirectionParameters,
        log_weights: Array,
        batch: Batch,
        totals: DirectionStatistics | None = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, DirectionStatistics | None]:
        """Run the E-step of every family, each slab of rows on one thread, so that threads of products change no bit."""
        small = len(batch) * parameters.natural.size < SMALL_PRODUCT
        with nullcontext() if small else one_blas_thread():
            return super().estep(parameters, log_weights, batch, totals, scores, responsibilities, given, n_threads)

    def sample(
        self, parameters: DirectionParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        """Draw one direction from each of the listed components."""
        return sample_directions(parameters.natural, components, rng)

    # Components

    def density_divergences(self, ones: DirectionParameters, others: DirectionParameters) -> Array:
        """Return the symmetric divergence (K, K) of the densities, in nats a row."""
        width = ones.natural.shape[1]
        lengths = [np.linalg.norm(one.natural, axis=1) for one in (ones, others)]
        means = [
            one.natural * (mean_length(width, length) / np.maximum(length, 1e-300))[:, None]
            for one, length in zip((ones, others), lengths, strict=True)
        ]
        cross = means[0] @ others.natural.T + ones.natural @ means[1].T
        own = [np.einsum("kd,kd->k", mean, one.natural) for mean, one in zip(means, (ones, others), strict=True)]
        return np.asarray(np.maximum(own[0][:, None] + own[1] - cross, 0.0))

    def find_impossible(self, totals: DirectionStatistics) -> NDArray[np.bool_]:
        """Return which components have a negative number of rows, or a sum that is longer than its rows."""
        lengths = np.linalg.norm(totals.resultant, axis=1)
        return np.asarray((totals.count < 0.0) | (lengths > totals.count * (1.0 + SLACK) + 1e-9))

    def find_problem(self, record: object, width: int) -> str:
        """Return what is wrong with a record that comes from a file."""
        if isinstance(record, DirectionPrior):
            shorter = np.linalg.norm(record.resultant, axis=1) < record.rows
            return "" if (record.rows > 0.0).all() and shorter.all() else NO_PRIOR
        if isinstance(record, DirectionParameters):
            return NO_PARAMETERS if np.abs(record.natural).max() > MOST_CONCENTRATED else ""
        return super().find_problem(record, width)
