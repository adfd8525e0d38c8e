"""Sequences of two Markov chains, mixtures that learn them, and checks of a sound mixture."""

import warnings
from functools import cache

import numpy as np
import pytest
from naive import multinomial as naive
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.core.records import arrays_of

S, K = 4, 2
ONLINE = ("auto", "boem", "soem", "online-em", "online-vb", "quasi-bayes")
START = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]])
STEPS = np.array([np.full((S, S), 0.1) + 0.6 * np.eye(S), np.full((S, S), 0.1) + 0.6 * np.roll(np.eye(S), 1, axis=1)])


@cache
def walks(n, seed=0, longest=30):
    """Return sequences of two given chains, some of them empty, and the chain of each."""
    rng = np.random.default_rng(seed)
    kinds, sequences = rng.integers(K, size=n), []
    for kind in kinds:
        sequence = []
        for place in range(rng.integers(0, longest + 1)):
            sequence.append(int(rng.choice(S, p=STEPS[kind][sequence[-1]] if place else START[kind])))
        sequences.append(sequence)
    return sequences, kinds


SEQUENCES, KINDS = walks(250)


def mixture(algorithm="auto", k=K, **options):
    return hw.MarkovMixture(k, algorithm=algorithm, **{"random_state": 0, "warm_up": 60, "n_symbols": S, **options})


def fitted(model, sequences=SEQUENCES, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(sequences, **options)


def content(model):
    return [array.tobytes() for array in arrays_of(model._state)]


def assert_sound(model, sequences=SEQUENCES):
    np.testing.assert_allclose(model.startprob_.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(model.transmat_.sum(axis=2), 1.0, rtol=1e-9)
    assert model.startprob_.shape == (model.n_components, model.n_symbols_)
    assert model.transmat_.shape == (model.n_components, model.n_symbols_, model.n_symbols_)
    assert np.isfinite(model.score_samples(sequences)).all()
    assert np.isfinite(model.predictive_score_samples(sequences)).all()
    np.testing.assert_allclose(model.predict_proba(sequences).sum(axis=1), 1.0)
    assert repr(model)


def assert_close(one, other, rtol=1e-8):
    assert one.n_samples_seen_ == other.n_samples_seen_
    for name in ("weights_", "startprob_", "transmat_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-12)


def error_to_truth(model):
    gaps = np.abs(model.transmat_[:, None] - STEPS).max(axis=(2, 3))
    return gaps[linear_sum_assignment(gaps)].max()


def chain_joint(model, sequences):
    """Return (n, K) joint log-probabilities, computed symbol by symbol."""
    out, weights = np.empty((len(sequences), model.n_components)), np.log(model.weights_)
    for k, (start, steps) in enumerate(zip(model.startprob_, model.transmat_, strict=True)):
        for i, sequence in enumerate(sequences):
            out[i, k] = weights[k] + naive.chain_log_probability(start, steps, sequence)
    return out


def refusal(call, *arguments, **options):
    with pytest.raises((ValueError, TypeError)) as caught:
        call(*arguments, **options)
    sentence = str(caught.value)
    assert sentence.strip() and "\n" not in sentence
    return sentence
