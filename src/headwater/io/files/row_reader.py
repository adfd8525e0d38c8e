"""Rows in a file, which are read only if a stream of this model could have held them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwater.core.batch import NO_LABELS, NO_SEQUENCES, NO_WEIGHTS, Batch, SparseRows
from headwater.core.contracts import Model
from headwater.core.gapped_rows import GappedRows
from headwater.core.noisy_rows import NoisyRows
from headwater.core.statistics import HEAVIEST as HEAVIEST_ROW
from headwater.core.statistics import LIGHTEST as LIGHTEST_ROW
from headwater.core.values import AnyArray, Matrix
from headwater.io.files.records import LARGEST, Damaged, Reader


@dataclass(frozen=True)
class RowReader:
    """Makes batches of rows of trees, for one model and a number of columns; dense rows may have another one."""

    reader: Reader
    model: Model
    width: int

    @property
    def _columns(self) -> int:
        """Columns of dense rows."""
        return int(getattr(getattr(self.model, "family", None), "row_columns", self.width))

    def rows(self, tree: object, path: str, least: int = 1) -> Batch:
        reader = self.reader
        parts = reader.parts(tree, "Batch", {"X", "weights", "labels", "sequences"}, path)
        X: Matrix
        if isinstance(parts["X"], dict) and parts["X"].get("kind") == "SparseRows":
            X = self._sparse(parts["X"], f"{path}/X")
        elif isinstance(parts["X"], dict) and parts["X"].get("kind") == "GappedRows":
            values = reader.parts(parts["X"], "GappedRows", {"values"}, f"{path}/X")["values"]
            X = GappedRows.of(reader.array(values, f"{path}/X", np.float64, (None, self._columns), missing=True))
        elif isinstance(parts["X"], dict) and parts["X"].get("kind") == "NoisyRows":
            X = self._noisy(parts["X"], f"{path}/X")
        else:
            kind = np.complex128 if isinstance(parts["X"], dict) and parts["X"].get("complex") else np.float64
            X = reader.array(parts["X"], f"{path}/X", kind, (None, self._columns), missing=True)
        rows: int = X.shape[0]

        def companions(name: str, dtype: type[np.generic], none: AnyArray) -> AnyArray:
            found = reader.array(parts[name], f"{path}/{name}", dtype, (None,))
            if len(found) not in (0, rows):
                raise Damaged(f"{path}/{name} has {len(found)} entries for {rows} rows")
            return found if len(found) else none

        weights = companions("weights", np.float64, NO_WEIGHTS)
        labels = companions("labels", np.int64, NO_LABELS)
        sequences = companions("sequences", np.int64, NO_SEQUENCES)
        if rows < least or bool(sequences.size) != self.model.chained:
            raise Damaged(f"{path} holds rows that no stream has")
        if isinstance(X, GappedRows) and X.is_empty.any():  # they are left out when rows are learned
            raise Damaged(f"{path} holds rows without a value, which no stream keeps")
        if weights.size and not (weights.min() >= LIGHTEST_ROW and weights.max() <= HEAVIEST_ROW):
            raise Damaged(
                f"{path} holds rows that no stream has: weights must lie between {LIGHTEST_ROW:g} and {HEAVIEST_ROW:g}"
            )
        if sequences.size and not -LARGEST <= sequences.min() <= sequences.max() < LARGEST:
            raise Damaged(f"{path}/sequences name sequences by numbers that are too large")
        if labels.size and (labels.min() < -1 or labels.max() >= self.model.n_components):
            raise Damaged(f"{path}/labels name components that are not there")
        return Batch(X, weights, labels, sequences)

    def _noisy(self, tree: object, path: str) -> NoisyRows:
        parts, columns = self.reader.parts(tree, "NoisyRows", {"values", "noise"}, path), self._columns
        rows = GappedRows.of(self.reader.array(parts["values"], f"{path}/values", np.float64, (None, columns), missing=True))
        record = self.reader.expect(parts["noise"], dict, f"{path}/noise")
        stored = self.reader.arrays.get(str(record.get("array")))
        shape = (len(rows), columns, columns) if stored is not None and stored.ndim == 3 else (len(rows), columns)
        return NoisyRows.of_errors(rows, self.reader.array(record, f"{path}/noise", np.float64, shape))

    def _sparse(self, tree: object, path: str) -> SparseRows:
        parts = self.reader.parts(tree, "SparseRows", {"data", "indices", "indptr", "width"}, path)
        data = self.reader.array(parts["data"], f"{path}/data", np.float64, (None,))
        indices = self.reader.array(parts["indices"], f"{path}/indices", np.int32, (len(data),))
        indptr = self.reader.array(parts["indptr"], f"{path}/indptr", np.int64, (None,))
        width = self.reader.whole(parts["width"], f"{path}/width", 1)
        if len(indptr) < 1 or indptr[0] != 0 or indptr[-1] != len(data) or np.any(np.diff(indptr) < 0) or width > self.width:
            raise Damaged(f"{path} is a damaged sparse matrix")
        rising = np.diff(indices) > 0
        rising[indptr[1:-1][(indptr[1:-1] > 0) & (indptr[1:-1] < len(data))] - 1] = True  # where a row begins
        if len(data) and (indices.min() < 0 or indices.max() >= width or not rising.all()):
            raise Damaged(f"{path} names columns that are not there, or not in their order")
        return SparseRows(data, indices, indptr, width)
