"""Kernels of tables of categories against loops over rows."""

import numpy as np
from naive import columns as twin

from headwater.kernels.category_tables import add_log_probabilities, count_categories


def test_codes_are_looked_up_and_counted_as_loops_do():
    rng = np.random.default_rng(0)
    n, d, cells, k = 60, 3, 5, 4
    X = rng.integers(cells, size=(n, d)).astype(float)
    X[rng.random((n, d)) < 0.2] = np.nan
    codes = np.where(np.isnan(X), -1.0, X).astype(np.int64)
    shares, tables = rng.dirichlet(np.ones(k), size=n), rng.dirichlet(np.ones(cells), size=(k, d))
    found = np.zeros((n, k))
    add_log_probabilities(codes, np.ascontiguousarray(np.log(tables).transpose(1, 2, 0)), found)
    np.testing.assert_allclose(found, twin.categorical(tables, X), rtol=1e-12)
    counted = np.zeros((d, cells, k))
    count_categories(codes, shares, counted)
    expected = np.zeros((d, cells, k))
    for i in range(n):
        for j in range(d):
            if not np.isnan(X[i, j]):
                expected[j, int(X[i, j])] += shares[i]
    np.testing.assert_allclose(counted, expected, rtol=1e-12)
