"""Peak memory of this process. Linux can reset the peak; elsewhere it is the peak since the start of the process."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from pathlib import Path


def peak_memory() -> float | None:
    """Return the peak memory of this process in bytes; None where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024.0 * float(line.split()[1])
    try:
        import resource
    except ImportError:
        return None
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def reset_peak_memory() -> float | None:
    """Reset the peak to the memory held now, where the system can; return it."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)  # glibc: return freed memory, or its reuse would not count
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def memory_since(before: float | None) -> float | None:
    """Return the growth of the peak in bytes."""
    now = peak_memory()
    return None if before is None or now is None else now - before
