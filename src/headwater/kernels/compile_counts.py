"""How many kernels this process has compiled, and how many it has found compiled."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.kernels._cache import cache_directory
from headwater.kernels._jit import kernels


@dataclass(frozen=True)
class CompileCounts:
    """Kernels, one for each combination of types, that were compiled or loaded; the directories that keep them."""

    compiled: int
    loaded: int
    directories: tuple[str, ...]


def compile_counts() -> CompileCounts:
    """Return the counts of this process."""
    used = [one for one in kernels() if one.signatures]
    return CompileCounts(
        sum(sum(one.stats.cache_misses.values()) for one in used),
        sum(sum(one.stats.cache_hits.values()) for one in used),
        tuple(sorted({path for one in used if (path := cache_directory(one))})),
    )


def unused_kernels() -> list[str]:
    """Return the names of the kernels that Python calls and this process has not called, nor compiled for others."""
    return sorted(f"{one.__module__}.{one.__name__}" for one in kernels() if not one.signatures)
