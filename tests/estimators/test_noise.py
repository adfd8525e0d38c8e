"""Measurement errors: passes and streams learn the model of the values without errors."""

import numpy as np
import pytest

import headwater as hw
from headwater.core.gapped_rows import GappedRows
from headwater.core.noisy_rows import NoisyRows
from headwater.families.noise_removal import remove_noise

rng = np.random.default_rng(0)
N = 1500
GROUPS = rng.integers(2, size=N)
TRUE = rng.normal(size=(N, 2)) @ [[0.6, 0.3], [0.0, 0.4]] + 4.0 * GROUPS[:, None]
NOISE = rng.choice([0.05, 2.5], size=(N, 2))
ROWS = TRUE + np.sqrt(NOISE) * rng.normal(size=(N, 2))
COVARIANCES = NOISE[:, :, None] * np.eye(2)


def model(**options):
    return hw.GaussianMixture(**{"n_components": 2, "random_state": 0, "warm_up": 200, **options})


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_the_density_without_errors_is_found(kind):
    plain, measured = model(covariance_type=kind).fit(ROWS), model(covariance_type=kind).fit(ROWS, noise=NOISE)
    streamed = model(covariance_type=kind).partial_fit(ROWS, noise=NOISE)
    truth = model(covariance_type=kind).fit(TRUE)
    assert truth.score(TRUE) - measured.score(TRUE) < 0.03 < 0.15 < truth.score(TRUE) - plain.score(TRUE)
    assert truth.score(TRUE) - streamed.score(TRUE) < 0.06
    assert measured.score_samples(ROWS, noise=NOISE).mean() > plain.score(ROWS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("algorithm", ["em", "vb"])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_every_pass_gains(kind, algorithm):
    rows = np.where(np.random.default_rng(1).random(ROWS.shape) < 0.1, np.nan, ROWS)[:400]
    for noise in (NOISE, COVARIANCES):
        fitted = model(covariance_type=kind, algorithm=algorithm, reg_covar=0.0, max_iter=25, tol=0.0)
        assert np.diff(fitted.fit(rows, noise=noise[:400]).lower_bounds_).min() > -1e-9


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"algorithm": "boem"},
        {"parts": 2},
        pytest.param({"n_components": "auto"}, marks=pytest.mark.slow),
        {"half_life": "auto"},
        {"scale_columns": True},
    ],
)
def test_chunks_and_files_change_nothing(options, tmp_path):
    rows, noise = ROWS[:500].copy(), NOISE[:500]
    rows[::9, 0] = np.nan
    one, other = model(**options).partial_fit(rows, noise=noise), model(**options)
    for part in np.array_split(np.arange(500), [1, 40, 190, 333]):
        other = other.partial_fit(rows[part], noise=noise[part])
    other.save(tmp_path / "m.hw")
    again = hw.load(tmp_path / "m.hw")
    waiting = model(**options).partial_fit(rows[:50], noise=COVARIANCES[:50])
    waiting.save(tmp_path / "w.hw")
    for ones, others in ((one, other), (other, again), (waiting, hw.load(tmp_path / "w.hw"))):
        np.testing.assert_allclose(others.means_, ones.means_, rtol=1e-6, atol=1e-8)
    other.partial_fit(rows, noise=noise), again.partial_fit(rows, noise=noise)
    np.testing.assert_array_equal(again.means_, other.means_)


def test_weights_are_copies_and_branches_merge():
    start = model().warm_start_from(TRUE[:200])
    weights = np.arange(600) % 3
    once = start.branch().partial_fit(ROWS[:600], sample_weight=weights, noise=NOISE[:600])
    copies = start.branch().partial_fit(np.repeat(ROWS[:600], weights, axis=0), noise=np.repeat(NOISE[:600], weights, axis=0))
    np.testing.assert_allclose(once.means_, copies.means_, rtol=0.02)
    halves = [start.branch().partial_fit(ROWS[at::2], noise=NOISE[at::2]) for at in (0, 1)]
    merged = hw.merge(halves)
    assert merged.n_samples_seen_ == 200 + N
    assert abs(merged.score(TRUE) - start.branch().partial_fit(ROWS, noise=NOISE).score(TRUE)) < 0.02


def test_chunks_without_noise_are_exact():
    mixed = model().partial_fit(ROWS[:700], noise=NOISE[:700]).partial_fit(TRUE[700:])
    assert model().fit(TRUE).score(TRUE) - mixed.score(TRUE) < 0.05
    assert "missing" not in str(mixed.health_)


@pytest.mark.parametrize(
    ("noise", "sentence"),
    [
        (NOISE[:5], r"noise must have shape \(1500, 2\)"), (NOISE[:, :1], "noise must have shape"),
        (-NOISE, "noise must hold variances, got -2.5"), (NOISE * np.nan, "uncertain each value is that is there, got NaN"),
        (NOISE * np.inf, "noise contains infinity"), (COVARIANCES + np.triu(np.ones((2, 2)), 1), "symmetric covariances"),
        (COVARIANCES - 9.0 * (1 - np.eye(2)), "negative eigenvalue"), ("much", "noise"),
    ],
)  # fmt: skip
def test_what_is_no_noise_is_refused(noise, sentence):
    fitted = model().partial_fit(ROWS, noise=NOISE)
    before = fitted.means_.copy()
    for call in (fitted.partial_fit, fitted.fit, fitted.score_samples):
        with pytest.raises(ValueError, match=sentence):
            call(ROWS, noise=noise)
    np.testing.assert_array_equal(fitted.means_, before)


def test_who_takes_no_noise_says_so():
    for options, sentence in (
        ({"algorithm": "quasi-bayes"}, "noise must be None for algorithm 'quasi-bayes'"),
        ({"algorithm": "moment-matching"}, "noise must be None for algorithm 'moment-matching'"),
        ({"covariance_type": "factor"}, "noise must be None with covariance_type='factor'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model(**options).partial_fit(ROWS, noise=NOISE)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_rows_that_are_all_equal_can_have_errors(kind):
    """They spread in no direction, and the errors are not taken off what is 0."""
    for value in (0.0, 3.7, 1e9):
        found = model(covariance_type=kind, warm_up=60).partial_fit(np.full((120, 2), value), noise=NOISE[:120])
        np.testing.assert_allclose(found.means_, value)
        assert np.isfinite(found.covariances_).all()
        assert found.weights_.sum() == pytest.approx(1.0)


def test_a_group_that_lacks_a_column_can_have_errors_with_covariances():
    """Of a column that was not observed there is no error to take off."""
    rows = NoisyRows.of_errors(GappedRows(np.zeros((2, 2)), np.array([[True, False], [False, False]])), COVARIANCES[:2])
    left = remove_noise(True, rows, np.array([1.0, 0.0]), np.zeros((2, 2)))
    assert np.isfinite(left).all() and np.abs(left).max() < 1e-9


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("estimator", [hw.BayesianGaussianMixture, hw.GaussianMixture])
def test_columns_of_all_sizes_can_have_errors(estimator, kind):
    for seed in (0, 8, 15):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(30, 4)) * 10.0 ** np.linspace(-50, 90, 4)
        for size in (0.0, 1e20):
            model = estimator(n_components=2, covariance_type=kind, random_state=0).fit(rows, noise=size * rng.random((30, 4)))
            assert np.isfinite(model.means_).all() and np.isfinite(model.weights_).all()
            assert np.isfinite(model.score_samples(rows)).all()
