"""Table: numbers by word and component, of which a batch reads and changes only the words it contains.

A table is an immutable value: `table + other` is a new one, and the old one does not change. But it costs no copy. All versions
of a table share one store, which the newest owns. When it changes, the rows that are about to change are saved for older
versions that are still in use, each row once. An old version that is read, or added to, copies the store and restores its own
rows. (This is Baker's trick for arrays in functional languages.) A factor is stored with the rows, so that a table is scaled,
as every fold does, without touching them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import RLock
from weakref import ref

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headwater.core.statistics import Array
from headwater.core.values import Index, Places
from headwater.kernels.tables import add_rows, place_words, read_rows, save_rows

Words = NDArray[np.int32]
SMALLEST, LARGEST = 1e-100, 1e100  # of a factor, and of what is gained on its rows

MOST_OF_A_TABLE = 64.0  # the rounding error grows with it

_numbers = count()


class _Store:
    """Rows in the order in which their words came; slots[word] is one more than the place of its row, or 0.

    Readers and writers of the rows hold the lock: versions may be on different threads.
    """

    def __init__(self, slots: NDArray[np.int32], words: Words, rows: Array) -> None:
        self.slots, self.words, self.rows = slots, words, rows
        self.used = len(words)
        self.newest = -1
        self.older: list[ref[_Version]] = []
        self.lock = RLock()

    def widen(self, width: int) -> None:
        """Make room for this many words."""
        if width > len(self.slots):
            slots = np.zeros(max(width, len(self.slots) * 3 // 2), dtype=np.int32)
            slots[: len(self.slots)] = self.slots
            self.slots = slots

    def admit(self, words: Words) -> None:
        """Give each of these words a row."""
        room = len(self.words)
        if self.used + len(words) > room:
            absent = int(np.count_nonzero(self.slots[words] == 0))
            if self.used + absent > room:
                room = min(len(self.slots), max(self.used + absent, 2 * self.used))
                rows, known = np.zeros((room, self.rows.shape[1])), np.empty(room, dtype=np.int32)
                rows[: self.used], known[: self.used] = self.rows[: self.used], self.words[: self.used]
                self.rows, self.words = rows, known
        self.used = place_words(words, self.slots, self.words, self.used)


class _Version:
    """A version of a store; `change` is the difference to the version before: its number, words, rows and gain."""

    __slots__ = ("__weakref__", "change", "number", "saved", "store", "touched", "used")

    def __init__(self, store: _Store) -> None:
        self.store, self.used, self.number = store, store.used, next(_numbers)
        self.touched: NDArray[np.bool_] | None = None
        self.saved: list[tuple[Places, Array]] = []
        self.change: tuple[int, Words, Array, float] | None = None
        store.newest = self.number

    def save(self, words: Words) -> None:
        """Keep the rows of these words, which are about to change."""
        if self.touched is None:
            self.touched = np.zeros(self.used, dtype=np.bool_)
        most = min(len(words), self.used)
        places, rows = np.empty(most, dtype=np.int64), np.empty((most, self.store.rows.shape[1]))
        kept = save_rows(self.store.rows, self.store.slots, words, self.touched, places, rows)
        self.saved.append((places[:kept].copy(), rows[:kept].copy()) if kept < most else (places, rows))

    @contextmanager
    def locked(self) -> Iterator[_Store]:
        """The store of this version, locked for others.

        That is its own if it is the newest, or else a copy with the saved rows put back.
        """
        while True:
            store = self.store
            with store.lock:
                if self.store is not store:
                    continue  # another thread has copied it in between
                if store.newest == self.number:
                    yield store
                    return
                own = self._copied(store)
                # The store comes last: another thread that finds it need not wait, and may save rows at once.
                self.touched, self.saved = None, []
                self.store = own

    def _copied(self, store: _Store) -> _Store:
        words, rows = store.words[: self.used].copy(), store.rows[: self.used].copy()
        for places, saved in self.saved:
            rows[places] = saved
        slots = np.zeros_like(store.slots)
        slots[words] = np.arange(1, self.used + 1)
        own = _Store(slots, words, rows)
        own.newest = self.number
        return own

    def __reduce__(self) -> tuple[object, ...]:
        with self.locked() as store:
            return restored, (len(store.slots), store.words[: self.used].copy(), store.rows[: self.used].copy())

    @contextmanager
    def next(self, words: Words) -> Iterator[_Version]:
        """The version after this, in which the rows of these words may be written to."""
        with self.locked() as store:
            held = [version for version in (one() for one in store.older) if version is not None and version.store is store]
            store.older = [ref(version) for version in (*held, self)]
            for version in (*held, self):
                version.save(words)
            store.admit(words)
            yield _Version(store)


def restored(width: int, words: Words, rows: Array) -> _Version:
    """Rows by word, as a table holds them."""
    slots = np.zeros(width, dtype=np.int32)
    slots[words] = np.arange(1, len(words) + 1)
    return _Version(_Store(slots, words, rows))


class Table:
    """factor * rows: a (words, components) matrix that holds only the words that have occurred."""

    __array_ufunc__ = None  # a NumPy number times a table is a table

    def __init__(self, version: _Version, factor: float, width: int) -> None:
        self._version, self.factor, self.width = version, factor, width

    @classmethod
    def zeros(cls, width: int, n_components: int) -> Table:
        """A table without a word."""
        return cls.of_words(width, np.empty(0, dtype=np.int32), np.empty((0, n_components)))

    @classmethod
    def of_words(cls, width: int, words: Words, rows: Array, slots: NDArray[np.int32] | None = None) -> Table:
        """The table with these rows, which are not copied; the slots of the words, if they are known."""
        version = restored(width, words, rows) if slots is None else _Version(_Store(slots, words, rows))
        return cls(version, 1.0, width)

    @classmethod
    def of_dense(cls, matrix: Array) -> Table:
        """The table with a row for every word."""
        words = np.arange(len(matrix), dtype=np.int32)
        return cls.of_words(len(matrix), words, np.ascontiguousarray(matrix), words + np.int32(1))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of words there can be, and of components."""
        return self.width, self._version.store.rows.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that are held."""
        return int(self._version.used * self.shape[1] * 8)

    @contextmanager
    def reading(self) -> Iterator[tuple[NDArray[np.int32], Array, float]]:
        """Slots, rows and factor, to read from."""
        with self._version.locked() as store:
            yield store.slots, store.rows, self.factor

    @property
    def version(self) -> _Version:
        """The version, which tables that are multiples of one another share."""
        return self._version

    def stored(self) -> tuple[Words, Array]:
        """The words that are held, in the order in which they came, and their rows before the factor."""
        with self._version.locked() as store:
            return store.words[: self._version.used].copy(), store.rows[: self._version.used].copy()

    def words(self) -> Words:
        """The words that are held."""
        with self._version.locked() as store:
            return store.words[: self._version.used].copy()

    def at(self, words: Words) -> Array:
        """Rows of these words."""
        out = np.empty((len(words), self.shape[1]))
        with self.reading() as (slots, rows, factor):
            read_rows(rows, slots, words, factor, out)
        return out

    def is_finite(self, most: int) -> bool:
        """Whether all stored rows are finite; a table of more than `most` numbers is not checked: reading it is a copy."""
        return self.shape[0] * self.shape[1] > most or bool(np.isfinite(self.held()[1]).all())

    def held(self) -> tuple[Words, Array]:
        """The words that are held, in rising order, and their rows."""
        words = np.sort(self.words())
        return words, self.at(words)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return self.at(np.arange(self.shape[0], dtype=np.int32))

    def copy(self) -> Table:
        """Return a table with a store of its own."""
        words = self.words()
        return Table.of_words(self.shape[0], words, self.at(words))

    @contextmanager
    def opened(self, words: Words) -> Iterator[tuple[Table, NDArray[np.int32], Array]]:
        """A new table, its slots and its rows; those of these words may be written to."""
        with self._version.next(words) as version:
            yield Table(version, self.factor, self.width), version.store.slots, version.store.rows

    def rescaled(self, factor: float) -> Table:
        """Return the same rows with another factor."""
        return Table(self._version, factor, self.width)

    def same_rows(self, other: Table) -> bool:
        """Whether the two are multiples of one and the same version."""
        return self._version is other._version

    def since(self, reference: Table) -> tuple[float, Words]:
        """Return a multiple and some words: the rows of all the others are this multiple of those of the reference.

        Rows that nothing was added to since the two were one are the same bit for bit, before the factor.
        """
        words, rows = reference.stored()
        changed = np.zeros(max(self.width, reference.width), dtype=np.bool_)
        with self.widened(len(changed))._version.locked() as store:
            changed[store.words[: self._version.used]] = True
            slots = store.slots[words]
            same = slots > 0
            same[same] = (store.rows[slots[same] - 1] == rows[same]).all(axis=1)
        changed[words] = ~same
        return self.factor / reference.factor if reference.factor else 0.0, np.flatnonzero(changed).astype(np.int32)

    def plus(self, words: Words, rows: Array, gain: float) -> Table:
        """Return this table with gain * rows added to the rows of these words; `rows` must not change later."""
        if not SMALLEST < abs(self.factor) < LARGEST or not abs(gain) < LARGEST * abs(self.factor):
            self = self.copy()
        gain /= self.factor
        with self.opened(words) as (table, slots, target):
            add_rows(target, slots, words, rows, gain)
        table._version.change = self._version.number, words, rows, gain
        return table

    def __add__(self, other: Table | Blend) -> Table:
        other = other.plain()
        if self.factor == 0.0 or self._version.used == 0:
            return other if other.width >= self.width else other.widened(self.width)
        if self.same_rows(other):
            return Table(self._version, self.factor + other.factor, max(self.width, other.width))
        words = other.words()
        return self.widened(max(self.width, other.width)).plus(words, other.at(words), 1.0)

    def widened(self, width: int) -> Table:
        """Return the table of more words; those that come on have not occurred."""
        if width == self.width:
            return self
        with self._version.locked() as store:
            store.widen(width)
        return Table(self._version, self.factor, width)

    def plain(self) -> Table:
        """Return the table itself; an average returns what it has become."""
        return self

    def __sub__(self, other: Table | Blend) -> Table:
        return self + (-1.0) * other.plain()

    def __mul__(self, factor: float) -> Table:
        if factor == 0.0:
            return Table.zeros(*self.shape)
        return Table(self._version, self.factor * float(factor), self.width)

    __rmul__ = __mul__

    def permuted(self, order: Index) -> Table:
        """Return the table with the components in another order, or with some of them."""
        words = self.words()
        return Table.of_words(self.shape[0], words, np.ascontiguousarray(self.at(words)[:, order]))

    def __reduce__(self) -> tuple[object, ...]:
        return Table, (self._version, self.factor, self.width)


class Blend:
    """The running average of a table that changes: `table` + `rest`, where `table` is a multiple of the newest version."""

    __array_ufunc__ = None

    def __init__(self, table: Table, rest: Table) -> None:
        self.table, self.rest = table, rest

    @property
    def shape(self) -> tuple[int, int]:
        """Number of words there can be, and of components."""
        return self.table.shape

    def widened(self, width: int) -> Blend:
        """Return the average of tables of more words."""
        return Blend(self.table.widened(width), self.rest.widened(width))

    def words(self) -> Words:
        """The words that are held."""
        return np.union1d(self.table.words(), self.rest.words())

    def at(self, words: Words) -> Array:
        """Rows of these words; what rounding leaves below zero is zero."""
        return np.maximum(self.table.at(words) + self.rest.at(words), 0.0)

    def plain(self) -> Table:
        """The average as a table of its own."""
        words = self.words()
        return Table.of_words(self.shape[0], words, self.at(words))

    def held(self) -> tuple[Words, Array]:
        """The words that are held, in rising order, and their rows."""
        return self.plain().held()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.asarray(self.plain())

    def copy(self) -> Table:
        """Return a table with a store of its own."""
        return self.plain()

    def __mul__(self, factor: float) -> Table | Blend:
        if factor == 0.0:
            return Table.zeros(*self.shape)
        return Blend(self.table * factor, self.rest * factor)

    __rmul__ = __mul__

    def __add__(self, other: Table | Blend) -> Table:
        return self.plain() + other

    def __sub__(self, other: Table | Blend) -> Table:
        return self.plain() - other

    def __reduce__(self) -> tuple[object, ...]:
        return Blend, (self.table, self.rest)


def average_tables(average: Table | Blend, newest: Table, gain: float) -> Blend:
    """Return (1 - gain) * average + gain * newest.

    If the average holds a multiple of the version before the newest, only the words in which the two differ are touched: what
    the multiple gains there is taken from the rest.
    """
    keep = 1.0 - gain
    if isinstance(average, Table):
        return Blend(newest * gain, average * keep)
    table, rest = average.table, average.rest
    change = newest._version.change
    known = table.same_rows(newest) or (change is not None and change[0] == table._version.number)
    if not known or outgrown(table.factor, newest.factor):
        return Blend(newest * gain, average.plain() * keep)
    if change is not None and not table.same_rows(newest):
        _, words, rows, gained = change
        rest = rest.plus(words, rows, -table.factor * gained)
    return Blend(newest.rescaled(keep * table.factor + gain * newest.factor), rest * keep)


def outgrown(share: float, factor: float) -> bool:
    """Whether an average holds so much more of a table than it is worth by now that the rest is all but its opposite.

    Long steps shrink the factor of a table much faster than short gains shrink its share in the average.
    """
    return not abs(share) <= MOST_OF_A_TABLE * abs(factor)
