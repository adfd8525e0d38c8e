"""Starting: imports, a small fit in a new process with compiled kernels, and the first fit ever without them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.line import Line, at_most, times
from benchmarks.process import PACKAGE, Finished, run_python
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import Timing, interleave

SMALL_FIT = """
import numpy as np
from {package} import GaussianMixture
rows = np.random.default_rng(0).normal(size=(150, 4)) + 4.0 * np.arange(3).repeat(50)[:, None]
GaussianMixture(3, random_state=0).fit(rows)
"""
OURS, PEER = (SMALL_FIT.format(package=package) for package in ("headwater", "sklearn.mixture"))


@benchmark
def startup(scale: Scale) -> Iterator[Line]:
    programs = {
        "bare": "pass",
        "ours": "import headwater",
        "estimator": "from headwater import GaussianMixture",
        "peer": "from sklearn.mixture import GaussianMixture",
        "our fit": OURS,
        "peer's fit": PEER,
    }
    for program in (OURS, PEER):  # compiles, and fills the file system's cache
        run_python("-c", program)
    timings = interleave({name: start(program) for name, program in programs.items()}, scale.repeats)
    bare = timings["bare"]
    peer = less(timings["peer"], bare)
    yield times(
        "import headwater", less(timings["ours"], bare), peer, target=at_most(0.5),
        note="less a bare python; peer: import of its GaussianMixture, which ours loads when first used",
    )  # fmt: skip
    yield times("from headwater import GaussianMixture", less(timings["estimator"], bare), peer, note="less a bare python")
    yield times(
        "small fit in a new process, warm cache", timings["our fit"], timings["peer's fit"], target=at_most(3),
        note="the whole process",
    )  # fmt: skip
    cold = [first_fit() for _ in range(max(1, scale.repeats - 1))]
    told = all("compiling" in run.errors for run in cold)
    yield times(
        "first fit ever, cold cache", Timing.of([run.seconds for run in cold]), timings["peer's fit"],
        target=at_most(10), note=f"the whole process; {'says' if told else 'DOES NOT SAY'} that it compiles",
    )  # fmt: skip


def start(program: str) -> Callable[[int], Finished]:
    return lambda repeat: run_python("-c", program)


def less(timing: Timing, bare: Timing) -> Timing:
    return Timing(timing.best - bare.best, timing.median - bare.median)


def first_fit(program: str = OURS) -> Finished:
    """Run a fit with a copy of the package that has no compiled kernels, nor compiled Python."""
    with TemporaryDirectory() as folder:
        shutil.copytree(PACKAGE, Path(folder) / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
        return run_python("-c", program, path=Path(folder), own_cache=True)
