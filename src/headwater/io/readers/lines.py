"""Lines of text: whole ones, some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.io.byte_streams import HEAD_BYTES, LINE_BYTES_LIMIT, ByteStream
from headwater.io.first_bytes import read_first_lines
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.recipes.recipe import Recipe
from headwater.io.sources import File, Meter, Pipe

if TYPE_CHECKING:
    import pyarrow as pa

RANDOM_ACCESS = False
SAMPLE_BYTES = 2**23  # bytes that are searched for words and symbols
PREAMBLE_LINES = 64  # lines that may precede the last comment at the head of a file of sequences


def head(source: File | Pipe, options: Options) -> pa.StringArray:
    """Return the first lines, as an array of Arrow."""
    with explain_read_errors(source.name):
        lines = _to_lines(read_first_lines(source, SAMPLE_BYTES))
    return lines.slice(_count_preamble_lines(lines) if options.format == "sequences" else 0)


def blocks(source: File | Pipe, options: Options, recipe: Recipe, skip: int, meter: Meter) -> Iterator[pa.StringArray]:
    """Yield arrays of lines."""
    with explain_read_errors(source.name), source.open(meter) as stream:
        first = options.format == "sequences"
        for found in whole_lines(stream, source.name):
            lines = _to_lines(found)
            yield lines.slice(_count_preamble_lines(lines)) if first else lines
            first = False


def count(source: File | Pipe, options: Options) -> int | None:
    """Return None: the number of rows is known only at the end."""
    return None


def whole_lines(stream: ByteStream, name: str) -> Iterator[bytes]:
    """Yield the bytes of a stream in blocks that end where a line does."""
    rest = b""
    while part := stream.read(HEAD_BYTES):
        end = part.rfind(b"\n") + 1
        if not end:
            rest += part
            if len(rest) > LINE_BYTES_LIMIT:
                raise StreamError(f"{name} has a line of more than {LINE_BYTES_LIMIT >> 20} MB")
            continue
        yield rest + part[:end]
        rest = part[end:]
    if rest:
        yield rest


def _to_lines(found: bytes) -> pa.StringArray:
    """Return lines as an array of Arrow. Text after the last line break counts as a line if there is any."""
    import pyarrow as pa

    lines = found.decode().replace("\r\n", "\n").split("\n")
    return pa.array(lines[:-1] if not lines[-1] else lines, pa.string())


def _count_preamble_lines(lines: pa.StringArray) -> int:
    """Return the number of lines before the sequences: up to the last comment, if the file begins with one."""
    begin = [line.as_py() for line in lines.slice(0, PREAMBLE_LINES)]
    if not begin or not begin[0].startswith("%"):
        return 0
    return 1 + max(index for index, line in enumerate(begin) if line.startswith("%"))
