"""LinearHMM: what the chains of regressions and of autoregressions have in common."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from headwater.core.statistics import Array
from headwater.core.values import Values
from headwater.estimators.chains import check_numbers
from headwater.estimators.describers.linear_chains import CoefficientChainDescriber, LinearChainDescriber
from headwater.estimators.family_hmm import FamilyHMM
from headwater.families.linear_gaussian import LinearGaussian
from headwater.families.linear_gaussian_belief import LinearGaussianStatistics

LETTERS = "stcin"


class LinearHMM(FamilyHMM):
    """Base of chains whose states are linear regressions. Abstract."""

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyHMM._parameter_constraints,
        "reg_noise": [Interval(numbers.Real, 0.0, None, closed="left")],
    }
    _traits = replace(
        FamilyHMM._traits,
        floor_parameters=("reg_noise",),
        merge_parameters=(*FamilyHMM._traits.merge_parameters, "reg_noise"),
    )
    _letters = LETTERS
    _seeds = "planes"

    reg_noise: float

    @property
    def _linear(self) -> LinearGaussian:
        return cast(LinearGaussian, self._model.family)

    def _target_places(self, width: int) -> NDArray[np.int64]:
        return np.arange(width - self._linear.n_targets, width)

    @property
    def _describer(self) -> LinearChainDescriber:
        several = self._linear.n_targets > 1  # their coefficients are matrices, which say less in a line than means
        return LinearChainDescriber(self) if several else CoefficientChainDescriber(self)

    def _target_moments(self) -> tuple[Array, Array]:
        """Mean and variance (K, d) of the targets of each state, over the rows that were learned."""
        prior, statistics, count = self._belief()
        totals = cast(LinearGaussianStatistics, statistics.emissions).scaled(count)
        d, size = self._linear.n_targets, totals.cross.shape[1]
        rows = np.maximum(totals.count, 1e-300)[:, None]
        origin = prior.emissions.origin[-d:]
        kept = self._linear.intercept  # without one, sums of targets are not kept, and moments are about 0
        mean = totals.cross[:, 0, size - d :] / rows if kept else np.zeros((len(rows), d))
        second = np.diagonal(totals.cross, axis1=1, axis2=2)[:, size - d :] / rows
        return mean + origin, np.maximum(second - mean**2, 0.0)

    def _design_moments(self) -> Array:
        """Second moments (K, q, q) of the inputs of each state about the origin, the constant among them."""
        _, statistics, count = self._belief()
        totals = cast(LinearGaussianStatistics, statistics.emissions).scaled(count)
        size = totals.cross.shape[1] - self._linear.n_targets
        return np.asarray(totals.cross[:, :size, :size] / np.maximum(totals.count, 1e-300)[:, None, None])

    def _design_spreads(self) -> Array:
        """Standard deviations of the inputs, over the rows that were learned."""
        moments = np.einsum("k,kij->ij", self.get_stationary_distribution(), self._design_moments())
        if not self._linear.intercept:
            return np.sqrt(np.diagonal(moments))
        return np.sqrt(np.maximum(np.diagonal(moments)[1:] - moments[0, 1:] ** 2, 0.0))

    def _set_level(self, value: Values, shape: tuple[int, ...]) -> None:
        self._give("intercept_", check_numbers(value, shape, "intercept_"))


def check_covariances(value: Values, shape: tuple[int, ...], name: str) -> Array:
    """Return covariance matrices (K, d, d), or refuse them."""
    found = check_numbers(value, shape, name)
    symmetric = np.allclose(found, np.swapaxes(found, 1, 2), rtol=1e-8, atol=1e-300)
    if not symmetric or np.linalg.eigvalsh(found).min(initial=1.0) <= 0.0:
        raise ValueError(f"{name} must hold covariances, which are symmetric and positive definite")
    return found
