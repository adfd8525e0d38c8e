"""What the columns of a table are: as the user says, or by what the first chunk holds."""

from __future__ import annotations

import numbers
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa

from headwater.core.statistics import Array
from headwater.estimators.codebook import as_arrow
from headwater.estimators.row_numbers import LEAST_ROWS, numbers_rows, rises
from headwater.io.read_errors import column_phrase, quote_names

GAUSSIAN, POISSON, BERNOULLI, CATEGORICAL, IGNORED = "gaussian", "poisson", "bernoulli", "categorical", "ignore"
LOGNORMAL, GAMMA = "lognormal", "gamma"
ZERO_LOGNORMAL, ZERO_GAMMA, ZERO_POISSON = "zero-inflated-lognormal", "zero-inflated-gamma", "zero-inflated-poisson"
SKEWED = (LOGNORMAL, GAMMA, ZERO_LOGNORMAL, ZERO_GAMMA, ZERO_POISSON)
KINDS = (GAUSSIAN, CATEGORICAL, BERNOULLI, POISSON, *SKEWED, IGNORED)
COUNTS = (POISSON, ZERO_POISSON)
AMOUNTS = (ZERO_LOGNORMAL, ZERO_GAMMA)

HOLDS_DATES = "it holds dates"
ID_SHARE = 0.8  # distinct values among the rows of such a column


def choose_kinds(columns: Sequence[object], names: Sequence[str], given: object, capacity: int) -> tuple[str, ...]:
    """Return the kind of each column; columns that are left out automatically are named by a warning."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"columns must have different names, got {twice!r} twice")
    chosen = _given_kinds(given, names)
    kinds, left_out = [], defaultdict[tuple[str, bool | None], list[str]](list)
    for column, name in zip(columns, names, strict=True):
        if name in chosen:
            kinds.append(chosen[name])
            continue
        values = as_arrow(column, repr(name))
        kind, reason = _guess(values, capacity)
        if kind == IGNORED:
            left_out[reason, _holds_words(values.type)].append(name)
        kinds.append(kind)
    for (reason, words), some in left_out.items():
        warnings.warn(_left_out(some, reason, words), UserWarning, stacklevel=2)
    if not kinds:
        raise ValueError("X has 0 feature(s), and a minimum of 1 is required")
    if all(kind == IGNORED for kind in kinds):
        raise ValueError(f"no column is left to learn from, of {quote_names(names)}")
    return tuple(kinds)


def _left_out(names: list[str], reason: str, words: bool | None) -> str:
    """Say why columns are left out, in one sentence for all that have the same reason, and what includes them.

    `words` says whether they hold words; None, that they hold neither words nor numbers.
    """
    first = "it" if len(names) == 1 else "the first"
    mend = f"columns={{{names[0]!r}: {CATEGORICAL if words else GAUSSIAN!r}}} includes {first}"
    if words is None:
        mend = "numbers, text and booleans are learned"
    if reason == HOLDS_DATES:
        mend = "read with dates='parts', hour, weekday and day of the year are learned"
    if len(names) == 1:
        return f"{column_phrase(names)} is left out, since {reason}; {mend}"
    return f"{column_phrase(names)} are left out, since {reason.replace('it ', 'each ', 1)}; {mend}"


def _given_kinds(given: object, names: Sequence[str]) -> dict[str, str]:
    if isinstance(given, str) and given == "auto":
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"columns must be 'auto' or a mapping from columns to kinds, got {given!r}")
    chosen: dict[str, str] = {}
    for column, kind in given.items():
        whole = isinstance(column, numbers.Integral) and not isinstance(column, bool)
        name = names[column] if whole and 0 <= column < len(names) else str(column) if whole else column
        if name not in names:
            raise ValueError(f"columns names {column!r}, which the data does not have: it has {', '.join(names[:20])}")
        if kind not in KINDS:
            raise ValueError(f"the kind of column {column!r} must be one of {', '.join(KINDS)}, got {kind!r}")
        if chosen.setdefault(name, kind) != kind:
            raise ValueError(f"columns says that {name!r} is {chosen[name]!r} and {kind!r}: name it once")
    return chosen


def _guess(column: pa.Array, capacity: int) -> tuple[str, str]:
    """The kind of a column that the user did not name, and why it is left out, if it is."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    values = column.drop_null()
    if not len(values):
        return IGNORED, "the first rows have no value there"
    if pa.types.is_boolean(kind):
        return BERNOULLI, ""
    words = _holds_words(column.type)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or (words and _is_date(values[0]) and _is_date(values[-1])):
        return IGNORED, HOLDS_DATES
    if words is None:
        return IGNORED, f"it holds {kind}"
    distinct = len(values.unique())
    if words:
        if distinct > capacity or (len(values) >= LEAST_ROWS and distinct > ID_SHARE * len(values)):
            return IGNORED, f"it has {distinct} different values in {len(values)} rows, as ids and free text do"
        return CATEGORICAL, ""
    if distinct == 1 and len(values) > 1:
        return IGNORED, "the first rows have one value there"
    found = _numbers_of(values, kind)
    if numbers_rows(found):
        return IGNORED, "it numbers the rows"
    if rises(found):
        return IGNORED, "it holds whole numbers that only rise, as ids and times do"
    return GAUSSIAN, ""


def _numbers_of(values: pa.Array, kind: pa.DataType) -> Array:
    """The numbers of a column; whole ones less the smallest, so that long ids differ as floats, too."""
    if not pa.types.is_integer(kind):
        return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    whole = values.to_numpy(zero_copy_only=False)
    return np.asarray((whole.astype(np.uint64) - whole.min().astype(np.uint64)).astype(np.float64))  # exact modulo 2^64


def _is_date(value: pa.Scalar) -> bool:
    """Whether a text is a date, or a date and a time, as ISO 8601 writes them."""
    try:
        datetime.fromisoformat(str(value))
    except ValueError:
        return False
    return not str(value).isdecimal()


def _holds_words(kind: pa.DataType) -> bool | None:
    """Whether a type is one of words; not if it is one of numbers; None if it is neither."""
    if (
        pa.types.is_dictionary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    ):
        return True
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return False if numeric or pa.types.is_null(kind) else None
