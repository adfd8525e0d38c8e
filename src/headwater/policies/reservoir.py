"""A reservoir: a bounded random sample of the rows of a stream, decided by the places of the rows.

Every row has a rank (`row_keys.py`), and the rows of the smallest ranks are kept, in their order, as far as there is room:
those below a limit, the smallest rank whose rows no longer fit into `capacity_rows` rows and `capacity_bytes` bytes. Rows of
the same rank stay or go together. The sample is thus a function of the set of rows: rows of smaller ranks can only become more,
so the limit can only fall, and a row that was left out once would always be left out. So neither cuts of the stream nor the
order or the tree of merges change the sample. (The limit is remembered, since a small row would otherwise take the room that a
large one of a smaller rank did not fit into.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch, SparseRows, drop_zeros, join_batches
from headwater.core.row_keys import KEYS, Keys, least_key_beyond, proposes, ranks_of, row_key, row_keys
from headwater.core.statistics import Array
from headwater.core.values import Matrix
from headwater.policies.reservoir_sample import ROW_BYTES, VALUE_BYTES, Sample, count_once, order_rows

PILE_SHARE = 2  # the pile is sorted in when it is half of the sample


@dataclass(frozen=True, eq=False)
class Pile:
    """The newest rows, in the order in which they came; their ranks are computed later."""

    keys: Keys
    places: NDArray[np.int64]
    clock: Array | float
    batch: Batch
    below: Pile | None
    rows: int  # of all of it
    bytes: int

    def samples(self) -> list[Sample]:
        """Return its rows with their ranks, those of each chunk apart."""
        parts = [self]
        while parts[-1].below is not None:
            parts.append(parts[-1].below)
        parts.reverse()
        keys = np.concatenate([one.keys for one in parts])
        clock = np.concatenate([np.broadcast_to(one.clock, len(one.keys)) for one in parts])
        ranks, ends = ranks_of(keys, clock), np.cumsum([len(one.keys) for one in parts])
        return [
            Sample(ranks[end - len(one.keys) : end], one.places, one.keys, _complete(one.batch))
            for one, end in zip(parts, ends, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Reservoir:
    """A bounded random sample of a stream. Readers see rows in the order of their ranks, which is random.

    Attributes
    ----------
    key : int
        The seed of rows to come.
    capacity_rows, capacity_bytes : int
        How much is kept at most.
    limit : float
        Rows of this rank or more are not kept; infinite as long as all have found room.
    sample : Sample or None
        The rows except those in the pile; None before the first chunk.
    pile : Pile or None
        The newest rows, which are not sorted in yet; readers do not see it.
    """

    key: int
    capacity_rows: int
    capacity_bytes: int
    limit: float = math.inf
    sample: Sample | None = None
    pile: Pile | None = field(default=None, compare=False, repr=False)

    @property
    def settled(self) -> Reservoir:
        """The same without a pile: all rows in the order of their ranks."""
        return self if self.pile is None else self._sorted

    @cached_property
    def _sorted(self) -> Reservoir:
        assert self.sample is not None and self.pile is not None
        return _fit_to_room(replace(self, pile=None), _join([self.sample, *self.pile.samples()]))

    def __len__(self) -> int:
        sample = self.settled.sample
        return 0 if sample is None else len(sample)

    @property
    def holds_all(self) -> bool:
        """Whether no row has been left out so far."""
        return self.settled.limit == math.inf

    @property
    def rows(self) -> Sample:
        """The rows with ranks, places and keys."""
        sample = self.settled.sample
        if sample is None:
            raise ValueError("the reservoir is empty: no row has come yet")
        return sample

    @property
    def batch(self) -> Batch:
        """The rows, each with its weight and its label."""
        return self.rows.batch

    @property
    def ranks(self) -> Array:
        """Ranks of the rows, which rise."""
        return self.rows.ranks

    @property
    def places(self) -> NDArray[np.int64]:
        """Places of the rows in their stream."""
        return self.rows.places

    @property
    def proposes(self) -> NDArray[np.bool_]:
        """Which rows propose; the others judge."""
        return proposes(self.rows.keys)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows with their ranks, places, keys, weights and labels."""
        sample = self.settled.sample
        return 0 if sample is None else int(sample.sizes.sum())

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self.settled).items() if name != "_sorted"}


def add_rows(reservoir: Reservoir, batch: Batch, places: int | NDArray[np.int64], clock: Array | float = 0.0) -> Reservoir:
    """Return the reservoir after more rows of the stream. The given one is not changed; rows are copied.

    Parameters
    ----------
    reservoir : Reservoir
        What is known so far.
    batch : Batch
        The rows. Those without weights weigh 1, those without labels have -1.
    places : int or ndarray of int64
        Place of the first row in the stream, or of each of them.
    clock : float or ndarray
        How much had been forgotten when the rows came, in nats; it does not fall.

    Returns
    -------
    after : Reservoir
        The reservoir itself, if no row finds a place.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.policies.reservoir import Reservoir, add_rows
    >>> from headwater.core.batch import Batch
    >>> rows = np.arange(1000.0)[:, None]
    >>> once = add_rows(Reservoir(key=0, capacity_rows=5, capacity_bytes=2**20), Batch(rows), 0)
    >>> once.batch.X[:, 0]
    array([316., 280., 450., 988., 406.])
    >>> twice = add_rows(add_rows(Reservoir(0, 5, 2**20), Batch(rows[:300]), 0), Batch(rows[300:]), 300)
    >>> np.array_equal(twice.batch.X, once.batch.X)
    True
    """
    n = len(batch)
    if not n:
        return reservoir
    reservoir = _match_form(reservoir, batch.X)
    latest = clock if isinstance(clock, float) else float(np.max(clock))
    beyond = KEYS if reservoir.limit == math.inf else least_key_beyond(reservoir.limit, latest)
    if n == 1 and not isinstance(places, np.ndarray):
        one = row_key(reservoir.key, int(places))
        return reservoir if one >= beyond else _pile(reservoir, np.array([one], np.uint64), np.array([places]), latest, batch)
    if not isinstance(places, np.ndarray):
        places = np.arange(places, places + n)
    keys = row_keys(reservoir.key, places)
    rows = np.flatnonzero(keys < np.uint64(beyond)) if beyond < KEYS else np.arange(n)
    times = clock[rows] if isinstance(clock, np.ndarray) and clock.ndim else latest
    if len(rows) > reservoir.capacity_rows:
        ranks = ranks_of(keys[rows], times)
        limit = _lower_limit(reservoir.limit, ranks, reservoir.capacity_rows)
        reservoir, rows = replace(reservoir.settled, limit=limit), rows[ranks < limit]
        times = clock[rows] if isinstance(clock, np.ndarray) and clock.ndim else latest
        if not len(rows):
            return _fit_to_room(reservoir, reservoir.rows)
    return _pile(reservoir, keys[rows], places[rows], times, batch[rows]) if len(rows) else reservoir


def merge_reservoirs(reservoirs: Sequence[Reservoir], shared: int = 0) -> Reservoir:
    """Return one reservoir of the rows of several, in any order and any tree the same.

    Parameters
    ----------
    reservoirs : sequence of Reservoir
        Those of streams with or without a common beginning.
    shared : int
        Rows of the stream that all have in common: rows of places before it are the same row in each, and count once. Rows of
        later places are different rows, even if they are equal.

    Returns
    -------
    union : Reservoir
        The smallest ranks of all, with the least capacity and the smallest key of any.
    """
    if not reservoirs:
        raise ValueError("reservoirs must hold at least one reservoir to merge, got none")
    settled = [one.settled for one in reservoirs]
    union = Reservoir(
        min(one.key for one in settled),
        min(one.capacity_rows for one in settled),
        min(one.capacity_bytes for one in settled),
        min(one.limit for one in settled),
    )
    samples = [one.sample for one in settled if one.sample is not None]
    if not samples:
        return union
    sources = np.repeat(np.arange(len(samples)), [len(one) for one in samples])
    sample = _join(samples)
    if shared > 0:
        sample = sample[count_once(sample, sources, shared)]
    return _fit_to_room(union, sample)


def rows_since(reservoir: Reservoir, shared: int) -> Reservoir:
    """Return the reservoir rows from place `shared` on: what a merge needs in addition to the reservoir at that place.

    For streams that went on from `base` at n, `merge_reservoirs([base, rows_since(one, n), rows_since(two, n)], n)` is
    `merge_reservoirs([one, two], n)`.
    """
    settled = reservoir.settled
    if settled.sample is None:
        return settled
    return replace(settled, sample=settled.sample[np.flatnonzero(settled.sample.places >= shared)])


def widen_rows(reservoir: Reservoir, width: int) -> Reservoir:
    """Return the reservoir with more columns, which are zero; its rows become sparse."""
    if reservoir.sample is None:
        return reservoir
    settled = reservoir.settled.rows
    X = _sparse(settled.batch.X)
    return _fit_to_room(reservoir.settled, replace(settled, batch=replace(settled.batch, X=X.widened(max(width, X.width)))))


def resize(reservoir: Reservoir, capacity_rows: int) -> Reservoir:
    """Return the reservoir with another capacity. Rows that were left out before do not come back: the limit stays."""
    reservoir = replace(reservoir.settled, capacity_rows=capacity_rows)
    return reservoir if reservoir.sample is None else _fit_to_room(reservoir, reservoir.sample)


def relabel(reservoir: Reservoir, names: NDArray[np.int64]) -> Reservoir:
    """Return the reservoir with other names of labels: `names[label]` where there is one."""
    sample = reservoir.rows
    labels = np.where(sample.batch.labels >= 0, names[sample.batch.labels], -1)
    return replace(reservoir.settled, sample=replace(sample, batch=replace(sample.batch, labels=labels)))


def _match_form(reservoir: Reservoir, X: Matrix) -> Reservoir:
    """The reservoir with sparse rows of this width, if new rows are sparse, whether or not any of them is kept."""
    if reservoir.sample is None:
        nothing = np.empty(0, dtype=np.int64)
        empty = Sample(np.empty(0), nothing, nothing.astype(np.uint64), _complete(Batch(X)[nothing].in_doubles))
        return replace(reservoir, sample=empty)
    known = reservoir.sample.batch.X
    if isinstance(X, SparseRows) and (not isinstance(known, SparseRows) or X.width > known.width):
        return widen_rows(reservoir, X.width)
    return reservoir


def _complete(batch: Batch) -> Batch:
    """A copy of the rows, with weights and labels."""
    return Batch(batch.X, batch.row_weights, batch.row_labels)


def _pile(reservoir: Reservoir, keys: Keys, places: NDArray[np.int64], clock: Array | float, batch: Batch) -> Reservoir:
    """The reservoir with more rows on its pile, which are sorted in when there are many."""
    known, below = reservoir.sample, reservoir.pile
    assert known is not None
    batch = batch.in_doubles
    if len(keys) == 1:
        batch = Batch(batch.X.copy(), batch.weights.copy(), batch.labels.copy())  # others are copies already
    X = batch.X
    if isinstance(known.batch.X, SparseRows):
        X = _sparse(X)
        batch = Batch(X.widened(max(known.batch.X.width, X.width)), batch.weights, batch.labels)
        size = VALUE_BYTES * X.nnz + 8 * len(keys)
    else:
        size = X.nbytes
    size += ROW_BYTES * len(keys)
    rows = len(keys)
    if below is not None:
        rows, size = rows + below.rows, size + below.bytes
    pile = Pile(keys, places, clock, batch, below, rows, size)
    after = Reservoir(reservoir.key, reservoir.capacity_rows, reservoir.capacity_bytes, reservoir.limit, known, pile)
    full = PILE_SHARE * rows > reservoir.capacity_rows or PILE_SHARE * size > reservoir.capacity_bytes
    return after.settled if full else after


def _sparse(X: Matrix) -> SparseRows:
    return X if isinstance(X, SparseRows) else drop_zeros(X)


def _join(samples: Sequence[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    ranks, places, keys = (np.concatenate([getattr(one, name) for one in samples]) for name in ("ranks", "places", "keys"))
    return Sample(ranks, places, keys, join_batches([one.batch for one in samples]))


def _fit_to_room(reservoir: Reservoir, sample: Sample) -> Reservoir:
    """The reservoir with the rows that fit, in their order, and a limit below which no other row lies."""
    limit = _lower_limit(reservoir.limit, sample.ranks, reservoir.capacity_rows)
    order = order_rows(sample, np.flatnonzero(sample.ranks < limit))
    room = int(np.searchsorted(np.cumsum(sample.sizes[order]), reservoir.capacity_bytes, side="right"))
    if room < len(order):
        limit = float(sample.ranks[order[room]])
        order = order[: np.searchsorted(sample.ranks[order], limit)]
    return replace(reservoir, limit=limit, sample=sample[order])


def _lower_limit(limit: float, ranks: Array, capacity: int) -> float:
    """The limit if this many rows fit: the rank of the first that does not."""
    return limit if len(ranks) <= capacity else min(limit, float(np.partition(ranks, capacity)[capacity]))
