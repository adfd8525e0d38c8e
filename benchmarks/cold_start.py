"""The first fit on a new machine: ``python -m benchmarks.cold_start`` prints CPU seconds of processes without compiled kernels.

Each model fits some rows in a process of its own, with an empty cache. Then two processes begin at once on one empty cache:
kernels that both compile would be compiled twice, and are counted. Last comes a grid search with two workers. The byte code of
the package is there, as pip leaves it; what is measured is the import of it and of its dependencies, compiling, and the fit.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import headwater

SOURCE = Path(headwater.__file__).parent.parent

# Programs that fit; rows are few, since what is measured is compiling.
ROWS = "import numpy as np; import headwater as hw; rng = np.random.default_rng(0); X = rng.normal(size=(400, 3))\n"
FITS = {
    "GaussianMixture": "hw.GaussianMixture(3, random_state=0).fit(X)",
    "MultinomialMixture": "hw.MultinomialMixture(3, random_state=0).fit(rng.poisson(2.0, size=(400, 8)).astype(float))",
    "MarkovMixture": "hw.MarkovMixture(2, random_state=0).fit([rng.integers(4, size=12) for _ in range(60)])",
    "RegressionMixture": "hw.RegressionMixture(2, random_state=0).fit(X, X @ np.ones(3))",
    "GaussianHMM": "hw.GaussianHMM(3, random_state=0).fit(X)",
    "CategoricalHMM": "hw.CategoricalHMM(3, random_state=0).fit(rng.integers(5, size=(400, 1)))",
    "LatentDirichletAllocation": (
        "hw.LatentDirichletAllocation(3, random_state=0).fit(rng.poisson(1.0, size=(60, 20)).astype(float))"
    ),
    "ItakuraSaitoNMF": "hw.ItakuraSaitoNMF(3, random_state=0).fit(rng.gamma(1.0, size=(60, 8)))",
    "StudentMixture": "hw.StudentMixture(3, random_state=0).fit(X)",
    "VonMisesFisherMixture": "hw.VonMisesFisherMixture(3, random_state=0).fit(X)",
    "PoissonMixture": "hw.PoissonMixture(2, random_state=0).fit(rng.poisson(3.0, size=(400, 3)).astype(float))",
    "BernoulliMixture": "hw.BernoulliMixture(2, random_state=0).fit((X > 0.0) * 1.0)",
    "CategoricalMixture": "hw.CategoricalMixture(2, random_state=0).fit(rng.integers(4, size=(400, 3)).astype(float))",
    "MixedMixture": (
        "hw.MixedMixture(2, columns={1: 'poisson'}, random_state=0).fit(np.column_stack([X[:, 0], rng.poisson(3.0, size=400)]))"
    ),
    "DirectionOfArrival": (
        "hw.DirectionOfArrival(random_state=0).fit(rng.normal(size=(200, 4)) + 1j * rng.normal(size=(200, 4)))"
    ),
}
GRID = """
from sklearn.model_selection import GridSearchCV
GridSearchCV(hw.GaussianMixture(random_state=0), {"n_components": [1, 2, 3]}, n_jobs=2, cv=2).fit(X)
"""
# Prints the names of the kernels that this process has compiled.
COUNT = """
from numba.core import event
import json
class Names(event.Listener):
    found = []
    def on_start(self, happening):
        kernel = (happening.data or {}).get("dispatcher")
        if "headwater" in getattr(kernel, "__module__", "") and type(kernel).__name__ == "_Kernel":
            self.found.append(f"{kernel.__module__}.{kernel.__name__}{happening.data.get('args')}")
    def on_end(self, happening):
        pass
event.register("numba:compile", Names())
"""


def start(program: str, cache: Path) -> subprocess.Popen[str]:
    """Start a process on a cache of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": f"{cache}", "PYTHONPATH": f"{SOURCE}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def measure(program: str) -> tuple[float, float]:
    """Run a program on an empty cache; return its CPU seconds, with those of its workers, and the seconds of a clock."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    with TemporaryDirectory() as folder:
        process = start(program, Path(folder))
        process.communicate()
        if process.returncode:
            raise SystemExit(f"this program failed:\n{program}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, perf_counter() - begin


def count_compiled_twice(program: str) -> tuple[int, int]:
    """Start a program twice together, on one empty cache; return how many kernels were compiled, and how many twice."""
    program = f"{COUNT}{program}\nprint(json.dumps(Names.found))"
    with TemporaryDirectory() as folder:
        processes = [start(program, Path(folder)) for _ in range(2)]
        found = Counter(name for one in processes for name in json.loads(one.communicate()[0].splitlines()[-1]))
    return len(found), sum(number > 1 for number in found.values())


def main(names: Sequence[str]) -> None:
    """Print a table."""
    compileall.compile_dir(SOURCE / "headwater", quiet=1)
    print("| first fit | CPU s | clock s |\n|---|---|---|")
    for name in names:
        print("| {} | {:.1f} | {:.1f} |".format(name, *measure(ROWS + FITS[name])), flush=True)
    print("| GridSearchCV, two workers | {:.1f} | {:.1f} |".format(*measure(ROWS + GRID)), flush=True)
    compiled, twice = count_compiled_twice(ROWS + FITS["GaussianMixture"])
    print(f"two processes at once: {compiled} kernels compiled, {twice} of them twice")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FITS), help="models; all by default")
    main(parser.parse_args().names)
