"""Free memory, and the refusal of tables that are too wide for it: Arrow's readers need memory for each column."""

from __future__ import annotations

import os

from headwater.io.read_errors import StreamError

UNCHECKED_COLUMNS = 10_000  # a table with fewer columns always fits
BYTES_PER_COLUMN = 20_000  # measured: 8,500 for each reader of a column, and there are two


def available_memory() -> int | None:
    """Return the free bytes, or None where the system does not tell."""
    known = [found for found in (_free_memory(), _unused_limit()) if found is not None]
    return min(known, default=None)


def refuse_too_wide(columns: int, name: str) -> None:
    """Refuse a table with so many columns that reading it would exhaust memory."""
    free = available_memory() if columns > UNCHECKED_COLUMNS else None
    if free is not None and columns * BYTES_PER_COLUMN > free:
        raise StreamError(
            f"{name} has {columns:,} columns, which take about {columns * BYTES_PER_COLUMN / 1e9:.1f} GB to read, and there is "
            f"room for {free / 1e9:.1f} GB: store it as .npy or .npz, or as .svm if most values are zero"
        )


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return None


def _unused_limit() -> int | None:
    """Return the bytes that are left of the limit of this process (`ulimit -v`), if it has one."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        with open("/proc/self/statm") as file:
            return max(0, limit - int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE"))
    except (ImportError, OSError, ValueError):
        return None
