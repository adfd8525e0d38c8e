"""The place of a column that is named, or counted."""

from __future__ import annotations

import numbers

from headwater.core.validation import one_line
from headwater.core.values import AnyArray


def find_column(column: object, width: int, names: AnyArray | None) -> int:
    """Return the place of a column that is named, or counted from either end; refuse one that is not there."""
    if isinstance(column, str):
        if names is None:
            raise ValueError(f"column must be a number from 0 to {width - 1}, since this model knows no names, got {column!r}")
        if column not in list(names):
            known = ", ".join(map(str, names[:10])) + (" ..." if len(names) > 10 else "")
            raise ValueError(f"column must be one of those that the model learned ({known}), got {column!r}")
        return list(names).index(column)
    if isinstance(column, bool) or not isinstance(column, numbers.Integral):
        raise TypeError(f"column must be the name of a column or its place, got {one_line(column, 60)}")
    if not -width <= int(column) < width:
        raise ValueError(f"column must lie between {-width} and {width - 1}, got {column}")
    return int(column) % width
