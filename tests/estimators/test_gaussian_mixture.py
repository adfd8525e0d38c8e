"""GaussianMixture learns from rows, labels, weights and streams that drift."""

import numpy as np
import pytest
from gaussian_models import (
    COVARIANCES,
    KINDS,
    MEANS,
    WEIGHTS,
    WORDS,
    assert_same_model,
    assert_sound,
    matrices,
    order_of,
    simulate,
    true_log_density,
    unconverged,
)
from sklearn.base import clone
from sklearn.mixture import GaussianMixture as Peer

import headwater as hw

ONLINE = ("auto", "soem", "boem", "online-em", "online-vb", "quasi-bayes")


def streamed(model, X, size=97, **options):
    for at in range(0, len(X), size):
        model.partial_fit(X[at : at + size], **{name: value[at : at + size] for name, value in options.items()})
    return model


# Simulate and recover


@pytest.mark.covering("kind")
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


# Difficult data


@pytest.mark.covering("kind")
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
    # Rounding decides between starts of equal score, so the components may come in another order.
    mine, theirs = order_of(plain.means_), order_of(shifted.means_ - offset)
    np.testing.assert_allclose(shifted.means_[theirs] - offset, plain.means_[mine], atol=1e-6)
    np.testing.assert_allclose(shifted.weights_[theirs], plain.weights_[mine], atol=1e-6)
    covariances = [matrices(kind, model.covariances_) for model in models]
    np.testing.assert_allclose(covariances[1][theirs], covariances[0][mine], atol=1e-6)
    np.testing.assert_allclose(shifted.score_samples(X + offset), plain.score_samples(X), atol=1e-5)


@pytest.mark.covering("kind", "case")
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
    labels = np.random.default_rng(1).integers(3, size=900)  # classes that clustering would not find
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
    model.partial_fit(np.tile([7.0, 2.0], (1500, 1)), labels=np.full(1500, moved))  # where another component is
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
    if algorithm not in ("online-em", "soem"):  # algorithms that forget a little by themselves
        lags = hw.GaussianMixture(2, algorithm=algorithm, warm_up=500, random_state=0)
        np.testing.assert_allclose(np.sort(streamed(lags, rows, 1000).means_.ravel()), [-8.5, 11.5], atol=0.3)


@pytest.mark.covering("algorithm")
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
    assert total < 4.0 + 4.0 * 300.0 / np.log(2.0)  # old rows are forgotten, the prior is not
    assert model.weights_[idle] >= 1.0 / total
    np.testing.assert_allclose(model.means_.max(), 10.0, atol=0.3)
