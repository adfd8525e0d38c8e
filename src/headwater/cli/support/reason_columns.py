"""The oddest columns of each row, as columns of a table of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.cli.support.failures import usage_error
from headwater.core.chunk import Chunk
from headwater.core.table_rows import TableRows
from headwater.registry import word_of

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.core.values import AnyArray
    from headwater.estimators.base import StreamingEstimator

REASONS = 3  # columns that are named for each row
WORDS = ("value", "expected")  # of which some may be words
PARTS = ("value", "expected", "low", "high", "tail", "surprise")


def check_explains(model: StreamingEstimator) -> None:
    """Refuse models that do not know what makes a row odd."""
    from headwater.estimators.describers.describer import Describer

    if not hasattr(model, "explain") and type(model._describer).oddities is Describer.oddities:
        raise usage_error(f"{word_of(model)} does not know what some columns say of the others: leave out --explain")


def find_reasons(
    model: StreamingEstimator, chunk: Chunk, number: int, odd: NDArray[np.bool_] | None, only_odd: bool
) -> dict[str, pa.Array]:
    """Return the reasons why each of a number of rows, documents or sequences is odd, for those that are called so."""
    if hasattr(model, "explain"):
        return reason_columns(model, chunk, odd if only_odd else None)
    return described_reasons(model, chunk, np.ones(number, dtype=bool) if odd is None else odd)


def described_reasons(model: StreamingEstimator, chunk: Chunk, wanted: NDArray[np.bool_]) -> dict[str, pa.Array]:
    """Return what makes rows odd that have no columns to compare: words of a document, steps of a sequence, items of a basket.

    A value is a count, or of a step its probability; `standing` is by how much it stands out.
    """
    import pyarrow as pa

    from headwater.reports.reading import row_getter, select_arguments

    names = np.full((len(wanted), REASONS), None, dtype=object)
    numbers = np.full((2, len(wanted), REASONS), np.nan)
    if wanted.any():
        look = row_getter(model, select_arguments(model, chunk))
        for row in np.flatnonzero(wanted).tolist():
            for at, value in enumerate(model._describer.oddities(look(row), REASONS)):
                names[row, at] = value.name
                numbers[:, row, at] = value.value, np.nan if value.standing is None else value.standing
    columns: dict[str, pa.Array] = {}
    for at in range(REASONS):
        columns[f"reason{at + 1}"] = pa.array(names[:, at], type=pa.string())
        for part, values in zip(("value", "standing"), numbers, strict=True):
            columns[f"reason{at + 1}_{part}"] = pa.array(values[:, at], mask=np.isnan(values[:, at]))
    return columns


def reason_columns(model: StreamingEstimator, chunk: Chunk, wanted: NDArray[np.bool_] | None) -> dict[str, pa.Array]:
    """Return the reasons why each row is odd: names of the oddest columns, their values, and the expected values.

    Rows that are not `wanted` have no reasons, since they are not written.
    """
    import pyarrow as pa

    rows = np.arange(len(chunk)) if wanted is None else np.flatnonzero(wanted)
    number = min(REASONS, chunk.shape[1])
    words = isinstance(chunk.X, TableRows)  # categories among numbers: values are written as text
    found: dict[str, AnyArray] = {name: np.full((len(chunk), number), np.nan) for name in PARTS}
    if words:
        found |= {name: np.full((len(chunk), number), None, dtype=object) for name in WORDS}
    names = np.full((len(chunk), number), None, dtype=object)
    if len(rows):
        table = chunk.X[rows] if words else np.asarray(chunk.X)[rows]
        reasons = model.explain(Chunk(table, chunk.columns))
        order = reasons.order(number)
        arrays = {"value": reasons.values, **{name: getattr(reasons, name) for name in PARTS[1:]}}
        for name, array in arrays.items():
            found[name][rows] = np.take_along_axis(array, order, axis=1)
        names[rows] = np.array(reasons.columns, dtype=object)[order]
        names[np.isnan(found["tail"])] = None  # a value that is missing is no reason
    columns: dict[str, pa.Array] = {}
    for at in range(number):
        told = f"reason{at + 1}"
        columns[told] = pa.array(names[:, at], type=pa.string())
        unsaid = np.isnan(found["tail"][:, at])
        for name in PARTS:
            values = found[name][:, at]
            if values.dtype == object:
                columns[f"{told}_{name}"] = pa.array([_text(one) for one in values], mask=unsaid, type=pa.string())
            else:
                columns[f"{told}_{name}"] = pa.array(values, mask=unsaid | np.isnan(values))
    return columns


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
