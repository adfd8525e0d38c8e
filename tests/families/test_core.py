"""The core of every family agrees with its kernels: the E-step of a kernel equals log-densities and statistics."""

import numpy as np
import pytest
from scipy import stats

from headwater.core.batch import Batch, drop_zeros
from headwater.core.records import arrays_of
from headwater.families.categorical import Categorical
from headwater.families.family import Family
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_scaled import ScaledGaussian
from headwater.families.multinomial import Multinomial
from headwater.families.regression import Regression
from headwater.families.student import Student

K = 3
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(60, 3)) * [1.0, 10.0, 0.1] + 5.0 * RNG.integers(2, size=(60, 1))
COUNTS = RNG.poisson(2.0, size=(60, 4)).astype(float)
SYMBOLS = RNG.integers(5, size=(60, 1)).astype(float)
CASES = [
    *((Gaussian(K, kind), NUMBERS) for kind in ("full", "tied", "diag", "spherical")),
    *((Student(K, kind), NUMBERS) for kind in ("full", "diag")),
    (ScaledGaussian(K), NUMBERS), (Multinomial(K), COUNTS), (Multinomial(K), drop_zeros(COUNTS)),
    (Categorical(K, n_symbols=5), SYMBOLS), (Regression(K), NUMBERS), (Regression(K, gate=Gaussian(K)), NUMBERS),
]  # fmt: skip
cases = pytest.mark.parametrize(("family", "X"), CASES, ids=lambda value: type(value).__name__)
names = pytest.mark.parametrize("name", ["mode", "mean", "expect_log", "predictive"])


def known(family, X, name):
    """Return parameters for rows, from random responsibilities."""
    batch, shares = Batch(X), np.random.default_rng(1).dirichlet(np.ones(K), size=len(X))
    geometry = family.geometry(batch)
    prior = family.prior(geometry, batch, shares)
    return family.readout(name, prior, family.collect_seeds(geometry, batch, shares))


@cases
@names
def test_an_estep_is_one_by_log_densities(family, X, name):
    if name not in family.readouts:
        pytest.skip("there is no such readout")
    parameters, log_weights = known(family, X, name), np.log([0.5, 0.2, 0.3])
    scores, shares = np.empty(len(X)), np.empty((len(X), K))
    total, totals = family.estep(parameters, log_weights, Batch(X), family.zeros(X.shape[1]), scores, shares)
    wanted, wanted_shares = np.empty(len(X)), np.empty((len(X), K))
    found = Family.estep(family, parameters, log_weights, Batch(X), family.zeros(X.shape[1]), wanted, wanted_shares)
    np.testing.assert_allclose(shares, wanted_shares, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(total, found[0], rtol=1e-9)
    if not getattr(family, "gate", None):  # then scores are those of targets given inputs
        np.testing.assert_allclose(scores, wanted, rtol=1e-9, atol=1e-9)
    for one, other in zip(arrays_of(totals), arrays_of(found[1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(other).max(initial=0.0)))


@pytest.mark.parametrize("name", ["mean", "predictive"])
def test_log_densities_of_full_covariances_are_those_of_scipy(name):
    """Beyond the rows too, where a density is less than any double."""
    family, X = Gaussian(K), np.vstack([NUMBERS, 1e6 * NUMBERS[:2]])
    parameters = known(family, NUMBERS, name)
    means, covariances, found = family.means(parameters), family.covariances(parameters), family.log_densities(parameters, X)
    for k in range(K):
        law = stats.multivariate_normal(means[k], covariances[k])
        if name == "predictive":  # the log-density is offset - power log(1 + stretch q)
            squares = -2.0 * (law.logpdf(X) - law.logpdf(means[k]))
            wanted = parameters.offset[k] - parameters.power[k] * np.log1p(parameters.stretch[k] * squares)
        else:
            wanted = law.logpdf(X)
        np.testing.assert_allclose(found[:, k], wanted, rtol=1e-8)


@cases
def test_permuted_components_are_those_of_permuted_statistics(family, X):
    parameters, order = known(family, X, "mean"), [2, 0, 1]
    found = family.log_densities(family.select_parameters(parameters, order), X)
    np.testing.assert_allclose(found, family.log_densities(parameters, X)[:, order], rtol=1e-12)
