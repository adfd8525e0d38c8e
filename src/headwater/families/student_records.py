"""What flows between the Student family and the loop: statistics, prior and parameters of K components with heavy tails."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.families.gaussian_records import GaussianParameters, GaussianPrior, MomentStatistics

LEAST_DOF, MOST_DOF = 0.25, 1e4  # beyond the first hardly a row is near another; beyond the second tails are Gaussian
TAIL_GUESS = 4.0  # degrees of freedom before rows say how heavy tails are: heavy, so that a start is not led by odd rows
TAIL_ROWS = 1.0  # that the guess is worth
NEWTON_STEPS = 6  # which leave nothing: each doubles the digits of a start that has two


@dataclass(frozen=True)
class StudentStatistics(ComponentStatistics):
    """Statistics of rows x, each a Gaussian whose precision is multiplied by a hidden factor u.

    Rows (K,); the expected sum of their factors, `mass` (K,); moments of the rows, weighted by the factors, about the origin;
    and `tails` (K,), the expected sum of log u - u, which says how much the factors differ.
    """

    mass: Array
    first: Array
    second: Array
    tails: Array

    def as_moments(self) -> MomentStatistics:
        """Return what Gaussians are read out of: means divide by the factors, covariances by the rows."""
        return MomentStatistics(
            self.from_base, self.count, self.first, self.second, self.mass[:, None], self.count[:, None].copy()
        )

    def with_moments(self, moments: MomentStatistics) -> StudentStatistics:
        """Return these statistics with other moments."""
        return StudentStatistics(self.from_base, self.count, self.mass, moments.first, moments.second, self.tails)


@dataclass(frozen=True)
class StudentPrior(GaussianPrior):
    """The prior of Gaussians, and a guess of the degrees of freedom that is worth `tail_rows` rows."""

    tail_rows: float = TAIL_ROWS
    tail_guess: float = TAIL_GUESS

    @classmethod
    def of(cls, prior: GaussianPrior, tail_rows: float, tail_guess: float) -> StudentPrior:
        """Return a prior of Gaussians with what it lacks."""
        known = {one.name: getattr(prior, one.name) for one in fields(GaussianPrior)}
        return cls(**known, tail_rows=tail_rows, tail_guess=tail_guess)


@dataclass(frozen=True)
class StudentParameters(GaussianParameters):
    """Parameters of Gaussians with a tail that all columns share, as the kernels take them, and its degrees of freedom (K,)."""

    dof: Array = field(default_factory=lambda: np.empty(0))

    @property
    def forms(self) -> tuple[GaussianParameters, ...]:
        """There is one form."""
        return (self,)


def expected_tail(dof: Array | float) -> Array:
    """Return the mean of log u - u where u is Gamma(dof / 2, dof / 2): at most -1, which it is near if u hardly varies."""
    half = 0.5 * np.asarray(dof, dtype=float)
    return np.asarray(digamma(half) - np.log(half) - 1.0)


def log_tail(dof: Array, tails: Array, rows: Array | float) -> Array:
    """Return the log-density of so many factors u, whose log u - u sum to `tails`, up to what does not depend on dof."""
    half = 0.5 * dof
    return np.asarray(rows * (half * np.log(half) - gammaln(half)) + half * tails)


def solve_dof(tail: Array) -> Array:
    """Return the degrees of freedom whose `expected_tail` is this: log(y) - digamma(y) = -1 - tail, for y half of them."""
    gap = np.maximum(-1.0 - tail, 1e-12)
    half = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):  # in 1 / y, where the curve is nearly straight (Minka 2002)
            slope = 1.0 / half - polygamma(1, half)
            inverse = 1.0 / half + (np.log(half) - digamma(half) - gap) / (half**2 * slope)
            half = 1.0 / np.where(inverse > 0.0, inverse, 0.5 / half)
    found = np.where(np.isfinite(half), 2.0 * half, MOST_DOF)
    return np.asarray(np.clip(found, LEAST_DOF, MOST_DOF))
