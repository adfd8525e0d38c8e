"""What the checkpoint of a distributed run holds beside the model: parameters in words, and the record of the run."""

from __future__ import annotations

import hashlib
import math
import numbers
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.checkpoints import RECORD
from headwater.diagnostics.distributed_report import DistributedReport, Round
from headwater.distributed.messages import Unread
from headwater.io.files import container

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


MOST_ROWS = 10**15  # of a file: a larger number is a damaged checkpoint


def parameter_words(model: StreamingEstimator) -> dict[str, str]:
    """Return the parameters of a model as texts that are the same in every process: no addresses, no abridged arrays."""
    return {name: _word(name, value) for name, value in model.get_params(deep=False).items()}


def _word(name: str, value: object) -> str:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        return f"array {array.shape} {array.dtype} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_word(name, one) for one in value)}]"
    if name == "random_state" and value is not None and not isinstance(value, numbers.Integral):
        return type(value).__name__  # the key that it drew is in the checkpoint
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def unread_files(path: str | Path) -> dict[str, int | None]:
    """Return the files that the run of a checkpoint could not read, with the rows they were said to have then."""
    try:
        header, _ = container.read(Path(path))
        return _check_unread_files(header["extra"][RECORD]["more"]["again"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # resuming from the file will report what is wrong


def _check_unread_files(found: object) -> dict[str, int | None]:
    if type(found) is not dict or not all(rows is None or _is_count(rows, MOST_ROWS) for rows in found.values()):
        raise ValueError("files that could not be read")
    return dict(found)


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


@dataclass(frozen=True)
class RunRecord:
    """The record of a run in its checkpoint, beside model and position."""

    rounds: tuple[Round, ...]
    unread: tuple[Unread, ...]
    trace: tuple[float, ...]
    key: int
    runs: int
    converged: bool


def read_run_record(more: Any, path: Path, parts: int, runs: int) -> RunRecord:
    """Return the record of a run with this many parts and starts, or refuse a damaged one."""
    try:
        unread = tuple(Unread(*one) for one in more["unread"])
        numbers = [one.number for one in unread]
        trace = tuple(more["trace"])
        found = RunRecord(
            DistributedReport.from_dict(more["report"]).rounds, unread, trace, more["key"], more["runs"], more["converged"]
        )
        _check_unread_files(more["again"])
        fine = (
            all(_is_count(number, parts - 1) for number in numbers)
            and len(set(numbers)) == len(numbers)
            and all(type(text) is str for one in unread for text in (one.name, one.sentence))
            and all(type(value) is float and math.isfinite(value) for value in trace)
            and _is_count(found.key, 2**63 - 1)
            and _is_count(found.runs, runs)
            and type(found.converged) is bool
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        fine = False
    if not fine:
        raise ValueError(f"the checkpoint {path} is damaged: it does not say what the run had done; remove it to begin anew")
    return found
