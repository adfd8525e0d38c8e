"""Rows whose gaps are filled, and predictions of one column, written as they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from headwater.cli.support.display import print_json
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.model_arguments import load
from headwater.cli.support.options import MessageOptions, ReadOptions, TableOptions
from headwater.cli.support.output_files import check_output
from headwater.cli.support.progress import print_left_out, progress_bar, share_of_bytes_read
from headwater.cli.support.tables import format_for, table_writer
from headwater.core.chunk import Chunk
from headwater.core.table_rows import TableRows
from headwater.core.values import AnyArray, Rows, Settings
from headwater.diagnostics.component_description import column_names
from headwater.registry import word_of

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.estimators.column_views import ColumnClassifier, ColumnRegressor
    from headwater.estimators.gap_answers import GapAnswers
    from headwater.io.stream import Stream


def write_imputed(
    path: Path,
    data: Sequence[str],
    reading: ReadOptions,
    table: TableOptions,
    messages: MessageOptions,
    *,
    kept: Sequence[str] | None,
    method: str,
    seed: int,
) -> None:
    """Write the rows of data without gaps; `kept` names other columns to copy, None all of them."""
    from headwater.io.other_columns import keep_other_columns, source_columns

    check_output(table.output)
    form = format_for(table, messages)
    model = _load_with(path, "impute")
    stream = reading.open_stream(data, like=model, keep=kept or ())
    if kept is None:
        stream = keep_other_columns(stream)
    order, rows, filled, gappy = source_columns(stream), 0, 0, 0
    rng = np.random.default_rng(seed)
    with table_writer(table.output, form) as write, progress_bar(messages, "filling", stream.total_rows) as watch:
        for chunk in stream.arriving():
            columns, gaps = _impute(model, chunk, cast(Imputation, method), rng)
            write(_in_order({**columns, **chunk.kept}, order))
            rows, filled, gappy = rows + len(chunk), filled + int(gaps.sum()), gappy + int(gaps.any(axis=1).sum())
            watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))
    if table.output is not None and not messages.json:
        print_message(f"note: {filled:,} missing values were filled, in {gappy:,} of {rows:,} rows")
    print_left_out(stream)
    if messages.json and table.output is not None:
        print_json({"output": str(table.output), "rows": rows, "rows_with_gaps": gappy, "values_filled": filled})


Imputation: TypeAlias = Literal["mean", "mode", "sample"]


def _impute(
    model: GapAnswers, chunk: Chunk, method: Imputation, rng: np.random.Generator
) -> tuple[dict[str, object], NDArray[np.bool_]]:
    """Return the columns of a chunk without gaps, and the entries (n, d) that were filled."""
    if isinstance(chunk.X, TableRows):
        before = chunk.X.table
        after = model.impute(before, method, rng)
        gaps = np.column_stack([_nulls(one) & ~_nulls(two) for one, two in zip(before.columns, after.columns, strict=True)])
        return dict(zip(after.column_names, after.columns, strict=True)), gaps
    gaps = np.isnan(np.asarray(chunk.X))
    found = np.asarray(model.impute(Chunk(chunk.X, chunk.columns), method, rng))
    return dict(zip(column_names(model, found.shape[1]), found.T, strict=True)), gaps


def _nulls(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.is_null(nan_is_null=True).to_numpy(), dtype=np.bool_)


def write_predictions(
    path: Path,
    data: Sequence[str],
    reading: ReadOptions,
    table: TableOptions,
    messages: MessageOptions,
    *,
    kept: Sequence[str],
    column: str,
    level: float,
    classes: Sequence[str] | None,
) -> None:
    """Write the prediction of one column for each row; the data need not have that column."""
    check_output(table.output)
    form = format_for(table, messages)
    model = _load_with(path, "regressor")
    names = column_names(model, model.n_features_in_)
    if column not in names:
        raise usage_error(f"--column must be one of those that the model learned ({', '.join(names[:10])}), got {column!r}")
    view = _view(model, names.index(column), classes)
    stream = _open_without(reading, data, model, column, kept)
    rows = 0
    with table_writer(table.output, form) as write, progress_bar(messages, "predicting", stream.total_rows) as watch:
        for chunk in stream.arriving():
            rows_given = chunk.X.table if isinstance(chunk.X, TableRows) else Chunk(chunk.X, chunk.columns)
            found = _predictions(view, rows_given, level)
            if clashing := [name for name in chunk.kept if name in found]:
                raise usage_error(f"--keep {','.join(clashing)} has a name that predict gives to its own columns: leave it out")
            write({"row": chunk.row_numbers, **chunk.kept, **found})
            rows += len(chunk)
            watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))
    print_left_out(stream)
    if messages.json and table.output is not None:
        print_json({"output": str(table.output), "rows": rows, "column": column})


def _view(model: GapAnswers, place: int, classes: Sequence[str] | None) -> ColumnRegressor | ColumnClassifier:
    """Return the predictor of the column: a classifier if it holds categories or flags, or if classes were named."""
    from headwater.estimators.column_kinds import BERNOULLI, CATEGORICAL

    schema = getattr(model, "_schema", None)
    if schema is not None and schema.kinds[place] in (CATEGORICAL, BERNOULLI):
        known = {str(value): value for value in model.classifier(place).classes_.tolist()}
        if classes is not None and (unknown := [one for one in classes if one not in known]):
            raise usage_error(f"--classes must be categories of the column ({', '.join(list(known)[:10])}), got {unknown[0]!r}")
        chosen: ColumnClassifier = model.classifier(place, None if classes is None else [known[one] for one in classes])
        return chosen
    found: ColumnRegressor | ColumnClassifier = (
        model.regressor(place) if classes is None else model.classifier(place, [_number(one) for one in classes])
    )
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise usage_error(f"--classes must be numbers, separated by commas, got {text!r}") from None


def _predictions(view: ColumnRegressor | ColumnClassifier, X: Rows, level: float) -> dict[str, AnyArray]:
    """Return mean and interval of the column, or its most probable value and the probability of each."""
    from headwater.estimators.column_views import ColumnRegressor
    from headwater.estimators.view_inputs import read_inputs

    inputs = read_inputs(view.model_, X, type(view).__name__)
    if isinstance(view, ColumnRegressor):
        law = view._law(inputs)
        low, high = law.interval(level)
        return {"prediction": law.mean[:, view.place_], "low": low[:, view.place_], "high": high[:, view.place_]}
    shares = view._class_shares(inputs)
    chances = {f"p{_text(value)}": shares[:, at] for at, value in enumerate(view.classes_.tolist())}
    return {"prediction": view.classes_[shares.argmax(axis=1)], **chances}


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"_{value}" if isinstance(value, str | bool) else str(value)


def _load_with(path: Path, method: str) -> GapAnswers:
    """Return the model of a file, or refuse a kind that cannot predict columns from one another."""
    from headwater.estimators.gap_answers import GapAnswers

    model = load(path)
    if not isinstance(model, GapAnswers) or not hasattr(model, method):
        raise ValueError(f"{word_of(model)} does not know what some columns say of the others: gaussian and mixed do")
    return model


def _in_order(columns: Mapping[str, object], order: Sequence[str]) -> dict[str, object]:
    """Columns in the order of the data, those that it does not have at the end."""
    return {name: columns[name] for name in dict.fromkeys([*(name for name in order if name in columns), *columns])}


def _open_without(reading: ReadOptions, data: Sequence[str], model: GapAnswers, column: str, kept: Sequence[str]) -> Stream:
    """Open the data as the model knows it, without one column."""
    schema = getattr(model, "schema_", None)
    if schema is not None:
        inputs = schema.get("inputs", ())
        if not any(one["name"] == column for one in inputs):
            raise usage_error(f"--column {column} is a level of a column of words, which cannot be predicted by itself")
        schema = {**schema, "inputs": [one for one in inputs if one["name"] != column]}
        return reading.open_stream(data, like=_Schema(schema), keep=kept)
    others = [name for name in map(str, getattr(model, "feature_names_in_", ())) if name != column]
    if not others:
        raise usage_error("predict needs a model that learned from a file or a table, whose columns have names")
    return reading.open_stream(data, like=_Names(others), keep=kept)


class _Schema:
    """A schema without one column, to read a stream by."""

    def __init__(self, schema: Settings) -> None:
        self.schema_ = schema


class _Names:
    """Column names of a stream without one column."""

    def __init__(self, names: Sequence[str]) -> None:
        self.feature_names_in_ = names
