"""Bayesian moment matching with extreme rows."""

import itertools

import numpy as np
import pytest
from naive.moments import KINDS

import headwater as hw
from headwater.estimators import model_file

kinds = pytest.mark.parametrize("kind", KINDS)
WIDTH, WARM_UP = 3, 600
CENTRES = np.array([[0.0, 0.0, 0.0], [4.0, 1.0, -1.0], [-2.0, 3.0, 2.0]])


def sane_rows(rows, rng):
    return CENTRES[rng.integers(0, len(CENTRES), rows)] + rng.normal(size=(rows, WIDTH))


def matching(kind, warm_up=WARM_UP, n_components=3, **settings):
    return hw.GaussianMixture(
        n_components, covariance_type=kind, algorithm="moment-matching", warm_up=warm_up, random_state=0, **settings
    )


def odd_rows(case, model, rng):
    """Return extreme rows for a model that has learned ordinary ones."""
    oblique = np.array([0.6, -0.64, 0.48])
    means = model.means_
    return {
        "outlier at 1e6": lambda: np.stack([1e6 * oblique, [0.0, 1e6, 0.0]]),
        "outlier at 1e8": lambda: np.stack([1e8 * oblique, [0.0, 0.0, -1e8]]),
        "outliers among others": lambda: np.concatenate([sane_rows(50, rng) * (1e6 if i % 2 else 1.0) for i in range(6)]),
        "between two components": lambda: np.tile((means[0] + means[1]) / 2, (100, 1)),
        "at a mean": lambda: np.concatenate([means, means]),
        "the same row": lambda: np.tile(means[0] + 0.3, (10_000, 1)),
        "the same far row": lambda: np.tile(means[0] + 1e3, (10_000, 1)),
        "alternating extremes": lambda: np.tile([1e6 * oblique, -1e6 * oblique], (500, 1)),
        "alternating components": lambda: np.tile([means[0], means[1]], (500, 1)),
    }[case]()


def assert_sane(model, X):
    """Check that the beliefs are valid and all answers finite."""
    width = X.shape[1]
    for name, array in model._read().stream.statistics.to_arrays().items():
        assert np.isfinite(array).all(), name
    for name in ("weights_", "means_", "covariances_", "precisions_cholesky_", "degrees_of_freedom_", "mean_precision_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert (model.weight_concentration_ > 0).all()
    assert (model.mean_precision_ > 0).all()
    if model.covariance_type == "full":
        assert (model.degrees_of_freedom_ > width - 1).all()
        np.linalg.cholesky(model.covariances_)
        assert (np.diagonal(model.precisions_cholesky_, axis1=1, axis2=2) > 0).all()
    else:
        assert (model.degrees_of_freedom_ > 0).all()
        assert (model.covariances_ > 0).all()
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.predictive_score_samples(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


ODD = ["outlier at 1e6", "outlier at 1e8", "outliers among others", "at a mean", "the same row", "the same far row"]
ODD += ["alternating extremes"]
ODD_PAIRS = ["between two components", "alternating components"]


@pytest.mark.covering("case")
@kinds
@pytest.mark.parametrize("case, n_components", [*itertools.product(ODD, [1, 3]), *itertools.product(ODD_PAIRS, [3])])
def test_odd_rows_leave_a_belief(kind, case, n_components):
    rng = np.random.default_rng(19)
    model = matching(kind, n_components=n_components).partial_fit(sane_rows(WARM_UP + 200, rng))
    X = odd_rows(case, model, rng)
    scores = model.update(X)
    assert np.isfinite(scores).all()
    assert_sane(model, X[:100])
    model.partial_fit(sane_rows(300, rng))
    assert_sane(model, sane_rows(20, rng))


@kinds
@pytest.mark.parametrize("case", ["constant column", "few values", "all the same", "columns that are copies"])
def test_degenerate_columns_leave_a_belief(kind, case):
    rng = np.random.default_rng(20)
    X = sane_rows(1000, rng)
    if case == "constant column":
        X[:, 1] = 7.5
    elif case == "few values":
        X = np.round(X)
    elif case == "all the same":
        X[:] = [1.0, -2.0, 0.1]
    else:
        X[:, 2] = X[:, 0]
    model = matching(kind, warm_up=200)
    for chunk in np.split(X, [200, 300, 301]):
        model.partial_fit(chunk)
        assert_sane(model, X[:50])
    assert np.isfinite(model.update(X[:50])).all()


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_tied_covariances_are_refused(learn):
    model = matching("tied", warm_up=50)
    with pytest.raises(ValueError, match="moment-matching") as caught:
        getattr(model, learn)(sane_rows(100, np.random.default_rng(21)))
    for word in ("'auto'", "'online-vb'", "'quasi-bayes'"):
        assert word in str(caught.value)


@kinds
@pytest.mark.parametrize("weight", [1e6, 1e12, 1e20])
def test_a_heavy_row_between_components_leaves_a_belief(kind, weight):
    """The row takes nearly all of the prior from weights and means, and a file holds the difference from the prior."""
    rng = np.random.default_rng(0)
    model = matching(kind, warm_up=20, n_components=2)
    model.partial_fit(rng.normal(size=(40, 2)) + np.where(np.arange(40) % 2, 5.0, 0.0)[:, None])
    for row in ([2.5, 2.5], [1e9, -1e9]):
        model.partial_fit(np.array([row]), sample_weight=[weight])
        again = model_file.from_bytes(model_file.to_bytes(model))
        assert (again.weights_ > 0.0).all() and np.isfinite(again.covariances_).all()
        assert np.isfinite(again.score_samples(np.zeros((1, 2)))).all()
