"""SemiMarkov: against enumeration of all stays, as a stream, in files, and its sentences."""

import numpy as np
import pytest
from naive.semi_markov import enumerate_stays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import headwater as hw
from headwater.models.durations import read_durations


def stays(number, seed=0, counts=False):
    """Return rows of two states that last four rows, and nine or so."""
    rng = np.random.default_rng(seed)
    lengths = np.column_stack([np.full(number, 4), 7 + rng.integers(5, size=number)]).ravel()
    states = np.repeat(np.tile([0, 1], number), lengths)
    return (rng.poisson(1.0 + 7.0 * states) if counts else rng.normal(3.0 * states))[:, None].astype(float), states


@pytest.fixture(scope="module", params=["negative-binomial", "categorical"])
def model(request):
    rng = np.random.default_rng(1)
    states = np.repeat(rng.integers(3, size=120), rng.integers(1, 4, size=120))
    rows = rng.normal(2.0 * states)[:, None]
    return hw.SemiMarkov(3, duration=request.param, max_duration=4, random_state=0).fit(rows)


def logs_of(model, X):
    return np.nan_to_num(stats.norm.logpdf(X, model.means_[:, 0], np.sqrt(model.covars_[:, 0])))


def test_scores_states_and_paths_are_those_of_all_stays(model):
    X = np.array([[0.1], [1.8], [2.2], [np.nan], [4.1], [3.0], [0.4]])
    score, states, path = enumerate_stays(model.startprob_, model.transmat_, model.durations_, logs_of(model, X))
    assert model.score(X) == pytest.approx(score, rel=1e-10)
    assert_allclose(model.predict_proba(X), states, rtol=1e-8, atol=1e-12)
    for at in range(7):
        _, so_far, _ = enumerate_stays(model.startprob_, model.transmat_, model.durations_, logs_of(model, X[: at + 1]))
        assert_allclose(model.smooth(X, lag=0)[at], so_far[-1], rtol=1e-8, atol=1e-12)
    found = model.predict(X)
    assert_array_equal(found, path)
    assert_allclose(model.filter(X, key="another"), model.smooth(X, lag=0), rtol=1e-8, atol=1e-12)
    assert_allclose(model.filter([0.1], key="another"), model.smooth([[0.1]])[0], rtol=1e-8, atol=1e-12)
    assert model.next_state_proba(X=X).shape == (3,)


def test_forecasts_are_those_of_all_stays(model):
    X = np.array([[0.1], [1.8], [2.2], [2.0]])
    ahead = model.forecast(3, X)
    whole = np.vstack([X, np.full((3, 1), np.nan)])
    _, states, _ = enumerate_stays(model.startprob_, model.transmat_, model.durations_, logs_of(model, whole))
    assert_allclose(ahead.state_proba, states[4:], rtol=1e-8, atol=1e-12)
    assert_allclose(ahead.mean[:, 0], states[4:] @ model.means_[:, 0], rtol=1e-8)


@pytest.mark.parametrize("duration", ["negative-binomial", "categorical"])
def test_passes_never_lower_the_objective(duration):
    X, _ = stays(40)
    model = hw.SemiMarkov(2, duration=duration, max_duration=15, algorithm="em", n_iter=15, tol=0.0, random_state=0).fit(X)
    history = np.array(model.monitor_.history)
    assert (np.diff(history) > -1e-6 * np.abs(history[0])).all()


@pytest.mark.parametrize("emission", ["gaussian", "poisson"])
def test_streams_find_durations_in_any_chunks(emission):
    X, states = stays(150, counts=emission == "poisson")
    few, many = (hw.SemiMarkov(2, emission=emission, max_duration=16, warm_up=300, random_state=0) for _ in range(2))
    for chunk in np.array_split(X, 11):
        many.partial_fit(chunk)
    few.partial_fit(X)
    assert_allclose(many.durations_, few.durations_, rtol=1e-9)
    assert_allclose(np.sort(many.expected_durations_), [4.0, 9.0], atol=0.6)
    order = np.argsort((many.lambdas_ if emission == "poisson" else many.means_)[:, 0])
    assert np.mean(order[states] == many.predict(X)) > 0.97
    plain = hw.PoissonHMM(2, random_state=0) if emission == "poisson" else hw.GaussianHMM(2, random_state=0)
    assert many.score(X) > plain.fit(X).score(X) + 30.0


def test_saved_merged_and_drawn(tmp_path):
    base = hw.SemiMarkov(2, max_duration=16, warm_up=300, random_state=0).partial_fit(stays(40)[0])
    merged = hw.merge([base.branch().partial_fit(stays(30, seed)[0]) for seed in (1, 2)])
    assert merged.n_samples_seen_ == sum(len(stays(*some)[0]) for some in ((40,), (30, 1), (30, 2)))
    merged.save(tmp_path / "model.hw")
    read, later = hw.load(tmp_path / "model.hw"), stays(10, 3)[0]
    assert_allclose(read.partial_fit(later).durations_, merged.partial_fit(later).durations_, rtol=1e-9)
    fitted = hw.SemiMarkov(2, max_duration=16, random_state=0).fit(stays(60)[0])
    fitted.save(tmp_path / "fitted.hw")
    assert_array_equal(hw.load(tmp_path / "fitted.hw").forecast(4).mean, fitted.forecast(4).mean)
    _, states = fitted.sample(4000, random_state=0)
    edges = np.flatnonzero(np.diff(states)) + 1
    lengths = np.diff(edges)
    for k in range(2):
        assert lengths[states[edges[:-1]] == k].mean() == pytest.approx(fitted.expected_durations_[k], abs=0.4)
    assert stats.kstest(fitted.residuals(stays(60)[0]).ravel(), "norm").pvalue > 1e-3
    assert str(fitted).startswith("SemiMarkov(")
    assert str(fitted).splitlines()[2].split() == ["state", "often", "rows", "x0"]  # no probability of staying: it is 0
    assert np.allclose(fitted.get_stationary_distribution().sum(), 1.0)


def test_sentences():
    X, _ = stays(10)
    with pytest.raises(ValueError, match="n_components times max_duration must be at most 1024, got 2000"):
        hw.SemiMarkov(2, max_duration=1000).fit(X)
    with pytest.raises(
        ValueError, match="SemiMarkov cannot be learned by 'vb': use one of EM, such as 'auto', 'em' or 'online-em'"
    ):
        hw.SemiMarkov(2, algorithm="vb").fit(X)
    with pytest.raises(ValueError, match="X must hold counts, which are not negative, got"):
        hw.SemiMarkov(2, emission="poisson").fit(X - 5.0)
    with pytest.raises(ValueError, match="currstate must be a state, from 0 to 1, got 2"):
        hw.SemiMarkov(2, max_duration=5, random_state=0).fit(X).sample(3, currstate=2)
    with pytest.raises(ValueError, match="lengths must add up to"):
        hw.SemiMarkov(2).fit(X, lengths=[3])
    assert hw.SemiMarkov(2, max_duration=5, random_state=0).fit(X).sample(3, random_state=0, currstate=1)[1][0] == 1


@pytest.mark.parametrize(("size", "chance"), [(3.0, 0.4), (0.5, 0.2), (60.0, 0.9)])
def test_durations_are_fitted_by_the_most_likely_law(size, chance):
    law = stats.nbinom.pmf(np.arange(25), size, chance)
    found = read_durations("negative-binomial", 1000.0 * law[None], 1.0)[0]
    assert_allclose(found, law / law.sum(), atol=2e-6)


def test_a_second_fit_learns_anew():
    X, _ = stays(20)
    once = hw.SemiMarkov(2, max_duration=12, random_state=0).fit(X)
    assert_allclose(once.fit(X).durations_, hw.SemiMarkov(2, max_duration=12, random_state=0).fit(X).durations_, rtol=1e-9)


@pytest.mark.parametrize(("algorithm", "word"), [("online-vb", "'online-vb'"), (hw.OnlineVB(batch_size=20), "OnlineVB")])
def test_algorithms_without_a_readout_are_refused_as_words_and_as_objects(algorithm, word):
    rows = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.raises(ValueError, match=f"SemiMarkov cannot be learned by {word}: use one of EM"):
        hw.SemiMarkov(2, algorithm=algorithm, warm_up=60, random_state=0).partial_fit(rows)


def test_stays_that_are_cut_are_said(caplog):
    X, _ = stays(60)
    fitted = hw.SemiMarkov(2, max_duration=16, random_state=0).fit(X)
    assert not fitted.health_.of_kind("cut") and not caplog.records
    short = hw.SemiMarkov(2, max_duration=6, random_state=0).fit(X)
    (finding,) = short.health_.of_kind("cut")
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == finding.sentence and finding.action
    at = int(np.argmax(short.means_[:, 0]))
    assert at in finding.components and "stays that are cut: " in said
    assert said.endswith("of them last 6 rows, and none may last longer; raise max_duration.")
    assert said in str(short)


@pytest.mark.parametrize("emission", ["gaussian", "poisson"])
def test_states_that_are_far_apart_are_followed_in_logarithms(emission):
    X, states = stays(30, counts=emission == "poisson")
    X += 5000.0 * states[:, None]
    model = hw.SemiMarkov(2, emission=emission, max_duration=14, random_state=0).fit(X)
    order = np.argsort((model.lambdas_ if emission == "poisson" else model.means_)[:, 0])
    assert_array_equal(model.predict(X), order[states])
    assert_allclose(model.predict_proba(X), np.eye(2)[order[states]], atol=1e-6)
    assert_allclose(np.sort(model.expected_durations_), [4.0, 9.0], atol=0.6)
