"""Rows of a stream with their ranks: which come first, and which of several samples are one and the same row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch, SparseRows
from headwater.core.gapped_rows import GappedRows
from headwater.core.row_keys import Keys, mix_bits
from headwater.core.statistics import Array
from headwater.core.values import Matrix

ROW_BYTES = 5 * 8  # rank, place, key, weight and label
VALUE_BYTES = 12  # of a sparse row: a number and its column


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a stream with their ranks, places and keys."""

    ranks: Array
    places: NDArray[np.int64]
    keys: Keys
    batch: Batch

    def __len__(self) -> int:
        return len(self.ranks)

    def __getitem__(self, rows: Matrix) -> Sample:
        return Sample(self.ranks[rows], self.places[rows], self.keys[rows], self.batch[rows])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each row."""
        X = self.batch.X
        if isinstance(X, SparseRows):
            return ROW_BYTES + 8 + VALUE_BYTES * np.diff(X.indptr)
        return np.full(len(X), ROW_BYTES + X.itemsize * X.shape[1])


def order_rows(sample: Sample, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows sorted by rank, then by place, then by content."""
    ranks = sample.ranks[rows]
    order = rows[np.argsort(ranks)]
    ranks = sample.ranks[order]
    if (ranks[1:] == ranks[:-1]).any():
        order = rows[np.lexsort((_digests(sample.batch[rows]), sample.places[rows], sample.ranks[rows]))]
    return order


def count_once(sample: Sample, sources: NDArray[np.int64], shared: int) -> NDArray[np.int64]:
    """Which rows are left if those before the place `shared` count once.

    A source may itself hold equal rows of one place, from different branches before. Equal rows are paired in order, so as many
    are left as the source with the most of them has.
    """
    common = np.flatnonzero(sample.places < shared)
    about = sample.ranks[common], sample.places[common], _digests(sample.batch[common])
    order = np.lexsort((sources[common], *reversed(about)))
    common, source = common[order], sources[common][order]
    new = np.ones(len(common), dtype=bool)
    new[1:] = np.any([part[order][1:] != part[order][:-1] for part in about], axis=0)
    row = np.cumsum(new)
    begins = new.copy()
    begins[1:] |= source[1:] != source[:-1]
    at = np.arange(len(common))
    copy = at - np.maximum.accumulate(np.where(begins, at, 0))  # its number among the equal ones of its source
    _, first = np.unique(np.stack([row, copy], axis=1), axis=0, return_index=True)
    return np.sort(np.concatenate([common[first], np.flatnonzero(sample.places >= shared)]))


def _digests(batch: Batch) -> Keys:
    """A digest of each row and its companions; it does not depend on empty columns at the end."""
    X = batch.X
    if isinstance(X, SparseRows):
        held = X.copy()
        bits = mix_bits(mix_bits(held.indices.astype(np.uint64)) ^ held.data.view(np.uint64))
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(bits, dtype=np.uint64)])
        found = sums[held.indptr[1:]] - sums[held.indptr[:-1]]
    else:
        known = X.filled(np.nan) if isinstance(X, GappedRows) else np.ascontiguousarray(X)
        values = known.view(np.uint64)
        columns = mix_bits(np.arange(values.shape[1]).astype(np.uint64))
        found = mix_bits(values ^ columns).sum(axis=1, dtype=np.uint64)
    for companion in (batch.weights, batch.labels):
        found = mix_bits(found) + companion.view(np.uint64)
    return mix_bits(found)
