"""E-step of K Gaussians by dense products, for many components of many columns.

The functions take the arguments of the kernels in gaussian.py and do the same. The squared distance of a row to a component,
|factor (x - origin) - shift|^2, is written out, so that products of matrices give it for all components at once. Rounding
then grows with |shift|^2: `exact_enough` says where that is harmless. A component takes the moments of the rows that it has a
share in; with many components that is a small part of them.

Rows of a narrower type than float64 have their products taken in float32, which takes half the time, where rounding allows
it; scores, responsibilities and sums are float64 all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from headwater.kernels._jit import kernel
from headwater.kernels.gaussian import NEGLIGIBLE
from headwater.kernels.mixture import responsibilities_block

Array: TypeAlias = NDArray[np.float64]

BLOCK_NUMBERS = 2**16  # of a block of rows or of responsibilities: 512 kB, half of what a core has of fast memory
LEAST_ROWS, MOST_ROWS = 128, 2048  # of a block
MOST_NORM = 1e7  # of a shift: a squared distance is then off by some 1e-8
MOST_NARROW_NORM = 3e4  # and in float32, by some 1e-3
SPARSE_SHARE = 0.12  # of responsibilities that are not negligible, below which a sum over them is faster than a product


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
    Returns the score and how many responsibilities are left.
    """
    n_components, rows = squared.shape
    if not given:
        for k in range(n_components):
            for b in range(rows):
                squared[k, b] = max(squared[k, b] + (norms[k] + scale[k] * row_norms[b]), 0.0)
    score = responsibilities_block(
        squared, peak, total, rows, at, weights, labels, offset, power, stretch, scores, responsibilities, given
    )
    left = 0
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
                squared[k, b] = squared[k, b] if squared[k, b] > total[b] else 0.0
    return score, left


@kernel
def add_moments(shares, rows, first, second, squares):
    """Add the first moments, and `squares` of columns if asked for, of rows that a component has a share in."""
    n_components, number = shares.shape
    width = rows.shape[1]
    for k in range(n_components):
        for b in range(number):
            share = shares[k, b]
            if share > 0.0:
                if squares:
                    for j in range(width):
                        product = share * rows[b, j]
                        first[k, j] += product
                        second[k, j] += product * rows[b, j]
                else:
                    for j in range(width):
                        first[k, j] += share * rows[b, j]


def estep_diag(
    X, start, stop, weights, labels, origin, factor, shift, offset, power, stretch, columns_tail, scores, responsibilities,
    given, count, first, second,
):  # fmt: skip
    """E-step of diagonal and spherical covariances."""
    own = -2.0 * factor * shift
    norms = np.einsum("kj,kj->k", shift, shift)
    precision = factor * factor
    spherical = bool(np.all(precision == precision[:, :1]))
    scale = precision[:, 0].copy() if spherical else np.zeros(len(shift))
    if not spherical:
        own = np.hstack([own, precision])
    score = 0.0
    kind = product_type(X, norms)
    own = own.astype(kind, copy=False)
    for at, rows in _blocks(X, start, stop, origin, *shift.shape):
        row_norms, short = np.zeros(len(rows)), rows.astype(kind, copy=False)
        if spherical:
            np.einsum("ij,ij->i", rows, rows, out=row_norms)
            both = short
        else:
            both = np.hstack([short, short * short])
        squared = np.empty((len(shift), len(rows))) if given else (own @ both.T).astype(np.float64, copy=False)
        value, left = _share(
            squared,
            norms,
            scale,
            row_norms,
            at,
            weights,
            labels,
            offset,
            power[:, 0].copy(),
            stretch[:, 0].copy(),
            scores,
            responsibilities,
            given,
            count,
        )
        score += value
        if not count.size:
            continue
        if left <= SPARSE_SHARE * squared.size:
            add_moments(squared, rows, first, second, True)
        else:
            shares = squared.astype(kind, copy=False)
            first += shares @ short
            second += shares @ (short * short)
    return score


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
        value, left = _share(
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
        value, _ = _share(
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
