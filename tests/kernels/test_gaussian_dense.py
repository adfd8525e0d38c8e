"""E-steps of many components of many columns: products in float32 show who is near, and what counts is taken in float64."""

from dataclasses import replace

import numpy as np
import pytest

from headwater.core.batch import Batch
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import make_parameters
from headwater.kernels import gaussian_dense
from tests.naive import gaussian as naive

K, WIDTH, ROWS = 64, 64, 150


def draw(kind, apart, outliers, rng):
    """Rows of groups that lie so far apart, and parameters near the truth."""
    means = apart * rng.normal(size=(K, WIDTH))
    X = means[rng.integers(K, size=ROWS)] + rng.normal(size=(ROWS, WIDTH))
    X[:outliers] *= 1e4
    factor = rng.uniform(0.7, 1.3, (K, WIDTH if kind == "diag" else 1)) * np.ones((1, WIDTH))
    return make_parameters(False, rng.normal(size=WIDTH), means, factor), Batch(X, rng.uniform(0.5, 2.0, ROWS))


@pytest.mark.parametrize("kind", ["diag", "spherical"])
@pytest.mark.parametrize("apart, outliers", [(0.05, 0), (0.3, 0), (0.6, 3), (1.5, 0)])
def test_dense_steps_are_those_of_the_equations(kind, apart, outliers):
    parameters, batch = draw(kind, apart, outliers, np.random.default_rng(0))
    family, scores = Gaussian(K, kind), np.empty(ROWS)
    assert K * WIDTH >= gaussian_dense.LEAST_NARROW and family.kind.dense_from(K, WIDTH)
    resp, wanted = naive.responsibilities(naive.log_joint(kind, parameters, np.zeros(K), batch.X))
    _, totals = family.estep(parameters, np.zeros(K), batch, family.zeros(WIDTH), scores=scores)
    np.testing.assert_allclose(scores, wanted, rtol=1e-10)
    count, first, second = naive.totals(kind, batch.X - parameters.origin, resp, batch.weights)
    for found, known in ((totals.count, count), (totals.first, first), (totals.second, second)):
        np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-10 * (1.0 + np.abs(known).max()))


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_products_in_float32_are_used_where_they_are_exact_enough(kind, monkeypatch):
    parameters, batch = draw(kind, 1.5, 0, np.random.default_rng(1))
    family, calls = Gaussian(K, kind), []
    sharpen = gaussian_dense.sharpen
    monkeypatch.setattr(gaussian_dense, "sharpen", lambda *args: calls.append(sharpen(*args)) or calls[-1])
    family.estep(parameters, np.zeros(K), batch, family.zeros(WIDTH))
    assert calls and sum(calls) < 0.1 * ROWS * K
    made = len(calls)
    far = replace(batch, X=1e3 * batch.X)  # products would be off by more than what tells components apart
    family.estep(parameters, np.zeros(K), far, family.zeros(WIDTH))
    assert len(calls) == made
