"""Families with independent columns: each against its slow twin, with gaps, and beliefs against quadrature."""

import numpy as np
import pytest
from naive import columns as naive
from scipy import integrate, stats

from headwater.core.batch import Batch
from headwater.families.bernoulli import Bernoulli
from headwater.families.category_tables import CategoryTables
from headwater.families.poisson import Poisson

K, D = 3, 4
GAPS = (0.0, 0.3)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def make_rows(rng, kind, gaps, n=60):
    rows = {
        "poisson": lambda: rng.poisson(3.0, size=(n, D)),
        "bernoulli": lambda: rng.integers(2, size=(n, D)),
        "categorical": lambda: rng.integers(5, size=(n, D)),
    }[kind]().astype(float)
    rows[rng.random(rows.shape) < gaps] = np.nan
    return rows


def make_family(kind):
    return {"poisson": Poisson(K), "bernoulli": Bernoulli(K), "categorical": CategoryTables(K, 6, (5,) * D)}[kind]


def learned(rng, kind, gaps=0.0):
    """Return a family, rows, its prior for them, and totals under random responsibilities."""
    family, X = make_family(kind), make_rows(rng, kind, gaps)
    shares = rng.dirichlet(np.ones(K), size=len(X))
    prior = family.prior(None, Batch(X), shares)
    return family, X, shares, prior, family.collect(None, X, shares)


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("kind", ["poisson", "bernoulli", "categorical"])
def test_log_densities_are_those_of_scipy(rng, kind, gaps):
    family, X, _, prior, totals = learned(rng, kind, gaps)
    parameters = family.readout("mean", prior, totals)
    twin = {
        "poisson": lambda: naive.poisson(parameters.rates, X, np.ones(len(X))),
        "bernoulli": lambda: naive.bernoulli(np.exp(parameters.log_ones), X),
        "categorical": lambda: naive.categorical(np.exp(parameters.logs), X),
    }[kind]()
    np.testing.assert_allclose(family.log_densities(parameters, X), twin, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("gaps", GAPS)
def test_statistics_are_sums_over_what_is_there(rng, gaps):
    _, X, shares, _, totals = learned(rng, "poisson", gaps)
    np.testing.assert_allclose(totals.exposure, naive.sums(X, shares, lambda x: 1.0))
    np.testing.assert_allclose(totals.events, naive.sums(X, shares, float))
    _, X, shares, _, totals = learned(rng, "bernoulli", gaps)
    np.testing.assert_allclose(totals.seen, naive.sums(X, shares, lambda x: 1.0))
    np.testing.assert_allclose(totals.ones, naive.sums(X, shares, float))
    _, X, shares, _, totals = learned(rng, "categorical", gaps)
    for code in range(5):
        np.testing.assert_allclose(totals.table[:, :, code], naive.sums(X, shares, lambda x, code=code: float(x == code)))
    assert not totals.table[:, :, 5:].any()


@pytest.mark.parametrize("gaps", GAPS)
def test_exposure_multiplies_rates(rng, gaps):
    X, time = make_rows(rng, "poisson", gaps), rng.uniform(0.5, 4.0, size=60)
    family, rows = Poisson(K, exposure=2), np.insert(X, 2, time, axis=1)
    shares = rng.dirichlet(np.ones(K), size=60)
    prior = family.prior(None, Batch(rows), shares)
    totals = family.collect(None, rows, shares)
    parameters = family.readout("mean", prior, totals)
    np.testing.assert_allclose(family.log_densities(parameters, rows), naive.poisson(parameters.rates, X, time), rtol=1e-10)
    np.testing.assert_allclose(parameters.rates, (prior.shape + totals.events) / (prior.rate + totals.exposure))
    drawn = family.sample(parameters, np.zeros(20000, dtype=int), rng)
    assert (drawn[:, 2] == 1.0).all()
    np.testing.assert_allclose(np.delete(drawn, 2, axis=1).mean(axis=0), parameters.rates[0], rtol=0.05)


def test_predictive_counts_are_negative_binomial(rng):
    family, X, _, prior, totals = learned(rng, "poisson", 0.3)
    belief = family.readout("predictive", prior, totals)
    twin = naive.negative_binomial(belief.shape, belief.rate, X)
    np.testing.assert_allclose(family.log_densities(belief, X), twin, rtol=1e-9)


def test_expectations_under_the_belief(rng):
    """The log-densities of variational Bayes are expectations of log-densities, by quadrature."""
    family, _, _, prior, totals = learned(rng, "poisson")
    found, (shape, rate) = family.readout("expect_log", prior, totals), family.belief(prior, totals)
    one = stats.gamma(shape[0, 0], scale=1.0 / rate[0, 0])
    assert np.isclose(found.log_rates[0, 0], one.expect(np.log), rtol=1e-6)
    family, _, _, prior, totals = learned(rng, "bernoulli")
    found, (ones, zeros) = family.readout("expect_log", prior, totals), family.belief(prior, totals)
    belief = stats.beta(ones[1, 2], zeros[1, 2])
    assert np.isclose(found.log_zeros[1, 2], belief.expect(lambda p: np.log1p(-p)), rtol=1e-6)
    family, _, _, prior, totals = learned(rng, "categorical")
    found, cells = family.readout("expect_log", prior, totals), family.belief(prior, totals)
    belief = stats.beta(cells[2, 1, 0], cells[2, 1].sum() - cells[2, 1, 0])
    assert np.isclose(found.logs[2, 1, 0], belief.expect(np.log), rtol=1e-6)


def test_divergences_are_those_of_the_definition(rng):
    family, _, _, prior, totals = learned(rng, "poisson")
    shape, rate = family.belief(prior, totals)
    expected = sum(
        _divergence(stats.gamma(a, scale=1 / b), stats.gamma(c, scale=1 / d), np.inf)
        for a, b, c, d in zip(shape.flat, rate.flat, prior.shape.flat, prior.rate.flat, strict=True)
    )
    assert np.isclose(family.divergence(prior, totals), expected, rtol=1e-5)
    family, _, _, prior, totals = learned(rng, "bernoulli")
    ones, zeros = family.belief(prior, totals)
    expected = sum(
        _divergence(stats.beta(a, b), stats.beta(c, d), 1.0)
        for a, b, c, d in zip(ones.flat, zeros.flat, prior.ones.flat, prior.zeros.flat, strict=True)
    )
    assert np.isclose(family.divergence(prior, totals), expected, rtol=1e-5)
    # Two categories are a Beta variable.
    family = CategoryTables(1, 1, (1,))
    X = np.repeat([0.0, 1.0], [7, 2])[:, None]
    prior, shares = family.prior(None, Batch(X), None), np.ones((9, 1))
    totals = family.collect(None, X, shares)
    after, before = family.belief(prior, totals)[0, 0], prior.concentration[0, 0]
    assert np.isclose(family.divergence(prior, totals), _divergence(stats.beta(*after), stats.beta(*before), 1.0), rtol=1e-5)


def _divergence(one, other, end):
    def integrand(x):
        return one.pdf(x) * (one.logpdf(x) - other.logpdf(x))

    low, high = one.ppf(1e-12), min(one.ppf(1.0 - 1e-12), end)
    return integrate.quad(integrand, low, high, limit=200, epsabs=1e-10)[0]


@pytest.mark.parametrize("kind", ["poisson", "bernoulli", "categorical"])
def test_modes_are_maxima_of_likelihood_and_prior(rng, kind):
    """A small step away from the mode, in any column, lowers the posterior density."""
    family, X, shares, prior, totals = learned(rng, kind, 0.3)
    at = family.readout("mode", prior, totals)

    def objective(parameters):
        return float((shares * family.log_densities(parameters, X)).sum()) + family.log_prior(prior, parameters)

    best = objective(at)
    for size in (-1e-3, 1e-3):
        moved = _moved(kind, at, size)
        assert objective(moved) < best


def _moved(kind, at, size):
    if kind == "poisson":
        return type(at)(at.rates * np.exp(size), at.log_rates + size)
    if kind == "bernoulli":
        chance = np.clip(np.exp(at.log_ones) + size, 1e-9, 1.0 - 1e-9)
        return type(at)(np.log(chance), np.log1p(-chance))
    shares = np.exp(at.logs)
    shares[:, :, 0] *= 1.0 + 10.0 * size
    return type(at)(np.log(shares / shares.sum(axis=2, keepdims=True)))


def test_a_category_that_was_never_seen_has_the_mass_of_a_free_cell(rng):
    family, _, _, prior, totals = learned(rng, "categorical")
    parameters = family.readout("mean", prior, totals)
    rows = np.array([[5.0, 0.0, 0.0, 0.0], [6.0, 0.0, 0.0, 0.0]])  # the next category, and one without a cell
    found = family.log_densities(parameters, rows)
    assert np.isfinite(found).all() and (found < family.log_densities(parameters, np.zeros((1, D)))).all()
    np.testing.assert_allclose(np.exp(parameters.logs).sum(axis=2), 1.0)
