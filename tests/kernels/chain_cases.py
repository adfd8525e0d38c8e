"""Chains of three states over every kind of emission, and rows for them."""

import numpy as np
import pytest
from naive import chains as naive_chains
from naive import gaussian as naive

from headwater.families.categorical import Categorical
from headwater.families.gaussian import Gaussian
from headwater.models.chain_records import ChainParameters
from headwater.models.hidden_markov import HiddenMarkov

K, D, V = 3, 2, 4
KINDS = (*naive.KINDS, None)  # None: symbols
kinds = pytest.mark.parametrize("kind", KINDS, ids=[kind or "symbols" for kind in KINDS])


def a_chain(seed, sticky=2.0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K) * 0.7 + 0.3 * np.eye(K)


def a_model(kind, seed=0, lag=50):
    family = Categorical(K, n_symbols=V) if kind is None else Gaussian(K, kind)
    return HiddenMarkov(K, family, lag=lag)


def some_parameters(kind, seed=0, start=None, transitions=None):
    rng = np.random.default_rng(seed)
    own_start, own_transitions = a_chain(seed)
    family = a_model(kind).family
    if kind is None:
        emissions = family.from_probabilities(rng.dirichlet(np.ones(V), K))
    else:
        means = rng.normal(size=(K, D)) * 2.0
        root = rng.normal(size=(K, D, D)) * 0.3 + np.eye(D)
        factor = {"full": np.tril(root), "tied": np.tril(root[0]), "diag": np.exp(rng.normal(size=(K, D)) * 0.3)}
        if kind in ("full", "tied"):
            diagonal = np.arange(D)
            factor[kind][..., diagonal, diagonal] = np.abs(factor[kind][..., diagonal, diagonal]) + 0.2
        emissions = family.from_precisions(np.array([0.3, -0.2]), means, factor.get(kind, np.array([0.8, 1.2, 0.5])))
    return ChainParameters(
        own_start if start is None else start, own_transitions if transitions is None else transitions, emissions
    )


def some_rows(kind, rows, seed=0, missing=()):
    rng = np.random.default_rng(seed + 100)
    X = rng.integers(V, size=(rows, 1)).astype(float) if kind is None else rng.normal(size=(rows, D)) * 2.0
    X[list(missing)] = np.nan
    return X


def assert_statistics(kind, found, wanted, rtol=1e-10, atol=1e-11):
    for part, array in zip(naive_chains.flat_parts(kind, found), wanted, strict=True):
        np.testing.assert_allclose(part, array, rtol=rtol, atol=atol)
