"""Streams of random numbers: the distributions, and no correlation between neighbouring rows or keys."""

import numpy as np
import pytest
from scipy import stats

from headwater.kernels.random import FIRST, GOLDEN, SECOND, begin_stream, log_gamma_variate, mixed, normal, uniform


def stream(key=0, row=0):
    state = np.zeros(1, dtype=np.uint64)
    begin_stream(state, np.uint64(key), row)
    return state


def draws(function, n, *arguments, key=0, row=0):
    state = stream(key, row)
    return np.array([function(state, *arguments) for _ in range(n)])


def firsts(keys, rows, n=1):
    """The first numbers (keys, rows, n) of each stream."""
    return np.array([[draws(uniform, n, key=key, row=row) for row in rows] for key in keys])


def fits(sample, distribution):
    assert stats.kstest(sample, distribution).pvalue > 1e-3


@pytest.mark.parametrize(("key", "row"), [(0, 0), (1, 0), (0, 1), (2**63, 2**40), (2**64 - 1, -1)])
def test_uniform_numbers(key, row):
    sample = draws(uniform, 20_000, key=key, row=row)
    fits(sample, stats.uniform.cdf)
    assert sample.min() > 0.0 and sample.max() < 1.0
    low_bits = (sample * 2**48).astype(np.int64) % 256
    assert stats.chisquare(np.bincount(low_bits, minlength=256)).pvalue > 1e-3


def unmixed(bits):
    """Return the bits before the mixing of SplitMix64."""

    def unshifted(value, by):
        for _ in range(64 // by):
            value = bits_of ^ (value >> by)
        return value

    for by, factor in ((31, SECOND), (27, FIRST), (30, 1)):
        bits_of = bits
        bits = unshifted(bits, by) * pow(int(factor), -1, 2**64) % 2**64
    return bits


@pytest.mark.parametrize("bits", [0, 1, 2**64 - 1, 2**64 - 2**11, 2**63, 0x0123456789ABCDEF])
def test_neither_end_of_the_unit_interval_is_drawn(bits):
    assert int(mixed(np.uint64(unmixed(bits)))) == bits
    state = np.array([(unmixed(bits) - int(GOLDEN)) % 2**64], dtype=np.uint64)
    drawn = uniform(state)
    assert 0.0 < drawn < 1.0
    assert drawn == pytest.approx(bits / 2**64, abs=2.0**-51)


def test_normal_numbers():
    sample = draws(normal, 20_000)
    fits(sample, stats.norm.cdf)
    fits(sample**2, stats.chi2(1).cdf)
    assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 0.03


@pytest.mark.parametrize("shape", [0.01, 0.05, 0.3, 0.999, 1.0, 1.5, 3.0, 40.0, 1e4, 1e9])
def test_gamma_numbers(shape):
    sample = draws(log_gamma_variate, 10_000, shape)
    assert np.isfinite(sample).all()
    fits(sample, stats.loggamma(shape).cdf)


@pytest.mark.parametrize("shape", [1e-12, 1e-6, 1e-3])
def test_gamma_numbers_of_small_shapes_do_not_underflow(shape):
    sample = draws(log_gamma_variate, 2000, shape)
    assert np.isfinite(sample).all()
    fits(shape * sample, lambda x: np.exp(np.minimum(x, 0.0)))  # G^shape is uniform as the shape goes to 0


def test_first_numbers_of_neighbours_are_uniform_and_independent():
    rows = firsts(range(3), range(3000))[..., 0]
    keys = firsts(range(3000), range(2))[..., 0].T
    for sample in (*rows, *keys):
        fits(sample, stats.uniform.cdf)
        for lag in (1, 2, 16):
            assert abs(np.corrcoef(sample[:-lag], sample[lag:])[0, 1]) < 0.07
    for one, other in ((rows[0], rows[1]), (rows[1], rows[2]), (keys[0], keys[1])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.07


def test_no_two_streams_are_the_same_or_run_into_each_other():
    # The state is a counter: two streams overlap if their states differ by a few steps.
    states = {int(stream(key, row)[0]) for key in range(60) for row in range(60)}
    assert len(states) == 3600
    golden = 0x9E3779B97F4A7C15
    steps = sorted((state * pow(golden, -1, 2**64)) % 2**64 for state in states)
    assert min(np.diff(np.array(steps, dtype=object))) > 2**30


def test_sums_of_key_and_row_share_nothing():
    # (key, row) and (row, key), (key + 1, row - 1) and so on.
    pairs = [((3, 5), (5, 3)), ((3, 5), (4, 4)), ((0, 1), (1, 0)), ((0, 0), (1, 1))]
    for one, other in pairs:
        left, right = (draws(uniform, 2000, key=key, row=row) for key, row in (one, other))
        assert abs(np.corrcoef(left, right)[0, 1]) < 0.08
        assert not set(left.tolist()) & set(right.tolist())


def test_bits_of_neighbouring_rows_change_half_the_time():
    first = (firsts([7], range(4000))[0, :, 0] * 2**48).astype(np.int64)
    changed = np.array([(first[:-1] ^ first[1:]) >> bit & 1 for bit in range(48)]).mean(axis=1)
    assert np.abs(changed - 0.5).max() < 0.04


def test_a_stream_is_the_same_every_time():
    np.testing.assert_array_equal(draws(uniform, 100, key=5, row=9), draws(uniform, 100, key=5, row=9))
