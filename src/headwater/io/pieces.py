"""Pieces of a stream: files here or elsewhere, standard input, and what is in memory. Each is read by itself."""

from __future__ import annotations

import os
import select
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from headwater.io.read_errors import StreamError, reading

# How a compressed file ends, and how its bytes begin.
CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
BEGINNINGS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
# A piece of a file that is looked at before it is read.
HEAD = 2**20
LONGEST_LINE = 2**26
MOMENT = 0.02  # seconds without a byte after which a pipe is taken to pause
STANDARD_INPUT = "-"


@dataclass
class Meter:
    """How many bytes of a pass were read: those of pieces that are done, and where the open one stands. And what was lost."""

    done: int = 0
    handle: Any = None
    left_out: int = 0
    rows_left_out: int = 0

    def read(self) -> int:
        """Return the bytes read so far."""
        try:
            return self.done + (0 if self.handle is None else int(self.handle.tell()))
        except (ValueError, OSError):  # closed meanwhile
            return self.done

    def finish(self, size: int | None) -> None:
        """Note that a piece is done."""
        self.done, self.handle = (self.done + size if size is not None else self.read()), None


@dataclass(frozen=True, eq=False)
class File:
    """A file of a file system of pyarrow, which may be read again."""

    name: str
    path: str
    filesystem: Any
    size: int | None = None
    changed: int | None = None
    once: bool = False
    spool: list[str] = field(default_factory=list)

    @property
    def bare(self) -> str:
        """The name without the ending of its compression."""
        return uncompressed(self.name)

    def _codec(self) -> str | None:
        ending = os.path.splitext(self.name)[1]
        if ending in CODECS:
            return CODECS[ending]
        with self.filesystem.open_input_stream(self.path, compression=None) as raw:
            return codec_of(raw.read(4))

    @contextmanager
    def open(self, meter: Meter | None = None) -> Iterator[Any]:
        """Open the file for reading from its beginning, decompressed."""
        from pyarrow import CompressedInputStream

        codec = self._codec()
        with self.filesystem.open_input_file(self.path) as raw:
            if meter is not None:
                meter.handle = raw
            if codec is None:
                yield raw
            else:
                with CompressedInputStream(raw, codec) as stream:
                    yield stream

    def peek(self, size: int = HEAD) -> bytes:
        """Return the first bytes, decompressed."""
        with self.open() as stream:
            return exactly(stream, size)

    def local(self) -> str:
        """Return the path of the bytes on this machine, a temporary file's if they are compressed or elsewhere."""
        from pyarrow.fs import LocalFileSystem

        here = isinstance(self.filesystem, LocalFileSystem) and self._codec() is None
        return self.path if here else spooled(self)

    @contextmanager
    def seekable(self) -> Iterator[Any]:
        """Open the file for a reader that jumps about in it."""
        from pyarrow import OSFile

        with self.filesystem.open_input_file(self.path) if self._codec() is None else OSFile(self.local()) as file:
            yield file


@dataclass(frozen=True, eq=False)
class Pipe:
    """Standard input, or anything else whose bytes come once. What is looked at before is kept for the reading."""

    name: str
    handle: Any
    size: int | None = None
    changed: int | None = None
    once: bool = True
    kept: bytearray = field(default_factory=bytearray)
    opened: list[Any] = field(default_factory=list)
    plain: list[bool] = field(default_factory=list)  # whether bytes come uncompressed, once that is known
    spool: list[str] = field(default_factory=list)

    @property
    def bare(self) -> str:
        """The name without the ending of its compression."""
        return ""

    def _stream(self) -> Any:
        """Return the stream of decompressed bytes, made when it is first asked for."""
        import pyarrow as pa

        if not self.opened:
            arriving = _Arriving(self.handle)
            first = bytearray()
            while may_be_compressed(bytes(first)) and (part := arriving.read(4 - len(first))):
                first.extend(part)
            codec = codec_of(bytes(first))
            whole = pa.PythonFile(_Replayed(first, arriving), mode="r")
            self.opened.append(whole if codec is None else pa.CompressedInputStream(whole, codec))
            self.plain.append(codec is None)
        return self.opened[0]

    def glance(self, lines: int) -> bytes:
        """Return the first bytes as far as they have come, so many whole lines at least, and keep them."""
        if self.spool:
            return self.peek()
        while self.kept.lstrip().count(b"\n") < lines and (part := self._stream().read(HEAD)):
            self.kept.extend(part)
            if len(self.kept) > lines * LONGEST_LINE:
                raise StreamError(f"{self.name} has a line of more than {LONGEST_LINE >> 20} MB")
        return bytes(self.kept)

    def pauses(self) -> bool:
        """Whether all that has come was read, and nothing more came for a moment."""
        return self.plain == [True] and not self.kept and not ready(self.handle, MOMENT)

    def peek(self, size: int = HEAD) -> bytes:
        """Return the first bytes, and keep them."""
        if self.spool:
            with open(self.spool[0], "rb") as file:
                return file.read(size)
        if len(self.kept) < size:
            self.kept.extend(exactly(self._stream(), size - len(self.kept)))
        return bytes(self.kept[:size])

    @contextmanager
    def open(self, meter: Meter | None = None) -> Iterator[Any]:
        """Give the bytes, those that were looked at included."""
        import pyarrow as pa

        stream = self._stream()
        yield pa.PythonFile(_Replayed(self.kept, stream), mode="r")

    def local(self) -> str:
        """Return the path of a temporary file that holds all bytes."""
        return spooled(self)

    @contextmanager
    def seekable(self) -> Iterator[Any]:
        """Open the bytes for a reader that jumps about in them."""
        from pyarrow import OSFile

        with OSFile(self.local()) as file:
            yield file


@dataclass(frozen=True, eq=False)
class Held:
    """Rows that are in memory, or come from a generator, one item after the other."""

    name: str
    items: Any
    once: bool = False
    size: int | None = None
    changed: int | None = None
    bare: str = ""


class _File:
    """What pyarrow asks of a file of Python that is read from its beginning to its end."""

    closed = False

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        self.closed = True


class _Arriving(_File):
    """The bytes of a pipe as they come: a read waits for the first of them, and for no more than are there."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.take = getattr(handle, "read1", handle.read)

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return bytes(self.handle.read())
        parts: list[bytes] = []
        while size > 0 and (not parts or ready(self.handle, 0.0)) and (part := self.take(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def ready(handle: Any, seconds: float) -> bool:
    """Whether a file of the system has bytes, or its end, within some seconds; no, where that cannot be asked."""
    try:
        return bool(select.select([handle.fileno()], [], [], seconds)[0])
    except (OSError, ValueError, AttributeError):
        return False


class _Replayed(_File):
    """Bytes that were kept, followed by those of a stream."""

    def __init__(self, kept: bytearray, rest: Any) -> None:
        self.kept, self.rest = kept, rest

    def read(self, size: int = -1) -> bytes:
        if not self.kept:
            return bytes(self.rest.read(size) if size >= 0 else self.rest.read())
        if size < 0:
            size = len(self.kept)
        found = bytes(self.kept[:size])
        del self.kept[:size]
        return found


class Followed(_File):
    """The bytes of a stream, followed by others."""

    def __init__(self, stream: Any, end: bytes) -> None:
        self.stream, self.end = stream, end

    def read(self, size: int = -1) -> Any:
        """Return the next bytes."""
        found = self.stream.read(size)
        if found:
            return found
        found, self.end = self.end, b""
        return found


def standard_input() -> Pipe:
    """Return the piece that standard input is."""
    if sys.stdin is None:
        raise StreamError("standard input cannot be read: there is none")
    return Pipe("standard input", sys.stdin.buffer)


def piped(path: str) -> Pipe:
    """Return the piece that a pipe with a name is."""
    with reading(path):
        file = open(path, "rb")  # noqa: SIM115
    piece = Pipe(path, file)
    weakref.finalize(piece, file.close)
    return piece


def uncompressed(name: str) -> str:
    """Return a name without the ending of a compression."""
    stem, ending = os.path.splitext(name)
    return stem if ending in CODECS else name


def codec_of(beginning: bytes) -> str | None:
    """Return the compression that bytes begin with."""
    return next((codec for start, codec in BEGINNINGS.items() if beginning.startswith(start)), None)


def may_be_compressed(beginning: bytes) -> bool:
    """Whether bytes are the beginning of one that compressed files have, and not all of it."""
    return any(len(beginning) < len(start) and start.startswith(beginning) for start in BEGINNINGS)


def exactly(stream: Any, size: int) -> bytes:
    """Return this many bytes, or all that there are."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(min(size, HEAD))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def spooled(piece: File | Pipe) -> str:
    """Return the path of a temporary file with all bytes of a piece, which lives as long as the piece.

    Some formats are read from their end, or from several places at once.
    """
    if not piece.spool:
        handle, path = tempfile.mkstemp(prefix="headwater-")
        _spools.add(path)
        weakref.finalize(piece, _remove_spool, path)
        with os.fdopen(handle, "wb", buffering=0) as file, piece.open() as stream:
            while part := stream.read(HEAD):
                _write_all(file, part, f"a copy of {piece.name}, {path},")
        piece.spool.append(path)
    return piece.spool[0]


def _write_all(file: Any, part: bytes, name: str) -> None:
    rest = memoryview(part)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise StreamError(f"{name} cannot be written: {error.strerror}; TMPDIR can name another place") from error


_spools: set[str] = set()


def _remove_spool(path: str) -> None:
    _spools.discard(path)
    with suppress(OSError):
        os.unlink(path)


def remove_spools() -> None:
    """Remove all copies, for a process that ends without the usual end of Python."""
    for path in tuple(_spools):
        _remove_spool(path)


def refuse_empty(piece: Any, found: bytes) -> None:
    """Refuse a piece without a single byte."""
    if not found.strip():
        raise StreamError(f"{piece.name} is empty: there is nothing to learn from it")


def peeked(piece: Any, size: int = HEAD) -> bytes:
    """Return the first bytes of a piece that has some, or refuse it."""
    with reading(piece.name):
        found: bytes = piece.peek(size)
    refuse_empty(piece, found)
    return found


def first_lines(piece: Any, size: int = HEAD, lines: int = 1) -> bytes:
    """Return the first bytes of a piece, cut where a line ends: about `size` of them, or more if lines are that long."""
    found = peeked(piece, size)
    while len(found) >= size and found.lstrip().count(b"\n") < lines:
        if size > lines * LONGEST_LINE:
            raise StreamError(f"{piece.name} has a line of more than {LONGEST_LINE >> 20} MB")
        size *= 2
        found = peeked(piece, size)
    return found[: found.rfind(b"\n") + 1] if len(found) >= size else found


def glanced(piece: Any, lines: int = 1) -> bytes:
    """Return the first bytes of a piece that has some; of a pipe only those that have come, so many lines at least."""
    if not isinstance(piece, Pipe):
        return peeked(piece)
    with reading(piece.name):
        found = piece.glance(lines)
    refuse_empty(piece, found)
    return found
