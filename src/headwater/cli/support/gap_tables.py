"""Rows whose gaps are filled, and predictions of one column, written as they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.cli.support.display import print_json
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.model_arguments import load
from headwater.cli.support.options import MessageOptions, ReadOptions, TableOptions
from headwater.cli.support.output_files import check_output
from headwater.cli.support.progress import print_left_out, progress_bar, share_of_bytes_read
from headwater.cli.support.tables import format_for, table_writer
from headwater.core.chunk import Chunk
from headwater.diagnostics.component_description import column_names
from headwater.registry import word_of

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
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
            gaps = np.isnan(np.asarray(chunk.X))
            found = np.asarray(model.impute(Chunk(chunk.X, chunk.columns), method, rng))
            names = column_names(model, found.shape[1])
            write(_in_order({**dict(zip(names, found.T, strict=True)), **chunk.kept}, order))
            rows, filled, gappy = rows + len(chunk), filled + int(gaps.sum()), gappy + int(gaps.any(axis=1).sum())
            watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))
    if table.output is not None and not messages.json:
        print_message(f"note: {filled:,} missing values were filled, in {gappy:,} of {rows:,} rows")
    print_left_out(stream)
    if messages.json and table.output is not None:
        print_json({"output": str(table.output), "rows": rows, "rows_with_gaps": gappy, "values_filled": filled})


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
    classes: Sequence[float] | None,
) -> None:
    """Write the prediction of one column for each row; the data need not have that column."""
    check_output(table.output)
    form = format_for(table, messages)
    model = _load_with(path, "regressor")
    names = column_names(model, model.n_features_in_)
    if column not in names:
        raise usage_error(f"--column must be one of those that the model learned ({', '.join(names[:10])}), got {column!r}")
    view = model.regressor(names.index(column)) if classes is None else model.classifier(names.index(column), classes)
    stream = _open_without(reading, data, model, column, kept)
    rows = 0
    with table_writer(table.output, form) as write, progress_bar(messages, "predicting", stream.total_rows) as watch:
        for chunk in stream.arriving():
            found = _predictions(view, np.asarray(chunk.X), level, classes)
            if clashing := [name for name in chunk.kept if name in found]:
                raise usage_error(f"--keep {','.join(clashing)} has a name that predict gives to its own columns: leave it out")
            write({"row": chunk.row_numbers, **chunk.kept, **found})
            rows += len(chunk)
            watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))
    print_left_out(stream)
    if messages.json and table.output is not None:
        print_json({"output": str(table.output), "rows": rows, "column": column})


def _predictions(view: Any, X: Any, level: float, classes: Sequence[float] | None) -> dict[str, Any]:
    """Return mean and interval of the column, or its most probable value and the probability of each."""
    if classes is None:
        law = view.model_.condition(view._with_target(X, np.nan))
        low, high = law.interval(level)
        return {"prediction": law.mean[:, view.place_], "low": low[:, view.place_], "high": high[:, view.place_]}
    shares = view._class_shares(X)
    chances = {f"p{value:g}": shares[:, at] for at, value in enumerate(view.classes_)}
    return {"prediction": view.classes_[shares.argmax(axis=1)], **chances}


def _load_with(path: Path, method: str) -> Any:
    """Return the model of a file, or say that its kind does not know what columns say of one another."""
    model: StreamingEstimator = load(path)
    if not hasattr(model, method):
        raise ValueError(f"{word_of(model)} does not know what some columns say of the others: only gaussian does")
    return model


def _in_order(columns: Mapping[str, Any], order: Sequence[str]) -> dict[str, Any]:
    """Columns in the order of the data, those that it does not have at the end."""
    return {name: columns[name] for name in dict.fromkeys([*(name for name in order if name in columns), *columns])}


def _open_without(reading: ReadOptions, data: Sequence[str], model: Any, column: str, kept: Sequence[str]) -> Stream:
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
    """What a stream is read like, where one column is left out."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema_ = schema


class _Names:
    """What names the columns of a stream, where one is left out."""

    def __init__(self, names: Sequence[str]) -> None:
        self.feature_names_in_ = names
