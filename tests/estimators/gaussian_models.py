"""Rows of three Gaussians, models that learn them, and checks of a sound model, for the tests of GaussianMixture."""

import warnings
from contextlib import contextmanager

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

KINDS = ("full", "tied", "diag", "spherical")
WORDS = ("auto", "em", "soem", "boem", "online-em", "vb", "online-vb", "quasi-bayes")
WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.0, 0.0], [7.0, 2.0], [-3.0, 8.0]])
COVARIANCES = {
    "full": np.array([[[1.0, 0.4], [0.4, 0.5]], [[0.6, -0.3], [-0.3, 1.2]], [[1.5, 0.0], [0.0, 0.3]]]),
    "tied": np.array([[1.0, 0.4], [0.4, 0.8]]),
    "diag": np.array([[1.0, 0.5], [0.6, 1.2], [1.5, 0.3]]),
    "spherical": np.array([1.0, 0.5, 1.5]),
}


def matrices(kind, covariances, k=3, width=2):
    """Return covariances of any type as K matrices."""
    if kind == "full":
        return covariances
    if kind == "tied":
        return np.broadcast_to(covariances, (k, width, width))
    if kind == "diag":
        return np.stack([np.diag(row) for row in covariances])
    return np.stack([value * np.eye(width) for value in covariances])


def simulate(kind, n, seed=0):
    """Return rows of the three well-separated components, in random order, and where each came from."""
    rng = np.random.default_rng(seed)
    factors = np.linalg.cholesky(matrices(kind, COVARIANCES[kind]))
    source = rng.choice(3, size=n, p=WEIGHTS)
    return MEANS[source] + np.einsum("nij,nj->ni", factors[source], rng.normal(size=(n, 2))), source


def true_log_density(kind, X):
    parts = [
        np.log(weight) + stats.multivariate_normal(mean, covariance).logpdf(X)
        for weight, mean, covariance in zip(WEIGHTS, MEANS, matrices(kind, COVARIANCES[kind]), strict=True)
    ]
    return np.logaddexp.reduce(parts)


def order_of(means):
    """Return the indices of the means in the order of MEANS, each used once."""
    order = np.argmin(((means[None] - MEANS[:, None]) ** 2).sum(axis=2), axis=1)
    assert sorted(order) == [0, 1, 2]
    return order


@contextmanager
def unconverged():
    """Return options of a fit that stops early on purpose; such fits warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def assert_same_model(one, other, rtol=1e-7, atol=1e-9):
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=atol)


def assert_sound(model, X):
    """Check that all learned attributes are finite and consistent."""
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.predictive_score_samples(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.weights_.sum(), 1.0)
    assert np.isfinite(model.means_).all() and np.isfinite(model.precisions_).all()
    width = model.means_.shape[1]
    for covariance in matrices(model.covariance_type, model.covariances_, model.n_components, width):
        assert np.linalg.eigvalsh(covariance).min() > 0.0
