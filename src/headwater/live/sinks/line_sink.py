"""Answers as lines of text: JSON, or CSV; to standard output or a file."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from headwater.live.events import Answer
from headwater.live.sinks.sink import Sink

CSV_COLUMNS = ("event", "score", "anomaly_score", "pvalue", "odd", "learned", "double", "reasons", "error", "raw")


class LineSink(Sink):
    """Writes a line for each answer.

    Parameters
    ----------
    path : Path, optional
        A file, which is added to; standard output by default.
    form : {"jsonl", "csv"}
        JSON lines, or CSV.
    fields : sequence of str
        Fields of events that answers have, too: further columns of CSV.
    """

    def __init__(self, path: Path | None, form: str = "jsonl", fields: Sequence[str] = ()) -> None:
        self._file: BinaryIO = sys.stdout.buffer if path is None else path.open("ab")
        self._own, self._form = path is not None, form
        self._columns = (*fields, *(name for name in CSV_COLUMNS if name not in fields))
        empty = path is None or self._file.tell() == 0
        if path is not None and not empty and not _ends_with_line(path):
            self._file.write(b"\n")  # a process that was killed left half a line
        if form == "csv" and empty:
            self._file.write(self._line(dict(zip(self._columns, self._columns, strict=True))))

    def write(self, answers: Sequence[Answer]) -> None:
        if self._form == "csv":
            self._file.write(b"".join(map(self._line, answers)))
            return
        self._file.write(b"".join(json_line(answer) for answer in answers))

    def _line(self, answer: Mapping[str, object]) -> bytes:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow([_cell(answer.get(name)) for name in self._columns])
        return text.getvalue().encode(errors="replace")

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.flush()
        if self._own:
            self._file.close()


def json_line(answer: Answer) -> bytes:
    """Return an answer as a line of JSON."""
    return json.dumps(answer, ensure_ascii=False, default=str).encode(errors="replace") + b"\n"


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):  # reasons: names and values, which are enough to look further
        return "; ".join(f"{one['column']}={one['value']}" for one in value)
    return value


def _ends_with_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
