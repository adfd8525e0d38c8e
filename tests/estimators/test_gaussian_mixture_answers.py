"""Answers of GaussianMixture: scores, frames, predictive densities, intervals, samples, and its repr."""

from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pytest
from gaussian_models import COVARIANCES, KINDS, MEANS, WEIGHTS, assert_same_model, matrices, order_of, simulate
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import headwater as hw
from headwater.core.warm_up import UNKNOWN_ROWS

# Scores of a stream, and single rows


@pytest.mark.parametrize("algorithm", ["auto", "online-vb", "online-em"])
def test_the_prequential_score_approaches_the_score(algorithm):
    X, _ = simulate("full", 16_000)
    model = hw.GaussianMixture(3, algorithm=algorithm, random_state=0)
    scores = np.concatenate([model.update(X[at : at + 500]) for at in range(0, 16_000, 500)])
    assert np.isnan(scores[:UNKNOWN_ROWS]).all() and np.isfinite(scores[UNKNOWN_ROWS:]).all()
    late = X[8000:]
    assert abs(scores[8000:].mean() - model.score(late)) < 0.02
    assert scores[32:200].mean() < scores[8000:].mean() - 0.02  # it has learned something


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
        with pytest.raises(ValueError, match="infinity"):
            call([1.0, np.inf])
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


# Its repr


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
