"""Rows with gaps, grouped by the number of missing columns; rows with the same missing columns share factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwater.core.statistics import Array
from headwater.families.conditional_law import Mask, Places
from headwater.families.triangles import invert_triangles

MOST_BITS = 52  # columns whose pattern is a whole number that a float64 holds
SHARED_ROWS = 8  # rows of a pattern, on average, from which a product for each pattern is cheaper than one for each row


@dataclass(frozen=True)
class PatternGroup:
    """g rows that lack m columns each, in U patterns; K components of d columns."""

    rows: Places  # (g,)
    columns: Places  # (g, m) that are missing
    which: Places  # (g,) the pattern of each row
    centre: Array  # (g, K, m) conditional means of the missing columns
    triangle: Array  # (U, K, m, m) R, whose R'R is their conditional precision
    root: Array  # (U, K, m, m) its inverse
    log_det: Array  # (U, K) log |R|
    basis: Array  # (U, K, d, m) Q

    def project(self, factor: Array) -> Array:
        """Return the factor without what the missing columns explain, F - QQ'F (U, K, d, d)."""
        return np.asarray(factor - self.basis @ (np.swapaxes(self.basis, 2, 3) @ factor))


def pattern_codes(missing: Mask) -> Places:
    """Return a number (n,) for each row: the same for rows that lack the same columns, and in the order of how many."""
    width, sizes = missing.shape[1], missing.sum(axis=1)
    if width <= MOST_BITS:
        bits = missing @ 2.0 ** np.arange(width)
        return np.asarray(bits.astype(np.int64) + (sizes << width))
    packed = np.ascontiguousarray(np.packbits(missing, axis=1))
    _, code = np.unique(packed.view([("", np.void, packed.shape[1])])[:, 0], return_inverse=True)
    return np.asarray(code + (code.max(initial=0) + 1) * sizes)


def find_groups(missing: Mask, factor: Array, white: Array, means: Array) -> list[PatternGroup]:
    """Return the rows with gaps, and move `white` (K, n, d) in place to where their missing columns are conditional means."""
    sizes = missing.sum(axis=1)
    codes = pattern_codes(missing)
    groups = []
    for size in np.unique(sizes[sizes > 0]):
        rows = np.flatnonzero(sizes == size)
        columns = np.nonzero(missing[rows])[1].reshape(len(rows), size)
        _, first, which = np.unique(codes[rows], return_index=True, return_inverse=True)
        basis, triangle = np.linalg.qr(np.moveaxis(factor[:, :, columns[first]], 2, 0))  # (U, K, d, m), (U, K, m, m)
        root = invert_triangles(triangle)
        explained = _explained(basis, which, white[:, rows])
        white[:, rows] -= np.swapaxes(_unexplained(basis, which, explained), 0, 1)
        centre = np.moveaxis(means[:, columns], 0, 1) - (root[which] @ explained[..., None])[..., 0]
        log_det = np.log(np.abs(np.diagonal(triangle, axis1=2, axis2=3))).sum(axis=2)
        groups.append(PatternGroup(rows, columns, which, centre, triangle, root, log_det, basis))
    return groups


def _explained(basis: Array, which: Places, white: Array) -> Array:
    """Q'w (g, K, m)."""
    if len(which) < SHARED_ROWS * len(basis):
        return np.asarray((np.swapaxes(white, 0, 1)[:, :, None, :] @ basis[which])[:, :, 0])
    found = np.empty((len(which), basis.shape[1], basis.shape[3]))
    for one, shared in enumerate(basis):
        rows = which == one
        found[rows] = np.swapaxes(white[:, rows] @ shared, 0, 1)
    return found


def _unexplained(basis: Array, which: Places, explained: Array) -> Array:
    """QQ'w (g, K, d)."""
    if len(which) < SHARED_ROWS * len(basis):
        return np.asarray((basis[which] @ explained[..., None])[..., 0])
    found = np.empty((*explained.shape[:2], basis.shape[2]))
    for one, shared in enumerate(basis):
        rows = which == one
        found[rows] = np.swapaxes(np.swapaxes(explained[rows], 0, 1) @ np.swapaxes(shared, 1, 2), 0, 1)
    return found
