"""Chains of stays: kernels that know where places lead to are those for any passages."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from headwater.families.gaussian import Gaussian
from headwater.families.repeated import Repeated
from headwater.models.chain_underflow import Filtered
from headwater.models.passages import ANY
from headwater.models.semi_markov import SemiMarkovChain

K, D = 3, 4
EDGES, COUNTED = np.array([0, 7, 8, 20]), np.array([5, 1, 12])
KNOWN = np.array([True, True, False])


def a_chain(seed, far=0.0):
    """Return a model, parameters, densities of rows that are `far` apart, and filters."""
    rng = np.random.default_rng(seed)
    model = SemiMarkovChain(K * D, Repeated.of(Gaussian(K, "diag", 0.0), D), longest=D)
    passages = rng.dirichlet(np.ones(K), size=K) * (1.0 - np.eye(K))
    durations = rng.dirichlet(np.ones(D), size=K)
    durations[0, 0] = durations[1, 2] = 0.0
    passages, durations = (one / one.sum(axis=1, keepdims=True) for one in (passages, durations))
    parameters = model.expand(rng.dirichlet(np.ones(K)), passages, durations, None)
    logs = np.repeat(rng.normal(size=(20, K)) - far * rng.integers(2, size=(20, K)), D, axis=1)
    return model, parameters, logs, rng.dirichlet(np.ones(K * D), size=3)


def everything(passages, parameters, logs, filters, in_logs):
    """Return all that kernels make of rows: filter, smoother and counts."""
    shares, ahead, scores, filters = np.exp(logs), np.empty_like(logs), np.zeros(len(logs)), filters.copy()
    wanted = passages.filter(parameters, shares, logs, EDGES, KNOWN, filters, ahead, scores)
    assert wanted == -1
    found = Filtered(shares.copy(), ahead, scores, None)
    if in_logs:
        found = passages.filter_in_logs(parameters, logs, EDGES, KNOWN, filters, found._replace(shares=shares + 1.0))
    first, steps = np.zeros(K * D), np.zeros((K * D, K * D))
    parts = [found.shares.copy(), found.ahead.copy(), found.scores.copy()]
    passages.smooth(found, parameters, EDGES, KNOWN, filters, COUNTED, first, steps)
    return [*parts, found.shares, filters, first, steps * parameters.transitions]


@pytest.mark.parametrize("in_logs", [False, True])
@pytest.mark.parametrize("far", [0.0, 300.0, 650.0])
def test_stays_are_passages_like_any(far, in_logs):
    for seed in range(3):
        model, parameters, logs, filters = a_chain(seed, far)
        ones, others = (everything(one, parameters, logs, filters, in_logs) for one in (model.passages, ANY))
        for one, other in zip(ones, others, strict=True):
            assert_allclose(one, other, rtol=1e-9, atol=1e-13)


def test_best_paths_and_rows_ahead():
    for seed in range(5):
        model, parameters, logs, _ = a_chain(seed)
        (one, path), (other, same) = (passages.best(parameters, logs, EDGES) for passages in (model.passages, ANY))
        assert one == pytest.approx(other, rel=1e-12)
        assert_array_equal(path, same)
        for lag in (0, 3, 30):
            ahead = [passages.look_ahead(parameters, logs, lag) for passages in (model.passages, ANY)]
            assert_allclose(*ahead, rtol=1e-10, atol=1e-12)
