"""Positive columns, and those with many zeros: densities against scipy, sums against loops, beliefs against quadrature."""

import numpy as np
import pytest
from naive import columns as naive
from scipy import integrate, optimize, stats
from scipy.special import digamma, gammaln

import headwater as hw
from headwater.core.batch import Batch
from headwater.families.gamma_columns import GammaColumns, solve_shape
from headwater.families.log_normal import LogNormal
from headwater.families.positive_entries import GammaEntries, LogNormalEntries, ZeroInflatedEntries
from headwater.families.wide_law import WideLaw, log_positive, sample_positive
from headwater.families.zero_inflated import ZeroInflated
from headwater.families.zero_inflated_entries import ZeroInflatedPoissonEntries
from headwater.families.zero_inflated_poisson import ZeroInflatedPoisson

K, D = 2, 3
GAPS = (0.0, 0.3)
FAMILIES = {
    "lognormal": LogNormal(K),
    "gamma": GammaColumns(K),
    "zero-lognormal": ZeroInflated.of(LogNormal(K), D),
    "zero-gamma": ZeroInflated.of(GammaColumns(K), D),
    "zero-poisson": ZeroInflatedPoisson(K),
}


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def make_rows(rng, kind, gaps, n=80):
    rows = rng.poisson(4.0, size=(n, D)).astype(float) if kind == "zero-poisson" else rng.gamma(2.0, 3.0, size=(n, D))
    if kind.startswith("zero"):
        rows[rng.random(rows.shape) < 0.4] = 0.0
    rows[rng.random(rows.shape) < gaps] = np.nan
    return rows


def learned(rng, kind, gaps=0.0):
    """A family, rows, responsibilities, its prior on them, and totals."""
    family, X = FAMILIES[kind], make_rows(rng, kind, gaps)
    shares = rng.dirichlet(np.ones(K), size=len(X))
    prior = family.prior(family.geometry(Batch(X)), Batch(X), shares)
    start = family.readout("mean", prior, family.zeros(D))
    return family, X, shares, prior, family.collect(start, X, shares)


def twin(kind, parameters, X):
    """Log-densities by scipy."""
    if kind == "zero-poisson":
        return naive.zero_inflated_poisson(np.exp(parameters.log_zeros), parameters.rates, X)
    if kind.startswith("zero"):
        flags, own = parameters.blocks

        def positive(value, k, column):
            if kind == "zero-gamma":
                return stats.gamma.logpdf(value, own.shapes[k, column], scale=1.0 / own.rates[k, column])
            return stats.lognorm.logpdf(value, own.precisions[k, column] ** -0.5, scale=np.exp(own.means[k, column]))

        return naive.zero_inflated(np.exp(flags.log_ones), positive, X)
    if kind == "gamma":
        return naive.gamma(parameters.shapes, parameters.rates, X)
    return naive.log_normal(parameters.means, parameters.precisions**-0.5, X)


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("kind", FAMILIES)
def test_log_densities_are_those_of_scipy(rng, kind, gaps):
    family, X, _, prior, totals = learned(rng, kind, gaps)
    for name in ("mean", "mode"):
        parameters = family.readout(name, prior, totals)
        np.testing.assert_allclose(family.log_densities(parameters, X), twin(kind, parameters, X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("gaps", GAPS)
def test_statistics_are_sums_over_what_is_there(rng, gaps):
    _, X, shares, _, totals = learned(rng, "lognormal", gaps)
    for found, value in ((totals.seen, lambda x: 1.0), (totals.logs, np.log), (totals.squares, lambda x: np.log(x) ** 2)):
        np.testing.assert_allclose(found, naive.sums(X, shares, value))
    _, X, shares, _, totals = learned(rng, "gamma", gaps)
    for found, value in ((totals.seen, lambda x: 1.0), (totals.sums, float), (totals.logs, np.log)):
        np.testing.assert_allclose(found, naive.sums(X, shares, value))
    _, X, shares, _, totals = learned(rng, "zero-gamma", gaps)
    flags, own = totals.blocks
    np.testing.assert_allclose(flags.seen, naive.sums(X, shares, lambda x: 1.0))
    np.testing.assert_allclose(flags.ones, naive.sums(X, shares, lambda x: float(x == 0.0)))
    np.testing.assert_allclose(own.sums, naive.sums(X, shares, float))
    family, X, shares, prior, totals = learned(rng, "zero-poisson", gaps)
    start = family.readout("mean", prior, family.zeros(D))
    zeros, rates = np.exp(start.log_zeros), start.rates
    active = np.zeros((K, D))
    for row, x in enumerate(X):
        for column, value in enumerate(x):
            if not np.isnan(value):
                poisson = (1.0 - zeros[:, column]) * np.exp(-rates[:, column])
                chance = 1.0 if value > 0.0 else poisson / (poisson + zeros[:, column])
                active[:, column] += shares[row] * chance
    np.testing.assert_allclose(totals.active, active)
    np.testing.assert_allclose(totals.events, naive.sums(X, shares, float))


def test_predictive_densities_integrate_parameters_out(rng):
    """By quadrature over the belief, of one row."""
    x = 2.5
    family, _, _, prior, totals = learned(rng, "lognormal")
    belief = family.belief(prior, totals)
    rows, mean, spread = (float(part[0, 1]) for part in (belief.rows, belief.mean, belief.spread))
    tau = stats.gamma(0.5 * rows, scale=2.0 / spread)  # the mean of the logarithms is integrated out by hand

    def density(t):
        return tau.pdf(t) * stats.norm.pdf(np.log(x), mean, np.sqrt((1.0 + 1.0 / rows) / t)) / x

    found = family.log_densities(family.readout("predictive", prior, totals), np.full((1, D), x))
    alone = family.log_densities(family.readout("predictive", prior, totals), np.array([[np.nan, x, np.nan]]))[0, 0]
    assert np.isclose(alone, np.log(integrate.quad(density, tau.ppf(1e-13), tau.ppf(1.0 - 1e-13), limit=200)[0]), rtol=1e-6)
    assert np.isfinite(found).all()
    family, _, _, prior, totals = learned(rng, "gamma")
    rows, sums, logs = family.belief(prior, totals)
    shape = solve_shape(rows, sums, logs, integrated=True)[0, 1]
    rate = stats.gamma(shape * rows[0, 1], scale=1.0 / sums[0, 1])
    mixed = rate.expect(lambda b: stats.gamma.pdf(x, shape, scale=1.0 / b))
    alone = family.log_densities(family.readout("predictive", prior, totals), np.array([[np.nan, x, np.nan]]))[0, 0]
    assert np.isclose(alone, np.log(mixed), rtol=1e-6)
    family, _, _, prior, totals = learned(rng, "zero-poisson")
    zeros, others, shape, rate = (part[1, 2] for part in family.belief(prior, totals))
    counts = np.array([0.0, 3.0])
    chance = others / (zeros + others) * stats.nbinom.pmf(counts, shape, rate / (rate + 1.0)) + zeros / (zeros + others) * (
        counts == 0.0
    )
    rows = np.column_stack([np.full((2, 2), np.nan), counts])
    found = family.log_densities(family.readout("predictive", prior, totals), rows)[:, 1]
    np.testing.assert_allclose(found, np.log(chance), rtol=1e-9)


@pytest.mark.parametrize("name", ["expect_log", "predictive"])
@pytest.mark.parametrize("kind", FAMILIES)
def test_rows_are_drawn_from_the_density(rng, kind, name):
    """The mean score of drawn rows is what the same law says by a histogram-free identity: E[p(x')/p(x)] is one."""
    if name == "expect_log":
        name = "mean"
    family, _, _, prior, totals = learned(rng, kind)
    parameters = family.readout(name, prior, totals)
    rows = family.sample(parameters, np.zeros(4000, dtype=np.int64), rng)
    other = family.select_parameters(parameters, [1, 0])
    ratio = family.log_densities(other, rows)[:, 0] - family.log_densities(parameters, rows)[:, 0]
    likelihoods = np.exp(ratio)
    assert abs(likelihoods.mean() - 1.0) < 5.0 * likelihoods.std() / 4000**0.5


def test_expectations_under_the_belief(rng):
    family, _, _, prior, totals = learned(rng, "lognormal")
    belief, found = family.belief(prior, totals), family.readout("expect_log", prior, totals)
    rows, mean, spread = (float(part[1, 0]) for part in (belief.rows, belief.mean, belief.spread))
    tau = stats.gamma(0.5 * rows, scale=2.0 / spread)
    y = 0.7

    def expected(t):  # over the mean, whose variance is 1 / (rows t)
        return 0.5 * np.log(t / (2.0 * np.pi)) - 0.5 * t * ((y - mean) ** 2 + 1.0 / (rows * t)) - y

    alone = family.log_densities(found, np.array([[np.exp(y), np.nan, np.nan]]))[0, 1]
    assert np.isclose(alone, tau.expect(expected), rtol=1e-6)
    family, _, _, prior, totals = learned(rng, "gamma")
    rows, sums, _ = (part[1, 0] for part in family.belief(prior, totals))
    found = family.readout("expect_log", prior, totals)
    shape = found.shapes[1, 0]
    rate = stats.gamma(shape * rows, scale=1.0 / sums)
    alone = family.log_densities(found, np.array([[1.3, np.nan, np.nan]]))[0, 1]
    assert np.isclose(alone, rate.expect(lambda b: stats.gamma.logpdf(1.3, shape, scale=1.0 / b)), rtol=1e-6)


def test_divergences_are_those_of_the_definition(rng):
    family, _, _, prior, totals = learned(rng, "lognormal")
    belief, expected = family.belief(prior, totals), 0.0
    for rows, mean, spread, w, m, v in zip(
        *(part.ravel() for part in (belief.rows, belief.mean, belief.spread, prior.rows, prior.mean, prior.variance)),
        strict=True,
    ):
        one, other = stats.gamma(0.5 * rows, scale=2.0 / spread), stats.gamma(0.5 * w, scale=2.0 / (w * v))
        expected += integrate.quad(
            lambda t, one=one, other=other: one.pdf(t) * (one.logpdf(t) - other.logpdf(t)),
            one.ppf(1e-12), one.ppf(1.0 - 1e-12), limit=200,
        )[0]  # fmt: skip
        away = w * (rows / spread) * (mean - m) ** 2  # the normal laws of the mean, given the precision, on average
        expected += 0.5 * (w / rows - 1.0 - np.log(w / rows) + away)
    assert np.isclose(family.divergence(prior, totals), expected, rtol=1e-5)


def test_the_shape_is_where_its_equation_says(rng):
    """The mode maximises the likelihood of the sums, and with the rate integrated out the logarithm of that integral."""
    for n, mean, gap in ((3.0, 2.0, 0.8), (50.0, 7.0, 0.05), (1e6, 0.1, 3.0), (2.0, 1.0, 1e-4)):
        sums, logs = n * mean, n * (np.log(mean) - gap)

        def loss(log_shape, integrated, n=n, sums=sums, logs=logs):
            a = np.exp(log_shape)
            if integrated:
                return -(a * logs - n * gammaln(a) + gammaln(a * n) - a * n * np.log(sums)) / n
            return -(n * a * np.log(a * n / sums) - n * gammaln(a) + a * logs - a * n) / n

        for integrated in (False, True):
            best = optimize.minimize_scalar(loss, bounds=(-7.0, 19.0), args=(integrated,), method="bounded").x
            found = solve_shape(*(np.array([[part]]) for part in (n, sums, logs)), integrated)[0, 0]
            assert loss(np.log(found), integrated) <= loss(best, integrated) + 1e-9
    assert digamma(solve_shape(np.ones((1, 1)), np.ones((1, 1)), np.full((1, 1), -1e9), False)) < 0.0  # no overflow


@pytest.mark.parametrize("kind", ["lognormal", "gamma", "zero-lognormal"])
def test_modes_are_maxima_of_likelihood_and_prior(rng, kind):
    family, X, shares, prior, totals = learned(rng, kind, 0.3)
    at = family.readout("mode", prior, totals)

    def objective(totals):
        moved = family.readout("mode", prior, totals)
        return float((shares * family.log_densities(moved, X)).sum()) + family.log_prior(prior, moved)

    best = objective(totals)
    assert np.isclose(best, float((shares * family.log_densities(at, X)).sum()) + family.log_prior(prior, at))
    for factor in (0.97, 1.03):  # totals of other rows lead to parameters beside these
        assert objective(family.collect(at, X * factor, shares)) < best
        assert objective(family.collect(at, X**factor, shares)) < best


LAWS = {
    "lognormal": (
        LogNormalEntries(np.array([[0.5, 2.0]]), np.array([[0.8, 0.3]])),
        [stats.lognorm(0.8, scale=np.exp(0.5)), stats.lognorm(0.3, scale=np.exp(2.0))],
    ),
    "gamma": (
        GammaEntries(np.array([[0.7, 5.0]]), np.array([[0.5, 2.0]])),
        [stats.gamma(0.7, scale=2.0), stats.gamma(5.0, scale=0.5)],
    ),
}


@pytest.mark.parametrize("kind", LAWS)
def test_entries_are_those_of_scipy(kind):
    law, twins = LAWS[kind]
    for value in (0.01, 0.9, 3.0, 40.0):
        x = np.array([value])
        np.testing.assert_allclose(law.log_density(x)[0], [one.logpdf(value) for one in twins], rtol=1e-10)
        np.testing.assert_allclose(law.below(x)[0], [one.cdf(value) for one in twins], rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(law.above(x)[0], [one.sf(value) for one in twins], rtol=1e-9, atol=1e-300)
    for chance in (0.02, 0.5, 0.97):
        np.testing.assert_allclose(law.quantile(np.asarray(chance))[0], [one.ppf(chance) for one in twins], rtol=1e-9)
    np.testing.assert_allclose(law.mean[0], [one.mean() for one in twins])
    np.testing.assert_allclose(law.variance[0], [one.var() for one in twins])
    shares = np.array([[0.3, 0.7]])
    value = law.ascend(np.array([1.0]), shares)
    height = (shares * law.log_density(value)).sum()
    for factor in (0.99, 1.01):
        assert height > (shares * law.log_density(value * factor)).sum()
    far = law.log_beyond(np.array([1e4]))[1][0]  # a tail that no double holds
    assert np.isfinite(far).all() and (far < law.log_beyond(np.array([9e3]))[1][0]).all()


def test_entries_that_may_be_zero():
    zeros = np.array([[0.6, 0.1]])
    law = ZeroInflatedEntries(np.log(zeros), np.log1p(-zeros), LAWS["gamma"][0])
    weights, value = np.array([[0.5, 0.5]]), np.array([2.0])
    others = 0.5 * (1.0 - zeros[0])

    def below(x):
        return 0.35 + sum(share * one.cdf(x) for share, one in zip(others, LAWS["gamma"][1], strict=True))

    assert law.mixture_quantile(weights, 0.3)[0] == 0.0
    found = law.mixture_quantile(weights, 0.8)[0]
    assert np.isclose(below(found), 0.8)
    mean, variance = law.mixture_moments(weights)
    parts = [(share, one.mean(), one.var()) for share, one in zip(others, LAWS["gamma"][1], strict=True)]
    assert np.isclose(mean[0], sum(share * m for share, m, _ in parts))
    assert np.isclose(variance[0], sum(share * (v + m * m) for share, m, v in parts) - mean[0] ** 2)
    assert np.isclose(law.mixture_log_tail(weights, np.zeros(1))[0], np.log(0.35))
    tail = np.exp(law.mixture_log_tail(weights, value)[0])
    assert np.isclose(tail, 2.0 * min(below(2.0) - 0.35, 1.0 - below(2.0)))
    assert law.draw(np.array([0]), np.array([0.59]))[0] == 0.0 < law.draw(np.array([0]), np.array([0.61]))[0]
    many = law.select(np.zeros(300, dtype=np.int64)).mixture_quantile(np.full((300, 2), 0.5), 0.8)
    assert np.isclose(many, found).all()


def test_counts_that_may_be_zero_for_good():
    zeros, rates = np.array([[0.5, 0.1]]), np.array([[2.0, 6.0]])
    law = ZeroInflatedPoissonEntries(np.log(zeros), np.log1p(-zeros), rates)
    counts = np.arange(60.0)
    for k in range(2):
        chance = (1.0 - zeros[0, k]) * stats.poisson.pmf(counts, rates[0, k]) + zeros[0, k] * (counts == 0.0)
        assert np.isclose(law.mean[0, k], chance @ counts) and np.isclose(law.peak[0, k], chance.argmax())
        assert np.isclose(law.variance[0, k], chance @ counts**2 - (chance @ counts) ** 2)
        for value in (0.0, 1.0, 5.0):
            x, at = np.array([value]), counts <= value
            assert np.isclose(law.below(x)[0, k], chance[at].sum())
            assert np.isclose(law.above(x)[0, k], chance[counts >= value].sum())
            assert np.isclose(np.exp(law.log_density(x)[0, k]), chance[int(value)])
            assert np.allclose(np.exp([one[0, k] for one in law.log_beyond(x)]), [law.below(x)[0, k], law.above(x)[0, k]])
        assert law.quantile(np.asarray(0.9))[0, k] == np.flatnonzero(np.cumsum(chance) >= 0.9)[0]
    shares = np.array([[0.8, 0.2]])
    heights = [(shares * law.log_density(np.array([value]))).sum() for value in counts]
    assert law.ascend(np.array([1.0]), shares)[0] == np.argmax(heights)


def test_rows_of_the_background_are_drawn_from_its_density(rng):
    law = WideLaw(np.array([3.0]), np.array([2.0]))
    drawn = sample_positive(law, 4000, rng)
    density = [np.exp(log_positive(law, np.array([[x]]))[0]) for x in (0.5, 20.0)]
    total = integrate.quad(lambda x: np.exp(log_positive(law, np.array([[x]]))[0]), 0.0, np.inf)[0]
    assert np.isclose(total, 1.0) and density[0] > density[1]
    below = integrate.quad(lambda x: np.exp(log_positive(law, np.array([[x]]))[0]), 0.0, 10.0)[0]
    assert abs(np.mean(drawn < 10.0) - below) < 0.03


def test_counts_beyond_all_whole_numbers_of_the_generator_are_drawn():
    rng = np.random.default_rng(0)
    counts = np.where(rng.random(300) < 0.3, 0.0, np.rint(1e20 * (1.0 + rng.random(300))))
    rows = np.column_stack([rng.normal(size=300), counts])
    model = hw.MixedMixture(2, columns={0: "gaussian", 1: "zero-inflated-poisson"}, random_state=0).fit(rows)
    drawn = np.asarray(model.sample(200)[0])[:, 1]
    assert 0.1 < np.mean(drawn == 0.0) < 0.6
    assert 5e19 < drawn.max() < 4e20
