"""The first bytes of a source, which tell its format and its columns."""

from __future__ import annotations

from headwater.io.byte_streams import HEAD_BYTES, LINE_BYTES_LIMIT
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.sources import File, Pipe


def read_first_bytes(source: File | Pipe, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a source, or refuse one that is empty."""
    with explain_read_errors(source.name):
        found = source.peek(size)
    _refuse_empty(source, found)
    return found


def read_first_lines(source: File | Pipe, size: int = HEAD_BYTES, lines: int = 1) -> bytes:
    """Return about `size` first bytes of a source, cut where a line ends; more if lines are longer than that."""
    found = read_first_bytes(source, size)
    while len(found) >= size and found.lstrip().count(b"\n") < lines:
        if size > lines * LINE_BYTES_LIMIT:
            raise StreamError(f"{source.name} has a line of more than {LINE_BYTES_LIMIT >> 20} MB")
        size *= 2
        found = read_first_bytes(source, size)
    return found[: found.rfind(b"\n") + 1] if len(found) >= size else found


def read_arrived_lines(source: File | Pipe, lines: int = 1) -> bytes:
    """Return the first bytes of a source; of a pipe only what has arrived, with at least so many whole lines."""
    if not isinstance(source, Pipe):
        return read_first_bytes(source)
    with explain_read_errors(source.name):
        found = source.peek_lines(lines)
    _refuse_empty(source, found)
    return found


def _refuse_empty(source: File | Pipe, found: bytes) -> None:
    if not found.strip():
        raise StreamError(f"{source.name} is empty: there is nothing to learn from it")
