"""Settings that were changed since a stream began: those that it cannot go on with are refused, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headwater.core.algorithm import Algorithm
from headwater.core.validation import one_line
from headwater.estimators.traits import Traits

LEARN = "learn"  # the value of a prior that rows find from now on


def refuse_shapes(traits: Traits, before: Mapping[str, object], now: Mapping[str, object]) -> None:
    """Refuse to go on with parameters that ask for arrays of another shape."""
    for name in traits.shape_parameters:
        if settings_differ(before[name], now[name]):
            raise ValueError(
                f"{name} cannot change from {one_line(before[name])} to {one_line(now[name])} in a model that goes on "
                f"learning: make a new one, or fit without warm_start"
            )


def refuse_priors(traits: Traits, before: Mapping[str, object], now: Mapping[str, object], streams: bool) -> None:
    """Refuse to go on with another prior: a stream has the one that was found when it started.

    Passes over all rows (not `streams`) do take the least variances that are asked for.
    """
    for name in (*traits.prior_parameters, *(traits.floor_parameters if streams else ())):
        learned = isinstance(now[name], str) and now[name] == LEARN
        if settings_differ(before[name], now[name]) and not learned:
            raise ValueError(
                f"{name} cannot change from {one_line(before[name])} to {one_line(now[name])} once learning has started, since "
                f"the prior was found then: make a new model, or fit without warm_start"
            )


def refuse_algorithm(before: Algorithm, now: Algorithm) -> None:
    """Refuse to go on by moment matching with the statistics of another algorithm, or the other way round.

    Moment matching keeps three masses of a component where all others keep one (`families/gaussian_records.py`).
    """
    if (before.projection is None) != (now.projection is None):
        raise ValueError(
            f"algorithm cannot change from {before.word!r} to {now.word!r} once learning has started, since the two keep "
            f"different statistics: make a new model, or fit without warm_start"
        )


def settings_differ(one: object, other: object) -> bool:
    """Whether two values of a parameter differ. NumPy 2.0 cannot compare a word with a number, so words come first."""
    if one is other:
        return False
    if one is None or other is None or isinstance(one, str) != isinstance(other, str):
        return True
    return not np.array_equal(np.asarray(one), np.asarray(other))
