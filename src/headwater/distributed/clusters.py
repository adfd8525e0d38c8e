"""Clusters: the one that was handed in, one at an address, or one on this machine for as long as it is needed."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from headwater.core.validation import one_line

WAIT = 60.0  # seconds that a cluster may be without a single worker
ANSWER = 5.0  # ... that workers are given to answer a question, which is no task
SILENT = logging.CRITICAL + 1
SCHEMES = ("tcp://", "tls://", "ucx://", "ws://", "wss://", "inproc://")

# Why a scheduler gives up tasks, in its words and in ours, and what to do about it.
AGAIN = "run this again, and it goes on from the checkpoint if there is one"
LOST_DATA = "data that was put on workers, and cannot be made again, was lost with one of them: put it there again"
CANCELLED = {
    "scheduler-connection-lost": f"the scheduler was lost: {AGAIN}",
    "scheduler-restart": f"the scheduler was restarted: {AGAIN}",
    "lost dependencies": LOST_DATA,
    "already forgotten": LOST_DATA,
}


class ClusterError(ConnectionError):
    """The cluster failed, and neither the model nor the data is at fault: another run may do better."""


def _library() -> Any:
    """Return the library, or say how to get it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("many machines need Dask: pip install 'headwater[dask]'") from error
    return distributed


@contextmanager
def connection_needed() -> Iterator[None]:
    """Say in a sentence why the scheduler does nothing more of what it was asked for."""
    from distributed.comm.core import CommClosedError

    try:
        yield
    except CommClosedError as error:  # of the scheduler: what workers fail to answer is left out
        raise ClusterError(f"the scheduler was lost: {AGAIN}") from error
    except CancelledError as error:
        reason = getattr(error, "reason", "unknown")
        raise ClusterError(CANCELLED.get(reason, f"tasks were cancelled ({reason}): {AGAIN}")) from error


def answers(client: Any, question: Callable[[], Any]) -> dict[str, Any]:
    """Return what workers answer, by their addresses: exceptions for those who fail to, and nothing if one is too slow.

    A worker may die while it is asked, or be stuck, and neither ends a run.
    """
    try:
        # Called in the client's loop, `run` is a coroutine, which can be given a time.
        found: dict[str, Any] = client.sync(client.run, question, on_error="return", callback_timeout=ANSWER)
    except TimeoutError:
        return {}
    return found


@contextmanager
def connect(where: str = "local", security: Any = None) -> Iterator[Any]:
    """Yield a client of a cluster, and close what was opened for it.

    Parameters
    ----------
    where : str, default="local"
        ``"local"`` starts a worker process on each core of this machine, ``"local:4"`` starts four; ``"tcp://host:port"`` and
        ``"tls://host:port"`` are addresses of a scheduler that runs.
    security : distributed.Security, optional
        Keys and certificates, such as `tls` makes of files. Whoever can reach a scheduler can run anything on its workers, so a
        cluster on a network that others use wants TLS.

    Yields
    ------
    client : distributed.Client
        The client.

    Examples
    --------
    >>> import headwater as hw
    >>> with hw.distributed.connect("local:2") as client:  # doctest: +SKIP
    ...     model = hw.distributed.fit(hw.GaussianMixture(8), "days/*.parquet", client=client)
    """
    workers = workers_of(where)
    distributed = _library()
    if workers is None:
        with _silence(), _client_at(where, security) as client:
            yield client
        return
    with (
        _silence(),
        _deaf_loop() as loop,
        _started(workers, security, loop) as cluster,
        distributed.Client(cluster, security=security) as client,
    ):
        yield client


def _started(workers: int, security: Any, loop: Any) -> Any:
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # this is a worker, which reads the script that starts workers
    page = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}  # otherwise a fixed port, open to the network
    try:
        return _library().LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            scheduler_kwargs=page,
            silence_logs=SILENT,
            security=security,
            loop=loop,
        )
    except (OSError, RuntimeError) as error:
        why = " ".join(str(error).split())[:200]
        if not hasattr(sys.modules.get("__main__"), "__file__"):
            guard = ""
        else:
            guard = "; in a script, put the call under `if __name__ == '__main__':`, since workers begin by reading the script"
        number = f"{workers} worker{'s' * (workers != 1)}"
        raise ClusterError(f"{number} could not be started on this machine: {why}{guard}") from error


def workers_of(where: str) -> int | None:
    """Return how many workers are to be started on this machine, or None for the address of a scheduler that runs.

    Examples
    --------
    >>> from headwater.distributed.clusters import workers_of
    >>> workers_of("local:4"), workers_of("tcp://host:8786")
    (4, None)
    """
    local = re.fullmatch(r"local(?::([1-9][0-9]{0,5}))?", where) if isinstance(where, str) else None
    if local is not None:
        return int(local[1]) if local[1] else _cores()
    if isinstance(where, str) and where.startswith(SCHEMES):
        return None
    raise ValueError(f"a cluster must be 'local', 'local:4' or an address such as 'tcp://host:8786', got {one_line(where)}")


def _client_at(where: str, security: Any) -> Any:
    try:
        return _library().Client(where, security=security, timeout=WAIT / 4)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        why = " ".join(str(error).split())[:200]
        if "ssl_context" in why:
            why = "it wants certificates, and neither security= nor the configuration of Dask has any"
        raise ClusterError(f"no scheduler can be reached at {where}: {why}") from error


@contextmanager
def _silence() -> Iterator[None]:
    """Keep logs off the terminal: workers that die are replaced, and whoever waits for tasks tells what became of them."""
    from distributed.utils import silence_logging_cmgr

    with silence_logging_cmgr(SILENT), silence_logging_cmgr(SILENT, root="distributed.client"):
        yield


def tls(ca_file: str, cert: str, key: str | None = None) -> Any:
    """Return what secures a connection: the certificate of an authority, and a certificate of one's own with its key.

    Parameters
    ----------
    ca_file, cert : str
        Files in the PEM format. Only a scheduler whose certificate is signed by the authority is trusted, and the same is
        asked of this side.
    key : str, optional
        File of the key of `cert`, if it is not in the same file.

    Returns
    -------
    security : distributed.Security
        What `connect` takes, and `distributed.Client`.
    """
    for name, path in (("ca_file", ca_file), ("cert", cert), ("key", key)):
        if path is not None and not Path(path).is_file():
            raise FileNotFoundError(f"{name} of TLS must be a file, and there is no {path}")
    roles = ("client", "scheduler", "worker")  # a cluster on this machine has all of them
    own = {f"tls_{role}_{part}": path for role in roles for part, path in (("cert", cert), ("key", key))}
    security = _library().Security(tls_ca_file=ca_file, require_encryption=True, **own)
    try:
        security.get_connection_args("client")
    except OSError as error:  # as all errors of ssl are
        raise ValueError(f"{ca_file}, {cert} and {key or 'its key'} are no certificates that go together: {error}") from error
    return security


@contextmanager
def _deaf_loop() -> Iterator[Any]:
    """Yield an event loop whose processes do not hear Ctrl-C.

    A terminal sends it to workers, too, and all of them would print where they were, while the client decides what becomes
    of them. A process is born with the signals blocked that its parent thread has blocked.
    """
    from distributed.utils import LoopRunner

    runner = LoopRunner(asynchronous=False)
    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()  # it unblocks signals in the thread that starts it, which must not be the loop's
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            runner.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    else:
        runner.start()
    try:
        yield runner.loop
    finally:
        runner.stop()


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def opened(client: Any) -> Any:
    """Return a context with a client: the one given, or that of a cluster which is started and closed."""
    if client is None or isinstance(client, str):
        return connect("local" if client is None else client)
    if not isinstance(client, _library().Client):
        if hasattr(client, "get_client") and hasattr(client, "scheduler_address"):  # a cluster
            return client.get_client()
        raise TypeError(f"client must be a client or a cluster of Dask, or the address of one, got {type(client).__name__}")
    if client.asynchronous:
        raise TypeError("client must not be asynchronous: fit waits for what workers do")
    if client.status != "running":
        raise ClusterError(f"the client is {client.status}, and should be running: make a new one")
    return nullcontext(client)
