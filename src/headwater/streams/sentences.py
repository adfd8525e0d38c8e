"""What goes wrong while a file is read, in one sentence that begins with its name."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 240  # characters of what a library had to say


class StreamError(ValueError):
    """A sentence that is complete: nobody adds to it on the way."""


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
        ValueError,
    ) as error:  # fmt: skip
        raise StreamError(f"{name} cannot be read: {told(error)}") from error
