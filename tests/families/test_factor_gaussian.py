"""Factor analysers: densities by SciPy, statistics and readouts by slow twins, likelihood by scikit-learn's FactorAnalysis."""

import numpy as np
import pytest
from naive.factor import naive_collect, naive_mode
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

from headwater.core.batch import Batch
from headwater.core.records import arrays_of
from headwater.families.factor_gaussian import FactorGaussian

RNG = np.random.default_rng(0)
K, D, Q = 3, 6, 2
X = RNG.normal(size=(80, Q)) @ RNG.normal(size=(Q, D)) + 0.4 * RNG.normal(size=(80, D)) + 30.0
SHARES = RNG.dirichlet(np.ones(K), size=80)


def some_parameters(family=None, flat=False):
    family = family or FactorGaussian(K, Q)
    batch, shares = Batch(X), SHARES[:, : family.n_components]
    geometry = family.geometry(batch)
    prior = family.prior(geometry, batch, shares)
    prior = family.flatten_prior(prior) if flat else prior
    return family, prior, family.readout("mode", prior, family.collect_seeds(geometry, batch, shares))


def test_densities_are_those_of_the_covariances():
    family, _, parameters = some_parameters()
    found, means, covariances = family.log_densities(parameters, X), family.means(parameters), family.covariances(parameters)
    for k in range(K):
        np.testing.assert_allclose(found[:, k], multivariate_normal(means[k], covariances[k]).logpdf(X), rtol=1e-9, atol=1e-9)
    factors = family.precisions_cholesky(parameters)
    np.testing.assert_allclose(factors @ np.swapaxes(factors, 1, 2) @ covariances, np.tile(np.eye(D), (K, 1, 1)), atol=1e-9)


def test_statistics_are_those_of_rows_one_by_one():
    family, _, parameters = some_parameters()
    for one, other in zip(
        arrays_of(family.collect(parameters, X, SHARES)), arrays_of(naive_collect(family, parameters, X, SHARES)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("flat", [False, True])
def test_a_readout_is_a_regression(flat):
    family, prior, parameters = some_parameters(flat=flat)
    totals = family.collect(parameters, X, SHARES)
    found, (means, covariances) = family.readout("mode", prior, totals), naive_mode(prior, totals)
    np.testing.assert_allclose(family.means(found), means, rtol=1e-7)
    np.testing.assert_allclose(family.covariances(found), covariances, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("flat", [False, True])
def test_passes_never_lose(flat):
    family, prior, parameters = some_parameters(flat=flat)
    before, log_weights = -np.inf, np.full(K, -np.log(K))
    for _ in range(40):
        score, totals = family.estep(parameters, log_weights, Batch(X), family.zeros(D))
        score += family.log_prior(prior, parameters)
        assert score >= before - 1e-8
        before, parameters = score, family.readout("mode", prior, totals)
        log_weights = np.log(totals.count / totals.count.sum())


def test_one_component_is_factor_analysis():
    family, prior, parameters = some_parameters(FactorGaussian(1, Q, reg_covar=0.0), flat=True)
    for _ in range(4000):
        score, totals = family.estep(parameters, np.zeros(1), Batch(X), family.zeros(D))
        parameters = family.readout("mode", prior, totals)
    peer = FactorAnalysis(Q, tol=1e-12, max_iter=20000, svd_method="lapack").fit(X)
    assert score / len(X) == pytest.approx(peer.score(X), abs=1e-6)


def test_turned_axes_are_turned_back():
    family, prior, parameters = some_parameters()
    totals = family.collect(parameters, X, SHARES)
    turn = np.linalg.qr(RNG.normal(size=(Q, Q)))[0]
    turned = type(totals)(
        totals.from_base, totals.count, totals.first, totals.square, totals.cross @ turn.T,
        totals.factor_first @ turn.T, turn @ totals.factor_second @ turn.T,
    )  # fmt: skip
    wanted = family.log_densities(family.readout("mode", prior, totals), X)
    np.testing.assert_allclose(family.log_densities(family.readout("mode", prior, turned), X), wanted, rtol=1e-8)
    for one, other in zip(arrays_of(family.align(totals, turned)), arrays_of(totals), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)
    both = family.readout("mode", prior, totals + family.align(totals, turned))
    twice = family.readout("mode", prior, totals.scaled(2.0))
    np.testing.assert_allclose(family.covariances(both), family.covariances(twice), rtol=1e-8, atol=1e-9)


def test_an_origin_that_moves_changes_no_density():
    family, prior, parameters = some_parameters()
    totals = family.collect(parameters, X, SHARES)
    other = type(prior)(prior.origin + 3.0, prior.mean - 3.0, prior.mean_precision, prior.dof, prior.scale, prior.floor)
    moved = family.readout("mode", other, family.move_to_prior(other, prior, totals))
    wanted = family.log_densities(family.readout("mode", prior, totals), X)
    np.testing.assert_allclose(family.log_densities(moved, X), wanted, rtol=1e-7)


def test_statistics_that_no_rows_made_have_a_readout():
    family, prior, parameters = some_parameters()
    totals = family.collect(parameters, X, SHARES)
    for wrong in (totals.scaled(0.0), totals.scaled(-1.0), totals - totals.scaled(3.0), family.zeros(D)):
        for array in arrays_of(family.readout("mode", prior, wrong)):
            assert np.isfinite(array).all()
    assert family.find_impossible(totals.scaled(-1.0)).all() and not family.find_impossible(totals).any()
