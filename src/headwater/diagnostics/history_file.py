"""The history of a stream in values that JSON can hold, and back. What is read is checked, since files may be damaged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from headwater.core.statistics import Array
from headwater.diagnostics.history import COMPRESSION_SCORES, POINT_LIMIT, ROUNDING_ERROR, WEIGHT_LIMIT, History, Point, Window

FORMAT_NUMBER = 2


def history_to_dict(history: History) -> dict[str, object]:
    """Return the history as dicts, lists and numbers."""
    names = ("rows", "score", "scored", "weights", "effective_rows", "seconds", "size")
    lines = [
        (
            p.rows,
            _finite_or_none(p.score),
            p.scored,
            list(p.weights),
            _finite_or_none(p.effective_rows),
            _finite_or_none(p.seconds),
            p.size,
        )
        for p in history.points
    ]
    columns = list(zip(*lines, strict=True)) or [()] * len(names)
    return {
        "format": FORMAT_NUMBER,
        "points": {name: list(column) for name, column in zip(names, columns, strict=True)},
        "components": list(history.components),
        "every": history.every,
        "seen": history.seen,
        "seconds": history.seconds,
        "total": history.total,
        "scored": history.scored,
        "size": history.size,
        "windows": [
            {"start": one.start, "scored": one.scored, "scores": one.scores.tolist(), "rows": one.rows.tolist()}
            for one in (history.before, history.now)
        ],
    }


def read_history(found: object) -> History:
    """Return the history that `history_to_dict` made, or refuse it."""
    if not isinstance(found, Mapping):
        raise ValueError(f"it must be a mapping, got {found!r:.40}")
    if found["format"] != FORMAT_NUMBER:
        raise ValueError(f"its format must be {FORMAT_NUMBER}, got {found['format']!r:.40}")
    table = found["points"]
    columns = [table[name] for name in ("rows", "score", "scored", "weights", "effective_rows", "seconds")]
    columns.append(table.get("size", [0.0] * len(table["rows"])))  # files of before have none
    if not all(isinstance(column, list) for column in columns) or len({len(column) for column in columns}) != 1:
        raise ValueError("the columns of its points must be lists of one length")
    if len(columns[0]) > POINT_LIMIT:
        raise ValueError(f"it must have at most {POINT_LIMIT} points, got {len(columns[0])}")
    components = tuple(found["components"])
    if len(components) > WEIGHT_LIMIT or any(isinstance(k, bool) or not isinstance(k, int) or k < 0 for k in components):
        raise ValueError(f"components must be at most {WEIGHT_LIMIT} whole numbers, got {components!r:.40}")
    points = tuple(
        Point(
            _read_integer({"rows": rows}, "rows"),
            _read_optional(score, "score"),
            _read_integer({"scored": scored}, "scored"),
            tuple(_read_numbers(weights, "weights", len(components)).tolist()),
            _read_optional(effective, "effective_rows"),
            _read_optional(seconds, "seconds"),
            _read_number(size, "size"),
        )
        for rows, score, scored, weights, effective, seconds, size in zip(*columns, strict=True)
    )
    if any(len(point.weights) not in (0, len(components)) for point in points):
        raise ValueError(f"a point must have {len(components)} weights or none")
    if any(one.rows >= other.rows for one, other in pairwise(points)):
        raise ValueError("the rows of its points must rise")
    before, now = map(_read_window, found["windows"])
    return History(
        points,
        components,
        _read_integer(found, "every", 1),
        _read_integer(found, "seen"),
        _read_number(found["seconds"], "seconds"),
        _read_number(found["total"], "total"),
        _read_integer(found, "scored"),
        before,
        now,
        _read_number(found.get("size", 0.0), "size"),
    )


def _read_window(found: Mapping[str, object]) -> Window:
    window = Window(
        _read_integer(found, "start"),
        _read_integer(found, "scored"),
        _read_numbers(found["scores"], "scores"),
        _read_numbers(found["rows"], "rows"),
    )
    if len(window.scores) != len(window.rows) or np.any(window.rows < 1.0) or window.rows.sum() != window.scored:
        raise ValueError(f"a window of {window.scored} scores must keep some that stand for as many rows")
    cut = len(window.scores) - window.scored % COMPRESSION_SCORES  # the last are not put together yet
    kept, alone = np.split(window.scores, [max(cut, 0)])
    allowed = ROUNDING_ERROR * float(np.abs(kept).max(initial=0.0))
    if cut < 0 or np.any(np.diff(kept) < -allowed) or np.any(window.rows[cut:] != 1.0):
        raise ValueError("scores of a window that were put together must rise")
    return replace(window, scores=np.append(np.maximum.accumulate(kept), alone))


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _read_integer(found: Mapping[str, object], name: str, least: int = 0) -> int:
    value = found[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r:.40}")
    return value


def _read_number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r:.40}")
    return float(value)


def _read_optional(value: object, name: str) -> float:
    return math.nan if value is None else _read_number(value, name)


def _read_numbers(values: object, name: str, most: int | None = None) -> Array:
    if not isinstance(values, list) or (most is not None and len(values) > most):
        raise ValueError(f"{name} must be a list of {'' if most is None else f'at most {most} '}numbers, got {values!r:.40}")
    return np.array([_read_number(value, name) for value in values])
