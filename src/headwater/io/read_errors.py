"""What goes wrong while a file is read, in one sentence that begins with its name."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

LONGEST = 240  # characters of what a library had to say


class StreamError(ValueError):
    """A sentence that is complete: nobody adds to it on the way."""


class NoRows(StreamError):
    """A file that is fine, but has no rows: another one may have some."""


def told(error: BaseException) -> str:
    """Return what an error says, in one line of printable text."""
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    words = "".join(letter if letter.isprintable() else "?" for letter in " ".join(first.split()))
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}..."


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn whatever reading a file may raise into one sentence; the kinds of errors that files have are kept."""
    from pyarrow import ArrowException

    try:
        yield
    except StreamError:
        raise
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise type(error)(f"{name} cannot be read: {error.strerror or told(error)}") from None
    except MemoryError:
        raise StreamError(f"{name} cannot be read: it asks for more memory than there is") from None
    except (
        ArrowException, OSError, EOFError, zlib.error, zipfile.BadZipFile, struct.error, UnicodeError, OverflowError,
        ValueError, NotImplementedError,
    ) as error:  # fmt: skip
        raise StreamError(f"{name} cannot be read: {told(error)}") from error


def listed(names: Sequence[str], most: int = 10) -> str:
    """Return names as a sentence lists them, the first ones of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def columns_called(names: Sequence[str]) -> str:
    """Return "column 'a'", or "columns 'a', 'b'"."""
    return f"column{'s' if len(names) > 1 else ''} {listed(names)}"
