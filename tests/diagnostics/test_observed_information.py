"""Observed information against finite differences of log-densities, and what intervals make of it."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

import headwater as hw
from headwater.diagnostics.observed_information import InformedRows, widening
from headwater.families.count_scores import bernoulli_scores, multinomial_scores, poisson_scores
from headwater.families.gaussian_scores import gaussian_scores, n_scored
from tests.naive import observed_information as naive

KINDS = ("full", "tied", "diag", "spherical")
RNG = np.random.default_rng(0)
WEIGHTS = np.array([0.3, 0.7])
MEANS = np.array([[0.0, 1.0, 5.0], [1.5, 0.0, 7.0]])
MATRICES = np.array(
    [[[2.0, 0.6, 0.0], [0.6, 1.0, -0.4], [0.0, -0.4, 9.0]], [[1.0, -0.3, 0.2], [-0.3, 1.5, 0.1], [0.2, 0.1, 4.0]]]
)


def covariances_of(kind):
    """Covariances in scikit-learn's shape, and the same as matrices."""
    if kind == "full":
        return MATRICES, MATRICES
    if kind == "tied":
        return MATRICES[0], np.stack([MATRICES[0]] * 2)
    variances = np.diagonal(MATRICES, axis1=1, axis2=2) if kind == "diag" else np.repeat([[2.0], [0.5]], 3, axis=1)
    return variances if kind == "diag" else variances[:, 0], np.array([np.diag(one) for one in variances])


@pytest.mark.parametrize(("kind", "correlations"), [*((kind, True) for kind in KINDS), ("full", False), ("tied", False)])
def test_gradients_are_those_of_finite_differences(kind, correlations):
    X, (covariances, matrices) = RNG.normal(size=(7, 3)) * 2.0, covariances_of(kind)
    scores = gaussian_scores(kind, MEANS, covariances, 0.5, 6.0, X, correlations)
    for one in range(2):
        gradients, prior = scores.component(one)
        assert gradients.shape[1] == n_scored(kind, 3, correlations) == len(prior)

        def log_density(theta, one=one):
            return naive.normal(X, *naive.gaussian_of(kind, MEANS[one], matrices[one], theta, correlations))

        np.testing.assert_allclose(gradients, naive.differences(log_density, np.zeros(len(prior))), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("kind", "correlations"), [*((kind, True) for kind in KINDS), ("full", False), ("tied", False)])
def test_priors_inform_as_much_as_rows_of_the_component(kind, correlations):
    """A prior of so many rows for the mean and for the covariance knows as much of these as so many drawn rows."""
    covariances, matrices = covariances_of(kind)
    X = np.random.default_rng(1).multivariate_normal(MEANS[0], matrices[0], size=200_000)
    gradients, prior = gaussian_scores(kind, MEANS, covariances, 1.0, 1.0, X, correlations).component(0)
    if kind == "tied":  # components share the information about what they share
        prior[3:, 3:] *= 2.0
    np.testing.assert_allclose(prior, gradients.T @ gradients / len(X), atol=0.03 * np.abs(prior).max())


def test_widening_is_that_of_the_observed_information():
    components = [*zip(MEANS[:, :2], MATRICES[:, :2, :2], strict=True)]
    rng = np.random.default_rng(2)
    labels = rng.choice(2, p=WEIGHTS, size=400)
    X = np.stack([rng.multivariate_normal(*components[at]) for at in labels])
    logs = np.log(WEIGHTS) + np.stack([naive.normal(X, *one) for one in components], axis=1)
    shares = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    scores = gaussian_scores("full", MEANS[:, :2], MATRICES[:, :2, :2], 0.0, 0.0, X)
    found = widening(InformedRows(np.ones(400), shares, 400.0), WEIGHTS, 0.0, scores)

    observed = np.linalg.pinv(naive.observed_information(X, WEIGHTS, components), rcond=1e-9)
    spread = np.diag(WEIGHTS) - np.outer(WEIGHTS, WEIGHTS)
    complete = WEIGHTS * (1.0 - WEIGHTS) / 400.0
    np.testing.assert_allclose(found.weights**2, np.diag(spread @ observed[:2, :2] @ spread) / complete, rtol=1e-4)
    for one in range(2):
        own, _ = scores.component(one)
        known = np.linalg.inv((shares[:, [one]] * own).T @ own)
        at = [0, 1, 2, 4]  # two means; the variances among the covariances
        expected = np.diag(observed)[2 + 5 * one + np.array(at)] / np.diag(known)[at]
        np.testing.assert_allclose(found.values[one] ** 2, expected, rtol=1e-4)
    assert found.weights.min() > 1.2 and found.values.max() > 1.2


def overlapping(n, seed=0, apart=2.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + np.outer(labels, [apart, 0.0])


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_under_overlap_are_wider_and_far_apart_they_are_not(kind):
    for apart, low, high in ((2.0, 1.2, 20.0), (30.0, 1.0, 1.01)):
        model = hw.GaussianMixture(2, covariance_type=kind, random_state=0).partial_fit(overlapping(3000, apart=apart))
        plain, wide = model.credible_intervals(method="mean-field"), model.credible_intervals()
        for name in ("weights", "means", "variances"):
            one, two = getattr(plain, name), getattr(wide, name)
            assert np.all(two[..., 0] <= one[..., 0]) and np.all(two[..., 1] >= one[..., 1]), name
        ratio = np.ptp(wide.weights, axis=1) / np.ptp(plain.weights, axis=1)
        assert np.all((low <= ratio) & (ratio <= high))


def test_rows_that_are_given_are_those_of_the_information():
    X = overlapping(3000)
    model = hw.GaussianMixture(2, algorithm="vb", random_state=0).fit(X)
    drawn, given = model.credible_intervals(), model.credible_intervals(X=X)
    np.testing.assert_allclose(np.ptp(drawn.means, axis=-1), np.ptp(given.means, axis=-1), rtol=0.15)
    assert not np.array_equal(drawn.means, given.means)
    known = hw.GaussianMixture(2, random_state=0).partial_fit(X, labels=(X[:, 0] > 1.0).astype(int))
    plain, informed = known.credible_intervals(method="mean-field"), known.credible_intervals()
    np.testing.assert_allclose(informed.means, plain.means, rtol=1e-6)  # of rows with labels nothing is missing


def test_intervals_are_computed_anew_after_a_merge():
    start = hw.GaussianMixture(2, random_state=0).partial_fit(overlapping(500))
    one, two = (start.branch().partial_fit(overlapping(3000, seed)) for seed in (1, 2))
    whole = hw.merge([one, two])
    ratio = np.ptp(one.credible_intervals().means, axis=-1) / np.ptp(whole.credible_intervals().means, axis=-1)
    np.testing.assert_allclose(ratio, np.sqrt(6500 / 3500), rtol=0.25)


def test_many_parameters_are_taken_in_parts():
    rng = np.random.default_rng(0)
    for columns, components, kind in ((40, 2, "full"), (20, 30, "diag")):
        centres = rng.normal(size=(components, columns)) * 5.0
        X = centres[rng.integers(components, size=2000)] + rng.normal(size=(2000, columns))
        model = hw.GaussianMixture(components, covariance_type=kind, random_state=0, algorithm="online-vb").partial_fit(X)
        found = model.credible_intervals()
        assert np.isfinite(found.means).all() and np.all(np.ptp(found.variances, axis=-1) > 0.0)


def test_what_makes_no_sense_is_refused():
    model = hw.GaussianMixture(2, random_state=0).partial_fit(overlapping(300))
    with pytest.raises(ValueError, match="method must be 'observed-information' or 'mean-field', got 'louis'"):
        model.credible_intervals(method="louis")
    with pytest.raises(ValueError, match="X goes with method='observed-information'"):
        model.credible_intervals(method="mean-field", X=overlapping(10))
    with pytest.raises(ValueError, match="X must hold rows without missing values"):
        model.credible_intervals(X=np.array([[np.nan, 1.0], [0.0, 1.0]]))


COUNTED = {
    "poisson": (
        lambda theta, X: stats.poisson(np.exp(theta) * X[:, :1]).logpmf(X[:, 1:]).sum(axis=1),
        lambda values, X: poisson_scores(values, np.ones((2, 3)), X[:, 1:], X[:, 0]), np.log,
    ),
    "bernoulli": (
        lambda theta, X: stats.bernoulli(expit(theta)).logpmf(X[:, 1:] > 1).sum(axis=1),
        lambda values, X: bernoulli_scores(values, np.ones((2, 3)), (X[:, 1:] > 1).astype(float)), logit,
    ),
    "multinomial": (
        lambda theta, X: X[:, 1:] @ naive.shared_softmax(theta),
        lambda values, X: multinomial_scores(values, np.ones(2), X[:, 1:]), np.log,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_gradients_of_counts_are_those_of_finite_differences(name):
    log_density, scores, there = COUNTED[name]
    X, values = np.random.default_rng(3).integers(1, 4, size=(9, 4)).astype(float), np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    found = scores(values, X)
    for one in range(2):
        gradients, prior = found.component(one)
        wanted = naive.differences(lambda theta, X=X: log_density(theta, X), there(values[one]))
        np.testing.assert_allclose(gradients, wanted, rtol=1e-6, atol=1e-7)
        assert np.linalg.eigvalsh(prior).min() > 0.0


def counted_rows(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=n)
    if kind is hw.PoissonMixture:
        return rng.poisson(np.array([[2.0, 3.0], [4.0, 3.5]])[label])
    chances = np.array([[0.2, 0.3, 0.5, 0.6], [0.6, 0.7, 0.3, 0.2]])
    if kind is hw.BernoulliMixture:
        return (rng.random((n, 4)) < chances[label]).astype(float)
    return rng.multinomial(5, chances[label] / chances[label].sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", [hw.PoissonMixture, hw.BernoulliMixture, hw.MultinomialMixture])
def test_intervals_of_counts_are_widened_as_well(kind, tmp_path):
    model = kind(2, random_state=0).partial_fit(counted_rows(kind, 3000))
    plain, wide = model.credible_intervals(method="mean-field"), model.credible_intervals()
    for one, two in ((plain.weights, wide.weights), (plain.values, wide.values)):
        assert np.all(two[..., 0] <= one[..., 0]) and np.all(two[..., 1] >= one[..., 1])
    assert np.ptp(wide.weights, axis=1).min() > 1.3 * np.ptp(plain.weights, axis=1).max()
    given = model.credible_intervals(X=counted_rows(kind, 3000))
    np.testing.assert_allclose(np.ptp(given.values, axis=-1), np.ptp(wide.values, axis=-1), rtol=0.1)
    model.save(tmp_path / "model.hw")
    np.testing.assert_array_equal(hw.load(tmp_path / "model.hw").credible_intervals().values, wide.values)
    alone = kind(1, random_state=0).fit(counted_rows(kind, 300)).credible_intervals()
    assert alone.weights.tolist() == [[1.0, 1.0]] and np.isfinite(alone.values).all()
    with pytest.raises(ValueError, match="method must be 'observed-information' or 'mean-field', got 'exact'"):
        model.credible_intervals(method="exact")


def test_more_columns_than_parameters_can_be_told_of_are_refused():
    rows = np.random.default_rng(0).poisson(0.05, size=(300, 1200))
    model = hw.MultinomialMixture(2, random_state=0).fit(rows)
    assert model.credible_intervals(method="mean-field").values.shape == (2, 1200, 2)
    with pytest.raises(ValueError, match="method must be 'mean-field' with more than 1,000 columns, got 1,200"):
        model.credible_intervals()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["auto", "online-vb", "moment-matching"])
def test_under_overlap_intervals_hold_the_truth_as_often_as_they_say(algorithm):
    held = []
    for seed in range(60):
        X = overlapping(4000, seed + 100, apart=2.5)
        model = hw.GaussianMixture(2, algorithm=algorithm, random_state=0).partial_fit(X)
        found, order = model.credible_intervals(), np.argsort(model.means_[:, 0])
        for ends, truth in ((found.weights, [0.5, 0.5]), (found.means[:, 0], [0.0, 2.5]), (found.variances[:, 0], [1.0, 1.0])):
            held.append(((ends[order, 0] < truth) & (truth < ends[order, 1])).mean())
    assert 0.8 < np.mean(held) < 0.98
