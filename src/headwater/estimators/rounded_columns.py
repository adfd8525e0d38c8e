"""Answers of mixtures whose numbers may be rounded: the steps of the columns, and scores of the cells around rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix

if TYPE_CHECKING:
    from headwater.estimators.mixture_answers import MixtureAnswers

NO_STEPS = (
    "cells=True adds the logarithms of the steps of the columns, and this model knows none: learn it with resolution='auto', "
    "or give the steps"
)


def prior_steps(prior: object) -> Array | None:
    """Return the steps (d,) of the columns in their own units, as a prior of components has them; None if it has none."""
    steps: Array | None = getattr(prior, "steps", None)
    units = getattr(prior, "units", np.empty(0))
    return steps if steps is None or not units.size else steps * units


def cell_volumes(steps: Array | None, X: Matrix) -> Array:
    """Return the logarithm of the volume (n,) of the cells that rows were rounded to, over observed columns with a step."""
    if steps is None:
        raise ValueError(NO_STEPS)
    rounded = steps > 0.0
    logs = np.where(rounded, np.log(np.where(rounded, steps, 1.0)), 0.0)
    values = X.values if isinstance(X, GappedRows) else np.asarray(X, dtype=float)
    return ~np.isnan(values) @ logs


def known_prior(model: MixtureAnswers) -> object:
    """Return the prior of the components, in a model that was learned."""
    check_is_fitted(model)
    return model._component_part(model._read().belief[0].components)
