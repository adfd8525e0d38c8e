"""Additional attributes of a Gaussian mixture with covariance_type="factor"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import column_names
from headwater.estimators.calls import reads
from headwater.families.factor_gaussian import FactorGaussian
from headwater.families.factor_records import FactorParameters

if TYPE_CHECKING:
    from headwater.estimators.mixture import MixtureEstimator as Beside
else:
    Beside = object  # the classes with these answers have the other methods of mixtures from another base


class FactorAnswers(Beside):
    """Loadings and noise, and the moments that tables show."""

    covariance_type: str
    means_: Array

    @property
    @reads
    def loadings_(self) -> Array:
        """Loadings of the factors of each component (n_components, n_features, n_factors), with covariance_type='factor'."""
        return self._factor_parameters("loadings_").loadings

    @property
    @reads
    def noise_variances_(self) -> Array:
        """Variance of the noise in each column (n_components, n_features), with covariance_type='factor'."""
        return self._factor_parameters("noise_variances_").noise

    @property
    def _components(self) -> FactorParameters:
        """Parameters of the components."""
        return self._component_part(self._read().parameters.components)

    def _factor_parameters(self, name: str) -> FactorParameters:
        if not isinstance(self._component_family, FactorGaussian):
            raise AttributeError(f"{name} exists only with covariance_type='factor', got {self.covariance_type!r}")
        return self._components

    def _moments(self) -> tuple[Array, Array]:
        """Mean and variance (K, d) of the components."""
        components = self._factor_parameters("the variance of factors")
        return self.means_, components.noise + np.einsum("kdq,kdq->kd", components.loadings, components.loadings)

    def _moment_names(self) -> list[str]:
        """Names of the columns."""
        return column_names(self, self.n_features_in_)
