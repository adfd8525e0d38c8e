"""Tables that are written chunk by chunk: CSV, TSV, JSON lines, Parquet or Arrow, to a file or to standard output."""

from __future__ import annotations

import csv
import io
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import MessageOptions, TableOptions
from headwater.cli.support.output_files import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import ReadableBuffer

    from headwater.core.values import AnyArray

Write = Callable[[Mapping[str, object]], None]

SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))


def format_for(table: TableOptions, messages: MessageOptions) -> str:
    """Return the format of a table; with --json, standard output gets JSON lines."""
    json_lines = messages.json and table.output is None and table.output_format is None
    return "jsonl" if json_lines else format_of(table.output, table.output_format)


def format_of(path: Path | None, asked: str | None) -> str:
    """Return the format of a table: the one asked for, that of the file name, or CSV for standard output."""
    if asked is not None:
        if asked not in FORMATS:
            raise usage_error(f"the output format must be one of {', '.join(FORMATS)}, got {asked!r}")
        return asked
    if path is None or (path.exists() and not path.is_file()):
        return "csv"
    if path.suffix.lower() not in SUFFIXES:
        raise usage_error(f"the output {path} must end in one of {', '.join(SUFFIXES)}")
    return SUFFIXES[path.suffix.lower()]


def split_complex(columns: Mapping[str, AnyArray]) -> dict[str, object]:
    """Return columns that tables can hold: complex numbers become two columns."""
    import numpy as np

    parts: dict[str, object] = {}
    for name, values in columns.items():
        if np.iscomplexobj(values):
            parts |= {f"{name}_real": values.real, f"{name}_imag": values.imag}
        else:
            parts[name] = np.ascontiguousarray(values)
    return parts


def add_columns(columns: Mapping[str, object], added: Mapping[str, object]) -> dict[str, object]:
    """Return columns with others after them; an added name that exists already gets underscores."""
    found = dict(columns)
    for name, values in added.items():
        while name in found:
            name += "_"
        found[name] = values
    return found


def symbol_names(schema: Mapping[str, object] | None, symbols: object) -> object:
    """Return the names of symbols if a schema has them, or the symbols themselves."""
    import numpy as np

    names = (schema or {}).get("symbols")
    return np.asarray(symbols) if not names else np.asarray(names, dtype=str)[np.asarray(symbols, dtype=np.int64)]


@contextmanager
def table_writer(path: Path | None, format: str) -> Iterator[Write]:
    """Yield a function that writes columns by name, any number of rows at a time."""
    with nullcontext() if path is None else write_atomically(path) as place:
        stream: BinaryIO = _standard_output() if place is None else place.open("wb")
        try:
            writer = _WRITERS[format](stream)

            def write(columns: Mapping[str, object]) -> None:
                writer.write(columns)
                if place is None:  # a reader of the pipe may wait for the answer
                    stream.flush()

            yield write
            writer.close()
            stream.flush()
        finally:
            if place is not None:
                stream.close()


def _standard_output() -> BinaryIO:
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    return _TextOutput() if buffer is None else buffer  # type: ignore[return-value]


class _TextOutput(io.RawIOBase):
    """Standard output that takes only text, as in a notebook."""

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        sys.stdout.write(bytes(data).decode())
        return memoryview(data).nbytes


class _Writer(Protocol):
    """A writer of columns of some rows after the other."""

    def write(self, columns: Mapping[str, object]) -> None: ...

    def close(self) -> None: ...


class _TableWriter(Protocol):
    """A writer of pyarrow."""

    def write_table(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


class _Arrow(ABC):
    """Writers of pyarrow, which need the schema of the first rows."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.writer: _TableWriter | None = None

    @abstractmethod
    def open(self, schema: pa.Schema) -> _TableWriter:
        """Return a writer of tables with this schema."""

    def write(self, columns: Mapping[str, object]) -> None:
        import pyarrow

        table = pyarrow.table(dict(columns))
        if self.writer is None:
            self.writer = self.open(table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class _Parquet(_Arrow):
    def open(self, schema: pa.Schema) -> _TableWriter:
        from pyarrow import parquet

        return parquet.ParquetWriter(self.stream, schema)


class _Feather(_Arrow):
    def open(self, schema: pa.Schema) -> _TableWriter:
        from pyarrow import ipc

        return ipc.new_file(self.stream, schema)


class _Csv(_Arrow):
    delimiter = ","

    def open(self, schema: pa.Schema) -> _TableWriter:
        from pyarrow.csv import CSVWriter, WriteOptions

        head = io.StringIO()
        csv.writer(head, delimiter=self.delimiter, lineterminator="\n").writerow(schema.names)
        self.stream.write(head.getvalue().encode())
        options = WriteOptions(include_header=False, delimiter=self.delimiter, quoting_style="needed")
        return CSVWriter(self.stream, schema, write_options=options)


class _Tsv(_Csv):
    delimiter = "\t"


class _JsonLines:
    """JSON lines."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream

    def write(self, columns: Mapping[str, object]) -> None:
        from headwater.cli.support.display import to_json_value

        names, values = list(columns), [to_json_value(column) for column in columns.values()]
        lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in zip(*values, strict=True))
        self.stream.write("".join(line + "\n" for line in lines).encode())

    def close(self) -> None:
        pass


_WRITERS: dict[str, Callable[[BinaryIO], _Writer]] = {
    "csv": _Csv, "tsv": _Tsv, "jsonl": _JsonLines, "parquet": _Parquet, "arrow": _Feather,
}  # fmt: skip
