import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

import headwater as hw
from headwater.models.stick_breaking import (
    expected_log_weights,
    mean_log_weights,
    stick_belief,
    stick_divergence,
    stick_marginals,
)

GAMMA, COUNTS = 0.7, np.array([3.0, 0.0, 5.5, 1.2])
CONCENTRATION = np.full(4, GAMMA)


def beliefs():
    """Both parameters of each stick, one after another."""
    return [(1.0 + COUNTS[k], GAMMA + sum(COUNTS[k + 1 :])) for k in range(len(COUNTS))]


def draws(n=200_000):
    rng = np.random.default_rng(0)
    sticks = np.column_stack([rng.beta(a, b, size=n) for a, b in beliefs()])
    left = np.ones(n)
    weights = np.empty_like(sticks)
    for k in range(sticks.shape[1]):
        weights[:, k] = sticks[:, k] * left
        left = left * (1.0 - sticks[:, k])
    return weights


def test_sticks_are_those_of_the_counts_after_them():
    np.testing.assert_allclose(np.transpose(stick_belief(CONCENTRATION, COUNTS)), beliefs())
    np.testing.assert_allclose(np.transpose(stick_belief(np.ones(1), np.array([4.0]))), [(5.0, 1.0)])


def test_weights_are_those_of_drawn_sticks():
    weights = draws()
    mean = weights.mean(axis=0)
    np.testing.assert_allclose(np.exp(mean_log_weights(CONCENTRATION, COUNTS)), mean / mean.sum(), atol=2e-3)
    np.testing.assert_allclose(expected_log_weights(CONCENTRATION, COUNTS), np.log(weights).mean(axis=0), atol=0.03)
    own, others = stick_marginals(CONCENTRATION, COUNTS)
    np.testing.assert_allclose(own / (own + others), mean, atol=2e-3)
    np.testing.assert_allclose(beta.var(own, others), weights.var(axis=0), rtol=0.02)


def test_divergence_is_that_of_the_sticks_by_quadrature():
    found = 0.0
    for a, b in beliefs():
        known, prior = beta(a, b), beta(1.0, GAMMA)
        found += quad(lambda v, known=known, prior=prior: known.pdf(v) * (known.logpdf(v) - prior.logpdf(v)), 0.0, 1.0)[0]
    assert stick_divergence(CONCENTRATION, COUNTS) == pytest.approx(found, rel=1e-6)
    assert stick_divergence(CONCENTRATION, np.zeros(4)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_no_pass_lowers_the_free_energy(kind):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 2)) + 4.0 * rng.integers(3, size=(300, 1))
    model = hw.BayesianGaussianMixture(
        n_components=6, covariance_type=kind, algorithm="vb", tol=0.0, max_iter=60, random_state=0
    )
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit(rows)
    assert np.diff(model.lower_bounds_).min() > -1e-10
    assert len(model.lower_bounds_) > 3
