"""TableMixture: mixtures that learn from tables as they are: columns of text, categories, flags and numbers, with gaps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from headwater.core.batch import Batch
from headwater.core.learner import Learner
from headwater.core.statistics import Array, Params, Prior, Stats
from headwater.core.validation import check_weights
from headwater.core.values import Matrix, Row, Rows, Values
from headwater.diagnostics.block_intervals import block_intervals
from headwater.diagnostics.component_intervals import ComponentIntervals, component_intervals
from headwater.estimators.calls import reads
from headwater.estimators.codebook import Codebook, first_rows
from headwater.estimators.column_kinds import BERNOULLI, CATEGORICAL, IGNORED
from headwater.estimators.column_mixture import check_level
from headwater.estimators.describers.table_mixture import TableMixtureDescriber
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.gap_answers import GapAnswers
from headwater.estimators.table_input import TableInput
from headwater.estimators.table_schema import (
    EncodedChunk,
    TableSchema,
    one_row_columns,
)
from headwater.estimators.traits import Taken
from headwater.families.category_tables import CategoryParameters
from headwater.families.family import Family

NO_VALUES = "X must have at least one row with a value, got missing values only"


# Family, prior and totals of a block of columns.
BeliefBlock: TypeAlias = tuple[Family[Prior, Stats, Params], Prior, Stats]


class TableMixture(TableInput, GapAnswers, FamilyMixture):
    """Base of the mixtures of tables. A row is held as numbers: codes of categories, and NaN for gaps. Abstract."""

    _traits = replace(FamilyMixture._traits, takes_tables=True)

    @property
    def _describer(self) -> TableMixtureDescriber:
        return TableMixtureDescriber(self)

    # Tables as rows

    def _learn_one(self, x: Row) -> Self:
        names = getattr(self, "feature_names_in_", None)
        self._learn_chunk(self._encode(*one_row_columns(x, names), learning=True))
        return self

    def _learn_chunk(self, X: Rows, sample_weight: Values = None, labels: Values = None, scored: bool = False) -> Array:
        """Learn a chunk in pieces: each begins with a row that has a new category, so that chunks change no answer."""
        before = self._schema.codebook.sizes if self._has_state() else ()
        chunk = self._as_rows(X, learning=True)
        assert isinstance(chunk, EncodedChunk)
        schema, rows = self._schema, np.asarray(chunk.X)
        empty = _find_empty(rows)
        if empty.any() and _has_length(sample_weight, len(rows)) and _has_length(labels, len(rows)):
            if empty.all() and not self._has_state():
                raise ValueError(NO_VALUES)
            scores = np.zeros(len(rows) if scored else 0)
            if not empty.all():
                told = replace(chunk, X=rows[~empty])
                found = self._learn_pieces(told, before, schema, _cut(sample_weight, ~empty), _cut(labels, ~empty), scored)
                scores[~empty if scored else slice(0)] = found
            return scores
        return self._learn_pieces(chunk, before, schema, sample_weight, labels, scored)

    def _learn_pieces(
        self,
        chunk: EncodedChunk,
        before: Sequence[int],
        schema: TableSchema,
        sample_weight: Values,
        labels: Values,
        scored: bool,
    ) -> Array:
        rows = np.asarray(chunk.X)
        places = list(schema.codebook.columns)
        starts = first_rows(before or (0,) * len(places), list(rows[:, places].T))
        edges = sorted({0, *starts.tolist(), len(rows)})
        if len(edges) == 2:
            return super()._learn_chunk(chunk, sample_weight, labels, scored)
        check_weights(sample_weight, len(rows))
        scores = []
        for start, stop in pairwise(edges):
            sizes = np.fmax(np.nanmax(rows[:stop, places], axis=0, initial=-1.0) + 1.0, before or 0.0)
            self._schema = schema.cut(sizes.astype(int).tolist())
            piece = slice(start, stop)
            weights, names = _cut(sample_weight, piece), _cut(labels, piece)
            scores.append(super()._learn_chunk(replace(chunk, X=rows[piece]), weights, names, scored))
        return np.concatenate(scores)

    def _take(
        self, X: Taken, sample_weight: Values, labels: Values, reset: bool, going_on: bool | None = None
    ) -> tuple[Batch, Learner]:
        """Return the rows that have a value, and the learner."""
        batch, learner = super()._take(X, sample_weight, labels, reset, going_on)
        empty = _find_empty(batch.X)
        if reset and len(empty) and empty.all():
            raise ValueError(NO_VALUES)
        return (batch[~empty] if empty.any() else batch), learner

    @reads
    def sample(self, n_samples: int = 1) -> tuple[Matrix, NDArray[np.int64]]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, sorted by component: numbers, categories and booleans as objects, or an array of numbers if all are.
            Columns that were left out are NaN.
        y : ndarray of shape (n_samples,)
            The component of each row.
        """
        rows, components = super().sample(n_samples)
        return self._decoded(rows), components

    # Rows with gaps

    def _gap_rows(self, X: Rows) -> tuple[Array, NDArray[np.bool_]]:
        rows = np.array(self._rows(X).X)
        return rows, np.isnan(rows) & self._schema.has_law

    @property
    def _words(self) -> TableSchema:
        return self._schema

    def _to_predict(self, column: str | int, kind: str) -> Self:
        """Return a model that has learned nothing, of tables in which a column is of this kind."""
        return clone(self)

    # Descriptions

    @reads
    def credible_intervals(self, level: float = 0.9) -> ComponentIntervals:
        """Return central credible intervals of weights, means, rates and probabilities, one by one.

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval.

        Returns
        -------
        intervals : ComponentIntervals
            `weights` (K, 2), and `values` (K, n_values, 2) of what `columns` names: the mean of a number, the rate of a count,
            the probability of a flag, and that of each category (`pays=card`). Printed, they are a table.
        """
        level = check_level(level)
        prior, statistics, count = self._proper_belief()
        part = self._component_part
        found = self._belief_blocks(part(prior.components), part(statistics).scaled(count))
        ends = [block_intervals(family, one, totals, level) for family, one, totals in found]
        named = self._block_value_names()
        kept = [(names, part) for names, part in zip(named, ends, strict=True) if part is not None]
        names = [name for part, _ in kept for name in part]
        values = np.concatenate([part for _, part in kept], axis=1) if kept else np.empty((self.n_components_, 0, 2))
        return component_intervals(level, self.weight_concentration_, values, "values", names)

    @abstractmethod
    def _belief_blocks(self, prior: Any, totals: Any) -> list[BeliefBlock]:
        """Return family, prior and totals of each block of columns."""

    @abstractmethod
    def _block_value_names(self) -> list[list[str]]:
        """Return the names of the numbers that each block of columns has."""

    def _category_names(self, names: Sequence[str]) -> list[str]:
        levels = zip(names, self._schema.codebook.levels, strict=True)
        return [f"{name}={value}" for name, one in levels for value in one.as_array()]

    @abstractmethod
    def _indicators(self) -> list[tuple[str, Array, Array]]:
        """Return the moments of components: a name, and mean and variance (K,) of a number, a count or an indicator."""

    def _share_names(self) -> frozenset[str]:
        """Names of the moments that are probabilities of categories or flags."""
        kinds = zip(self._column_names, self._schema.kinds, strict=True)
        flags = (name for name, kind in kinds if kind == BERNOULLI)
        places = self._schema.codebook.columns
        return frozenset((*flags, *self._category_names([self._column_names[at] for at in places])))

    def _moments(self) -> tuple[Array, Array]:
        found = self._indicators()
        return np.column_stack([one[1] for one in found]), np.column_stack([one[2] for one in found])

    def _moment_names(self) -> list[str]:
        return [one[0] for one in self._indicators()]

    def _n_class_columns(self) -> int | None:
        kinds = [kind for kind in self._schema.kinds if kind != IGNORED]
        return len(kinds) if set(kinds) <= {CATEGORICAL, BERNOULLI} else None


def _find_empty(rows: Array) -> NDArray[np.bool_]:
    """Which rows have no value; a column that has all of its values spares a look at each row."""
    if any(not np.isnan(column).any() for column in rows.T):
        return np.zeros(len(rows), dtype=np.bool_)
    return np.asarray(np.isnan(rows).all(axis=1))


def _has_length(values: Values, rows: int) -> bool:
    """Whether there is a number for every row, or one for all of them."""
    return np.ndim(np.asarray(values)) == 0 or len(np.asarray(values)) == rows


def _cut(values: Values, rows: slice | NDArray[np.bool_]) -> Values:
    """Some of the numbers beside rows; a number for all of them as it is."""
    array = np.asarray(values)
    return array[rows] if array.ndim else values


def indicators(names: Sequence[str], shares: Sequence[Array]) -> list[tuple[str, Array, Array]]:
    """Return columns that are 1 with these probabilities (K,), and 0 otherwise."""
    return [(name, share, share * (1.0 - share)) for name, share in zip(names, shares, strict=True)]


def category_indicators(names: Sequence[str], book: Codebook, parameters: CategoryParameters) -> list[tuple[str, Array, Array]]:
    """Return an indicator for each category of each column."""
    found = []
    for at, (name, levels) in enumerate(zip(names, book.levels, strict=True)):
        shares = np.exp(parameters.logs[:, at, : len(levels)])
        found += indicators([f"{name}={value}" for value in levels.as_array()], list(shares.T))
    return found
