"""ReasonTable: columns of equal length with names, shown as a table in terminals and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headwater.core.values import AnyArray
from headwater.diagnostics.display import html_table, text_table

MOST_LINES = 20  # of a table that are shown


@dataclass(frozen=True)
class ReasonTable:
    """A table of reasons: `table["tail"]` is a column, `table.to_dict()` all of them, as `pandas.DataFrame` takes them.

    Parameters
    ----------
    title : str
        What the lines are.
    columns : mapping of str to ndarray
        Columns of equal length.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> table = hw.ReasonTable("far off", {"row": np.array([3, 7]), "tail": np.array([0.01, 0.02])})
    >>> table["row"].tolist()
    [3, 7]
    """

    title: str
    columns: Mapping[str, AnyArray]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> AnyArray:
        if name not in self.columns:
            raise KeyError(f"no column {name!r}: there are {', '.join(map(repr, self.columns))}")
        return self.columns[name]

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.columns)

    def to_dict(self) -> dict[str, list[object]]:
        """Return the columns as lists, which JSON can hold."""
        return {name: values.tolist() for name, values in self.columns.items()}

    def __str__(self) -> str:
        return text_table(*self._parts())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._parts())

    def _parts(self) -> tuple[str, list[str], list[list[str]], tuple[str, ...], str]:
        shown = [[_text(value) for value in values[:MOST_LINES]] for values in self.columns.values()]
        more = len(self) - MOST_LINES
        rows = [list(line) for line in zip(*shown, strict=True)]
        return self.title, self.keys(), rows, (), f"and {more:,} more" if more > 0 else ""


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
