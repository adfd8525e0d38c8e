"""Tables are values: later versions never change an earlier one."""

import copy
import gc
import pickle
import sys
import threading
import weakref
from functools import partial

import numpy as np
import pytest
from table_twins import WIDTH, K, random_table, some_words, words_of

from headwater.families.table import Blend, Table, average_tables


def held_bytes(table):
    """Return the bytes that a version holds besides the store of the newest version."""
    version = table._version
    own = version.store.rows.nbytes if version.store.newest == version.number else 0
    return own + sum(rows.nbytes for _, rows in version.saved)


class Twin:
    """A table, the dense array that it should equal, a bound on its input, and its bits when it was made."""

    def __init__(self, table, dense, size):
        self.table, self.dense, self.size = table, dense, size
        self.bits = np.asarray(table).tobytes()

    def check(self):
        found = np.asarray(self.table)
        assert found.tobytes() == self.bits
        np.testing.assert_allclose(found, self.dense, rtol=0.0, atol=1e-13 * self.size)


def written(table, words, change):
    """Return a table with something added to its rows, in place."""
    with table.opened(words) as (opened, slots, rows):
        for word, row in zip(words, change, strict=True):
            rows[slots[word] - 1] += row / opened.factor
    return opened


def step(rng, one, other):
    """A random operation on one or two twins."""
    kind = rng.choice(["add", "subtract", "scale", "plus", "write", "copy", "permute", "pickle", "deepcopy", "twice"])
    table, dense, size = one.table, one.dense, one.size
    if kind == "add":
        return Twin(table + other.table, dense + other.dense, size + other.size)
    if kind == "subtract":
        return Twin(table - other.table, dense - other.dense, size + other.size)
    if kind == "twice":
        return Twin(table + table, dense + dense, 2.0 * size)
    if kind == "scale":
        factor = float(rng.choice([0.0, 1e-3, 0.5, 1.0, -1.0, np.float64(2.0), 1e3]))
        return Twin(factor * table, factor * dense, abs(factor) * size + 1e-300)
    if kind in ("plus", "write"):
        words = some_words(rng)
        change = rng.normal(size=(len(words), K))
        after = dense.copy()
        after[words] += change if kind == "write" else 0.7 * change
        if kind == "write" and table.factor == 0.0:
            table = table.copy()
        found = written(table, words, change) if kind == "write" else table.plus(words, change, 0.7)
        return Twin(found, after, size + 5.0)
    if kind == "permute":
        order = rng.permutation(K)
        return Twin(table.permuted(order), dense[:, order], size)
    made = {"copy": table.copy, "deepcopy": lambda: copy.deepcopy(table), "pickle": lambda: pickle.loads(pickle.dumps(table))}
    return Twin(made[kind](), dense, size)


@pytest.mark.parametrize("seed", range(40))
def test_any_operations_in_any_order_leave_every_version_what_it_was(seed):
    rng = np.random.default_rng(seed)
    held = [Twin(table, np.asarray(table), 5.0) for table in (random_table(rng), random_table(rng), Table.zeros(WIDTH, K))]
    for _ in range(60):
        one, other = (held[rng.integers(len(held))] for _ in range(2))
        held.append(step(rng, one, other))
        if len(held) > 12:
            held.pop(int(rng.integers(len(held))))
        held[rng.integers(len(held))].check()
    for place in rng.permutation(len(held)):
        held[place].check()


@pytest.mark.parametrize("seed", range(10))
def test_old_versions_are_read_in_any_order(seed):
    rng = np.random.default_rng(seed)
    table, versions = Table.zeros(WIDTH, K), []
    for _ in range(30):
        words = some_words(rng, 1)
        table = 0.9 * table.plus(words, rng.uniform(size=(len(words), K)), 1.0)
        versions.append((table, np.asarray(table).copy()))
    for place in rng.permutation(30):
        held, wanted = versions[place]
        np.testing.assert_array_equal(np.asarray(held), wanted)
        np.testing.assert_array_equal(held.at(words_of(3, 0, 3)), wanted[[3, 0, 3]])
        assert held.words().size == held.nbytes // (8 * K)


def test_an_old_version_can_be_gone_on_from():
    rng = np.random.default_rng(0)
    old = random_table(rng, least=5)
    before = np.asarray(old)
    new = old + random_table(rng)
    fork = old + random_table(rng)
    newer, later = new + fork, fork - old
    np.testing.assert_array_equal(np.asarray(old), before)
    np.testing.assert_allclose(np.asarray(newer), np.asarray(new) + np.asarray(fork), rtol=1e-14)
    np.testing.assert_allclose(np.asarray(later), np.asarray(fork) - before, rtol=1e-14, atol=1e-14)


# Scaling


def test_times_zero_holds_nothing():
    table = 0.0 * random_table(np.random.default_rng(0), least=5)
    assert table.shape == (WIDTH, K) and table.nbytes == 0
    np.testing.assert_array_equal(np.asarray(table), 0.0)
    other = random_table(np.random.default_rng(1), least=5)
    np.testing.assert_array_equal(np.asarray(table + other), np.asarray(other))
    np.testing.assert_array_equal(np.asarray(table - other), -np.asarray(other))


def test_a_table_less_itself_is_nothing_and_can_be_added_to():
    rng = np.random.default_rng(0)
    table, other = random_table(rng, least=5), random_table(rng, least=5)
    nothing = table - table
    np.testing.assert_array_equal(np.asarray(nothing), 0.0)
    np.testing.assert_array_equal(np.asarray(nothing + other), np.asarray(other))
    np.testing.assert_array_equal(np.asarray(other + nothing), np.asarray(other))
    np.testing.assert_array_equal(np.asarray(nothing.plus(words_of(2), np.ones((1, K)), 3.0))[2], 3.0)


@pytest.mark.parametrize("exponent", [-308, -250, -101, -100, -99, 99, 100, 101, 200])
def test_tiny_and_huge_factors(exponent):
    rng = np.random.default_rng(0)
    one, other = random_table(rng, least=12), random_table(rng, least=12)
    factor = 10.0**exponent
    for found, wanted in (
        (factor * one + other, factor * np.asarray(one) + np.asarray(other)),
        (one + factor * other, np.asarray(one) + factor * np.asarray(other)),
        (factor * one + factor * other, factor * (np.asarray(one) + np.asarray(other))),
        (one.plus(other.words(), other.at(other.words()), factor), np.asarray(one) + factor * np.asarray(other)),
    ):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-13)


@pytest.mark.parametrize("keep", [0.5, 1e-20, 1e-200, 1.0 - 1e-3])
def test_a_long_stream_of_folds_does_not_under_or_overflow(keep):
    rng = np.random.default_rng(0)
    table, dense = random_table(rng, least=5), None
    dense = np.asarray(table)
    for _ in range(1500):
        words, rows = some_words(rng, 1), rng.uniform(size=(1, K))
        table = keep * table + (1.0 - keep) * Table.of_words(WIDTH, words, np.repeat(rows, len(words), axis=0))
        dense = keep * dense
        dense[words] += (1.0 - keep) * rows
    np.testing.assert_allclose(np.asarray(table), dense, rtol=1e-12)


# Words


def test_no_words_at_all():
    nothing, other = Table.zeros(WIDTH, K), random_table(np.random.default_rng(0), least=3)
    none, no_rows = words_of(), np.empty((0, K))
    for table in (nothing, nothing + nothing, nothing - nothing, 3.0 * nothing, nothing.copy(), nothing.permuted([1, 0, 3, 2])):
        assert table.words().size == 0
        np.testing.assert_array_equal(np.asarray(table), np.zeros((WIDTH, K)))
    np.testing.assert_array_equal(np.asarray(other.plus(none, no_rows, 2.0)), np.asarray(other))
    np.testing.assert_array_equal(np.asarray(nothing.plus(none, no_rows, 2.0)), 0.0)
    assert other.at(none).shape == (0, K)
    np.testing.assert_array_equal(np.asarray(average_tables(nothing, nothing, 0.5)), 0.0)


def test_words_that_appear_later_are_zero_in_the_versions_before():
    versions, table = [], Table.zeros(200, K)
    for word in range(200):
        table = table.plus(words_of(word), np.full((1, K), word + 1.0), 1.0)
        versions.append(table)
    for place in (150, 3, 199, 0):
        found = np.asarray(versions[place])
        np.testing.assert_array_equal(found[: place + 1, 0], np.arange(1.0, place + 2.0))
        np.testing.assert_array_equal(found[place + 1 :], 0.0)
        assert versions[place].words().size == place + 1


def test_only_words_that_occurred_take_memory():
    table = Table.zeros(100_000, K)
    for _ in range(5):
        table = table.plus(words_of(7, 99_999, 12), np.ones((3, K)), 1.0)
    assert table.nbytes == 3 * K * 8
    assert table._version.store.rows.nbytes <= 6 * K * 8


def test_a_word_that_is_listed_twice_is_added_twice():
    old = random_table(np.random.default_rng(0), least=5)
    before = np.asarray(old)
    found = old.plus(words_of(3, 3, 20, 3), np.ones((4, K)), 2.0)
    before_and = before.copy()
    before_and[3] += 6.0
    before_and[20] += 2.0
    np.testing.assert_allclose(np.asarray(found), before_and, rtol=1e-15)
    np.testing.assert_array_equal(np.asarray(old), before)


def test_dense_tables_are_tables():
    matrix = np.random.default_rng(0).normal(size=(WIDTH, K))
    table = Table.of_dense(matrix.copy())  # the table owns it from now on
    np.testing.assert_array_equal(np.asarray(table), matrix)
    np.testing.assert_array_equal(np.asarray(table + table.copy()), 2.0 * matrix)
    np.testing.assert_array_equal(np.asarray(table), matrix)


def test_a_number_of_numpy_times_a_table_is_a_table():
    table = random_table(np.random.default_rng(0), least=3)
    for factor in (np.float64(2.0), np.float32(2.0), np.int64(2), 2):
        assert isinstance(factor * table, Table) and isinstance(table * factor, Table)
        np.testing.assert_array_equal(np.asarray(factor * table), 2.0 * np.asarray(table))


# Pickles


def test_pickled_versions_of_one_table_stay_apart_and_equal_ones_together():
    rng = np.random.default_rng(0)
    old = random_table(rng, least=5)
    new = old + random_table(rng, least=5)
    loaded = pickle.loads(pickle.dumps([old, new, 0.5 * new]))
    for table, wanted in zip(loaded, (old, new, 0.5 * new), strict=True):
        np.testing.assert_array_equal(np.asarray(table), np.asarray(wanted))
    assert loaded[1].same_rows(loaded[2]) and not loaded[0].same_rows(loaded[1])


def test_a_pickle_holds_the_words_that_occurred():
    table = Table.zeros(100_000, K).plus(words_of(5), np.ones((1, K)), 1.0)
    assert len(pickle.dumps(table)) < 1000


# Memory


def test_versions_that_nobody_holds_cost_nothing():
    rng = np.random.default_rng(0)
    table, gone = random_table(rng), []
    for _ in range(100):
        words = some_words(rng, 1)
        table = 0.99 * table.plus(words, np.ones((len(words), K)), 1.0)
        gone.append(weakref.ref(table._version))
    gc.collect()
    assert [one() for one in gone[:-1]] == [None] * 99
    store = table._version.store
    store.older = [one for one in store.older if one() is not None]
    assert store.older == [] and table._version.saved == []


def test_the_list_of_older_versions_does_not_grow():
    table = random_table(np.random.default_rng(0), least=5)
    for _ in range(100):
        table = table.plus(words_of(1, 2), np.ones((2, K)), 1.0)
        assert len(table._version.store.older) <= 2


@pytest.mark.parametrize("number", [1, 5])
def test_a_version_that_is_held_for_long_costs_at_most_one_table(number):
    rng = np.random.default_rng(0)
    table = Table.of_dense(rng.uniform(size=(WIDTH, K)))
    held = []
    for _ in range(number):
        held.append((table, np.asarray(table).copy()))
        table = table.plus(words_of(0), np.ones((1, K)), 1.0)
    for _ in range(100):
        words = some_words(rng, 1)
        table = 0.99 * table.plus(words, np.ones((len(words), K)), 1.0)
    for old, wanted in held:
        assert held_bytes(old) <= WIDTH * K * 8
        np.testing.assert_array_equal(np.asarray(old), wanted)


def test_an_old_version_that_was_read_costs_one_table_and_no_more():
    rng = np.random.default_rng(0)
    old = Table.of_dense(rng.uniform(size=(WIDTH, K)))
    wanted = np.asarray(old).copy()
    table = old.plus(words_of(0), np.ones((1, K)), 1.0)
    np.testing.assert_array_equal(np.asarray(old), wanted)  # it now has rows that no other version changes
    for _ in range(50):
        words = some_words(rng, 1)
        table = table.plus(words, np.ones((len(words), K)), 1.0)
    np.testing.assert_array_equal(np.asarray(old), wanted)
    assert held_bytes(old) <= WIDTH * K * 8


def test_a_change_touches_only_its_words():
    table = Table.of_dense(np.ones((WIDTH, K)))
    rows = table._version.store.rows
    after = 0.5 * table.plus(words_of(4), np.ones((1, K)), 1.0)
    assert after._version.store.rows is rows
    np.testing.assert_array_equal(np.delete(rows, 4, axis=0), 1.0)
    assert held_bytes(table) == K * 8


# Threads


@pytest.fixture
def busy_threads():
    """Let the interpreter switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def side_by_side(*functions):
    """Run each function on a thread, all at once, and return their results."""
    found, gate = [None] * len(functions), threading.Barrier(len(functions))

    def run(place):
        gate.wait()
        found[place] = functions[place]()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


EVERY_WORD = np.arange(500, dtype=np.int32)


def grown(table, value, times=1):
    for _ in range(times):
        table = table.plus(EVERY_WORD, np.full(table.shape, value), 1.0)
    return table


@pytest.mark.usefixtures("busy_threads")
def test_copies_are_added_to_on_threads_of_their_own():
    for _ in range(30):
        table = grown(Table.zeros(500, 30), 1.0)
        copies = [table.copy(), pickle.loads(pickle.dumps(table))]
        one, two = side_by_side(lambda: grown(copies[0], 1.0, 10), lambda: grown(copies[1], 2.0, 10))  # noqa: B023
        np.testing.assert_array_equal(np.asarray(one), 11.0)
        np.testing.assert_array_equal(np.asarray(two), 21.0)
        np.testing.assert_array_equal(np.asarray(table), 1.0)


@pytest.mark.usefixtures("busy_threads")
def test_one_table_is_added_to_from_two_threads():
    for _ in range(200):
        table = grown(Table.zeros(500, 30), 1.0)
        one, two = side_by_side(lambda: grown(table, 1.0), lambda: grown(table, 2.0))  # noqa: B023
        np.testing.assert_array_equal(np.asarray(one), 2.0)
        np.testing.assert_array_equal(np.asarray(two), 3.0)
        np.testing.assert_array_equal(np.asarray(table), 1.0)


@pytest.mark.usefixtures("busy_threads")
def test_one_table_is_added_to_from_many_threads():
    for _ in range(40):
        table = grown(Table.zeros(500, 3), 1.0)
        found = side_by_side(*(partial(grown, table, value, 3) for value in range(1, 8)))
        for value, one in enumerate(found, start=1):
            np.testing.assert_array_equal(np.asarray(one), 1.0 + 3.0 * value)
        np.testing.assert_array_equal(np.asarray(table), 1.0)


@pytest.mark.usefixtures("busy_threads")
def test_a_table_is_read_on_one_thread_while_another_adds_to_it():
    for _ in range(100):
        table = grown(Table.zeros(500, 300), 1.0)
        found, last = side_by_side(lambda: np.asarray(table), lambda: grown(table, 1.0, 3))  # noqa: B023
        np.testing.assert_array_equal(found, 1.0)
        np.testing.assert_array_equal(np.asarray(last), 4.0)


def test_a_blend_of_tables_that_share_nothing():
    blend = Blend(Table.of_dense(np.full((3, 2), 2.0)), Table.of_dense(np.full((3, 2), -0.5)))
    np.testing.assert_array_equal(np.asarray(blend), 1.5)
