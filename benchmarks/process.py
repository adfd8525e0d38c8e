"""Fresh Python processes, on one thread."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import headwater

PACKAGE = Path(headwater.__file__).parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Finished:
    """Wall seconds of a whole process, with the start of the interpreter, and its output."""

    seconds: float
    output: str
    errors: str


def run_python(*arguments: str, path: Path = PACKAGE.parent, own_cache: bool = False) -> Finished:
    """Run Python with headwater from `path`; with `own_cache`, compiled kernels are looked for only beside it."""
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(path)}
    if own_cache:
        environment.pop("NUMBA_CACHE_DIR", None)
    begin = perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)
    seconds = perf_counter() - begin
    if done.returncode != 0:
        raise RuntimeError(f"python {' '.join(arguments)[:80]} failed:\n{done.stderr}")
    return Finished(seconds, done.stdout, done.stderr)
