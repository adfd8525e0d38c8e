"""Seeds of streams and samples, by the `random_state` of an estimator."""

from __future__ import annotations

import numbers
from typing import Protocol

import numpy as np
from sklearn.utils.validation import check_random_state

from headwater.core.values import RandomState


class Seeded(Protocol):
    """What has a seed: any estimator."""

    random_state: RandomState


def new_key(model: Seeded) -> int:
    """Return the seed of a stream, by `random_state`."""
    seed = model.random_state
    if isinstance(seed, numbers.Integral):
        return int(seed)
    return int(check_random_state(seed).randint(2**31 - 1))


def rng_of(model: Seeded) -> np.random.Generator:
    """Return a generator for samples, by `random_state`."""
    return np.random.default_rng(np.random.SeedSequence((new_key(model), 2)))
