"""Incremental EM: ends where batch EM ends, in fewer passes, whatever the threads."""

import numpy as np
import pytest

from headwater.core.batch import Batch
from headwater.core.block_climb import climb_blocks, cut_blocks
from headwater.core.climb import climb
from headwater.families.gaussian import Gaussian
from headwater.models.mixture import Mixture

K = 3


@pytest.fixture(scope="module")
def begun():
    """A model with its prior, rows with weights, and statistics of poor parameters."""
    rng = np.random.default_rng(0)
    X = 2.0 * rng.normal(size=(K, 2))[rng.integers(K, size=900)] + rng.normal(size=(900, 2))
    model, batch = Mixture(K, Gaussian(K, "diag")), Batch(X, rng.uniform(0.5, 2.0, 900))
    geometry, shares = model.family.geometry(batch), rng.dirichlet(np.ones(K), size=900)
    return model, model.prior(geometry, batch, shares), model.collect(geometry, batch, shares), batch


def test_it_ends_where_batch_em_ends(begun):
    model, prior, summary, batch = begun
    flat = model.flatten_prior(prior)
    known = climb(model, "mode", flat, None, summary, batch, 3000, 1e-12, penalised=False)
    found = climb_blocks(model, "mode", flat, summary.mean, batch, 3000, 1e-12)
    assert found.trace[-1] == pytest.approx(known.trace[-1], abs=1e-6)
    early = climb_blocks(model, "mode", prior, summary.mean, batch, 6, 0.0)
    assert early.trace[-1] > climb(model, "mode", prior, None, summary, batch, 7, 0.0, penalised=False).trace[-1]


def test_what_it_returns_belongs_together(begun):
    model, prior, summary, batch = begun
    found = climb_blocks(model, "mode", prior, summary.mean, batch, 2, 0.0)
    wanted = model.summarize(found.parameters, batch)
    assert found.summary.size == pytest.approx(batch.size) and found.summary.rows == len(batch)
    assert found.summary.score == pytest.approx(wanted.score, rel=1e-12)
    np.testing.assert_allclose(found.summary.statistics.first, wanted.statistics.first, rtol=1e-10)


def test_threads_do_not_change_a_bit(begun):
    model, prior, summary, batch = begun
    one, two = (climb_blocks(model, "mode", prior, summary.mean, batch, 2, 0.0, n_threads=n).summary for n in (1, 2))
    assert one.score == two.score and np.array_equal(one.statistics.second, two.statistics.second)


def test_blocks_hold_every_row_once():
    X = np.arange(1003.0)[:, None]
    found = [part.X[:, 0] for parts in cut_blocks(Batch(X), 10) for part in parts]
    assert np.array_equal(np.sort(np.concatenate(found)), X[:, 0])
    assert len(cut_blocks(Batch(X[:5]), 10)) == 1
