"""Rows of a vector autoregression, each made of those before it."""

from headwater.kernels._jit import kernel


@kernel
def walk_autoregression(coef, intercept, states, noise, order):
    """Turn `noise` (n, d) into the rows of an autoregression along a path of states, after rows that are zero.

    Coefficients are (K, order, d, d), of the newest row first.
    """
    n, d = noise.shape
    for t in range(n):
        state = states[t]
        for i in range(d):
            value = noise[t, i] + intercept[state, i]
            for lag in range(min(order, t)):
                for j in range(d):
                    value += coef[state, lag, i, j] * noise[t - 1 - lag, j]
            noise[t, i] = value
