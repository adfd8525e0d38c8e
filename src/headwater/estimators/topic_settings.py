"""Settings of topic models that are checked: the prior of the proportions, and topics to start from."""

from __future__ import annotations

import numbers

import numpy as np

from headwater.core.statistics import Array
from headwater.core.validation import numeric, one_line
from headwater.core.values import Values
from headwater.estimators.start_parameters import given_factors


def proportion_prior(prior: Values, n_components: int) -> tuple[float, ...] | float | None:
    """Return Dirichlet parameters of the proportions: a number, one for each topic, or None if they are to be learned."""
    if prior is None:
        return 1.0 / n_components
    if isinstance(prior, str):
        return None
    if isinstance(prior, numbers.Real):
        return float(prior)
    given = np.asarray(numeric(prior, "doc_topic_prior"), dtype=float)
    if given.shape != (n_components,) or not (given > 0.0).all() or not np.isfinite(given).all():
        raise ValueError(
            f"doc_topic_prior must be 'learn', a positive number, or {n_components} of them, got {one_line(prior)}"
        )
    return tuple(given.tolist())


def given_topics(components_init: Values, n_components: int, width: int, vocabulary: str) -> Array | None:
    """Return topics to start from, whose rows sum to one; None if none were given."""
    if components_init is not None and vocabulary == "open":
        raise ValueError("components_init must be None with vocabulary='open', whose columns are not known before the stream")
    topics = given_factors(components_init, n_components, width)
    return None if topics is None else topics / topics.sum(axis=1, keepdims=True)
