"""Rows of float32, float16, int8 and uint8, and the type of answers: for mixtures that take a `dtype`."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Self

import numpy as np

from headwater.core.batch import NARROW, doubles
from headwater.core.chunk import values_of
from headwater.core.statistics import Array
from headwater.core.validation import check_rows
from headwater.core.values import Matrix, Rows
from headwater.estimators.traits import Taken

DTYPES = ("float32", "float64")  # that may be asked for by name
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def dtype_of(X: Rows) -> np.dtype | None:
    """Return the type of rows as they came: of a frame that of all its columns, None if they differ or are no numbers."""
    values = values_of(X)
    found = getattr(values, "dtype", None)
    if found is None and hasattr(values, "dtypes"):
        kinds = {str(kind).lower() for kind in getattr(values.dtypes, "values", values.dtypes)}
        found = np.dtype(np.float32) if kinds == {"float32"} else None
    return found if isinstance(found, np.dtype) else None


if TYPE_CHECKING:
    from headwater.estimators.mixture import MixtureEstimator as Beside
else:
    Beside = object  # the classes with these answers have the other methods of mixtures from another base


class NarrowRows(Beside):
    """Base of the mixtures that take a `dtype`. A subclass says which models are large enough for products in float32."""

    dtype: str | None

    def _is_large(self, width: int) -> bool:
        """Whether E-steps are products of matrices, so that narrow rows are worth their own."""
        return False

    def _checked(self, X: Taken) -> Matrix:
        """Return the rows of a chunk, in the type that products are to be taken in, or refuse them."""
        rows = check_rows(X, owner=type(self).__name__, gaps=self._takes_gaps, narrow=True)
        if not isinstance(rows, np.ndarray):
            return rows
        if self.dtype == "float64" or not self._is_large(rows.shape[1]):
            return doubles(rows)
        return rows.astype(np.float32) if self.dtype == "float32" and rows.dtype.char not in NARROW else rows

    def _in_precision(self, X: Rows, answer: Array) -> Array:
        """Return an answer about rows in float32 if these are, or if the model is to answer so."""
        short = dtype_of(X) == np.float32 if self.dtype is None else self.dtype == "float32"
        return answer.astype(np.float32) if short else answer

    def _note_learned(self, X: Taken, anew: bool) -> None:
        super()._note_learned(X, anew)
        if dtype_of(X) != np.float32:
            self.__dict__.pop("_float32", None)
        elif anew:
            self.__dict__["_float32"] = True

    def _in_learned_type(self, learned: Array) -> Array:
        """Return what was learned in float32 if all rows were, or if the model is to answer so; it is kept in float64.

        What is beyond the range of float32 is returned as it is kept.
        """
        short = "_float32" in self.__dict__ if self.dtype is None else self.dtype == "float32"
        fits = np.abs(learned).max(initial=0.0) <= LARGEST_FLOAT32
        return learned.astype(np.float32) if short and fits and "_unrounded" not in self.__dict__ else learned

    def _in_doubles(self) -> Self:
        exact = copy(self)
        exact.__dict__["_unrounded"] = True
        return exact
