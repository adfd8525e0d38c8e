"""GaussianMixture keeps the conventions of scikit-learn and checks its settings."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from gaussian_models import (
    COVARIANCES,
    KINDS,
    WORDS,
    assert_same_model,
    assert_sound,
    simulate,
    true_log_density,
    unconverged,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import headwater as hw
from headwater.checks import EXPECTED_FAILURES, check_estimator
from headwater.estimators.base import StreamingEstimator

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


def test_a_start_on_a_plateau_is_left(capsys):
    """Of several starts the best is climbed to the end; one that could not catch up is not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2)) + np.array([[0, 0], [0, 8], [8, 0], [8, 8], [20, 20]])[rng.integers(5, size=900)]
    options = {"algorithm": "em", "tol": 1e-11, "max_iter": 300, "init_params": "random_from_data", "verbose": 1}
    model = hw.GaussianMixture(5, n_init=6, verbose_interval=1, random_state=0, **options).fit(X)
    lines = capsys.readouterr().out.splitlines()
    runs = [index for index, line in enumerate(lines) if not line.startswith("  pass")]
    passes = [int(lines[end - 1].split()[1]) for end in runs[1:]]
    scores = [float(line.split()[3]) for line in lines if line.startswith("  pass")]
    assert np.isclose(model.lower_bound_, max(scores), atol=1e-5)
    assert min(passes) <= 10 < max(passes) and sum(passes) < 6 * 300
    assert model.n_iter_ == max(passes) or model.converged_


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

    # With one component the start is not random, so all checks must pass.
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
        ({"covariance_prior": np.ones(3), "covariance_type": "spherical"}, "covariance_prior"),
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


@pytest.mark.parametrize("way", ["partial_fit", "fit"])
@pytest.mark.parametrize(
    ("name", "value"), [("covariance_type", "diag"), ("covariance_type", "tied"), ("n_components", 3), ("n_components", 1)]
)
def test_a_model_that_has_learned_cannot_change_its_shape(way, name, value):
    """A kernel that gets an array of another shape writes outside of it."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    for warm_up in (50, 1000):
        model = hw.GaussianMixture(2, warm_up=warm_up, warm_start=True, random_state=0)
        getattr(model, way)(X)
        with pytest.raises(ValueError, match=name) as refused:
            getattr(model.set_params(**{name: value}), way)(X)
        assert len(str(refused.value).splitlines()) == 1
        assert model.n_samples_seen_ == 300


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
