"""Conditional: the law of the missing columns of rows under a mixture, given the observed ones."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from headwater.core.batch import NO_LABELS
from headwater.core.statistics import Array
from headwater.core.validation import check_shape, numeric
from headwater.core.values import RandomState, Rows
from headwater.families.capabilities import AnswersGaps
from headwater.families.conditional_law import ConditionalLaw, Mask, Places
from headwater.families.gap_patterns import pattern_codes
from headwater.families.posterior import posterior
from headwater.kernels.parallel import one_blas_thread

BLOCK_NUMBERS = 2**17  # of the arrays of a block of rows: 1 MB each, which a cache holds
MODE_STEPS = 500  # of a climb to a mode; each is a step of EM
MODE_PRECISION = 1e-10  # of a mode, beside the spread of its column
LEAST_PEAK = -20.0  # nats below the best component: the peak of one that is lower is not climbed from


class Conditional:
    """The law of the missing columns of each row, given its observed ones: a mixture of the laws of the components.

    `GaussianMixture.condition` makes one. Answers are computed on request, block by block of rows.

    Attributes
    ----------
    missing : ndarray of shape (n_samples, n_features)
        Which entries are missing.
    weights : ndarray of shape (n_samples, n_components)
        Probability of each component, given the observed entries of the row.
    log_marginal : ndarray of shape (n_samples,)
        Log-density of the observed entries of each row; 0 if there are none.
    mean : ndarray of shape (n_samples, n_features)
        Mean of each missing entry; observed entries as they are.
    variance : ndarray of shape (n_samples, n_features)
        Variance of each missing entry; 0 where one is observed.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=4000)
    >>> rows = np.column_stack([x, 2.0 * x + 0.1 * rng.normal(size=4000)])
    >>> law = hw.GaussianMixture(1, random_state=0).fit(rows).condition([[1.0, np.nan], [np.nan, -4.0]])
    >>> law.mean.round(1).tolist()
    [[1.0, 2.0], [-2.0, -4.0]]
    >>> low, high = law.interval(0.9)
    >>> ((high - low) / np.sqrt(law.variance).clip(1e-9)).round(1).tolist()
    [[0.0, 3.3], [3.3, 0.0]]
    """

    def __init__(self, family: AnswersGaps[object], log_weights: Array, components: object, X: Array, missing: Mask) -> None:
        self._family, self._log_weights, self._components = family, log_weights, components
        self._X, self.missing = X, missing
        n, width = X.shape
        self.weights, self.log_marginal = np.empty((n, len(log_weights))), np.empty(n)
        self.mean, self.variance = np.where(missing, 0.0, X), np.zeros((n, width))
        for rows, law in self._blocks():
            shares = law.log_marginal + log_weights
            self.log_marginal[rows] = posterior(shares, NO_LABELS)
            self.weights[rows] = shares
            at, columns = np.nonzero(law.missing)
            if len(at):
                found = law.entries(at, columns).mixture_moments(shares[at])
                self.mean[rows[at], columns], self.variance[rows[at], columns] = found

    def __len__(self) -> int:
        return len(self._X)

    def __repr__(self) -> str:
        rows, columns = self._X.shape
        return f"<Conditional: {self.missing.sum():,} missing entries of {rows:,} rows of {columns:,} columns>"

    @cached_property
    def _order(self) -> Places:
        """Rows in an order in which those that lack the same columns are neighbours."""
        return np.argsort(pattern_codes(self.missing), kind="stable")

    def _blocks(self, matrices: bool = False) -> Iterator[tuple[Places, ConditionalLaw]]:
        """Yield the places of rows and their law, in blocks of bounded size: smaller ones, if rows have `matrices`."""
        for rows in row_blocks(self._order, self._numbers_each * (self._X.shape[1] if matrices else 1)):
            with one_blas_thread():
                yield rows, self._law_of(rows)

    @property
    def _numbers_each(self) -> int:
        """Numbers that an array of a block has for each row."""
        return len(self._log_weights) * self._X.shape[1]

    def _law_of(self, rows: Places) -> ConditionalLaw:
        return self._family.conditional(self._components, self._X[rows], self.missing[rows])

    def covariance(self) -> Array:
        """Return the covariances of the missing columns of each row; 0 where one is observed.

        Returns
        -------
        covariance : ndarray of shape (n_samples, n_features, n_features)
            Covariance matrices.
        """
        n, width = self._X.shape
        found = np.empty((n, width, width))
        for rows, law in self._blocks(matrices=True):
            covariances, weights = law.covariances(), self.weights[rows]
            at, columns = np.nonzero(law.missing)
            away = np.zeros((len(rows), weights.shape[1], width))
            away[at, :, columns] = law.entries(at, columns).mean - self.mean[rows[at], columns][:, None]
            found[rows] = np.einsum("nk,nkij->nij", weights, covariances) + np.einsum("nk,nki,nkj->nij", weights, away, away)
        return found

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the central interval of each missing entry: exact quantiles of the mixture.

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval.

        Returns
        -------
        low, high : ndarray of shape (n_samples, n_features)
            Ends of the intervals; both are the value itself where an entry is observed.
        """
        tail = 0.5 - 0.5 * checked_level(level)
        low, high = self.mean.copy(), self.mean.copy()
        for rows, law in self._blocks():
            at, columns = np.nonzero(law.missing)
            entries, weights = law.entries(at, columns), self.weights[rows[at]]
            low[rows[at], columns] = entries.mixture_quantile(weights, tail)
            high[rows[at], columns] = entries.mixture_quantile(weights, 1.0 - tail)
        return low, high

    def probabilities(self, column: int, values: Array) -> Array:
        """Return the probability of each of a few values of a column that is missing in every row and takes no others.

        In each component the density of the column, given the observed ones, is shared out among the values. So a component in
        which the column hardly varies counts no more than its weight. Counts and flags have probabilities, which Bayes' rule
        needs no such care for.

        Parameters
        ----------
        column : int
            Place of the column.
        values : array-like of shape (n_values,)
            The values.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_values)
            They sum to one in each row.
        """
        if not self.missing[:, column].all():
            raise ValueError(f"column {column} must be missing in every row, got rows that have it")
        given = np.asarray(values, dtype=float)
        found = np.empty((len(self), len(given)))
        for rows, law in self._blocks():
            entries = law.entries(np.arange(len(rows)), np.full(len(rows), column))
            found[rows] = entries.mixture_shares(self.weights[rows], given)
        return found

    def mode(self) -> Array:
        """Return the most probable values of the missing columns of each row, all of them together.

        They are climbed to by EM from the centre of each component that may have the highest peak.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows without gaps.
        """
        found = self.mean.copy()
        for rows, law in self._blocks():
            chosen = np.flatnonzero(law.missing.any(axis=1))
            if len(chosen):
                rows = rows[chosen]
                law = self._law_of(rows)
                found[rows] = _highest(law, self.weights[rows], np.where(self.missing[rows], 0.0, self._X[rows]))
        return found

    def sample(self, size: int = 1, random_state: RandomState = None) -> Array:
        """Draw the missing columns of each row, all of them together.

        Parameters
        ----------
        size : int, default=1
            Number of draws for each row.
        random_state : int, RandomState, Generator or None
            Seed of the draws. Draws of a row do not depend on the rows after it.

        Returns
        -------
        X : ndarray of shape (size, n_samples, n_features)
            Rows without gaps.
        """
        if isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < 1:
            raise ValueError(f"size must be a whole number of at least 1, got {size!r}")
        given = isinstance(random_state, np.random.RandomState)
        draw = random_state.random_sample if given else np.random.default_rng(random_state).random
        n, width = self._X.shape
        # One number chooses the component, one a common scale (Student's t), the others are for the columns.
        uniforms = np.clip(draw((int(size) * n, width + 2)), 2.0**-54, 1.0 - 2.0**-53)
        found = np.empty((int(size) * n, width))
        repeated = (self._order[:, None] + n * np.arange(int(size))).ravel()
        for places in row_blocks(repeated, self._numbers_each):
            rows = places % n
            law = self._law_of(rows)
            components = (uniforms[places, :1] > np.cumsum(self.weights[rows], axis=1)[:, :-1]).sum(axis=1)
            found[places] = np.where(law.missing, law.draw(components, uniforms[places, 1:]), self._X[rows])
        return found.reshape(int(size), n, width)

    def log_density(self, of: Rows) -> Array:
        """Return the log-density of values in place of the missing ones, given the observed columns.

        Parameters
        ----------
        of : array-like of shape (n_samples, n_features)
            The values. Only those of missing entries are used.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log-density in nats; 0 for rows that lack nothing.
        """
        values = np.asarray(numeric(of, "of"), dtype=float)
        check_shape(values, "of")
        if values.shape != self._X.shape:
            raise ValueError(f"of must have the shape {self._X.shape} of the rows, got {values.shape}")
        if not np.isfinite(values[self.missing]).all():
            raise ValueError("of must have a finite value for every missing entry, got one that is not")
        found = np.empty(len(values))
        with np.errstate(divide="ignore"):
            for rows, law in self._blocks():
                found[rows] = logsumexp(np.log(self.weights[rows]) + law.log_density(values[rows]), axis=1)
        return np.where(self.missing.any(axis=1), found, 0.0)


def row_blocks(order: Places, numbers_each: int) -> Iterator[Places]:
    """Yield the rows in this order, in blocks whose arrays have so many numbers for each row."""
    size = max(1, BLOCK_NUMBERS // numbers_each)
    for start in range(0, len(order), size):
        yield order[start : start + size]


def checked_level(level: object) -> float:
    """Return the level of an interval, or refuse it."""
    if isinstance(level, bool) or not isinstance(level, numbers.Real) or not 0.0 < float(level) < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return float(level)


def _highest(law: ConditionalLaw, weights: Array, rows: Array) -> Array:
    """The highest of the modes that a climb from the centre of each component comes to."""
    at, columns = np.nonzero(law.missing)
    entries = law.entries(at, columns)
    spread = np.sqrt(entries.mixture_moments(weights[at])[1])
    fine = np.zeros_like(rows)
    fine[at, columns] = MODE_PRECISION * np.where(np.isfinite(spread), spread, np.abs(entries.mean).max(axis=1))
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    centres = np.repeat(rows[None], weights.shape[1], axis=0)
    centres[:, at, columns] = entries.peak.T
    peaks = np.stack([logsumexp(log_weights + law.log_density(centre), axis=1) for centre in centres])
    best, height = rows.copy(), np.full(len(rows), -np.inf)
    for start, peak in zip(centres, peaks, strict=True):
        now, open_rows = start.copy(), peak >= peaks.max(axis=0) + LEAST_PEAK
        for _ in range(MODE_STEPS):
            shares = log_weights + law.log_density(now)
            posterior(shares, NO_LABELS)
            after = np.where(open_rows[:, None], law.ascend(now, shares), now)
            moved, now = np.abs(after - now), after
            open_rows = open_rows & (moved > fine).any(axis=1)
            if not open_rows.any():
                break
        found = logsumexp(log_weights + law.log_density(now), axis=1)
        better = found > height
        best[better], height[better] = now[better], found[better]
    return best
