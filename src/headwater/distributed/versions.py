"""Versions: the client and all workers must have the same headwater, whenever a worker joins."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from headwater.distributed.clusters import ClusterError, ask_workers

if TYPE_CHECKING:
    from distributed import Client


def version() -> str:
    """Return the version of headwater in this process."""
    return str(import_module("headwater").__version__)


def check_workers(client: Client) -> None:
    """Refuse workers that have another headwater, or none, before they get any task.

    Workers that die or do not answer are left out, as are those that join later: each task checks again.
    """
    found = list(ask_workers(client, version).values())
    for error in found:
        if isinstance(error, BaseException) and cannot_import(error):
            raise import_failure(error) from error
    here = version()
    others = sorted({one for one in found if isinstance(one, str)} - {here})
    if others:
        raise ClusterError(f"workers must have headwater {here}, as here, and some have {', '.join(others)}")


def call_checked(wanted: str, function: Callable[..., object], *given: object) -> object:
    """Call a function on a worker, if the worker has the wanted version."""
    here = version()
    if here != wanted:
        raise ClusterError(f"workers must have headwater {wanted}, as the client, and one has {here}")
    return function(*given)


def cannot_import(error: object) -> bool:
    """Whether a worker failed because it has no headwater, or a headwater without the function."""
    # By its words: Dask changes the type of errors while unpacking.
    text = str(error) if isinstance(error, Exception) else ""
    return "No module named 'headwater" in text or ("Can't get attribute" in text and "headwater" in text)


def import_failure(error: object) -> ClusterError:
    """Return the error for workers that cannot import headwater."""
    why = " ".join(str(error).split())[:500]
    return ClusterError(f"the workers cannot import headwater {version()}: install it where they run ({why})")
