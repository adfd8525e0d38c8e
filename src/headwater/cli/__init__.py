"""The command line: one command a file, and nothing loaded before it is needed."""

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
        0 if all went well, 1 if data or a model were at fault, 2 if the command was, 130 if it was interrupted.
    """
    from headwater.cli.app import run

    return run(argv)
