import pickle

import numpy as np
import pytest
from naive import arrival as naive
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import estimator_checks

import headwater as hw
from headwater import DirectionOfArrival
from headwater.checks import the_state_is_finite
from headwater.core.records import arrays_of
from headwater.models.arrival import Arrival


def circular(angles):
    """Return the steering of seven sensors on a circle with a radius of half a wavelength."""
    places = 2.0 * np.pi * np.arange(7) / 7
    return np.exp(1j * np.pi * np.cos(np.asarray(angles)[:, None] - places))


def snapshots(rows, omega=0.7, power=1.0, noise=0.5, missing=0.4, sensors=8, seed=0, steering=None):
    rng = np.random.default_rng(seed)
    draws = rng.normal(scale=np.sqrt(0.5), size=(rows, sensors + 1, 2)).view(np.complex128)[..., 0]
    a = np.exp(1j * omega * np.arange(sensors)) if steering is None else steering
    X = np.sqrt(power) * draws[:, :1] * a + np.sqrt(noise) * draws[:, 1:]
    X[rng.random(X.shape) < missing] = np.nan
    return X


# What it finds


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("algorithm", ["auto", "em", "online-em", "soem"])
@pytest.mark.parametrize("omega", [0.7, -0.7, 3.0])
def test_a_source_is_found(algorithm, omega):
    model = DirectionOfArrival(algorithm=algorithm, random_state=0).fit(snapshots(20_000, omega))
    loose = 1.5 if algorithm in ("online-em", "soem") else 1.0  # its steps forget some rows
    assert abs(model.omega_ - omega) < loose * 0.004
    assert abs(model.power_ - 1.0) < loose * 0.04
    assert abs(model.noise_variance_ - 0.5) < loose * 0.01
    assert model.angle_ == pytest.approx(np.arcsin(model.omega_ / np.pi))
    np.testing.assert_allclose(model.observed_, 0.6, atol=0.1)
    a = np.exp(1j * model.omega_ * np.arange(8))
    np.testing.assert_allclose(model.covariance_, naive.covariance(a, model.power_, model.noise_variance_), rtol=1e-12)


def test_an_array_of_the_users_own():
    X = snapshots(5000, sensors=7, steering=circular(np.array([2.5]))[0])
    model = DirectionOfArrival(steering=circular, random_state=0).fit(X)
    assert abs(model.angle_ - 2.5) < 4.0 * model.angle_std_ < 0.05
    assert np.isnan(model.omega_)
    assert model.angle_range_ == (-np.pi, np.pi)
    coarse = DirectionOfArrival(steering=circular, angles=np.linspace(0.0, 3.0, 20), random_state=0).fit(X)
    assert coarse.angle_ == pytest.approx(model.angle_, abs=1e-6)


def test_passes_are_those_of_plain_em():
    X = snapshots(60, sensors=5, seed=3)
    grid = np.linspace(-np.pi, np.pi, 400)
    path = list(naive.em(X, lambda x: np.exp(1j * x * np.arange(5)), grid, 6))
    for passes in (1, 6):
        with pytest.warns(ConvergenceWarning):
            model = DirectionOfArrival(algorithm="em", max_iter=passes, tol=0.0).fit(X)
        np.testing.assert_allclose((model.omega_, model.power_, model.noise_variance_), path[passes - 1], rtol=1e-6)
    G = model.covariance_
    assert model.lower_bound_ == pytest.approx(np.mean([naive.log_density(z, G) for z in X]))


def test_the_standard_error_is_the_spread_of_estimates():
    models = [DirectionOfArrival().fit(snapshots(300, 1.0, seed=seed)) for seed in range(150)]
    errors = np.array([model.angle_ - np.arcsin(1.0 / np.pi) for model in models])
    stated = np.array([model.angle_std_ for model in models])
    assert 0.85 < errors.std() / stated.mean() < 1.15
    assert stated.std() < 0.1 * stated.mean()


def test_neighbours_further_apart_than_half_a_wavelength_are_ambiguous():
    """Bearings whose phases differ by 2 pi cannot be told apart; the one nearest to broadside is returned."""
    spacing, bearing = 1.0, np.arcsin(0.8)  # looks like -0.2
    X = snapshots(3000, 2.0 * np.pi * spacing * np.sin(bearing), missing=0.1)
    model = DirectionOfArrival(spacing=spacing).fit(X)
    assert abs(np.sin(model.angle_) + 0.2) < 0.01
    pair = model.spectrum([model.angle_, np.arcsin(np.sin(model.angle_) + 1.0)])
    assert pair[0] == pytest.approx(pair[1], rel=1e-9)


def test_neighbours_closer_than_half_a_wavelength_leave_phases_that_no_source_has():
    X = snapshots(2000, 2.5)  # beyond 2 pi 0.25
    model = DirectionOfArrival(spacing=0.25).fit(X)
    assert abs(model.omega_) <= 0.5 * np.pi + 1e-12
    np.testing.assert_allclose(
        DirectionOfArrival(spacing=0.25).fit(snapshots(5000, -0.7)).angle_, np.arcsin(-1.4 / np.pi), atol=0.01
    )


def test_a_moving_source_is_followed():
    """The estimate lags by half_life / ln 2 rows, and by more if sensors are missing, which old parameters fill in."""
    model, fixed = (
        DirectionOfArrival(half_life=half_life, algorithm=hw.Auto(batch_size=100), warm_up=200) for half_life in (500, None)
    )
    for step, omega in enumerate(np.linspace(-1.0, 1.0, 40)):
        for one in (model, fixed):
            one.partial_fit(snapshots(500, omega, seed=step))
    assert abs(model.omega_ - 1.0) < 0.15
    assert abs(fixed.omega_ - 1.0) > 0.5


# What it answers


@pytest.fixture(scope="module")
def model():
    return DirectionOfArrival(tol=1e-13, max_iter=500, random_state=0).fit(snapshots(3000))


def test_answers_are_those_of_dense_matrices(model):
    X = snapshots(50, seed=5)
    X[7] = np.nan
    G, a = model.covariance_, np.exp(1j * model.omega_ * np.arange(8))
    np.testing.assert_allclose(model.score_samples(X), [naive.log_density(z, G) for z in X], rtol=1e-9, atol=1e-12)
    assert model.score_samples(X)[7] == 0.0
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    np.testing.assert_allclose(model.impute(X), [naive.conditional(z, G)[0] for z in X], rtol=1e-9, atol=1e-12)
    signal = [naive.source(z, a, model.power_, model.noise_variance_) for z in X]
    np.testing.assert_allclose(model.source(X), signal, rtol=1e-9, atol=1e-12)
    assert model.score_one(X[0]) == pytest.approx(model.score_samples(X)[0])


def test_the_spectrum_is_highest_at_the_angle(model):
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2001)
    spectrum = model.spectrum(angles)
    assert abs(angles[spectrum.argmax()] - model.angle_) < 0.002
    assert model.spectrum(model.angle_)[0] == pytest.approx(8 * model.power_ + model.noise_variance_)
    with pytest.raises(ValueError, match="angles must be a list of angles"):
        model.spectrum([[0.1]])


def test_drawn_snapshots_have_the_covariance(model):
    X, signal = model.sample(40_000)
    np.testing.assert_allclose(X.T @ X.conj() / len(X), model.covariance_, atol=0.05)
    assert abs(np.mean(X * X)) < 0.02  # circular
    assert np.mean(np.abs(signal) ** 2) == pytest.approx(model.power_, rel=0.03)
    np.testing.assert_array_equal(X, clone(model).set_params(random_state=0).fit(snapshots(3000)).sample(40_000)[0])


def test_scores_before_learning_come_up_to_those_after():
    X = snapshots(6000)
    scores = DirectionOfArrival(warm_up=500).update(X)
    final = DirectionOfArrival().fit(X).score_samples(X)
    assert np.nanmean(scores[1000:]) == pytest.approx(final[1000:].mean(), abs=0.02)


@pytest.mark.parametrize("algorithm", ["soem", hw.OnlineEM(batch_size=1)], ids=["soem", "averaged"])
def test_a_sweep_with_weights_is_the_loop(algorithm, monkeypatch):
    X, weights = snapshots(300, sensors=4), np.random.default_rng(1).uniform(0.2, 3.0, size=300)
    swept = DirectionOfArrival(algorithm=algorithm, warm_up=100, random_state=0).partial_fit(X, sample_weight=weights)
    monkeypatch.setattr(Arrival, "sweeps", lambda model, inference: False)
    looped = DirectionOfArrival(algorithm=algorithm, warm_up=100, random_state=0).partial_fit(X, sample_weight=weights)
    assert not looped._learner.plan.sweeps
    for one, other in zip(arrays_of(swept._state), arrays_of(looped._state), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_steering_is_asked_for_no_angle_beyond_the_range():
    def steering(angles):
        assert angles.min() >= 0.0
        assert angles.max() <= 1.0
        return np.exp(1j * np.outer(angles, np.arange(4)))

    model = DirectionOfArrival(steering=steering, angles=(0.0, 1.0)).fit(snapshots(300, -0.2, sensors=4))
    assert model.angle_ == 0.0


def test_one_row_at_a_time_with_names():
    X = snapshots(60, sensors=3, missing=0.2)
    names = ["left", "middle", "right"]
    model = DirectionOfArrival(warm_up=20, algorithm="soem")
    for row in X:
        model.learn_one(dict(zip(names, row, strict=True)))
    chunk = DirectionOfArrival(warm_up=20, algorithm="soem").partial_fit(X)
    assert model.omega_ == pytest.approx(chunk.omega_)
    assert list(model.feature_names_in_) == names
    assert model.score_one({"right": 1j, "left": 1.0 + 0j, "middle": np.nan}) == pytest.approx(
        chunk.score_one(np.array([1.0, np.nan, 1j]))
    )


def test_merged_is_the_union():
    """The statistic of complete snapshots depends on no parameter, so models of any origin add up exactly."""
    X = snapshots(3000, missing=0.0)
    parts = [DirectionOfArrival(warm_up=200, random_state=seed).partial_fit(X[seed::3]) for seed in range(3)]
    merged, whole = hw.merge(parts), DirectionOfArrival(warm_up=200).partial_fit(X)
    np.testing.assert_allclose(merged.covariance_, whole.covariance_, rtol=1e-10)
    assert merged.n_samples_seen_ == 3000
    assert merged.angle_std_ == pytest.approx(whole.angle_std_, rel=0.05)
    with pytest.raises(ValueError, match=r"models must have one spacing, got 0\.5 and 0\.4"):
        hw.merge([parts[0], DirectionOfArrival(spacing=0.4).partial_fit(X)])


# Missing sensors, and errors


def test_snapshots_without_any_sensor_change_nothing():
    X = snapshots(500)
    empty = np.full((300, 8), np.nan, dtype=complex)
    model, padded = DirectionOfArrival(tol=1e-13, max_iter=1000), DirectionOfArrival(tol=1e-13, max_iter=1000)
    model.fit(X)
    padded.fit(np.concatenate([empty, X]))
    np.testing.assert_allclose(padded.covariance_, model.covariance_, rtol=1e-5)
    assert padded.n_samples_seen_ == 800
    assert padded.angle_std_ == pytest.approx(model.angle_std_, rel=1e-4)
    waiting = DirectionOfArrival(warm_up=100).partial_fit(empty)
    assert np.isfinite(waiting.covariance_).all()
    assert waiting.angle_std_ == np.inf
    for part in np.array_split(snapshots(20_000), 10):
        waiting.partial_fit(part)
    assert abs(waiting.omega_ - 0.7) < 0.01


def test_a_dead_sensor_does_no_harm():
    X = snapshots(4000)
    X[:, 3] = np.nan
    model = DirectionOfArrival().fit(X)
    assert abs(model.omega_ - 0.7) < 0.01
    assert model.observed_[3] == 0.0
    assert abs(model.power_ - 1.0) < 0.1


def test_half_a_number_is_missing(model):
    X = snapshots(5, missing=0.0)
    half, missing = X.copy(), X.copy()
    half[0, 1], half[1, 2] = complex(np.nan, 1.0), complex(1.0, np.nan)
    missing[0, 1] = missing[1, 2] = np.nan
    kept = half.copy()
    np.testing.assert_array_equal(model.score_samples(half), model.score_samples(missing))
    np.testing.assert_array_equal(half, kept)


@pytest.mark.parametrize("scale", [1e-40, 1e98])
def test_units_change_nothing_but_powers(scale):
    X = snapshots(2000)
    one, other = (DirectionOfArrival(random_state=0).fit(factor * X) for factor in (1.0, scale))
    assert other.angle_ == pytest.approx(one.angle_, abs=1e-9)
    assert other.power_ / scale**2 == pytest.approx(one.power_, rel=1e-6)
    assert np.isfinite(other.score_samples(scale * X)).all()


@pytest.mark.parametrize("algorithm", ["auto", "soem", "online-em"])
def test_silence_and_pure_tones_are_finite(algorithm):
    tone = np.exp(1j * np.arange(200))[:, None] * np.exp(0.4j * np.arange(4))
    silence = np.zeros((200, 4), dtype=complex)
    for X in (silence, tone, np.concatenate([silence, tone]), np.concatenate([silence, 1e99 * tone])):
        model = DirectionOfArrival(algorithm=algorithm, warm_up=50).partial_fit(X)
        assert model.noise_variance_ > 0.0
        assert model.power_ >= 0.0
        for answer in (model.covariance_, model.score_samples(X), model.source(X), model.update(X)):
            assert np.isfinite(answer).all()
    assert abs(DirectionOfArrival().fit(tone).omega_ - 0.4) < 1e-9


@pytest.mark.parametrize("algorithm", ["auto", "em", "soem", "online-em"])
def test_any_finite_snapshots_leave_a_finite_state(algorithm):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shape = rng.integers(12, 40), rng.integers(2, 5)
        X = 10.0 ** rng.choice([-99, -60, 0, 60, 98], size=shape) * (rng.normal(size=(*shape, 2)) @ [1.0, 1j])
        X[rng.random(shape[0]) < rng.choice([0.0, 0.5])] = 0.0
        X[rng.random(shape) < rng.choice([0.0, 0.5, 0.9])] = np.nan
        the_state_is_finite(DirectionOfArrival(algorithm=algorithm, warm_up=10, random_state=0), X)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.ones((5, 3)), "X must hold complex snapshots, got float64"),
        ([[1, 2], [3, 4]], "X must hold complex snapshots, got int64"),
        (np.ones((5, 1), dtype=complex), "at least 2 of them, got 1"),
        (np.full((5, 3), complex(np.inf, 0.0)), "X contains infinity"),
        (np.full((5, 3), complex(np.nan, np.inf)), "X contains infinity"),
        (np.full((5, 3), 1e200j), "squares of more than 1e.100 overflow"),
        ([["a", "b"]], "X must hold complex numbers, got <U1"),
        (np.array([["a", 1j]], dtype=object), "X cannot be read as an array of complex numbers"),
        (np.empty((0, 3), dtype=complex), "X has 0 sample"),
        (np.ones(3, dtype=complex), "X must have two dimensions"),
    ],
)
def test_bad_snapshots_are_refused(X, sentence):
    model = DirectionOfArrival()
    with pytest.raises(ValueError, match=sentence):
        model.partial_fit(X)
    assert not hasattr(model, "_state")


def test_another_number_of_sensors_is_refused(model):
    with pytest.raises(ValueError, match="X has 7 features, but DirectionOfArrival is expecting 8 features"):
        model.score_samples(np.ones((2, 7), dtype=complex))
    with pytest.raises(ValueError, match="the row has 2 features"):
        model.score_one([1j, 2.0])
    with pytest.raises(ValueError, match="the row must hold complex snapshots"):
        model.score_one(np.ones(8))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"algorithm": "vb"}, "cannot be learned by 'vb': use one of 'auto', 'em', 'soem', 'online-em'$"),
        ({"algorithm": "boem"}, "cannot be learned by 'boem': use one of 'auto', 'em', 'soem', 'online-em'$"),
        ({"algorithm": "simulated-em"}, "cannot be learned by 'simulated-em'"),
        ({"algorithm": "guess"}, "algorithm must be one of 'auto', 'em', 'soem', 'online-em' or one of their objects"),
        ({"spacing": 0.0}, "'spacing' parameter"),
        ({"steering": 3}, "'steering' parameter"),
        ({"angles": (0.0, 1.0)}, "angles must be None without a steering function"),
        ({"steering": circular, "angles": (1.0, 0.0)}, "angles must rise"),
        ({"steering": circular, "angles": [1.0]}, "angles must be the first and the last"),
        ({"steering": circular}, r"steering must return a matrix \(65, 8\) for 65 angles, .* got shape \(65, 7\)"),
        ({"steering": lambda x: np.full((len(x), 8), np.nan)}, "steering must return finite complex numbers"),
        ({"steering": lambda x: np.zeros((len(x), 8))}, "steering must not be zero"),
    ],
)
def test_bad_parameters_are_refused(options, sentence):
    model = DirectionOfArrival(**options)
    with pytest.raises(ValueError, match=sentence):
        model.partial_fit(snapshots(20))
    assert not hasattr(model, "_state")


def test_batch_em_does_not_stream():
    with pytest.raises(ValueError, match="stream with its online twin 'online-em'"):
        DirectionOfArrival(algorithm="em").partial_fit(snapshots(20))


# scikit-learn. Its checks feed real numbers, which are no snapshots; those that learn nothing apply.


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_set_params,
        estimator_checks.check_valid_tag_types,
    ],
    ids=lambda check: check.__name__,
)
def test_scikit_learns_checks(check):
    check("DirectionOfArrival", DirectionOfArrival())


def test_unfitted_fitted_pickled_and_shown(model):
    fresh = clone(model)
    assert "\n" not in repr(fresh)
    for read in (lambda: fresh.angle_, lambda: fresh.score_samples(snapshots(3)), lambda: fresh.sample()):
        with pytest.raises(NotFittedError):
            read()
    loaded = pickle.loads(pickle.dumps(DirectionOfArrival(steering=circular).fit(snapshots(50, sensors=7))))
    assert loaded.angle_ == DirectionOfArrival(steering=circular).fit(snapshots(50, sensors=7)).angle_
    assert "3,000 snapshots of 8 sensors seen:" in repr(model)
    assert "<table>" in model._repr_html_()
    with pytest.raises(ValueError, match="The sampling requires at least one sample"):
        model.sample(0)
    with pytest.raises(ValueError, match=r"spacing cannot change from 0\.5 to 0\.25"):
        DirectionOfArrival().partial_fit(snapshots(50)).set_params(spacing=0.25).partial_fit(snapshots(50))


def test_a_frame_of_complex_columns():
    pandas = pytest.importorskip("pandas")
    X = snapshots(100, sensors=3, missing=0.0)
    model = DirectionOfArrival().fit(pandas.DataFrame(X, columns=["a", "b", "c"]))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.angle_ == DirectionOfArrival().fit(X.astype(np.complex128)).angle_
