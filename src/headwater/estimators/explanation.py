"""Explanation: how odd each entry of a row is, given the other columns of that row."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp, ndtri_exp

from headwater.core.batch import NO_LABELS
from headwater.core.statistics import Array
from headwater.core.values import AnyArray
from headwater.estimators.column_kinds import BERNOULLI
from headwater.estimators.conditional import Conditional, checked_level, row_blocks
from headwater.estimators.reason_table import ReasonTable
from headwater.estimators.table_schema import TableSchema
from headwater.families.conditional_law import ConditionalLaw, Places
from headwater.families.entry_mixture import entry_log_density
from headwater.families.posterior import posterior

if TYPE_CHECKING:
    from headwater.families.entry_law import EntryLaw

USUAL = 0.01  # tail probability from which a column by itself is usual
SHOWN = 10  # entries that a notebook shows


class Explanation:
    """Which columns make a row odd. `GaussianMixture.explain` makes one.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    values : ndarray of shape (n_samples, n_features)
        The rows.
    tail : ndarray of shape (n_samples, n_features)
        Two-sided tail probability of each entry, given the other columns of its row: the smaller, the odder. Comparable between
        columns of any unit. Of a category, the probability of all that are no more probable. NaN where an entry is missing.
    surprise : ndarray of shape (n_samples, n_features)
        Minus the log-density of each entry given the others, in nats, or log-probability of a category, flag or count. A
        density depends on the unit of its column.
    expected, low, high : ndarray of shape (n_samples, n_features)
        Expectation of each entry given the other columns: mean, and a central interval of probability `level`. Of a category or
        a flag the most probable one, and no interval. Categories are words: then `values` and `expected` hold objects.
    deviations : ndarray of shape (n_samples, n_features)
        The same as standard deviations of a normal law, negative below the expected value.
    level : float
        Probability of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=4000)
    >>> rows = np.column_stack([x, x + 0.1 * rng.normal(size=4000), rng.normal(size=4000)])
    >>> reasons = hw.GaussianMixture(1, random_state=0).fit(rows).explain([[1.0, 1.1, 0.3], [1.0, 1.0, 9.0]])
    >>> reasons.tail.argmin(axis=1).tolist()
    [1, 2]
    >>> reasons.top(1).to_dict()["column"]
    ['x1', 'x2']
    """

    values: AnyArray
    expected: AnyArray
    low: AnyArray
    high: AnyArray

    def __init__(self, law: Conditional, columns: Sequence[str], level: float, words: TableSchema | None = None) -> None:
        self.level = checked_level(level)
        self.columns, self._law, self._rows = tuple(map(str, columns)), law, law._X
        self._measure()
        if words is None:
            self.values = self._rows
            return
        self.values, self.expected = words.table(self._rows), words.table(self.expected)
        for place in (*words.codebook.columns, *(at for at, kind in enumerate(words.kinds) if kind == BERNOULLI)):
            self._expects[:, place] = self.low[:, place] = self.high[:, place] = np.nan

    def _measure(self) -> None:
        law, tail, shape = self._law, 0.5 - 0.5 * self.level, self._rows.shape
        self._log_tail, self.surprise = np.full(shape, np.nan), np.full(shape, np.nan)
        self.expected = np.where(law.missing, law.mean, np.nan)
        self.low, self.high = np.full(shape, np.nan), np.full(shape, np.nan)
        if law.missing.any():
            low, high = law.interval(self.level)
            self.low[law.missing], self.high[law.missing] = low[law.missing], high[law.missing]
        for rows, block in law._blocks():
            weights, entries, at, columns_at = leave_one_out(block, law._log_weights)
            if not len(at):
                continue
            places = rows[at], columns_at
            observed = self._rows[places]
            self._log_tail[places] = entries.mixture_log_tail(weights, observed)
            self.surprise[places] = -entry_log_density(entries, weights, observed)
            self.expected[places] = entries.mixture_moments(weights)[0]
            self.low[places] = entries.mixture_quantile(weights, tail)
            self.high[places] = entries.mixture_quantile(weights, 1.0 - tail)
        self.tail, self._expects = np.exp(self._log_tail), self.expected.copy()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def deviations(self) -> Array:
        """Distance of each entry from its expectation given the others, (n_samples, n_features), as of a normal law.

        In standard deviations, negative below the expected value; NaN where an entry is missing.
        """
        size = -ndtri_exp(np.minimum(self._log_tail - np.log(2.0), -np.log(2.0)))
        return np.asarray(np.where(self._rows < self._expects, -size, size))

    def top(self, k: int = 3) -> ReasonTable:
        """Return the oddest columns of each row, the oddest first.

        Parameters
        ----------
        k : int, default=3
            Number of columns for each row; fewer, if a row has fewer observed ones.

        Returns
        -------
        table : ReasonTable
            Columns row, column, value, expected, low, high, tail and surprise.
        """
        order = self.order(k)
        rows = np.repeat(np.arange(len(self)), order.shape[1])
        k = order.shape[1]
        return self._table(
            "The oddest column of each row" if k == 1 else f"The {k} oddest columns of each row", rows, order.ravel()
        )

    def order(self, k: int | None = None) -> Places:
        """Return the places of the columns of each row, the oddest first, missing ones last.

        Parameters
        ----------
        k : int, optional
            Number of columns for each row; all by default.

        Returns
        -------
        columns : ndarray of shape (n_samples, k)
            Places of columns.
        """
        width = self.values.shape[1]
        return np.argsort(self._log_tail, axis=1, kind="stable")[:, : width if k is None else _checked_number(k)]

    def _table(self, title: str, rows: Places, columns: Places) -> ReasonTable:
        seen = ~np.isnan(self._log_tail[rows, columns])
        rows, columns = rows[seen], columns[seen]
        names = np.array(self.columns, dtype=object)
        values = {name: getattr(self, "values" if name == "value" else name)[rows, columns] for name in TABLE}
        return ReasonTable(title, {"row": rows, "column": names[columns], **values})

    def pairs(self, k: int = 3, alone: float = USUAL) -> ReasonTable:
        """Return pairs of columns that are odd together, where neither is by itself, given all others: the oddest first.

        Two columns with the same error confirm each other, so that no single one stands out.

        Parameters
        ----------
        k : int, default=3
            Number of pairs for each row, at most.
        alone : float, default=0.01
            A column is usual by itself if its tail probability is at least this. Pairs are those of usual columns whose
            own tail probability is less.

        Returns
        -------
        table : ReasonTable
            Columns row, first, second, tail (the probability of a pair as far from its centre), surprise (nats of the pair
            given the others), and tail_first and tail_second of each column by itself.
        """
        k, alone = _checked_number(k), checked_level(alone)
        width = self.values.shape[1]
        found: list[tuple[AnyArray, ...]] = []
        upper = np.triu(np.ones((width, width), dtype=bool), 1)
        law = self._law
        usual = self.tail >= alone  # not where an entry is missing
        chosen = np.flatnonzero(usual.sum(axis=1) > 1)
        for rows in row_blocks(chosen, len(law._log_weights) * width * width):
            block = law._law_of(rows)
            log_tail, surprise = leave_two_out(block, law._log_weights)
            both = usual[rows][:, :, None] & usual[rows][:, None, :] & upper & (log_tail < np.log(alone))
            flat = np.where(both, log_tail, np.inf).reshape(len(rows), -1)
            order = np.argsort(flat, axis=1, kind="stable")[:, :k]
            at, place = np.nonzero(np.isfinite(np.take_along_axis(flat, order, axis=1)))
            first, second = np.divmod(order[at, place], width)
            found.append((rows[at], first, second, np.exp(log_tail[at, first, second]), surprise[at, first, second]))
        none: list[AnyArray] = [np.empty(0, dtype=np.int64)] * 3 + [np.empty(0)] * 2
        parts = [np.concatenate(part) for part in zip(*found, strict=True)] if found else none
        names, (at, first, second) = np.array(self.columns, dtype=object), parts[:3]
        columns = {"row": at, "first": names[first], "second": names[second], "tail": parts[3], "surprise": parts[4]}
        alone_tails = {"tail_first": self.tail[at, first], "tail_second": self.tail[at, second]}
        return ReasonTable("Pairs of columns that are odd together and usual alone", {**columns, **alone_tails})

    def to_dict(self) -> dict[str, object]:
        """Return everything as lists, which JSON can hold; None in place of NaN."""
        arrays = {name: getattr(self, name) for name in ("values", *TABLE[1:])}
        lists = {name: _listed(array) for name, array in arrays.items()}
        return {"columns": list(self.columns), "level": self.level, **lists}

    def __str__(self) -> str:
        return str(self._shown())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._shown()._repr_html_()

    def _shown(self) -> ReasonTable:
        flat = np.argsort(self._log_tail, axis=None, kind="stable")[:SHOWN]
        rows, columns = np.divmod(flat, self.values.shape[1])
        n, width = self.values.shape
        return self._table(f"Explanation of {n:,} rows of {width:,} columns: the oddest entries", rows, columns)


TABLE = ("value", "expected", "low", "high", "tail", "surprise")


def leave_one_out(block: ConditionalLaw, log_weights: Array) -> tuple[Array, EntryLaw, Places, Places]:
    """Return weights and laws of each observed entry, given the other columns of its row, and its row and column."""
    others, entries, rows, columns = block.without_column()
    weights = others + log_weights
    posterior(weights, NO_LABELS)
    return weights, entries, rows, columns


def leave_two_out(block: ConditionalLaw, log_weights: Array) -> tuple[Array, Array]:
    """Return log tail probability and surprise (n, d, d) of each pair of columns, given the other columns of the row."""
    others, pair, far = block.without_pair()
    joint = others + log_weights[:, None, None]
    total = logsumexp(joint, axis=1)
    log_tail = logsumexp(joint + far, axis=1) - total
    return np.asarray(log_tail), np.asarray(total - logsumexp(joint + pair, axis=1))


def _checked_number(k: object) -> int:
    if isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1, got {k!r}")
    return int(k)


def _listed(array: AnyArray) -> list[list[object]]:
    values = array.astype(object)
    values[values != values] = None  # NaN
    return [list(row) for row in values]
