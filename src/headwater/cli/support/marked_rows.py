"""Rows of data that a person has marked, given to a model in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headwater.cli.support.display import print_json
from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import MessageOptions, ReadOptions
from headwater.cli.support.output_files import check_output
from headwater.cli.support.progress import print_left_out, progress_bar, share_of_bytes_read
from headwater.cli.support.provenance import read_model, this_command, write_model
from headwater.core.statistics import Array
from headwater.registry import word_of

if TYPE_CHECKING:
    from headwater.core.chunk import Chunk
    from headwater.estimators.base import StreamingEstimator

ODD = ("1", "1.0", "true", "yes", "y", "odd")
USUAL = ("0", "0.0", "false", "no", "n", "usual")
UNKNOWN = ("", "nan", "none", "null", "na", "<na>")


def write_marked(
    path: Path, data: Sequence[str], column: str, reading: ReadOptions, messages: MessageOptions, output: Path | None
) -> None:
    """Give the marks in a column of the data to a model, and write the model."""
    check_output(output)
    model, commands = read_model(path)
    _check_model(model)
    rows, odd, usual = 0, 0, 0
    with naming_column("--column"):
        stream = reading.with_gaps(model, "drop").open_stream(data, like=model, keep=(column,))
        with progress_bar(messages, "marking", stream.total_rows) as watch:
            for chunk in stream.arriving():
                verdicts = np.array([verdict_of(value, column) for value in chunk.kept[column]], dtype=np.float64)
                if np.isfinite(verdicts).any():
                    _mark(model, chunk, verdicts)
                rows, odd, usual = rows + len(chunk), odd + int(np.sum(verdicts == 1.0)), usual + int(np.sum(verdicts == 0.0))
                watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))
    print_left_out(stream)
    if not odd + usual:
        raise ValueError(f"column {column!r} must mark at least one row as odd or usual, got {rows:,} rows without a mark")
    target = path if output is None else output
    write_model(model, target, [*commands, this_command()])
    kept = int(cast(Any, model).n_marked_)
    if messages.json:
        print_json({"output": str(target), "rows": rows, "odd": odd, "usual": usual, "marks_kept": kept})
        return
    print(f"{odd:,} rows are marked odd and {usual:,} usual, of {rows:,}; the model keeps {kept:,} marks.")
    print(f"Saved in {target}.")


@contextmanager
def naming_column(option: str) -> Iterator[None]:
    """The column of an option is read as one that is kept beside the rows, which is not how it was asked for."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error).replace("keep names", f"{option} names", 1)) from error


def verdict_of(value: object, column: str) -> float:
    """Return 1 for odd, 0 for usual and NaN for nothing, or refuse."""
    word = "" if value is None else str(value).strip().lower()
    if word in ODD or word in USUAL:
        return float(word in ODD)
    if word in UNKNOWN:
        return float("nan")
    raise ValueError(f"column {column!r} must say 1 or 0, yes or no, odd or usual, or nothing, got {str(value)[:40]!r}")


def _check_model(model: StreamingEstimator) -> None:
    traits = type(model)._traits
    if not hasattr(model, "label_anomalies"):
        raise usage_error(f"{word_of(model)} has no anomaly score that marks could move")
    if traits.chained or traits.takes_sequences:
        raise usage_error(f"sequences of {word_of(model)} are marked in Python: model.label_anomalies(X, odd)")


def _mark(model: StreamingEstimator, chunk: Chunk, verdicts: Array) -> None:
    given = {name: chunk[name] for name in chunk.keys() if name in ("X", "y")}  # noqa: SIM118
    cast(Any, model).label_anomalies(odd=verdicts, **given)
