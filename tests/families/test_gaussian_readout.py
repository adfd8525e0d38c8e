"""Beliefs and readouts of K Gaussians against their naive twins, and the laws between them."""

from dataclasses import replace

import numpy as np
import pytest
from naive import gaussian as naive
from scipy import integrate, stats

from headwater.core.batch import Batch
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianPrior, GaussianStatistics
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixturePrior

K = 3
kinds = pytest.mark.parametrize("kind", naive.KINDS)
names = pytest.mark.parametrize("name", naive.READOUTS)
widths = pytest.mark.parametrize("d", [1, 2, 5])


def is_matrix(kind):
    return kind in ("full", "tied")


def random_prior(kind, d, rng, floor=0.0):
    root = rng.normal(size=(d, d))
    scale = root @ root.T + np.eye(d) if is_matrix(kind) else rng.uniform(0.5, 2.0, d)
    scale = np.full(d, scale[0]) if kind == "spherical" else scale
    return GaussianPrior(rng.normal(size=d), rng.normal(size=d), 0.7, d + 1.3, scale, floor)


def random_totals(kind, d, rng, n=40, components=K):
    """Return rows about the origin, responsibilities, the naive totals and the library's."""
    rows = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    resp = rng.dirichlet(np.full(components, 0.5), n)
    count, first, second = naive.totals(kind, rows, resp)
    lower = np.tril(second) if is_matrix(kind) else second
    return rows, resp, (count, first, second), GaussianStatistics(np.zeros(1), count, first, lower)


def assert_finite(parameters):
    for field, array in vars(parameters).items():
        assert np.isfinite(array).all(), field


def finite_or_refused(family, name, prior, held):
    """Return finite parameters, or None where maximum likelihood without a floor raises an error."""
    try:
        parameters = family.readout(name, prior, held)
    except ValueError as error:
        assert "ill-defined" in str(error)
        assert prior.mean_precision == prior.floor == 0.0
        return None
    assert_finite(parameters)
    return parameters


@kinds
@names
@widths
def test_readout_equals_its_twin(kind, name, d):
    rng = np.random.default_rng([d, 1])
    prior, family = random_prior(kind, d, rng, floor=0.03), Gaussian(K, kind)
    _, _, totals, held = random_totals(kind, d, rng)
    if is_matrix(kind):
        held.second[..., *np.triu_indices(d, 1)] = np.nan
    parameters = family.readout(name, prior, held)
    believed = naive.belief(kind, prior, *totals)
    points = rng.normal(0.0, 5.0, (50, d))
    found = naive.log_joint(kind, parameters, np.zeros(K), points + prior.origin)
    wanted = naive.log_densities(name, kind, believed, prior.floor, points)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(parameters.means, believed.means, rtol=1e-12, atol=1e-13)


@kinds
@pytest.mark.parametrize("name", ["mode", "mean"])
@widths
def test_covariances_and_precision_factors_have_the_shape_and_value_scikit_learn_gives(kind, name, d):
    rng = np.random.default_rng([d, 2])
    prior, family = random_prior(kind, d, rng), Gaussian(K, kind)
    _, _, totals, held = random_totals(kind, d, rng)
    parameters = family.readout(name, prior, held)
    dense = naive.covariances(name, kind, naive.belief(kind, prior, *totals), prior.floor)
    covariances = family.covariances(parameters)
    factors = family.precisions_cholesky(parameters)
    if is_matrix(kind):
        wanted = dense[0] if kind == "tied" else dense
        np.testing.assert_allclose(covariances, wanted, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(factors, np.triu(factors))
        precisions = np.linalg.inv(wanted)
        np.testing.assert_allclose(factors @ np.swapaxes(factors, -1, -2), precisions, rtol=1e-9, atol=1e-10)
    else:
        wanted = np.diagonal(dense, axis1=1, axis2=2)
        wanted = wanted[:, 0] if kind == "spherical" else wanted
        np.testing.assert_allclose(covariances, wanted, rtol=1e-12)
        np.testing.assert_allclose(factors, wanted**-0.5, rtol=1e-12)


@kinds
@widths
def test_belief_equals_its_twin(kind, d):
    rng = np.random.default_rng([d, 3])
    prior = random_prior(kind, d, rng)
    _, _, totals, held = random_totals(kind, d, rng)
    found, wanted = Gaussian(K, kind).belief(prior, held), naive.belief(kind, prior, *totals)
    np.testing.assert_allclose(found.means, wanted.means + prior.origin, rtol=1e-12)
    np.testing.assert_allclose(found.mean_precision, wanted.kappa, rtol=1e-14)
    np.testing.assert_allclose(found.dof, wanted.nu, rtol=1e-14)
    np.testing.assert_allclose(found.scale, wanted.scale[0] if kind == "tied" else wanted.scale, rtol=1e-10, atol=1e-11)


@names
def test_weights_readout_equals_its_twin(name):
    rng = np.random.default_rng(4)
    prior = MixturePrior(np.array([1.0, 2.5, 7.0]), random_prior("full", 2, rng))
    _, _, (count, _, _), held = random_totals("full", 2, rng)
    parameters = Mixture(K, Gaussian(K)).readout(name, prior, held.scaled(1 / 40), 40.0)
    np.testing.assert_allclose(parameters.log_weights, naive.log_weights(name, prior.concentration + count), rtol=1e-12)


@kinds
@widths
@pytest.mark.parametrize("reg", [0.0, 0.25])
def test_mode_of_the_flat_prior_is_maximum_likelihood(kind, d, reg):
    rng = np.random.default_rng([d, 5])
    origin, family = rng.normal(size=d), Gaussian(K, kind, reg_covar=reg)
    rows, resp, _, held = random_totals(kind, d, rng)
    parameters = family.readout("mode", family.flat_prior(origin), held)
    means = [np.average(rows, axis=0, weights=r) for r in resp.T]
    sample = [np.atleast_2d(np.cov(rows, rowvar=False, aweights=r, ddof=0)) for r in resp.T]
    np.testing.assert_allclose(parameters.means, means, rtol=1e-12)
    if kind == "tied":
        wanted = np.average(sample, axis=0, weights=resp.sum(axis=0)) + reg * np.eye(d)
    elif kind == "full":
        wanted = np.array(sample) + reg * np.eye(d)
    else:
        wanted = np.diagonal(sample, axis1=1, axis2=2) + reg
        wanted = wanted.mean(axis=1) if kind == "spherical" else wanted
    np.testing.assert_allclose(family.covariances(parameters), wanted, rtol=1e-10, atol=1e-12)


@kinds
@names
@pytest.mark.parametrize("ground", ["prior", "floor", "nothing"])
@pytest.mark.parametrize("rows", ["constant column", "all the same", "two rows", "far from the origin"])
def test_singular_scatter_stays_finite_or_is_refused(kind, name, ground, rows):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 3))
    X = {
        "constant column": X * [1.0, 0.0, 1.0] + [0.0, 7.0, 0.0],
        "all the same": np.full((30, 3), 3.3),
        "two rows": X[rng.integers(0, 2, 30)],
        "far from the origin": X * 1e-9 + 1e6,
    }[rows]
    family = Gaussian(K, kind, reg_covar=1e-6 if ground == "floor" else 0.0)
    prior = random_prior(kind, 3, rng) if ground == "prior" else family.flat_prior(np.zeros(3))
    held = GaussianStatistics(np.zeros(1), *naive.totals(kind, X, rng.dirichlet(np.ones(K), 30)))
    parameters = finite_or_refused(family, name, prior, held)
    if parameters is not None:
        scores = np.empty(30)
        family.estep(parameters, np.zeros(K), Batch(X), scores=scores)
        assert np.isfinite(scores).all()


@kinds
def test_maximum_likelihood_of_equal_rows_is_refused_without_a_floor(kind):
    held = replace(Gaussian(K, kind).zeros(2), count=np.full(K, 10.0))
    for reg in (0.0, 1e-6):
        family = Gaussian(K, kind, reg_covar=reg)
        parameters = finite_or_refused(family, "mode", family.flat_prior(np.zeros(2)), held)
        assert (parameters is None) == (reg == 0.0)


@kinds
@names
@pytest.mark.parametrize("mass", [0.0, 1e-310, 1e-30])
def test_component_without_rows_sits_at_the_prior(kind, name, mass):
    rng = np.random.default_rng(7)
    prior, family = random_prior(kind, 2, rng), Gaussian(K, kind)
    _, _, _, held = random_totals(kind, 2, rng, components=2)
    second = held.second if kind == "tied" else np.concatenate([held.second, mass * held.second[:1]])
    held = GaussianStatistics(np.zeros(1), np.append(held.count, mass), np.append(held.first, [[mass, mass]], 0), second)
    parameters = family.readout(name, prior, held)
    assert_finite(parameters)
    np.testing.assert_allclose(parameters.means[2], prior.mean, rtol=1e-12)


@kinds
@pytest.mark.parametrize("mass", [0.0, 1e-310, 1e-30])
@pytest.mark.parametrize("reg", [0.0, 1e-6])
def test_component_without_rows_stays_finite_or_is_refused_under_maximum_likelihood(kind, mass, reg):
    family = Gaussian(K, kind, reg_covar=reg)
    _, _, _, held = random_totals(kind, 2, np.random.default_rng(8), components=2)
    second = held.second if kind == "tied" else np.concatenate([held.second, mass * held.second[:1]])
    held = GaussianStatistics(np.zeros(1), np.append(held.count, mass), np.append(held.first, [[mass, mass]], 0), second)
    parameters = finite_or_refused(family, "mode", family.flat_prior(np.zeros(2)), held)
    assert reg == 0.0 or parameters is not None


@kinds
@widths
def test_variational_readout_of_a_point_mass_is_maximum_likelihood(kind, d):
    rng = np.random.default_rng([d, 9])
    family = Gaussian(K, kind, reg_covar=0.0)
    prior = random_prior(kind, d, rng)
    rows, _, _, held = random_totals(kind, d, rng)
    wanted = naive.log_joint(kind, family.readout("mode", family.flat_prior(prior.origin), held), np.zeros(K), rows)
    errors = []
    for count in (1e6, 1e9):
        parameters = family.readout("expect_log", prior, held.scaled(count))
        errors.append(np.abs(naive.log_joint(kind, parameters, np.zeros(K), rows) - wanted).max())
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] == pytest.approx(1e3, rel=0.1)


# The prior density of parameters, and the divergence of a belief from the prior


def random_precisions(kind, d, rng, components):
    """Return inverse Cholesky factors for `from_precisions`, and dense precisions."""
    k = 1 if kind == "tied" else components
    if is_matrix(kind):
        factor = np.tril(rng.normal(0.0, 0.4, (k, d, d)), -1) + np.eye(d) * rng.uniform(0.5, 1.5, (k, 1, d))
        dense = np.broadcast_to(np.swapaxes(factor, 1, 2) @ factor, (components, d, d))
        return factor[0] if kind == "tied" else factor, dense
    factor = rng.uniform(0.5, 1.5, (components, d) if kind == "diag" else components)
    squares = factor**2 if kind == "diag" else np.repeat(factor[:, None] ** 2, d, axis=1)
    return factor, np.array([np.diag(row) for row in squares])


def log_density_of_precisions(kind, dof, scale, precisions):
    """Log-densities (n,) of precisions (n, d, d) under the Wishart or the Gammas with this nu and V."""
    d = precisions.shape[1]
    if is_matrix(kind):
        return stats.wishart(dof, np.linalg.inv(scale)).logpdf(np.moveaxis(precisions, 0, -1))
    diagonal = np.diagonal(precisions, axis1=1, axis2=2)
    if kind == "diag":
        return stats.gamma(dof / 2, scale=2 / scale).logpdf(diagonal).sum(axis=1)
    return stats.gamma(dof * d / 2, scale=2 / (d * np.mean(scale))).logpdf(diagonal[:, 0])


def log_density(kind, believed, means, precisions):
    """Log-densities (n,) of means (n, K, d) and precisions (n, K, d, d); tied components share theirs."""
    total = 0.0
    for k, (kappa, centre) in enumerate(zip(believed.kappa, believed.means, strict=True)):
        roots = np.linalg.cholesky(kappa * precisions[:, k])
        whitened = np.einsum("nij,ni->nj", roots, means[:, k] - centre)
        total += stats.norm.logpdf(whitened).sum(axis=1) + np.linalg.slogdet(roots)[1]
        if k == 0 or kind != "tied":
            total += log_density_of_precisions(kind, believed.nu[k], believed.scale[k], precisions[:, k])
    return total


def prior_belief(prior, components):
    repeated = [np.array([part] * components) for part in (prior.mean_precision, prior.mean, prior.dof, prior.scale)]
    return naive.Belief(*repeated)


@kinds
@widths
def test_log_prior_differences_are_those_of_scipy(kind, d):
    rng = np.random.default_rng([d, 10])
    prior, family = random_prior(kind, d, rng), Gaussian(K, kind)
    means = rng.normal(size=(3, K, d))
    factors, precisions = zip(*(random_precisions(kind, d, rng, K) for _ in range(3)), strict=True)
    found = [
        family.log_prior(prior, family.from_precisions(prior.origin, mean + prior.origin, factor))
        for mean, factor in zip(means, factors, strict=True)
    ]
    wanted = log_density(kind, prior_belief(prior, K), means, np.array(precisions))
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=1e-10)


@kinds
@widths
def test_flat_prior_says_the_same_of_all_parameters(kind, d):
    rng = np.random.default_rng([d, 11])
    family = Gaussian(K, kind)
    prior = family.flat_prior(rng.normal(size=d))
    found = [
        family.log_prior(
            prior,
            family.from_precisions(prior.origin, rng.normal(size=(K, d)), random_precisions(kind, d, rng, K)[0]),
        )
        for _ in range(3)
    ]
    np.testing.assert_allclose(np.diff(found), 0.0, atol=1e-12)


@kinds
@widths
@pytest.mark.parametrize("flat", [False, True])
def test_mode_maximises_likelihood_plus_log_prior(kind, d, flat):
    rng = np.random.default_rng([d, 12])
    family = Gaussian(K, kind, reg_covar=0.0)
    prior = family.flat_prior(rng.normal(size=d)) if flat else random_prior(kind, d, rng)
    rows, resp, _, held = random_totals(kind, d, rng)
    best = family.readout("mode", prior, held)

    def objective(means, factor):
        parameters = family.from_precisions(prior.origin, means + prior.origin, factor)
        joint = naive.log_joint(kind, parameters, np.zeros(K), rows + prior.origin)
        return np.sum(resp * joint) + family.log_prior(prior, parameters)

    factor = best.factor[:, 0] if kind == "spherical" else best.factor
    top = objective(best.means, factor)
    for scale in (1e-3, 1e-2):
        noise = scale * rng.normal(size=(30, *factor.shape))
        noise = np.tril(noise) if is_matrix(kind) else noise
        for change in noise:
            assert objective(best.means, factor * (1.0 + change)) < top
            assert objective(best.means + scale * rng.normal(size=(K, d)), factor) < top


@kinds
def test_divergence_in_one_dimension_equals_the_integral(kind):
    prior = replace(random_prior(kind, 1, np.random.default_rng(13)), mean_precision=0.8, dof=2.5)
    _, _, totals, held = random_totals(kind, 1, np.random.default_rng(14), n=9, components=1)
    believed = naive.belief(kind, prior, *totals)
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)  # exact for the quadratic in the mean
    shape, rate = believed.nu[0] / 2, float(np.squeeze(believed.scale)) / 2
    shape0, rate0 = prior.dof / 2, float(np.squeeze(prior.scale)) / 2

    def integrand(precision):
        means = believed.means[0, 0] + nodes / np.sqrt(believed.kappa[0] * precision)
        after = stats.gamma.logpdf(precision, shape, scale=1 / rate)  # frozen distributions of SciPy take long to make
        before = stats.gamma.logpdf(precision, shape0, scale=1 / rate0)
        ratio = stats.norm.logpdf(means, believed.means[0, 0], (believed.kappa[0] * precision) ** -0.5)
        ratio = ratio - stats.norm.logpdf(means, prior.mean[0], (prior.mean_precision * precision) ** -0.5)
        return np.exp(after) * (after - before + weights @ ratio / weights.sum())

    wanted, error = integrate.quad(integrand, 0.0, np.inf, epsabs=1e-10, epsrel=1e-10)
    assert error < 1e-7
    assert Gaussian(1, kind).divergence(prior, held) == pytest.approx(wanted, rel=1e-7)


@kinds
def test_divergence_equals_its_monte_carlo_estimate(kind):
    rng = np.random.default_rng(15)
    d, components, draws = 3, 2, 5000
    prior = random_prior(kind, d, rng)
    _, _, totals, held = random_totals(kind, d, rng, n=12, components=components)
    believed = naive.belief(kind, prior, *totals)
    means, precisions = np.empty((draws, components, d)), np.zeros((draws, components, d, d))
    for k, (nu, v) in enumerate(zip(believed.nu, believed.scale, strict=True)):
        if kind == "tied" and k:
            precisions[:, k] = precisions[:, 0]
        elif is_matrix(kind):
            precisions[:, k] = stats.wishart(nu, np.linalg.inv(v)).rvs(draws, random_state=rng)
        elif kind == "diag":
            precisions[:, k, range(d), range(d)] = rng.gamma(nu / 2, 2 / v, (draws, d))
        else:
            precisions[:, k, range(d), range(d)] = rng.gamma(nu * d / 2, 2 / (d * v), (draws, 1))
        roots = np.linalg.cholesky(np.linalg.inv(believed.kappa[k] * precisions[:, k]))
        means[:, k] = believed.means[k] + np.einsum("nij,nj->ni", roots, rng.normal(size=(draws, d)))
    ratios = log_density(kind, believed, means, precisions)
    ratios -= log_density(kind, prior_belief(prior, components), means, precisions)
    standard_error = ratios.std() / np.sqrt(draws)
    found = Gaussian(components, kind).divergence(prior, held)
    assert standard_error < 0.01 * found
    assert abs(found - ratios.mean()) < 4.0 * standard_error


@kinds
def test_divergence_of_the_prior_from_itself_is_zero(kind):
    family = Gaussian(K, kind)
    assert family.divergence(random_prior(kind, 3, np.random.default_rng(16)), family.zeros(3)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["tied", "diag", "spherical"])
@pytest.mark.parametrize("name", ["mode", "expect_log"])
def test_climb_inside_a_kernel_is_the_loop(kind, name):
    from headwater.core.batch import Batch
    from headwater.core.climb import climb
    from headwater.core.contracts import StartSettings
    from headwater.models.mixture import Mixture

    rng = np.random.default_rng(5)
    batch = Batch(rng.normal(size=(200, 3)) + 3.0 * rng.integers(3, size=(200, 1)), rng.uniform(0.5, 2.0, 200))
    model = Mixture(3, Gaussian(3, kind))
    start = model.start(batch, 0, StartSettings(polish=False))
    fast = model.climb(name, start.prior, start.summary, batch, 12, 1e-4, -np.inf)
    # With a history the loop takes the slow path.
    slow = climb(
        model, name, start.prior, start.parameters, start.summary, batch, 12, 1e-4, None, -np.inf, False, lambda *_: None
    )
    np.testing.assert_allclose(fast[2], slow.trace, rtol=1e-10)
    assert fast[3] == slow.converged
    np.testing.assert_allclose(fast[1].log_weights, slow.parameters.log_weights, rtol=1e-8)
    np.testing.assert_allclose(fast[1].components.factor, slow.parameters.components.factor, rtol=1e-8, atol=1e-10)
    for mine, theirs in zip(fast[0].statistics.to_arrays().values(), slow.summary.statistics.to_arrays().values(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)
