"""Turns: contenders alternate, so that a slow minute of the machine affects all of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds of the best and of the median repeat."""

    best: float
    median: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        return cls(min(seconds), median(seconds))

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return seconds and result of one call."""
    begin = perf_counter()
    result = work(*arguments)
    return perf_counter() - begin, result


def interleave(contenders: dict[Any, Callable[[int], Any]], repeats: int) -> dict[Any, Timing]:
    """Time A B A B ...; each contender is called with the number of the repeat."""
    seconds: dict[Any, list[float]] = {name: [] for name in contenders}
    for repeat in range(repeats):
        gc.collect()
        for name, work in contenders.items():
            seconds[name].append(timed(work, repeat)[0])
    return {name: Timing.of(values) for name, values in seconds.items()}


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread. Ours are limited where models are made, by `n_threads=1`."""
    # Only libraries that are loaded can be limited.
    import scipy.linalg  # noqa: F401
    import sklearn.cluster
    import sklearn.mixture  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
