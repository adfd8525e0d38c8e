"""Records of K components, whose first axis is the component: selected, recombined, replaced, and checked by reservoir rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array, Statistics, to_one_form
from headwater.core.values import Index

MOST_RATIO = 3.0  # of a variance, in any direction, to that of reservoir rows, beyond chance
MOST_ASPECT = 0.7  # root of columns by rows; fewer rows do not determine directions


NOT_OF_COMPONENTS = "from_base"  # the one statistic without a component axis

Record = TypeVar("Record")
Stats = TypeVar("Stats", bound=Statistics)


@dataclass(frozen=True)
class ComponentStatistics(Statistics):
    """Base of the statistics of a family: `count` (K,), the rows of each component, and what the subclass adds.

    The first axis of every array is the component.
    """

    count: Array

    @property
    def total(self) -> float:
        """Rows of all components, and of a background."""
        return float(self.count.sum())


def sum_rows(shares: Array) -> Array:
    """Return the sums (K,) of the shares (n, K) of rows: by a product, since NumPy adds up short rows ten times slower."""
    return np.asarray(np.ones(len(shares)) @ shares)


def select_components(record: Record, order: Index, shared: Collection[str] = ()) -> Record:
    """Return a record of some of the components, in this order; `shared` names the arrays that are those of all of them."""
    if isinstance(record, np.ndarray):
        return cast(Record, record[order])
    if not is_dataclass(record):
        return record
    held = (NOT_OF_COMPONENTS, *shared)
    parts = {one.name: getattr(record, one.name) for one in fields(record) if one.name not in held}
    return cast(Record, replace(cast(Any, record), **{name: select_components(part, order) for name, part in parts.items()}))


def recombine_components(
    statistics: Stats,
    matrix: Array,
    others: Stats | None = None,
    other_matrix: Array | None = None,
    shared: Collection[str] = (),
) -> Stats:
    """Return matrix @ statistics + other_matrix @ others over the components.

    A row of a matrix is a new component, a column an old one: so components are merged, split, emptied or replaced. Arrays that
    all components share are those of the first.
    """
    if others is not None:
        statistics, others = to_one_form((statistics, others))
    arrays = dict(statistics.to_arrays())
    for name, array in arrays.items():
        if name == NOT_OF_COMPONENTS or name in shared:
            continue
        arrays[name] = np.tensordot(matrix, array, axes=1)
        if others is not None:
            arrays[name] += np.tensordot(np.asarray(other_matrix), getattr(others, name), axes=1)
    return type(statistics)(**arrays)


def replace_components(statistics: Stats, other: Stats, which: NDArray[np.bool_]) -> Stats:
    """Return statistics that have these components from another."""
    statistics, other = to_one_form((statistics, other))
    own, arrays = statistics.to_arrays(), other.to_arrays()
    for name, array in own.items():
        if name != NOT_OF_COMPONENTS:
            own[name] = np.where(which.reshape(-1, *[1] * (array.ndim - 1)), arrays[name], array)
    return type(statistics)(**own)


def find_supported(totals: Array, known: Array, rows: Array) -> NDArray[np.bool_]:
    """Return which counts (K,) agree with the known numbers of reservoir rows of each component."""
    least, most = 0.5 * known, 2.0 * known
    chance = 4.0 * known / np.sqrt(np.maximum(rows, 1.0))
    return np.asarray((totals > np.maximum(least - chance, 0.0)) & (totals < most + chance))


def find_near(matrices: Array, known: Array, rows: Array) -> NDArray[np.bool_]:
    """Return which symmetric matrices (K, d, d) are positive and in no direction far from those of reservoir rows (K,).

    Diagonals (K, d) stand for matrices. How far is chance depends on the rows: eigenvalues of a sample spread by
    ((1 + q) / (1 - q))^2 with q^2 = d / rows (Marchenko and Pastur 1967).
    """
    width = matrices.shape[1]
    spread = np.minimum(np.sqrt(width / np.maximum(rows, 1.0)), MOST_ASPECT)
    bound = MOST_RATIO * ((1.0 + spread) / (1.0 - spread)) ** 2
    diagonal = matrices.ndim == 2
    axes = tuple(range(1, matrices.ndim))
    variances = known if diagonal else np.diagonal(known, axis1=1, axis2=2)
    finite = np.isfinite(matrices).all(axis=axes) & np.isfinite(known).all(axis=axes)
    good: NDArray[np.bool_] = np.asarray(finite & (variances > 0.0).all(axis=1))
    at = np.flatnonzero(good)
    if diagonal:
        ratios = matrices[at] / known[at]
    else:
        units = np.sqrt(variances[at])
        units = units[:, :, None] * units[:, None, :]
        values, vectors = np.linalg.eigh(known[at] / units)
        sound = values[:, 0] > 0.0
        good[at[~sound]] = False
        at, white = at[sound], (vectors / np.sqrt(np.maximum(values, 1e-300))[:, None, :])[sound]
        ratios = np.linalg.eigvalsh(np.swapaxes(white, 1, 2) @ (matrices[at] / units[sound]) @ white)
    good[at] = (ratios.min(axis=1, initial=np.inf) > 1.0 / bound[at]) & (ratios.max(axis=1, initial=0.0) < bound[at])
    return good
