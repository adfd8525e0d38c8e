"""Linear regressions of several targets: densities, least squares and beliefs against plain loops and integrals."""

from dataclasses import replace

import numpy as np
import pytest
from naive import linear_gaussian as naive
from scipy import stats

from headwater.core.batch import Batch
from headwater.families.linear_gaussian import LinearGaussian

K, P, D = 2, 3, 2


def some_rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P)) * [1.0, 2.0, 0.5] + [0.0, 3.0, -1.0]
    return np.hstack([X, X @ rng.normal(size=(P, D)) + rng.normal(size=(n, D)) + 10.0]), rng.dirichlet(np.ones(K), n)


def family_and_prior(**options):
    family, (rows, shares) = LinearGaussian(K, D, **options), some_rows()
    batch = Batch(rows)
    return family, family.prior(family.geometry(batch), batch, shares)


def test_densities_are_those_of_normal_laws():
    family, rng = LinearGaussian(K, D), np.random.default_rng(1)
    coef, level = rng.normal(size=(K, D, P)), rng.normal(size=(K, D))
    root = rng.normal(size=(K, D, D))
    covariance = root @ np.swapaxes(root, 1, 2) + 0.2 * np.eye(D)
    given = {"coef": coef, "intercept": level, "covariance": covariance}
    rows, shares = some_rows()
    _, prior = family_and_prior()
    about = family.readout("mean", prior, family.collect(family.readout("mean", prior, family.zeros(P + D)), rows, shares))
    for parameters in (family.with_parameters(given, None), family.with_parameters(given, about)):
        wanted = naive.log_densities(coef, level, covariance, rows[:, :P], rows[:, P:])
        np.testing.assert_allclose(family.log_densities(parameters, rows), wanted, rtol=1e-11)
        for found, one in zip((*family.coefficients(parameters), family.covariances(parameters)), given.values(), strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-11, atol=1e-12)
        law = family.conditional(parameters, rows, np.arange(P + D) >= np.full((len(rows), 1), P))
        entries = law.entries(np.arange(len(rows)), np.full(len(rows), P + 1))
        np.testing.assert_allclose(entries.mean, (level + np.einsum("kdp,np->nkd", coef, rows[:, :P]))[:, :, 1], rtol=1e-10)
        np.testing.assert_allclose(entries.variance, np.tile(covariance[:, 1, 1], (len(rows), 1)), rtol=1e-10)


def test_modes_without_a_prior_are_least_squares():
    family, prior = family_and_prior(noise_floor=0.0)
    rows, shares = some_rows()
    flat = family.flatten_prior(prior)
    totals = family.collect(family.readout("mode", flat, family.zeros(P + D)), rows, shares)
    found = family.readout("mode", flat, totals)
    slopes, level, covariance = naive.least_squares(rows[:, :P], rows[:, P:], shares)
    np.testing.assert_allclose(family.coefficients(found)[0], slopes, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(family.coefficients(found)[1], level, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(family.covariances(found), covariance, rtol=1e-6)


def test_expected_log_densities_are_averages_over_the_belief():
    """Coefficients are drawn from the matrix-normal inverse-Wishart belief."""
    family, prior = family_and_prior()
    rows, shares = some_rows(20)
    totals = family.collect(family.readout("mean", prior, family.zeros(P + D)), rows, shares)
    precision, mean, dof, scale = family.belief(prior, totals)
    rng, some = np.random.default_rng(2), rows[:3]
    design, targets = family._split(prior.origin, some)
    draws = np.empty((8000, 3))
    for at in range(len(draws)):
        covariance = stats.invwishart.rvs(dof[0], scale[0], random_state=rng)
        root = np.linalg.cholesky(np.linalg.inv(precision[0]))
        coef = mean[0] + np.linalg.cholesky(covariance) @ rng.normal(size=mean[0].shape) @ root.T
        away = targets - design @ coef.T
        squares = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
        draws[at] = -0.5 * (squares + np.linalg.slogdet(2.0 * np.pi * covariance)[1])
    found = family.log_densities(family.readout("expect_log", prior, totals), some)[:, 0]
    assert (np.abs(draws.mean(axis=0) - found) < 4.5 * draws.std(axis=0) / np.sqrt(len(draws))).all()


def test_the_divergence_is_that_of_the_draws():
    family, prior = family_and_prior()
    rows, shares = some_rows(15)
    totals = family.collect(family.readout("mean", prior, family.zeros(P + D)), rows, shares)
    assert family.divergence(prior, family.zeros(P + D)) == pytest.approx(0.0, abs=1e-9)
    rng, found = np.random.default_rng(3), np.zeros(4000)
    precision, mean, dof, scale = family.belief(prior, totals)
    for k in range(K):
        spread, wide = np.linalg.inv(precision[k]), np.linalg.inv(prior.precision)
        for at in range(len(found)):
            covariance = stats.invwishart.rvs(dof[k], scale[k], random_state=rng)
            coef = mean[k] + np.linalg.cholesky(covariance) @ rng.normal(size=mean[k].shape) @ np.linalg.cholesky(spread).T
            found[at] += stats.invwishart.logpdf(covariance, dof[k], scale[k])
            found[at] -= stats.invwishart.logpdf(covariance, prior.dof, prior.scale)
            found[at] += stats.matrix_normal.logpdf(coef, mean[k], covariance, spread)
            found[at] -= stats.matrix_normal.logpdf(coef, 0.0 * mean[k], covariance, wide)
    wanted = family.divergence(prior, totals)
    assert abs(found.mean() - wanted) < 4.5 * found.std() / np.sqrt(len(found))


def test_statistics_move_to_another_origin():
    family, prior = family_and_prior()
    rows, shares = some_rows()
    other = replace(prior, origin=prior.origin + np.arange(P + D))
    found = family.collect(family.readout("mean", prior, family.zeros(P + D)), rows, shares)
    wanted = family.collect(family.readout("mean", other, family.zeros(P + D)), rows, shares)
    np.testing.assert_allclose(family.move_to_prior(other, prior, found).cross, wanted.cross, rtol=1e-9, atol=1e-7)


def test_pseudo_rows_hold_the_parameters():
    family, prior = family_and_prior(noise_floor=0.0)
    rows, shares = some_rows()
    known = family.readout("mean", prior, family.collect(family.readout("mean", prior, family.zeros(P + D)), rows, shares))
    made, parts = family.pseudo_rows(known)
    np.testing.assert_allclose(parts.sum(axis=0), 1.0)
    flat = family.flatten_prior(prior)
    found = family.readout("mode", flat, family.collect(known, made, parts))
    np.testing.assert_allclose(family.coefficients(found)[0], family.coefficients(known)[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(family.covariances(found), family.covariances(known), rtol=1e-6, atol=1e-7)


def test_scatters_are_judged_by_what_beliefs_read_of_them():
    """Which is their symmetric part: one triangle may be sound, and the sum with statistics of other rows not."""
    family, prior = family_and_prior()
    rows, shares = some_rows()
    found = family.collect(family.readout("mean", prior, family.zeros(P + D)), rows, shares).scaled(1.0 / len(rows))
    assert family.find_problem(found, P + D) == ""
    cross = found.cross.copy()
    cross[0, 0, 1:] *= 1e3
    assert "positive definite" in family.find_problem(replace(found, cross=cross), P + D)


def test_coefficients_that_are_hardly_known_leave_densities():
    family, prior = family_and_prior()
    found = family.readout("expect_log", prior, family.zeros(P + D))
    assert family.find_problem(found, P + D) == ""
    assert "density" in family.find_problem(replace(found, leverage=1e156 + found.leverage), P + D)
    assert family.find_mismatch(found, prior, family.zeros(P + D)) == ""
    far = replace(found, leverage=1e150 + found.leverage)
    assert "beyond all" in family.find_mismatch(far, prior, family.zeros(P + D))
