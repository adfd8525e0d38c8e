"""Passes over few rows inside one kernel: readout, E-step, readout, ... as the loop makes them, without its overhead.

Small fits and the starts of a stream make hundreds of passes over some hundred rows; each takes less time than calling it.
With full covariances a pass takes longer, and another kernel of that size would take seconds to compile, so there is none.
The kernels change totals, parameters and `trace` (the mean score of each pass) in place. They return how many passes were
made, whether they converged by the rule that the loop uses, too, and how many pivots were singular in the last readout.
`zero` and `no` are 0 and False: as constants they would have the E-step compiled anew for just those values.
"""

import numpy as np

from headwater.kernels._jit import kernel
from headwater.kernels.gaussian import estep_diag, estep_tied, refresh_diag, refresh_tied
from headwater.kernels.mixture import converged, weights_readout


@kernel
def climb_tied(
    X, weights, labels, size, origin, code, concentration, prior, tol, before, count, first, second,
    means, factor, shift, offset, power, stretch, log_weights, trace, zero, no,
):  # fmt: skip
    nothing, none = np.empty(0), np.empty((0, 0))
    last_gain, singular = np.inf, 0
    for number in range(trace.size):
        singular = refresh_tied(code, prior, count, count, first, second, means, factor, shift, offset, power, stretch)
        weights_readout(code, concentration, count, log_weights)
        count[:], first[:], second[:] = 0.0, 0.0, 0.0
        trace[number] = estep_tied(
            X, zero, X.shape[0], weights, labels, origin, factor, shift, offset + log_weights, power, stretch, no, nothing,
            none, no, count, first, second,
        ) / size  # fmt: skip
        gain, before = trace[number] - before, trace[number]
        if converged(gain, last_gain, tol):
            return number + 1, True, singular
        last_gain = gain
    return trace.size, False, singular


@kernel
def climb_diag(
    X, weights, labels, size, origin, code, concentration, prior, tol, before, count, first, second,
    means, factor, shift, offset, power, stretch, log_weights, trace, zero, no,
):  # fmt: skip
    nothing, none = np.empty(0), np.empty((0, 0))
    last_gain, singular = np.inf, 0
    powers, stretches = power.reshape(-1, 1), stretch.reshape(-1, 1)
    for number in range(trace.size):
        singular = refresh_diag(code, prior, count, count, first, second, means, factor, shift, offset, power, stretch)
        weights_readout(code, concentration, count, log_weights)
        count[:], first[:], second[:] = 0.0, 0.0, 0.0
        trace[number] = estep_diag(
            X, zero, X.shape[0], weights, labels, origin, factor, shift, offset + log_weights, powers, stretches, no, nothing,
            none, no, count, first, second,
        ) / size  # fmt: skip
        gain, before = trace[number] - before, trace[number]
        if converged(gain, last_gain, tol):
            return number + 1, True, singular
        last_gain = gain
    return trace.size, False, singular
