"""`fit` finishes under the prior of the stream, so that its score on held-out rows stays near that of one pass."""

import numpy as np
import pytest

import headwater as hw

K, D = 5, 6


def rounded_rows(seed, size):
    """Return rows whose values repeat, as in many tables: maximum likelihood makes components as thin as the floor allows."""
    rng = np.random.default_rng(seed)
    means = 2.0 * np.random.default_rng(seed + 100).normal(size=(K, D))
    rows = rng.normal(size=(size, D)) + means[rng.integers(K, size=size)]
    rows[:, 0] = np.round(rows[:, 0])
    return rows


def test_a_fit_is_near_one_pass_on_rows_held_out():
    gaps, lost = [], []
    for seed in range(4):
        rows, held_out = np.split(rounded_rows(seed, 1300), [300])
        one_pass = hw.GaussianMixture(K, random_state=seed, warm_up=200).partial_fit(rows).score(held_out)
        gaps.append(hw.GaussianMixture(K, random_state=seed).fit(rows).score(held_out) - one_pass)
        lost.append(hw.GaussianMixture(K, algorithm="em", random_state=seed).fit(rows).score(held_out) - one_pass)
    assert np.mean(gaps) > -0.01
    assert max(lost) < min(gaps)  # with so many parameters and so few rows, the prior is needed


def test_the_bound_of_a_fit_is_a_log_posterior():
    rows = rounded_rows(0, 600)
    fitted = hw.GaussianMixture(K, random_state=0).fit(rows)
    assert fitted.lower_bound_ != pytest.approx(fitted.score(rows), abs=1e-4)
    assert np.all(np.diff(fitted.lower_bounds_) > -1e-10)


@pytest.mark.parametrize("options", [{"algorithm": "em"}, {"reg_covar": 0.0}], ids=["em", "nothing regularized"])
def test_the_bound_of_maximum_likelihood_is_the_score(options):
    rows = np.random.default_rng(3).normal(size=(500, D)) + 3.0 * (np.arange(500) % 3 == 0)[:, None]
    fitted = hw.GaussianMixture(2, random_state=0, **options).fit(rows)
    assert fitted.lower_bound_ == pytest.approx(fitted.score(rows), abs=1e-10)
