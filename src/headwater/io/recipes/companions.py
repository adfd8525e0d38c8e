"""Companions of rows: the columns that become target, weight, label and key, and the checks of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwater.core.values import AnyArray
from headwater.io.blocks import Block
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, column_phrase, explain_read_errors, one_line_message, quote_names
from headwater.io.recipes import arrow_columns

if TYPE_CHECKING:
    import pyarrow as pa

    Column: TypeAlias = pa.Array | NDArray[np.float64]

ROLES = {"target": "y", "weight": "sample_weight", "label": "labels", "key": "key"}
EXACT = "-"  # the standard error of a column that has none


@dataclass(frozen=True)
class Companions:
    """Names of the columns that come beside the inputs, and the texts that stand for the labels 0, 1, ..., if there are any."""

    target: str | None = None
    weight: str | None = None
    label: str | None = None
    key: str | None = None
    label_levels: tuple[str, ...] | None = None
    standard_errors: tuple[str, ...] = ()  # of the inputs, in their order; EXACT for one without
    optional: bool = False  # they may be absent, since the rows are read like those of a model

    @property
    def names(self) -> list[str]:
        """Names of the columns, each once."""
        found = (getattr(self, role) for role in ROLES)
        return list(dict.fromkeys(name for name in (*found, *self.standard_errors) if name is not None and name != EXACT))

    def schema(self) -> dict[str, object]:
        """Return what there is, in values that JSON can hold."""
        found = {role: getattr(self, role) for role in ROLES if getattr(self, role) is not None}
        if self.standard_errors:
            found["standard_errors"] = list(self.standard_errors)
        return found if self.label_levels is None else {**found, "label_levels": list(self.label_levels)}

    def types(self) -> dict[str, pa.DataType]:
        """Return how to read the columns of a file that has no types of its own."""
        import pyarrow as pa

        numbers = (self.target, self.weight, *self.standard_errors)
        found = {name: pa.float64() for name in numbers if name is not None and name != EXACT}
        if self.label is not None:
            found[self.label] = pa.float64() if self.label_levels is None else pa.string()
        if self.key is not None:
            found[self.key] = pa.string()
        return found

    def values(self, block: Block, find: Callable[[str], Column | None]) -> dict[str, AnyArray]:
        """Return the companions of the rows of a block; `find` returns a column by its name, or None."""
        found = {}
        for role, argument in ROLES.items():
            name = getattr(self, role)
            column = None if name is None else find(name)
            if column is not None:
                found[argument] = getattr(self, f"_{role}")(column, block, f"column {name!r} of {block.name}")
        if self.standard_errors:
            columns = [None if name == EXACT else find(name) for name in self.standard_errors]
            if all((column is None) == (name == EXACT) for column, name in zip(columns, self.standard_errors, strict=True)):
                found["noise"] = self._noise(columns, block)
        return found

    def _noise(self, columns: Sequence[Column | None], block: Block) -> NDArray[np.float64]:
        """Return squares of standard errors (n, d); NaN where there is none, as where there is no value."""
        noise = np.zeros((len(block), len(columns)))
        for at, (name, column) in enumerate(zip(self.standard_errors, columns, strict=True)):
            if column is None:
                continue
            errors = _numbers(column, place := f"column {name!r} of {block.name}")
            if (wrong := (errors < 0.0) | np.isinf(errors)).any():
                row = int(np.argmax(wrong))
                raise StreamError(f"{place} must hold standard errors, got {errors[row]} in row {block.number(row)}")
            noise[:, at] = np.square(errors)
        return noise

    def _target(self, column: Column, block: Block, place: str) -> NDArray[np.float64]:
        values = _numbers(column, place)
        wrong = ~np.isfinite(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise StreamError(f"{place} must have a finite number in each row, got {values[row]} in row {block.number(row)}")
        return np.array(values, dtype=np.float64)

    _weight = _target

    def _label(self, column: Column, block: Block, place: str) -> NDArray[np.int64]:
        if self.label_levels is None:
            return _whole_numbers(column, block, place)
        places, gone = arrow_columns.level_codes(column, self.label_levels)
        unknown = (places < 0) & ~gone
        if unknown.any() and not self.optional:
            row = int(np.argmax(unknown))
            label = arrow_columns.to_text(column)[row].as_py()
            raise StreamError(
                f"{place} has the label {label!r:.80} in row {block.number(row)}, which is not among "
                f"the first ones: {quote_names(self.label_levels)}"
            )
        return places

    def _key(self, column: Column, block: Block, place: str) -> AnyArray:
        return (
            _whole_numbers(column, block, place)
            if isinstance(column, np.ndarray)
            else arrow_columns.sequence_keys(column, place)
        )


def plan_companions(
    given: Mapping[str, str | None],
    types: Mapping[str, pa.DataType],
    sample: Callable[[str], pa.Array] | None,
    place: str,
    standard_errors: tuple[str, ...] = (),
) -> Companions:
    """Return the companions that were named, or refuse a column that cannot be one."""
    for role in ("target", "weight"):
        name = given[role]
        if name is not None and name in types and not arrow_columns.is_number(types[name]):
            raise StreamError(f"{role} must be a column of numbers, but {name!r} of {place} holds {types[name]}")
    for name in standard_errors:
        if name in types and not arrow_columns.is_number(types[name]):
            raise StreamError(f"standard_errors must be columns of numbers, but {name!r} of {place} holds {types[name]}")
    label, levels = given["label"], None
    if label is not None and label in types and not arrow_columns.is_number(types[label]):
        assert sample is not None
        levels = arrow_columns.find_levels(sample(label), f"column {label!r} of {place}")
    return Companions(given["target"], given["weight"], label, given["key"], levels, standard_errors)


def refuse_roles(options: Options, place: str) -> None:
    """Refuse names of columns where there are none: in lines of text or symbols."""
    said = [
        name for name in ("columns", "exclude", "text", "standard_errors", *ROLES) if getattr(options, name) not in (None, ())
    ]
    if said:
        raise StreamError(f"{place} has lines and no columns, so that {said[0]}= names none: leave it out")


def refuse_absent(companions: Companions, names: Sequence[str], place: str) -> None:
    """Refuse rows without the columns that were named for them now; those that a model knows may be absent."""
    lost = [] if companions.optional else [name for name in companions.names if name not in names]
    if lost:
        raise StreamError(f"{place} lacks the {column_phrase(lost)}; beside its rows it has {quote_names(names) or 'none'}")


def concatenate_companions(parts: Sequence[Mapping[str, AnyArray]]) -> dict[str, Any]:
    """Concatenate the companions of several blocks; those that only some have are left out."""
    names = [name for name in (*ROLES.values(), "noise") if all(name in part for part in parts)]
    return {name: np.concatenate([part[name] for part in parts]) if len(parts) > 1 else parts[0][name] for name in names}


def fill_absent_rows(values: Mapping[str, AnyArray], here: NDArray[np.bool_]) -> dict[str, AnyArray]:
    """Return the companions of all rows, given those of the rows that are `here`: NaN, -1 or an empty text for the others."""
    nothing = {"f": np.nan, "i": -1, "U": ""}
    found = {}
    for name, some in values.items():
        found[name] = np.full((len(here), *some.shape[1:]), nothing[some.dtype.kind], dtype=some.dtype)
        found[name][here] = some
    return found


def _numbers(column: Column, place: str) -> AnyArray:
    return column if isinstance(column, np.ndarray) else arrow_columns.to_numbers(column, place)


def _whole_numbers(column: Column, block: Block, place: str) -> NDArray[np.int64]:
    values = _numbers(column, place)
    labels = np.where(np.isnan(values), -1.0, values)
    wrong = (labels != np.round(labels)) | (labels < -1.0) | (labels > 2**31)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise StreamError(f"{place} must hold whole numbers from 0, got {values[row]} in row {block.number(row)}")
    return labels.astype(np.int64)


@dataclass(frozen=True)
class KeptColumns:
    """Names and types of the columns; a matrix has no types. The first rows fix the types, so that all chunks agree."""

    columns: tuple[tuple[str, pa.DataType | None], ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _ in self.columns]

    def types(self) -> dict[str, pa.DataType]:
        """Return how to read the columns of a file that has no types of its own."""
        return dict(self.columns)

    def values(self, blocks: Sequence[Block]) -> dict[str, pa.Array]:
        """Return the columns of some blocks, as arrays of Arrow."""
        return {name: _concatenate([_column(block, name, kind) for block in blocks]) for name, kind in self.columns}


def value_type(kind: pa.DataType | None) -> pa.DataType | None:
    """Return the type of the values. A column whose first rows have no value is kept as text."""
    import pyarrow as pa

    if kind is not None and pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.string() if kind == pa.null() else kind


def _column(block: Block, name: str, kind: pa.DataType | None) -> pa.Array:
    import pyarrow as pa

    with explain_read_errors(block.name):
        if isinstance(block.rows, np.ndarray):
            if block.rows.dtype.kind == "c":
                raise StreamError(f"{block.name} holds complex numbers, which cannot be kept")
            column = block.rows[:, int(name[1:])]
            return pa.array(column.astype(column.dtype.newbyteorder("=")))
        if not hasattr(block.rows, "schema"):
            raise StreamError(f"{block.name} is no table, so that column {name!r} of it cannot be kept")
        column = block.rows.column(name)
        try:
            return column if column.type == kind else column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise StreamError(
                f"column {name!r} of {block.name} was {kind} in the first rows: {one_line_message(error)}"
            ) from error


def _concatenate(parts: list[pa.Array]) -> pa.Array:
    import pyarrow as pa

    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays([part if part.type == parts[0].type else part.cast(parts[0].type, safe=False) for part in parts])
