"""Tables: which columns are inputs, which are companions, and how a chunk is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.chunk import Chunk
from headwater.streams import columns as of
from headwater.streams.blocks import Block
from headwater.streams.options import Options
from headwater.streams.sentences import StreamError, reading

ROLES = ("target", "weight", "label", "key")
CHUNK_BYTES = 2**22


@dataclass(frozen=True, eq=False)
class Head:
    """What a look at the first rows told: names and types of columns, and the rows, where levels may be looked for.

    A matrix has no types; `named` says whether names were found or made up.
    """

    names: tuple[str, ...]
    types: Mapping[str, Any] = field(default_factory=dict)
    sample: Any = None
    named: bool = True
    complex: bool = False


@dataclass(frozen=True)
class Input:
    """A column that is learned from; with levels, it becomes a column of zeros and ones for each."""

    name: str
    levels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Recipe:
    """How chunks are made of the columns of a table."""

    inputs: tuple[Input, ...]
    target: str | None = None
    weight: str | None = None
    label: str | None = None
    key: str | None = None
    label_levels: tuple[str, ...] | None = None
    missing: str = "refuse"
    named: bool = True
    complex: bool = False
    relaxed: bool = False  # companions may be absent: the rows are read like others before
    exact: bool = False  # no column may come beside those of the first file
    others: tuple[str, ...] = ()

    remembers = False

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        return [
            label
            for one in self.inputs
            for label in ([one.name] if one.levels is None else [f"{one.name}={level}" for level in one.levels])
        ]

    @property
    def chunk_rows(self) -> int:
        """Rows of about 4 MB: a power of two, which depends on the width alone."""
        return chunk_rows_of(len(self.names) * (16 if self.complex else 8))

    @property
    def counted(self) -> bool:
        """Whether a row that was read is a row that comes out, so that rows can be skipped without a look at them."""
        return self.missing != "drop"

    def schema(self) -> dict[str, Any]:
        """Return the recipe in words that JSON knows."""
        found: dict[str, Any] = {
            "kind": "table",
            "inputs": [
                {"name": one.name} if one.levels is None else {"name": one.name, "levels": list(one.levels)}
                for one in self.inputs
            ],
            "missing": self.missing,
            "named": self.named,
        }
        found |= {role: getattr(self, role) for role in ROLES if getattr(self, role) is not None}
        if self.label_levels is not None:
            found["label_levels"] = list(self.label_levels)
        if self.complex:
            found["complex"] = True
        return found

    def wanted(self, names: Sequence[str], place: str) -> list[str]:
        """Return the columns to read from a piece with these names, or refuse it."""
        inputs = [one.name for one in self.inputs]
        companions = [name for role in ROLES if (name := getattr(self, role)) is not None]
        present = set(names)
        lost = [name for name in (inputs if self.relaxed else inputs + companions) if name not in present]
        if lost:
            raise StreamError(f"{place} lacks the column{_s(lost)} {_listed(lost)}; it has {_listed(names)}")
        if self.exact:
            known = {*inputs, *companions, *self.others}
            if new := [name for name in names if name not in known]:
                raise StreamError(
                    f"{place} has the column{_s(new)} {_listed(new)}, which the first file does not have: choose by columns="
                )
        return list(dict.fromkeys(inputs + [name for name in companions if name in present]))

    def types(self) -> dict[str, Any]:
        """Return how to read the columns of a file that has no types of its own."""
        import pyarrow as pa

        found = {one.name: pa.float64() if one.levels is None else pa.string() for one in self.inputs}
        found |= {name: pa.float64() for name in (self.target, self.weight) if name is not None}
        if self.label is not None:
            found[self.label] = pa.float64() if self.label_levels is None else pa.string()
        if self.key is not None:
            found[self.key] = pa.string()
        return found

    def filtered(self, block: Block) -> Block:
        """Leave out the rows that lack something, if that is the policy."""
        if self.missing != "drop":
            return block
        rows = block.rows
        if isinstance(rows, np.ndarray):
            gone = np.isnan(rows).any(axis=1)
            return Block(rows[~gone], block.name, block.first) if gone.any() else block
        import pyarrow.compute as pc

        here = None
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            found = None if name == self.label else of.has_values(column)
            if found is not None:
                here = found if here is None else pc.and_(here, found)
        return block if here is None else Block(rows.filter(here), block.name, block.first)

    def maker(self) -> Any:
        """Return the function that makes chunks; it remembers nothing from one to the next."""
        names = tuple(self.names)
        schema = self.schema()

        def make(blocks: Sequence[Block], start: int) -> Chunk:
            total = sum(map(len, blocks))
            X = np.empty((total, len(names)), dtype=np.complex128 if self.complex else np.float64)
            companions: dict[str, list[Any]] = {}
            end = 0
            for block in blocks:
                begin, end = end, end + len(block)
                with reading(block.name):
                    self._fill(block, X[begin:end])
                    for name, values in self._companions(block):
                        companions.setdefault(name, []).append(values)
            joined = {name: np.concatenate(parts) if len(parts) > 1 else parts[0] for name, parts in companions.items()}
            return Chunk(X, names if self.named else None, start=start, schema=schema, **joined)

        return make

    def _fill(self, block: Block, out: NDArray[Any]) -> None:
        at = 0
        if isinstance(block.rows, np.ndarray):
            places = [int(one.name[1:]) for one in self.inputs]
            out[:] = block.rows if places == list(range(block.rows.shape[1])) else block.rows[:, places]
        else:
            for one in self.inputs:
                column = block.rows.column(one.name)
                if one.levels is None:
                    out[:, at] = of.numbers(column, f"column {one.name!r} of {block.name}")
                    at += 1
                else:
                    found, gone = of.codes(column, one.levels)
                    out[:, at : at + len(one.levels)] = found[:, None] == np.arange(len(one.levels))
                    if self.missing != "zero":
                        out[gone, at : at + len(one.levels)] = np.nan
                    at += len(one.levels)
        self._check(out, block)

    def _check(self, out: NDArray[Any], block: Block) -> None:
        """Apply the policy for missing values, and refuse infinity."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(out.sum()):
                return
        wrong = np.argwhere(np.isinf(out))
        gone = np.isnan(out)
        if len(wrong):
            row, column = wrong[0]
            raise StreamError(f"{block.name} has an infinite value in column {self.names[column]!r}, row {block.first + row}")
        if self.missing == "zero":
            out[gone] = 0.0
        elif self.missing == "blank":
            out[gone.any(axis=1)] = np.nan
        elif self.missing != "keep" and gone.any():
            row, column = np.argwhere(gone)[0]
            raise StreamError(
                f"{block.name} has no value in column {self.names[column]!r}, row {block.first + row}: missing='drop' leaves "
                f"such rows out, 'zero' puts zeros, 'keep' and 'blank' pass NaN on to models that know it"
            )

    def _companions(self, block: Block) -> list[tuple[str, NDArray[Any]]]:
        found: list[tuple[str, NDArray[Any]]] = []
        present = None if isinstance(block.rows, np.ndarray) else set(block.rows.schema.names)
        for role, name in (("y", self.target), ("sample_weight", self.weight), ("labels", self.label), ("key", self.key)):
            if name is None or (present is not None and name not in present):
                continue
            place = f"column {name!r} of {block.name}"
            if role == "key" and present is not None:
                found.append((role, of.keys(block.rows.column(name), place)))
                continue
            if role == "labels" and self.label_levels is not None and present is not None:
                found.append((role, self._levelled(block, name, place)))
                continue
            values = block.rows[:, int(name[1:])] if present is None else of.numbers(block.rows.column(name), place)
            found.append(
                (role, self._whole(values, block, place) if role in ("labels", "key") else self._all(values, block, place))
            )
        return found

    def _levelled(self, block: Block, name: str, place: str) -> NDArray[np.int64]:
        assert self.label_levels is not None
        places, gone = of.codes(block.rows.column(name), self.label_levels)
        unknown = (places < 0) & ~gone
        if unknown.any() and not self.relaxed:
            row = int(np.argmax(unknown))
            value = of.words(block.rows.column(name))[row].as_py()
            raise StreamError(
                f"{place} has the label {value!r:.80} in row {block.first + row}, which is not among the first ones: "
                f"{_listed(self.label_levels)}"
            )
        return places

    def _whole(self, values: NDArray[Any], block: Block, place: str) -> NDArray[np.int64]:
        labels = np.where(np.isnan(values), -1.0, values)
        wrong = (labels != np.round(labels)) | (labels < -1.0) | (labels > 2**31)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise StreamError(f"{place} must hold whole numbers from 0, got {values[row]} in row {block.first + row}")
        return labels.astype(np.int64)

    def _all(self, values: NDArray[Any], block: Block, place: str) -> NDArray[Any]:
        wrong = ~np.isfinite(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise StreamError(f"{place} must have a finite number in each row, got {values[row]} in row {block.first + row}")
        return np.array(values, dtype=np.float64)


def plan(head: Head, options: Options, place: str) -> Recipe:
    """Choose the columns and say what becomes of each, or refuse them."""
    if twice := sorted({name for name in head.names if head.names.count(name) > 1}):
        raise StreamError(f"{place} has the column{_s(twice)} {_listed(twice)} more than once")
    roles: dict[str, Any] = {role: _resolved(getattr(options, role), head, place, role) for role in ROLES}
    taken = {name for name in roles.values() if name is not None}
    excluded = {_resolved(one, head, place, "exclude") for one in options.exclude}
    if options.columns is None:
        chosen = [name for name in head.names if name not in taken | excluded]
    else:
        chosen = [_resolved(one, head, place, "columns") or "" for one in options.columns]
        chosen = [name for name in dict.fromkeys(chosen) if name not in excluded]
    inputs = _inputs(chosen, head, options, place)
    if not inputs:
        raise StreamError(f"{place} has no column to learn from; it has {_listed(head.names)}")
    label, label_levels = roles["label"], None
    if label is not None and label in head.types and not of.is_number(head.types[label]):
        label_levels = of.levels(head.sample.column(label), f"column {label!r} of {place}")
    for role in ("target", "weight"):
        name = roles[role]
        if name is not None and name in head.types and not of.is_number(head.types[name]):
            raise StreamError(f"{role} must be a column of numbers, but {name!r} of {place} holds {head.types[name]}")
    known = {one.name for one in inputs} | taken
    return Recipe(
        inputs, **roles, label_levels=label_levels, missing=options.missing, named=head.named, complex=head.complex,
        exact=options.columns is None, others=tuple(name for name in head.names if name not in known),
    )  # fmt: skip


def _resolved(name: str | int | None, head: Head, place: str, role: str) -> str | None:
    """Return the name of a column, which may be given by its place."""
    if isinstance(name, int) and -len(head.names) <= name < len(head.names):
        return head.names[name]
    if name is None or name in head.names:
        return name
    raise StreamError(f"{role} names {name!r}, which {place} does not have; it has {_listed(head.names)}")


def _inputs(chosen: list[str], head: Head, options: Options, place: str) -> tuple[Input, ...]:
    odd = [name for name in chosen if name in head.types and not of.is_number(head.types[name])]
    if options.categories == "drop":
        return tuple(Input(name) for name in chosen if name not in odd)
    nested = [name for name in odd if not of.is_category(head.types[name])]
    if odd and (options.categories == "refuse" or nested):
        wrong = odd if options.categories == "refuse" else nested
        kinds = f"{_listed(wrong)} ({', '.join(dict.fromkeys(str(head.types[name]) for name in wrong))})"
        ways = "exclude=" if nested else "categories='one-hot', categories='drop', or exclude="
        raise StreamError(f"{place} has column{_s(wrong)} that hold no numbers, {kinds}: use {ways}")
    return tuple(
        Input(name, of.levels(head.sample.column(name), f"column {name!r} of {place}")) if name in odd else Input(name)
        for name in chosen
    )


def chunk_rows_of(bytes_of_row: int) -> int:
    """Return the rows of a chunk of about 4 MB: a power of two, at most 65536, and fewer than 1024 only of rows over 4 kB."""
    return int(2 ** np.clip(np.floor(np.log2(CHUNK_BYTES / max(1, bytes_of_row))), 4, 16))


def _listed(names: Sequence[str], most: int = 10) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _s(names: Sequence[str]) -> str:
    return "s" if len(names) > 1 else ""
