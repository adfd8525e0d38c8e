"""Sources of a stream: files here or elsewhere, pipes, and data in memory. Each source is read by itself."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from headwater.io.byte_streams import (
    CODECS,
    HEAD_BYTES,
    LINE_BYTES_LIMIT,
    MAGIC_BYTES,
    ArrivedBytes,
    ByteStream,
    ReplayedBytes,
    codec_of,
    has_bytes_within,
    may_be_compressed,
    read_bytes,
    strip_codec_suffix,
)
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.temporary_copies import copy_to_disk

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem


PIPE_PAUSE_SECONDS = 0.02  # without a byte, after which a pipe is said to pause and the rows so far are handed on
STANDARD_INPUT = "-"


@dataclass
class Meter:
    """What one pass has read and left out so far: bytes of finished sources, the open file, words and rows left out."""

    done: int = 0
    handle: pa.NativeFile | None = None
    left_out: int = 0
    rows_left_out: int = 0

    def read(self) -> int:
        """Return the bytes read so far."""
        try:
            return self.done + (0 if self.handle is None else int(self.handle.tell()))
        except (ValueError, OSError):  # closed meanwhile
            return self.done

    def finish(self, size: int | None) -> None:
        """Note that a source is finished."""
        self.done, self.handle = (self.done + size if size is not None else self.read()), None


@dataclass(eq=False)
class File:
    """A file in a file system of pyarrow. It can be read again."""

    name: str
    path: str
    filesystem: FileSystem
    size: int | None = None
    changed: int | None = None
    once: bool = False
    copy_path: str | None = None  # of the temporary copy on this disk, if one was made

    @property
    def bare(self) -> str:
        """The name without the ending of its compression."""
        return strip_codec_suffix(self.name)

    def _codec(self) -> str | None:
        ending = os.path.splitext(self.name)[1]
        if ending in CODECS:
            return CODECS[ending]
        with self.filesystem.open_input_stream(self.path, compression=None) as raw:
            return codec_of(raw.read(MAGIC_BYTES))

    @contextmanager
    def open(self, meter: Meter | None = None) -> Iterator[ByteStream]:
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

    def peek(self, size: int = HEAD_BYTES) -> bytes:
        """Return the first bytes, decompressed."""
        with self.open() as stream:
            return read_bytes(stream, size)

    def local(self) -> str:
        """Return a path of the bytes on this machine: of a temporary copy if they are compressed or elsewhere."""
        from pyarrow.fs import LocalFileSystem

        here = isinstance(self.filesystem, LocalFileSystem) and self._codec() is None
        return self.path if here else copy_to_disk(self)

    @contextmanager
    def seekable(self) -> Iterator[pa.NativeFile]:
        """Open the file for a reader that seeks."""
        from pyarrow import OSFile

        with self.filesystem.open_input_file(self.path) if self._codec() is None else OSFile(self.local()) as file:
            yield file


@dataclass(eq=False)
class Pipe:
    """Standard input, or another source whose bytes come once. Bytes that were looked at are kept for the reading."""

    name: str
    handle: BinaryIO
    size: int | None = None
    changed: int | None = None
    once: bool = True
    kept: bytearray = field(default_factory=bytearray)
    stream: ByteStream | None = None  # of decompressed bytes, once it is open
    compressed: bool | None = None  # once that is known
    copy_path: str | None = None

    @property
    def bare(self) -> str:
        """Bytes of a pipe have no name that tells their format."""
        return ""

    def _stream(self) -> ByteStream:
        """Return the stream of decompressed bytes. It is opened on the first call."""
        import pyarrow as pa

        if self.stream is None:
            arrived = ArrivedBytes(self.handle)
            first = bytearray()
            while may_be_compressed(bytes(first)) and (part := arrived.read(MAGIC_BYTES - len(first))):
                first.extend(part)
            codec = codec_of(bytes(first))
            whole = pa.PythonFile(ReplayedBytes(first, arrived), mode="r")
            self.stream = whole if codec is None else pa.CompressedInputStream(whole, codec)
            self.compressed = codec is not None
        return self.stream

    def peek_lines(self, lines: int) -> bytes:
        """Return the bytes that have arrived, with at least so many whole lines, and keep them."""
        if self.copy_path is not None:
            return self.peek()
        while self.kept.lstrip().count(b"\n") < lines and (part := self._stream().read(HEAD_BYTES)):
            self.kept.extend(part)
            if len(self.kept) > lines * LINE_BYTES_LIMIT:
                raise StreamError(f"{self.name} has a line of more than {LINE_BYTES_LIMIT >> 20} MB")
        return bytes(self.kept)

    def pauses(self) -> bool:
        """Whether all that has arrived was read, and nothing more came for a moment."""
        return self.compressed is False and not self.kept and not has_bytes_within(self.handle, PIPE_PAUSE_SECONDS)

    def peek(self, size: int = HEAD_BYTES) -> bytes:
        """Return the first bytes, and keep them."""
        if self.copy_path is not None:
            with open(self.copy_path, "rb") as file:
                return file.read(size)
        if len(self.kept) < size:
            self.kept.extend(read_bytes(self._stream(), size - len(self.kept)))
        return bytes(self.kept[:size])

    @contextmanager
    def open(self, meter: Meter | None = None) -> Iterator[ByteStream]:
        """Open the bytes for reading, those that were looked at included."""
        import pyarrow as pa

        stream = self._stream()
        yield pa.PythonFile(ReplayedBytes(self.kept, stream), mode="r")

    def local(self) -> str:
        """Return the path of a temporary copy of all bytes."""
        return copy_to_disk(self)

    @contextmanager
    def seekable(self) -> Iterator[pa.NativeFile]:
        """Open the bytes for a reader that seeks."""
        from pyarrow import OSFile

        with OSFile(self.local()) as file:
            yield file


@dataclass(eq=False)
class InMemory:
    """Rows in memory, or from a generator, one item after the other."""

    name: str
    items: Any  # a table, an array, or an iterable of them or of texts
    once: bool = False
    size: int | None = None
    changed: int | None = None
    bare: str = ""


Source = File | Pipe | InMemory


def standard_input() -> Pipe:
    """Return standard input as a source."""
    if sys.stdin is None:
        raise StreamError("standard input cannot be read: there is none")
    return Pipe("standard input", sys.stdin.buffer)


def open_named_pipe(path: str) -> Pipe:
    """Return a named pipe as a source. It is closed with the source."""
    with explain_read_errors(path):
        file = open(path, "rb")  # noqa: SIM115
    source = Pipe(path, file)
    weakref.finalize(source, file.close)
    return source
