"""Records as trees of values that JSON can hold, with arrays by name; and back, by a template.

A file is not trusted: a tree is read as a value of the template's kind and shape, or refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from headwater.core.values import AnyArray
from headwater.families.table import Blend, Table, restored

LARGEST = 2**62  # of a whole number in a file
VALUE_LIMIT = 1e250  # of a number in a file; the squares of the largest rows are far below it
NOT_FINITE = ("inf", "-inf", "nan")


# Names in files for records that have another name now.
KINDS = {"Refinement": "Healing"}


def kind_of(record: object) -> str:
    """Return the name by which files know a kind of record."""
    name = type(record).__name__
    return KINDS.get(name, name)


def tables_of(record: object) -> Iterator[Table]:
    """Yield every table in a record, in order."""
    if isinstance(record, Table):
        yield record
    elif isinstance(record, Blend):
        yield from (record.table, record.rest)
    elif is_dataclass(record):
        for part in fields(record):
            yield from tables_of(getattr(record, part.name))


Value = TypeVar("Value")


class Damaged(ValueError):
    """A file that cannot be read; the message says what is wrong with it."""


@dataclass
class Writer:
    """Collects the arrays of what is written. An array that occurs twice, and tables that share rows, are stored once."""

    arrays: dict[str, AnyArray] = field(default_factory=dict)
    tables: dict[str, object] = field(default_factory=dict)
    known: dict[int, tuple[object, str]] = field(default_factory=dict)

    def once(self, value: object, path: str, keep: Callable[[], None]) -> str:
        """Return the name that a value is stored by; `keep` stores it on the first call."""
        if id(value) not in self.known:
            self.known[id(value)] = value, path
            keep()
        return self.known[id(value)][1]

    def write(self, value: Any, path: str) -> object:
        """Return the tree of a value."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float | np.floating):
            return float(value) if math.isfinite(value) else {"float": str(float(value))}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, Blend):
            return {"kind": "Blend", **{name: self.write(getattr(value, name), f"{path}/{name}") for name in ("table", "rest")}}
        if isinstance(value, Table):
            return self._table(value, path)
        if is_dataclass(value):
            value = getattr(value, "settled", value)  # every kind of reservoir
            parts = {part.name: getattr(value, part.name) for part in fields(value) if part.compare}  # the others are caches
            return {"kind": kind_of(value)} | {name: self.write(one, f"{path}/{name}") for name, one in parts.items()}
        if isinstance(value, Mapping):
            return [[self.write(key, path), self.write(one, f"{path}/{key}")] for key, one in value.items()]
        if isinstance(value, frozenset):
            value = sorted(value)
        if isinstance(value, tuple | list):
            return [self.write(one, f"{path}/{index}") for index, one in enumerate(value)]
        raise TypeError(f"{path} is {type(value).__name__}, which no model file can hold")

    def _array(self, value: AnyArray, path: str) -> dict[str, object]:
        def keep() -> None:
            plain = np.array(value, order="C")
            self.arrays[path] = plain.view(np.float64).reshape(*plain.shape, 2) if plain.dtype == np.complex128 else plain

        tree: dict[str, object] = {"array": self.once(value, path, keep)}
        return {**tree, "complex": True} if value.dtype == np.complex128 else tree

    def _table(self, table: Table, path: str) -> dict[str, object]:
        def keep() -> None:
            words, rows = table.stored()
            self.tables[path] = {"words": self._array(words, f"{path}/words"), "rows": self._array(rows, f"{path}/rows")}

        return {
            "kind": "Table",
            "factor": self.write(table.factor, path),
            "width": table.width,
            "rows": self.once(table.version, path, keep),
        }


@dataclass
class Reader:
    """Makes values of trees, of the kinds and shapes of a template."""

    arrays: Mapping[str, AnyArray]
    tables: Mapping[str, object] = field(default_factory=dict)
    versions: dict[str, Any] = field(default_factory=dict)

    def read(self, tree: object, like: object, path: str, parameters: bool = False) -> Any:
        """Return the value of a tree: of the template's kind, and of its shape.

        Among `parameters`, logarithms may be those of zero, and whole numbers name readouts: they must be the template's.
        """
        if like is None:
            if tree is not None:
                raise Damaged(f"{path} is there, and should not be")
            return None
        if isinstance(like, bool | str):
            return self.expect(tree, type(like), path)
        if isinstance(like, int):
            if parameters and tree != like:
                raise Damaged(f"{path} is not {like}, and should be")
            return self.whole(tree, path)
        if isinstance(like, float):
            return self.number(tree, path)
        if isinstance(like, np.ndarray):
            array = self.array(tree, path, like.dtype, like.shape, zero_logs=parameters)
            if parameters and like.dtype.kind in "iu" and not np.array_equal(array, like):  # kernels use them as indices
                raise Damaged(f"{path} holds other whole numbers than it should")
            return array
        if isinstance(like, Table | Blend):
            return self.table(tree, like.shape, path)
        if is_dataclass(like):
            return self._record(tree, like, path, parameters)
        if isinstance(like, dict):
            return self._mapping(tree, like, path, parameters)
        if isinstance(like, tuple):
            items = self.items(tree, path)
            if len(items) != len(like):
                raise Damaged(f"{path} has {len(items)} parts, and should have {len(like)}")
            pairs = zip(items, like, strict=True)
            return tuple(self.read(one, part, f"{path}/{at}", parameters) for at, (one, part) in enumerate(pairs))
        raise TypeError(f"{path} cannot be read like {type(like).__name__}")

    def expect(self, tree: object, kind: type[Value], path: str) -> Value:
        """Return the tree itself, if it is a value of this kind."""
        if type(tree) is not kind:
            raise Damaged(f"{path} is {type(tree).__name__}, and should be {kind.__name__}")
        return tree  # bool is not taken for int, which isinstance would do

    def whole(self, tree: object, path: str, least: int = -LARGEST, most: int = LARGEST) -> int:
        """Return a whole number."""
        number = self.expect(tree, int, path)
        if not least <= number <= most:
            raise Damaged(f"{path} is {str(number)[:20]}, and should lie between {least} and {most}")
        return int(number)

    def number(self, tree: object, path: str, least: float = -math.inf, finite: bool = True) -> float:
        """Return a number."""
        if isinstance(tree, dict) and tree.get("float") in NOT_FINITE and not finite:
            return float(tree["float"])
        if type(tree) is int and abs(tree) < LARGEST:
            tree = float(tree)
        number = float(self.expect(tree, float, path))
        if not abs(number) <= (VALUE_LIMIT if finite else math.inf) or math.isnan(number) or number < least:
            wanted = f" of at least {least:g}" if least > -math.inf else ""
            raise Damaged(f"{path} is {number:g}, and should be a number{wanted}, and no more than {VALUE_LIMIT:g}")
        return number

    def items(self, tree: object, path: str) -> list[object]:
        """Return the parts of a list."""
        return list(self.expect(tree, list, path))

    def parts(self, tree: object, kind: str, names: set[str], path: str) -> dict[str, object]:
        """Return the parts of a record by name."""
        record = self.expect(tree, dict, path)
        if record.get("kind") != kind:
            raise Damaged(f"{path} is of kind {str(record.get('kind'))[:50]!r}, and should be {kind!r}")
        if set(record) - {"kind"} != names:
            raise Damaged(f"{path} has other parts than a {kind} has")
        return dict(record)

    def array(
        self,
        tree: object,
        path: str,
        dtype: DTypeLike,
        shape: tuple[int | None, ...],
        zero_logs: bool = False,
        missing: bool = False,
        infinite: bool = False,
    ) -> AnyArray:
        """Return an array of this type and shape, in which None is any number.

        Some of it may be -inf if there are logarithms of zero, NaN if some is missing, and anything if it may be infinite.
        """
        record = self.expect(tree, dict, path)
        name, dtype = record.get("array"), np.dtype(dtype)
        if not isinstance(name, str) or name not in self.arrays:
            raise Damaged(f"{path} names an array that is not there")
        array = self.arrays[name]
        if dtype == np.complex128 and record.get("complex") is True and array.dtype == np.float64 and array.shape[-1:] == (2,):
            array = array.view(np.complex128)[..., 0]
        if array.dtype != dtype:
            raise Damaged(f"{path} holds {array.dtype} numbers, and should hold {dtype}")
        if len(array.shape) != len(shape) or any(
            want not in (None, have) for have, want in zip(array.shape, shape, strict=True)
        ):
            wanted = tuple("any" if size is None else size for size in shape)
            raise Damaged(f"{path} has the shape {array.shape}, and should have {wanted}")
        if dtype.kind in "fc" and not infinite:
            sound = np.abs(array) <= VALUE_LIMIT
            sound = sound | np.isnan(array) if missing else sound | np.isneginf(array) if zero_logs else sound
            if not sound.all():
                raise Damaged(f"{path} holds {'' if missing else 'NaN, '}infinity or a number beyond {VALUE_LIMIT:g}")
        return array

    def table(self, tree: object, shape: tuple[int, int], path: str) -> Table | Blend:
        """Return a table of this shape, or an average of such."""
        if isinstance(tree, dict) and tree.get("kind") == "Blend":
            parts = self.parts(tree, "Blend", {"table", "rest"}, path)
            table, rest = (self.table(parts[name], shape, f"{path}/{name}") for name in ("table", "rest"))
            if not (isinstance(table, Table) and isinstance(rest, Table)):
                raise Damaged(f"{path} is an average of averages")
            return Blend(table, rest)
        parts = self.parts(tree, "Table", {"factor", "width", "rows"}, path)
        if self.whole(parts["width"], f"{path}/width") != shape[0]:
            raise Damaged(f"{path} has {parts['width']} words, and should have {shape[0]}")
        factor = self.number(parts["factor"], f"{path}/factor")
        name = self.expect(parts["rows"], str, f"{path}/rows")
        if name not in self.versions:
            if name not in self.tables:
                raise Damaged(f"{path} names a table that is not there")
            stored = self.expect(self.tables[name], dict, path)
            words = self.array(stored.get("words"), f"{path}/words", np.int32, (None,))
            rows = self.array(stored.get("rows"), f"{path}/rows", np.float64, (len(words), shape[1]))
            if len(words) and (words.min() < 0 or words.max() >= shape[0] or len(np.unique(words)) < len(words)):
                raise Damaged(f"{path} has words that are not there, or twice the same")
            self.versions[name] = restored(shape[0], words, rows.copy()), shape
        version, known = self.versions[name]
        if known != shape:
            raise Damaged(f"{path} shares its rows with a table of another shape")
        return Table(version, factor, shape[0])

    def _record(self, tree: object, like: Any, path: str, parameters: bool) -> object:
        if isinstance(tree, dict):  # statistics, and parameters that follow from them, have more arrays where rows have gaps
            like = next((form for form in getattr(like, "forms", ()) if kind_of(form) == tree.get("kind")), like)
        named = [part.name for part in fields(like) if part.compare]
        parts = self.parts(tree, kind_of(like), set(named), path)
        return type(like)(**{one: self.read(parts[one], getattr(like, one), f"{path}/{one}", parameters) for one in named})

    def _mapping(self, tree: object, like: dict[object, object], path: str, parameters: bool) -> dict[object, object]:
        """A mapping of any size, whose entries are all like the one of the template; without any, if the template has none."""
        if not like:
            if self.items(tree, path):
                raise Damaged(f"{path} has entries, and should have none")
            return {}
        ((key, value),) = like.items()
        found = {}
        for pair in self.items(tree, path):
            one, other = self.items(pair, path) if isinstance(pair, list) and len(pair) == 2 else (None, None)
            name = self.read(one, key, path)
            found[name] = self.read(other, value, f"{path}/{name}", parameters)
        return found
