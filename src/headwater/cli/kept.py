"""Columns that go from the data to the output as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.cli.failures import usage
from headwater.cli.options import Reading


def kept_columns(data: Sequence[str], reading: Reading, names: Sequence[str]) -> Callable[[int], dict[str, Any]]:
    """Return a function that gives the next so many rows of these columns."""
    if names:
        raise usage("--keep is not there yet")
    return lambda rows: {}
