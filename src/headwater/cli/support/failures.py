"""How a command fails: one sentence on standard error, and an exit code that scripts can tell apart."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from typing import Any

import typer

from headwater.cli.support.advice import to_command_line_words
from headwater.cli.support.display import replace_control_characters

EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

# Exceptions whose messages are sentences for users; any other is a defect of ours, and says so.
EXPECTED_ERRORS = (ValueError, TypeError, OSError, MemoryError, ImportError, OverflowError, ArithmeticError, EOFError)


def error_sentence(error: BaseException) -> str:
    """Return what went wrong in one sentence."""
    if isinstance(error, CommandError):
        return to_command_line_words(" ".join(error.format_message().split()))
    if isinstance(error, MemoryError) and not str(error):
        return "there is not enough memory for this"
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        if not where and error.errno in WRITE_ERRORS:  # what is written to files has their names
            where = "standard output cannot be written: "
        text = f"{where}{error.strerror}"
    else:
        text = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, EXPECTED_ERRORS):
        return f"unexpected {type(error).__name__}: {text} (run again with --debug for the trace)"
    return to_command_line_words(text)


def print_message(text: str) -> None:
    """Say one sentence on standard error."""
    line = replace_control_characters(text).rstrip().rstrip(".") + "."
    print(f"headwater: {line}", file=sys.stderr)


# typer has click within, or beside it, depending on its age; these are its errors either way.
_CLICK = {kind.__name__: kind for kind in typer.BadParameter.__mro__}
CommandError: Any = _CLICK["ClickException"]


def usage_error(text: str) -> Exception:
    """Return the error of a command that makes no sense as it was given."""
    error: Exception = _CLICK["UsageError"](text)
    return error


def report_failure(error: BaseException, debug: bool) -> int:
    """Tell of an error and return the exit code that goes with it."""
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
    """Point standard output nowhere: who read it has gone, and Python would complain when it flushes at exit."""
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
    """Whether whoever read standard output has gone."""
    return _silenced


_silenced = False


def print_warnings_in_one_line() -> None:
    """Print warnings of the library the way errors are printed."""

    def show(message: Any, *rest: Any, **more: Any) -> None:
        print_message("note: " + to_command_line_words(" ".join(str(message).split())))

    warnings.showwarning = show
