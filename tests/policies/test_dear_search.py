"""Streams of mixtures with many parameters: a search climbs in blocks, and its base is restated by one E-step."""

import numpy as np
import pytest

import headwater as hw
from headwater.core.batch import Batch
from headwater.core.lineage import root_stream
from headwater.core.loop import advance
from headwater.core.warm_up import find_stream_start, start_policies
from headwater.policies import restate
from headwater.policies.refinement_record import MANY_PARAMETERS

K, WIDTH, ROWS = 26, 100, 2400


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(K, WIDTH))[rng.integers(K, size=ROWS)] + rng.normal(size=(ROWS, WIDTH))


def make():
    return hw.GaussianMixture(K, covariance_type="diag", warm_up=1500, reservoir=3000, random_state=0, n_threads=1)


def test_cuts_change_nothing_and_reading_gains(rows):
    one, other = make().partial_fit(rows), make()
    for part in np.split(rows, [700, 1600]):
        other.partial_fit(part)
    assert K * 2 * WIDTH > MANY_PARAMETERS
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-7, atol=1e-9)
    begun = make().partial_fit(rows[:1500])
    assert one.score(rows) > begun.score(rows)


def test_the_base_is_what_its_rows_say(rows, monkeypatch):
    plan = make().partial_fit(rows[:10])._learner.plan
    batch = Batch(rows[:1500])
    start = find_stream_start(plan, batch, 0)
    stream = start_policies(plan, root_stream(plan, 0, start), start, batch)
    stream, _ = advance(plan, stream, Batch(rows[1500:]))
    moved = stream.model.readout("mode", stream.base.prior, stream.statistics, 1000.0)
    assert len(stream.records["reservoir"]) == ROWS
    short = restate.restate_base(plan, stream, moved).statistics
    monkeypatch.setattr(restate, "MANY_PARAMETERS", 10**9)
    long = restate.restate_base(plan, stream, moved).statistics
    for name, array in long.to_arrays().items():
        np.testing.assert_allclose(getattr(short, name), array, rtol=1e-7, atol=1e-9, err_msg=name)
