"""Byte streams: what pyarrow reads from, for bytes that arrive, that were read before, or that are appended."""

from __future__ import annotations

import os
import select
from typing import BinaryIO, Protocol

CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
CODEC_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
MAGIC_BYTES = 4  # bytes of the longest magic number


def strip_codec_suffix(name: str) -> str:
    """Return a name without the ending of a compression."""
    stem, ending = os.path.splitext(name)
    return stem if ending in CODECS else name


def codec_of(beginning: bytes) -> str | None:
    """Return the codec whose magic number these bytes begin with, or None."""
    return next((codec for magic, codec in CODEC_MAGIC.items() if beginning.startswith(magic)), None)


def may_be_compressed(beginning: bytes) -> bool:
    """Whether these bytes are a proper prefix of a magic number, so that more bytes are needed to decide."""
    return any(len(beginning) < len(magic) and magic.startswith(beginning) for magic in CODEC_MAGIC)


HEAD_BYTES = 2**20  # bytes of a file that are looked at before it is read; also the size of one read
LINE_BYTES_LIMIT = 2**26  # bytes of one line; a longer one is refused, so that memory stays bounded


class ByteStream(Protocol):
    """A sequence of bytes that is read from its beginning to its end."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, at most `size` of them; none at the end."""


class _ReadOnlyFile:
    """The methods that pyarrow needs of a Python file that is read from its beginning to its end."""

    closed = False

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        """Do nothing: the file is read-only."""

    def close(self) -> None:
        self.closed = True


class ArrivedBytes(_ReadOnlyFile):
    """The bytes of a pipe as they arrive: a read waits for the first byte, and returns the bytes that have arrived."""

    def __init__(self, handle: BinaryIO) -> None:
        self.handle = handle
        self.take = getattr(handle, "read1", handle.read)

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return bytes(self.handle.read())
        parts: list[bytes] = []
        while size > 0 and (not parts or has_bytes_within(self.handle, 0.0)) and (part := self.take(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class ReplayedBytes(_ReadOnlyFile):
    """Bytes that were read before, followed by the rest of their stream."""

    def __init__(self, kept: bytearray, rest: ByteStream) -> None:
        self.kept, self.rest = kept, rest

    def read(self, size: int = -1) -> bytes:
        if not self.kept:
            return bytes(self.rest.read(size) if size >= 0 else self.rest.read())
        if size < 0:
            size = len(self.kept)
        found = bytes(self.kept[:size])
        del self.kept[:size]
        return found


class AppendedBytes(_ReadOnlyFile):
    """The bytes of a stream, followed by some bytes that are appended."""

    def __init__(self, stream: ByteStream, end: bytes) -> None:
        self.stream, self.end = stream, end

    def read(self, size: int = -1) -> bytes:
        found = self.stream.read(size)
        if found:
            return found
        found, self.end = self.end, b""
        return found


def has_bytes_within(handle: BinaryIO, seconds: float) -> bool:
    """Whether a file of the operating system has bytes, or ends, within some seconds; False where it cannot be asked."""
    try:
        return bool(select.select([handle.fileno()], [], [], seconds)[0])
    except (OSError, ValueError, AttributeError):
        return False


def read_bytes(stream: ByteStream, size: int) -> bytes:
    """Return this many bytes, or all that are left."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(min(size, HEAD_BYTES))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
