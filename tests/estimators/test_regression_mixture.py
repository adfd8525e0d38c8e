"""RegressionMixture: least squares, plain EM, recovery of the truth, answers and errors."""

import pickle
import warnings

import numpy as np
import pytest
from naive import regression as naive_regression
from scipy.optimize import linear_sum_assignment
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

import headwater as hw
from headwater.checks import check_estimator
from headwater.models.planes import plane_groups

ALGORITHMS = ["auto", "em", "soem", "boem", "online-em", "simulated-em", "vb", "online-vb", "quasi-bayes"]
gatings = pytest.mark.parametrize("gating", ["fixed", "input"])


def crossing(n, k=2, d=1, noise=0.3, weights=None, seed=0):
    """Return rows of K crossing regressions, and the true (intercept, slopes) of each."""
    rng = np.random.default_rng(seed)
    truth = 2.0 * rng.normal(size=(k, d + 1)) / np.sqrt(max(1.0, d / 2))
    components = rng.choice(k, size=n, p=weights)
    X = rng.normal(size=(n, d))
    y = truth[components, 0] + (X * truth[components, 1:]).sum(axis=1) + noise * rng.normal(size=n)
    return X, y, truth, components


def error(model, truth):
    """Return the largest distance of a regression from its counterpart in the truth."""
    found = np.column_stack([model.intercept_, model.coef_])
    apart = np.linalg.norm(found[:, None] - truth, axis=2)
    return apart[linear_sum_assignment(apart)].max()


@pytest.fixture(scope="module")
def rows():
    return crossing(3000)[:2]


# One component


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_one_component_is_least_squares(fit_intercept, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4)) + 3.0
    y, weights = X @ [1.0, -2.0, 0.5, 0.0] + 7.0 + rng.normal(size=500), rng.uniform(0.1, 2.0, 500) if weighted else None
    model = hw.RegressionMixture(algorithm="em", fit_intercept=fit_intercept).fit(X, y, weights)
    wanted = LinearRegression(fit_intercept=fit_intercept).fit(X, y, weights)
    np.testing.assert_allclose(model.coef_[0], wanted.coef_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.intercept_[0], wanted.intercept_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.predict(X), wanted.predict(X), rtol=1e-10, atol=1e-10)
    assert model.score(X, y) == pytest.approx(wanted.score(X, y), rel=1e-12)
    noise = np.average((y - wanted.predict(X)) ** 2, weights=weights)
    np.testing.assert_allclose(model.noise_variance_, noise, rtol=1e-10)


@pytest.mark.parametrize("algorithm", ["auto", "em", "online-vb", "boem"])
def test_rows_far_from_zero_lose_no_digits(algorithm):
    X, y = crossing(4000, 2, 2, seed=3)[:2]
    options = {"algorithm": algorithm, "random_state": 0, "warm_up": 1000}
    near = hw.RegressionMixture(2, **options).fit(X, y)
    far = hw.RegressionMixture(2, **options).fit(X + 1e8, y - 1e8)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-5)
    np.testing.assert_allclose(far.noise_variance_, near.noise_variance_, rtol=1e-5)


@pytest.mark.parametrize("algorithm", ["auto", "em", "soem", "vb", "quasi-bayes"])
def test_units_change_nothing(algorithm):
    X, y = crossing(1500, 2, 2, seed=3)[:2]
    options = {"algorithm": algorithm, "random_state": 0, "warm_up": 500}
    plain = hw.RegressionMixture(2, **options).fit(X, y)
    other = hw.RegressionMixture(2, **options).fit(X * [1e-3, 1e4], y * 1e5)
    np.testing.assert_allclose(other.coef_ * [1e-3, 1e4] / 1e5, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(other.noise_variance_ / 1e10, plain.noise_variance_, rtol=1e-6)


def test_columns_that_depend_on_one_another_are_no_trouble():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 1))
    y = 3.0 * x[:, 0] + 1.0 + 0.1 * rng.normal(size=300)
    X = np.hstack([x, 2.0 * x, np.full((300, 1), 5.0), x])
    for algorithm in ALGORITHMS:
        model = hw.RegressionMixture(algorithm=algorithm, random_state=0).fit(X, y)
        assert np.abs(model.coef_).max() < 10.0
        np.testing.assert_allclose(model.predict(X), LinearRegression().fit(x, y).predict(x), atol=0.02)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n", [2, 3, 8])
def test_few_rows_without_noise_keep_a_finite_noise(algorithm, n):
    x = np.arange(float(n))[:, None]
    y = np.where(np.arange(n) % 2, x[:, 0], 5.0 - x[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = hw.RegressionMixture(2, algorithm=algorithm, random_state=0).fit(x, y)
    assert (model.noise_variance_ >= 0.9e-6 * y.var()).all()
    assert np.isfinite(model.score_samples(x, y)).all()
    assert np.abs(model.predict(x)).max() < 100.0


def test_a_constant_target_is_learned():
    x = np.random.default_rng(0).normal(size=(200, 2))
    for algorithm in ALGORITHMS:
        model = hw.RegressionMixture(2, algorithm=algorithm, random_state=0).fit(x, np.full(200, 7.0))
        np.testing.assert_allclose(model.predict(x), 7.0, atol=1e-6)


# Many


def test_em_is_plain_em():
    X, y, truth, _ = crossing(800, 3, 2)
    start = {"coef_init": truth[:, 1:] + 0.3, "intercept_init": truth[:, 0], "weights_init": [0.2, 0.3, 0.5]}
    found = [hw.RegressionMixture(3, algorithm="em", max_iter=passes, tol=0.0, random_state=0, **start) for passes in (1, 11)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, last = (model.fit(X, y) for model in found)
    begin = (X, y, first.coef_, first.intercept_, first.noise_variance_, first.weights_)
    beta, noise, weights, _ = naive_regression.em(*begin, 10)
    np.testing.assert_allclose(last.coef_, beta[:, 1:], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(last.intercept_, beta[:, 0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(last.noise_variance_, noise, rtol=1e-8)
    np.testing.assert_allclose(last.weights_, weights, rtol=1e-8)
    assert last.lower_bound_ == pytest.approx(naive_regression.em(*begin, 11)[3], rel=1e-9)


@pytest.mark.covering("algorithm")
@gatings
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_finds_the_truth(algorithm, gating):
    X, y, truth, _ = crossing(6000, 2, 2, weights=[0.3, 0.7])
    model = hw.RegressionMixture(2, algorithm=algorithm, gating=gating, random_state=0).fit(X, y)
    assert error(model, truth) < 0.04
    np.testing.assert_allclose(np.sort(model.weights_), [0.3, 0.7], atol=0.03)
    np.testing.assert_allclose(model.noise_variance_, 0.09, rtol=0.15)


@pytest.mark.parametrize(("k", "d", "weights"), [(4, 1, None), (6, 3, None), (4, 10, None), (3, 1, [0.03, 0.47, 0.5])])
def test_starts_find_regressions_that_cross(k, d, weights):
    X, y, truth, _ = crossing(6000, k, d, noise=0.15, weights=weights, seed=1)
    model = hw.RegressionMixture(k, random_state=0).partial_fit(X, y)
    assert error(model, truth) < 0.12


def test_gating_by_input_holds_regressions_where_their_inputs_are():
    rng = np.random.default_rng(0)
    x = rng.uniform(-4.0, 4.0, size=(4000, 1))
    y = np.abs(x[:, 0]) + 0.1 * rng.normal(size=4000)
    gated, fixed = (hw.RegressionMixture(2, gating=gating, random_state=0).fit(x, y) for gating in ("input", "fixed"))
    assert gated.score(x, y) > 0.95 > 0.5 > fixed.score(x, y)
    np.testing.assert_allclose(np.sort(gated.coef_[:, 0]), [-1.0, 1.0], atol=0.1)
    assert gated.input_means_.shape == (2, 1) and gated.input_covariances_.shape == (2, 1, 1)
    assert fixed.input_means_ is None
    # The joint log-density minus that of the inputs.
    proba = gated.predict_proba(x)
    means, noise = gated.predict_component_means(x), gated.noise_variance_
    wanted = np.log((proba * np.exp(-0.5 * (y[:, None] - means) ** 2 / noise) / np.sqrt(2 * np.pi * noise)).sum(axis=1))
    np.testing.assert_allclose(gated.score_samples(x, y), wanted, rtol=1e-8, atol=1e-9)


def test_the_density_of_the_target_integrates_to_one(rows):
    X, y = rows
    grid = np.linspace(-15.0, 15.0, 2001)
    for gating in ("fixed", "input"):
        model = hw.RegressionMixture(2, gating=gating, random_state=0).partial_fit(X[:500], y[:500])
        for scores in (model.score_samples, model.predictive_score_samples):
            density = np.exp(scores(np.full((2001, 1), 0.7), grid))
            assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-3)


def test_labels_name_the_components():
    X, y, truth, components = crossing(2000, 3, 2, seed=2)
    labels = np.where(np.arange(2000) % 10 == 0, components, -1)
    model = hw.RegressionMixture(3, random_state=0).fit(X, y, labels=labels)
    np.testing.assert_allclose(np.column_stack([model.intercept_, model.coef_]), truth, atol=0.15)
    assert np.mean(model.predict_components(X, y) == components) > 0.75


@pytest.mark.parametrize("chance", [False, True])
def test_groups_on_planes_are_found_and_labels_kept(chance):
    X, y, _, components = crossing(600, 3, 2, noise=0.01, seed=5)
    rows, weights = np.column_stack([np.ones(600), X, y]), np.ones(600)
    labels = np.where(np.arange(600) < 30, components, -1)
    labels[:3] = (components[:3] + 1) % 3  # wrong ones
    runs = [plane_groups(rows, weights, labels, 3, np.random.default_rng(seed), 20, chance) for seed in range(4)]
    groups, left = min(runs, key=lambda run: run[1])
    np.testing.assert_array_equal(groups[:30], labels[:30])
    apart = np.array([[np.mean(groups[30:][components[30:] == a] == b) for b in range(3)] for a in range(3)])
    assert apart[linear_sum_assignment(-apart)].min() > 0.9
    assert left < 0.3 * 600


def test_many_inputs_are_no_trouble():
    X, y, truth, _ = crossing(4000, 2, 40, noise=0.2, seed=6)
    assert error(hw.RegressionMixture(2, random_state=0).fit(X, y), truth) < 0.1


# Answers


@gatings
def test_answers_have_the_shapes_they_should(rows, gating):
    X, y = rows
    model = hw.RegressionMixture(2, gating=gating, random_state=0).partial_fit(X, y)
    assert is_regressor(model)
    assert model.n_features_in_ == 1
    mean, std = model.predict(X, return_std=True)
    shares, means = model.predict_proba(X), model.predict_component_means(X)
    np.testing.assert_allclose(mean, (shares * means).sum(axis=1))
    assert mean.shape == std.shape == (len(X),)
    draws = np.array([model.set_params(random_state=seed).sample(X[:200])[0] for seed in range(300)])
    assert np.abs((draws.mean(axis=0) - mean[:200]) / (std[:200] / np.sqrt(300))).mean() < 1.1
    np.testing.assert_allclose(draws.std(axis=0), std[:200], rtol=0.25)
    posterior = model.predict_proba(X, y)
    np.testing.assert_array_equal(model.predict_components(X, y), posterior.argmax(axis=1))
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    weights = np.linspace(0.0, 1.0, len(X))
    assert model.score(X, y, weights) == pytest.approx(r2_score(y, mean, sample_weight=weights))
    assert model.coef_.shape == (2, 1) and model.intercept_.shape == model.noise_variance_.shape == (2,)
    assert model.coef_precision_.shape == (2, 1, 1) and model.degrees_of_freedom_.shape == (2,)
    assert np.isfinite(model.bic(X, y)) and model.n_active_ == 2
    assert "intercept" in repr(model) and "a target" in repr(model)
    assert model.prune(min_weight=0.0).n_components == 2


def test_one_row_at_a_time(rows):
    X, y = rows
    chunk, single = (hw.RegressionMixture(2, warm_up=50, algorithm="online-vb", random_state=0) for _ in range(2))
    chunk.partial_fit(X[:120], y[:120])
    for x, target in zip(X[:120], y[:120], strict=True):
        single.learn_one(x, target)
    np.testing.assert_allclose(single.coef_, chunk.coef_, rtol=1e-8)
    assert single.n_features_in_ == 1
    assert single.score_one(X[5], y[5]) == pytest.approx(chunk.score_samples(X[5:6], y[5:6])[0])
    assert single.predict_one(X[5]) == pytest.approx(chunk.predict(X[5:6])[0])
    named = hw.RegressionMixture(1)
    for x, target in zip(X[:50], y[:50], strict=True):
        named.learn_one({"speed": x[0]}, target)
    assert list(named.feature_names_in_) == ["speed"]
    assert named.predict_one({"speed": 0.5}) == pytest.approx(named.predict_one([0.5]))
    with pytest.raises(ValueError, match="requires y"):
        named.learn_one({"speed": 1.0})


def test_models_that_learned_apart_merge(rows):
    X, y, truth, _ = crossing(9000, 3, 2, noise=0.2, seed=4)
    parts = [hw.RegressionMixture(3, random_state=seed).partial_fit(X[seed::3] + 0.0, y[seed::3]) for seed in range(3)]
    merged = hw.merge(parts)
    assert merged.n_samples_seen_ == 9000
    assert not merged.merge_report_.distant
    assert error(merged, truth) < 0.05
    whole = hw.RegressionMixture(3, random_state=0).partial_fit(X, y)
    assert merged.score_samples(X, y).mean() == pytest.approx(whole.score_samples(X, y).mean(), abs=0.01)
    with pytest.raises(ValueError, match="gating"):
        hw.merge([parts[0], hw.RegressionMixture(3, gating="input", random_state=0).partial_fit(X, y)])


def test_a_start_can_be_shared(rows):
    X, y = rows
    start = hw.RegressionMixture(2, random_state=0).warm_start_from(X[::9], y[::9], weight=0.1)
    parts = [start.branch().partial_fit(X[part::3], y[part::3]) for part in range(3)]
    assert hw.merge(parts).n_samples_seen_ == len(X)


def test_a_stream_that_drifts_is_followed():
    rng = np.random.default_rng(0)
    model = hw.RegressionMixture(1, half_life=300, warm_up=200)
    for slope in (1.0, 3.0):
        x = rng.normal(size=(3000, 1))
        model.partial_fit(x, slope * x[:, 0] + 0.1 * rng.normal(size=3000))
    assert model.coef_[0, 0] == pytest.approx(3.0, abs=0.05)


def test_updates_score_the_target_before_they_learn_it(rows):
    X, y = rows
    for gating in ("fixed", "input"):
        model = hw.RegressionMixture(2, gating=gating, warm_up=500, random_state=0)
        model.update(X[:1000], y[:1000])
        before = model.score_samples(X[1000:1200], y[1000:1200]).mean()
        assert model.update(X[1000:1200], y[1000:1200]).mean() == pytest.approx(before, abs=0.05)


# Input


def test_a_prior_that_is_given_counts(rows):
    X, y = rows
    stiff = hw.RegressionMixture(1, algorithm="em", coef_prior=[9.0], coef_precision_prior=1e9).fit(X, y)
    np.testing.assert_allclose(stiff.coef_, 9.0, atol=1e-3)
    noisy = hw.RegressionMixture(1, algorithm="vb", noise_variance_prior=50.0, degrees_of_freedom_prior=1e7).fit(X, y)
    np.testing.assert_allclose(noisy.noise_variance_, 50.0, rtol=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coef_prior": [1.0, 2.0]}, "coef_prior"),
        ({"coef_init": [[1.0]]}, "coef_init"),
        ({"intercept_init": [1.0, 2.0]}, "intercept_init"),
        ({"gating": "soft"}, "gating"),
        ({"noise_variance_prior": 0.0}, "noise_variance_prior"),
        ({"algorithm": "moment-matching"}, "moment-matching"),
        ({"init_params": "k-means++"}, "init_params"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(rows, options, message):
    with pytest.raises(ValueError, match=message):
        hw.RegressionMixture(2, **options).fit(*rows)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (np.ones(4), "one target per row of X, got 4 targets for 5 rows"),
        (np.ones((5, 2)), r"y should be a 1d array, one target per row: got an array of shape \(5, 2\)"),
        (np.array([0.0, np.nan, 0.0, 0.0, 0.0]), "y contains NaN"),
        (["a", "b", "c", "d", "e"], "y must hold numbers"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused(rows, target, message):
    model = hw.RegressionMixture(2, warm_up=100, random_state=0).partial_fit(*rows)
    before = pickle.dumps(model._state.statistics)
    for method in (model.partial_fit, model.fit, model.update, model.score_samples):
        with pytest.raises(ValueError, match=message):
            method(np.ones((5, 1)), target)
    assert pickle.dumps(model._state.statistics) == before


def test_a_column_is_a_target_with_a_warning(rows):
    X, y = rows
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = hw.RegressionMixture(1, random_state=0).fit(X, y[:, None])
    np.testing.assert_array_equal(model.coef_, hw.RegressionMixture(1, random_state=0).fit(X, y).coef_)


def test_frames_are_taken_and_their_columns_remembered(rows):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"speed": rows[0][:, 0], "load": rows[0][:, 0] ** 2, "wear": rows[1]})
    model = hw.RegressionMixture(2, random_state=0).fit(frame[["speed", "load"]], frame["wear"])
    assert list(model.feature_names_in_) == ["speed", "load"]
    assert "speed" in repr(model)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["load", "speed"]])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("gating", ["fixed", pytest.param("input", marks=pytest.mark.slow)])
def test_scikit_learn_checks_and_laws(gating):
    check_estimator(hw.RegressionMixture(2, gating=gating))
