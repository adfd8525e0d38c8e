"""TableConditional: the law of the missing entries of rows under a mixture of a table, with categories in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.statistics import Array
from headwater.core.values import AnyArray, RandomState, Rows
from headwater.estimators.column_kinds import BERNOULLI
from headwater.estimators.column_place import find_column
from headwater.estimators.conditional import Conditional
from headwater.estimators.table_schema import TableSchema

if TYPE_CHECKING:
    from headwater.estimators.table_mixture import TableMixture


class TableConditional:
    """The law of the missing entries of each row of a table, given its observed ones.

    `MixedMixture.condition` and `CategoricalMixture.condition` make one. Tables that it returns are arrays of objects, with
    categories and booleans as they are, or of numbers if all columns are; columns that the model leaves out are NaN there.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    missing : ndarray of shape (n_samples, n_features)
        Which entries are missing.
    weights : ndarray of shape (n_samples, n_components)
        Probability of each component, given what is observed of the row.
    log_marginal : ndarray of shape (n_samples,)
        Log-density of what is observed of each row; 0 if nothing is.
    mean : ndarray of shape (n_samples, n_features)
        The mean of each missing number and count, the probability of yes of a flag, and the most probable category; observed
        entries as they are.
    variance : ndarray of shape (n_samples, n_features)
        Variance of each missing entry, 0 where one is observed. That of a category is the sum of the variances of the
        indicators of its categories: 0 if one is certain.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> young = rng.random(2000) < 0.4
    >>> age = np.where(young, rng.normal(25, 4, 2000), rng.normal(60, 6, 2000))
    >>> pays = np.where(rng.random(2000) < np.where(young, 0.9, 0.2), "card", "cash")
    >>> model = hw.MixedMixture(2, random_state=0).fit(pd.DataFrame({"age": age, "pays": pays}))
    >>> law = model.condition(pd.DataFrame({"age": [25.0, None], "pays": [None, "cash"]}))
    >>> law.mean[0, 1], float(round(law.mean[1, 0] / 10))
    ('card', 6.0)
    >>> law = model.condition(pd.DataFrame({"age": [25.0], "pays": [None]}))
    >>> law.categories("pays").tolist(), law.probabilities("pays").round(1).tolist()
    (['cash', 'card'], [[0.1, 0.9]])
    """

    def __init__(self, law: Conditional, schema: TableSchema, columns: Sequence[str], model: TableMixture) -> None:
        self._law, self._schema, self._model = law, schema, model
        self.columns = tuple(map(str, columns))
        self.missing, self.weights, self.log_marginal, self.variance = law.missing, law.weights, law.log_marginal, law.variance

    def __len__(self) -> int:
        return len(self._law)

    def __repr__(self) -> str:
        return repr(self._law).replace("Conditional", "TableConditional", 1)

    @property
    def mean(self) -> AnyArray:
        """Means, probabilities of yes, and most probable categories; observed entries as they are."""
        found = self._schema.table(self._law.mean)
        for place, kind in enumerate(self._schema.kinds):
            if kind == BERNOULLI:
                found[:, place] = self._law.mean[:, place]
        return found

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the central interval of each missing number, count and flag; NaN for categories, which have no order.

        Parameters
        ----------
        level : float, default=0.9
            Probability that each interval holds, at least, of counts and flags.

        Returns
        -------
        low, high : ndarray of shape (n_samples, n_features)
            Ends of the intervals; both are the value itself where a number is observed.
        """
        low, high = self._law.interval(level)
        for place in self._schema.codebook.columns:
            low[:, place] = high[:, place] = np.nan
        return low, high

    def categories(self, column: str | int) -> AnyArray:
        """Return the categories of a column, in the order of `probabilities`; False and True of a flag.

        Parameters
        ----------
        column : str or int
            Name or place of the column.

        Returns
        -------
        categories : ndarray of shape (n_categories,)
            The categories.
        """
        place = find_column(column, len(self.columns), np.array(self.columns, dtype=object))
        levels = self._schema.levels_of(place)
        if levels is not None:
            return levels.as_array()
        if self._schema.kinds[place] != BERNOULLI:
            raise ValueError(f"column {self.columns[place]!r} is {self._schema.kinds[place]!r} and has no categories")
        return np.array([False, True])

    def probabilities(self, column: str | int) -> Array:
        """Return the probability of each category of a column that is missing in every row.

        Parameters
        ----------
        column : str or int
            Name or place of the column.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_categories)
            They sum to one in each row: the category is one of those that were seen.
        """
        place = find_column(column, len(self.columns), np.array(self.columns, dtype=object))
        return self._law.probabilities(place, np.arange(len(self.categories(place)), dtype=float))

    def mode(self) -> AnyArray:
        """Return the most probable values of the missing entries of each row, all of them together.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows without gaps.
        """
        return self._schema.table(self._law.mode())

    def sample(self, size: int = 1, random_state: RandomState = None) -> AnyArray:
        """Draw the missing entries of each row, all of them together.

        Parameters
        ----------
        size : int, default=1
            Number of draws for each row.
        random_state : int, RandomState, Generator or None
            What is random of it. Draws of a row do not depend on the rows after it.

        Returns
        -------
        X : ndarray of shape (size, n_samples, n_features)
            Rows without gaps.
        """
        return np.stack([self._schema.table(rows) for rows in self._law.sample(size, random_state)])

    def log_density(self, of: Rows) -> Array:
        """Return the log-density of values in place of the missing ones, given the observed columns.

        Parameters
        ----------
        of : array-like or table of shape (n_samples, n_features)
            The values. Only those of missing entries are looked at.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log-density in nats, where categories, flags and counts have probabilities; 0 for rows that lack nothing.
        """
        rows = self._model._gap_rows(of)[0]
        if rows.shape == self.missing.shape and np.isnan(rows[self.missing]).any():
            raise ValueError("of must have a value for every missing entry, got a gap")
        return self._law.log_density(np.where(self.missing, rows, 0.0) if rows.shape == self.missing.shape else rows)
