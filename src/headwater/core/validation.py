"""Checks of rows, targets, weights and labels. A refusal is one sentence with the argument, the value and what is wanted."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from headwater.core.batch import NARROW, NO_LABELS, NO_WEIGHTS, Batch
from headwater.core.chunk import Chunk, values_of
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import HEAVIEST, LARGEST, LIGHTEST, Array
from headwater.core.values import AnyArray, Matrix, Row, Rows, Values


def check_rows(X: Rows, name: str = "X", owner: str = "this model", gaps: bool = False, narrow: bool = False) -> Matrix:
    """Return X as a C-ordered float64 matrix of finite rows; the array itself if it already is one.

    With `gaps`, a value that is NaN, None or NA is missing, and the result is GappedRows if there is one. With `narrow`, rows
    of float32, float16, int8 and uint8 are not converted, unless they have gaps.
    """
    X = values_of(X) if isinstance(X, Chunk) else X
    if issparse(X):
        raise TypeError(f"{name} is a sparse matrix, but {owner} needs dense rows: pass {name}.toarray()")
    array = numeric(X, name, gaps)
    check_shape(array, name)
    kept = narrow and array.dtype.char in NARROW
    rows = np.ascontiguousarray(array, dtype=array.dtype if kept else np.float64)
    if kept and (rows.dtype.kind in "iu" or np.isfinite(rows).all()):  # none is out of range
        return rows
    rows = rows.astype(np.float64) if kept else rows
    if gaps:
        return rows if is_in_range(rows) else to_gapped(rows, name)
    check_finite(rows, name)
    return rows


def to_gapped(rows: Array, name: str) -> Array | GappedRows:
    """Return rows in which NaN is a gap; infinite and too large values are refused."""
    found = GappedRows.of(rows)
    if not (np.fmin.reduce(rows, axis=None) >= -LARGEST and np.fmax.reduce(rows, axis=None) <= LARGEST):  # they ignore NaN
        check_finite(found.filled(0.0), name)
    return found if found.missing.any() else rows


def check_shape(array: AnyArray, name: str) -> None:
    """Refuse what is not a matrix of at least one row and one column."""
    if array.ndim == 1 or array.ndim == 0:
        raise ValueError(
            f"{name} must have two dimensions (rows, columns), got shape {array.shape}. Reshape your data: "
            f"{name}.reshape(-1, 1) if it has a single column, {name}.reshape(1, -1) if it is a single row"
        )
    if array.ndim > 2:
        raise ValueError(f"{name} must have two dimensions (rows, columns), got {array.ndim}")
    if array.shape[1] == 0:
        raise ValueError(f"{name} has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    if array.shape[0] == 0:
        raise ValueError(f"{name} has 0 sample(s) (shape={array.shape}) while a minimum of 1 is required.")


def check_target(y: Values, rows: int, owner: str, gaps: bool = False) -> Array:
    """Return one finite number per row, or NaN where it is missing, if there may be `gaps`."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None")
    target = numeric(y, "y", gaps)
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim != 1:
        raise ValueError(f"y should be a 1d array, one target per row: got an array of shape {target.shape}")
    if len(target) != rows:
        raise ValueError(f"y must have one target per row of X, got {len(target)} targets for {rows} rows")
    target = np.ascontiguousarray(target, dtype=np.float64)
    check_finite(np.where(np.isnan(target), 0.0, target) if gaps else target, "y")
    return target


def check_width(rows: Matrix, width: int, owner: str) -> None:
    """Refuse rows of another width."""
    if rows.shape[1] != width:
        raise ValueError(f"X has {rows.shape[1]} features, but {owner} is expecting {width} features as input")


def check_names(columns: Sequence[str], known: Sequence[str] | None, owner: str) -> None:
    """Refuse columns of other names than those known, if they are, or in another order."""
    if known is None or list(columns) == list(known):
        return
    others = [name for name in columns if name not in set(known)]
    lacking = [name for name in known if name not in set(columns)]
    if not others and not lacking:
        raise ValueError(f"the columns must be in the order in which {owner} learned them: {', '.join(known)}")
    found = " and ".join(
        f"{what} {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}"
        for what, names in (("unknown ones:", others), ("without", lacking))
        if names
    )
    raise ValueError(f"the columns must be those that {owner} learned from, got {found}")


def check_weights(sample_weight: Values, rows: int) -> Array:
    """Return one non-negative weight per row, or no weights."""
    if sample_weight is None:
        return NO_WEIGHTS
    if isinstance(sample_weight, numbers.Real):
        weights = np.full(rows, float(numeric(sample_weight, "sample_weight")))
    else:
        weights = np.ascontiguousarray(numeric(sample_weight, "sample_weight"), dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must be 1D, one number per row: got an array of shape {weights.shape}")
    if len(weights) != rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(rows,)}: one weight per row of X")
    check_finite(weights, "sample_weight")
    if np.any(weights < 0.0):
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}")
    if weights.max() > HEAVIEST:
        raise ValueError(f"sample_weight must not be more than {HEAVIEST:g}, got {weights.max():g}: scale the weights down")
    light = (weights > 0.0) & (weights < LIGHTEST)
    if light.any():
        raise ValueError(
            f"sample_weight must be 0 or at least {LIGHTEST:g}, got {weights[light].min():g}: scale the weights up"
        )
    if not np.any(weights > 0.0):
        raise ValueError("sample_weight must be positive for at least one row, got zeros only")
    return weights


def check_labels(labels: Values, rows: int, n_components: int) -> NDArray[np.int64]:
    """Return one component index per row, -1 where it is unknown, or no labels."""
    if labels is None:
        return NO_LABELS
    array = numeric(labels, "labels")
    if array.shape != (rows,):
        raise ValueError(f"labels must have shape {(rows,)}, one per row of X, got {array.shape}")
    whole = array.astype(np.float64)
    check_finite(whole, "labels")
    if np.any(whole != np.round(whole)):
        raise ValueError("labels must be whole numbers: the index of a component, or -1 for a row without label")
    if whole.min() < -1 or whole.max() >= n_components:
        wrong = whole.min() if whole.min() < -1 else whole.max()
        raise ValueError(f"labels must lie between -1 (not labelled) and {n_components - 1} (n_components - 1), got {wrong:g}")
    return np.ascontiguousarray(whole, dtype=np.int64)


def make_batch(rows: Matrix, weights: Array, labels: NDArray[np.int64]) -> Batch:
    """Return a batch without the rows of weight 0."""
    if weights.size and np.any(weights == 0.0):
        return Batch(rows, weights, labels)[weights > 0.0]
    return Batch(rows, weights, labels)


def check_row(x: Row, names: Sequence[str] | None, width: int | None, gaps: bool = False) -> Matrix:
    """Return one row, an array or a mapping from column names to values, as a matrix with one row; it may have `gaps`."""
    values = row_values(x, names, width)
    plain = type(values) is np.ndarray and values.dtype == np.float64
    row = values if plain else np.asarray(numeric(values, "the row", gaps), dtype=np.float64)
    check_row_shape(row, width)
    row = np.ascontiguousarray(row).reshape(1, -1)
    if is_in_range(row):
        return row
    if gaps:
        return to_gapped(row, "the row")
    check_finite(row, "the row")
    return row


def row_values(x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
    """Return the values of a row in the order of the columns, if it is a mapping."""
    if isinstance(x, Mapping):
        if names is None and (width is not None or not all(isinstance(name, str) for name in x)):
            raise ValueError(f"the row must be an array, since this model knows no names of columns, got {list(x)}")
        order = list(x) if names is None else list(names)
        if len(x) != len(order) or any(name not in x for name in order):
            raise ValueError(f"the row must have exactly the columns {order}, got {list(x)}")
        return [x[name] for name in order]
    return x


def check_row_shape(row: AnyArray, width: int | None) -> None:
    """Refuse what is not one row of this width."""
    if row.ndim != 1 or row.size == 0:
        raise ValueError(f"the row must have one dimension and at least one value, got shape {row.shape}")
    if width is not None and row.size != width:
        raise ValueError(f"the row has {row.size} features, but this model is expecting {width} features as input")


def n_dimensions(values: Values) -> int:
    """Return the number of dimensions of numbers that are not checked yet."""
    given: Matrix = values
    return int(np.ndim(given))


def refuse_unreadable(values: Values, name: str, gaps: bool = False) -> None:
    """Refuse inputs that would lose information as an array: masked arrays, lazy frames, columns with equal names."""
    if not gaps and isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        number = int(np.ma.count_masked(values))
        raise ValueError(
            f"{name} is a masked array with {number} masked value{'s' * (number != 1)}, which would be taken for data: drop "
            f"them, or fill them in with filled()"
        )
    kind = type(values)
    if kind.__name__ == "LazyFrame" and kind.__module__.startswith("polars"):
        raise TypeError(f"{name} is a polars LazyFrame, which holds no rows yet: pass {name}.collect()")
    columns = getattr(values, "columns", None)
    if columns is not None and hasattr(values, "to_numpy"):
        names = list(columns)
        twice = [column for column in dict.fromkeys(names) if names.count(column) > 1] if len(set(names)) < len(names) else []
        if twice:
            raise ValueError(
                f"{name} must have columns of different names, got {one_line(twice[0])} {names.count(twice[0])} times"
            )


def numeric(values: Values, name: str, gaps: bool = False) -> AnyArray:
    """Return an array of real numbers, converting objects that are numbers and refusing text; NaN where there are `gaps`."""
    refuse_unreadable(values, name, gaps)
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} cannot be read as an array of numbers: {error}") from error
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers, got {array.dtype}")
    if array.dtype.kind in "USMm":
        raise ValueError(f"{name} must hold numbers, got {array.dtype}: encode text and dates as numbers first")
    if array.dtype.kind not in "fiub":
        try:
            array = (_fill_gaps(array) if gaps else array).astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"{name} contains a whole number too large for float64: rescale it") from error
        except (ValueError, TypeError) as error:
            reason = " ".join(str(error).split())  # it quotes the value, which may be a long text
            raise type(error)(
                f"{name} must hold numbers, got {array.dtype} with a value that is not a number: {reason:.120}"
            ) from error
    return array


def _fill_gaps(array: AnyArray) -> AnyArray:
    """Objects with None and the NA of pandas replaced by NaN."""
    missing = np.frompyfunc(lambda value: value is None or type(value).__name__ in ("NAType", "NaTType"), 1, 1)(array)
    return np.where(np.asarray(missing, dtype=bool), np.nan, array) if array.dtype.kind == "O" else array


def is_in_range(array: Array) -> bool:
    """Return whether all numbers are finite, and none too large."""
    return bool(array.min() >= -LARGEST and array.max() <= LARGEST)  # false for NaN, too


def check_finite(array: Array, name: str, row: int | None = None) -> None:
    """Refuse NaN, infinity and too large values; the message names the first such row."""
    if is_in_range(array):
        return
    if np.isnan(array).any():
        row = int(np.argwhere(np.isnan(array))[0][0]) if row is None else row
        advice = "drop those rows or fill them in first, for example with sklearn.impute.SimpleImputer"
        if name == "labels":
            advice = "a row without label has -1"
        elif name == "sample_weight":
            advice = "a row that is not to count has 0"
        raise ValueError(f"{name} contains NaN (first in row {row}): missing values cannot be learned; {advice}")
    if np.isinf(array).any():
        row = int(np.argwhere(np.isinf(array))[0][0]) if row is None else row
        raise ValueError(f"{name} contains infinity or a value too large for float64 (first in row {row}): replace it")
    raise ValueError(
        f"{name} contains a value of size {np.abs(array).max():.3g}, but squares of more than {LARGEST:g} overflow: rescale it"
    )


def check_threads(n_threads: object) -> int | None:
    """Return a number of threads, None for all cores, or refuse anything else."""
    if n_threads is None:
        return None
    if isinstance(n_threads, bool) or not isinstance(n_threads, numbers.Integral) or n_threads < 1:
        raise ValueError(f"n_threads must be None, for all cores, or an integer of at least 1, got {one_line(n_threads)}")
    return int(n_threads)


def one_line(value: object, most: int | None = None) -> str:
    """Return the repr of a value in one line of limited length."""
    return " ".join(repr(value).split())[:most]
