"""Mixtures of directions: recovery, errors, files, merging and growth."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score

import headwater as hw
from headwater.checks import check_estimator

RNG = np.random.default_rng(0)
KAPPA = np.array([30.0, 60.0, 120.0])
CENTRES = np.linalg.qr(RNG.normal(size=(8, 3)))[0].T
labels = RNG.integers(3, size=3000)
ROWS = np.empty((3000, 8))
for one in range(3):
    at = np.flatnonzero(labels == one)
    ROWS[at] = stats.vonmises_fisher(CENTRES[one], KAPPA[one]).rvs(len(at), random_state=one)


SOON = hw.OnlineEM(average_exponent=1.0)  # forgets the start within these rows, which the default does later


@pytest.mark.parametrize("algorithm", ["auto", "em", "vb", SOON, hw.OnlineVB(batch_size=100), hw.SatoEM(batch_size=100)])
def test_directions_and_concentrations_are_recovered(algorithm):
    model = hw.VonMisesFisherMixture(3, algorithm=algorithm, random_state=0)
    (model.fit if algorithm in ("em", "vb") else model.partial_fit)(ROWS * RNG.uniform(0.1, 9.0, size=(3000, 1)))
    order = np.argsort(model.concentrations_)
    np.testing.assert_allclose(model.concentrations_[order], KAPPA, rtol=0.06)
    assert (np.sum(model.mean_directions_[order] * CENTRES, axis=1) > 0.999).all()
    assert adjusted_rand_score(labels, model.predict(ROWS)) > 0.98
    np.testing.assert_allclose(np.linalg.norm(model.mean_directions_, axis=1), 1.0, rtol=1e-12)


def test_lengths_of_rows_do_not_count():
    lengths = 2.0 ** RNG.integers(-500, 300, size=(3000, 1))  # powers of two, so that rounding is the same
    one, other = (hw.VonMisesFisherMixture(3, random_state=0).partial_fit(rows) for rows in (ROWS, ROWS * lengths))
    np.testing.assert_allclose(one.mean_directions_, other.mean_directions_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.score_samples(ROWS), other.score_samples(7.0 * ROWS), rtol=1e-9)


def test_a_row_without_direction_is_refused_and_nothing_is_lost():
    model = hw.VonMisesFisherMixture(3, random_state=0).partial_fit(ROWS)
    before = model.concentrations_
    bad = ROWS.copy()
    bad[17] = 0.0
    with pytest.raises(ValueError, match=r"row of zeros \(first in row 17\), which has no direction"):
        model.partial_fit(bad)
    with pytest.raises(ValueError, match="which has no direction"):
        model.score_one(np.zeros(8))
    assert model.n_samples_seen_ == 3000
    np.testing.assert_array_equal(model.concentrations_, before)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"mean_prior": [1.0, 0.0]}, "should have the shape"), ({"mean_prior": np.ones(8)}, "must be shorter than 1"),
     ({"mean_precision_prior": 0.0}, "mean_precision_prior"), ({"algorithm": "quasi-bayes"}, "quasi-bayes"),
     ({"algorithm": "moment-matching"}, "moment-matching")],
)  # fmt: skip
def test_bad_settings_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        hw.VonMisesFisherMixture(2, **options).partial_fit(ROWS)


def test_it_grows_to_the_number_there_is():
    assert hw.VonMisesFisherMixture("auto", random_state=0).partial_fit(ROWS).n_components_ == 3


def test_a_prior_pulls_rows_together():
    rows = ROWS[labels == 2][:20]
    loose, tight = (
        hw.VonMisesFisherMixture(1, mean_prior=mean, mean_precision_prior=50.0, algorithm="em").fit(rows)
        for mean in (None, 0.999 * CENTRES[2])
    )
    assert loose.concentrations_[0] < 20.0 < 200.0 < tight.concentrations_[0]


def test_branches_and_strangers_are_merged():
    start = hw.VonMisesFisherMixture(3, random_state=0).warm_start_from(ROWS[:500])
    branches = hw.merge([start.branch().partial_fit(ROWS[500 + part :: 3]) for part in range(3)])
    strangers = hw.merge([hw.VonMisesFisherMixture(3, random_state=part).partial_fit(ROWS[part::2]) for part in range(2)])
    for model in (branches, strangers):
        assert model.n_samples_seen_ == 3000
        np.testing.assert_allclose(np.sort(model.concentrations_), KAPPA, rtol=0.06)


def test_many_columns_and_few_rows_stay_finite(tmp_path):
    rows = np.random.default_rng(1).normal(size=(300, 1024)) + 3.0 * np.eye(3, 1024)[np.arange(300) % 3] * 30.0
    model = hw.VonMisesFisherMixture(3, random_state=0).partial_fit(rows)
    assert adjusted_rand_score(np.arange(300) % 3, model.predict(rows)) == 1.0
    assert np.isfinite(model.score_samples(rows)).all() and (model.concentrations_ > 100.0).all()
    model.save(tmp_path / "wide.hw")
    np.testing.assert_array_equal(hw.load(tmp_path / "wide.hw").concentrations_, model.concentrations_)


def test_rows_that_are_all_alike_have_a_large_finite_concentration():
    model = hw.VonMisesFisherMixture(2, random_state=0).partial_fit(np.tile([1.0, 2.0, 3.0], (500, 1)))
    assert np.isfinite(model.concentrations_).all() and model.concentrations_.max() > 1e3
    assert np.isfinite(model.score_samples([[1.0, 2.0, 3.0]])).all()


def test_means_and_variances_are_those_of_draws():
    model = hw.VonMisesFisherMixture(3, random_state=0).partial_fit(ROWS)
    means, variances = model._moments()
    rows, kinds = model.sample(30000)
    for k in range(3):
        np.testing.assert_allclose(rows[kinds == k].mean(axis=0), means[k], atol=0.01)
        np.testing.assert_allclose(rows[kinds == k].var(axis=0), variances[k], rtol=0.1)
    assert "concentration" in repr(model) and "nothing is wrong" in str(model.health_)
    assert len(model.describe().components) == 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_takes_it_for_an_estimator():
    check_estimator(hw.VonMisesFisherMixture(2, random_state=0), np.abs(ROWS[:300]))
