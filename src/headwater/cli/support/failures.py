"""How a command fails: one sentence on standard error, and an exit code for scripts."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import Any

import typer

from headwater.cli.support.advice import to_command_line_words
from headwater.cli.support.display import replace_control_characters

EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

# Exceptions whose messages are sentences for users. Any other is a defect of headwater, and is reported as one.
EXPECTED_ERRORS = (ValueError, TypeError, OSError, MemoryError, ImportError, OverflowError, ArithmeticError, EOFError)


NO_ROOM = "Unable to allocate "  # NumPy's message, before the size
NOT_ENOUGH_MEMORY = (
    "there is not enough memory for this{}: use fewer columns (--columns, --exclude), fewer components (-k), or, for wide "
    "rows of numbers, --set covariance_type=diag"
)


def _size_of(text: str) -> str:
    """The size that NumPy could not allocate, in parentheses; empty if the message has none."""
    words = text.removeprefix(NO_ROOM).split()[:2] if text.startswith(NO_ROOM) else []
    return f" ({' '.join(words)} were asked for)" if words else ""


def error_sentence(error: BaseException) -> str:
    """Return the message of an error as one sentence."""
    if isinstance(error, CommandError):
        return to_command_line_words(" ".join(error.format_message().split()))
    if isinstance(error, MemoryError) and (not str(error) or str(error).startswith(NO_ROOM)):
        return NOT_ENOUGH_MEMORY.format(_size_of(str(error)))
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        if not where and error.errno in WRITE_ERRORS:  # errors of files have their names
            where = "standard output cannot be written: "
        text = f"{where}{error.strerror}"
    else:
        text = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, EXPECTED_ERRORS):
        return f"unexpected {type(error).__name__}: {text} (run again with --debug for the traceback)"
    return to_command_line_words(text)


def print_message(text: str) -> None:
    """Print one sentence to standard error."""
    line = replace_control_characters(text).rstrip().rstrip(".") + "."
    print(f"headwater: {line}", file=sys.stderr)


# Depending on its version, typer contains click or imports it; the base classes of its errors are found either way.
_CLICK = {kind.__name__: kind for kind in typer.BadParameter.__mro__}
CommandError: Any = _CLICK["ClickException"]


def usage_error(text: str) -> Exception:
    """Return the error of a command that was given wrong arguments."""
    error: Exception = _CLICK["UsageError"](text)
    return error


def report_failure(error: BaseException, debug: bool) -> int:
    """Print an error and return its exit code."""
    if isinstance(error, KeyboardInterrupt):
        print_message("interrupted")
        return EXIT_INTERRUPTED
    if isinstance(error, BrokenPipeError):
        silence_output()
        return 0
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    else:
        print_message(error_sentence(error))
    return EXIT_FAILURE


def silence_output() -> None:
    """Redirect standard output to nowhere: its reader has closed it, and Python would fail to flush it at exit."""
    global _silenced
    _silenced = True
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def output_is_silenced() -> bool:
    """Whether the reader of standard output has closed it."""
    return _silenced


_silenced = False
