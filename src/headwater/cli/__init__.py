"""The command line: one file for each command; modules are loaded when they are needed."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    code : int
        0 for success, 1 for bad data or a bad model, 2 for a bad command, 130 if it was interrupted.
    """
    from headwater.cli.app import run

    return run(argv)
