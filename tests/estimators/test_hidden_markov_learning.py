"""Streams of hidden Markov models forget, recover the truth, and converge where it lies."""

import numpy as np
import pytest
from chain_models import a_stream, symbol_stream
from hidden_markov_streams import GAUSSIAN, KEYS, ROWS, a_model, models, rows_for
from scipy.stats import multivariate_normal

import headwater as hw
from headwater.core.loop import finalize
from headwater.core.records import arrays_of

# Forgetting


@models
@pytest.mark.parametrize("algorithm", ["online-em", hw.OnlineEM(batch_size=40)], ids=str)
def test_old_rows_fade(make, algorithm):
    """After many half-lives only new rows count: the lengths of stays are those of the new chain."""
    stream = a_stream if make is hw.GaussianHMM else symbol_stream
    X = np.concatenate([stream(3000, seed=5, stay=0.95)[0], stream(6000, seed=6, stay=0.6)[0]])
    fading = a_model(make, algorithm, half_life=400.0).partial_fit(X)
    assert np.abs(np.diag(fading.transmat_) - 0.6).max() < 0.15
    assert np.diag(a_model(make, "boem").partial_fit(X).transmat_).min() > np.diag(fading.transmat_).min() + 0.05


# Recovery


@pytest.mark.slow
@models
@pytest.mark.parametrize("algorithm", ["auto", "online-em", "soem", "boem", "online-vb"])
def test_one_pass_finds_the_chain(make, algorithm):
    if make is hw.GaussianHMM:
        X, _ = a_stream(60_000, seed=4)
    else:
        X, _ = symbol_stream(60_000, seed=4)
    model = make(2, random_state=0, algorithm=algorithm)
    for at in range(0, len(X), 7000):
        model.partial_fit(X[at : at + 7000])
    np.testing.assert_allclose(np.diag(model.transmat_), 0.9, atol=0.01)
    if make is hw.GaussianHMM:
        np.testing.assert_allclose(np.sort(model.means_[:, 0]), [0.0, 3.0], atol=0.05)
        wanted = multivariate_normal(np.zeros(2), np.eye(2)).logpdf(np.zeros(2))
        assert model.covars_.shape == (2, 2, 2)
        assert np.isfinite(wanted)
    else:
        order = np.argsort(model.emissionprob_[:, 0])
        np.testing.assert_allclose(model.emissionprob_[order], [[0.0, 0.1, 0.3, 0.6], [0.6, 0.3, 0.1, 0.0]], atol=0.02)


# Where streams turn


@pytest.mark.covering("make", "algorithm")
@models
@pytest.mark.parametrize("algorithm", ["online-em", hw.OnlineEM(batch_size=40), hw.OnlineVB(batch_size=100)], ids=str)
@pytest.mark.parametrize("rows", [100, 500])
def test_a_key_that_is_closed_and_used_again_is_another_key(make, algorithm, rows):
    X, later = rows_for(make)[:1000], np.arange(1000) >= rows
    renamed = np.where(later & (KEYS[:1000] == "one"), "one again", KEYS[:1000])
    wanted = a_model(make, algorithm).partial_fit(X, key=renamed)
    found = (
        a_model(make, algorithm).partial_fit(X[:rows], key=KEYS[:rows]).close("one").partial_fit(X[rows:], key=KEYS[rows:1000])
    )
    for one, other in zip(
        arrays_of(finalize(found._learner.plan, found._state).statistics),
        arrays_of(finalize(wanted._learner.plan, wanted._state).statistics),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.next_state_proba("one"), wanted.next_state_proba("one again"), rtol=1e-8)


@models
@pytest.mark.parametrize(
    "words",
    [
        ("online-em", "boem"),
        ("boem", "online-em"),
    ],
    ids=str,
)
def test_no_row_is_lost_when_the_algorithm_changes(make, words):
    X = rows_for(make)
    model = a_model(make, words[0]).partial_fit(X[:700]).set_params(algorithm=words[1]).partial_fit(X[700:])
    assert model.n_samples_seen_ == ROWS
    model._read()
    assert finalize(model._learner.plan, model._state).progress.rows_seen == ROWS


def test_steps_of_one_forget_all_and_stay_finite():
    model = a_model(hw.GaussianHMM, "online-em", half_life=0.005)
    for at in range(0, 600, 200):
        model.partial_fit(GAUSSIAN[at : at + 200], key=KEYS[at : at + 200])
    assert np.isfinite(model.transmat_).all()
    assert np.isfinite(model.means_).all()


def test_rows_by_name_are_learned_in_silence():
    model = a_model(hw.GaussianHMM)
    for row in GAUSSIAN[:5]:
        model.learn_one({"b": row[1], "a": row[0]}, key="x")
    assert list(model.feature_names_in_) == ["b", "a"]
    assert model.n_samples_seen_ == 5
    np.testing.assert_array_equal(model._state.buffer.batch().X, GAUSSIAN[:5, ::-1])


def test_a_sample_that_comes_again_is_not_counted():
    model = a_model(hw.GaussianHMM).warm_start_from(GAUSSIAN[:300], [100, 200], weight=0.1)
    assert model.n_samples_seen_ == 0
    assert model.open_sequences_ == []
    np.testing.assert_array_equal(model.next_state_proba(), model._position()[0].start)
    model.partial_fit(GAUSSIAN[:50], key="a")
    assert model.n_samples_seen_ == 50
    assert model.open_sequences_ == ["a"]
