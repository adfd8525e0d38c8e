"""What figures were taken on, and whether code has changed since."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "threadpoolctl", "hmmlearn")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe() -> dict[str, Any]:
    """Return machine, versions, date, load and threads."""
    import headwater

    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "load_average": os.getloadavg()[0],
        "threads": "1 for both sides (threadpoolctl, n_threads=1), but for the lines that name another number",
        "python": platform.python_version(),
        "headwater": f"{headwater.__version__} ({revision()})",
        **{name: installed(name) for name in PACKAGES},
    }


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def revision() -> str:
    """The commit of the source, with a plus if files were changed since; docs, which pages are written to, does not count."""
    commit = _git("describe", "--always")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":(exclude)docs")
    return f"{commit}{'+' if changed else ''}" if commit else "no commit"


def changed_files(commit: str, *paths: str) -> int | None:
    """How many files beneath the paths differ from a commit; None if that is not known."""
    found = _git("diff", "--name-only", commit.rstrip("+"), "HEAD", "--", *paths)
    return None if found is None else len(found.splitlines())


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).resolve().parents[1]), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
