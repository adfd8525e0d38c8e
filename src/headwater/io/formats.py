"""The formats: a name, endings of file names, how bytes begin, the kind of rows, and the module that reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from headwater.core.validation import one_line
from headwater.io.read_errors import StreamError

ANY = "any"  # a format that holds one kind of rows or another
COUNTS = re.compile(rb"\s*\d+\s*\n\s*\d+\s*\n\s*\d+\s*\n\s*\d+ \d+ \d+\s")
PAIRS = re.compile(rb"[-+.\deE]+( qid:\d+)?( \d+:[-+.\deE]+)+\s*(#.*)?(\n|$)")


@dataclass(frozen=True)
class Format:
    """A format of files: `reader` names a module with `head`, `blocks` and `count`."""

    name: str
    kind: str
    reader: str
    suffixes: tuple[str, ...] = ()
    begins: Callable[[bytes], bool] = lambda head: False

    def read(self) -> Any:
        """Return the module that reads it."""
        return import_module(f"headwater.io.readers.{self.reader}")


def _magic(*starts: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(starts)


# Looked through in this order: what is told by its first bytes comes before what is told by its looks.
FORMATS = (
    Format("parquet", "tables", "columnar", (".parquet", ".pq"), _magic(b"PAR1")),
    Format("arrow", "tables", "columnar", (".arrow", ".arrows", ".feather", ".ipc"), _magic(b"ARROW1", b"\xff\xff\xff\xff")),
    Format("npy", "tables", "arrays", (".npy",), _magic(b"\x93NUMPY")),
    Format("npz", ANY, "archives", (".npz",), _magic(b"PK\x03\x04")),
    Format("mtx", "sparse", "matrix_market", (".mtx",), _magic(b"%%MatrixMarket")),
    Format("jsonl", "tables", "json_lines", (".jsonl", ".ndjson", ".json"), lambda head: head.lstrip().startswith(b"{")),
    Format("docword", "sparse", "docword", (), lambda head: COUNTS.match(head) is not None),
    Format("svmlight", "sparse", "svmlight", (".svm", ".svmlight", ".libsvm"), lambda head: PAIRS.match(head) is not None),
    Format("csv", "tables", "delimited", (".csv",)),
    Format("tsv", "tables", "delimited", (".tsv", ".tab")),
    Format("text", "documents", "lines", (".txt", ".text")),
    Format("sequences", "sequences", "lines", (".seq",)),
)
MEMORY = Format("memory", ANY, "memory")
IN_MEMORY = {
    "text": Format("text", "documents", "memory_lines"),
    "sequences": Format("sequences", "sequences", "memory_lines"),
}


def find_format(name: str) -> Format:
    """Return the format of this name, or say which there are."""
    for one in FORMATS:
        if one.name == name:
            return one
    raise ValueError(f"format must be one of {', '.join(repr(one.name) for one in FORMATS)}, got {one_line(name, 80)}")


def suffix_format(name: str) -> Format | None:
    """Return the format that the ending of a name speaks of."""
    base = os.path.basename(name).lower()
    if base.startswith("docword."):
        return next((one for one in FORMATS if one.name == "docword"), None)
    ending = os.path.splitext(base)[1]
    return next((one for one in FORMATS if ending in one.suffixes), None)


def sniffed(name: str, head: bytes) -> Format:
    """Return the format that bytes look like, or ask for its name."""
    for one in FORMATS:
        if one.begins(head):
            return one
    line = head.split(b"\n", 1)[0]
    if b"\0" not in head and (b"," in line or b"\t" in line or b";" in line):
        return find_format("tsv" if line.count(b"\t") > line.count(b",") + line.count(b";") else "csv")
    raise StreamError(f"{name} does not look like any format: name it by format=, {', '.join(one.name for one in FORMATS)}")
