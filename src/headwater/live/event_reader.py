"""How the fields of an event become a row of the model; what does not fit is refused in one sentence, event by event."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.core.chunk import Chunk
from headwater.core.validation import one_line
from headwater.core.values import AnyArray
from headwater.io.blocks import Block
from headwater.io.options import Options
from headwater.io.recipes.schemas import recipe_like
from headwater.io.schema_fields import Schema
from headwater.live.event_log import objects

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.estimators.base import StreamingEstimator
    from headwater.live.events import Event

NUMBER, TEXT, FLAG = "number", "text", "flag"
FLAGS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
TEXT_LIMIT = 10_000  # characters of a value, which is kept as a category


class EventReader:
    """Makes rows of events, for one model: extra fields are ignored, missing ones are gaps.

    Parameters
    ----------
    model : estimator
        A model that learns one row at a time: no sequences, sparse rows or targets.
    """

    def __init__(self, model: StreamingEstimator) -> None:
        _refuse_others(model)
        schema: Schema | None = getattr(model, "schema_", None)
        self.gaps = bool(model._takes_gaps or model._traits.takes_tables)
        self._schema = schema
        self._make: Callable[[AnyArray, Sequence[str]], Chunk] | None = None
        if schema is None:
            names = getattr(model, "feature_names_in_", None)
            self.columns = tuple(f"x{at}" for at in range(model.n_features_in_)) if names is None else tuple(map(str, names))
            self._names = None if names is None else self.columns
            self._kinds = (NUMBER,) * len(self.columns)
            return
        inputs = schema["inputs"]
        self.columns = tuple(one["name"] for one in inputs)
        self._names = self.columns if schema.get("named", True) else None
        self._kinds = tuple(map(_kind_of, inputs))
        if schema["kind"] != "table" or any(len(one) > 1 for one in inputs):
            self._make = _chunk_maker(schema, self.gaps)

    @property
    def numbers(self) -> bool:
        """Whether rows are numbers and nothing else."""
        return self._make is None

    def empty(self) -> AnyArray:
        """Return the values of no events."""
        return np.empty((0, len(self.columns)), dtype=np.float64 if self.numbers else object)

    def read(self, events: Sequence[Event]) -> tuple[AnyArray, list[int], dict[int, str]]:
        """Return the values of the events that fit (n, n_columns), their places among all, and what is wrong with others."""
        problems = {place: event.problem for place, event in enumerate(events) if event.problem}
        places = [place for place in range(len(events)) if place not in problems] if problems else list(range(len(events)))
        if self.numbers and places:
            fast = self._read_numbers([events[place].fields for place in places])
            if fast is not None:
                return fast, places, problems
        rows, kept = [], []
        for place in places:
            try:
                rows.append(self.row(events[place].fields))
                kept.append(place)
            except ValueError as error:
                problems[place] = str(error)
        if self.numbers:
            return (
                np.array([[math.nan if one is None else one for one in row] for row in rows]).reshape(-1, len(self.columns)),
                kept,
                problems,
            )
        return objects(rows, len(self.columns)), kept, problems

    def _read_numbers(self, fields: Sequence[Mapping[str, object]]) -> AnyArray | None:
        """Return the values of events if all are in order, at once; None if they must be looked at one by one."""
        columns = self.columns
        try:
            rows = [[one.get(name) for name in columns] for one in fields]
            found = np.array(rows, dtype=np.float64)
        except (ValueError, TypeError, OverflowError):
            return None
        if found.shape != (len(fields), len(columns)) or not np.isfinite(found).all():
            return None
        return found

    def row(self, fields: Mapping[str, object]) -> list[object]:
        """Return the values of one event, or refuse it in a sentence."""
        found: list[object] = []
        for name, kind in zip(self.columns, self._kinds, strict=True):
            value = fields.get(name)
            if value is None or (isinstance(value, str) and not value) or (isinstance(value, float) and math.isnan(value)):
                if not self.gaps:
                    what = "is empty" if name in fields else "is missing"
                    raise ValueError(f"field {_quoted(name)} {what}, and this model takes no rows with gaps")
                found.append(None)
            else:
                found.append(READERS[kind](name, value))
        if all(one is None for one in found):
            raise ValueError(f"none of the fields {_quoted_names(self.columns)} is there")
        return found

    def rows(self, values: AnyArray) -> Chunk:
        """Return values as rows of the model."""
        if self._make is None:
            return Chunk(values, self._names, schema=self._schema)
        return self._make(values, self.columns)


def _refuse_others(model: StreamingEstimator) -> None:
    traits, kind = model._traits, type(model).__name__
    schema = getattr(model, "schema_", None)
    what = None
    if traits.chained or traits.takes_sequences:
        what = "sequences"
    elif traits.target_columns:
        what = "rows with a target"
    elif schema is not None and schema.get("kind") not in ("table", "columns"):
        what = "texts or sparse rows"
    elif schema is not None and schema.get("complex"):
        what = "complex numbers"
    elif schema is None and traits.takes_tables:
        what = "columns whose types it learned from data in memory: learn it by headwater fit"
    if what is not None:
        raise ValueError(f"a live model takes events that are rows of columns, and this {kind} takes {what}")
    if model._runtime.warming_up:
        raise ValueError(
            f"a live model must be past its start, and this {kind} has learned {model._runtime.rows:,} rows, which are too "
            f"few: learn more by headwater fit first"
        )


def _kind_of(entry: Schema) -> str:
    if "levels" in entry or "dates" in entry:
        return TEXT
    return str(entry.get("type", NUMBER))


def _chunk_maker(schema: Schema, gaps: bool) -> Callable[[AnyArray, Sequence[str]], Chunk]:
    """Return the function that makes chunks of columns that are more than numbers, as a file of them would be read."""
    keep = gaps and schema["kind"] == "table"
    recipe: Any = recipe_like(schema, Options(missing="keep") if keep else Options())
    types, make = recipe.types(), recipe.chunk_maker()

    def chunk(values: AnyArray, columns: Sequence[str]) -> Chunk:
        import pyarrow as pa

        arrays = [_column(values[:, at].tolist(), types[name]) for at, name in enumerate(columns)]
        block = Block(pa.RecordBatch.from_arrays(arrays, names=list(columns)), "the event", 0)
        found: Chunk = make([block], 0)
        return found

    return chunk


def _column(values: list[object], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_temporal(kind):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool | int | float | str):
        try:
            found = float(value)
        except (ValueError, OverflowError):
            found = math.nan
        if math.isfinite(found):
            return found
    raise ValueError(f"field {_quoted(name)} must be a number, got {one_line(value, 60)}")


def _text(name: str, value: object) -> str:
    if isinstance(value, bool | int | float | str) and len(str(value)) <= TEXT_LIMIT:
        return str(value)
    raise ValueError(f"field {_quoted(name)} must be a text of at most {TEXT_LIMIT:,} characters, got {one_line(value, 60)}")


def _flag(name: str, value: object) -> bool:
    found = FLAGS.get(str(value).lower()) if isinstance(value, bool | int | float | str) else None
    if found is None:
        raise ValueError(f"field {_quoted(name)} must be true or false, got {one_line(value, 60)}")
    return found


READERS: dict[str, Callable[[str, object], object]] = {NUMBER: _number, TEXT: _text, FLAG: _flag}


def _quoted(name: str) -> str:
    return one_line(name, 60)


def _quoted_names(names: Sequence[str]) -> str:
    return ", ".join(map(_quoted, names[:5])) + (" ..." if len(names) > 5 else "")
