"""Counts, priors and totals of K multinomials: for the tests of their kernels."""

import numpy as np
import pytest
from naive import multinomial as naive

from headwater.core.batch import SparseRows
from headwater.families.multinomial import Multinomial
from headwater.families.multinomial_records import MultinomialStatistics
from headwater.families.table import Table

V = 24
GROUPS = np.repeat(np.arange(5, dtype=np.int32), [6, 1, 9, 5, 3])
SHAPES = ["default", "number", "columns", "components"]
sizes = pytest.mark.parametrize("k", [1, 2, 5, 20, 33])
names = pytest.mark.parametrize("name", naive.READOUTS)
in_groups = pytest.mark.parametrize("grouped", [False, True], ids=["one group", "groups"])


def groups_of(grouped):
    return GROUPS if grouped else None


def family_of(k, grouped=False, given=None):
    return Multinomial(k, given, *([GROUPS] if grouped else []))


def counts(rng, n=12):
    """Return rows of all kinds: empty, of one word, of thousands of counts, and with weights that are not whole."""
    X = rng.poisson(0.6, (n, V)).astype(float)
    X[1] = 0.0
    X[2] = np.eye(V)[5]
    X[3] = rng.integers(0, 3000, V)
    X[4] = rng.uniform(0.0, 2.0, V) * (rng.uniform(size=V) < 0.5)
    X[5, :3] = [1e-7, 0.5, 20_000.0]
    return X


def held_sparse(X, rng):
    """Return the rows as a slice of a larger matrix, with some zeros stored."""
    stored = (X != 0.0) | (rng.uniform(size=X.shape) < 0.1)
    around = [rng.uniform(size=(3, X.shape[1])) < 0.5 for _ in range(2)]
    mask = np.vstack([around[0], stored, around[1]])
    values = np.vstack([around[0] * 9.0, X, around[1] * 7.0])
    indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    rows = SparseRows(values[mask], np.nonzero(mask)[1].astype(np.int32), indptr.astype(np.int64), X.shape[1])
    return rows[3 : 3 + len(X)]


def prior_of(shape, k, rng):
    """Return a prior as a user gives it, and as dense Dirichlet parameters with the shift of a mode."""
    given = {
        "default": None,
        "number": 1.5,
        "columns": rng.uniform(1.1, 4.0, V),
        "components": rng.uniform(1.1, 4.0, (k, V)),
    }[shape]
    if given is None:
        return None, np.full((V, k), 0.1), 0.0  # is added to counts, for every readout
    return given, np.broadcast_to(np.reshape(np.transpose(given), (V if np.ndim(given) else 1, -1)), (V, k)), 1.0


def random_totals(rng, k, grouped=False, factor=0.01):
    """Return totals that hold only some words, as a record and dense."""
    words = rng.permutation(V)[: V - 5].astype(np.int32)
    table = factor * Table.of_words(V, words, rng.gamma(0.5, 1000.0, (len(words), k)))
    dense = np.asarray(table)
    return MultinomialStatistics(
        np.zeros(1), rng.uniform(1.0, 9.0, k), naive.group_sums(dense, groups_of(grouped)), table
    ), dense


def assert_statistics(found, wanted, rtol=1e-11):
    for name, array in zip(("count", "length", "table"), wanted, strict=True):
        array = np.asarray(array)
        scale = np.abs(array).max(initial=0.0)
        np.testing.assert_allclose(np.asarray(getattr(found, name)), array, rtol=rtol, atol=1e-13 * scale, err_msg=name)
