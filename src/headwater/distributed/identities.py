"""Identities: what tells one run from another, in words that a checkpoint keeps, whichever process is asked."""

from __future__ import annotations

import hashlib
import numbers
from pathlib import Path
from typing import Any

import numpy as np

from headwater.checkpoints import RECORD
from headwater.storage import container


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
        found = header["extra"][RECORD]["more"]["again"]
        return {str(name): None if rows is None else int(rows) for name, rows in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # whoever goes on from it will say what is wrong
