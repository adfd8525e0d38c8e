"""Clients of Dask clusters: one that was passed in, one at an address, or a temporary cluster on this machine."""

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
from typing import TYPE_CHECKING

from headwater.core.validation import one_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import ModuleType

    from distributed import Client, LocalCluster

    pass

WORKER_WAIT = 60.0  # seconds that a cluster may be without workers: they may be starting
ANSWER_WAIT = 5.0  # seconds for workers to answer a request outside of tasks
SILENT_LEVEL = logging.CRITICAL + 1  # above every level that is logged
SCHEMES = ("tcp://", "tls://", "ucx://", "ws://", "wss://", "inproc://")

# Reasons of a scheduler to cancel tasks, and messages for the user.
RETRY_ADVICE = "run this again, and it continues from the checkpoint if there is one"
LOST_DATA_ADVICE = "data that was put on workers, and cannot be made again, was lost with one of them: put it there again"
CANCEL_REASONS = {
    "scheduler-connection-lost": f"the scheduler was lost: {RETRY_ADVICE}",
    "scheduler-restart": f"the scheduler was restarted: {RETRY_ADVICE}",
    "lost dependencies": LOST_DATA_ADVICE,
    "already forgotten": LOST_DATA_ADVICE,
}


class ClusterError(ConnectionError):
    """The cluster failed, and neither the model nor the data is at fault: another run may do better.

    Examples
    --------
    >>> from headwater.distributed import ClusterError
    >>> issubclass(ClusterError, ConnectionError)
    True
    """


def _import_distributed() -> ModuleType:
    """Return the module `distributed`, or say how to install it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("many machines need Dask: pip install 'headwater[dask]'") from error
    return distributed


@contextmanager
def explain_lost_connection() -> Iterator[None]:
    """Turn a lost connection or cancelled tasks into an error of one sentence."""
    from distributed.comm.core import CommClosedError

    try:
        yield
    except CommClosedError as error:  # of the scheduler; errors of workers are handled elsewhere
        raise ClusterError(f"the scheduler was lost: {RETRY_ADVICE}") from error
    except CancelledError as error:
        reason = getattr(error, "reason", "unknown")
        raise ClusterError(CANCEL_REASONS.get(reason, f"tasks were cancelled ({reason}): {RETRY_ADVICE}")) from error


def ask_workers(client: Client, question: Callable[[], object]) -> dict[str, object]:
    """Return the answers of workers by their addresses: exceptions of those that fail, and nothing if one is too slow.

    A worker may die or hang meanwhile; this does not end a run.
    """
    try:
        # In the loop of the client, `run` is a coroutine, which can have a timeout.
        found: dict[str, object] = client.sync(client.run, question, on_error="return", callback_timeout=ANSWER_WAIT)
    except TimeoutError:
        return {}
    return found


@contextmanager
def connect(where: str = "local", security: object = None) -> Iterator[Client]:
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
    distributed = _import_distributed()
    if workers is None:
        with _silence_logs(), _connect_client(where, security) as client:
            yield client
        return
    with (
        _silence_logs(),
        _loop_without_interrupts() as loop,
        _start_local_cluster(workers, security, loop) as cluster,
        distributed.Client(cluster, security=security) as client,
    ):
        yield client


def _start_local_cluster(workers: int, security: object, loop: object) -> LocalCluster:
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # a worker imports the script that starts workers
    page = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}  # otherwise a fixed port, open to the network
    try:
        return _import_distributed().LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            scheduler_kwargs=page,
            silence_logs=SILENT_LEVEL,
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
        return int(local[1]) if local[1] else _available_cores()
    if isinstance(where, str) and where.startswith(SCHEMES):
        return None
    raise ValueError(f"a cluster must be 'local', 'local:4' or an address such as 'tcp://host:8786', got {one_line(where)}")


def _connect_client(where: str, security: object) -> Client:
    try:
        return _import_distributed().Client(where, security=security, timeout=WORKER_WAIT / 4)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        why = " ".join(str(error).split())[:200]
        if "ssl_context" in why:
            why = "it wants certificates, and neither security= nor the configuration of Dask has any"
        raise ClusterError(f"no scheduler can be reached at {where}: {why}") from error


@contextmanager
def _silence_logs() -> Iterator[None]:
    """Keep Dask's logs off the terminal: dead workers are replaced, and errors of tasks are reported by the client."""
    from distributed.utils import silence_logging_cmgr

    with silence_logging_cmgr(SILENT_LEVEL), silence_logging_cmgr(SILENT_LEVEL, root="distributed.client"):
        yield


def tls(ca_file: str, cert: str, key: str | None = None) -> object:
    """Return the security of a connection: the certificate of an authority, and your own certificate with its key.

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

    Examples
    --------
    >>> from headwater.distributed import tls
    >>> tls("ca.pem", "cert.pem")
    Traceback (most recent call last):
        ...
    FileNotFoundError: ca_file of TLS must be a file, and there is no ca.pem
    """
    for name, path in (("ca_file", ca_file), ("cert", cert), ("key", key)):
        if path is not None and not Path(path).is_file():
            raise FileNotFoundError(f"{name} of TLS must be a file, and there is no {path}")
    roles = ("client", "scheduler", "worker")  # a cluster on this machine has all of them
    own = {f"tls_{role}_{part}": path for role in roles for part, path in (("cert", cert), ("key", key))}
    security = _import_distributed().Security(tls_ca_file=ca_file, require_encryption=True, **own)
    try:
        security.get_connection_args("client")
    except OSError as error:  # as all errors of ssl are
        raise ValueError(f"{ca_file}, {cert} and {key or 'its key'} are no certificates that go together: {error}") from error
    return security


@contextmanager
def _loop_without_interrupts() -> Iterator[object]:
    """Yield an event loop whose child processes ignore Ctrl-C.

    A terminal sends Ctrl-C to the workers, too, and each would print a traceback; but the client decides when they
    end. A process inherits the blocked signals of the thread that starts it.
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


def _available_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def open_client(client: object) -> AbstractContextManager[Client]:
    """Return a context with a client: the one given, or that of a cluster that is started now and closed at the end."""
    if client is None or isinstance(client, str):
        return connect("local" if client is None else client)
    if not isinstance(client, _import_distributed().Client):
        if hasattr(client, "get_client") and hasattr(client, "scheduler_address"):  # a cluster
            return client.get_client()
        raise TypeError(f"client must be a client or a cluster of Dask, or the address of one, got {type(client).__name__}")
    if client.asynchronous:
        raise TypeError("client must not be asynchronous: fit waits for what workers do")
    if client.status != "running":
        raise ClusterError(f"the client is {client.status}, and should be running: make a new one")
    return nullcontext(client)
