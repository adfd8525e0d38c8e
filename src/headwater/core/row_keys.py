"""Keys of rows: random numbers that a seed and a row's place in the stream decide, and the ranks they give the rows.

A rank is log(-log u) - clock with u a uniform number of the key. The rows with the smallest ranks are a uniform sample as
long as the clock is constant. If the clock is the forgetting, in nats, up to the arrival of the row, they are a sample without
replacement with weights exp(clock - now): the smallest of exponential times belongs to a row with probability in proportion
to its rate, and `now` is the same for all.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array

GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
SIXTY_FOUR = 2**64 - 1
KEYS = 2**64
UNIFORM_BITS = 52
LOG_2 = math.log(2.0)
TERMS = tuple(1.0 / (2 * power + 1) for power in range(11, -1, -1))
LATEST = math.log(60.0)  # no rank is as large: -log u is below 37
SLACK = 1e-9  # far more than the rounding of a rank, too little to matter

Keys = NDArray[np.uint64]


def row_keys(key: int, places: NDArray[np.int64]) -> Keys:
    """Return the key of the row at each place: where `kernels.random` begins the row's random numbers (SplitMix64).

    Parameters
    ----------
    key : int
        The seed of the stream.
    places : ndarray of int64
        Places of rows in the stream.

    Returns
    -------
    keys : ndarray of uint64
        Random bits for each place.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.core.row_keys import row_keys
    >>> row_keys(0, np.arange(2))
    array([9977528612073207212, 9564484327101458935], dtype=uint64)
    """
    bits = places.astype(np.uint64)
    bits *= np.uint64(GOLDEN)
    bits += np.uint64(FIRST)
    bits ^= np.uint64(_mix_bits(key + GOLDEN))
    return mix_bits(bits)


def row_key(key: int, place: int) -> int:
    """Return the key of the row at one place, which costs less than an array of one."""
    return _mix_bits(_mix_bits(key + GOLDEN) ^ ((place * GOLDEN + FIRST) & SIXTY_FOUR))


def mix_bits(bits: Keys) -> Keys:
    """Mix the bits in place and return them: each changes half of the others."""
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(FIRST)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(SECOND)
    bits ^= bits >> np.uint64(31)
    return bits


def _mix_bits(bits: int) -> int:
    bits &= SIXTY_FOUR
    bits = ((bits ^ (bits >> 30)) * FIRST) & SIXTY_FOUR
    bits = ((bits ^ (bits >> 27)) * SECOND) & SIXTY_FOUR
    return bits ^ (bits >> 31)


def proposes(keys: Keys) -> NDArray[np.bool_]:
    """Return which rows propose; the others judge. This is independent of the rank, which uses the upper bits only."""
    return (keys & np.uint64(1)).astype(bool)


def ranks_of(keys: Keys, clock: Array | float = 0.0) -> Array:
    """Return the ranks of rows with these keys at these clocks. Larger keys have larger ranks."""
    u = 1.0 - ((keys >> np.uint64(64 - UNIFORM_BITS)).astype(np.float64) + 0.5) * 2.0**-UNIFORM_BITS
    return log(-log(u)) - clock


def least_key_beyond(rank: float, clock: float) -> int:
    """Return a bound on keys: a row at this time or earlier with a larger key has no smaller rank. It spares most ranks."""
    if rank + clock >= LATEST:
        return KEYS
    u = -math.expm1(-math.exp(rank + clock))
    return min(KEYS, (int(u * (1.0 + SLACK) * 2.0**UNIFORM_BITS) + 2) << (64 - UNIFORM_BITS))


def log(values: Array) -> Array:
    """Return logarithms made of sums and products only, which are the same on every machine; NumPy's differ in the last bit."""
    mantissa, exponent = np.frexp(values)
    low = mantissa < math.sqrt(0.5)
    mantissa = np.where(low, 2.0 * mantissa, mantissa)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = np.zeros_like(ratio)
    for term in TERMS:
        series = series * square + term
    return (exponent - low) * LOG_2 + 2.0 * ratio * series


def order_labelled_first(labels: NDArray[np.int64], order: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Return row numbers in an order that puts labelled rows first, up to half of the first `rows` if others are not labelled.

    Labelled rows are worth more than others, but clusters without labels must be represented, too.
    """
    if not labels.size:
        return order
    named = labels[order] >= 0
    most = max(rows // 2, rows - int(np.count_nonzero(~named)))
    first = named & (np.cumsum(named) <= most)
    first |= ~named & (np.cumsum(~named) <= rows - np.count_nonzero(first))
    return np.concatenate([order[first], order[~first]])
