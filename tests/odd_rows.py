"""Unusual rows for every kind of estimator: ties, constants, huge and tiny values."""

import numpy as np
from scipy.sparse import csr_array

import headwater as hw

ROWS = {
    "ties": lambda n, width, rng: rng.integers(0, 2, size=(n, width)).astype(float),
    "rounded": lambda n, width, rng: np.round(rng.normal(size=(n, width)), 1),
    "constant": lambda n, width, rng: np.full((n, width), 3.7),
    "constant column": lambda n, width, rng: np.where(np.arange(width) == 0, 5.0, rng.normal(size=(n, width))),
    "huge": lambda n, width, rng: rng.normal(size=(n, width)).clip(-5, 5) * 1e99,
    "far": lambda n, width, rng: 1e9 + rng.normal(size=(n, width)),
    "tiny": lambda n, width, rng: rng.normal(size=(n, width)) * 1e-150,
    "scales": lambda n, width, rng: rng.normal(size=(n, width)) * 10.0 ** np.linspace(-50, 90, width),
    "sorted": lambda n, width, rng: np.sort(np.round(3.0 * rng.normal(size=(n, width))), axis=0),
    "zero": lambda n, width, rng: np.zeros((n, width)),
    "collinear": lambda n, width, rng: rng.normal(size=(n, 1)) * np.arange(1.0, width + 1.0),
    "outliers": lambda n, width, rng: np.where(rng.random((n, 1)) < 0.01, 1e99, 1.0) * rng.normal(size=(n, width)).clip(-5, 5),
}
# The rows for each estimator.
CHUNKS = {
    hw.GaussianMixture: lambda X: {"X": X},
    hw.StudentMixture: lambda X: {"X": X},
    hw.BayesianGaussianMixture: lambda X: {"X": X},
    hw.MultinomialMixture: lambda X: {"X": csr_array(np.minimum(np.abs(X), 1e30))},
    hw.MarkovMixture: lambda X: {"X": (np.abs(X) % 4).astype(int)},
    hw.RegressionMixture: lambda X: {"X": X[:, :-1], "y": X[:, -1]},
    hw.LatentDirichletAllocation: lambda X: {"X": csr_array(np.minimum(np.abs(X), 20.0))},
    hw.ItakuraSaitoNMF: lambda X: {"X": np.abs(X)},
    hw.GaussianHMM: lambda X: {"X": X},
    hw.CategoricalHMM: lambda X: {"X": (np.abs(X[:, :1]) % 4).astype(int)},
    hw.PoissonHMM: lambda X: {"X": np.minimum(np.abs(X), 1e15).round()},
    hw.BernoulliHMM: lambda X: {"X": X > 0.0},
    hw.RegressionHMM: lambda X: {"X": X[:, :-1], "y": X[:, -1]},
    hw.AutoregressiveHMM: lambda X: {"X": X},
    hw.PoissonMixture: lambda X: {"X": np.minimum(np.abs(X), 1e15).round()},
    hw.BernoulliMixture: lambda X: {"X": X > 0.0},
    hw.CategoricalMixture: lambda X: {"X": (np.abs(X) % 4).round()},
    hw.MixedMixture: lambda X: {"X": np.column_stack([X[:, :2], np.abs(X[:, 2:3]) % 4 > 1, (np.abs(X[:, 3:]) % 4).round()])},
    hw.GMMHMM: lambda X: {"X": X},
    hw.SemiMarkov: lambda X: {"X": X},
    hw.MixedHMM: lambda X: {"X": np.column_stack([X[:, :2], np.abs(X[:, 2:3]) % 4 > 1, (np.abs(X[:, 3:]) % 4).round()])},
    hw.DirectionOfArrival: lambda X: {"X": X + 1j * X[::-1]},
    hw.VonMisesFisherMixture: lambda X: {"X": np.where(np.abs(X).max(axis=1, keepdims=True) > 0.0, X, 1.0)},
}


def blank(kind, algorithm, **options):
    """Return a small estimator of a kind, for rows of four columns."""
    given = {"n_components": 2, "warm_up": 60, "random_state": 0, "algorithm": algorithm}
    given |= {"n_symbols": 4} if kind is hw.MarkovMixture else {"n_features": 4, "lag": 10} if kind is hw.CategoricalHMM else {}
    if kind in (hw.MixedMixture, hw.MixedHMM):
        given["columns"] = {0: "gaussian", 1: "gaussian", 2: "bernoulli", 3: "categorical"}
    if kind is hw.DirectionOfArrival:
        del given["n_components"]
    return kind(**given | options)
