"""Type names for values that are not checked yet, and for values that only their model can interpret.

Input of the user is an `object` until it is checked (`core/validation.py`), so it cannot be used unchecked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# As a user hands them in, before they are checked
Rows: TypeAlias = object  # an array, a frame, a sparse matrix, a chunk, lists of sequences; whatever the model takes
Row: TypeAlias = object  # a vector, or a mapping from column names to values
Values: TypeAlias = object  # numbers beside the rows, such as targets, weights, labels and lengths; None where there are none
Key: TypeAlias = object  # the name of a sequence (a string or a whole number), or one for each row
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None

# After the check
Matrix: TypeAlias = Any  # rows (n, d): an Array, complex snapshots or SparseRows; a model says which of them it takes
AnyArray: TypeAlias = NDArray[Any]  # an array of any type of numbers
Index: TypeAlias = Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]  # of components
Places: TypeAlias = slice | Index  # of rows

Keywords: TypeAlias = Mapping[str, Any]  # arguments by their names, checked by the function that takes them
Settings: TypeAlias = Mapping[str, object]  # parameters by their names, as given
Records: TypeAlias = Mapping[str, Any]  # what policies know, by their names; only the policy of that name looks into its own
