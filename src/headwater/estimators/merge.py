"""hw.merge: one model from models that were trained separately."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from copy import copy
from typing import TypeVar

import numpy as np

from headwater.core.contracts import NO_SCORES
from headwater.core.match import MergeReport, merge_any
from headwater.core.validation import one_line
from headwater.estimators import race_stream
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.changed_settings import settings_differ
from headwater.estimators.component_names import merge_names
from headwater.estimators.estimator_core import RESULTS
from headwater.estimators.race import Race
from headwater.estimators.runtime import Runtime

Estimator = TypeVar("Estimator", bound=StreamingEstimator)


def merge(models: Iterable[Estimator]) -> Estimator:
    """Merge models that were trained separately: their posteriors are multiplied, and what they share is counted once.

    Branches of one model (see `branch` and `warm_start_from`) share a base, and what each learned since is added: in any
    order and in any tree the merged model is the same up to rounding, unless a component had to be repaired. Other models
    are matched first: the largest is the reference, and the components of every other are assigned to its components so
    that the sum of symmetric divergences of the beliefs is least. The order of the list does not matter. A model whose
    warm-up is not over adds its rows.

    Make workers with `branch`: a plain copy of a model repeats what that model learned since its base, and `merge` cannot
    detect this after both have learned more.

    Parameters
    ----------
    models : iterable of estimators
        Models of one class, with the same columns, `algorithm`, `n_components`, `half_life` and priors; Gaussians of one
        `covariance_type` and `reg_covar`.

    Returns
    -------
    model : estimator
        A new model; the given ones do not change. Its parameters (`random_state`, `parts`, ...) are those of the
        reference, and its `merge_report_`, a `MergeReport`, says what was done.

    Raises
    ------
    ValueError
        If the models differ in what they must share, or if rows would count twice.

    Warns
    -----
    UserWarning
        If a component has no counterpart in some model, or its match is doubtful, or it had to be repaired.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> def day(rows):
    ...     return rng.normal(size=(rows, 2)) + 6.0 * rng.integers(2, size=(rows, 1))
    >>> monday = hw.GaussianMixture(2, random_state=0).partial_fit(day(4000))
    >>> tuesday = hw.GaussianMixture(2, random_state=1).partial_fit(day(3000))
    >>> both = hw.merge([monday, tuesday])
    >>> both.n_samples_seen_
    7000
    >>> print(both.merge_report_)
    2 models merged, 7,000 rows in all.
    2 groups that share no base were matched; model 0 is the reference.
    """
    if isinstance(models, StreamingEstimator):
        raise TypeError(f"models must be a list of models, got one {type(models).__name__}")
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
        model._check_stream()
    given = [copy(model) for model in given]  # as they are now, whatever others learn meanwhile
    given = given[0]._aligned_models(given)
    for model in given:
        _check_alike(given[0], model)
    named = check_columns(given)
    races = all(model._runtime.race is not None for model in given)
    runtime, report = _merged_races(given) if races else _merge_runtimes(given, [model._runtime for model in given])
    merged = copy(given[report.reference])
    merged._runtime = runtime
    for name in RESULTS:
        merged.__dict__.pop(name, None)
    merged.merge_report_ = report
    merge_names(merged, given, report.reference, report.matches)
    if not all("_float32" in model.__dict__ for model in given):
        merged.__dict__.pop("_float32", None)
    if named:
        merged.feature_names_in_ = max((model.feature_names_in_ for model in named), key=len)
    if report.ambiguous or report.distant or report.repaired:
        warnings.warn(str(report).replace("\n", " "), UserWarning, stacklevel=2)
    return merged


def check_columns(given: Sequence[Estimator]) -> list[Estimator]:
    """Return the models that know the names of their columns, or refuse them if these differ."""
    named = [model for model in given if hasattr(model, "feature_names_in_")]
    for model in named:
        names = named[0].feature_names_in_, model.feature_names_in_
        common = slice(min(map(len, names)) if model._vocabulary_is_open else None)
        if not np.array_equal(names[0][common], names[1][common]):
            place = next((at for at, (one, two) in enumerate(zip(*names, strict=False)) if one != two), min(map(len, names)))
            one, two = (repr(found[place]) if place < len(found) else "none" for found in names)
            raise ValueError(f"models must have the same columns in the same order, got {one} and {two} in place {place}")
    return named


def _merge_runtimes(given: list[Estimator], parts: list[Runtime]) -> tuple[Runtime, MergeReport]:
    """Merge the Runtimes of models that are alike, or of those that race for them."""
    state, report = merge_any(
        [part.learner for part in parts],
        [part.state for part in parts],
        [getattr(model, "merge_report_", None) for model in given],
    )
    reference = parts[report.reference]
    return reference.with_state(state, reference.learner.for_state(state)), report


def _merged_races(given: list[Estimator]) -> tuple[Runtime, MergeReport]:
    """Merge models of which some race: those with one number of components each, for all that run in every race."""
    begun = [model for model in given if not model._runtime.waits_for_race]
    if not begun:
        # Rows that wait for a race are what each has learned: the largest goes on with those of the others.
        least = given[0]._traits.least_components
        waiting, report = _merge_runtimes(given, [race_stream.runtime_of(model, least, 2**62) for model in given])
        merged = copy(given[report.reference])
        before: Runtime = merged._runtime
        merged._runtime = Runtime.begin(before.learner, waiting.key, before.made_with).with_race(before.race)
        runtime = race_stream.learn_rows(merged, before.learner, waiting.waiting_batch(), NO_SCORES)
        return runtime, report
    common = set.intersection(*(set(_race_of(model).running) for model in begun))
    if not common:
        chosen = " and ".join(dict.fromkeys(str(model.n_components_) for model in begun))
        raise ValueError(
            f"models must have one n_components, got {chosen}, which 'auto' chose: learn again with one of these numbers"
        )
    led = {k: sum(model.n_samples_seen_ for model in begun if model.n_components_ == k) for k in sorted(common)}
    leader = max(led, key=lambda k: led[k])
    found = {
        k: _merge_runtimes(given, [race_stream.runtime_of(model, k, _race_of(model).warm_up) for model in given])
        for k in sorted(common)
    }
    report = found[leader][1]
    runtime = given[report.reference]._runtime
    races = [_race_of(model) for model in begun]
    return race_stream.resume(runtime, races, [rival for rival, _ in found.values()], leader), report


def _race_of(model: StreamingEstimator) -> Race:
    race = model._runtime.race
    assert race is not None
    return race


def _check_alike(one: StreamingEstimator, other: StreamingEstimator) -> None:
    one._check_merge(other)
    if one.n_features_in_ != other.n_features_in_:
        raise ValueError(f"models must have one width, got {one.n_features_in_} and {other.n_features_in_} columns")
    algorithms = one._runtime.learner.algorithm, other._runtime.learner.algorithm
    if algorithms[0] != algorithms[1]:
        raise ValueError(f"models must be learned by one algorithm, got {algorithms[0]} and {algorithms[1]}")
    for name in one._traits.merge_parameters:
        values = one._runtime.made_with[name], other._runtime.made_with[name]
        if settings_differ(*values):
            raise ValueError(f"models must have one {name}, got {one_line(values[0])} and {one_line(values[1])}")
