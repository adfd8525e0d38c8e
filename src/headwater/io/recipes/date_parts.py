"""Dates and times as numbers: hour and weekday as angles, so that midnight lies beside midnight, and the day of the year."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.io.read_errors import StreamError

if TYPE_CHECKING:
    import pyarrow as pa

WEEK = ("weekday_sin", "weekday_cos", "day_of_year")
CLOCK = ("hour_sin", "hour_cos")
KINDS = {"time": (*CLOCK, *WEEK), "utc": (*CLOCK, *WEEK), "day": WEEK}  # times with a zone are read in UTC; days have no hour
SECONDS_OF_DAY = 86400


def kind_of_dates(kind: pa.DataType) -> str | None:
    """Return which parts a type of Arrow has; None if it holds no dates."""
    from pyarrow import types

    if types.is_date(kind):
        return "day"
    if not types.is_timestamp(kind):
        return None
    return "utc" if kind.tz is not None else "time"


def type_of_dates(kind: str) -> pa.DataType:
    """Return how to read a column of such dates from a file that has no types of its own."""
    import pyarrow as pa

    return pa.timestamp("us", tz="UTC" if kind == "utc" else None)


def to_parts(column: pa.Array, kind: str, place: str) -> NDArray[np.float64]:
    """Return the parts (n, 5), or (n, 3) of days, of a column of dates; NaN where there is none."""
    import pyarrow as pa

    types = pa.types
    if not (types.is_date(column.type) or types.is_timestamp(column.type) or types.is_null(column.type)):
        raise StreamError(f"{place} holds {column.type}, where dates were before")
    naive = pa.timestamp("us")
    column = column.cast(pa.timestamp("us", tz=column.type.tz) if types.is_timestamp(column.type) else naive, safe=False)
    gone = column.is_null().to_numpy(zero_copy_only=False)
    moments = column.cast(naive).fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False).astype("datetime64[us]")
    days = moments.astype("datetime64[D]")
    hours = (moments - days) / np.timedelta64(SECONDS_OF_DAY, "s")
    weekdays = (days.astype(np.int64) + 3) % 7 / 7.0  # 1970 began on a Thursday
    of_year = (days - moments.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.float64) + 1.0
    turns = (weekdays,) if kind == "day" else (hours, weekdays)
    parts = [wave(2.0 * np.pi * turn) for turn in turns for wave in (np.sin, np.cos)]
    found = np.column_stack([*parts, of_year])
    found[gone] = np.nan
    return found
