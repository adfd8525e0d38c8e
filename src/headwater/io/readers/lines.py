"""Lines of text: whole ones, some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.io.options import Options
from headwater.io.pieces import HEAD, LONGEST_LINE, Meter, first_lines
from headwater.io.read_errors import StreamError, reading

JUMPS = False
SAMPLE = 2**23  # bytes that words and symbols are looked for in
PREAMBLE = 64  # lines that may stand before the last comment at the head of a file of sequences


def head(piece: Any, options: Options) -> Any:
    """Return the first lines, as an array of Arrow."""
    with reading(piece.name):
        lines = _lines(first_lines(piece, SAMPLE))
    return lines.slice(_preamble(lines) if options.format == "sequences" else 0)


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield arrays of lines."""
    with reading(piece.name), piece.open(meter) as stream:
        first = options.format == "sequences"
        for found in whole_lines(stream, piece.name):
            lines = _lines(found)
            yield lines.slice(_preamble(lines)) if first else lines
            first = False


def count(piece: Any, options: Options) -> int | None:
    """Nobody knows before the end."""
    return None


def whole_lines(stream: Any, name: str) -> Iterator[bytes]:
    """Yield the bytes of a stream in blocks that end where a line does."""
    rest = b""
    while part := stream.read(HEAD):
        end = part.rfind(b"\n") + 1
        if not end:
            rest += part
            if len(rest) > LONGEST_LINE:
                raise StreamError(f"{name} has a line of more than {LONGEST_LINE >> 20} MB")
            continue
        yield rest + part[:end]
        rest = part[end:]
    if rest:
        yield rest


def _lines(found: bytes) -> Any:
    """Return lines as an array of Arrow; what stands before a line break counts, what follows the last one if there is any."""
    import pyarrow as pa

    lines = found.decode().replace("\r\n", "\n").split("\n")
    return pa.array(lines[:-1] if not lines[-1] else lines, pa.string())


def _preamble(lines: Any) -> int:
    """Return how many lines stand before the sequences: all up to the last comment, if the file begins with one."""
    begin = [line.as_py() for line in lines.slice(0, PREAMBLE)]
    if not begin or not begin[0].startswith("%"):
        return 0
    return 1 + max(index for index, line in enumerate(begin) if line.startswith("%"))
