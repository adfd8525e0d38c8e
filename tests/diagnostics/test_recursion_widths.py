"""Widths of intervals after steps of 1/n: the factor by share of information, beside the recursion itself."""

import numpy as np
import pytest

import headwater as hw
from headwater.diagnostics import observed_information as own


def followed(share, first, rows):
    """Variance of e += (share / n) (noise - e), from that of the optimum of the first rows, beside that of all rows."""
    variance = 1.0 / first
    for n in range(first + 1, rows + 1):
        variance = (1.0 - share / n) ** 2 * variance + share / n**2 * share
    return variance * rows


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.8, 1.0])
def test_the_factor_is_that_of_the_recursion(share):
    found = own.recursion_factor(np.array([share]), 200 / 20_000)
    np.testing.assert_allclose(found, followed(share, 200, 20_000), rtol=5e-3)


def test_the_covariance_has_the_factor_in_each_direction_and_none_without_steps():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4, 4)) * [1.0, 10.0, 0.1, 3.0]
    complete = half.T @ half + 1e-3 * np.eye(4)
    values, vectors = np.linalg.eigh(complete)
    root = (vectors * np.sqrt(values)) @ vectors.T
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    shares = np.array([0.1, 0.4, 0.7, 1.0])
    seen = root @ (turn * shares) @ turn.T @ root
    covariance = np.linalg.inv(seen)
    np.testing.assert_array_equal(own._of_recursion(covariance, complete, 1.0), covariance)
    back = np.linalg.inv(root)
    wanted = back @ (turn * (own.recursion_factor(shares, 0.01) / shares)) @ turn.T @ back
    np.testing.assert_allclose(own._of_recursion(covariance, complete, 0.01), wanted, rtol=1e-6)


def test_online_vb_is_less_sure_than_with_refinement():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(4000, 2)) + np.outer(rng.integers(2, size=4000), [2.0, 0.0])

    def width(algorithm):
        model = hw.GaussianMixture(2, algorithm=algorithm, warm_up=200, random_state=0).partial_fit(rows)
        low, high = model.credible_intervals(0.9).means[:, 0].T
        low_mean, high_mean = model.credible_intervals(0.9, method="mean-field").means[:, 0].T
        return ((high - low) / (high_mean - low_mean)).mean()

    assert width("online-vb") > 1.2 * width(hw.OnlineVB(refine=True))
    assert not hw.OnlineVB().corrects and hw.OnlineVB(refine=True).corrects and hw.OnlineVB(decay=0.7).corrects
    assert not hw.MomentMatching().corrects and hw.OnlineEM().corrects and hw.Auto().corrects
