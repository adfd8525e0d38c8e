"""A small model of every kind, with chunks to learn, for tests that apply to all models."""

import numpy as np
from scipy.sparse import csr_array

import headwater as hw
from headwater.core.chunk import Chunk

NAMES = ("length", "weight", "age")


def _rows(n, rng):
    return rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + np.where(
        rng.random((n, 1)) < 0.3, [[0.0, 9.0, 40.0]], [[5.0, 2.0, 20.0]]
    )


def _documents(n, rng):
    topics = np.array([[5.0, 4.0, 3.0, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 3.0, 4.0, 5.0]])
    return rng.multinomial(20, (topics / topics.sum(axis=1, keepdims=True))[rng.integers(2, size=n)]).astype(float)


def _tables(n, rng):
    return Chunk(_rows(n, rng), NAMES)


def _targets(n, rng):
    X = rng.normal(size=(n, 2))
    return Chunk(X, NAMES[:2], y=np.where(rng.random(n) < 0.4, X[:, 0], 3.0 - X[:, 1]) + 0.1 * rng.normal(size=n))


def _words(n, rng):
    return Chunk(csr_array(_documents(n, rng)), [f"word{at}" for at in range(6)])


def _clicks(n, rng):
    steps = np.where(rng.random((n, 1)) < 0.5, rng.integers(0, 3, size=(n, 8)), rng.integers(0, 2, size=(n, 8)))
    return Chunk(steps.ravel(), lengths=np.full(n, 8), schema={"kind": "sequences", "symbols": ["home", "shop", "pay"]})


def _chain(n, rng):
    states = np.cumsum(rng.random(n) > 0.95) % 2
    return Chunk(rng.normal(size=(n, 2)) + 4.0 * states[:, None], NAMES[:2])


def _symbols(n, rng):
    states = np.cumsum(rng.random(n) > 0.95) % 2
    return Chunk(np.where(states, rng.integers(0, 2, n), rng.integers(1, 4, n)).astype(float)[:, None])


def _frames(n, rng):
    spectra = np.array([[8.0, 4.0, 2.0, 1.0, 0.5, 0.1], [0.1, 0.2, 0.5, 1.0, 4.0, 8.0]])
    return Chunk(1.0 / rng.gamma(1.0, size=(n, 2)) @ spectra * rng.exponential(size=(n, 6)))


def _snapshots(n, rng):
    draws = rng.normal(size=(n, 5, 2)) @ [1.0, 1.0j]
    return Chunk(draws[:, :1] * np.exp(0.7j * np.arange(4)) + draws[:, 1:])


def _events(n, rng):
    return Chunk(rng.poisson(np.array([[1.0, 6.0, 3.0], [5.0, 1.0, 3.0]])[rng.integers(2, size=n)]).astype(float), NAMES)


def _counted_chain(n, rng):
    busy = np.arange(n) // 20 % 2
    return Chunk(rng.poisson(np.array([[1.0, 6.0, 3.0], [5.0, 1.0, 3.0]])[busy]).astype(float), NAMES)


def _flags(n, rng):
    return Chunk((rng.random((n, 3)) < np.array([[0.9, 0.8, 0.1], [0.2, 0.1, 0.7]])[rng.integers(2, size=n)]) * 1.0, NAMES)


def _categories(n, rng):
    kinds = rng.integers(2, size=(n, 1)) + (rng.random((n, 3)) < 0.2)
    return Chunk(np.array(["low", "middle", "high"], dtype=object)[kinds], NAMES)


def _mixed(n, rng):
    kinds = rng.integers(2, size=n)
    columns = (
        rng.normal(size=n) + 5.0 * kinds,
        np.array(["card", "cash"], dtype=object)[kinds],
        rng.poisson(2.0 + 5.0 * kinds),
    )
    return Chunk(np.column_stack([np.asarray(one, dtype=object) for one in columns]), NAMES)


KINDS = {
    "gaussian": (lambda: hw.GaussianMixture(2, warm_up=60, random_state=0), _tables),
    "bayesian": (lambda: hw.BayesianGaussianMixture(n_components=2, warm_up=60, random_state=0), _tables),
    "student": (lambda: hw.StudentMixture(2, warm_up=60, random_state=0), _tables),
    "background": (lambda: hw.GaussianMixture(2, background=True, warm_up=60, random_state=0), _tables),
    "sweeping": (lambda: hw.GaussianMixture(2, warm_up=60, random_state=0, algorithm="soem"), _tables),
    "parts": (lambda: hw.GaussianMixture(2, warm_up=60, random_state=0, covariance_type="diag", parts=2), _tables),
    "multinomial": (lambda: hw.MultinomialMixture(2, warm_up=60, random_state=0), _words),
    "markov": (lambda: hw.MarkovMixture(2, warm_up=60, random_state=0), _clicks),
    "regression": (lambda: hw.RegressionMixture(2, warm_up=60, random_state=0), _targets),
    "topics": (lambda: hw.LatentDirichletAllocation(2, warm_up=60, random_state=0), _words),
    "spectra": (lambda: hw.ItakuraSaitoNMF(2, warm_up=60, random_state=0), _frames),
    "chain": (lambda: hw.GaussianHMM(2, warm_up=60, random_state=0), _chain),
    "symbols": (lambda: hw.CategoricalHMM(2, warm_up=60, random_state=0), _symbols),
    "counted chain": (lambda: hw.PoissonHMM(2, warm_up=60, random_state=0), _counted_chain),
    "flagged chain": (lambda: hw.BernoulliHMM(2, warm_up=60, random_state=0), _flags),
    "switching": (lambda: hw.RegressionHMM(2, warm_up=60, random_state=0), _targets),
    "autoregressive": (lambda: hw.AutoregressiveHMM(2, warm_up=60, random_state=0), _chain),
    "directions": (lambda: hw.VonMisesFisherMixture(2, warm_up=60, random_state=0), _tables),
    "events": (lambda: hw.PoissonMixture(2, warm_up=60, random_state=0), _events),
    "flags": (lambda: hw.BernoulliMixture(2, warm_up=60, random_state=0), _flags),
    "categories": (lambda: hw.CategoricalMixture(2, warm_up=60, max_categories=6, random_state=0), _categories),
    "mixed": (
        lambda: hw.MixedMixture(2, columns={2: "poisson"}, warm_up=60, max_categories=6, random_state=0),
        _mixed,
    ),
    "grouped chain": (lambda: hw.GMMHMM(2, 2, warm_up=60, random_state=0), _chain),
    "lasting chain": (lambda: hw.SemiMarkov(2, max_duration=6, warm_up=60, random_state=0), _chain),
    "mixed chain": (
        lambda: hw.MixedHMM(2, columns={2: "poisson"}, warm_up=60, max_categories=6, random_state=0),
        _mixed,
    ),
    "arrival": (lambda: hw.DirectionOfArrival(warm_up=60, random_state=0), _snapshots),
}


def stream_of(kind, sizes=(100, 70, 130, 200), seed=0):
    """Return chunks for a kind of model."""
    rng = np.random.default_rng(seed)
    return [KINDS[kind][1](size, rng) for size in sizes]


def learned(kind, sizes=(100, 70, 130, 200)):
    """Return a model of this kind that has learned its stream."""
    model = KINDS[kind][0]()
    for chunk in stream_of(kind, sizes):
        model.partial_fit(**chunk)
    return model
