"""Clusters: the one that was handed in, one at an address, or one on this machine for as long as it is needed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from headwater.validation import one_line

WAIT = 60.0  # seconds that a cluster may be without a single worker
SCHEMES = ("tcp://", "tls://", "ucx://", "ws://", "wss://", "inproc://")


def _library() -> Any:
    """Return the library, or say how to get it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("many machines need Dask: pip install 'headwater[dask]'") from error
    return distributed


@contextmanager
def connect(where: str = "local", security: Any = None) -> Iterator[Any]:
    """Yield a client of a cluster, and close what was opened for it.

    Parameters
    ----------
    where : str, default="local"
        ``"local"`` starts a worker process on each core of this machine, ``"local:4"`` starts four; ``"tcp://host:port"`` and
        ``"tls://host:port"`` are addresses of a scheduler that runs.
    security : distributed.Security, optional
        Keys and certificates. Whoever can reach a scheduler can run anything on its workers, so a cluster on a network that
        others use wants TLS.

    Yields
    ------
    client : distributed.Client
        The client.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(4000, 2))
    >>> with hw.distributed.connect("local:2") as client:  # doctest: +SKIP
    ...     model = hw.distributed.fit(hw.GaussianMixture(2), rows, client=client)
    """
    distributed = _library()
    local = re.fullmatch(r"local(?::([1-9][0-9]*))?", where) if isinstance(where, str) else None
    if local is None and not (isinstance(where, str) and where.startswith(SCHEMES)):
        raise ValueError(f"a cluster must be 'local', 'local:4' or an address such as 'tcp://host:8786', got {one_line(where)}")
    if local is None:
        try:
            client = distributed.Client(where, security=security, timeout=WAIT / 4)
        except (OSError, ValueError, TypeError) as error:
            raise ConnectionError(f"no scheduler can be reached at {where}: {' '.join(str(error).split())[:200]}") from error
        with client:
            yield client
        return
    workers = int(local[1]) if local[1] else _cores()
    options = {"n_workers": workers, "threads_per_worker": 1, "security": security}
    # Without an address, the scheduler would serve its page to all who can reach this machine, and complain of another's port.
    options |= {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, security=security) as client:
        yield client


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def opened(client: Any) -> Any:
    """Return a context with a client: the one given, or that of a cluster which is started and closed."""
    if client is None or isinstance(client, str):
        return connect(client or "local")
    if not isinstance(client, _library().Client):
        raise TypeError(f"client must be a distributed.Client, or the address of a scheduler, got {type(client).__name__}")
    return nullcontext(client)
