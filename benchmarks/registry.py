"""The registry: each topic is a module of its own name with one function that yields lines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module

from benchmarks.line import Line
from benchmarks.scale import Scale
from benchmarks.timing import one_thread

Benchmark = Callable[[Scale], Iterator[Line]]

# In the order of a run: short and informative benchmarks come first.
TOPICS = (
    "passes", "files", "counts", "choices", "topics", "spectra", "arrivals", "chains", "scoring", "threads", "one_row",
    "small_fit",
    "row_sweep", "gaps", "imputation", "moment_matching", "startup", "memory", "converge", "refinement",
)  # fmt: skip

_registered: dict[str, Benchmark] = {}


def benchmark(function: Benchmark) -> Benchmark:
    """Register a benchmark under the name of its function."""
    _registered[function.__name__] = function
    return function


def find(name: str) -> Benchmark:
    """Return the benchmark of this name, loading its module."""
    if name not in TOPICS:
        raise ValueError(f"{name!r} is no benchmark: choose from {', '.join(TOPICS)}")
    import_module(f"benchmarks.{name}")
    return _registered[name]


def run(name: str, scale: Scale) -> Iterator[Line]:
    """Yield the lines of one benchmark, on one thread and without warnings about passes cut short on purpose."""
    from sklearn.exceptions import ConvergenceWarning

    work = find(name)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield from work(scale)
