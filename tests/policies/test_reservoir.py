"""The reservoir: a uniform sample that depends neither on the chunks nor on the tree of merges."""

import copy
import pickle
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from headwater.core.batch import Batch, drop_zeros
from headwater.core.records import arrays_of, fingerprint
from headwater.core.row_keys import KEYS, least_key_beyond, log, proposes, ranks_of, row_key, row_keys
from headwater.kernels.random import begin_stream
from headwater.policies.reservoir import Reservoir, add_rows, merge_reservoirs, rows_since, widen_rows

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
    return Batch(drop_zeros(X), rng.uniform(0.5, 2.0, rows), rng.integers(-1, 3, rows))


def streamed(reservoir, batch, cuts, first=0, clock=None):
    edges = [0, *sorted(cuts), len(batch)]
    for start, stop in pairwise(edges):
        reservoir = add_rows(
            reservoir, batch[start:stop], first + start, 0.0 if clock is None else np.ascontiguousarray(clock[start:stop])
        )
    return reservoir


def slow(key, batch, capacity, places, clock=0.0):
    """Return the places of the rows that a reservoir should keep, by sorting all rows."""
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
    keys = row_keys(3, np.arange(5000))
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
        kept = add_rows(Reservoir(key, capacity, ROOM), batch, 0)
        assert len(kept) == capacity
        counts[kept.places] += 1
        proposing += kept.proposes.sum()
    assert stats.chisquare(counts).pvalue > 1e-3
    assert stats.binomtest(int(proposing), capacity * streams).pvalue > 1e-3


def test_proposing_has_nothing_to_do_with_the_rank():
    keys = np.sort(row_keys(0, np.arange(5000)))
    assert stats.binomtest(int(proposes(keys[:4000]).sum()), 4000).pvalue > 1e-3
    assert abs(np.corrcoef(proposes(keys), np.arange(len(keys)))[0, 1]) < 0.03


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("aging", [False, True])
def test_cuts_change_no_bit(make, aging):
    rng = np.random.default_rng(0)
    batch = make(rng, 700)
    clock = np.cumsum(rng.random(700)) * 0.01 if aging else None
    for capacity, room in ((50, ROOM), (5000, 4000), (90, 7000), (1, ROOM), (5000, ROOM)):
        once = add_rows(Reservoir(9, capacity, room), batch, 0, 0.0 if clock is None else clock)
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
        quiet, read = (add_rows(one, batch[at : at + 7], at) for one in (quiet, read))
        assert len(read) <= 60 and read.batch.X.shape == (len(read), 3)
    same(quiet, read)


def test_older_versions_stay_what_they_were():
    batch = dense(np.random.default_rng(1), 400)
    before = add_rows(Reservoir(2, 60, ROOM), batch[:100], 0)
    places = before.places.copy()
    after = add_rows(before, batch[100:], 100)
    assert np.array_equal(before.places, places) and np.array_equal(before.batch.X, batch.X[places])
    same(pickle.loads(pickle.dumps(after)), after)
    same(copy.deepcopy(before), before)


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("cuts", [[], range(1, 40), [20, 21]])
def test_rows_are_copied(make, cuts):
    batch = make(np.random.default_rng(1), 40)
    expected = add_rows(Reservoir(2, 100, ROOM), copy.deepcopy(batch), 0)
    kept = streamed(Reservoir(2, 100, ROOM), batch, cuts)
    X = batch.X if make is dense else batch.X.data
    for array in (X, batch.weights, batch.labels):
        array[...] = 0
    same(kept, expected)


def test_rows_without_weights_and_labels():
    kept = add_rows(Reservoir(0, 5, ROOM), Batch(np.arange(10.0)[:, None]), 0).batch
    assert kept.weights.tolist() == [1.0] * 5 and kept.labels.tolist() == [-1] * 5


def test_rows_far_in_the_future_and_listed_places():
    rng = np.random.default_rng(0)
    batch, places = dense(rng, 300), np.sort(rng.choice(2**50, 300, replace=False))
    once = add_rows(Reservoir(4, 40, ROOM), batch, places)
    assert set(once.places) == set(slow(4, batch, 40, places))
    twice = add_rows(add_rows(Reservoir(4, 40, ROOM), batch[:123], places[:123]), batch[123:], places[123:])
    same(once, twice)


def test_aging_samples_by_present_weight():
    rows, half_life, streams = 400, 50, 400
    clock = np.arange(rows) * np.log(2.0) / half_life
    weights = np.exp(clock - clock[-1])
    counts = np.zeros(rows)
    for key in range(streams):  # a sample of one: each row in proportion to its weight
        counts[add_rows(Reservoir(key, 1, ROOM), Batch(np.zeros((rows, 1))), 0, clock).places] += 1
    blocks = counts.reshape(-1, 50).sum(axis=1), weights.reshape(-1, 50).sum(axis=1)
    late = slice(-5, None)
    expected = blocks[1][late] / blocks[1][late].sum() * blocks[0][late].sum()
    assert stats.chisquare(blocks[0][late], expected).pvalue > 1e-3
    assert blocks[0][-1] > 0.4 * streams


def branches(make, capacity, room, shared=150, n=4):
    rng = np.random.default_rng(3)
    base = add_rows(Reservoir(1, capacity, room), make(rng, shared), 0)
    if n == 0:
        return base
    return [add_rows(base, make(rng, int(rng.integers(1, 400))), shared) for _ in range(n)]


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize(("capacity", "room"), [(60, ROOM), (5000, ROOM), (5000, 4000), (100, 9000)])
def test_merges_in_any_tree(make, capacity, room):
    parts = branches(make, capacity, room)
    once = merge_reservoirs(parts, 150)
    a, b, c, d = parts
    same(merge_reservoirs([d, b, a, c], 150), once)
    same(reduce(lambda left, right: merge_reservoirs([left, right], 150), parts), once)
    same(merge_reservoirs([merge_reservoirs([d, a], 150), merge_reservoirs([c, b], 150)], 150), once)
    same(merge_reservoirs([a], 150), a)
    base = branches(make, capacity, room, n=0)
    same(merge_reservoirs([base, base], 150), base)
    same(merge_reservoirs([a, base], 150), a)
    alone = merge_reservoirs([rows_since(one, 150) for one in parts])
    same(merge_reservoirs([base, alone], 150), once)
    assert (alone.places >= 150).all() and len(alone)
    assert len(once) <= capacity and once.nbytes <= room


def test_rows_of_branches_are_different_rows_and_those_of_the_base_are_not():
    """The reservoir holds all rows, so the merged sample is known."""
    base_rows, own = np.arange(10.0)[:, None], [np.full((5, 1), 100.0), np.full((5, 1), 100.0), np.arange(5.0)[:, None]]
    base = add_rows(Reservoir(0, 1000, ROOM), Batch(base_rows), 0)
    parts = [add_rows(base, Batch(rows), 10) for rows in own]
    both = merge_reservoirs(parts, 10)
    assert len(both) == 10 + 15
    assert sorted(both.batch.X[:, 0]) == sorted(np.concatenate([base_rows, *own])[:, 0])
    assert len(merge_reservoirs(parts, 0)) == 3 * 15
    further = [add_rows(both, Batch(np.full((2, 1), -1.0)), 25), add_rows(both, Batch(np.full((3, 1), -1.0)), 25)]
    again = merge_reservoirs(further, 25)  # equal rows of two branches still count as two
    assert len(again) == 25 + 5
    assert (again.batch.X == 100.0).sum() == 10
    same(merge_reservoirs(further[::-1], 25), again)


@pytest.mark.parametrize(("capacity", "room"), [(40, ROOM), (1000, 3500)])
def test_merges_of_merges_with_twins(capacity, room):
    """Branches with few different rows, and with equal places and ranks, are merged and branched again."""
    rng = np.random.default_rng(5)

    def few(rows):
        return Batch(drop_zeros(rng.integers(0, 2, (rows, 9)) * (rng.random((rows, 1)) < 0.3) * 1.0))

    base = add_rows(Reservoir(1, capacity, room), few(30), 0)
    first = merge_reservoirs([add_rows(base, few(60), 30) for _ in range(4)], 30)
    seen = 30 + 4 * 60
    parts = [add_rows(first, few(int(rng.integers(5, 80))), seen) for _ in range(5)]
    once = merge_reservoirs(parts, seen)
    assert len(once) <= capacity and once.nbytes <= room
    for _ in range(10):
        order = rng.permutation(5)
        cut = int(rng.integers(1, 5))
        sides = [merge_reservoirs([parts[at] for at in side], seen) for side in (order[:cut], order[cut:])]
        same(merge_reservoirs(sides, seen), once)


def test_merges_of_streams_that_age_apart():
    rng = np.random.default_rng(2)
    base = add_rows(Reservoir(1, 50, ROOM), dense(rng, 100), 0, np.arange(100) * 0.01)
    parts = [add_rows(base, dense(rng, 200), 100, 1.0 + np.arange(200) * pace) for pace in (0.0, 0.01, 0.02)]
    once = merge_reservoirs(parts, 100)
    same(merge_reservoirs([merge_reservoirs(parts[1:], 100), parts[0]], 100), once)
    assert len(once) == 50


def test_a_key_of_ones_own():
    """A branch may have other random numbers for later rows; the rows that it holds stay."""
    rng = np.random.default_rng(2)
    base = add_rows(Reservoir(1, 1000, ROOM), dense(rng, 20), 0)
    other = replace(base, key=2)
    more = dense(rng, 30)
    one, two = add_rows(base, more, 20), add_rows(other, more, 20)
    both = merge_reservoirs([one, two], 20)
    assert len(both) == 80 and both.key == 1
    assert len(np.unique(both.ranks)) == 80


def test_dense_and_sparse_rows_become_sparse():
    rng = np.random.default_rng(4)
    first, second = rng.poisson(0.5, (100, 6)).astype(float), rng.poisson(0.5, (100, 8)).astype(float)
    wide = np.hstack([first, np.zeros((100, 2))])
    expected = streamed(Reservoir(3, 40, ROOM), Batch(drop_zeros(np.vstack([wide, second]))), [100])
    for cuts in ([], [10], range(1, 100, 9)):
        reservoir = streamed(Reservoir(3, 40, ROOM), Batch(first), cuts)
        reservoir = streamed(reservoir, Batch(drop_zeros(second)), cuts, first=100)
        same(reservoir, expected)
    dense_after = add_rows(add_rows(Reservoir(3, 40, ROOM), Batch(drop_zeros(wide)), 0), Batch(second), 100)
    same(dense_after, expected)


def test_widened():
    rng = np.random.default_rng(4)
    batch = sparse(rng, 200)
    wide = replace(batch, X=batch.X.widened(20))
    for room in (ROOM, 3000):
        expected = add_rows(Reservoir(3, 40, room), wide, 0)
        same(widen_rows(add_rows(Reservoir(3, 40, room), batch, 0), 20), expected)
        same(add_rows(add_rows(Reservoir(3, 40, room), batch[:150], 0), wide[150:], 150), expected)
        same(widen_rows(add_rows(widen_rows(add_rows(Reservoir(3, 40, room), batch[:7], 0), 20), batch[7:], 7), 20), expected)
    assert widen_rows(Reservoir(3, 40, ROOM), 20).sample is None


def test_a_small_row_does_not_take_the_room_of_a_large_one_before_it():
    places = np.arange(50)
    order = np.argsort(row_keys(0, places))
    X = np.zeros((50, 30))
    X[order[2]] = 1.0  # the third in rank is large, all others are empty
    batch = Batch(drop_zeros(X))
    room = 48 * 10
    for cuts in ([], [int(order[2]) + 1], range(1, 50)):
        kept = streamed(Reservoir(0, 50, 48 * 10), batch, cuts)
        assert kept.places.tolist() == sorted(order[:2], key=order.tolist().index)
        assert kept.limit == ranks_of(row_keys(0, order[2:3]))[0]
    assert len(add_rows(Reservoir(0, 50, room), Batch(drop_zeros(0.0 * X)), 0)) == 10


def test_nothing_and_no_room():
    empty = Reservoir(0, 5, ROOM)
    assert len(empty) == 0 and empty.nbytes == 0 and empty.settled is empty
    with pytest.raises(ValueError, match="no row has come yet"):
        empty.batch  # noqa: B018
    assert add_rows(empty, Batch(np.empty((0, 2))), 0) is empty
    same(merge_reservoirs([empty, empty]), empty)
    row = Batch(np.ones((1, 4)))
    same(merge_reservoirs([empty, add_rows(empty, row, 0)]), add_rows(empty, row, 0))
    none = add_rows(Reservoir(0, 5, 10), row, 0)
    assert len(none) == 0 and none.batch.X.shape == (0, 4)
    assert none.limit == ranks_of(row_keys(0, np.zeros(1, dtype=np.int64)))[0]
    with pytest.raises(ValueError, match="at least one reservoir"):
        merge_reservoirs([])


def test_complex_rows():
    rng = np.random.default_rng(0)
    batch = Batch(rng.normal(size=(90, 2)) + 1j * rng.normal(size=(90, 2)))
    base = add_rows(Reservoir(0, 20, ROOM), batch[:40], 0)
    parts = [add_rows(base, batch[40:60], 40), add_rows(base, batch[60:], 40)]
    same(merge_reservoirs(parts, 40), merge_reservoirs(parts[::-1], 40))
    assert merge_reservoirs(parts, 40).batch.X.dtype == complex


def test_a_state_with_a_reservoir_is_told_from_one_without():
    batch = dense(np.random.default_rng(0), 30)
    first, second = (streamed(Reservoir(0, 10, ROOM), batch, cuts) for cuts in ([], range(1, 30)))
    assert fingerprint({"reservoir": first}, size=8) == fingerprint({"reservoir": second}, size=8)
    assert fingerprint({}, size=8) != fingerprint({"reservoir": first}, size=8)
    assert "pile" not in repr(second)


def test_rows_one_by_one_pile_up_without_end():
    """A pile is as deep as its number of rows, so no operation may recurse through it."""
    reservoir, row = Reservoir(0, 10**6, ROOM), Batch(np.zeros((1, 1)))
    for place in range(5000):
        reservoir = add_rows(reservoir, row, place)
    deep = reservoir.pile
    assert deep is not None and deep.rows == 5000
    assert len(repr(reservoir)) < 2000
    assert len(pickle.loads(pickle.dumps(reservoir))) == 5000
    del reservoir, deep


def test_rows_that_find_no_place_cost_no_copy():
    reservoir = add_rows(Reservoir(0, 50, ROOM), Batch(np.zeros((100_000, 1))), 0)
    assert reservoir.pile is None
    assert (
        sum(add_rows(reservoir, Batch(np.zeros((1, 1))), place) is not reservoir for place in range(10**6, 10**6 + 2000)) <= 5
    )
    unchanged = [
        add_rows(reservoir, Batch(np.zeros((100, 1))), place) is reservoir for place in range(10**6, 10**6 + 10_000, 100)
    ]
    assert np.mean(unchanged) > 0.85
