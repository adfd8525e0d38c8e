"""Documents of three topics, models that learn them, and checks of a sound model, for the tests of topics."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment

import headwater as hw
from headwater.core.records import arrays_of

V, K = 12, 3
TOPICS = np.full((K, V), 0.02)
for topic in range(K):
    TOPICS[topic, 4 * topic : 4 * topic + 4] = 0.4, 0.2, 0.16, 0.1
TOPICS /= TOPICS.sum(axis=1, keepdims=True)
METROPOLIS = hw.SimulatedEM(sampler="metropolis", burn_in=40, n_samples=20, kappa=60.0)
ALGORITHMS = ["auto", "simulated-em", "online-vb", "scvb0", METROPOLIS]
NAMES = ["auto", "simulated-em", "online-vb", "scvb0", "metropolis"]
every = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)


def docs(n, seed=0, alpha=0.4, length=40, topics=TOPICS):
    rng = np.random.default_rng(seed)
    alpha = np.broadcast_to(alpha, len(topics))
    return rng.multinomial(length, rng.dirichlet(alpha, n) @ topics).astype(float)


X = docs(400)
SPARSE = sparse.csr_array(X)


def lda(algorithm="auto", k=K, **options):
    return hw.LatentDirichletAllocation(k, algorithm=algorithm, **{"random_state": 0, "warm_up": 100, **options})


def small(algorithm="auto", **options):
    """Return a model that folds often."""
    kinds = {
        "auto": hw.SimulatedEM(batch_size=30), "simulated-em": hw.SimulatedEM(batch_size=30, average=False),
        "online-vb": hw.OnlineVB(30, 0.7), "scvb0": hw.CollapsedVB(batch_size=30),
    }  # fmt: skip
    return lda(kinds.get(algorithm, algorithm) if isinstance(algorithm, str) else algorithm, **options)


def order_of(model, topics=TOPICS):
    gaps = np.abs(model.topics_[:, None] - topics).sum(axis=2) / 2
    rows, columns = linear_sum_assignment(gaps)
    return rows[np.argsort(columns)], gaps[rows, columns].max()


def content(model):
    names = getattr(model, "feature_names_in_", None)
    return [array.tobytes() for array in arrays_of(model._state)], model.n_features_in_, None if names is None else list(names)


def assert_same(one, other):
    same = content(one) == content(other)
    assert same


def assert_close(one, other, rtol=1e-7):
    assert one.n_samples_seen_ == other.n_samples_seen_
    for left, right in zip(arrays_of(one._read().stream), arrays_of(other._read().stream), strict=True):
        np.testing.assert_allclose(left, right, rtol=rtol, atol=rtol * max(1.0, np.abs(right).max(initial=0.0)))


def assert_sound(model, rows):
    np.testing.assert_allclose(model.topics_.sum(axis=1), 1.0)
    assert (model.topics_ >= 0.0).all() and np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.transform(rows).sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples(rows)).all()
    assert (model.doc_topic_prior_ > 0.0).all()
    assert all(np.isfinite(array).all() for array in arrays_of(model._state))
    assert repr(model)


def one_sentence(caught):
    assert str(caught.value) and "\n" not in str(caught.value)
