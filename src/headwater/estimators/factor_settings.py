"""The family of `covariance_type="factor"`, from the settings of a Gaussian mixture; what does not go with it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.core.statistics import Array
from headwater.estimators.start_parameters import check_array
from headwater.families.factor_gaussian import FactorGaussian

if TYPE_CHECKING:
    from headwater.estimators.gaussian_mixture import GaussianMixture


def factor_family(
    model: GaussianMixture, width: int, mean_prior: Array | None, resolution: str | Array | None = None
) -> FactorGaussian:
    """Return the family for rows of this width."""
    if model.n_factors > width:
        raise ValueError(f"n_factors must not be more than the {width} columns, got {model.n_factors}")
    if model.scale_columns:
        raise ValueError(
            "scale_columns must be False with covariance_type='factor', whose noise has the units of each column, got True"
        )
    for name in ("weights_init", "means_init", "precisions_init"):
        if getattr(model, name) is not None:
            raise ValueError(f"{name} must be None with covariance_type='factor', which starts from rows alone")
    noise_prior = None
    if model.covariance_prior is not None:
        noise_prior = check_array(model.covariance_prior, (width,), "covariance_prior")
        if np.any(noise_prior <= 0.0):
            raise ValueError(f"covariance_prior must be positive, got {noise_prior.min():g}")
    return FactorGaussian(
        model.n_components, model.n_factors, model.reg_covar, mean_prior, model.mean_precision_prior,
        model.degrees_of_freedom_prior, noise_prior, resolution,
    )  # fmt: skip
