"""What a user of GaussianMixture meets."""

import pickle
import subprocess
import sys
import warnings
from contextlib import contextmanager
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture as Peer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import headwater as hw
from headwater.checks import EXPECTED_FAILURES, check_estimator
from headwater.core.loop import UNKNOWN_ROWS
from headwater.estimators.base import StreamingEstimator

KINDS = ("full", "tied", "diag", "spherical")
WORDS = ("auto", "em", "soem", "boem", "online-em", "vb", "online-vb", "quasi-bayes")
ONLINE = ("auto", "soem", "boem", "online-em", "online-vb", "quasi-bayes")

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


def streamed(model, X, size=97, **options):
    for at in range(0, len(X), size):
        model.partial_fit(X[at : at + size], **{name: value[at : at + size] for name, value in options.items()})
    return model


@contextmanager
def unconverged():
    """Passes that are cut short warn; here that is meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def assert_same_model(one, other, rtol=1e-7, atol=1e-9):
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=atol)


def assert_sound(model, X):
    """Everything that can be read is finite, and is what it says it is."""
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.predictive_score_samples(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.weights_.sum(), 1.0)
    assert np.isfinite(model.means_).all() and np.isfinite(model.precisions_).all()
    width = model.means_.shape[1]
    for covariance in matrices(model.covariance_type, model.covariances_, model.n_components, width):
        assert np.linalg.eigvalsh(covariance).min() > 0.0


# Simulate and recover


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_simulated_is_recovered(kind, way):
    X, source = simulate(kind, 20_000)
    model = hw.GaussianMixture(3, covariance_type=kind, random_state=0)
    model = model.fit(X) if way == "fit" else streamed(model, X, 997)
    order = order_of(model.means_)
    np.testing.assert_allclose(model.weights_[order], WEIGHTS, atol=0.015)
    np.testing.assert_allclose(model.means_[order], MEANS, atol=0.06)
    found = model.covariances_ if kind == "tied" else model.covariances_[order]
    np.testing.assert_allclose(found, COVARIANCES[kind], atol=0.08)
    assert abs(model.score(X) - true_log_density(kind, X).mean()) < 0.003
    assert np.mean(order[source] == model.predict(X)) > 0.99


@pytest.mark.parametrize("algorithm", WORDS)
def test_every_algorithm_recovers_it(algorithm):
    X, _ = simulate("full", 12_000)
    model = hw.GaussianMixture(3, algorithm=algorithm, random_state=0)
    model = streamed(model, X) if algorithm in ONLINE else model.fit(X)
    np.testing.assert_allclose(model.weights_[order_of(model.means_)], WEIGHTS, atol=0.03)
    np.testing.assert_allclose(model.means_[order_of(model.means_)], MEANS, atol=0.12)
    np.testing.assert_allclose(model.covariances_[order_of(model.means_)], COVARIANCES["full"], atol=0.15)
    assert model.score(X) > true_log_density("full", X).mean() - 0.01


# Beside scikit-learn


@pytest.mark.parametrize("kind", KINDS)
def test_fit_scores_as_scikit_learn_does(kind):
    X, _ = simulate(kind, 3000)
    peer = Peer(3, covariance_type=kind, random_state=0).fit(X)
    assert abs(hw.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X).score(X) - peer.score(X)) < 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_em_from_given_parameters_is_scikit_learns_number_for_number(kind):
    X, _ = simulate(kind, 1500)
    precisions = {
        "full": np.stack([[[1.0, 0.2], [0.2, 0.5]]] * 3), "tied": np.array([[1.0, 0.2], [0.2, 0.5]]),
        "diag": np.array([[1.0, 0.5], [0.3, 0.7], [0.4, 0.4]]), "spherical": np.array([1.0, 0.5, 0.3]),
    }[kind]  # fmt: skip
    options = {
        "covariance_type": kind, "tol": 0.0, "max_iter": 5, "weights_init": [0.2, 0.3, 0.5],
        "means_init": MEANS + np.array([1.5, -1.0]), "precisions_init": precisions, "random_state": 0,
    }  # fmt: skip
    with unconverged():
        ours = hw.GaussianMixture(3, algorithm="em", **options).fit(X)
        theirs = Peer(3, **options).fit(X)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-6, atol=1e-6)
    assert ours.n_iter_ == theirs.n_iter_ == 5 and not ours.converged_


@pytest.mark.parametrize("kind", KINDS)
def test_criteria_are_scikit_learns(kind):
    X, _ = simulate(kind, 800)
    ours = hw.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    theirs = Peer(3, covariance_type=kind)
    theirs.weights_, theirs.means_ = ours.weights_, ours.means_
    theirs.covariances_, theirs.precisions_cholesky_ = ours.covariances_, ours.precisions_cholesky_
    np.testing.assert_allclose(ours.bic(X), theirs.bic(X))
    np.testing.assert_allclose(ours.aic(X), theirs.aic(X))
    free = {"full": 9, "tied": 3, "diag": 6, "spherical": 3}[kind] + 6 + 2
    np.testing.assert_allclose(ours.bic(X), -2.0 * 800 * ours.score(X) + free * np.log(800))
    np.testing.assert_allclose(ours.aic(X), -2.0 * 800 * ours.score(X) + 2.0 * free)


# Data that is awkward


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_offset_only_shifts_the_model(kind, way):
    X = np.round(simulate(kind, 3000)[0] * 2.0**20) / 2.0**20  # so that the sum with the offset is exact
    offset = 2.0**27 * np.array([1.0, -1.0])  # 1.3e8
    models = []
    for rows in (X, X + offset):
        model = hw.GaussianMixture(3, covariance_type=kind, random_state=0)
        models.append(model.fit(rows) if way == "fit" else streamed(model, rows, 500))
    plain, shifted = models
    # Starts that score alike are told apart by rounding, so the components may come in another order.
    mine, theirs = order_of(plain.means_), order_of(shifted.means_ - offset)
    np.testing.assert_allclose(shifted.means_[theirs] - offset, plain.means_[mine], atol=1e-6)
    np.testing.assert_allclose(shifted.weights_[theirs], plain.weights_[mine], atol=1e-6)
    covariances = [matrices(kind, model.covariances_) for model in models]
    np.testing.assert_allclose(covariances[1][theirs], covariances[0][mine], atol=1e-6)
    np.testing.assert_allclose(shifted.score_samples(X + offset), plain.score_samples(X), atol=1e-5)


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["constant column", "few values", "all the same", "columns that are copies"])
def test_degenerate_rows_leave_a_sound_model(kind, way, case):
    X, _ = simulate("full", 600)
    if case == "constant column":
        X[:, 1] = 3.25
    elif case == "few values":
        X = X[np.random.default_rng(0).integers(4, size=600)]
    elif case == "all the same":
        X[:] = X[0]
    else:
        X = np.hstack([X, X])
    model = hw.GaussianMixture(3, covariance_type=kind, warm_up=200, random_state=0)
    model = model.fit(X) if way == "fit" else streamed(model, X)
    assert_sound(model, X)
    if case == "constant column":
        np.testing.assert_allclose(model.means_[:, 1], 3.25, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_rows_than_components(kind):
    X = np.array([[1.0, 2.0], [5.0, -1.0]])
    model = hw.GaussianMixture(5, covariance_type=kind, random_state=0).partial_fit(X)
    assert_sound(model, X)
    assert model.n_samples_seen_ == 2
    with pytest.raises(ValueError, match=r"^Expected n_samples >= n_components but got n_components = 5, n_samples = 2$"):
        hw.GaussianMixture(5, covariance_type=kind).fit(X)


def test_rows_of_weight_zero_do_not_count_as_rows():
    with pytest.raises(ValueError, match=r"n_components = 3, n_samples = 2"):
        hw.GaussianMixture(3).fit(simulate("full", 4)[0], sample_weight=[1.0, 0.0, 0.0, 1.0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_row(kind):
    row = np.array([[4.0, -2.0]])
    for model in (hw.GaussianMixture(1, covariance_type=kind).fit(row), hw.GaussianMixture(1).partial_fit(row)):
        assert_sound(model, row)
        np.testing.assert_allclose(model.means_, row, atol=1e-9)


# From the first row on


@pytest.mark.parametrize("algorithm", ONLINE)
def test_the_model_answers_from_the_first_row_on(algorithm):
    X, _ = simulate("full", 60)
    model = hw.GaussianMixture(3, algorithm=algorithm, warm_up=40, random_state=0)
    for seen in range(1, 61):
        model.partial_fit(X[seen - 1 : seen])
        assert model.n_samples_seen_ == seen
        if seen < 5 or seen % 13 == 0 or 38 < seen < 43:
            assert_sound(model, X)
            assert np.isfinite(model.score_one(X[0])) and 0 <= model.predict_one(X[0]) < 3


def test_warm_up_rows_are_counted_once():
    X, _ = simulate("full", 5000)
    for n in (1, 50, 1999, 2000, 2001, 5000):
        model = hw.GaussianMixture(3, weight_concentration_prior=1.5, random_state=0).partial_fit(X[:n])
        np.testing.assert_allclose(model.weight_concentration_.sum(), n + 3 * 1.5)
        np.testing.assert_allclose(model.mean_precision_.sum(), n + 3 * 0.01)
    fitted = hw.GaussianMixture(3, random_state=0).fit(X)
    np.testing.assert_allclose(fitted.weight_concentration_.sum(), 5003.0)
    assert fitted.n_samples_seen_ == 5000


def test_a_stream_goes_on_after_fit():
    X, _ = simulate("full", 9000)
    model = hw.GaussianMixture(3, random_state=0).fit(X[:3000])
    streamed(model, X[3000:])
    assert model.n_samples_seen_ == 9000
    np.testing.assert_allclose(model.weight_concentration_.sum(), 9003.0)
    np.testing.assert_allclose(model.means_[order_of(model.means_)], MEANS, atol=0.1)


# Labels


def per_class(X, labels):
    weights = np.bincount(labels) / len(labels)
    means = np.stack([X[labels == k].mean(axis=0) for k in range(3)])
    return weights, means, np.stack([np.cov(X[labels == k].T, bias=True) for k in range(3)])


@pytest.mark.parametrize("algorithm", ["auto", "em"])
def test_rows_that_are_all_labelled_give_the_estimates_of_each_class(algorithm):
    X, _ = simulate("full", 900)
    labels = np.random.default_rng(1).integers(3, size=900)  # classes that no clustering would find
    model = hw.GaussianMixture(3, algorithm=algorithm, reg_covar=0.0, random_state=0).fit(X, labels=labels)
    for name, wanted in zip(("weights_", "means_", "covariances_"), per_class(X, labels), strict=True):
        np.testing.assert_allclose(getattr(model, name), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("algorithm", ONLINE)
def test_a_stream_that_is_all_labelled_comes_close_to_the_estimates_of_each_class(algorithm):
    X, _ = simulate("full", 6000)
    labels = np.random.default_rng(1).integers(3, size=6000)
    model = streamed(hw.GaussianMixture(3, algorithm=algorithm, random_state=0), X, 500, labels=labels)
    weights, means, covariances = per_class(X, labels)
    tight = algorithm not in ("soem", "online-em")  # whose steps weigh later rows more
    np.testing.assert_allclose(model.weights_, weights, atol=0.002 if tight else 0.05)
    np.testing.assert_allclose(model.means_, means, atol=0.02 if tight else 0.4)
    np.testing.assert_allclose(model.covariances_, covariances, atol=0.1 if tight else 2.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [(2, 0, 1), (1, 2, 0)])
def test_some_labels_name_the_components(kind, names):
    X, source = simulate(kind, 2500)
    labels = np.full(2500, -1)
    for k in range(3):
        labels[np.flatnonzero(source == k)[:4]] = names[k]
    for way in ("fit", "partial_fit"):
        model = hw.GaussianMixture(3, covariance_type=kind, random_state=0)
        model = model.fit(X, labels=labels) if way == "fit" else streamed(model, X, 500, labels=labels)
        np.testing.assert_allclose(model.means_[list(names)], MEANS, atol=0.25)


@pytest.mark.parametrize("algorithm", ONLINE)
def test_labels_after_the_warm_up_move_their_component(algorithm):
    X, _ = simulate("full", 2000)
    model = hw.GaussianMixture(3, algorithm=algorithm, warm_up=500, random_state=0).partial_fit(X)
    moved, others = order_of(model.means_)[0], order_of(model.means_)[1:]
    before = model.means_
    model.partial_fit(np.tile([7.0, 2.0], (1500, 1)), labels=np.full(1500, moved))  # where another one is
    assert np.linalg.norm(model.means_[moved] - MEANS[1]) < np.linalg.norm(before[moved] - MEANS[1]) - 1.0
    np.testing.assert_allclose(model.means_[others], before[others], atol=0.25)


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_no_row_labelled_is_no_labels(way):
    X, _ = simulate("full", 3000)
    plain, unlabelled = (hw.GaussianMixture(3, random_state=0) for _ in range(2))
    getattr(plain, way)(X)
    getattr(unlabelled, way)(X, labels=np.full(3000, -1))
    assert_same_model(plain, unlabelled)


# Weights


@pytest.mark.parametrize("kind", KINDS)
def test_whole_weights_are_copies_and_zero_is_absent(kind):
    X, _ = simulate(kind, 700)
    times = np.arange(700) % 4
    shapes = {"full": np.stack([np.eye(2)] * 3), "tied": np.eye(2), "diag": np.ones((3, 2)), "spherical": np.ones(3)}
    model = hw.GaussianMixture(
        3, covariance_type=kind, algorithm="em", tol=0.0, max_iter=6, weights_init=np.ones(3) / 3, means_init=MEANS + 1.0,
        precisions_init=shapes[kind], random_state=0,
    )  # fmt: skip
    with unconverged():
        weighted = clone(model).fit(X, sample_weight=times)
        copied = clone(model).fit(np.repeat(X, times, axis=0))
        without = clone(model).fit(X[times > 0], sample_weight=times[times > 0])
        plain = clone(model).fit(X)
    assert_same_model(weighted, copied, rtol=1e-8, atol=1e-8)
    assert_same_model(weighted, without, rtol=0.0, atol=0.0)
    assert weighted.n_samples_seen_ == np.count_nonzero(times)
    assert np.abs(weighted.means_ - plain.means_).max() > 1e-3


def test_weights_in_a_stream():
    X, _ = simulate("full", 4000)
    weights = np.random.default_rng(0).integers(0, 3, size=4000)
    model = streamed(hw.GaussianMixture(3, warm_up=500, random_state=0), X, 100, sample_weight=weights)
    assert model.n_samples_seen_ == np.count_nonzero(weights)
    np.testing.assert_allclose(model.weight_concentration_.sum(), weights.sum() + 3.0)
    absent = streamed(
        hw.GaussianMixture(3, warm_up=500, random_state=0), X[weights > 0], 77, sample_weight=weights[weights > 0]
    )
    assert_same_model(model, absent)


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("weight", [1e-25, 1e25])
def test_tiny_and_huge_weights_leave_a_sound_model(algorithm, weight):
    X, _ = simulate("full", 400)
    model = hw.GaussianMixture(3, algorithm=algorithm, warm_up=100, random_state=0)
    assert_sound(streamed(model, X, 50, sample_weight=np.full(400, weight)), X)


def test_heavier_rows_count_more():
    X, source = simulate("full", 3000)
    model = hw.GaussianMixture(3, random_state=0).fit(X, sample_weight=np.where(source == 2, 5.0, 1.0))
    np.testing.assert_allclose(model.weights_[order_of(model.means_)], WEIGHTS * [1, 1, 5] / (WEIGHTS @ [1, 1, 5]), atol=0.03)


# Streams that drift


def two_groups(rng, n, left, right, share=0.5):
    return np.where(rng.random((n, 1)) < share, left, right) + rng.normal(size=(n, 1))


@pytest.mark.parametrize("algorithm", ["auto", "online-em", "soem", "boem", "online-vb", "quasi-bayes"])
def test_a_half_life_follows_a_jump(algorithm):
    rng = np.random.default_rng(0)
    rows = np.vstack([two_groups(rng, 8000, -10.0, 10.0), two_groups(rng, 8000, -7.0, 13.0)])
    follows = hw.GaussianMixture(2, algorithm=algorithm, half_life=800.0, warm_up=500, random_state=0)
    means = np.sort(streamed(follows, rows, 1000).means_.ravel())
    np.testing.assert_allclose(means, [-7.0, 13.0], atol=0.3)
    if algorithm not in ("online-em", "soem"):  # which forget a little by themselves
        lags = hw.GaussianMixture(2, algorithm=algorithm, warm_up=500, random_state=0)
        np.testing.assert_allclose(np.sort(streamed(lags, rows, 1000).means_.ravel()), [-8.5, 11.5], atol=0.3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ["auto", "online-vb", "boem", "soem"])
def test_a_component_without_rows_rests_on_the_prior(kind, algorithm):
    rng = np.random.default_rng(0)
    model = hw.GaussianMixture(
        2, covariance_type=kind, algorithm=algorithm, half_life=300.0, warm_up=500, weight_concentration_prior=2.0,
        mean_precision_prior=1.0, random_state=0,
    )  # fmt: skip
    model.partial_fit(two_groups(rng, 2000, -10.0, 10.0))
    idle = int(model.means_.argmin())
    streamed(model, two_groups(rng, 30_000, -10.0, 10.0, share=0.0), 5000)
    assert_sound(model, np.array([[-10.0], [0.0], [10.0]]))
    assert np.all(model.weight_concentration_ >= 2.0)
    assert np.all(model.mean_precision_ >= 1.0)
    total = model.weight_concentration_.sum()
    assert total < 4.0 + 4.0 * 300.0 / np.log(2.0)  # the forgotten is gone, the prior is not
    assert model.weights_[idle] >= 1.0 / total
    np.testing.assert_allclose(model.means_.max(), 10.0, atol=0.3)


# Scores of a stream, and single rows


@pytest.mark.parametrize("algorithm", ["auto", "online-vb", "online-em"])
def test_the_prequential_score_approaches_the_score(algorithm):
    X, _ = simulate("full", 16_000)
    model = hw.GaussianMixture(3, algorithm=algorithm, random_state=0)
    scores = np.concatenate([model.update(X[at : at + 500]) for at in range(0, 16_000, 500)])
    assert np.isnan(scores[:UNKNOWN_ROWS]).all() and np.isfinite(scores[UNKNOWN_ROWS:]).all()
    late = X[8000:]
    assert abs(scores[8000:].mean() - model.score(late)) < 0.02
    assert scores[32:200].mean() < scores[8000:].mean() - 0.02  # it had something to learn


def test_no_row_is_scored_before_the_scale_is_known():
    X, _ = simulate("full", 60)
    scores = hw.GaussianMixture(3, random_state=0).update(X)
    assert np.isnan(scores[0]) and np.nanmin(scores) > -1e3


def test_update_scores_rows_of_weight_zero_without_learning_them():
    X, _ = simulate("full", 3000)
    model = hw.GaussianMixture(3, warm_up=500, random_state=0).partial_fit(X[:2000])
    weights = np.ones(1000)
    weights[::2] = 0.0
    expected = model.score_samples(X[2000::2])
    scores = model.update(X[2000:], sample_weight=weights)
    np.testing.assert_allclose(scores[::2], expected)
    assert np.isfinite(scores).all()
    assert model.n_samples_seen_ == 2500


def test_update_of_a_frame_with_weights_of_zero_does_not_warn():
    frame = pd.DataFrame(simulate("full", 300)[0], columns=["a", "b"])
    model = hw.GaussianMixture(3, warm_up=100, random_state=0).partial_fit(frame)
    assert np.isfinite(model.update(frame, sample_weight=np.arange(300) % 2)).all()


def test_a_labelled_row_scores_its_joint_density():
    X, _ = simulate("full", 1000)
    model = hw.GaussianMixture(3, warm_up=500, random_state=0).fit(X)
    joint = model.score_samples(X[:5]) + np.log(model.predict_proba(X[:5])[:, 1])
    # The E-step of the stream reads expectations of logarithms, which is close to the mean but not the same.
    np.testing.assert_allclose(model.update(X[:5], labels=np.ones(5)), joint, rtol=0.05)


def test_one_row_calls_answer_as_the_others_do():
    X, _ = simulate("full", 800)
    model = hw.GaussianMixture(3, random_state=0).fit(X)
    for row, score, component in zip(X[:20], model.score_samples(X), model.predict(X), strict=False):
        np.testing.assert_allclose(model.score_one(row), score)
        assert model.predict_one(row) == component
        assert type(model.score_one(row)) is float and type(model.predict_one(row)) is int


def test_learn_one_is_partial_fit_of_one_row():
    X, _ = simulate("full", 300)
    one, other = (hw.GaussianMixture(3, warm_up=100, random_state=0) for _ in range(2))
    for row in X:
        assert one.learn_one(row) is one
    assert_same_model(one, other.partial_fit(X))
    assert one.n_samples_seen_ == 300 and one.n_features_in_ == 2


def test_dicts_are_ordered_by_the_names_of_the_columns():
    X, _ = simulate("full", 300)
    one = hw.GaussianMixture(3, warm_up=100, random_state=0)
    for number, (a, b) in enumerate(X):
        one.learn_one({"a": a, "b": b} if number % 3 == 0 else {"b": b, "a": a} if number % 3 == 1 else [a, b])
    assert one.feature_names_in_.tolist() == ["a", "b"]
    assert_same_model(one, hw.GaussianMixture(3, warm_up=100, random_state=0).partial_fit(X))
    one.partial_fit(pd.DataFrame(X, columns=["a", "b"]))
    assert one.score_one({"b": X[0, 1], "a": X[0, 0]}) == one.score_one(X[0])
    for wrong in ({"a": 1.0}, {"a": 1.0, "c": 2.0}, {"a": 1.0, "b": 2.0, "c": 3.0}):
        for call in (one.learn_one, one.score_one, one.predict_one):
            with pytest.raises(ValueError, match=r"the row must have exactly the columns \['a', 'b'\], got"):
                call(wrong)
    assert one.n_samples_seen_ == 600


@pytest.mark.parametrize("make", [dict, lambda row: MappingProxyType(dict(row))])
def test_every_kind_of_mapping_names_the_columns(make):
    model = hw.GaussianMixture(1).learn_one(make({"a": 1.0, "b": 2.0})).learn_one(make({"b": 2.0, "a": 1.0}))
    np.testing.assert_allclose(model.means_, [[1.0, 2.0]])
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_mappings_whose_order_alone_would_tell_the_columns_are_refused():
    with pytest.raises(ValueError, match="the row"):
        hw.GaussianMixture(1).learn_one({0: 1.0, 1: 2.0}).learn_one({1: 2.0, 0: 1.0})
    unnamed = hw.GaussianMixture(1).partial_fit(simulate("full", 50)[0])
    for call in (unnamed.learn_one, unnamed.score_one, unnamed.predict_one):
        with pytest.raises(ValueError, match="the row"):
            call({"a": 1.0, "b": 2.0})


def test_one_row_calls_refuse_what_is_no_row():
    model = hw.GaussianMixture(2)
    for call in (model.score_one, model.predict_one):
        with pytest.raises(NotFittedError):
            call([1.0, 2.0])
    model.learn_one([1.0, 2.0])
    for call in (model.learn_one, model.score_one, model.predict_one):
        with pytest.raises(ValueError, match=r"3 features.*2 features"):
            call([1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match="NaN"):
            call([1.0, np.nan])
    with pytest.raises(ValueError, match="'em' needs all rows at once"):
        hw.GaussianMixture(2, algorithm="em").learn_one([1.0, 2.0])


# Frames


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_frames(frame, way):
    X, _ = simulate("full", 500)
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    model = getattr(hw.GaussianMixture(3, random_state=0), way)(table)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    assert_same_model(model, getattr(hw.GaussianMixture(3, random_state=0), way)(X))
    np.testing.assert_array_equal(model.predict(table), model.predict_proba(table).argmax(axis=1))
    swapped = frame({"b": X[:, 1], "a": X[:, 0]})
    other = frame({"a": X[:, 0], "c": X[:, 1]})
    for call in (model.partial_fit, model.score_samples, model.predict, model.update):
        with pytest.raises(ValueError, match="feature names"):
            call(swapped)
        with pytest.raises(ValueError, match="feature names"):
            call(other)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            call(X)
    assert model.n_samples_seen_ == 500 * 3


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_the_layout_of_rows_in_memory_changes_nothing(kind):
    X, _ = simulate("full", 200)
    wanted = hw.GaussianMixture(2, covariance_type=kind, warm_up=50, random_state=0).partial_fit(X)
    for rows in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], np.repeat(X, 2, axis=1)[:, ::2]):
        model = hw.GaussianMixture(2, covariance_type=kind, warm_up=50, random_state=0).partial_fit(rows)
        assert_same_model(model, wanted)
        np.testing.assert_array_equal(model.score_samples(rows), wanted.score_samples(X))


def test_a_frame_after_an_array_warns():
    X, _ = simulate("full", 200)
    model = hw.GaussianMixture(2, random_state=0).partial_fit(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        model.partial_fit(pd.DataFrame(X, columns=["a", "b"]))
    assert not hasattr(model, "feature_names_in_")


# Predictive densities and credible intervals


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 2])
def test_the_predictive_density_integrates_to_one(kind, width):
    X = simulate("full", 40)[0][:, :width]
    model = hw.GaussianMixture(2, covariance_type=kind, random_state=0).partial_fit(X)
    u = np.linspace(-15.0, 15.0, 60_001 if width == 1 else 901)
    axis, jacobian = np.sinh(u) + 1.0, np.cosh(u)
    grid = np.stack(np.meshgrid(*[axis] * width, indexing="ij"), axis=-1).reshape(-1, width)
    density = np.exp(model.predictive_score_samples(grid)).reshape([len(u)] * width)
    for _ in range(width):
        density = np.trapezoid(density * jacobian, u, axis=-1)
    np.testing.assert_allclose(density, 1.0, rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_predictive_density_has_heavy_tails_that_rows_make_light(kind):
    X, _ = simulate(kind, 30_000)
    far = MEANS + np.array([12.0, 0.0])
    few = hw.GaussianMixture(3, covariance_type=kind, random_state=0).partial_fit(X[:40])
    assert np.all(few.predictive_score_samples(far) > few.score_samples(far) + 1.0)
    many = hw.GaussianMixture(3, covariance_type=kind, random_state=0).partial_fit(X)
    gap = np.abs(many.predictive_score_samples(X[:500]) - many.score_samples(X[:500]))
    assert gap.max() < 0.05 and gap.mean() < 0.002
    assert gap.mean() < 0.1 * np.abs(few.predictive_score_samples(X[:500]) - few.score_samples(X[:500])).mean()


@pytest.mark.parametrize("kind", KINDS)
def test_credible_intervals_hold_the_truth_as_often_as_they_say(kind):
    inside = {"weights": [], "means": [], "variances": []}
    variances = np.diagonal(matrices(kind, COVARIANCES[kind]), axis1=1, axis2=2)
    for seed in range(25):
        X, _ = simulate(kind, 400, seed)
        model = hw.GaussianMixture(3, covariance_type=kind, random_state=0).partial_fit(X)
        intervals, order = model.credible_intervals(0.9), order_of(model.means_)
        assert intervals.level == 0.9
        for name, truth in (("weights", WEIGHTS), ("means", MEANS), ("variances", variances)):
            lower, upper = np.moveaxis(getattr(intervals, name)[order], -1, 0)
            assert lower.shape == truth.shape and np.all(lower < upper)
            inside[name].append((lower < truth) & (truth < upper))
    for name, hits in inside.items():
        assert 0.75 < np.mean(hits) < 0.99, name


@pytest.mark.parametrize("kind", KINDS)
def test_credible_intervals_shrink_as_rows_come_in(kind):
    X, _ = simulate(kind, 6400)
    spans = []
    for n in (400, 6400):
        intervals = hw.GaussianMixture(3, covariance_type=kind, random_state=0).partial_fit(X[:n]).credible_intervals(0.8)
        shapes = [(3, 2), (3, 2, 2), (3, 2, 2)]
        ends = [intervals.weights, intervals.means, intervals.variances]
        assert [end.shape for end in ends] == shapes
        spans.append([np.ptp(end, axis=-1).mean() for end in ends])
    np.testing.assert_allclose(np.array(spans[0]) / spans[1], 4.0, rtol=0.3)  # as the root of the rows
    wide, narrow = (
        hw.GaussianMixture(3, covariance_type=kind, random_state=0).partial_fit(X).credible_intervals(level).means
        for level in (0.99, 0.5)
    )
    assert np.all(wide[..., 0] < narrow[..., 0]) and np.all(wide[..., 1] > narrow[..., 1])


def test_the_level_of_credible_intervals_is_checked():
    model = hw.GaussianMixture(1).partial_fit(np.eye(2))
    np.testing.assert_array_equal(model.credible_intervals().weights, [[1.0, 1.0]])  # a single weight is known
    for level in (0.0, 1.0, -0.5, 90, np.nan):
        with pytest.raises(ValueError, match="level must lie between 0 and 1, got"):
            model.credible_intervals(level)


# Samples


@pytest.mark.parametrize("kind", KINDS)
def test_samples(kind):
    model = hw.GaussianMixture(3, covariance_type=kind, random_state=0).fit(simulate(kind, 3000)[0])
    X, components = model.sample(60_000)
    assert X.shape == (60_000, 2) and components.shape == (60_000,)
    np.testing.assert_array_equal(components, np.sort(components))
    np.testing.assert_allclose(np.bincount(components) / 60_000, model.weights_, atol=0.01)
    covariances = matrices(kind, model.covariances_)
    for k in range(3):
        np.testing.assert_allclose(X[components == k].mean(axis=0), model.means_[k], atol=0.05)
        np.testing.assert_allclose(np.cov(X[components == k].T), covariances[k], atol=0.06)
    again, _ = model.sample(60_000)
    np.testing.assert_array_equal(X, again)
    other, _ = clone(model).set_params(random_state=1).fit(simulate(kind, 3000)[0]).sample(60_000)
    assert np.abs(X - other).max() > 0.1
    one, component = model.sample()
    assert one.shape == (1, 2) and component.shape == (1,)
    for wrong in (0, -1, 2.7, "3"):
        with pytest.raises(ValueError, match="Invalid value for 'n_samples'"):
            model.sample(wrong)


# The conventions of scikit-learn


def test_fit_predict():
    X, _ = simulate("full", 600)
    labels = hw.GaussianMixture(3, random_state=0).fit_predict(X)
    np.testing.assert_array_equal(labels, hw.GaussianMixture(3, random_state=0).fit(X).predict(X))


def test_a_warm_start_goes_on():
    X, _ = simulate("full", 1500, seed=3)
    model = hw.GaussianMixture(3, algorithm="em", max_iter=2, tol=0.0, warm_start=True, random_state=0, init_params="random")
    with unconverged():
        bounds = [model.fit(X).lower_bound_ for _ in range(5)]
        at_once = clone(model).set_params(max_iter=10).fit(X)
        cold = clone(model).set_params(warm_start=False)
        assert cold.fit(X).lower_bound_ == cold.fit(X).lower_bound_ == bounds[0]
    assert np.all(np.diff(bounds) > 0.0)
    np.testing.assert_allclose(bounds[-1], at_once.lower_bound_)
    assert_same_model(model, at_once)


def test_a_second_fit_forgets_the_first():
    X, _ = simulate("full", 500)
    model = hw.GaussianMixture(3, random_state=0).fit(X + 100.0)
    assert_same_model(model.fit(X), hw.GaussianMixture(3, random_state=0).fit(X))
    assert model.fit(X[:, :1]).n_features_in_ == 1
    model.fit(pd.DataFrame(X, columns=["a", "b"]))
    assert not hasattr(model.fit(X), "feature_names_in_")


def test_n_init_keeps_the_best():
    X = np.random.default_rng(0).normal(size=(400, 3)) ** 3
    options = {"algorithm": "em", "init_params": "random_from_data", "max_iter": 30}
    with unconverged():
        singles = [hw.GaussianMixture(5, random_state=seed, **options).fit(X).lower_bound_ for seed in range(6)]
        best = hw.GaussianMixture(5, random_state=0, n_init=6, **options).fit(X)
    assert best.lower_bound_ == max(singles) > min(singles)


def test_random_state_may_be_a_generator_of_the_old_kind():
    X, _ = simulate("full", 500)
    one, other = (hw.GaussianMixture(3, random_state=np.random.RandomState(4)).fit(X) for _ in range(2))
    assert_same_model(one, other, rtol=0.0, atol=0.0)
    assert np.abs(one.sample(5)[0] - one.sample(5)[0]).max() > 0.0


def test_parameters_clones_and_pickles():
    X, _ = simulate("full", 500)
    model = hw.GaussianMixture(3, algorithm=hw.OnlineEM(decay=0.7), covariance_type="diag", random_state=0)
    assert model.get_params()["algorithm"] == hw.OnlineEM(decay=0.7)
    model.partial_fit(X)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copied.predict(X)
    loaded = pickle.loads(pickle.dumps(model))
    assert_same_model(loaded, model, rtol=0.0, atol=0.0)
    assert_same_model(loaded.partial_fit(X), model.partial_fit(X), rtol=0.0, atol=0.0)
    assert model.set_params(n_components=2).n_components == 2
    with pytest.raises(ValueError, match="Invalid parameter 'components'"):
        model.set_params(components=2)


def test_everything_asks_to_be_fitted_first():
    X, model = np.eye(2), hw.GaussianMixture(2)
    for name in ("score_samples", "score", "predict", "predict_proba", "predictive_score_samples", "bic", "aic"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(model, name)(X)
    for call in (model.sample, model.credible_intervals, model.branch):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()
    for name in ("weights_", "means_", "covariances_", "precisions_", "n_samples_seen_", "weight_concentration_"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(model, name)


def test_a_grid_search_finds_the_number_of_components():
    X, _ = simulate("full", 900)
    search = GridSearchCV(hw.GaussianMixture(random_state=0), {"n_components": [1, 2, 3]}, cv=3).fit(X)
    assert search.best_params_ == {"n_components": 3}
    assert search.best_estimator_.means_.shape == (3, 2)


def test_a_pipeline():
    X, _ = simulate("full", 900)
    pipeline = make_pipeline(StandardScaler(), hw.GaussianMixture(3, random_state=0)).fit(X)
    np.testing.assert_allclose(pipeline.score(X), true_log_density("full", X).mean() + np.log(X.std(axis=0)).sum(), atol=0.05)
    assert pipeline.predict_proba(X).shape == (900, 3)


@pytest.mark.parametrize("kind", [kind if kind == "full" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS])
def test_the_checks_of_scikit_learn(kind):
    from sklearn.utils import estimator_checks

    # With one component nothing is drawn at the start, so there is no excuse.
    for k, expected in ((1, {}), (2, EXPECTED_FAILURES)):
        model = hw.GaussianMixture(k, covariance_type=kind)
        results = estimator_checks.check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
        assert len(results) > 40
        assert [(result["check_name"], str(result["exception"])) for result in results if result["status"] == "failed"] == []


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_laws_and_the_checks_together():
    check_estimator(hw.GaussianMixture())


# Settings


@pytest.mark.parametrize(("word", "twin"), [("em", "online-em"), ("vb", "online-vb")])
def test_a_batch_algorithm_names_its_online_twin(word, twin):
    X, _ = simulate("full", 100)
    model = hw.GaussianMixture(2, algorithm=word)
    for call in (model.partial_fit, model.update, lambda X: model.learn_one(X[0])):
        with pytest.raises(ValueError, match=f"algorithm '{word}' needs all rows at once: call fit, .*'{twin}'"):
            call(X)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_an_unknown_algorithm_lists_the_legal_ones():
    with pytest.raises(ValueError, match="algorithm must be one of") as caught:
        hw.GaussianMixture(algorithm="gibbs").fit(np.eye(2))
    for word in (*WORDS, "gibbs"):
        assert repr(word) in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hw.OnlineEM(decay=0.0), "decay must be greater than 0 and at most 1, got 0.0"),
        (lambda: hw.OnlineEM(decay=1.5), "decay must be greater than 0 and at most 1, got 1.5"),
        (lambda: hw.OnlineVB(batch_size=0), "batch_size must be 'auto' or an integer of at least 1, got 0"),
        (lambda: hw.Auto(batch_size="large"), "batch_size must be 'auto' or an integer of at least 1, got 'large'"),
        (lambda: hw.QuasiBayes(batch_size=2.5), "batch_size must be 'auto' or an integer of at least 1, got 2.5"),
        (lambda: hw.SatoEM(batch_size=True), "batch_size must be 'auto' or an integer of at least 1, got True"),
        (lambda: hw.BayesianOnlineEM(estimate="median"), "estimate must be 'mean' or 'mode', got 'median'"),
        (lambda: hw.OnlineEM(decay="slow"), "decay must be"),
        (lambda: hw.SatoEM(rate="slow"), "rate must be"),
        (lambda: hw.SatoEM(offset=-3.0), "offset"),
        (lambda: hw.OnlineEM(offset="soon"), "offset"),
    ],
)
def test_an_algorithm_refuses_bad_values(make, words):
    with pytest.raises(ValueError) as caught:
        make()
    assert words in str(caught.value)


def test_a_batch_size_may_be_an_integer_of_numpy():
    assert hw.OnlineVB(batch_size=np.int64(5)).batch_size == 5


def test_algorithm_objects_are_settings():
    X, _ = simulate("full", 2000)
    same = hw.GaussianMixture(3, algorithm=hw.OnlineEM(), random_state=0).partial_fit(X)
    assert_same_model(same, hw.GaussianMixture(3, algorithm="online-em", random_state=0).partial_fit(X))
    other = hw.GaussianMixture(3, algorithm=hw.OnlineEM(decay=0.9, batch_size=50), warm_up=300, random_state=0)
    word = hw.GaussianMixture(3, algorithm="online-em", warm_up=300, random_state=0)
    assert np.abs(other.partial_fit(X).means_ - word.partial_fit(X).means_).max() > 1e-6


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mean_prior": [0.0]}, "mean_prior"),
        ({"mean_prior": [0.0, np.nan]}, "mean_prior"),
        ({"mean_prior": ["a", "b"]}, "mean_prior"),
        ({"covariance_prior": [[1.0, 0.0], [0.0, np.nan]]}, "covariance_prior"),
        ({"covariance_prior": np.ones(3)}, "covariance_prior"),
        ({"covariance_prior": np.eye(3)}, "covariance_prior"),
        ({"covariance_prior": [[1.0, 2.0], [2.0, 1.0]]}, "covariance_prior"),
        ({"covariance_prior": np.eye(2), "covariance_type": "diag"}, "covariance_prior"),
        ({"covariance_prior": [1.0, -1.0], "covariance_type": "diag"}, "covariance_prior"),
        ({"covariance_prior": np.ones(2), "covariance_type": "spherical"}, "covariance_prior"),
        ({"degrees_of_freedom_prior": 0.5}, "degrees_of_freedom_prior"),
        ({"weights_init": [1.0]}, "weights"),
        ({"weights_init": [0.7, 0.7]}, "normalized"),
        ({"weights_init": [1.5, -0.5]}, "[0, 1]"),
        ({"means_init": np.zeros((2, 3))}, "means"),
        ({"means_init": [[0.0, np.inf], [1.0, 1.0]]}, "means"),
        ({"precisions_init": np.eye(2)}, "full precision"),
        ({"precisions_init": np.stack([-np.eye(2)] * 2)}, "positive-definite"),
        ({"precisions_init": -np.ones((2, 2)), "covariance_type": "diag"}, "positive"),
        ({"n_components": 0}, "n_components"),
        ({"covariance_type": "banded"}, "covariance_type"),
        ({"half_life": 0.0}, "half_life"),
        ({"warm_up": 0}, "warm_up"),
        ({"warm_up": "never"}, "warm_up"),
        ({"n_threads": 0}, "n_threads"),
        ({"algorithm": 3}, "algorithm"),
        ({"weight_concentration_prior": 0.0}, "weight_concentration_prior"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, words):
    X, _ = simulate("full", 50)
    for way in ("fit", "partial_fit"):
        model = hw.GaussianMixture(**{"n_components": 2, **settings})
        with pytest.raises(ValueError) as caught:
            getattr(model, way)(X)
        assert words in str(caught.value) and "\n" not in str(caught.value)
        with pytest.raises(NotFittedError):
            model.predict(X)


def test_a_message_about_weights_names_its_smallest_and_largest_rightly():
    model = hw.GaussianMixture(2, weights_init=[1.5, -0.5])
    with pytest.raises(ValueError, match=r"from -0\.50000 to 1\.50000"):
        model.fit(np.eye(2))


@pytest.mark.parametrize("algorithm", ["em", "soem", "online-em", hw.BayesianOnlineEM(estimate="mode")])
def test_modes_need_a_concentration_of_one(algorithm):
    X, _ = simulate("full", 100)
    model = hw.GaussianMixture(2, algorithm=algorithm, weight_concentration_prior=0.5, random_state=0)
    with pytest.raises(ValueError, match=r"weight_concentration_prior must be at least 1 for algorithm '.*', .* got 0\.5"):
        model.fit(X)


@pytest.mark.parametrize("algorithm", ["boem", "vb", "online-vb", "quasi-bayes"])
def test_the_others_take_a_concentration_below_one(algorithm):
    X, _ = simulate("full", 1500)
    model = hw.GaussianMixture(6, algorithm=algorithm, weight_concentration_prior=0.01, random_state=0).fit(X)
    assert_sound(model, X)
    np.testing.assert_allclose(model.weight_concentration_.sum(), 1500.06)


@pytest.mark.parametrize("kind", KINDS)
def test_a_strong_prior_is_heard(kind):
    X, _ = simulate(kind, 2000)
    scale = {"full": np.eye(2), "tied": np.eye(2), "diag": np.ones(2), "spherical": 1.0}[kind]
    model = hw.GaussianMixture(
        1, covariance_type=kind, mean_prior=[50.0, 50.0], mean_precision_prior=1e6, degrees_of_freedom_prior=1e9,
        covariance_prior=scale * 1e9, random_state=0,
    ).partial_fit(X)  # fmt: skip
    np.testing.assert_allclose(model.means_, [[50.0, 50.0]], rtol=0.01)
    np.testing.assert_allclose(model.covariances_, COVARIANCES[kind][:1] * 0.0 + scale if kind != "tied" else scale, atol=0.05)


def test_settings_that_change_between_chunks_are_checked_again():
    X, _ = simulate("full", 300)
    model = hw.GaussianMixture(2, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="half_life"):
        model.set_params(half_life=-1.0).partial_fit(X)
    assert model.n_samples_seen_ == 300


def test_a_model_that_has_learned_cannot_change_its_shape():
    # In another process, because kernels that are given arrays of another shape write where they should not.
    code = """
import itertools, numpy as np, headwater as hw
X = np.random.default_rng(0).normal(size=(300, 2))
changes = (("covariance_type", "diag"), ("covariance_type", "tied"), ("n_components", 3), ("n_components", 1))
for way, (name, value), warm_up in itertools.product(("partial_fit", "fit"), changes, (50, 1000)):
    model = hw.GaussianMixture(2, warm_up=warm_up, warm_start=True, random_state=0)
    getattr(model, way)(X)
    try:
        getattr(model.set_params(**{name: value}), way)(X)
    except ValueError as error:
        assert name in str(error) and len(str(error).splitlines()) == 1, error
        assert model.n_samples_seen_ == 300
        print(way)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stdout.split() == ["partial_fit"] * 8 + ["fit"] * 8, result.stderr[-500:]


def test_the_bound_of_an_online_fit_is_a_score():
    X, _ = simulate("full", 1000)
    for warm_up in (2000, 200):
        model = hw.GaussianMixture(3, algorithm="online-vb", warm_up=warm_up, random_state=0).fit(X)
        assert model.converged_ and model.n_iter_ == 1
        assert abs(model.lower_bound_ - model.score(X)) < 0.2


def test_verbose_prints_the_passes(capsys):
    X, _ = simulate("full", 400)
    hw.GaussianMixture(3, verbose=2, verbose_interval=1, random_state=0).fit(X)
    assert "pass 1\t objective" in capsys.readouterr().out
    hw.GaussianMixture(3, random_state=0).fit(X)
    assert capsys.readouterr().out == ""


# Merging


class Renamed(hw.GaussianMixture):
    """Another class of model."""


def test_merged_branches_are_close_to_one_stream():
    X, _ = simulate("full", 16_000)
    base = hw.GaussianMixture(3, random_state=0).partial_fit(X[:4000])
    parts = [base.branch().partial_fit(X[4000 + 4000 * part : 8000 + 4000 * part]) for part in range(3)]
    merged = hw.merge(iter(parts))
    together = hw.GaussianMixture(3, random_state=0).partial_fit(X)
    assert merged.n_samples_seen_ == together.n_samples_seen_ == 16_000
    np.testing.assert_allclose(merged.weight_concentration_.sum(), together.weight_concentration_.sum())
    assert_same_model(merged, together, rtol=0.0, atol=0.01)
    assert abs(merged.score(X) - together.score(X)) < 1e-4
    assert [part.n_samples_seen_ for part in (base, *parts)] == [4000, 8000, 8000, 8000]
    assert merged.partial_fit(X).n_samples_seen_ == 32_000
    assert type(merged) is hw.GaussianMixture


def test_a_branch_leaves_its_model_alone():
    X, _ = simulate("full", 3000)
    model = hw.GaussianMixture(3, random_state=0).partial_fit(X[:500])  # still warming up
    before = model.means_
    branch = model.branch()
    assert_same_model(branch, model)
    branch.partial_fit(X[500:] + 5.0)
    np.testing.assert_array_equal(model.means_, before)
    assert (model.n_samples_seen_, branch.n_samples_seen_) == (500, 3000)


def test_models_that_do_not_belong_together_are_not_merged():
    X, _ = simulate("full", 300)
    wide = np.hstack([X, X])

    def make(rows=X, **settings):
        return hw.GaussianMixture(2, **{"warm_up": 100, "random_state": 0, **settings}).partial_fit(rows)

    base = make()
    renamed = Renamed(2, warm_up=100, random_state=0).partial_fit(X)
    for models, words in [
        ([], "models must hold at least one model"),
        ([base, make(wide)], "one width, got 2 and 4 columns"),
        ([base, renamed], "one class, got GaussianMixture and Renamed"),
        ([base, make(algorithm="online-em")], "one algorithm"),
        ([base, make(covariance_type="diag")], "one covariance_type, got 'full' and 'diag'"),
        ([base, make(half_life=50.0)], "one half_life, got None and 50.0"),
    ]:
        with pytest.raises(ValueError, match=words) as caught:
            hw.merge(models)
        assert "\n" not in str(caught.value)
    with pytest.raises(NotFittedError):
        hw.merge([base, hw.GaussianMixture(2)])
    for models in ([base, {}], [{}, base]):
        with pytest.raises(TypeError, match="headwater models, got dict"):
            hw.merge(models)


def test_models_of_other_priors_are_not_merged():
    X, _ = simulate("full", 300)
    one, other = (
        hw.GaussianMixture(1, warm_up=100, mean_precision_prior=strength, random_state=0).partial_fit(X)
        for strength in (1.0, 1000.0)
    )
    with pytest.raises(ValueError, match="models must have one mean_precision_prior"):
        hw.merge([one, other])


def test_a_model_is_not_merged_with_itself():
    model = hw.GaussianMixture(2, warm_up=100, random_state=0).partial_fit(simulate("full", 300)[0])
    with pytest.raises(ValueError, match="models must"):
        hw.merge([model, model])


def test_merging_one_model_is_a_copy():
    X, _ = simulate("full", 3000)
    model = hw.GaussianMixture(3, random_state=0).partial_fit(X)
    merged = hw.merge([model])
    assert_same_model(merged, model)
    merged.partial_fit(X + 1.0)
    assert model.n_samples_seen_ == 3000


# How it looks


def test_repr():
    X, _ = simulate("full", 3000)
    model = hw.GaussianMixture(3, random_state=0)
    assert repr(model) == "GaussianMixture(n_components=3, random_state=0)"
    model.partial_fit(X[:1])
    assert "1 row of 2 columns seen (warming up)" in repr(model)
    model.partial_fit(pd.DataFrame(X[1:], columns=["speed", "depth"]).to_numpy())
    text = repr(model)
    first = "GaussianMixture(n_components=3, random_state=0)\n3,000 rows of 2 columns seen; components by weight"
    assert text.startswith(first) and "x0" in text and "x1" in text
    heaviest = int(model.weights_.argmax())
    cells = text.splitlines()[3].split()
    assert cells == [str(heaviest), f"{model.weights_[heaviest]:.3f}", *[f"{value:.4g}" for value in model.means_[heaviest]]]


def test_repr_of_many_columns_and_components():
    X = np.random.default_rng(0).normal(size=(100, 6))
    frame = pd.DataFrame(X, columns=[f"column{index}" for index in range(6)])
    lines = repr(hw.GaussianMixture(10, random_state=0).partial_fit(frame)).splitlines()
    assert "column3" in lines[2] and "column4" not in lines[2] and "..." in lines[2]
    assert len(lines) == 3 + 8 + 2 and lines[-2].split()[0] == "..." and lines[-1].endswith("findings in health_")


def test_html():
    X, _ = simulate("full", 300)
    model = hw.GaussianMixture(3, random_state=0)
    assert "GaussianMixture" in model._repr_html_() and "components by weight" not in model._repr_html_()
    html = model.fit(pd.DataFrame(X, columns=["speed", "<depth>"]))._repr_html_()
    assert "300 rows of 2 columns seen" in html and "<table>" in html and "<th>speed</th>" in html
    assert "&lt;depth&gt;" in html and "<depth>" not in html


# The package


def test_importing_headwater_is_cheap():
    code = "import sys, headwater; print(sorted({'numba', 'sklearn', 'scipy', 'rich', 'matplotlib'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_public_name_can_be_had():
    for name in hw.__all__:
        assert getattr(hw, name).__name__.split(".")[-1] == name
        assert name in dir(hw)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hw.nothing  # noqa: B018


def test_the_estimator_is_a_streaming_estimator():
    assert issubclass(hw.GaussianMixture, StreamingEstimator)
