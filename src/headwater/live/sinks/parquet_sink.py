"""Answers as a folder of Parquet files: ``answers.parquet``."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as parquet

from headwater.live.events import Answer
from headwater.live.sinks.line_sink import json_line
from headwater.live.sinks.sink import Sink

FILE_ANSWERS = 2**16
FILE_SECONDS = 600.0  # after which a file is written, however few answers it has
PENDING = "_pending.jsonl"  # readers of folders pass over names with an underscore
FILE_NAME = re.compile(r"part-(\d{8})\.parquet")
TYPES = {
    "event": pa.int64(), "score": pa.float64(), "anomaly_score": pa.float64(), "pvalue": pa.float64(), "odd": pa.bool_(),
    "learned": pa.bool_(), "double": pa.bool_(), "reasons": pa.string(), "error": pa.string(), "raw": pa.string(),
}  # fmt: skip


class ParquetSink(Sink):
    """Writes a file for some answers. Those that wait for their file are lines of JSON meanwhile, so that none is lost.

    Parameters
    ----------
    path : Path
        The folder, which is made.
    fields : sequence of str
        Fields of events that answers have, too: further columns, of text.
    """

    def __init__(self, path: Path, fields: Sequence[str] = ()) -> None:
        self._folder = path
        self._schema = pa.schema([*TYPES.items(), *((name, pa.string()) for name in fields if name not in TYPES)])
        if path.exists() and not path.is_dir():
            raise ValueError(f"{path} is a file, and answers go to a folder of Parquet files: name another one")
        path.mkdir(parents=True, exist_ok=True)
        self._waiting = _whole_lines(path / PENDING)
        self._since = time.monotonic()
        self._file: BinaryIO = (path / PENDING).open("ab")
        self._file.truncate(sum(map(len, self._waiting)))

    def write(self, answers: Sequence[Answer]) -> None:
        lines = [json_line(answer) for answer in answers]
        self._file.write(b"".join(lines))
        self._waiting += lines

    def flush(self) -> None:
        self._file.flush()
        if len(self._waiting) >= FILE_ANSWERS or time.monotonic() - self._since > FILE_SECONDS:
            self._write_file()

    def _write_file(self) -> None:
        """Write a file of what waits: whole under its name, or not at all."""
        if self._waiting:
            numbers = [int(found[1]) for path in self._folder.iterdir() if (found := FILE_NAME.fullmatch(path.name))]
            final = self._folder / f"part-{max(numbers, default=-1) + 1:08d}.parquet"
            part = self._folder / f".{final.name}.part"
            rows = [_row(json.loads(line), self._schema) for line in self._waiting]
            parquet.write_table(pa.Table.from_pylist(rows, self._schema), part)
            os.replace(part, final)
            self._file.truncate(0)
            self._waiting = []
        self._since = time.monotonic()

    def close(self) -> None:
        self._file.flush()
        self._write_file()
        self._file.close()
        (self._folder / PENDING).unlink(missing_ok=True)


def _row(answer: Mapping[str, object], schema: pa.Schema) -> dict[str, object]:
    return {name: _cell(answer.get(name), schema.field(name).type) for name in schema.names}


def _cell(value: object, kind: pa.DataType) -> object:
    if value is None or not pa.types.is_string(kind) or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines that a process before has left; half a line at the end was never delivered."""
    if not path.exists():
        return []
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
