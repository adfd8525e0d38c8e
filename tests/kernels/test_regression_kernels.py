"""E-step, readouts and sweep of regressions against their naive twins."""

from dataclasses import replace

import numpy as np
import pytest
from naive import gaussian as naive
from naive import regression as naive_regression

from headwater.core.batch import Batch
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianPrior, GaussianStatistics
from headwater.families.regression import Regression
from headwater.families.regression_records import RegressionPrior

K = 3
families = pytest.mark.parametrize(
    "family",
    [
        Regression(K),
        Regression(K, intercept=False),
        Regression(K, gate=Gaussian(K)),
        Regression(K, intercept=False, gate=Gaussian(K)),
    ],
    ids=["fixed", "fixed, no intercept", "gated", "gated, no intercept"],
)
names = pytest.mark.parametrize("name", naive.READOUTS)
EXTRAS = ["plain", "weights and labels"]


def random_prior(family, d, rng):
    size = d + family.intercept
    root = rng.normal(size=(d, d))
    origin = rng.normal(size=d + 1)
    gate = GaussianPrior(origin[:-1], rng.normal(size=d), 0.7, d + 1.3, root @ root.T + np.eye(d), 0.0)
    return RegressionPrior(
        origin, rng.normal(size=size), rng.uniform(0.2, 2.0, size), 2.5, 1.7, 0.0, gate if family.gate else None
    )


def random_rows(n, d, rng):
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    return np.column_stack([X, X @ rng.normal(size=d) + rng.normal(size=n)])


def learned(family, d, rng, n=40):
    """Rows about the origin, their responsibilities, and statistics of them."""
    rows, resp = random_rows(n, d, rng), rng.dirichlet(np.full(K, 0.5), n)
    count, first, second = naive.totals("full", rows, resp)
    return rows, resp, GaussianStatistics(np.zeros(1), count, first, np.tril(second))


def random_batch(n, d, extras, rng):
    weights = rng.uniform(0.1, 3.0, n) if "weights" in extras else np.empty(0)
    labels = rng.integers(-1, K, n) if "labels" in extras else np.empty(0, dtype=np.int64)
    return Batch(random_rows(n, d, rng), weights, labels)


@pytest.mark.covering("family", "name", "n")
@families
@names
@pytest.mark.parametrize(("n", "d"), [(1, 1), (127, 2), (129, 5), (8200, 2)])
@pytest.mark.parametrize("extras", EXTRAS)
def test_estep_equals_its_twin(family, name, n, d, extras):
    rng = np.random.default_rng([n, d])
    prior = random_prior(family, d, rng)
    parameters = family.readout(name, prior, learned(family, d, rng)[2])
    log_weights, batch = np.log(rng.dirichlet(np.ones(K))), random_batch(n, d, extras, rng)
    totals, scores, resp = family.zeros(d + 1), np.empty(n), np.empty((n, K))
    total, _ = family.estep(parameters, log_weights, batch, totals, scores, resp)
    joint, inputs = naive_regression.log_joint(parameters, log_weights, batch.X - prior.origin, family.intercept)
    wanted, row_scores = naive.responsibilities(joint, batch.labels if batch.labels.size else None)
    np.testing.assert_allclose(resp, wanted, rtol=1e-9, atol=1e-12)
    assert total == pytest.approx(batch.row_weights @ row_scores, rel=1e-11)
    of_inputs = naive.responsibilities(inputs)[1] if family.gate else 0.0
    np.testing.assert_allclose(scores, row_scores - of_inputs, rtol=1e-9, atol=1e-10)
    count, first, second = naive.totals("full", batch.X - prior.origin, wanted, batch.row_weights)
    for found, array in ((totals.count, count), (totals.first, first), (totals.second, np.tril(second))):
        np.testing.assert_allclose(found, array, rtol=1e-9, atol=1e-10 * (1.0 + np.abs(array).max()))


@families
@names
@pytest.mark.parametrize("d", [1, 4])
def test_readout_is_the_density_of_the_belief(family, name, d):
    rng = np.random.default_rng(d)
    prior = random_prior(family, d, rng)
    rows, resp, held = learned(family, d, rng)
    parameters = family.readout(name, prior, held)
    known = naive_regression.belief(prior, family.intercept, rows, resp)
    wanted = naive_regression.log_densities(name, family.intercept, known, rows)
    found, inputs = naive_regression.log_joint(parameters, np.zeros(K), rows, family.intercept)
    if family.gate:
        gates = naive.belief("full", prior.gate, *naive.totals("full", rows[:, :-1], resp))
        np.testing.assert_allclose(inputs, naive.log_densities(name, "full", gates, 0.0, rows[:, :-1]), rtol=1e-9)
    np.testing.assert_allclose(found - inputs if family.gate else found, wanted, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(parameters.coef, [one.m for one in known], rtol=1e-9, atol=1e-10)


@families
def test_belief_divergence_and_log_prior_are_those_of_the_equations(family):
    rng = np.random.default_rng(5)
    prior = random_prior(family, 2, rng)
    rows, resp, held = learned(family, 2, rng)
    known = naive_regression.belief(prior, family.intercept, rows, resp)
    found = family.belief(prior, held)
    np.testing.assert_allclose(found.scale, [2 * one.b for one in known], rtol=1e-9)
    np.testing.assert_allclose(found.dof, [2 * one.a for one in known])
    np.testing.assert_allclose(found.precision, [one.L for one in known], rtol=1e-9)
    # E[log belief - log prior] by draws of coefficients and precision.
    plain = replace(prior, gate=None)
    total = 0.0
    for one in known:
        tau = rng.gamma(one.a, 1.0 / one.b, 40_000)
        root = np.linalg.cholesky(np.linalg.inv(one.L))
        beta = one.m + (rng.normal(size=(len(tau), len(one.m))) @ root.T) / np.sqrt(tau)[:, None]
        before = naive_regression.Belief(prior.mean, np.diag(prior.precision), prior.dof / 2, prior.scale / 2)
        total += np.mean(log_nig(one, beta, tau) - log_nig(before, beta, tau))
    assert Regression(K, family.intercept).divergence(plain, held) == pytest.approx(total, rel=0.01)
    mode = Regression(K, family.intercept).readout("mode", plain, held)
    taus = 1.0 / family.noise_variances(mode)
    wanted = sum(log_nig(before, mode.coef[k][None], taus[k : k + 1])[0] for k in range(K))
    other = replace(mode, coef=mode.coef + 0.1)
    moved = sum(log_nig(before, other.coef[k][None], taus[k : k + 1])[0] for k in range(K))
    family = Regression(K, family.intercept)
    assert family.log_prior(plain, other) - family.log_prior(plain, mode) == pytest.approx(moved - wanted)


def log_nig(known, beta, tau):
    gap = beta - known.m
    normal = 0.5 * np.linalg.slogdet(known.L)[1] + 0.5 * len(known.m) * np.log(tau / (2 * np.pi))
    normal = normal - 0.5 * tau * np.einsum("ni,ij,nj->n", gap, known.L, gap)
    return normal + known.a * np.log(known.b) - naive.special.gammaln(known.a) + (known.a - 1) * np.log(tau) - known.b * tau


@pytest.mark.covering("family", "name")
@families
@names
@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("fades", [False, True])
def test_sweep_equals_its_twin(family, name, extras, fades):
    rng = np.random.default_rng(3)
    d, n = 2, 12
    prior = random_prior(family, d, rng)
    rows, resp, held = learned(family, d, rng)
    batch = random_batch(n, d, extras, rng)
    size, weights = float(len(rows)), batch.row_weights
    steps = np.full(n, 0.07) if fades else weights / (size + np.cumsum(weights))
    gains = np.linspace(0.3, 0.1, n)
    options = (weights, batch.labels if batch.labels.size else None)
    concentration = np.full(K, 1.5)
    wanted = naive_regression.sweep(
        name, family, prior, concentration, rows, resp, batch.X - prior.origin, steps, gains, *options
    )
    statistics, scores = held.scaled(1.0 / size), np.empty(n)
    found, average, n_eff = family.sweep(
        name, prior, concentration, batch, steps, gains, size, statistics, statistics.copy(), scores
    )
    assert n_eff == pytest.approx(wanted[2])
    np.testing.assert_allclose(scores, wanted[3], rtol=1e-8, atol=1e-9)
    for part, arrays in ((found, wanted[0]), (average, wanted[1])):
        for array, other in zip((part.count, part.first, part.second), arrays, strict=True):
            other = np.tril(other) if other.ndim == 3 else other
            np.testing.assert_allclose(array, other, rtol=1e-8, atol=1e-9)


@families
def test_statistics_can_be_brought_to_another_origin(family):
    rng = np.random.default_rng(8)
    prior = random_prior(family, 2, rng)
    moved = replace(prior, origin=prior.origin + rng.normal(size=3))
    batch, resp = random_batch(50, 2, "plain", rng), rng.dirichlet(np.ones(K), 50)
    here, there = (
        family.estep(
            family.blank_parameters(one.origin), np.zeros(K), batch, family.zeros(3), responsibilities=resp, given=True
        )[1]
        for one in (prior, moved)
    )
    brought = family.move_to_prior(prior, moved, there)
    for name, array in brought.to_arrays().items():
        np.testing.assert_allclose(array, getattr(here, name), rtol=1e-10, atol=1e-10)


@families
@names
@pytest.mark.parametrize("size", [1e50, 1e100, 1e149])
def test_far_rows_stay_finite_and_keep_their_mass(family, name, size):
    rng = np.random.default_rng(4)
    parameters = family.readout(name, random_prior(family, 2, rng), learned(family, 2, rng)[2])
    rows = np.array([[size, 0.0, 1.0], [0.0, -size, size], [size, size, size], [-size, 1.0, 0.0], [0.0, 0.0, size]])
    totals, scores, resp = family.zeros(3), np.empty(5), np.empty((5, K))
    family.estep(parameters, np.zeros(K), Batch(rows), totals, scores, resp)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-14)
    assert totals.count.sum() == pytest.approx(5.0)
