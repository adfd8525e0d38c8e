"""Errors of reading: one sentence each, which begins with the name of the file."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

MESSAGE_LETTERS = 240  # of a message of another library that are shown


class StreamError(ValueError):
    """An error with a complete sentence, which callers pass on unchanged."""


class NoRows(StreamError):
    """A valid file without rows: another file of the stream may have some."""


class NoNumbers(StreamError):
    """Columns of words where numbers are wanted; `place` holds them in `columns`."""

    def __init__(self, sentence: str, place: str, columns: Sequence[str]) -> None:
        super().__init__(sentence)
        self.place, self.columns = place, tuple(columns)


def one_line_message(error: BaseException) -> str:
    """Return the message of an error as one line of printable text."""
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    words = "".join(letter if letter.isprintable() else "?" for letter in " ".join(first.split()))
    return words if len(words) <= MESSAGE_LETTERS else f"{words[:MESSAGE_LETTERS]}..."


@contextmanager
def explain_read_errors(name: str) -> Iterator[None]:
    """Turn errors of reading a file into one sentence that names the file. Types for absent files are kept."""
    from pyarrow import ArrowException

    try:
        yield
    except StreamError:
        raise
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise type(error)(f"{name} cannot be read: {error.strerror or one_line_message(error)}") from None
    except MemoryError:
        raise StreamError(f"{name} cannot be read: it asks for more memory than there is") from None
    except (
        ArrowException, OSError, EOFError, zlib.error, zipfile.BadZipFile, struct.error, UnicodeError, OverflowError,
        ValueError, NotImplementedError,
    ) as error:  # fmt: skip
        raise StreamError(f"{name} cannot be read: {one_line_message(error)}") from error


def quote_names(names: Sequence[str], most: int = 10) -> str:
    """Return names as a sentence lists them, the first ones of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def column_phrase(names: Sequence[str]) -> str:
    """Return "column 'a'", or "columns 'a', 'b'"."""
    return f"column{'s' if len(names) > 1 else ''} {quote_names(names)}"
