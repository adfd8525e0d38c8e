"""Random numbers of a row: a stream that begins at a key and the row's place, so that neither threads nor cuts change it.

The generator is SplitMix64 (Steele, Lea and Flood, 2014): a counter, and a mix of its bits. Its state is one number in an
array, which a kernel makes once and `begin_stream` sets for every row.
"""

import math

import numpy as np

from headwater.kernels._jit import helper_exact

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
TO_UNIT = 2.0**-52


@helper_exact
def mixed(bits):
    """The bits, each of which has changed half of the others."""
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))


@helper_exact
def begin_stream(state, key, row):
    """Set the state to the beginning of a row's stream."""
    state[0] = mixed(mixed(np.uint64(key) + GOLDEN) ^ (np.uint64(row) * GOLDEN + FIRST))


@helper_exact
def uniform(state):
    """A number of (0, 1): neither end is ever drawn, so that its logarithm is finite."""
    state[0] += GOLDEN
    return (np.float64(mixed(state[0]) >> np.uint64(12)) + 0.5) * TO_UNIT


@helper_exact
def normal(state):
    """A standard normal number, by Box and Muller."""
    return math.sqrt(-2.0 * math.log(uniform(state))) * math.cos(2.0 * math.pi * uniform(state))


@helper_exact
def log_gamma_variate(state, shape):
    """Logarithm of a Gamma(shape, 1) number, by Marsaglia and Tsang; shapes below 1 are raised, and so cannot underflow."""
    raised = shape if shape >= 1.0 else shape + 1.0
    d = raised - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(uniform(state)) < 0.5 * x * x + d - d * v + d * math.log(v):
            break
    value = math.log(d * v)
    return value if shape >= 1.0 else value + math.log(uniform(state)) / shape
