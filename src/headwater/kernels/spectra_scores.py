"""Log-densities of rows of powers: given their weights, and with the weights integrated out by importance sampling."""

import math

import numpy as np

from headwater.kernels._jit import kernel
from headwater.kernels.random import begin_stream
from headwater.kernels.spectra import TAIL, approach_mode, draw_about, find_mode
from headwater.kernels.spectra_mode import load_powers, log_density, mix, reached_bins


@kernel
def row_scores(Y, start, stop, theta, h, scores):
    """Log-densities of rows given their weights h (n, K)."""
    bins = theta.shape[1]
    power, v = np.empty(bins), np.empty(bins)
    for i in range(start, stop):
        for f in range(bins):
            power[f] = Y[i, f]
        mix(theta, h[i], v)
        scores[i] = log_density(power, v)


@kernel
def marginal_scores(Y, start, stop, theta, shape, scale, draws, key, streams, scores):
    """Log-densities of rows with their weights integrated out, by importance sampling: the mean over draws is unbiased.

    Weights are drawn from Student's t on log h about the mode, the proposal of `leap`.
    """
    n_components, bins = theta.shape
    state = np.empty(1, np.uint64)
    reached = np.empty(bins, np.bool_)
    power, v, surplus, inverse = np.empty(bins), np.empty(bins), np.empty(bins), np.empty(bins)
    h, gradient, centre = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    factor, part = np.empty((n_components, n_components)), np.empty((n_components, bins))
    half = 0.5 * (TAIL + n_components)
    constant = n_components * (shape * math.log(scale) - math.lgamma(shape))
    constant += math.lgamma(0.5 * TAIL) + 0.5 * n_components * math.log(TAIL * math.pi) - math.lgamma(half)
    reached_bins(theta, reached)
    for i in range(start, stop):
        begin_stream(state, key, streams[i])
        load_powers(Y, i, reached, power)
        approach_mode(theta, power, shape, scale, v, surplus, inverse, h)
        find_mode(theta, power, shape, scale, v, part, factor, gradient, h, centre)
        largest = -math.inf
        total = 0.0
        for _ in range(draws):
            away = draw_about(centre, factor, state, h)
            mix(theta, h, v)
            value = log_density(power, v) + half * math.log(1.0 + away / TAIL)
            for k in range(n_components):
                value -= shape * math.log(h[k]) + scale / h[k]
            if value > largest:
                total = total * math.exp(largest - value) + 1.0
                largest = value
            else:
                total += math.exp(value - largest)
        value = constant + largest + math.log(total / draws)
        for k in range(n_components):
            value -= math.log(factor[k, k])
        scores[i] = value
