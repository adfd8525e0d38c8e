"""The journal of a process: one line for each event of its life, and no rows of the data."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from typing import TextIO

PLAIN = re.compile(r"[\w.:/+-]+", re.ASCII)
WARNINGS = (
    "fallback",
    "log_cut",
    "refused",
    "merge_refused",
    "retry",
    "failed",
    "gap",
    "undelivered",
    "rejected",
)  # which are written even if it is to be quiet


class Journal:
    """Writes lines such as ``2026-05-01T12:00:00Z snapshot events=4096 seconds=0.07``.

    Parameters
    ----------
    quiet : bool
        Whether to write warnings alone.
    file : text file, optional
        Where to write; standard error by default.
    """

    def __init__(self, quiet: bool = False, file: TextIO | None = None) -> None:
        self._quiet, self._file = quiet, file

    def __call__(self, kind: str, **parts: object) -> None:
        """Write that something happened."""
        if self._quiet and kind not in WARNINGS:
            return
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        told = "".join(f" {name}={_text(value)}" for name, value in parts.items())
        print(f"{moment} {kind}{told}", file=self._file or sys.stderr, flush=True)


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if PLAIN.fullmatch(text) else json.dumps(text)
