"""Bessel functions against mpmath with forty digits, and against SciPy where SciPy is accurate."""

import mpmath
import numpy as np
import pytest
from scipy.special import ive

from headwater.families.bessel import (
    LARGEST_ARGUMENT,
    bessel_ratio,
    ratio_by_argument,
    scaled_log_bessel,
    solve_bessel_ratio,
)

WIDTHS = (1, 2, 3, 10, 81, 82, 83, 256, 768, 1024)
ARGUMENTS = np.logspace(-4, 14, 19)


@pytest.mark.parametrize("width", WIDTHS)
def test_logarithms_and_ratios_are_those_of_many_digits(width):
    order = 0.5 * width - 1.0
    with mpmath.workdps(40):
        values = [mpmath.besseli(order, mpmath.mpf(float(x))) for x in ARGUMENTS]
        above = [mpmath.besseli(order + 1.0, mpmath.mpf(float(x))) for x in ARGUMENTS]
        logs = [
            float(mpmath.log(value) - order * mpmath.log(float(x)) - float(x))
            for value, x in zip(values, ARGUMENTS, strict=True)
        ]
        ratios = [float(one / value) for one, value in zip(above, values, strict=True)]
    np.testing.assert_allclose(scaled_log_bessel(order, ARGUMENTS), logs, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(bessel_ratio(order, ARGUMENTS), ratios, rtol=3e-12)


def test_large_orders_are_scipys_where_these_do_not_underflow():
    x = np.linspace(100.0, 5000.0, 50)
    for order in (40.0, 60.5, 127.0):
        np.testing.assert_allclose(scaled_log_bessel(order, x) + order * np.log(x), np.log(ive(order, x)), rtol=1e-12)


def test_nothing_happens_at_zero():
    for order in (-0.5, 0.0, 39.5, 40.0, 511.0):
        assert np.isfinite(scaled_log_bessel(order, np.zeros(2))).all()
        np.testing.assert_allclose(ratio_by_argument(order, np.zeros(1)), 0.5 / (order + 1.0), rtol=1e-12)
        near, at = scaled_log_bessel(order, np.array([0.999999e-3, 1.000001e-3]))
        assert abs(near - at) < 1e-8  # where the series ends


@pytest.mark.parametrize("width", WIDTHS[1:])
def test_a_ratio_is_solved_for_its_argument(width):
    order, x = 0.5 * width - 1.0, np.logspace(-3, 5, 30)
    np.testing.assert_allclose(solve_bessel_ratio(order, bessel_ratio(order, x)), x, rtol=1e-9)
    alone = np.array([solve_bessel_ratio(order, np.array([one]))[0] for one in (0.2, 0.9)])
    np.testing.assert_array_equal(solve_bessel_ratio(order, np.array([0.2, 0.9])), alone)


def test_ends_of_ratios_are_solved():
    found = solve_bessel_ratio(0.5, np.array([0.0, 1e-300, 1.0 - 1e-13, 1.0]))
    assert found[0] == 0.0 and 0.0 < found[1] < 1e-299 and (found[2:] == LARGEST_ARGUMENT).all()
