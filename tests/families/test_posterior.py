"""From log-densities to responsibilities."""

import numpy as np
import pytest
from naive import mixture as twin

from headwater.families.posterior import posterior


@pytest.mark.parametrize("n, k", [(1, 1), (3, 2), (127, 5), (128, 8), (300, 9)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_responsibilities_are_those_of_a_loop_over_rows(n, k, order):
    rng = np.random.default_rng(n)
    joint = rng.normal(0.0, 20.0, size=(n, k))
    joint[rng.random((n, k)) < 0.1] = -np.inf
    joint[0] = -np.inf  # impossible in every component
    joint[-1, 0] = 1e280
    log_weights = np.log(rng.dirichlet(np.ones(k)))
    for labels in (np.empty(0, dtype=np.int64), rng.integers(-1, k, size=n)):
        shares, scores = twin.share_rows(joint, log_weights, labels)
        found = np.array(joint, order=order)
        np.testing.assert_allclose(posterior(found, labels, log_weights), scores, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found, shares, rtol=1e-11, atol=1e-300)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
        whole = joint + log_weights
        np.testing.assert_allclose(posterior(whole, labels), scores, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(whole, shares, rtol=1e-11, atol=1e-300)


def test_no_rows_have_no_responsibilities():
    assert posterior(np.empty((0, 3)), np.empty(0, dtype=np.int64)).shape == (0,)
