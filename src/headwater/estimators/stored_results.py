"""Results that are kept beside the state, and how they are read from a file: each kind by a function of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import DTypeLike

from headwater.core.match import Match, MergeReport
from headwater.diagnostics.distributed_report import DistributedReport
from headwater.diagnostics.history import History
from headwater.estimators.codebook import FLAG, NUMBER, TEXT, Category, Codebook, Levels
from headwater.estimators.column_kinds import CATEGORICAL, KINDS
from headwater.estimators.race import BLOCK, Race, Rival, Tally
from headwater.estimators.stored_parameters import shape_of
from headwater.estimators.table_schema import TableSchema
from headwater.io.files.records import Damaged, Reader

if TYPE_CHECKING:
    from headwater.core.values import AnyArray

# What is learned beside the state, and how it is read. A reader gets the reader of arrays, the tree, and a path.
Read = Callable[[Reader, object, str], object]


def _real(reader: Reader, tree: object, path: str) -> float:
    return reader.number(tree, path, finite=False)


def _names(reader: Reader, tree: object, path: str) -> object:
    return np.array([reader.expect(one, str, path) for one in reader.items(tree, path)], dtype=object)


def _schema(reader: Reader, tree: object, path: str) -> object:
    """What JSON knows, as it is; those who read rows by it check it, and all others use the names of symbols alone."""
    schema = reader.expect(tree, dict, path)
    symbols = schema.get("symbols")
    if symbols is not None and not (type(symbols) is list and all(type(one) is str for one in symbols)):
        raise Damaged(f"{path}/symbols must be a list of names, got {symbols!r:.40}")
    return schema


def _history(reader: Reader, tree: object, path: str) -> History:
    try:
        return History.from_dict(reader.expect(tree, dict, path))
    except ValueError as error:
        raise Damaged(f"{path}: {error}") from error


def _distributed_report(reader: Reader, tree: object, path: str) -> DistributedReport:
    try:
        return DistributedReport.from_dict(reader.expect(tree, dict, path))
    except ValueError as error:
        raise Damaged(f"{path}: {error}") from error


def _read_given(reader: Reader, tree: object, path: str) -> dict[str, object]:
    pairs = [reader.items(pair, path) for pair in reader.items(tree, path)]
    return {
        reader.expect(name, str, path): reader.array(one, path, np.float64, shape_of(reader, one, path)) for name, one in pairs
    }


MOST_OPENED = 2**53  # sequences, which are counted up


def _read_open(reader: Reader, tree: object, path: str) -> dict[object, int]:
    found: dict[object, int] = {}
    for pair in reader.items(tree, path):
        key, number = reader.items(pair, path) if isinstance(pair, list) and len(pair) == 2 else (b"", 0)
        if not (key is None or type(key) in (str, int)):
            raise Damaged(f"{path} has a key that is neither a name nor a number")
        found[key] = reader.whole(number, path, 0, MOST_OPENED)
    return found


def _read_pasts(reader: Reader, tree: object, path: str) -> dict[int, object]:
    pairs = [reader.items(pair, path) for pair in reader.items(tree, path)]
    return {
        reader.whole(number, path, 0, MOST_OPENED): reader.array(
            one, path, np.float64, shape_of(reader, one, path), infinite=True
        )
        for number, one in pairs
    }


def _vector(reader: Reader, tree: object, path: str, dtype: DTypeLike = np.float64) -> AnyArray:
    return reader.array(tree, path, dtype, (None,))


def _shares(reader: Reader, tree: object, path: str) -> object:
    found = _vector(reader, tree, path)
    if not (found.size and np.all(found >= 0.0) and np.isclose(found.sum(), 1.0)):
        raise Damaged(f"{path} holds no probabilities")
    return found


def _merge_report(reader: Reader, tree: object, path: str) -> MergeReport:
    parts = reader.parts(tree, "MergeReport", {part.name for part in fields(MergeReport) if part.compare}, path)

    def wholes(items: object) -> tuple[int, ...]:
        return tuple(reader.whole(one, path) for one in reader.items(items, path))

    matches = []
    for one in reader.items(parts["matches"], path):
        match = reader.parts(one, "Match", {part.name for part in fields(Match) if part.compare}, path)
        components = _vector(reader, match["components"], path, np.int64)
        names, shape = ("divergence", "margin", "contrast"), (len(components),)
        numbers = [reader.array(match[name], path, np.float64, shape, infinite=True) for name in names]
        if not components.size or components.min() < 0:
            raise Damaged(f"{path} has a match of components that are not there")
        renumbered = np.isnan(numbers[0]).all()  # models that grew to another number: one may answer for several, or for none
        if not renumbered and sorted(components.tolist()) != list(range(len(components))):
            raise Damaged(f"{path} has a match that is not an order of components")
        matches.append(Match(wholes(match["models"]), components, *numbers))
    held = frozenset(reader.expect(one, str, path) for one in reader.items(parts["held"], path))
    models, rows, reference = (reader.whole(parts[name], path) for name in ("models", "rows", "reference"))
    repaired, replayed = wholes(parts["repaired"]), wholes(parts["replayed"])
    return MergeReport(models, rows, reference, tuple(matches), repaired, replayed, held)


def _table_schema(reader: Reader, tree: object, path: str) -> TableSchema:
    parts = reader.parts(tree, "TableSchema", {"kinds", "codebook"}, path)
    book = reader.parts(parts["codebook"], "Codebook", {"columns", "levels"}, path)
    kinds = tuple(reader.expect(one, str, path) for one in reader.items(parts["kinds"], path))
    columns = tuple(reader.whole(one, path, 0) for one in reader.items(book["columns"], path))
    levels = tuple(_levels(reader, one, path) for one in reader.items(book["levels"], path))
    if not set(kinds) <= set(KINDS):
        raise Damaged(f"{path} has columns of kinds that are not known")
    if columns != tuple(at for at, kind in enumerate(kinds) if kind == CATEGORICAL) or len(levels) != len(columns):
        raise Damaged(f"{path} has categories of other columns than those that are categorical")
    return TableSchema(kinds, Codebook(columns, levels))


def _levels(reader: Reader, tree: object, path: str) -> Levels:
    parts = reader.parts(tree, "Levels", {"holds", "values"}, path)
    kind, values = reader.expect(parts["holds"], str, path), reader.items(parts["values"], path)
    types = {TEXT: str, NUMBER: float, FLAG: bool}
    sound = all(type(value) is types.get(kind) for value in values) and len(set(values)) == len(values)
    if (kind and kind not in types) or not sound or bool(kind) != bool(values):
        raise Damaged(f"{path} has categories that are no {kind or 'categories'}, or some twice")
    return Levels(kind, tuple(cast(list[Category], values)))


def _component_names(reader: Reader, tree: object, path: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for pair in reader.items(tree, path):
        number, name = reader.items(pair, path) if isinstance(pair, list) and len(pair) == 2 else (-1, "")
        found[reader.whole(number, path, 0, MOST_OPENED)] = reader.expect(name, str, path)
    if len(set(found.values())) < len(found) or not all(name.strip() and name.isprintable() for name in found.values()):
        raise Damaged(f"{path} has names that are no words in one line, or one twice")
    return found


RESULTS: dict[str, Read] = {
    "n_features_in_": lambda reader, tree, path: reader.whole(tree, path, 1),
    "feature_names_in_": _names,
    "converged_": lambda reader, tree, path: reader.expect(tree, bool, path),
    "n_iter_": lambda reader, tree, path: reader.whole(tree, path, 0),
    "lower_bound_": _real,
    "lower_bounds_": lambda reader, tree, path: [_real(reader, one, path) for one in reader.items(tree, path)],
    "merge_report_": _merge_report,
    "schema_": _schema,
    "history_": _history,
    "distributed_report_": _distributed_report,
    "_open": _read_open,
    "_pasts": _read_pasts,
    "_end": _shares,
    "_end_rows": lambda reader, tree, path: reader.array(tree, path, np.float64, shape_of(reader, tree, path), infinite=True),
    "_given": _read_given,
    "_schema": _table_schema,
    "_names": _component_names,
    "_float32": lambda reader, tree, path: reader.expect(tree, bool, path),
}
AS_IT_IS = ("schema_", "history_", "distributed_report_")


def read_race(reader: Reader, tree: object, path: str) -> Race:
    """Return a race; what its rivals have learned is kept apart."""
    parts = reader.parts(tree, "Race", {part.name for part in fields(Race)}, path)
    rivals = tuple(_rival(reader, one, path) for one in reader.items(parts["rivals"], path))
    counts = {name: reader.whole(parts[name], f"{path}/{name}", 0) for name in ("leader", "warm_up", "judged", "until", "last")}
    race = Race(rivals, **counts)  # type: ignore[arg-type]
    numbers = [rival.n_components for rival in rivals]
    if sorted(set(numbers)) != numbers or race.leader not in (numbers or [0]) or (race.until == 0 and not rivals):
        raise Damaged(f"{path} is not a race")
    runs = bool(rivals) and not race.over
    if (parts["tally"] is not None) != runs:
        raise Damaged(f"{path} has a tally, and nobody runs; or none, and some do")
    if not runs:
        return race
    if race.leader not in race.running or not race.judged < race.until or race.warm_up < 1:
        raise Damaged(f"{path} is led by one that dropped out, or has missed its next comparison")
    return replace(race, tally=_tally(reader, parts["tally"], len(race.running), f"{path}/tally"))


def _rival(reader: Reader, tree: object, path: str) -> Rival:
    parts = reader.parts(tree, "Rival", {part.name for part in fields(Rival)}, path)
    dropped = parts["dropped_at"]
    return Rival(
        reader.whole(parts["n_components"], path, 1),
        reader.number(parts["score"], path, finite=False),
        reader.number(parts["behind"], path, finite=False),
        reader.whole(parts["rows"], path, 0),
        None if dropped is None else reader.whole(dropped, path, 0),
    )


def _tally(reader: Reader, tree: object, rivals: int, path: str) -> Tally:
    parts = reader.parts(tree, "Tally", {part.name for part in fields(Tally)}, path)
    sums = reader.array(parts["sums"], path, np.float64, (rivals,))
    products = reader.array(parts["products"], path, np.float64, (rivals, rivals))
    waiting = reader.array(parts["waiting"], path, np.float64, (None, rivals))
    weights = reader.array(parts["weights"], path, np.float64, (len(waiting),))
    level, weight = reader.number(parts["level"], path), reader.number(parts["weight"], path, 0.0)
    rows, blocks = reader.whole(parts["rows"], path, 0), reader.whole(parts["blocks"], path, 0)
    if rows != blocks * BLOCK or len(waiting) >= BLOCK or (weights.size and weights.min() <= 0.0):
        raise Damaged(f"{path} is not a tally")
    return Tally(sums, products, level, weight, rows, blocks, waiting, weights)
