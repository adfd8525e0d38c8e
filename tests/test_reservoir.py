"""The reservoir: a uniform sample, the same however the stream is cut and whatever the tree of merges."""

import copy
import pickle
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from headwater.kernels.random import begin_stream
from headwater.reservoir import Reservoir, merged, taken
from headwater.row_keys import KEYS, least_key_beyond, log, proposes, ranks_of, row_key, row_keys
from headwater.state import Batch, arrays_of, fingerprint, sparse_rows

ROOM = 2**40


def same(one, other):
    left, right = list(arrays_of(one)), list(arrays_of(other))
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    assert fingerprint(one, size=8) == fingerprint(other, size=8)


def dense(rng, rows, columns=3):
    return Batch(rng.normal(size=(rows, columns)), rng.uniform(0.5, 2.0, rows), rng.integers(-1, 3, rows))


def sparse(rng, rows, columns=12):
    X = rng.poisson(rng.gamma(0.2, 2.0, (rows, 1)), (rows, columns)).astype(float)  # of very different sizes
    return Batch(sparse_rows(X), rng.uniform(0.5, 2.0, rows), rng.integers(-1, 3, rows))


def streamed(reservoir, batch, cuts, first=0, clock=None):
    edges = [0, *sorted(cuts), len(batch)]
    for start, stop in pairwise(edges):
        reservoir = taken(
            reservoir, batch[start:stop], first + start, 0.0 if clock is None else np.ascontiguousarray(clock[start:stop])
        )
    return reservoir


def slow(key, batch, capacity, places, clock=0.0):
    """Places of the rows that a reservoir should keep, by a sort of all."""
    u = 1.0 - ((row_keys(key, places) >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52
    return places[np.argsort(np.log(-np.log(u)) - clock)[:capacity]]


def test_keys_are_those_of_the_kernels():
    places = np.array([0, 1, 2, 17, 10**9, 2**62])
    for key in (0, 1, 12345, 2**63 - 1, 2**64 - 1):
        states = np.zeros((len(places), 1), dtype=np.uint64)
        for state, place in zip(states, places, strict=True):
            begin_stream(state, np.uint64(key), place)
        assert np.array_equal(row_keys(key, places), states[:, 0])
        assert [row_key(key, int(place)) for place in places] == states[:, 0].tolist()


def test_logarithms_and_ranks():
    values = np.concatenate([np.random.default_rng(0).random(5000), 2.0 ** np.arange(-53, 1), 1.0 - 2.0 ** -np.arange(2, 54.0)])
    np.testing.assert_allclose(log(values), np.log(values), rtol=2e-15, atol=0.0)
    keys = np.sort(np.concatenate([row_keys(0, np.arange(5000)), np.array([0, 2**64 - 1], dtype=np.uint64)]))
    ranks = ranks_of(keys)
    assert np.isfinite(ranks).all() and (np.diff(ranks) >= 0.0).all()
    assert np.array_equal(ranks_of(keys, 2.0), ranks - 2.0)


@pytest.mark.parametrize("clock", [0.0, 3.0, 800.0])
def test_most_rows_are_told_by_their_keys(clock):
    keys = row_keys(3, np.arange(20_000))
    for limit in (-20.0, -5.0, -0.1, 1.0, 5.0, np.inf):
        beyond = least_key_beyond(limit - clock, clock)
        below = ranks_of(keys, clock) < limit - clock
        passed = keys < np.uint64(beyond) if beyond < KEYS else np.ones(len(keys), dtype=bool)
        assert not (below & ~passed).any()
        assert (passed & ~below).sum() <= 1


def test_every_place_has_the_same_chance():
    rows, capacity, streams = 200, 20, 600
    batch, counts, proposing = Batch(np.arange(rows, dtype=float)[:, None]), np.zeros(rows), 0
    for key in range(streams):
        kept = taken(Reservoir(key, capacity, ROOM), batch, 0)
        assert len(kept) == capacity
        counts[kept.places] += 1
        proposing += kept.proposes.sum()
    assert stats.chisquare(counts).pvalue > 1e-3
    assert stats.binomtest(int(proposing), capacity * streams).pvalue > 1e-3


def test_proposing_has_nothing_to_do_with_the_rank():
    keys = np.sort(row_keys(0, np.arange(20_000)))
    assert stats.binomtest(int(proposes(keys[:4000]).sum()), 4000).pvalue > 1e-3
    assert abs(np.corrcoef(proposes(keys), np.arange(len(keys)))[0, 1]) < 0.03


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("aging", [False, True])
def test_cuts_change_no_bit(make, aging):
    rng = np.random.default_rng(0)
    batch = make(rng, 700)
    clock = np.cumsum(rng.random(700)) * 0.01 if aging else None
    for capacity, room in ((50, ROOM), (5000, 4000), (90, 7000), (1, ROOM), (5000, ROOM)):
        once = taken(Reservoir(9, capacity, room), batch, 0, 0.0 if clock is None else clock)
        for cuts in [range(1, 700)] + [rng.choice(np.arange(1, 700), size, replace=False) for size in (1, 2, 5, 20, 90, 300)]:
            same(streamed(Reservoir(9, capacity, room), batch, cuts, clock=clock), once)
        assert len(once) <= capacity and once.nbytes <= room
        if room == ROOM:
            expected = slow(9, batch, capacity, np.arange(700), 0.0 if clock is None else clock)
            assert np.array_equal(once.places, expected)
        kept = batch[once.places]
        same(once.batch.X, kept.X)
        assert np.array_equal(once.batch.weights, kept.weights) and np.array_equal(once.batch.labels, kept.labels)


def test_reading_on_the_way_changes_no_bit():
    batch = dense(np.random.default_rng(1), 400)
    quiet = read = Reservoir(2, 60, ROOM)
    for at in range(0, 400, 7):
        quiet, read = (taken(one, batch[at : at + 7], at) for one in (quiet, read))
        assert len(read) <= 60 and read.batch.X.shape == (len(read), 3)
    same(quiet, read)


def test_older_versions_stay_what_they_were_and_rows_are_copied():
    batch = dense(np.random.default_rng(1), 400)
    X = batch.X.copy()
    before = taken(Reservoir(2, 60, ROOM), replace(batch, X=X)[:1], 0)
    before = taken(before, replace(batch, X=X)[1:100], 1)
    places = before.places.copy()
    after = taken(before, replace(batch, X=X)[100:], 100)
    X[...] = 0.0
    assert np.array_equal(before.places, places) and np.array_equal(before.batch.X, batch.X[places])
    assert np.array_equal(after.batch.X, batch.X[after.places])
    same(pickle.loads(pickle.dumps(after)), after)
    same(copy.deepcopy(before), before)


def test_rows_without_weights_and_labels():
    kept = taken(Reservoir(0, 5, ROOM), Batch(np.arange(10.0)[:, None]), 0).batch
    assert kept.weights.tolist() == [1.0] * 5 and kept.labels.tolist() == [-1] * 5


def test_rows_far_in_the_future_and_listed_places():
    rng = np.random.default_rng(0)
    batch, places = dense(rng, 300), np.sort(rng.choice(2**50, 300, replace=False))
    once = taken(Reservoir(4, 40, ROOM), batch, places)
    assert set(once.places) == set(slow(4, batch, 40, places))
    twice = taken(taken(Reservoir(4, 40, ROOM), batch[:123], places[:123]), batch[123:], places[123:])
    same(once, twice)


def test_aging_samples_by_present_weight():
    rows, half_life, streams = 400, 50, 400
    clock = np.arange(rows) * np.log(2.0) / half_life
    weights = np.exp(clock - clock[-1])
    counts = np.zeros(rows)
    for key in range(streams):  # a sample of one: each row in proportion to its weight
        counts[taken(Reservoir(key, 1, ROOM), Batch(np.zeros((rows, 1))), 0, clock).places] += 1
    blocks = counts.reshape(-1, 50).sum(axis=1), weights.reshape(-1, 50).sum(axis=1)
    late = slice(-5, None)
    expected = blocks[1][late] / blocks[1][late].sum() * blocks[0][late].sum()
    assert stats.chisquare(blocks[0][late], expected).pvalue > 1e-3
    assert blocks[0][-1] > 0.4 * streams


def branches(make, capacity, room, shared=150, n=4):
    rng = np.random.default_rng(3)
    base = taken(Reservoir(1, capacity, room), make(rng, shared), 0)
    if n == 0:
        return base
    return [taken(base, make(rng, int(rng.integers(1, 400))), shared) for _ in range(n)]


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize(("capacity", "room"), [(60, ROOM), (5000, ROOM), (5000, 4000), (100, 9000)])
def test_merges_in_any_tree(make, capacity, room):
    parts = branches(make, capacity, room)
    once = merged(parts, 150)
    a, b, c, d = parts
    same(merged([d, b, a, c], 150), once)
    same(reduce(lambda left, right: merged([left, right], 150), parts), once)
    same(merged([merged([d, a], 150), merged([c, b], 150)], 150), once)
    same(merged([a], 150), a)
    base = branches(make, capacity, room, n=0)
    same(merged([base, base], 150), base)
    same(merged([a, base], 150), a)
    assert len(once) <= capacity and once.nbytes <= room
