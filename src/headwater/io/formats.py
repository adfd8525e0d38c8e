"""The formats of files, how each is recognized, and the module that reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from headwater.core.validation import one_line
from headwater.io.read_errors import StreamError

if TYPE_CHECKING:
    from headwater.io.options import Options
    from headwater.io.recipes.recipe import Head, Recipe
    from headwater.io.sources import Meter, Source

ANY_KIND = "any"  # a format that holds one kind of rows or another
DOCWORD_HEAD = re.compile(rb"\s*\d+\s*\n\s*\d+\s*\n\s*\d+\s*\n\s*\d+ \d+ \d+\s")
SVMLIGHT_LINE = re.compile(rb"[-+.\deE]+( qid:\d+)?( \d+:[-+.\deE]+)+\s*(#.*)?(\n|$)")


class FormatReader(Protocol):
    """The functions of a module of `headwater.io.readers`."""

    RANDOM_ACCESS: bool  # whether reading can begin at any row

    def head(self, source: Source, options: Options) -> Head:
        """Look at the first rows: columns and their types, the width, or the first lines."""

    def blocks(self, source: Source, options: Options, recipe: Recipe, skip: int, meter: Meter) -> Iterator[object]:
        """Yield rows as the format has them, after the rows to skip: record batches, matrices, or arrays of lines."""

    def count(self, source: Source, options: Options) -> int | None:
        """Return the number of rows, or None if it is not known before the end."""


@dataclass(frozen=True)
class Format:
    """A file format: its name, the kind of its rows, the module that reads it, and how it is recognized."""

    name: str
    kind: str
    reader: str
    suffixes: tuple[str, ...] = ()
    matches: Callable[[bytes], bool] = lambda head: False

    def load_reader(self) -> FormatReader:
        """Return the module that reads the format. It is imported on the first call."""
        return cast(FormatReader, import_module(f"headwater.io.readers.{self.reader}"))


def _magic(*starts: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(starts)


def _pattern(pattern: re.Pattern[bytes]) -> Callable[[bytes], bool]:
    return lambda head: pattern.match(head) is not None


# In this order: formats with a magic number come before those that are recognized by a pattern.
FORMATS = (
    Format("parquet", "tables", "columnar", (".parquet", ".pq"), _magic(b"PAR1")),
    Format("arrow", "tables", "columnar", (".arrow", ".arrows", ".feather", ".ipc"), _magic(b"ARROW1", b"\xff\xff\xff\xff")),
    Format("npy", "tables", "arrays", (".npy",), _magic(b"\x93NUMPY")),
    Format("npz", ANY_KIND, "archives", (".npz",), _magic(b"PK\x03\x04")),
    Format("mtx", "sparse", "matrix_market", (".mtx",), _magic(b"%%MatrixMarket")),
    Format("jsonl", "tables", "json_lines", (".jsonl", ".ndjson", ".json"), lambda head: head.lstrip().startswith(b"{")),
    Format("docword", "sparse", "docword", (), _pattern(DOCWORD_HEAD)),
    Format(
        "svmlight", "sparse", "svmlight", (".svm", ".svmlight", ".libsvm"), lambda head: SVMLIGHT_LINE.match(head) is not None
    ),
    Format("csv", "tables", "delimited", (".csv",)),
    Format("tsv", "tables", "delimited", (".tsv", ".tab")),
    Format("text", "documents", "lines", (".txt", ".text")),
    Format("sequences", "sequences", "lines", (".seq",)),
)
MEMORY_FORMAT = Format("memory", ANY_KIND, "memory")
MEMORY_LINE_FORMATS = {
    "text": Format("text", "documents", "memory_lines"),
    "sequences": Format("sequences", "sequences", "memory_lines"),
}


def find_format(name: str) -> Format:
    """Return the format of this name, or raise an error that lists the formats."""
    for one in FORMATS:
        if one.name == name:
            return one
    raise ValueError(f"format must be one of {', '.join(repr(one.name) for one in FORMATS)}, got {one_line(name, 80)}")


def suffix_format(name: str) -> Format | None:
    """Return the format that the ending of a name stands for, or None."""
    base = os.path.basename(name).lower()
    if base.startswith("docword."):
        return next((one for one in FORMATS if one.name == "docword"), None)
    ending = os.path.splitext(base)[1]
    return next((one for one in FORMATS if ending in one.suffixes), None)


def recognize_format(name: str, head: bytes) -> Format:
    """Return the format of the first bytes, or raise an error that asks for its name."""
    for one in FORMATS:
        if one.matches(head):
            return one
    line = head.split(b"\n", 1)[0]
    if b"\0" not in head and (b"," in line or b"\t" in line or b";" in line):
        return find_format("tsv" if line.count(b"\t") > line.count(b",") + line.count(b";") else "csv")
    raise StreamError(f"{name} does not look like any format: name it by format=, {', '.join(one.name for one in FORMATS)}")
