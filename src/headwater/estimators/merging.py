"""hw.merge: one model from models that were trained apart."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TypeVar

from sklearn.utils.validation import check_is_fitted

from headwater.estimators.base import StreamingEstimator
from headwater.learner import merge as merge_states

Estimator = TypeVar("Estimator", bound=StreamingEstimator)


def merge(models: Iterable[Estimator]) -> Estimator:
    """Merge branches of one model: what each learned since they parted is added, what they share is counted once.

    Models that warmed up on the same rows with the same seed share that warm-up and can be merged, too. In any order and
    in any tree the merged model is the same up to rounding.

    Parameters
    ----------
    models : iterable of estimators
        Branches of one model (see `branch`), of one class and algorithm.

    Returns
    -------
    model : estimator
        A new model; the given ones are left as they are.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> sunday = hw.GaussianMixture(2, random_state=0).partial_fit(rng.normal(size=(3000, 2)))
    >>> monday = sunday.branch().partial_fit(rng.normal(size=(1000, 2)))
    >>> tuesday = sunday.branch().partial_fit(rng.normal(size=(1000, 2)))
    >>> hw.merge([monday, tuesday]).n_samples_seen_
    5000
    """
    given = list(models)
    if not given:
        raise ValueError("models must hold at least one model to merge, got none")
    if len({id(model) for model in given}) < len(given):
        raise ValueError("models must be different models, got the same one twice: its rows would count twice")
    first = given[0]
    for model in given:
        if not isinstance(model, StreamingEstimator):
            raise TypeError(f"models must be headwater models, got {type(model).__name__}")
        if type(model) is not type(first):
            raise ValueError(f"models must be of one class, got {type(first).__name__} and {type(model).__name__}")
        check_is_fitted(model)
        if model.n_features_in_ != first.n_features_in_:
            raise ValueError(f"models must have one width, got {first.n_features_in_} and {model.n_features_in_} columns")
        if model._learner.algorithm != first._learner.algorithm:
            raise ValueError(
                f"models must be learned by one algorithm, got {first._learner.algorithm} and {model._learner.algorithm}"
            )
        if model._state.base is None:
            raise ValueError(
                f"models must have finished their warm-up of {model._learner.warm_up_rows} rows, got one with "
                f"{model.n_samples_seen_}"
            )
    lineages = {model._state.base.lineage for model in given if model._state.base is not None}
    if len(lineages) > 1:
        raise ValueError(
            f"models must be branches of one model, got {len(lineages)} different origins: call branch() on a model that "
            f"has seen some rows, and let each branch learn its part"
        )
    merged = copy(first)
    merged._set(merge_states(first._learner, [model._state for model in given]), first._learner)
    return merged
