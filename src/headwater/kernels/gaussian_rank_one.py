"""Rank-one changes of the scale matrix of a Normal-Wishart belief, and of what the E-step needs of it, in O(d^2).

Whatever a row x teaches a component with mean m and scale matrix V, V becomes s (V + t D D') with D = x - m. What the E-step
needs is V^-1 = U' diag(w) U: `factor` is U, lower triangular with ones on the diagonal, and `pivots` are w, the inverse pivots
of V. They follow by an update that takes no roots and keeps the pivots positive whatever comes. Rows of matrices are padded
to whole vectors (see lanes.py), and U is zero above the diagonal.
"""

import math

from headwater.kernels._jit import helper
from headwater.kernels.gaussian_readout import ROUNDING, invert_factor
from headwater.kernels.lanes import LANES, blend, turn
from headwater.kernels.mixture import TINY


@helper
def whiten_row(factor, pivots, apart, turned):
    """Write U D and return D' V^-1 D."""
    squared = 0.0
    for i in range(turned.size):
        value = apart[i]
        for j in range(i):
            value += factor[i, j] * apart[j]
        turned[i] = value
        squared += pivots[i] * value * value
    return squared


@helper
def update_factor(factor, pivots, turned, s, t, work):
    """Turn U and w of V into those of s (V + t D D'), given U D; return 1 + t D' V^-1 D, the growth of the determinant.

    With g = U D and r_i = 1 + t (w_1 g_1^2 + ... + w_i g_i^2), row i of U loses t g_i / r_(i-1) times the sum of w_j g_j (row
    j) over j < i, and pivot i becomes w_i r_(i-1) / (s r_i). `work` holds the running sum.
    """
    wide = factor.shape[1]
    inverse_s = 1.0 / s
    before, inverse = 1.0, 1.0
    for j in range(wide):
        work[j] = 0.0
    for i in range(turned.size):
        along = pivots[i] * turned[i]
        after = before + t * turned[i] * along
        turn(factor, i * wide, 1.0, work, -t * turned[i] * inverse, along, i // LANES + 1)
        inverse = 1.0 / after
        pivots[i] *= before * inverse * inverse_s
        before = after
    return before


@helper
def update_scale(scale, apart, s, t):
    """Turn V into s (V + t D D'), in its lower triangle and up to the next whole vector; D is padded, too."""
    wide = scale.shape[1]
    for i in range(scale.shape[0]):
        blend(scale, i * wide, s, apart, s * t * apart[i], i // LANES + 1)


@helper
def unit_rows(factor, pivots):
    """Turn an inverse Cholesky factor into U and w; return the log-determinant of V."""
    log_det = 0.0
    for i in range(pivots.size):
        last = factor[i, i]
        inverse = 1.0 / last
        for j in range(i):
            factor[i, j] *= inverse
        factor[i, i] = 1.0
        pivots[i] = last * last
        log_det -= 2.0 * math.log(last)
    return log_det


@helper
def refactor(scale, factor, pivots, noise):
    """Write U and w of V; return V's log-determinant."""
    for i in range(noise.size):
        noise[i] = max(ROUNDING * scale[i, i], TINY)
    invert_factor(scale, noise, factor)
    return unit_rows(factor, pivots)


@helper
def drift(scale, factor, pivots, log_det, apart, turned, solved):
    """How far U, w and the log-determinant have drifted from V: 0 but for rounding.

    V^-1 D is made from U and w, and multiplied by V; what is left of D, in units of the columns, is the drift, or the
    determinant's if that is more. Writes to `turned` and `solved`.
    """
    whiten_row(factor, pivots, apart, turned)
    width = turned.size
    determinant = log_det
    for i in range(width):
        determinant += math.log(pivots[i])
    for i in range(width):
        solved[i] = 0.0
    for i in range(width):
        along = pivots[i] * turned[i]
        for j in range(i + 1):
            solved[j] += factor[i, j] * along
    largest, size = 0.0, 0.0
    for i in range(width):
        left = apart[i]
        for j in range(width):
            left -= (scale[i, j] if j <= i else scale[j, i]) * solved[j]
        unit = 1.0 / math.sqrt(scale[i, i])
        largest, size = max(largest, unit * abs(left)), max(size, unit * abs(apart[i]))
    return max(largest / size if size > 0.0 else 0.0, abs(determinant) / width)
