"""Priors of which each component has its own: found, checked, and taken along where components are selected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.core.validation import n_dimensions, one_line
from headwater.core.values import Values
from headwater.estimators.start_parameters import check_array
from headwater.families.gaussian_own_prior import KINDS

if TYPE_CHECKING:
    from headwater.estimators.estimator_core import EstimatorCore
    from headwater.estimators.gaussian_mixture import GaussianMixture

# Dimensions of a prior that all components share.
SHARED = {"weight_concentration_prior": 0, "mean_prior": 1, "mean_precision_prior": 0, "degrees_of_freedom_prior": 0}
SHARED_COVARIANCE = {"full": 2, "tied": 2, "diag": 1, "spherical": 0, "factor": 1}


def component_priors(model: EstimatorCore) -> list[str]:
    """Return the names of the priors of which each component has its own."""
    shared = dict(SHARED)
    if hasattr(model, "covariance_prior"):
        shared["covariance_prior"] = SHARED_COVARIANCE.get(model.covariance_type, 2)  # other words are refused elsewhere
    return [name for name, size in shared.items() if n_dimensions(getattr(model, name, None)) > size]


def refuse_component_priors(model: EstimatorCore) -> None:
    """Refuse priors of components whose number is to be found."""
    for name in component_priors(model):
        raise ValueError(f"n_components must be a number where {name} says something of each component, got 'auto'")


def select_component_priors(model: EstimatorCore, kept: NDArray[np.bool_]) -> dict[str, object]:
    """Return the priors of some of the components."""
    return {name: np.asarray(getattr(model, name))[kept] for name in component_priors(model)}


def given_concentration(value: Values, n_components: int) -> float | Array | None:
    """Return the concentration of the weights: a number, or one for each component."""
    if value is None or not n_dimensions(value):
        return None if value is None else float(value)  # type: ignore[arg-type]
    found = check_array(value, (n_components,), "weight_concentration_prior")
    if np.any(found <= 0.0):
        raise ValueError(f"weight_concentration_prior must be positive, got {found.min():g}")
    return found


def own_hyperparameters(model: GaussianMixture, width: int) -> tuple[Any, ...] | None:
    """Return mean, mean precision, degrees of freedom and covariance where some are those of each component; else None."""
    names = [name for name in component_priors(model) if name != "weight_concentration_prior"]
    if not names or model.covariance_type == "factor":  # whose priors are checked with its factors
        return None
    unfit = {"resolution": None, "scale_columns": False}
    for name, usual in unfit.items():
        if getattr(model, name) is not usual:
            raise ValueError(f"{name} must be {usual} where {names[0]} says something of each component")
    if model.covariance_type not in KINDS:
        raise ValueError(
            f"{names[0]} must be that of all components with covariance_type={model.covariance_type!r}: components have priors "
            f"of their own with 'full', 'diag' and 'spherical'"
        )
    k, mean = int(model.n_components), model.mean_prior
    if mean is not None:
        mean = check_array(mean, (k, width) if "mean_prior" in names else (width,), "mean_prior")
    found = [mean]
    for name in ("mean_precision_prior", "degrees_of_freedom_prior"):
        given = getattr(model, name)
        if name in names:
            given = check_array(given, (k,), name)
            if np.any(given <= 0.0):
                raise ValueError(f"{name} must be positive, got {one_line(given.min())}")
        found.append(given)
    scales = model.covariance_prior
    if "covariance_prior" in names:
        shape = {"full": (k, width, width), "diag": (k, width), "spherical": (k,)}[model.covariance_type]
        scales = check_array(scales, shape, "covariance_prior")
    return (*found, scales)
