"""Digests of what a data file holds, whatever it was compressed with."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet

SETS = Path(__file__).with_name("sets.json")


def digest(path: Path) -> str:
    """Return the SHA-256 of the text of a .gz file, or of names, types, shapes and bytes of the arrays of others."""
    found = hashlib.sha256()
    if path.suffix == ".gz":
        with gzip.open(path) as file:
            found.update(file.read())
        return found.hexdigest()
    if path.suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
        arrays = {name: table.column(name).to_numpy() for name in table.column_names}
    else:
        with np.load(path) as file:
            arrays = dict(file)
    for name in sorted(arrays):
        found.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape} ".encode())
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()


def compare(directory: Path) -> dict[str, str]:
    """Return "same", "differs" or "missing" for each file of the pages."""
    known = json.loads(SETS.read_text(encoding="utf-8"))
    return {
        file: ("same" if digest(directory / file) == value else "differs") if (directory / file).is_file() else "missing"
        for file, value in known.items()
    }
