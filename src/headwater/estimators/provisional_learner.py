"""The learner of parameters alone, before it is known which columns the rows have."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.core.learner import Learner
    from headwater.estimators.base import StreamingEstimator

START = ("start_weight", "noise_variance_init")  # which mean nothing without what is left out


def learner_without_columns(model: StreamingEstimator, **changed: object) -> Learner:
    """Check parameters, and return the learner for two columns; what depends on the columns, or is a start, is left out."""
    defaults = {name: one.default for name, one in signature(type(model)).parameters.items()}
    left_out = {"n_symbols", *START, *type(model)._traits.column_parameters}
    given = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if not isinstance(value, (list, tuple, dict)) and not hasattr(value, "shape") and name not in left_out
    }
    if given.get("warm_up") == 0:
        given.pop("warm_up")
    if "_given" in vars(model):  # parameters set by hand depend on the columns, too
        given.pop("init_params", None)
    unfitted = type(model)(**{**defaults, **given, **changed})
    learner: Learner = unfitted._make_learner(2 + type(model)._traits.target_columns)
    return learner
