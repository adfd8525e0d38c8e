"""Beside scikit-learn's class of the same name."""

import numpy as np
import pytest
from naive.bayesian_mixture import next_belief
from sklearn.mixture import BayesianGaussianMixture as ScikitLearn
from sklearn.utils.estimator_checks import parametrize_with_checks

import headwater as hw

KINDS = ("full", "tied", "diag", "spherical")
CENTRES = np.array([[0.0, 0.0], [9.0, 1.0], [-2.0, 10.0]])
PROCESS, DIRICHLET = "dirichlet_process", "dirichlet_distribution"


def rows_of(n=600, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    return CENTRES[groups] + rng.normal(size=(n, 2)) @ [[1.0, 0.4], [0.0, 0.7]]


def fitted(kind, law, **options):
    options = {"n_components": 3, "tol": 1e-10, "max_iter": 500, "random_state": 0, "reg_covar": 0.0, **options}
    return hw.BayesianGaussianMixture(covariance_type=kind, weight_concentration_prior_type=law, **options)


def like(model):
    """scikit-learn's estimator with the same parameters, of those that it has."""
    known = ScikitLearn().get_params()
    return ScikitLearn(**{name: value for name, value in model.get_params().items() if name in known})


@parametrize_with_checks([hw.BayesianGaussianMixture()])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_the_optimum_of_scikit_learn_is_found(kind):
    X = rows_of()
    ours, theirs = fitted(kind, DIRICHLET).fit(X), like(fitted(kind, DIRICHLET)).fit(X)
    at, there = np.argsort(ours.weights_), np.argsort(theirs.weights_)
    for name in ("weights_", "means_", "mean_precision_", "weight_concentration_"):
        np.testing.assert_allclose(getattr(ours, name)[at], getattr(theirs, name)[there], rtol=1e-5, atol=1e-5)
    for name in ("covariances_", "degrees_of_freedom_"):
        one, other = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_allclose(*((one, other) if kind == "tied" else (one[at], other[there])), rtol=1e-5, atol=1e-5)
    assert ours.score(X) == pytest.approx(theirs.score(X), abs=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X)[:, at], theirs.predict_proba(X)[:, there], atol=1e-6)


@pytest.mark.parametrize("law", [PROCESS, DIRICHLET])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_a_fixed_point_of_variational_bayes(kind, law):
    X = rows_of(300)
    model = fitted(kind, law, n_components=4, weight_concentration_prior=0.3, tol=1e-13, max_iter=3000).fit(X)
    after = next_belief(model, X, kind, law)
    for name, value in after.items():
        known = model.weight_concentration_[0] - 1.0 if name == "counts" and law == PROCESS else getattr(model, name, None)
        if name == "counts" and law == DIRICHLET:
            known = model.weight_concentration_ - 0.3
        np.testing.assert_allclose(known, value, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("law", [PROCESS, DIRICHLET])
def test_a_stream_leaves_components_empty_and_goes_on_from_a_file(law, tmp_path):
    X = rows_of(4000)
    model = hw.BayesianGaussianMixture(n_components=6, weight_concentration_prior_type=law, random_state=0)
    model.partial_fit(X[:2500]).save(tmp_path / "model.hw")
    other = hw.load(tmp_path / "model.hw").partial_fit(X[2500:])
    model.partial_fit(X[2500:])
    np.testing.assert_array_equal(other.means_, model.means_)
    nearest = ((model.means_[:, None] - CENTRES) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(np.bincount(nearest, model.weights_), [0.5, 0.3, 0.2], atol=0.03)
    assert model.weights_.min() < 1e-3 and len(model.prune(1e-3).weights_) < 6
    intervals = model.credible_intervals(0.999).weights
    assert ((intervals[:, 0] <= model.weights_) & (model.weights_ <= intervals[:, 1])).all()
    parts = [model.branch().partial_fit(X[at::2]) for at in range(2)]
    assert hw.merge(parts).n_samples_seen_ == 8000


def test_what_the_prior_of_the_weights_cannot_do_is_refused():
    X = rows_of(60)
    with pytest.raises(ValueError, match=r"cannot be learned by 'em': use one of 'auto', 'vb', 'online-vb'"):
        hw.BayesianGaussianMixture(algorithm="em").fit(X)
    with pytest.raises(ValueError, match=r"'degrees_of_freedom_prior' should be greater than 1, but got 0.500"):
        hw.BayesianGaussianMixture(degrees_of_freedom_prior=0.5).fit(X)
    with pytest.raises(ValueError, match="weight_concentration_prior_type"):
        hw.BayesianGaussianMixture(weight_concentration_prior_type="sticks").fit(X)
    hw.BayesianGaussianMixture(algorithm="boem", weight_concentration_prior_type=DIRICHLET, random_state=0).partial_fit(X)


def test_columns_that_are_constant_or_lack_values_have_a_prior():
    X = rows_of(200)
    X = np.column_stack([X, np.full(200, 3.0), X[:, 0]])
    model = hw.BayesianGaussianMixture(n_components=2, random_state=0).fit(X)
    assert np.isfinite(model.score(X)) and np.linalg.eigvalsh(model.covariance_prior_).min() > 0.0
    X[::7, 1] = np.nan
    assert np.isfinite(hw.BayesianGaussianMixture(n_components=2, random_state=0).fit(X).score(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean_prior", np.zeros((2, 2))),
        ("mean_precision_prior", [1.0, 2.0]),
        ("degrees_of_freedom_prior", [4.0, 5.0]),
        ("covariance_prior", np.stack([np.eye(2)] * 2)),
    ],
)
def test_priors_of_each_component_are_refused_in_a_sentence(name, value):
    model = hw.BayesianGaussianMixture(n_components=2, **{name: value})
    with pytest.raises(ValueError, match=f"{name} must be that of all components, as in scikit-learn; GaussianMixture"):
        model.fit(np.random.default_rng(0).normal(size=(50, 2)))
