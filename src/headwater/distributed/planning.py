"""Planning: what there is to read becomes parts, which do not depend on who will read them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import numpy as np

from headwater.distributed.parts import Part, Way, rows_of
from headwater.streams import stream
from headwater.validation import one_line

PART_BYTES = 2**26  # of a stretch of a file, as numbers
PIECES = 32  # stretches that a small lot of rows is cut into
MOST_PARTS = 4096
FILES_AT_ONCE = 32
ROLES = ("target", "weight", "label", "key", "text")
# Options that say how a file is written; the others have become a schema.
WRITTEN = ("format", "header", "delimiter", "array", "missing")

NOTHING: Mapping[str, int | None] = MappingProxyType({})


@dataclass(frozen=True)
class Plan:
    """Parts, how each is read, the values that Dask makes for them (None for files), and what tells this data from other.

    Of files that is their names, rows, bytes and times of change. `again` are those of them that could not be read before,
    and the rows that they were then said to have.
    """

    parts: tuple[Part, ...]
    blocks: tuple[Any, ...]
    way: Way
    token: str = ""
    files: tuple[tuple[Any, ...], ...] = ()
    again: Mapping[str, int | None] = field(default_factory=dict)

    def missing(self, numbers: Sequence[int]) -> dict[str, int | None]:
        """Return the files of parts that could not be read, with those that could not be read before."""
        paths = {self.parts[number].path for number in numbers}
        return {**self.again, **{path: rows for path, rows, *_ in self.files if path in paths}}

    def identity(self, again: Mapping[str, int | None]) -> dict[str, Any]:
        """Return what tells this data from other, whatever becomes of some files."""
        files = [[path, again[path], None, None] if path in again else [path, *more] for path, *more in self.files]
        return {"data": self.token or _digest(files), "parts": len(self.parts)}

    @property
    def rows(self) -> int | None:
        """Rows in all, if they are known."""
        known = [part.rows for part in self.parts]
        return None if None in known else sum(known)  # type: ignore[arg-type]


def planned(
    client: Any,
    model: Any,
    data: Any,
    y: Any,
    sample_weight: Any,
    part_rows: int | None,
    like: Any,
    reading: Mapping[str, Any],
    again: Mapping[str, int | None] = NOTHING,
) -> Plan:
    """Look at the data, on workers, and say how it is to be read: files that are there `again`, as they were to be before."""
    if reading.get("vocabulary") == "open" or getattr(model, "vocabulary", None) == "open":
        raise ValueError(
            "vocabulary='open' follows the order of one stream, and parts are read side by side: give the words, or a number "
            "of columns that they are hashed to, or take those of the first documents"
        )
    if reading.get("shuffle"):
        raise ValueError("shuffle mixes the rows of one stream, and parts are read side by side: leave it out")
    if isinstance(data, str | PurePath) or (
        isinstance(data, list | tuple) and data and all(isinstance(one, str | PurePath) for one in data)
    ):
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(
                    f"{name} of files is one of their columns: name it by {'target' if name == 'y' else 'weight'}="
                )
        return _files(client, model, data, part_rows, like, dict(reading), again)
    return _collection(client, model, data, y, sample_weight, like, dict(reading))


# Files


def _files(
    client: Any,
    model: Any,
    source: Any,
    part_rows: int | None,
    like: Any,
    reading: dict[str, Any],
    again: Mapping[str, int | None],
) -> Plan:
    names = [source] if isinstance(source, str | PurePath) else source
    if any(str(one) == "-" for one in names):
        raise ValueError("standard input is read by one process: leave the cluster out, or name files")
    pieces = client.submit(found, [str(one) for one in names], reading.get("format"), pure=False).result()
    look = client.submit(looked, pieces, like, reading, pure=False).result()
    sizes = []
    groups = [pieces[at : at + FILES_AT_ONCE] for at in range(0, len(pieces), FILES_AT_ONCE)]
    for group in client.gather([client.submit(counted, group, look, pure=False) for group in groups]):
        sizes += group
    sizes = [_as_before(path, size, again) for path, size in zip(pieces, sizes, strict=True)]
    way = look["way"]
    cut = way.counted and not model._chained and not model._takes_sequences
    total = sum(rows for rows, _, _ in sizes if rows)
    step = stretch(total, way.chunk_rows, look["row_bytes"], part_rows)
    parts: list[Part] = []
    for path, (rows, _, _) in zip(pieces, sizes, strict=True):
        if not cut or rows is None or rows <= step:
            parts.append(Part(len(parts), path, path, 0, rows))
            continue
        for start in range(0, rows, step):
            some = min(step, rows - start)
            parts.append(Part(len(parts), f"{path} (rows {start:,} to {start + some - 1:,})", path, start, some))
    files = tuple((path, *size) for path, size in zip(pieces, sizes, strict=True))
    return Plan(tuple(parts), (None,) * len(parts), way, files=files, again=again)


def _as_before(path: str, size: tuple[Any, ...], again: Mapping[str, int | None]) -> tuple[Any, ...]:
    """Return the size of a file by which parts were cut when it could not be read: they are to be the same."""
    if path not in again:
        return size
    rows = again[path]
    if None not in (rows, size[0]) and rows != size[0]:
        raise ValueError(f"{path} had {rows:,} rows when others were learned, and now it has {size[0]:,}: begin anew")
    return (rows, None, None)


def stretch(total: int, chunk_rows: int, row_bytes: int, part_rows: int | None) -> int:
    """Return the rows of a stretch of a file: whole chunks, some to share out, yet not too many in all."""
    if part_rows is None:
        part_rows = min(max(PART_BYTES // max(1, row_bytes), 1), max(total // PIECES, 1))
        part_rows = max(part_rows, total // MOST_PARTS)
    return max(1, -(-part_rows // chunk_rows)) * chunk_rows


def found(names: Sequence[str], form: str | None) -> list[str]:
    """Return the names of files, where those given may be patterns and folders; runs on a worker."""
    pieces = stream(list(names), format=form)._pieces
    return [piece.name for piece in pieces]


def looked(paths: Sequence[str], like: Any, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return how files are read, which a look at the first that can be read tells; runs on a worker."""
    problem: Exception | None = None
    for some in (list(paths), *paths):
        try:
            opened = stream(some, like=like, **reading)
            schema = opened.schema
        except (ValueError, OSError) as error:
            problem = problem or error
            continue
        return {"way": _way("files", opened, schema, reading), "row_bytes": _row_bytes(opened)}
    assert problem is not None
    raise problem


def _way(kind: str, opened: Any, schema: Mapping[str, Any], reading: Mapping[str, Any]) -> Way:
    """Return how rows are to be read like those of a stream; companions that were asked for must be there."""
    options = {name: reading[name] for name in WRITTEN if reading.get(name) is not None}
    options |= {name: schema[name] for name in ROLES if reading.get(name) is not None and schema.get(name) is not None}
    form = opened._format(0)
    jumps = kind == "files" and bool(form.read().JUMPS)
    return Way(kind, schema, options, opened.chunk_rows, counted=bool(opened._recipe.counted) and jumps)


def _row_bytes(opened: Any) -> int:
    columns = opened.columns
    return 8 * max(1, len(columns or ()))


def counted(paths: Sequence[str], look: Mapping[str, Any]) -> list[tuple[int | None, int | None, Any]]:
    """Return rows, bytes and time of change of files, None where they are not known; runs on a worker."""
    way, sizes = look["way"], []
    for path in paths:
        rows = size = changed = None
        try:
            opened = stream(path, like=way.schema, **way.options)
            (piece,) = opened._pieces
            size, changed = piece.size, piece.changed
            rows = opened.total_rows if way.counted else None
        except (ValueError, OSError):
            pass  # whoever reads it will say what is wrong
        sizes.append((rows, size, changed))
    return sizes


# Collections of Dask


def _collection(client: Any, model: Any, data: Any, y: Any, sample_weight: Any, like: Any, reading: dict[str, Any]) -> Plan:
    import dask.bag as bags
    from dask.base import is_dask_collection, tokenize

    if not is_dask_collection(data):
        raise TypeError(
            f"data must be names of files or a collection of Dask (array, dataframe or bag), got {type(data).__name__}: rows "
            f"at hand are learned by fit, or wrapped by dask.array.from_array"
        )
    if isinstance(data, bags.Bag):
        kind, blocks = "texts", list(data.to_delayed())
    elif hasattr(data, "npartitions") and hasattr(data, "columns"):
        kind, blocks = "frames", list(data.to_delayed())
    elif hasattr(data, "chunks") and hasattr(data, "ndim"):
        kind, blocks = "arrays", _array_blocks(data, y, sample_weight)
    else:
        raise TypeError(f"data must be an array, a dataframe or a bag of Dask, got {type(data).__name__}")
    if kind != "arrays" and (y is not None or sample_weight is not None):
        raise ValueError("y and sample_weight belong to arrays; of a dataframe, name the column by target= or weight=")
    if kind == "arrays" and reading:
        raise ValueError(f"{next(iter(reading))} is for files, dataframes and bags; an array of Dask is learned as it is")
    if not blocks:
        raise ValueError("data has no partitions")
    known: list[int | None] = [None] * len(blocks)
    if kind == "arrays" and not np.isnan(np.asarray(data.chunks[0], dtype=float)).any():
        known = [int(rows) for rows in data.chunks[0]]
    name = f"the {type(data).__name__.lower()}"
    parts = tuple(Part(at, f"partition {at} of {name}", None, 0, rows) for at, rows in enumerate(known))
    way = Way("arrays")
    if kind != "arrays":
        if kind == "texts":
            reading.setdefault("format", "sequences" if model._takes_symbols else "text")
        way = _first_way(client, kind, blocks, model, like, reading)
    return Plan(parts, tuple(blocks), way, tokenize(data, y, sample_weight))


def _array_blocks(data: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Return the partitions of an array by rows, each with what belongs to them."""
    from dask.delayed import delayed

    if data.ndim == 2 and data.numblocks[1] > 1:
        data = data.rechunk({1: -1})
    columns = [data]
    for name, one in (("y", y), ("sample_weight", sample_weight)):
        if one is not None and (not hasattr(one, "chunks") or one.ndim != 1 or len(one.chunks[0]) != len(data.chunks[0])):
            raise ValueError(f"{name} must be a dask array of one dimension, cut like the rows, got {one_line(one)}")
        if one is not None and not np.array_equal(one.chunks[0], data.chunks[0], equal_nan=True):
            one = one.rechunk({0: data.chunks[0]})
        columns.append(one)
    cut = [[None] * data.numblocks[0] if one is None else list(one.to_delayed().ravel()) for one in columns]
    return [delayed(tuple)(list(block)) for block in zip(*cut, strict=True)]


def _first_way(client: Any, kind: str, blocks: Sequence[Any], model: Any, like: Any, reading: Mapping[str, Any]) -> Way:
    """Look at partitions until one has rows."""
    from dask.delayed import delayed

    problem: Exception | None = None
    for block in islice(blocks, 64):
        task = delayed(looked_block, pure=False)(block, kind, like, dict(reading), type(model).__name__)
        try:
            return client.compute(task).result()
        except (ValueError, OSError) as error:
            problem = problem or error
    assert problem is not None
    raise problem


def looked_block(block: Any, kind: str, like: Any, reading: Mapping[str, Any], owner: str) -> Way:
    """Return how partitions are read, which one of them tells; runs on a worker."""
    first: Any = next(_items(block), None)
    if kind == "texts" and hasattr(first, "ndim") and first.ndim in (1, 2):
        return Way("arrays")  # sequences of numbers, one after the other
    opened = stream(rows_of(kind, block), like=like, **reading)
    return _way(kind, opened, opened.schema, reading)


def _items(block: Any) -> Iterator[Any]:
    if hasattr(block, "iloc"):
        return iter((None,) * min(1, len(block)))
    return iter(block)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
