"""Von Mises-Fisher components: densities against SciPy, beliefs against quadrature, divergences against draws."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from headwater.core.batch import Batch
from headwater.families.divergence import sampled_divergences
from headwater.families.von_mises_fisher import DirectionParameters, DirectionPrior, DirectionStatistics, VonMisesFisher
from headwater.families.von_mises_fisher_belief import expectations, log_constant, mean_length


def parameters_of(directions, concentrations):
    natural = np.asarray(concentrations)[:, None] * directions
    return DirectionParameters(natural, log_constant(natural.shape[1], np.asarray(concentrations, dtype=float)))


def some_directions(k, width, seed=0):
    rows = np.random.default_rng(seed).normal(size=(k, width))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("width", [2, 3, 5, 20])
def test_densities_are_scipys(width):
    directions, rows = some_directions(3, width), some_directions(50, width, 1)
    found = VonMisesFisher(3).log_densities(parameters_of(directions, [0.5, 10.0, 300.0]), rows)
    wanted = [
        stats.vonmises_fisher(mean, kappa).logpdf(rows) for mean, kappa in zip(directions, [0.5, 10.0, 300.0], strict=True)
    ]
    np.testing.assert_allclose(found, np.transpose(wanted), rtol=1e-10, atol=1e-10)


def test_a_component_of_no_concentration_is_uniform():
    found = VonMisesFisher(1).log_densities(parameters_of(np.zeros((1, 3)), [0.0]), some_directions(4, 3))
    np.testing.assert_allclose(found, -np.log(4.0 * np.pi), rtol=1e-12)


@pytest.mark.parametrize(
    ("width", "rows", "length"), [(3, 5.0, 2.0), (2, 0.1, 0.05), (10, 1.0, 0.0), (50, 100.0, 80.0), (1, 3.0, 1.0)]
)
def test_expectations_are_those_of_adaptive_quadrature(width, rows, length):
    found = expectations(width, np.array([rows]), np.array([length]))

    def density(kappa):
        height = (
            (width - 1.0) * np.log(kappa) + rows * log_constant(width, np.array(kappa)) - log_constant(width, length * kappa)
        )
        return np.exp(height - found.log_normaliser[0])

    def integral(value):
        edges = (1e-12, 1.0, 10.0, 100.0, 3000.0)
        return sum(quad(lambda k: density(k) * value(k), *ends, limit=400)[0] for ends in pairwise(edges))

    assert integral(lambda kappa: 1.0) == pytest.approx(1.0, rel=1e-8)
    assert integral(lambda kappa: kappa * mean_length(width, length * kappa)) == pytest.approx(
        found.length[0], rel=1e-8, abs=1e-12
    )
    assert integral(lambda kappa: log_constant(width, kappa)) == pytest.approx(found.log_constant[0], rel=1e-8)


def test_expectations_of_many_rows_are_the_mode():
    family, totals = VonMisesFisher(1), DirectionStatistics.of(np.array([1e7]), np.array([[6e6, 0.0, 0.0, 0.0]]))
    prior = family.blank_prior(4)
    mode, expected = (family.readout(name, prior, totals) for name in ("mode", "expect_log"))
    np.testing.assert_allclose(expected.natural, mode.natural, rtol=1e-5)
    np.testing.assert_allclose(expected.log_constant, mode.log_constant, rtol=1e-5)


def test_the_mode_is_the_best_there_is():
    rng, family = np.random.default_rng(0), VonMisesFisher(1)
    prior = DirectionPrior(np.array([2.0]), np.array([[0.3, 0.1, 0.0]]))
    totals = DirectionStatistics.of(np.array([7.0]), np.array([[3.0, 1.0, 2.0]]))

    def objective(natural):
        at = DirectionParameters(natural, log_constant(3, np.linalg.norm(natural, axis=1)))
        own = np.sum(totals.resultant * natural) + totals.count @ at.log_constant
        return own + family.log_prior(prior, at)

    best = family.readout("mode", prior, totals).natural
    others = [objective(best + 0.05 * rng.normal(size=(1, 3))) for _ in range(50)]
    assert max(others) < objective(best)


def test_the_divergence_of_nothing_learned_is_nothing():
    family, prior = VonMisesFisher(2), DirectionPrior(np.ones(2), np.full((2, 3), 0.2))
    assert family.divergence(prior, family.zeros(3)) == pytest.approx(0.0, abs=1e-12)
    rows = Batch(some_directions(9, 3))
    totals = family.collect(None, rows.X, np.full((9, 2), 0.5))
    assert family.divergence(prior, totals) > 0.0


def test_divergences_are_those_of_draws():
    family = VonMisesFisher(3)
    one, other = (
        parameters_of(some_directions(3, 5), [2.0, 8.0, 20.0]),
        parameters_of(some_directions(3, 5, 4), [3.0, 8.0, 9.0]),
    )
    np.testing.assert_allclose(
        family.density_divergences(one, other), sampled_divergences(family, one, other), rtol=0.25, atol=0.3
    )
    assert np.diagonal(family.density_divergences(one, one)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("width", "kappa"), [(1, 0.7), (2, 3.0), (3, 20.0), (10, 0.0), (10, 50.0), (60, 200.0)])
def test_draws_have_the_angles_that_they_should(width, kappa):
    mean = some_directions(1, width)
    rows = VonMisesFisher(1).sample(parameters_of(mean, [kappa]), np.zeros(20000, dtype=int), np.random.default_rng(2))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-12)
    cosines = rows @ mean[0]
    assert cosines.mean() == pytest.approx(float(mean_length(width, np.array(kappa))), abs=5.0 * cosines.std() / 140.0 + 1e-12)
    if width > 2 and kappa:
        peer = stats.vonmises_fisher(mean[0], kappa).rvs(20000, random_state=3) @ mean[0]
        assert stats.ks_2samp(cosines, peer).pvalue > 1e-3
        across = rows - cosines[:, None] * mean[0]
        assert np.abs(across.mean(axis=0)).max() < 5.0 / 140.0


def test_a_sum_longer_than_its_rows_is_impossible():
    family = VonMisesFisher(2)
    totals = DirectionStatistics.of(np.array([2.0, 2.0]), np.array([[1.9, 0.0], [2.1, 0.0]]))
    assert family.find_impossible(totals).tolist() == [False, True]
    assert family.find_problem(DirectionPrior(np.ones(2), np.ones((2, 2))), 2) == "is not a valid prior"


@pytest.mark.parametrize("width", [2, 3, 50, 200])
def test_beliefs_of_rows_that_are_all_alike_are_finite(width):
    """Concentrations are then very large, and the logarithms of both constants nearly cancel."""
    for rows in 10.0 ** np.arange(-6, 13, 3):
        for length in rows * np.array([0.0, 0.5, 1.0 - 1e-9, 1.0 - 1e-12]):
            found = expectations(width, np.array([rows]), np.array([length]))
            assert all(np.isfinite(part).all() for part in found)
            if 1.0 <= rows <= 1e9 and length == rows * (1.0 - 1e-9):  # there kappa is a Gamma variate with this mean
                mean = (0.5 * (width - 1.0) * (rows + 1.0) + 1.0) / (rows - length)
                np.testing.assert_allclose(found.length, mean, rtol=1e-4)
