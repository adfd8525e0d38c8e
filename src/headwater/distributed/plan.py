"""The plan of a run: data is cut into parts, which do not depend on the number of workers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import PurePath
from typing import TYPE_CHECKING

from headwater.core.values import Keywords
from headwater.distributed.dask_collections import collection_plan, is_collection
from headwater.distributed.dask_engine import DaskEngine
from headwater.distributed.messages import return_errors
from headwater.distributed.parts import DataToRead, Part, Plan, ReadPlan, read_plan_like
from headwater.io.open_stream import stream
from headwater.io.source_lookup import ADDRESS, FileNames

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


PART_BYTES = 2**26  # of the numbers in a part: seconds of work, and little memory of a worker
SMALL_DATA_PARTS = 32  # of data with fewer bytes than that many parts: enough for some workers and rounds
MOST_PARTS = 4096  # of one run, so that the scheduler is not the bottleneck
FILES_PER_TASK = 32  # that one task measures: opening a remote file takes longer than a task

# Options that need the order of one stream, which parts do not have.
ORDER_ERRORS = {
    "shuffle": "shuffle mixes the rows of one stream, and parts are read side by side: leave it out",
    "vocabulary": (
        "vocabulary='open' follows the order of one stream, and parts are read side by side: give the words, or a number of "
        "columns that they are hashed to, or take those of the first documents"
    ),
}

# Rows, bytes, time of change, and rows at which reading can start; None where it is not known.
FileSize = tuple[int | None, int | None, object, Sequence[int] | None]


def make_plan(engine: DaskEngine, model: StreamingEstimator, data: DataToRead) -> Plan:
    """Look at the data on workers and return its parts and how they are read.

    Files that an earlier run could not read are cut into the same parts as they were then.
    """
    if is_collection(data.source):
        return collection_plan(engine, model, data)
    for name, value, option in (("y", data.y, "target"), ("sample_weight", data.sample_weight, "weight")):
        if value is not None:
            raise ValueError(f"{name} of files is one of their columns: name it by {option}=")
    return _plan_files(engine, model, _file_names(data.source), data)


def check_reading(model: StreamingEstimator, reading: Keywords) -> None:
    """Refuse options that no stream has, and those that parts cannot have."""
    known = set(signature(stream).parameters) - {"source", "like", "prefetch"}
    unknown = [name for name in reading if name not in known]
    if unknown:
        raise TypeError(
            f"fit has no option {unknown[0]!r}; data is read by those of headwater.stream: {', '.join(sorted(known))}"
        )
    if reading.get("standard_errors") or "standard_errors" in (getattr(model, "schema_", None) or {}):
        raise ValueError("rows with standard errors are learned on one machine: leave the cluster or standard_errors out")
    if reading.get("shuffle"):
        raise ValueError(ORDER_ERRORS["shuffle"])
    vocabulary = reading.get("vocabulary"), getattr(model, "vocabulary", None)
    if any(isinstance(one, str) and one == "open" for one in vocabulary):
        raise ValueError(ORDER_ERRORS["vocabulary"])


def _file_names(data: object) -> list[str]:
    """Return names of files as absolute paths, or refuse what is none."""
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
    # Workers may have another current directory.
    return [str(one) if ADDRESS.match(str(one)) else os.path.abspath(one) for one in named]


def _plan_files(engine: DaskEngine, model: StreamingEstimator, names: list[str], data: DataToRead) -> Plan:
    paths = engine.compute(engine.make_task(find_files, names, data.options.get("format")))
    read_plan, row_bytes = engine.compute(engine.make_task(look_at_files, paths, data.like, {**data.defaults, **data.options}))
    groups = [paths[at : at + FILES_PER_TASK] for at in range(0, len(paths), FILES_PER_TASK)]
    tasks = [engine.make_task(measure_files, group, read_plan) for group in groups]
    sizes = [size for group in engine.compute(engine.make_task(list, tasks), tasks) for size in group]
    sizes = [_size_before(path, size, data.unread_before) for path, size in zip(paths, sizes, strict=True)]
    step = stretch_rows(sum(size[0] or 0 for size in sizes), read_plan.chunk_rows, row_bytes, data.part_rows)
    cut = read_plan.seekable and not model._traits.chained and not model._traits.takes_sequences
    parts: list[Part] = []
    for path, (rows, _, _, edges) in zip(paths, sizes, strict=True):
        starts = [0] if not cut or rows is None else stretch_starts(rows, edges, step)
        for start, end in zip(starts, [*starts[1:], rows], strict=True):
            name = path if len(starts) == 1 else f"{path} (rows {start:,} to {end - 1:,})"
            if end is None or end > start:
                parts.append(Part(len(parts), name, path, start, None if end is None else end - start))
    if not parts:
        raise ValueError("there is nothing to learn: the data has no rows")
    files = tuple((path, *size[:3]) for path, size in zip(paths, sizes, strict=True))
    return Plan(tuple(parts), (None,) * len(parts), read_plan, files=files, unread_before=data.unread_before)


def _size_before(path: str, size: FileSize, unread_before: Mapping[str, int | None]) -> FileSize:
    """Return the size of a file; if it could not be read before, the size by which its parts were cut then."""
    if path not in unread_before:
        return size
    rows = unread_before[path]
    if None not in (rows, size[0]) and rows != size[0]:
        raise ValueError(f"{path} had {rows:,} rows when others were learned, and now it has {size[0]:,}: begin anew")
    return (rows, None, None, size[3])


def stretch_rows(total: int, chunk_rows: int, row_bytes: int, part_rows: int | None) -> int:
    """Return the rows of a part of a file: whole chunks, enough parts to share, but not too many in all."""
    if part_rows is None:
        part_rows = min(max(PART_BYTES // max(1, row_bytes), 1), max(total // SMALL_DATA_PARTS, 1))
        part_rows = max(part_rows, total // MOST_PARTS)
    return max(1, -(-part_rows // chunk_rows)) * chunk_rows


def stretch_starts(rows: int, edges: Sequence[int] | None, step: int) -> list[int]:
    """Return the first rows of the parts of a file: `step` rows apart, or at edges where reading can start."""
    if edges is None:
        return list(range(0, rows, step)) or [0]
    starts = [0]
    for edge, after in zip(edges, [*edges[1:], rows], strict=True):
        if edge > starts[-1] and after - starts[-1] > step:
            starts.append(edge)
    return starts


@return_errors
def find_files(names: Sequence[str], form: str | None) -> list[str]:
    """Return the names of files, where those given may be patterns and folders. Runs on a worker."""
    return [source.name for source in stream(FileNames(names), format=form).files]


@return_errors
def look_at_files(paths: Sequence[str], like: object, reading: Keywords) -> object:
    """Return how all files are read, by a look at the first readable one, and the bytes of a row. Runs on a worker."""
    problem: Exception | None = None
    for some in (FileNames(paths), *paths):
        try:
            opened = stream(some, like=like, **reading)
            return read_plan_like("files", opened, reading), 8 * max(1, len(opened.columns or ()))
        except (ValueError, OSError) as error:
            problem = problem or error
    assert problem is not None
    raise problem


def measure_files(paths: Sequence[str], read_plan: ReadPlan) -> list[FileSize]:
    """Return the sizes of files. Runs on a worker."""
    sizes: list[FileSize] = []
    for path in paths:
        rows = size = changed = edges = None
        try:
            opened = stream(path, like=read_plan.schema, **read_plan.options)
            (source,) = opened.files
            size, changed = source.size, source.changed
            rows = opened.total_rows if read_plan.seekable else None
            edges = opened.block_starts if read_plan.seekable else None
        except (ValueError, OSError):
            pass  # the task that reads the file will report what is wrong
        sizes.append((rows, size, changed, edges))
    return sizes
