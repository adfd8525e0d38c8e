"""Temporary copies on disk, for formats that are read from their end or from several places at once."""

from __future__ import annotations

import os
import tempfile
import weakref
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from headwater.io.byte_streams import HEAD_BYTES, ByteStream
from headwater.io.read_errors import StreamError


class _Copied(Protocol):
    name: str
    copy_path: str | None

    def open(self) -> AbstractContextManager[ByteStream]: ...


class _RawFile(Protocol):
    def write(self, data: memoryview, /) -> int | None: ...


# Paths of the existing copies, so that a stopped process can remove them.
_copies: set[str] = set()


def copy_to_disk(source: _Copied) -> str:
    """Return the path of a temporary file that holds all bytes of a source. It is removed with the source."""
    if source.copy_path is None:
        handle, path = tempfile.mkstemp(prefix="headwater-")
        _copies.add(path)
        weakref.finalize(source, _remove_copy, path)
        with os.fdopen(handle, "wb", buffering=0) as file, source.open() as stream:
            while part := stream.read(HEAD_BYTES):
                _write_all(file, part, f"a copy of {source.name}, {path},")
        source.copy_path = path
    return source.copy_path


def remove_temporary_copies() -> None:
    """Remove all copies, for a process that ends without running the finalizers of Python."""
    for path in tuple(_copies):
        _remove_copy(path)


def _write_all(file: _RawFile, part: bytes, name: str) -> None:
    rest = memoryview(part)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise StreamError(f"{name} cannot be written: {error.strerror}; TMPDIR can name another place") from error


def _remove_copy(path: str) -> None:
    _copies.discard(path)
    with suppress(OSError):
        os.unlink(path)
