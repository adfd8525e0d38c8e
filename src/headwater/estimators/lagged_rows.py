"""Rows of sequences beside the rows before them: the inputs of an autoregression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.estimators.chains import check_chain_rows


def lag_rows(
    rows: Array, sequences: NDArray[np.int64], order: int, pasts: Mapping[int, Array]
) -> tuple[Array, dict[int, Array]]:
    """Return rows (n, (order + 1) d) of the rows before, the newest first, and the row itself; and the past of each sequence.

    A row of which something is missing, or that has too few rows before it, is missing (NaN). `pasts` (order, d) are the last
    rows of sequences that go on, by their numbers.
    """
    n, d = rows.shape
    found, after = np.empty((n, (order + 1) * d)), {}
    for number in np.unique(sequences).tolist():
        own = np.flatnonzero(sequences == number)
        before = pasts.get(number)
        head = np.full((order, d), np.nan) if before is None else before[::-1]
        whole = np.vstack([head, rows[own]])
        for lag in range(1, order + 1):
            found[own, (lag - 1) * d : lag * d] = whole[order - lag : order - lag + len(own)]
        found[own, order * d :] = rows[own]
        after[number] = whole[len(whole) - order :][::-1].copy()
    found[np.isnan(found).any(axis=1)] = np.nan
    return found, after


def check_pasts(pasts: Iterable[Array], shape: tuple[int, int], owner: str) -> None:
    """Refuse last rows of sequences, from a model file, that no sequence could have."""
    for past in pasts:
        if past.shape != shape:
            raise ValueError(f"it has last rows of a sequence of shape {past.shape}, and should have {shape}")
        check_chain_rows(past, owner)
