"""E-step of K Gaussians by dense products, for many components of many columns.

The functions take the arguments of the kernels in gaussian.py and do the same. The squared distance of a row to a component,
|factor (x - origin) - shift|^2, is written out, so that products of matrices give it for all components at once. Rounding
then grows with |shift|^2: `exact_enough` says where that is harmless. A component takes the moments of the rows that it has a
share in; with many components that is a small part of them.

Rows of a narrower type than float64 have their products taken in float32, which takes half the time, where rounding allows
it; scores, responsibilities and sums are float64 all the same. Rows of float64 have products in float32, too, where these
only show which components are far from a row: distances to those that are near are then taken in float64, and what float32
does to a share far below one changes no digit that float64 would keep. The same holds for the sums of small shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from headwater.kernels._jit import helper, kernel
from headwater.kernels.gaussian import NEGLIGIBLE
from headwater.kernels.mixture import responsibilities_block

Array: TypeAlias = NDArray[np.float64]

BLOCK_NUMBERS = 2**16  # of a block of rows or of responsibilities: 512 kB, half of what a core has of fast memory
LEAST_ROWS, MOST_ROWS = 128, 2048  # of a block
MOST_NORM = 1e7  # of a shift: a squared distance is then off by some 1e-8
MOST_NARROW_NORM = 3e4  # and in float32, by some 1e-3
SPARSE_SHARE = 0.12  # of responsibilities that are not negligible, below which a sum over them is faster than a product
LEAST_NARROW = 4096  # components times columns from which rows of float64 have products in float32
NEAR_NATS = 20.0  # below the nearest component of a row, within which distances are taken in float64
NEAR_SHARE = 0.1  # of components, on average, above which products in float64 cost less than that
MOST_NARROW_SIZE = 3e4  # of the terms of a squared distance whose product in float32 is off by 0.01 at most
SMALL_SHARE = 2.0**-24  # responsibilities below it are summed in float32


def exact_enough(shift: Array) -> bool:
    """Whether squared distances from these shifts may be written out."""
    return bool(np.einsum("kj,kj->k", shift, shift).max() <= MOST_NORM)


def product_type(X: NDArray[np.generic], norms: Array) -> type[np.floating]:
    """Return the type that products with rows are taken in."""
    return np.float64 if X.dtype == np.float64 or norms.max() > MOST_NARROW_NORM else np.float32


def block_rows(n_components: int, width: int) -> int:
    """Return the rows of a block."""
    return min(max(BLOCK_NUMBERS // max(n_components, width), LEAST_ROWS), MOST_ROWS)


@kernel
def share_block(
    squared, norms, scale, row_norms, peak, total, at, weights, labels, offset, power, stretch, scores, responsibilities,
    given, count,
):  # fmt: skip
    """Turn products into weighted responsibilities, count them, and set those that are negligible to zero.

    The squared distance is the product plus the norms of the component, and those of the row times the component's scale.
    Returns the score, how many responsibilities are left, and how many of these are not small.
    """
    n_components, rows = squared.shape
    if not given:
        for k in range(n_components):
            for b in range(rows):
                squared[k, b] = max(squared[k, b] + (norms[k] + scale[k] * row_norms[b]), 0.0)
    score = responsibilities_block(
        squared, peak, total, rows, at, weights, labels, offset, power, stretch, scores, responsibilities, given
    )
    left, large = 0, 0
    if count.size:
        for b in range(rows):
            total[b] = NEGLIGIBLE * (weights[at + b] if weights.size else 1.0)
        for k in range(n_components):
            mass = 0.0
            for b in range(rows):
                mass += squared[k, b]
            count[k] += mass
            for b in range(rows):
                left += squared[k, b] > total[b]
            for b in range(rows):
                large += squared[k, b] > total[b] * (SMALL_SHARE / NEGLIGIBLE)
            for b in range(rows):
                squared[k, b] = squared[k, b] if squared[k, b] > total[b] else 0.0
    return score, left, large


@kernel
def sharpen(squared, norms, scale, row_norms, rows, factor, shift, offset, peak, value):
    """Put distances in float64 in the place of products in float32, for components that are near a row; return how many.

    As `share_block` has it, the norms are left out. No component has a heavy tail, and no row a label.
    """
    n_components, number = squared.shape
    width = rows.shape[1]
    for b in range(number):
        peak[b] = -np.inf
    for k in range(n_components):
        for b in range(number):
            peak[b] = max(peak[b], offset[k] - 0.5 * (squared[k, b] + (norms[k] + scale[k] * row_norms[b])))
    for b in range(number):
        peak[b] -= NEAR_NATS
    near = 0
    for k in range(n_components):
        for b in range(number):
            value[b] = offset[k] - 0.5 * (squared[k, b] + (norms[k] + scale[k] * row_norms[b])) - peak[b]
        for b in range(number):
            if value[b] > 0.0:
                near += 1
                distance = 0.0
                for j in range(width):
                    y = factor[k, j] * rows[b, j] - shift[k, j]
                    distance += y * y
                squared[k, b] = distance - (norms[k] + scale[k] * row_norms[b])
    return near


@helper
def add_rows(chosen, number, shares, rows, first, second, squares):
    """Add the moments of the chosen rows, each with its share, to those of a component, four rows at a time."""
    width = rows.shape[1]
    at = 0
    while at + 4 <= number:
        b0, b1, b2, b3 = chosen[at], chosen[at + 1], chosen[at + 2], chosen[at + 3]
        s0, s1, s2, s3 = shares[b0], shares[b1], shares[b2], shares[b3]
        if squares:
            for j in range(width):
                p0, p1, p2, p3 = s0 * rows[b0, j], s1 * rows[b1, j], s2 * rows[b2, j], s3 * rows[b3, j]
                first[j] += (p0 + p1) + (p2 + p3)
                second[j] += (p0 * rows[b0, j] + p1 * rows[b1, j]) + (p2 * rows[b2, j] + p3 * rows[b3, j])
        else:
            for j in range(width):
                first[j] += (s0 * rows[b0, j] + s1 * rows[b1, j]) + (s2 * rows[b2, j] + s3 * rows[b3, j])
        at += 4
    while at < number:
        b, share = chosen[at], shares[chosen[at]]
        for j in range(width):
            product = share * rows[b, j]
            first[j] += product
            if squares:
                second[j] += product * rows[b, j]
        at += 1


@kernel
def take_large(shares, weights, at, rows, first, second, small):
    """Add the moments of shares that are not small, and leave the others, in float32, for a product."""
    n_components, number = shares.shape
    chosen = np.empty(number, np.int64)
    for k in range(n_components):
        some = 0
        for b in range(number):
            share = shares[k, b]
            large = share > SMALL_SHARE * (weights[at + b] if weights.size else 1.0)
            small[k, b] = 0.0 if large else share
            chosen[some] = b
            some += large
        add_rows(chosen, some, shares[k], rows, first[k], second[k], True)


@kernel
def add_moments(shares, rows, first, second, squares):
    """Add the first moments, and `squares` of columns if asked for, of rows that a component has a share in."""
    n_components, number = shares.shape
    chosen = np.empty(number, np.int64)
    for k in range(n_components):
        some = 0
        for b in range(number):
            chosen[some] = b
            some += shares[k, b] > 0.0
        add_rows(chosen, some, shares[k], rows, first[k], second[k], squares)


def estep_diag(
    X, start, stop, weights, labels, origin, factor, shift, offset, power, stretch, columns_tail, scores, responsibilities,
    given, count, first, second,
):  # fmt: skip
    """E-step of diagonal and spherical covariances."""
    own, norms, scale, largest = _expand(factor, shift)
    tails = power[:, 0].copy(), stretch[:, 0].copy()
    kind = product_type(X, norms)
    # Responsibilities that are written, and scores of rows with labels, need all digits of every distance.
    shows_near = kind == np.float64 and shift.size >= LEAST_NARROW
    shows_near = shows_near and not (given or labels.size or responsibilities.size or tails[0].any())
    narrow, own = own.astype(np.float32), own.astype(kind, copy=False)
    score, near = 0.0, 0.0
    for at, rows in _blocks(X, start, stop, origin, *shift.shape):
        row_norms = np.einsum("ij,ij->i", rows, rows)
        shows_near = shows_near and near <= NEAR_SHARE * rows.shape[0] * len(shift)
        short = shows_near and norms.max() + largest * row_norms.max() <= MOST_NARROW_SIZE
        both = _with_squares(rows, np.dtype(np.float32 if short else kind), own.shape[1])
        squared = (
            np.empty((len(shift), len(rows))) if given else ((narrow if short else own) @ both.T).astype(np.float64, copy=False)
        )
        if short:
            near = sharpen(squared, norms, scale, row_norms, rows, factor, shift, offset, *np.empty((2, len(rows))))
        value, left, large = _share(
            squared, norms, scale, row_norms, at, weights, labels, offset, *tails, scores, responsibilities, given, count
        )
        score += value
        if not count.size:
            continue
        if left <= SPARSE_SHARE * squared.size:
            add_moments(squared, rows, first, second, True)
            continue
        if kind == np.float64 and large <= SPARSE_SHARE * squared.size:
            small = np.empty(squared.shape, np.float32)
            take_large(squared, weights, at, rows, first, second, small)
            squared, both = small, both if short else rows.astype(np.float32)
        elif short:
            both = rows
        shares = squared.astype(both.dtype, copy=False)
        first += shares @ both[:, : rows.shape[1]]
        second += shares @ (both[:, rows.shape[1] :] if both.shape[1] > rows.shape[1] else both * both)
    return score


def _expand(factor: Array, shift: Array) -> tuple[Array, Array, Array, float]:
    """The terms of squared distances: of columns (and, unless spherical, of their squares), of no row, and of |row|^2.

    The last number is the largest precision.
    """
    precision = factor * factor
    linear, norms = -2.0 * factor * shift, np.einsum("kj,kj->k", shift, shift)
    if np.all(precision == precision[:, :1]):
        return linear, norms, precision[:, 0].copy(), float(precision.max())
    return np.hstack([linear, precision]), norms, np.zeros(len(shift)), float(precision.max())


def _with_squares(rows: Array, kind: np.dtype[np.floating], columns: int) -> NDArray[np.floating]:
    """Rows of this type, and the squares of their columns beside them if there are to be so many columns."""
    width = rows.shape[1]
    if columns == width:
        return rows.astype(kind, copy=False)
    both = np.empty((len(rows), columns), kind)
    both[:, :width] = rows
    np.multiply(both[:, :width], both[:, :width], out=both[:, width:])
    return both


def estep_tied(
    X, start, stop, weights, labels, origin, factor, shift, offset, power, stretch, columns_tail, scores, responsibilities,
    given, count, first, second,
):  # fmt: skip
    """E-step of one covariance that all components share."""
    norms = np.einsum("kj,kj->k", shift, shift)
    kind = product_type(X, norms)
    own, scale = (-2.0 * shift).astype(kind, copy=False), np.ones(len(shift))
    factor = factor.astype(kind, copy=False)
    score = 0.0
    for at, rows in _blocks(X, start, stop, origin, *shift.shape):
        short = rows.astype(kind, copy=False)
        white = short @ factor.T
        row_norms = np.einsum("ij,ij->i", white, white).astype(np.float64, copy=False)
        squared = np.empty((len(shift), len(rows))) if given else (own @ white.T).astype(np.float64, copy=False)
        value, left, _ = _share(
            squared,
            norms,
            scale,
            row_norms,
            at,
            weights,
            labels,
            offset,
            power,
            stretch,
            scores,
            responsibilities,
            given,
            count,
        )
        score += value
        if not count.size:
            continue
        if left <= SPARSE_SHARE * squared.size:
            add_moments(squared, rows, first, first, False)
        else:
            first += squared.astype(kind, copy=False) @ short
        _add_products(rows, squared.sum(axis=0), second)
    return score


def estep_full(
    X, start, stop, weights, labels, origin, factor, shift, offset, power, stretch, columns_tail, scores, responsibilities,
    given, count, first, second,
):  # fmt: skip
    """E-step of a covariance for each component."""
    score = 0.0
    zeros = np.zeros(len(shift))
    for at, rows in _blocks(X, start, stop, origin, *shift.shape):
        squared = np.empty((len(shift), len(rows)))
        if not given:
            white = np.empty(rows.shape, rows.dtype)  # C-ordered, whatever the rows are
            for k in range(len(shift)):
                np.dot(rows, factor[k].T, out=white)
                white -= shift[k]
                np.einsum("ij,ij->i", white, white, out=squared[k])
        value, _, _ = _share(
            squared,
            zeros,
            zeros,
            np.zeros(len(rows)),
            at,
            weights,
            labels,
            offset,
            power,
            stretch,
            scores,
            responsibilities,
            given,
            count,
        )
        score += value
        if not count.size:
            continue
        for k, shares in enumerate(squared):
            chosen = np.flatnonzero(shares)
            if len(chosen):
                some, own = (rows, shares) if 2 * len(chosen) > len(rows) else (rows[chosen], shares[chosen])
                first[k] += own @ some
                _add_products(some, own, second[k])
    return score


def _blocks(X, start, stop, origin, n_components, width) -> Iterator[tuple[int, Array]]:
    """Blocks of rows about the origin, with the place of each."""
    size = block_rows(n_components, width)
    for at in range(start, stop, size):
        yield at, X[at : min(at + size, stop)] - origin


def _share(squared, norms, scale, row_norms, *rest):
    peak, total = np.empty((2, squared.shape[1]))
    return share_block(squared, norms, scale, row_norms, peak, total, *rest)


def _add_products(rows: Array, shares: Array, second: Array) -> None:
    """Add the weighted products of columns to the lower triangle of `second`."""
    half = rows * np.sqrt(shares)[:, None]
    # The lower triangle of a matrix in C order is the upper one of its transpose, in the order that BLAS has.
    dsyrk(1.0, half.T, beta=1.0, c=second.T, overwrite_c=1)
