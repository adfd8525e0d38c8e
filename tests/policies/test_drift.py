"""half_life="auto": which changes are detected, which components forget, how forgetting ends, and what users see."""

import os
import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import headwater as hw
from headwater.core.records import arrays_of
from headwater.core.state import Progress, Summary
from headwater.estimators.model_file import from_bytes, to_bytes
from headwater.families.gaussian import Gaussian
from headwater.models.mixture import Mixture
from headwater.policies.drift import MOST_DEVIATIONS, Drift, fold_forgetting, judge_batch, note_scores, set_expectations
from headwater.policies.drift_monitor import half_lives as forgetting

DIRECTORY = os.environ.get("HEADWATER_DATA", "")
CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])
SMALL = {"warm_up": 500, "algorithm": hw.Auto(batch_size=250), "random_state": 0, "n_threads": 1}


def drawn(rows, seed=0, centres=CENTRES, weights=None):
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(centres), size=rows, p=weights)
    return centres[labels] + rng.normal(size=(rows, 2))


def shifted(component, by):
    centres = CENTRES.copy()
    centres[component] += by
    return centres


def mixture(half_life="auto", **options):
    return hw.GaussianMixture(**{"n_components": 4, "half_life": half_life, **SMALL, **options})


def near(model, centre):
    """Return the component with the nearest mean, and its distance."""
    distances = np.linalg.norm(model.means_ - centre, axis=1)
    return int(distances.argmin()), float(distances.min())


# Nothing drifts


@pytest.mark.parametrize("options", [{}, {"covariance_type": "tied"}, {"n_components": 1}, {"reservoir": 400}])
def test_without_drift_it_is_the_stream_there_was(options):
    rows = drawn(5000, 1)
    tuned, plain = mixture(**options).partial_fit(rows), mixture(None, **options).partial_fit(rows)
    rtol = 1e-12 if options == {"n_components": 1} else 0.0  # only one component forgets here, and then counts again
    np.testing.assert_allclose(tuned._state.statistics.second, plain._state.statistics.second, rtol=rtol)
    np.testing.assert_allclose(tuned.means_, plain.means_, rtol=rtol)
    assert tuned._state.records["drift"].alarms == 0
    assert np.isinf(tuned.half_life_).all()


def heavy(rows, seed):
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(4, size=rows)] + rng.standard_t(3, size=(rows, 2))


@pytest.mark.parametrize("kind, k", [("right", 4), ("few", 2), ("many", 6), ("heavy", 4), ("rare", 4)])
def test_hardly_ever_is_something_forgotten_for_nothing(kind, k):
    alarms = 0
    for seed in range(4):
        weights = [0.9, 0.06, 0.02, 0.02] if kind == "rare" else None
        rows = heavy(8000, seed) if kind == "heavy" else drawn(8000, 50 + seed, weights=weights)
        alarms += mixture(n_components=k, random_state=seed).partial_fit(rows)._state.records["drift"].alarms
    assert alarms == 0


def test_one_row_is_no_change():
    rows = drawn(6000, 2)
    rows[4000::400] = 1e3
    assert mixture().partial_fit(rows)._state.records["drift"].alarms == 0


# Something drifts


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_a_component_that_jumps_is_followed_and_others_keep_their_memory(kind):
    model = mixture(covariance_type=kind).partial_fit(drawn(6000, 3))
    which, _ = near(model, CENTRES[0])
    before = model._state.records["drift"].memory
    model.partial_fit(drawn(1500, 4, shifted(0, [2.0, 2.0])))
    drift = model._state.records["drift"]
    assert near(model, [2.0, 2.0]) == (which, pytest.approx(0.0, abs=0.2))
    assert drift.memory[which] < 0.5 * before[which]
    others = np.arange(4) != which
    assert (drift.memory[others] >= before[others]).all()
    assert np.isfinite(model.half_life_).tolist() == (~others).tolist()
    stays = mixture(None, covariance_type=kind).partial_fit(drawn(6000, 3))
    stays.partial_fit(drawn(1500, 4, shifted(0, [2.0, 2.0])))
    assert near(stays, [2.0, 2.0])[1] > 0.5


def test_a_covariance_that_all_share_is_forgotten_by_all():
    model = mixture(covariance_type="tied").partial_fit(drawn(6000, 3)).partial_fit(drawn(1500, 4, shifted(0, [2.0, 2.0])))
    assert near(model, [2.0, 2.0])[1] < 0.3
    np.testing.assert_allclose(model.covariances_, np.eye(2), atol=0.25)
    assert np.isfinite(model.half_life_).all()


def test_a_component_that_becomes_narrower_has_changed():
    rng = np.random.default_rng(0)
    narrow = drawn(3000, 6)
    own = np.linalg.norm(narrow, axis=1) < 3.0
    narrow[own] = 0.3 * rng.normal(size=(int(own.sum()), 2))
    model = mixture().partial_fit(drawn(6000, 5)).partial_fit(narrow)
    which, _ = near(model, CENTRES[0])
    assert np.sqrt(np.linalg.det(model.covariances_[which])) < 0.15


def test_what_is_forgotten_grows_again():
    model = mixture().partial_fit(drawn(6000, 3))
    centres = shifted(0, [2.0, 2.0])
    worth, following = [], []
    for seed in range(10):
        model.partial_fit(drawn(1000, 10 + seed, centres))
        worth.append(model._state.progress.n_eff)
        following.append(model._state.records["drift"].following)
    assert worth[0] < 1500.0 < worth[-1]
    assert all(late > early for early, late in pairwise(worth))
    assert following[0] and not following[-1]
    assert np.isinf(model.half_life_).all()
    assert model._state.records["drift"].alarms == 1


@pytest.mark.parametrize("kind", ["gradual", "weights"])
def test_drift_is_followed_better_than_by_never_forgetting(kind):
    rng = np.random.default_rng(0)
    time = np.linspace(0.0, 1.0, 8000)
    labels = rng.integers(4, size=8000)
    if kind == "weights":
        labels = np.where(rng.uniform(size=8000) < np.clip(2.0 * time - 0.8, 0.0, 0.8), 3, labels)
    rows = CENTRES[labels] + rng.normal(size=(8000, 2))
    if kind == "gradual":
        rows += np.where(labels == 0, np.clip(time - 0.5, 0.0, 1.0) * -16.0, 0.0)[:, None]
    tuned, plain = (model.update(rows)[4000:].mean() for model in (mixture(), mixture(None)))
    assert tuned > plain + 0.05


def test_weights_are_forgotten_alone():
    model = mixture().partial_fit(drawn(6000, 3))
    memory = model._state.records["drift"].memory
    model.partial_fit(drawn(1500, 4, weights=[0.55, 0.15, 0.15, 0.15]))
    which, _ = near(model, CENTRES[0])
    assert model.weights_[which] > 0.5
    assert (model._state.records["drift"].memory >= memory).all()
    (finding,) = [one for one in model.health_.findings if one.kind == "forgetting"]
    assert finding.sentence.startswith("The weights have changed") and not finding.action


def test_counts_and_regressions_have_it_too():
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(12, 0.3), size=4)
    labels = np.concatenate([rng.integers(3, size=3000), rng.choice([1, 2, 3], size=1500)])
    counts = np.stack([rng.multinomial(25, words[label]) for label in labels])
    model = hw.MultinomialMixture(3, half_life="auto", **SMALL).partial_fit(counts[:3000])
    assert model._state.records["drift"].alarms == 0
    model.partial_fit(counts[3000:])
    assert np.abs(model.probabilities_[:, None] - words[1:]).sum(axis=2).min(axis=0).max() < 0.2
    X = rng.uniform(-3.0, 3.0, size=(4500, 1))
    slope = np.where(rng.uniform(size=4500) < 0.5, 1.0, np.where(np.arange(4500) < 3000, -1.0, -3.0))
    y = slope * X[:, 0] + 4.0 * (slope > 0) + 0.2 * rng.normal(size=4500)
    lines = hw.RegressionMixture(2, half_life="auto", **SMALL).partial_fit(X[:3000], y[:3000])
    assert lines._state.records["drift"].alarms == 0
    lines.partial_fit(X[3000:], y[3000:])
    assert sorted(lines.coef_[:, 0].round(1).tolist()) == [-3.0, 1.0]


def test_a_model_that_was_fitted_first_watches_what_comes_after():
    model = mixture().fit(drawn(3000, 3))
    assert "reservoir" not in model._state.records
    model.partial_fit(drawn(3000, 4)).partial_fit(drawn(2000, 5, shifted(0, [2.0, 2.0])))
    assert near(model, [2.0, 2.0])[1] < 0.3


# Laws while something is forgotten


@pytest.fixture(scope="module")
def changing():
    return np.concatenate([drawn(2600, 3), drawn(1111, 4, shifted(0, [3.0, 2.0]))])


def same(one, other):
    return pickle.dumps(list(arrays_of(one))) == pickle.dumps(list(arrays_of(other)))


def test_cuts_change_nothing(changing):
    whole, cut = mixture().partial_fit(changing), mixture()
    for at in range(0, len(changing), 97):
        cut.partial_fit(changing[at : at + 97])
    assert whole._state.records["drift"].alarms == cut._state.records["drift"].alarms > 0
    assert same(whole._state.records["reservoir"], cut._state.records["reservoir"])
    np.testing.assert_allclose(cut.means_, whole.means_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(cut._state.records["drift"].memory, whole._state.records["drift"].memory, rtol=1e-9)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_saved_and_resumed_is_never_stopped(changing, covariance_type):
    model = mixture(covariance_type=covariance_type).partial_fit(changing[:3000])
    assert model._state.records["drift"].following
    loaded = from_bytes(to_bytes(model))
    for one in (model, loaded):
        one.partial_fit(changing[3000:])
    assert same(model._state, loaded._state)


def test_reading_and_threads_change_nothing(changing):
    quiet, read, rows = mixture(), mixture(n_threads=2), changing.copy()
    for at in range(0, len(changing), 500):
        quiet.partial_fit(changing[at : at + 500])
        read.partial_fit(changing[at : at + 500])
        read.score_samples(changing[:50]), read.half_life_, read.health_
    assert same(quiet._state, read._state)
    np.testing.assert_array_equal(rows, changing)


def test_branches_that_forgot_are_merged(changing):
    base = mixture().partial_fit(drawn(3000, 3))
    one = base.branch().partial_fit(drawn(1500, 4, shifted(0, [2.0, 2.0])))
    two = base.branch().partial_fit(drawn(1500, 5, shifted(0, [2.0, 2.0])))
    whole, other = hw.merge([one, two]), hw.merge([two, one])
    np.testing.assert_allclose(whole.means_, other.means_)
    assert whole.n_samples_seen_ == 6000
    assert near(whole, [2.0, 2.0])[1] < 0.4
    assert whole._state.records["drift"].following
    whole.partial_fit(drawn(500, 6, shifted(0, [2.0, 2.0])))


# The rules


def expected(scores, shares=None, began=0):
    drift = replace(Drift.begin(np.full(2, 500.0)), began=np.full(2, began))
    n = len(scores)
    shares = np.tile([1.0, 0.0], (n, 1)) if shares is None else shares
    return set_expectations(drift, shares, scores, np.ones(n), np.arange(n), 3.0, n)


def test_what_is_expected_is_what_kept_rows_score():
    scores = np.random.default_rng(0).normal(-3.0, 2.0, size=4000)
    drift = expected(scores)
    assert drift.expected[0] == pytest.approx(scores.mean())
    assert drift.deviation[0] == pytest.approx(scores.std())
    assert drift.deviation[1] == 0.0  # the component has no rows
    assert expected(scores, began=3980).deviation[0] == 0.0  # or too few since
    assert expected(scores, began=2000).expected[0] == pytest.approx(scores[2000:].mean())


def test_a_row_counts_by_its_responsibility_and_not_without_end():
    drift = expected(np.random.default_rng(0).normal(size=4000))
    once = note_scores(drift, np.array([[0.25, 0.75]]), np.array([-1e9]), np.empty(0))
    np.testing.assert_allclose(once.deficits, [0.25 * MOST_DEVIATIONS, 0.0])
    np.testing.assert_array_equal(
        note_scores(drift, np.array([[0.25, 0.75]]), np.array([-np.inf]), np.empty(0)).deficits, once.deficits
    )
    twice = note_scores(drift, np.array([[0.25, 0.75]]), np.array([-1e9]), np.array([2.0]))
    np.testing.assert_allclose(twice.deficits, 2.0 * once.deficits)


def test_what_is_left_is_worth_what_it_loses_and_no_less_than_it_takes():
    model = Mixture(2, Gaussian(2))
    totals = model.zeros(2)
    totals.count[...] = 150.0
    summary = Summary(totals, 300, 300.0)
    drift = replace(
        expected(np.random.default_rng(0).normal(size=4000)), memory=np.array([1e4, 1e4]), deficits=np.array([450.0, 0.0])
    )
    after, mass = judge_batch(drift, Progress(20_000, 2e4, 10.0, 2e4, 2e4), np.full(2, 0.5), summary, 10.0, True)
    assert after.memory[0] == pytest.approx(0.5 * 10.0 / 3.0, rel=0.1)  # three nats a row
    assert after.memory[1] == 1e4 and mass == 2e4
    assert after.following and after.alarms == 1 and after.clock == pytest.approx(np.log(1e4 / after.memory[0]), abs=1e-3)
    few = replace(summary, statistics=replace(totals, count=np.array([4.0, 296.0])))
    starving = replace(drift, sums=np.array([[450.0, 0.0], [0.0, 0.0]]), since=np.array([[150.0, 0.0], [0.0, 0.0]]))
    after, _ = judge_batch(starving, Progress(20_000, 2e4, 10.0, 2e4, 2e4), np.full(2, 0.5), few, 10.0, True)
    assert after.memory[0] >= 6.0 - 1e-9


def test_a_fold_moves_moments_and_leaves_weights():
    model = Mixture(2, Gaussian(2))
    start = model.zeros(2)
    start.count[...] = 0.5
    start.first[...] = [[0.0, 0.0], [3.0, 3.0]]
    batch = model.zeros(2)
    batch.count[...] = 50.0
    batch.first[...] = [[500.0, 0.0], [300.0, 300.0]]
    drift = replace(Drift.begin(np.array([50.0, 5000.0])), clock=1.0)
    after, progress, known = fold_forgetting(
        model, drift, start, Progress(10_000, 1e4, 10.0, 1e4, 1e4), Summary(batch, 100, 100.0), 1e4, 1.0, 5.0
    )
    np.testing.assert_allclose(after.count, 0.5)
    np.testing.assert_allclose(after.first[0] / after.count[0], [5.0, 0.0])  # half of the stream is new
    np.testing.assert_allclose(after.first[1] / after.count[1], [6.0, 6.0])
    assert progress.mass == 10_100.0 and progress.n_eff == pytest.approx(200.0)
    np.testing.assert_allclose(known.memory, [100.0, 5050.0])


# What a user sees


def test_what_forgets_is_told():
    model = mixture().partial_fit(drawn(6000, 3))
    assert not [one for one in model.health_.findings if one.kind == "forgetting"]
    model.partial_fit(drawn(1000, 4, shifted(0, [2.0, 2.0])))
    which, _ = near(model, [2.0, 2.0])
    (finding,) = [one for one in model.health_.findings if one.kind == "forgetting"]
    assert finding.components == (which,) and not finding.action
    assert finding.sentence.startswith(f"Component {which} has changed (last seen after ")
    half_lives, weights = forgetting(model._read().stream, 500)
    assert finding.numbers["shortest"] == half_lives[which] and not weights
    np.testing.assert_array_equal(mixture(700.0).partial_fit(drawn(600)).half_life_, np.full(4, 700.0))
    assert np.isinf(mixture(None).partial_fit(drawn(600)).half_life_).all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"half_life": "often"}, "half_life"),
        ({"half_life": -1.0}, "half_life"),
        ({"reservoir": 0}, "reservoir must be at least"),
        ({"algorithm": "online-em"}, "needs algorithm='auto'"),
        ({"algorithm": hw.Auto(batch_size=1)}, "needs algorithm='auto'"),
        ({"parts": 2}, "parts must be 1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        mixture(**options).partial_fit(drawn(50))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [hw.GaussianHMM, hw.LatentDirichletAllocation, hw.ItakuraSaitoNMF, hw.DirectionOfArrival])
def test_others_cannot(kind):
    rows = np.abs(drawn(50)) + (1j if kind is hw.DirectionOfArrival else 0.0)
    with pytest.raises(ValueError, match=r"half_life.*'auto'"):
        kind(half_life="auto").partial_fit(rows)


@pytest.mark.data
@pytest.mark.skipif(not DIRECTORY, reason="HEADWATER_DATA names no directory")
def test_prices_of_electricity_drift():
    from examples.drift_data import electricity

    rows = electricity(Path(DIRECTORY) / "electricity_nsw/electricity_nsw.csv.gz")
    scores = {}
    for half_life in ("auto", None, 1000, 16_000):
        model = hw.GaussianMixture(6, half_life=half_life, random_state=0, n_threads=1)
        scores[half_life] = float(model.update(rows)[2048:].mean())
    assert scores["auto"] > max(scores[None], scores[16_000]) + 0.2
    assert scores["auto"] > scores[1000] - 0.1
