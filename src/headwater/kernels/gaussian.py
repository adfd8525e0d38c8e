"""E-step and readout of K Gaussians, one kernel each per kind of covariance: what a batch calls.

The E-step: rows in, statistics (and scores, and responsibilities) out. All three kernels of it take the same arguments and do
only what there is room for:

- `scores` (n,) or empty: log-likelihood of each row;
- `responsibilities` (n, K) or empty: written, or read instead of computed if `given`;
- `count` (K,), `first` (K, d), `second` or empties: totals about `origin` that the rows are added to.

Parameters come ready for use: the distance of row x to component k is |factor_k (x - origin) - shift_k|^2, where factor_k
is the lower triangular inverse Cholesky factor of the covariance (a vector for diagonal ones), and the joint log-density is
offset_k - distance / 2, or offset_k - power_k * log(1 + stretch_k * distance) for the heavy tail of a predictive density
(`columns_tail`: one such tail per column, as diagonal covariances have it).
Of a symmetric `second` only the lower triangle is filled.

The readout (`refresh_...`): totals and prior in, those parameters out, by the equations of gaussian_readout.py.
"""

import numpy as np

from headwater.kernels._jit import helper, kernel, routine
from headwater.kernels.fastmath import log
from headwater.kernels.gaussian_readout import readout_diag, readout_full, readout_tied
from headwater.kernels.mixture import called_responsibilities_block, load_block, responsibilities_block

BLOCK_FULL = 128
BLOCK_DIAG = 256
NEGLIGIBLE = 2.0**-53  # responsibilities below it change no digit of a sum
LEAST_GATHERED = 256  # components times columns from which looking for negligible responsibilities pays


@routine
def whiten(factor, block, rows, i, out):
    """Row i of factor @ block, for a lower triangular factor."""
    j = 0
    for b in range(rows):
        out[b] = 0.0
    while j + 4 <= i + 1:
        f0, f1, f2, f3 = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
        for b in range(rows):
            out[b] += f0 * block[j, b] + f1 * block[j + 1, b] + f2 * block[j + 2, b] + f3 * block[j + 3, b]
        j += 4
    while j <= i:
        f0 = factor[i, j]
        for b in range(rows):
            out[b] += f0 * block[j, b]
        j += 1


@helper
def add_products(weighted, block, rows, i, second):
    """Add the products of a weighted column with columns 0..i to row i of `second`."""
    j = 0
    while j + 4 <= i + 1:
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for b in range(rows):
            w = weighted[b]
            s0 += w * block[j, b]
            s1 += w * block[j + 1, b]
            s2 += w * block[j + 2, b]
            s3 += w * block[j + 3, b]
        second[i, j] += s0
        second[i, j + 1] += s1
        second[i, j + 2] += s2
        second[i, j + 3] += s3
        j += 4
    while j <= i:
        s0 = 0.0
        for b in range(rows):
            s0 += weighted[b] * block[j, b]
        second[i, j] += s0
        j += 1


@routine
def add_moments(shares, block, rows, first, second, column):
    """Add the first moments and the products of columns of a block of rows, each with its share."""
    for i in range(block.shape[0]):
        for b in range(rows):
            column[b] = shares[b] * block[i, b]
        moment = 0.0
        for b in range(rows):
            moment += column[b]
        first[i] += moment
        add_products(column, block, rows, i, second)


@routine
def gather(shares, block, rows, weights, at, some_shares, chosen):
    """Copy the rows whose shares are not negligible, if they are few; return how many they are, or `rows`."""
    some = 0
    for b in range(rows):
        some += shares[b] > NEGLIGIBLE * (weights[at + b] if weights.size else 1.0)
    if 4 * some > 3 * rows:
        return rows
    some = 0
    for b in range(rows):
        if shares[b] > NEGLIGIBLE * (weights[at + b] if weights.size else 1.0):
            some_shares[some] = shares[b]
            for i in range(block.shape[0]):
                chosen[i, some] = block[i, b]
            some += 1
    return some


@kernel
def estep_full(
    X, start, stop, weights, labels, origin, factor, shift, offset, power, stretch, columns_tail, scores, responsibilities,
    given, count, first, second,
):  # fmt: skip
    n_components, width = shift.shape
    size = min(BLOCK_FULL, stop - start)
    gathers = n_components * width >= LEAST_GATHERED
    chosen = np.empty((width, size) if gathers else (0, 0))
    block = np.empty((width, size))
    column = np.empty(size)
    log_joint = np.empty((n_components, size))
    peak = np.empty(size)
    total = np.empty(size)
    score = 0.0
    for at in range(start, stop, size):
        rows = min(size, stop - at)
        load_block(X, at, rows, origin, block)
        if not given:
            for k in range(n_components):
                for b in range(rows):
                    log_joint[k, b] = 0.0
                for i in range(width):
                    whiten(factor[k], block, rows, i, column)
                    centre = shift[k, i]
                    for b in range(rows):
                        log_joint[k, b] += (column[b] - centre) * (column[b] - centre)
        score += called_responsibilities_block(
            log_joint, peak, total, rows, at, weights, labels, offset, power, stretch, scores, responsibilities, given
        )
        if count.size:
            for k in range(n_components):
                mass = 0.0
                for b in range(rows):
                    mass += log_joint[k, b]
                count[k] += mass
                some = gather(log_joint[k], block, rows, weights, at, column, chosen) if gathers else rows
                if some < rows:
                    add_moments(column, chosen, some, first[k], second[k], peak)
                else:
                    add_moments(log_joint[k], block, rows, first[k], second[k], column)
    return score


@kernel
def log_densities_full(X, origin, factor, shift, offset, power, stretch, found):
    """Fill `found` (n, K) with the log-density of every row under every component, however small."""
    n_components, width = shift.shape
    size = min(BLOCK_FULL, X.shape[0])
    block = np.empty((width, size))
    column = np.empty(size)
    squared = np.empty(size)
    for at in range(0, X.shape[0], max(size, 1)):
        rows = min(size, X.shape[0] - at)
        load_block(X, at, rows, origin, block)
        for k in range(n_components):
            for b in range(rows):
                squared[b] = 0.0
            for i in range(width):
                whiten(factor[k], block, rows, i, column)
                centre = shift[k, i]
                for b in range(rows):
                    squared[b] += (column[b] - centre) * (column[b] - centre)
            if power[k] > 0.0:
                for b in range(rows):
                    found[at + b, k] = offset[k] - power[k] * log(1.0 + min(stretch[k] * squared[b], 1e300))
            else:
                for b in range(rows):
                    found[at + b, k] = offset[k] - 0.5 * squared[b]


@kernel
def estep_tied(
    X, start, stop, weights, labels, origin, factor, shift, offset, power, stretch, columns_tail, scores, responsibilities,
    given, count, first, second,
):  # fmt: skip
    n_components, width = shift.shape
    size = min(BLOCK_FULL, stop - start)
    block = np.empty((width, size))
    column = np.empty(size)
    row_mass = np.empty(size)
    log_joint = np.empty((n_components, size))
    peak = np.empty(size)
    total = np.empty(size)
    score = 0.0
    for at in range(start, stop, size):
        rows = min(size, stop - at)
        load_block(X, at, rows, origin, block)
        if not given:
            for k in range(n_components):
                for b in range(rows):
                    log_joint[k, b] = 0.0
            for i in range(width):
                whiten(factor, block, rows, i, column)
                for k in range(n_components):
                    centre = shift[k, i]
                    for b in range(rows):
                        log_joint[k, b] += (column[b] - centre) * (column[b] - centre)
        score += called_responsibilities_block(
            log_joint, peak, total, rows, at, weights, labels, offset, power, stretch, scores, responsibilities, given
        )
        if count.size:
            for b in range(rows):
                row_mass[b] = 0.0
            for k in range(n_components):
                mass = 0.0
                for b in range(rows):
                    mass += log_joint[k, b]
                count[k] += mass
                for b in range(rows):
                    row_mass[b] += log_joint[k, b]
                for i in range(width):
                    moment = 0.0
                    for b in range(rows):
                        moment += log_joint[k, b] * block[i, b]
                    first[k, i] += moment
            for i in range(width):
                for b in range(rows):
                    column[b] = row_mass[b] * block[i, b]
                add_products(column, block, rows, i, second)
    return score


@kernel
def estep_diag(
    X, start, stop, weights, labels, origin, factor, shift, offset, power, stretch, columns_tail, scores, responsibilities,
    given, count, first, second,
):  # fmt: skip
    n_components, width = shift.shape
    size = min(BLOCK_DIAG, stop - start)
    block = np.empty((width, size))
    log_joint = np.empty((n_components, size))
    peak = np.empty(size)
    total = np.empty(size)
    own = power.shape[1] > 1  # a power for every column
    row_power, row_stretch = np.empty(n_components), np.empty(n_components)
    for k in range(n_components):
        row_power[k] = 0.0 if columns_tail else power[k, 0]
        row_stretch[k] = 1.0 if columns_tail else stretch[k, 0]
    score = 0.0
    for at in range(start, stop, size):
        rows = min(size, stop - at)
        load_block(X, at, rows, origin, block)
        if not given:
            for k in range(n_components):
                for b in range(rows):
                    log_joint[k, b] = 0.0
                for j in range(width):
                    scale = factor[k, j]
                    centre = shift[k, j]
                    if columns_tail:  # one Student-t per column: the product of their tails
                        twice, wide = 2.0 * power[k, j * own], stretch[k, j * own]
                        for b in range(rows):
                            y = scale * block[j, b] - centre
                            log_joint[k, b] += twice * log(1.0 + min(wide * y * y, 1e300))
                    else:
                        for b in range(rows):
                            y = scale * block[j, b] - centre
                            log_joint[k, b] += y * y
        score += responsibilities_block(
            log_joint,
            peak,
            total,
            rows,
            at,
            weights,
            labels,
            offset,
            row_power,
            row_stretch,
            scores,
            responsibilities,
            given,
        )
        if count.size:
            for k in range(n_components):
                mass = 0.0
                for b in range(rows):
                    mass += log_joint[k, b]
                count[k] += mass
                for j in range(width):
                    moment = 0.0
                    square = 0.0
                    for b in range(rows):
                        product = log_joint[k, b] * block[j, b]
                        moment += product
                        square += product * block[j, b]
                    first[k, j] += moment
                    second[k, j] += square
    return score


@kernel
def refresh_full(code, prior, mean_count, dof_count, first, second, means, factor, shift, offset, power, stretch):
    work = np.empty((prior[0].size + 1, prior[0].size))
    lifted = 0
    for k in range(mean_count.size):
        lifted += readout_full(
            k, code, prior, mean_count, dof_count, first, second, means, factor, shift, offset, power, stretch, work
        )
    return lifted


@kernel
def refresh_tied(code, prior, mean_count, dof_count, first, second, means, factor, shift, offset, power, stretch):
    work = np.empty((prior[0].size + 1, prior[0].size))
    return readout_tied(
        0, code, prior, mean_count, dof_count, first, second, means, factor, shift, offset, power, stretch, work
    )


@kernel
def refresh_diag(code, prior, mean_count, dof_count, first, second, means, factor, shift, offset, power, stretch):
    work = np.empty((0, 0))
    lifted = 0
    for k in range(mean_count.size):
        lifted += readout_diag(
            k, code, prior, mean_count, dof_count, first, second, means, factor, shift, offset, power, stretch, work
        )
    return lifted
