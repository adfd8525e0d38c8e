"""Rank-one changes of the scale matrix of a Normal-Wishart belief, and of what the E-step needs of it, in O(d^2).

Whatever a row x teaches a component with mean m and scale matrix V, V becomes s (V + t D D') with D = x - m. V is carried as
it is, a sum of positive terms; `factor`, the inverse of its Cholesky factor, follows by an update that stays a factor of
something positive definite whatever comes.
"""

import math

from headwater.kernels._jit import kernel
from headwater.kernels.gaussian_readout import ROUNDING, invert_factor
from headwater.kernels.lanes import LANES, blend, turn
from headwater.kernels.mixture import TINY


@kernel
def whiten_row(factor, apart, whitened):
    """Write factor @ D and return its squared length."""
    squared = 0.0
    for i in range(whitened.size):
        value = 0.0
        for j in range(i + 1):
            value += factor[i, j] * apart[j]
        whitened[i] = value
        squared += value * value
    return squared


@kernel
def update_factor(factor, whitened, s, t, work):
    """Turn the inverse Cholesky factor of V into that of s (V + t D D'), given factor @ D; return 1 + t D' V^-1 D.

    I + t f f' has a Cholesky factor in closed form, and so has its inverse: below the diagonal -t f_i f_j / sqrt(r_i r_(i-1))
    with r_i = 1 + t (f_1^2 + ... + f_i^2), on it sqrt(r_(i-1) / r_i). `work` holds the running sum of f_j * row j. Rows of the
    factor are padded, and zero above the diagonal.
    """
    wide = factor.shape[1]
    scale = 1.0 / math.sqrt(s)
    before, root_before = 1.0, 1.0
    for j in range(wide):
        work[j] = 0.0
    for i in range(whitened.size):
        f = whitened[i]
        after = before + t * f * f
        root = math.sqrt(after)
        norm = scale / (root_before * root)
        turn(factor, i * wide, before * norm, work, -t * f * norm, f, i // LANES + 1)
        before, root_before = after, root
    return before


@kernel
def update_scale(scale, apart, s, t):
    """Turn V into s (V + t D D'), in its lower triangle and up to the next whole vector; D is padded, too."""
    wide = scale.shape[1]
    for i in range(scale.shape[0]):
        blend(scale, i * wide, s, apart, s * t * apart[i], i // LANES + 1)


@kernel
def refactor(scale, factor, noise):
    """Write the inverse Cholesky factor of V; return V's log-determinant."""
    for i in range(noise.size):
        noise[i] = max(ROUNDING * scale[i, i], TINY)
    return invert_factor(scale, noise, factor)[0]


@kernel
def factor_log_det(factor):
    """The log-determinant of V by its inverse Cholesky factor."""
    total = 0.0
    for i in range(factor.shape[0]):
        total -= 2.0 * math.log(factor[i, i])
    return total
