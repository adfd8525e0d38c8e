"""Versions: all who learn one model have the same headwater, whenever they joined."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from headwater.distributed.clusters import ClusterError, answers


def version() -> str:
    """Return the version of this library that a worker has."""
    return str(import_module("headwater").__version__)


def check_workers(client: Any) -> None:
    """Refuse workers that have another headwater, or none, before they are given anything to do.

    Workers that die while they are asked, or do not answer, are left out, as are those that join later: each task looks, too.
    """
    found = list(answers(client, version).values())
    for error in found:
        if cannot_import(error):
            raise no_import(error) from error
    here = version()
    others = sorted({one for one in found if isinstance(one, str)} - {here})
    if others:
        raise ClusterError(f"workers must have headwater {here}, as here, and some have {', '.join(others)}")


def checked(wanted: str, function: Callable[..., Any], *given: Any) -> Any:
    """Call a function if the worker that this runs on has the version that is wanted."""
    here = version()
    if here != wanted:
        raise ClusterError(f"workers must have headwater {wanted}, as the client, and one has {here}")
    return function(*given)


def cannot_import(error: Any) -> bool:
    """Whether a worker failed because it has no headwater, or one without what it was asked for."""
    # By its words: Dask makes another kind of what a worker cannot even unpack.
    told = str(error) if isinstance(error, Exception) else ""
    return "No module named 'headwater" in told or ("Can't get attribute" in told and "headwater" in told)


def no_import(error: Any) -> ClusterError:
    """Return the error that says so."""
    why = " ".join(str(error).split())[:500]
    return ClusterError(f"the workers cannot import headwater {version()}: install it where they run ({why})")
