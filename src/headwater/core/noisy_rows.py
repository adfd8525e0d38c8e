"""Rows that were measured with errors: each value comes with the variance of its error, or each row with a covariance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headwater.core.gapped_rows import GappedRows, join_gapped
from headwater.core.statistics import LARGEST, Array
from headwater.core.values import Index, Places

NO_NOISE: Array = np.empty((0, 0))


@dataclass(frozen=True)
class NoisyRows(GappedRows):
    """Rows (n, d), some values of which may be missing, with `noise`: variances (n, d) or covariances (n, d, d) of the errors.

    A gap is an infinite error: the noise there is 0, and is not looked at.
    """

    noise: Array = field(default_factory=lambda: NO_NOISE)

    @classmethod
    def of_errors(cls, rows: Array | GappedRows, noise: Array) -> NoisyRows:
        """Return rows with the noise of each."""
        if isinstance(rows, GappedRows):
            values, missing = rows.values, rows.missing
        else:
            values, missing = np.asarray(rows, dtype=float), np.zeros(rows.shape, dtype=bool)
        gone = missing if noise.ndim == 2 else missing[:, :, None] | missing[:, None]
        return cls(values, missing, np.where(gone, 0.0, noise) if missing.any() else noise)

    @property
    def nbytes(self) -> int:
        """Memory of the values and of their errors."""
        return self.values.nbytes + self.noise.nbytes

    @property
    def variances(self) -> Array:
        """Variance (n, d) of the error of each value."""
        return self.noise if self.noise.ndim == 2 else np.diagonal(self.noise, axis1=1, axis2=2)

    @property
    def covariances(self) -> Array:
        """Covariance (n, d, d) of the errors of each row."""
        return as_covariances(self.noise)

    def __getitem__(self, rows: Places) -> NoisyRows:
        own = super().__getitem__(rows)
        if isinstance(rows, slice):
            return NoisyRows(own.values, own.missing, np.ascontiguousarray(self.noise[rows]))
        places = np.asarray(rows)
        places = np.flatnonzero(places) if places.dtype.kind == "b" else places
        return NoisyRows(own.values, own.missing, np.take(self.noise, places, axis=0))

    def columns(self, columns: slice | Index) -> NoisyRows:
        """Return some of the columns."""
        own = super().columns(columns)
        noise = self.noise[:, columns] if self.noise.ndim == 2 else self.noise[:, columns][:, :, columns]
        return NoisyRows(own.values, own.missing, np.ascontiguousarray(noise))

    def complete(self, rows: NDArray[np.int64]) -> Array:
        """Return listed rows, which have no gaps, as a plain matrix of what was measured."""
        return np.take(self.values, rows, axis=0)

    def copy(self) -> NoisyRows:
        """Return the rows in memory of their own."""
        return NoisyRows(self.values.copy(), self.missing.copy(), self.noise.copy())

    def in_units(self, origin: Array, units: Array) -> NoisyRows:
        """Return the rows about an origin, in units of the columns."""
        with np.errstate(over="ignore"):  # in small units errors may be without end, as those of gaps
            noise = self.noise / (units**2 if self.noise.ndim == 2 else units[:, None] * units)
        noise = np.clip(noise, -(LARGEST**2), LARGEST**2)
        return NoisyRows((self.values - origin) / units, self.missing, noise)


def as_covariances(noise: Array) -> Array:
    """Return variances (n, d) as diagonal covariances (n, d, d); covariances as they are."""
    return noise if noise.ndim == 3 else noise[:, :, None] * np.eye(noise.shape[1])


def join_noisy(rows: list[Array | GappedRows]) -> NoisyRows:
    """Return rows of several chunks as one; those that came without noise have none."""
    parts = [one.noise if isinstance(one, NoisyRows) else np.zeros(one.shape) for one in rows]
    if any(part.ndim == 3 for part in parts):
        parts = [as_covariances(part) for part in parts]
    whole = join_gapped(rows)
    return NoisyRows(whole.values, whole.missing, np.concatenate(parts))
