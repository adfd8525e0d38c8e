"""StudentMixture: recovery, and robustness to broken rows."""

import numpy as np
import pytest

import headwater as hw

ALGORITHMS = ("auto", "em", "vb", "online-em", "soem", "boem", "online-vb")
FACTORS = np.array([[[1.0, 0.0], [0.5, 1.0]], [[2.0, 0.0], [-0.5, 0.7]]])


def heavy(n, seed=0, dof=(12.0, 3.0)):
    """Return rows of two groups with different tails."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    half = 0.5 * np.take(dof, group)
    rows = np.einsum("nij,nj->ni", FACTORS[group], rng.normal(size=(n, 2))) / np.sqrt(rng.gamma(half, 1.0 / half))[:, None]
    return rows + np.where(group, 9.0, 0.0)[:, None]


def learned(model, rows):
    return model.fit(rows) if model.algorithm in ("em", "vb") else model.partial_fit(rows)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_was_simulated_is_learned(algorithm):
    model = learned(hw.StudentMixture(2, algorithm=algorithm, tol=1e-6, max_iter=300, random_state=0), heavy(3000))
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.means_[order], [[0.0, 0.0], [9.0, 9.0]], atol=0.12)
    np.testing.assert_allclose(model.scales_[order], FACTORS @ np.swapaxes(FACTORS, 1, 2), rtol=0.15, atol=0.1)
    heavier, lighter = model.degrees_of_freedom_[order[::-1]]
    assert 2.5 < heavier < 3.6
    assert 6.0 < lighter < 40.0


@pytest.mark.parametrize("algorithm", ["quasi-bayes", "moment-matching"])
def test_what_needs_a_predictive_density_is_refused(algorithm):
    with pytest.raises(ValueError, match="StudentMixture"):
        hw.StudentMixture(2, algorithm=algorithm).fit(heavy(200))


def test_gaussian_rows_have_many_degrees_of_freedom():
    rows = np.random.default_rng(0).normal(size=(4000, 2))
    model = hw.StudentMixture(1, algorithm="em", max_iter=300, random_state=0).fit(rows)
    assert model.degrees_of_freedom_[0] > 30.0
    plain = hw.GaussianMixture(1, algorithm="em", random_state=0).fit(rows)
    assert abs(model.score(rows) - plain.score(rows)) < 4e-3


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_broken_rows_hardly_move_it(kind):
    rng = np.random.default_rng(1)
    clean, fresh = (rng.normal(size=(n, 3)) + 9.0 * rng.integers(2, size=(n, 1)) for n in (4000, 4000))
    broken = clean.copy()
    broken[::100] = 20.0 * rng.normal(size=(40, 3)) * 3.0
    options = {"covariance_type": kind, "random_state": 0}
    best = hw.GaussianMixture(2, **options).partial_fit(clean).score(fresh)
    robust = hw.StudentMixture(2, **options).partial_fit(broken).score(fresh)
    plain = hw.GaussianMixture(2, **options).partial_fit(broken).score(fresh)
    assert best - robust < 0.08  # heavier tails than clean rows have
    assert best - plain > 0.15


def test_gaps_are_integrated_out():
    rows, rng = heavy(4000, dof=(4.0, 4.0)), np.random.default_rng(2)
    gaps = np.where(rng.random(rows.shape) < 0.3, np.nan, rows)
    whole, model = (hw.StudentMixture(2, random_state=0).partial_fit(X) for X in (rows, gaps))
    fresh = heavy(4000, seed=3, dof=(4.0, 4.0))
    assert whole.score(fresh) - model.score(fresh) < 0.02
    one = np.array([[np.nan, 9.0]])
    seen = model.condition(one)
    assert abs(seen.mean[0, 0] - 9.0) < 0.5
    low, high = seen.interval(0.9)
    assert low[0, 0] < 9.0 < high[0, 0]


def test_components_are_merged_and_covariances_are_wider_than_scales():
    parts = [hw.StudentMixture(2, random_state=seed).partial_fit(heavy(2000, seed)) for seed in range(2)]
    both = hw.merge(parts)
    assert both.n_samples_seen_ == 4000
    order = np.argsort(both.means_[:, 0])
    np.testing.assert_allclose(both.means_[order], [[0.0, 0.0], [9.0, 9.0]], atol=0.2)
    dof = both.degrees_of_freedom_
    np.testing.assert_allclose(both.covariances_, (dof / (dof - 2.0))[:, None, None] * both.scales_)


def test_without_a_variance_the_covariance_is_infinite():
    model = hw.StudentMixture(1, degrees_of_freedom=1.0, random_state=0).fit(heavy(300))
    assert np.isinf(model.covariances_[0][0, 0])
    assert np.isfinite(model.scales_).all()
