"""Documents of three topics, mixtures that learn them, and checks of a sound mixture, for the tests of counts."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.core.records import arrays_of

V, K = 15, 3
ONLINE = ("auto", "boem", "soem", "online-em", "online-vb", "quasi-bayes")
ADDING = ("auto", "boem", "online-vb", "quasi-bayes")  # whose counts add
TOPICS = np.random.default_rng(0).dirichlet(np.full(V, 0.4), K)


def docs(n, seed=0, length=25, topics=TOPICS):
    """Return documents and their topics."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(len(topics), size=n, p=np.arange(1.0, len(topics) + 1) / np.arange(1, len(topics) + 1).sum())
    return rng.multinomial(length, topics[kinds]).astype(float), kinds


X, KINDS = docs(400)
SPARSE = sparse.csr_array(X)


def mixture(algorithm="auto", k=K, **options):
    return hw.MultinomialMixture(k, algorithm=algorithm, **{"random_state": 0, "warm_up": 100, **options})


def given(seed=1, k=K, v=V, **options):
    """Return parameters to start from, so that no start has to be searched for."""
    phi = np.random.default_rng(seed).dirichlet(np.ones(v), k)
    return {"probabilities_init": phi, "weights_init": np.full(k, 1 / k), **options}


@contextmanager
def unconverged():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def content(model):
    return [array.tobytes() for array in arrays_of(model._state)]


def assert_same(one, other):
    same = content(one) == content(other)  # hypothesis cannot simplify the bytes
    assert same


def assert_close(one, other, rtol=1e-8):
    assert one.n_samples_seen_ == other.n_samples_seen_
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=rtol)
    np.testing.assert_allclose(one.probabilities_, other.probabilities_, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(one.probability_concentration_, other.probability_concentration_, rtol=rtol, atol=1e-10)


def assert_sound(model, rows):
    assert np.isfinite(model.score_samples(rows)).all()
    assert np.isfinite(model.predictive_score_samples(rows)).all()
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1.0, rtol=1e-8)
    assert model.weights_.sum() == pytest.approx(1.0)
    held = [model._state]
    if not model._runtime.warming_up and "reservoir" in model._state.records:  # whose limit is infinite until it is full
        held = [model._state.without("reservoir"), model._state.records["reservoir"].batch]
    assert all(np.isfinite(array).all() for array in arrays_of(tuple(held)))
    assert repr(model)


def error_to(model, topics=TOPICS):
    """Return the largest error of the probabilities, with components in the best order."""
    from scipy.optimize import linear_sum_assignment

    gaps = np.abs(model.probabilities_[:, None] - topics).max(axis=2)
    return gaps[linear_sum_assignment(gaps)].max()
