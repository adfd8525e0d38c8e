"""The check of an estimator's parameters: each has one of its types, and none is so large or small that learning overflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

import numpy as np
from sklearn.utils._param_validation import validate_parameter_constraints

from headwater.core.statistics import HEAVIEST, LARGEST
from headwater.estimators.estimator_core import parameter_names

# The least and the most in size, but for zero: what a prior is worth is a weight of rows, and variances are squares of them.
WORTH = (1e-100, HEAVIEST)
VARIANCE = (0.0, LARGEST**2)
LIMITS = {
    **dict.fromkeys(("covariance_prior", "noise_variance_prior", "reg_covar", "reg_noise", "min_covar"), VARIANCE),
    **dict.fromkeys(
        (
            "weight_concentration_prior", "probability_concentration_prior", "startprob_prior", "transmat_prior",
            "emissionprob_prior", "doc_topic_prior", "topic_word_prior", "component_prior", "mean_precision_prior",
            "degrees_of_freedom_prior", "coef_precision_prior", "start_weight",
        ),
        WORTH,
    ),
    "weight_scale": (1e-100, LARGEST),
    "half_life": (1e-9, LARGEST),  # in rows; ages are counted in half-lives
}  # fmt: skip
FLAGS = ("boolean", "verbose")  # constraints of parameters that may be True


def check_parameters(estimator: StreamingEstimator) -> None:
    """Refuse parameters of the wrong type or size in one sentence."""
    owner, constraints = type(estimator).__name__, estimator._parameter_constraints
    parameters = {name: getattr(estimator, name) for name in parameter_names(type(estimator))}
    validate_parameter_constraints(constraints, parameters, owner)
    for name, value in parameters.items():
        if isinstance(value, bool | np.bool_) and not any(flag in constraints.get(name, FLAGS) for flag in FLAGS):
            raise ValueError(f"The {name!r} parameter of {owner} must not be a boolean, got {value!r}")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ValueError(f"The {name!r} parameter of {owner} must be less than 2**63 in size, got {str(value)[:20]}...")
        if name in LIMITS and value is not None and not isinstance(value, str):
            _check_size(name, value, owner)


def _check_size(name: str, value: object, owner: str) -> None:
    try:
        sizes = np.abs(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        return  # the reader of the array reports what is wrong with it
    least, most = LIMITS[name]
    wrong = sizes[(sizes > most) | ((sizes > 0.0) & (sizes < least))]
    if wrong.size:
        raise ValueError(
            f"The {name!r} parameter of {owner} must lie between {least:g} and {most:g} in size, got {wrong.flat[0]:g}"
        )
