"""Identities: what tells one run from another, in words that a checkpoint keeps, whichever process is asked."""

from __future__ import annotations

import hashlib
import math
import numbers
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwater.checkpoints import RECORD
from headwater.diagnostics.distributed_report import DistributedReport, Round
from headwater.distributed.messages import Unread
from headwater.io.files import container

MOST_ROWS = 10**15  # that a file may be said to have had


def parameters_of(model: Any) -> dict[str, str]:
    """Return the parameters of a model in words that say the same tomorrow: no places in memory, and no dots for numbers."""
    return {name: _word(name, value) for name, value in model.get_params(deep=False).items()}


def _word(name: str, value: Any) -> str:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        return f"array {array.shape} {array.dtype} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_word(name, one) for one in value)}]"
    if name == "random_state" and value is not None and not isinstance(value, numbers.Integral):
        return type(value).__name__  # what it drew for this run is in the checkpoint
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def missing_before(path: str | Path) -> dict[str, int | None]:
    """Return the files that the run of a checkpoint could not read, with the rows they were said to have."""
    try:
        header, _ = container.read(Path(path))
        return _again(header["extra"][RECORD]["more"]["again"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # whoever goes on from it will say what is wrong


def _again(found: Any) -> dict[str, int | None]:
    if type(found) is not dict or not all(rows is None or _whole(rows, MOST_ROWS) for rows in found.values()):
        raise ValueError("files that could not be read")
    return dict(found)


def _whole(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


@dataclass(frozen=True)
class More:
    """What a checkpoint says of a run beside model and position."""

    rounds: tuple[Round, ...]
    unread: tuple[Unread, ...]
    trace: tuple[float, ...]
    key: int
    runs: int
    converged: bool


def checked_more(more: Any, path: Path, parts: int, runs: int) -> More:
    """Return what a checkpoint says of a run of so many parts and starts, or refuse what none has written."""
    try:
        unread = tuple(Unread(*one) for one in more["unread"])
        numbers = [one.number for one in unread]
        trace = tuple(more["trace"])
        found = More(
            DistributedReport.from_dict(more["report"]).rounds, unread, trace, more["key"], more["runs"], more["converged"]
        )
        _again(more["again"])
        fine = (
            all(_whole(number, parts - 1) for number in numbers)
            and len(set(numbers)) == len(numbers)
            and all(type(text) is str for one in unread for text in (one.name, one.sentence))
            and all(type(value) is float and math.isfinite(value) for value in trace)
            and _whole(found.key, 2**63 - 1)
            and _whole(found.runs, runs)
            and type(found.converged) is bool
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        fine = False
    if not fine:
        raise ValueError(f"the checkpoint {path} is damaged: it does not say what the run had done; remove it to begin anew")
    return found
