"""TableForecast: the law of the next rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headwater.core.statistics import Array
from headwater.core.values import AnyArray, Values
from headwater.estimators.forecast import Forecast, Seed
from headwater.estimators.table_schema import TableColumns, TableSchema, split_table
from headwater.models.forecasting import RowForecast, StateForecast


class TableForecast(Forecast):
    """The law of the next rows of a table, step by step; `forecast` of a `MixedHMM` makes one.

    Attributes
    ----------
    probabilities : dict of ndarray of shape (steps, n_categories)
        Of each categorical column the probability of each category at each step. In `mean` such a column has the place of its
        most probable category in `categories`, and its quantiles are NaN.
    categories : dict of ndarray
        The categories of each categorical column.

    Examples
    --------
    >>> import headwater as hw
    >>> rows = [[0.1, "off"], [0.2, "off"], [7.1, "on"], [7.3, "on"]] * 60
    >>> ahead = hw.MixedHMM(2, random_state=0).fit(rows).forecast(2)
    >>> ahead.categories["x1"].tolist()
    ['off', 'on']
    >>> ahead.to_dict()["x1"].shape
    (2,)
    """

    def __init__(
        self,
        states: StateForecast,
        rows: RowForecast,
        names: Sequence[str],
        seed: Seed,
        schema: TableSchema,
        probabilities: Mapping[str, Array],
    ) -> None:
        super().__init__(states, rows, names, seed)
        self._places = np.flatnonzero(schema.has_law)
        self._schema = schema
        by_place = dict(zip(schema.codebook.columns, schema.codebook.levels, strict=True))
        known = [by_place.get(int(place)) for place in self._places]
        self.categories = {
            name: levels.as_array() for name, levels in zip(self.names, known, strict=True) if levels is not None
        }
        self.probabilities = {name: shares for name, shares in probabilities.items() if name in self.categories}

    def _table(self, rows: Array) -> AnyArray:
        """Return rows of the columns that are forecast as a table of words and numbers."""
        whole = np.full((len(rows), len(self._schema.kinds)), np.nan)
        whole[:, self._places] = rows
        return self._schema.table(whole)[:, self._places]

    def log_density(self, rows: Values) -> Array:
        """Return the log-density of the rows that came, each by itself: the log-score of the forecast.

        Parameters
        ----------
        rows : array-like of shape (steps, n_features)
            The rows, with words where the table has words.

        Returns
        -------
        log_density : ndarray of shape (steps,)
            Log-density of each row at its step.
        """
        columns = split_table(rows, "forecast")[1]
        size = len(TableColumns(None, columns))
        if (size, len(columns)) != (len(self), len(self.names)):
            raise ValueError(f"rows must have shape {(len(self), len(self.names))}, got {(size, len(columns))}")
        whole: list[object] = [np.full(len(self), np.nan)] * len(self._schema.kinds)
        shown = [f"x{at}" for at in range(len(whole))]
        for place, name, column in zip(self._places, self.names, columns, strict=True):
            whole[place], shown[place] = column, name
        codes = self._schema.encode(whole, shown, 2**31, learning=False)[1]
        return self._rows.log_density(self._states, codes[:, self._places])

    def _shown(self, paths: Array) -> AnyArray:
        return np.stack([self._table(path) for path in paths])

    def to_dict(self, level: float = 0.9) -> dict[str, AnyArray]:
        """Return the forecast as columns of a table.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the intervals.

        Returns
        -------
        columns : dict of ndarray of shape (steps,)
            `step`; of each number its mean, called as the column, `_low` and `_high`; of each categorical column the most
            probable category and the probability `column=category` of each; and `state_0` etc., probabilities.
        """
        columns = super().to_dict(level)
        found: dict[str, AnyArray] = {}
        for name, values in columns.items():
            if name in self.categories:
                found[name] = self.categories[name][values.astype(np.int64)]
                shares = zip(self.categories[name], self.probabilities[name].T, strict=True)
                found |= {f"{name}={word}": column for word, column in shares}
            elif name.rpartition("_")[0] not in self.categories or name.rpartition("_")[2] not in ("low", "high"):
                found[name] = values
        return found
