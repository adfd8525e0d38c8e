"""What cannot be learned: rows without any value, gaps by some algorithms, and streams by those that need all rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch, without_empty
from headwater.core.learner import Learner
from headwater.core.statistics import LIGHTEST


def refuse_gaps(learner: Learner) -> None:
    """Refuse to learn from rows with gaps by an algorithm that cannot."""
    if learner.algorithm.projection is not None:
        raise ValueError(
            f"algorithm {learner.algorithm.word!r} learns from complete rows, got rows with missing values: drop them, or "
            f"learn by 'auto', 'online-em', 'online-vb' or 'quasi-bayes'"
        )
    problem = getattr(getattr(learner.model, "family", None), "no_predictive_with_gaps", "")
    if problem and learner.algorithm.readout == "predictive":
        raise ValueError(problem)


def telling_rows(batch: Batch, least: int = 1) -> tuple[Batch, NDArray[np.int64]]:
    """Return the rows that have a value, and their places if others have none; fewer than `least` are refused."""
    found, places = without_empty(batch)
    if len(found) < least <= len(batch):
        raise ValueError("X must have at least one row with a value, got missing values only")
    return found, places


def refuse_batch_algorithm(learner: Learner) -> None:
    """Refuse to stream by an algorithm that needs all rows at once."""
    if not learner.algorithm.online:
        raise ValueError(
            f"algorithm {learner.algorithm.word!r} needs all rows at once: call fit, or stream with its online twin "
            f"{learner.algorithm.twin!r}"
        )


def refuse_no_weight(weight: float, batch: Batch) -> None:
    """Refuse to count rows for so little that they would not be there."""
    if weight * batch.size < LIGHTEST:
        raise ValueError(f"weight must leave the rows a weight of at least {LIGHTEST:g}, got {weight:g} of {batch.size:g}")
