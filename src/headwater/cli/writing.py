"""Files that are there in full, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.storage.replacing import replacing


def check_output(path: Path | None) -> None:
    """Refuse, before any work is done, a place where nothing can be written."""
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(f"the output must be a file, and {path} is a directory")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"the output {path} cannot be written: there is no directory {folder}")
    wanted = path if path.exists() and not path.is_file() else folder
    if not os.access(wanted, os.W_OK):
        raise PermissionError(f"the output {path} cannot be written: {wanted} is read-only")


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """Yield a place to write to; what was written takes the name of `path` when all went well, and is gone otherwise."""
    check_output(path)
    if path.exists() and not path.is_file():  # a device or a pipe has no name to take
        yield path
        return
    with replacing(path) as place:
        yield place
