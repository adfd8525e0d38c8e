"""Planning: what there is to read becomes parts, which do not depend on who will read them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import PurePath
from typing import Any

from headwater.distributed.dask_collections import collection_plan, is_collection
from headwater.distributed.messages import answered
from headwater.distributed.parts import Part, Plan
from headwater.distributed.read_options import way_of
from headwater.distributed.task_graph import Cluster
from headwater.io.source_lookup import ADDRESS, FileNames
from headwater.io.stream import stream

PART_BYTES = 2**26  # of a stretch of a file, as numbers
PIECES = 32  # stretches that a small lot of rows is cut into
MOST_PARTS = 4096
FILES_AT_ONCE = 32

# What follows the order of one stream, and parts are read side by side.
ORDERED = {
    "shuffle": "shuffle mixes the rows of one stream, and parts are read side by side: leave it out",
    "vocabulary": (
        "vocabulary='open' follows the order of one stream, and parts are read side by side: give the words, or a number of "
        "columns that they are hashed to, or take those of the first documents"
    ),
}


def planned(
    cluster: Cluster,
    model: Any,
    data: Any,
    y: Any,
    sample_weight: Any,
    part_rows: int | None,
    like: Any,
    reading: Mapping[str, Any],
    again: Mapping[str, int | None],
) -> Plan:
    """Look at the data, on workers, and say how it is to be read: files that are there `again`, as they were to be before."""
    if is_collection(data):
        return collection_plan(cluster, model, data, y, sample_weight, like, reading)
    for name, value, option in (("y", y, "target"), ("sample_weight", sample_weight, "weight")):
        if value is not None:
            raise ValueError(f"{name} of files is one of their columns: name it by {option}=")
    return _files(cluster, model, _names(data), part_rows, like, reading, again)


def check_reading(model: Any, reading: Mapping[str, Any]) -> None:
    """Refuse options that no stream has, and those that parts cannot have."""
    known = set(signature(stream).parameters) - {"source", "like", "prefetch"}
    unknown = [name for name in reading if name not in known]
    if unknown:
        raise TypeError(
            f"fit has no option {unknown[0]!r}; data is read by those of headwater.stream: {', '.join(sorted(known))}"
        )
    if reading.get("shuffle"):
        raise ValueError(ORDERED["shuffle"])
    vocabulary = reading.get("vocabulary"), getattr(model, "vocabulary", None)
    if any(isinstance(one, str) and one == "open" for one in vocabulary):
        raise ValueError(ORDERED["vocabulary"])


def _names(data: Any) -> list[str]:
    """Return names of files, or refuse what is none."""
    named = [data] if isinstance(data, str | PurePath) else data
    if not isinstance(named, list | tuple) or not all(isinstance(one, str | PurePath) for one in named):
        raise TypeError(
            f"data must be names of files or a collection of Dask (array, dataframe or bag), got {type(data).__name__}: rows "
            f"at hand are learned by fit, or wrapped by dask.array.from_array"
        )
    if not named or not all(str(one) for one in named):
        raise ValueError(f"data must name at least one file, got {'an empty name' if named else 'none'}")
    if any(str(one) == "-" for one in named):
        raise ValueError("standard input is read by one process: leave the cluster out, or name files")
    # Workers may have been started elsewhere: a name means what it means here.
    return [str(one) if ADDRESS.match(str(one)) else os.path.abspath(one) for one in named]


def _files(
    cluster: Cluster,
    model: Any,
    names: list[str],
    part_rows: int | None,
    like: Any,
    reading: Mapping[str, Any],
    again: Mapping[str, int | None],
) -> Plan:
    paths = cluster.computed(cluster.plain(found, names, reading.get("format")))
    way, row_bytes = cluster.computed(cluster.plain(looked, paths, like, dict(reading)))
    groups = [paths[at : at + FILES_AT_ONCE] for at in range(0, len(paths), FILES_AT_ONCE)]
    tasks = [cluster.plain(counted, group, way) for group in groups]
    sizes = [size for group in cluster.computed(cluster.plain(list, tasks), tasks) for size in group]
    sizes = [_as_before(path, size, again) for path, size in zip(paths, sizes, strict=True)]
    step = stretch(sum(size[0] or 0 for size in sizes), way.chunk_rows, row_bytes, part_rows)
    cut = way.counted and not model._chained and not model._takes_sequences
    parts: list[Part] = []
    for path, (rows, _, _, edges) in zip(paths, sizes, strict=True):
        starts = [0] if not cut or rows is None else cut_at(rows, edges, step)
        for start, end in zip(starts, [*starts[1:], rows], strict=True):
            name = path if len(starts) == 1 else f"{path} (rows {start:,} to {end - 1:,})"
            if end is None or end > start:
                parts.append(Part(len(parts), name, path, start, None if end is None else end - start))
    if not parts:
        raise ValueError("there is nothing to learn: the data has no rows")
    files = tuple((path, *size[:3]) for path, size in zip(paths, sizes, strict=True))
    return Plan(tuple(parts), (None,) * len(parts), way, files=files, again=again)


def _as_before(path: str, size: tuple[Any, ...], again: Mapping[str, int | None]) -> tuple[Any, ...]:
    """Return the size of a file by which parts were cut when it could not be read: they are to be the same."""
    if path not in again:
        return size
    rows = again[path]
    if None not in (rows, size[0]) and rows != size[0]:
        raise ValueError(f"{path} had {rows:,} rows when others were learned, and now it has {size[0]:,}: begin anew")
    return (rows, None, None, size[3])


def stretch(total: int, chunk_rows: int, row_bytes: int, part_rows: int | None) -> int:
    """Return the rows of a stretch of a file: whole chunks, some to share out, yet not too many in all."""
    if part_rows is None:
        part_rows = min(max(PART_BYTES // max(1, row_bytes), 1), max(total // PIECES, 1))
        part_rows = max(part_rows, total // MOST_PARTS)
    return max(1, -(-part_rows // chunk_rows)) * chunk_rows


def cut_at(rows: int, edges: Sequence[int] | None, step: int) -> list[int]:
    """Return where the stretches of a file begin: as many rows apart as there are to be, or where it can be gone to."""
    if edges is None:
        return list(range(0, rows, step)) or [0]
    starts = [0]
    for edge, after in zip(edges, [*edges[1:], rows], strict=True):
        if edge > starts[-1] and after - starts[-1] > step:
            starts.append(edge)
    return starts


@answered
def found(names: Sequence[str], form: str | None) -> list[str]:
    """Return the names of files, where those given may be patterns and folders; runs on a worker."""
    return [source.name for source in stream(FileNames(names), format=form).files]


@answered
def looked(paths: Sequence[str], like: Any, reading: Mapping[str, Any]) -> Any:
    """Return how files are read, which a look at the first that can be read tells, and bytes of a row; runs on a worker."""
    problem: Exception | None = None
    for some in (FileNames(paths), *paths):
        try:
            opened = stream(some, like=like, **reading)
            return way_of("files", opened, reading), 8 * max(1, len(opened.columns or ()))
        except (ValueError, OSError) as error:
            problem = problem or error
    assert problem is not None
    raise problem


def counted(paths: Sequence[str], way: Any) -> list[tuple[int | None, int | None, Any, Any]]:
    """Return rows, bytes, time of change and edges of files, None where they are not known; runs on a worker."""
    sizes = []
    for path in paths:
        rows = size = changed = edges = None
        try:
            opened = stream(path, like=way.schema, **way.options)
            (source,) = opened.files
            size, changed = source.size, source.changed
            rows = opened.total_rows if way.counted else None
            edges = opened.block_starts if way.counted else None
        except (ValueError, OSError):
            pass  # whoever reads it will say what is wrong
        sizes.append((rows, size, changed, edges))
    return sizes
