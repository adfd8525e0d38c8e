"""Statistics of K components as those of others: what moves between parts of a mixture come down to."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.statistics import Array


def recombined_arrays(
    statistics: Any, matrix: Array, others: Any = None, other_matrix: Array | None = None, shared: tuple[str, ...] = ()
) -> Any:
    """Return matrix @ statistics + other_matrix @ others over the components, which are the first axis of every array.

    A row of a matrix is a component to be, a column one that is there: so components are merged, split, emptied or replaced.
    What all components share stays that of the first.
    """
    arrays = dict(statistics.to_arrays())
    for name, array in arrays.items():
        if name == "from_base" or name in shared:
            continue
        arrays[name] = np.tensordot(matrix, array, axes=1)
        if others is not None:
            arrays[name] += np.tensordot(np.asarray(other_matrix), getattr(others, name), axes=1)
    return type(statistics)(**arrays)
