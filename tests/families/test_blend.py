"""Blends of tables are values, as tables are."""

import copy
import pickle

import numpy as np
import pytest
from table_twins import WIDTH, K, random_table, some_words, words_of

from headwater.families.table import Table, average_tables


def test_averages_of_a_table_that_changes():
    rng = np.random.default_rng(0)
    table = random_table(rng)
    average, dense = table, np.asarray(table)
    held = []
    for number in range(200):
        words = some_words(rng, 1)
        table = 0.95 * table + 0.05 * Table.of_words(WIDTH, words, rng.uniform(size=(len(words), K)))
        gain = min(1.0, 2.0 / (number + 2))
        average = average_tables(average, table, gain)
        dense = (1.0 - gain) * dense + gain * np.asarray(table)
        held.append((average, dense, np.asarray(average)))
    for place in rng.permutation(200):
        found, wanted, bits = held[place]
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(np.asarray(found), bits)


def test_an_average_keeps_its_digits_however_fast_the_table_forgets():
    rng = np.random.default_rng(0)
    table = random_table(rng, least=WIDTH - 1)
    average, dense = table, np.asarray(table)
    for time in range(1, 4000):
        move, gain = (time + 2.0) ** -0.6, min(1.0, 2.0 / time)
        words = some_words(rng, 1)
        table = (1.0 - move) * table + move * Table.of_words(WIDTH, words, rng.uniform(size=(len(words), K)))
        average = average_tables(average, table, gain)
        dense = (1.0 - gain) * dense + gain * np.asarray(table)
    np.testing.assert_allclose(np.asarray(average), dense, rtol=1e-9)


@pytest.mark.parametrize("gain", [1e-12, 0.3, 1.0 - 1e-12, 1.0])
def test_averages_with_any_gain(gain):
    rng = np.random.default_rng(1)
    table = random_table(rng, least=5)
    average, dense = average_tables(table, table, 0.5), np.asarray(table)
    for _ in range(30):
        table = 0.5 * table + random_table(rng, least=WIDTH - 1)
        average = average_tables(average, table, gain)
        dense = (1.0 - gain) * dense + gain * np.asarray(table)
    np.testing.assert_allclose(np.asarray(average), dense, rtol=1e-10, atol=1e-11)


def test_an_average_does_not_read_the_table_that_did_not_change():
    rng = np.random.default_rng(0)
    table = Table.of_dense(rng.uniform(size=(WIDTH, K)))
    average = average_tables(table.copy(), table, 0.5)
    rest = average.rest._version.store.rows
    newer = table.plus(words_of(4), np.ones((1, K)), 1.0)
    after = average_tables(average, newer, 0.25)
    assert after.rest._version.store.rows is rest  # in place, but for rows that old averages need
    wanted = 0.75 * np.asarray(table)
    np.testing.assert_allclose(np.asarray(after), wanted + 0.25 * np.asarray(newer), rtol=1e-14)


def test_a_blend_is_a_value_too():
    rng = np.random.default_rng(2)
    table = random_table(rng, least=8)
    blend = average_tables(table, table.plus(words_of(2), np.ones((1, K)), 1.0), 0.4)
    dense, other = np.asarray(blend), random_table(rng, least=8)
    for found, wanted in (
        (blend * 3.0, 3.0 * dense),
        (np.float64(3.0) * blend, 3.0 * dense),
        (0.0 * blend, 0.0 * dense),
        (blend + other, dense + np.asarray(other)),
        (other + blend, dense + np.asarray(other)),
        (blend - other, dense - np.asarray(other)),
        (other - blend, np.asarray(other) - dense),
        (blend + blend, 2.0 * dense),
        (blend.plain(), dense),
        (blend.copy(), dense),
        (pickle.loads(pickle.dumps(blend)), dense),
        (copy.deepcopy(blend), dense),
    ):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-14, atol=1e-15)
        assert found.shape == (WIDTH, K)
        np.testing.assert_array_equal(np.asarray(blend), dense)


def test_a_pickled_blend_goes_on_as_if_nothing_had_happened():
    rng = np.random.default_rng(3)
    table = random_table(rng, least=8)
    pair = average_tables(table, table, 0.4), table
    loaded = pickle.loads(pickle.dumps(pair))
    words, rows = some_words(rng, 3), rng.uniform(size=(1, K))
    results = []
    for average, newest in (pair, loaded):
        newest = 0.9 * newest + Table.of_words(WIDTH, words, np.repeat(rows, len(words), axis=0))
        results.append(np.asarray(average_tables(average, newest, 0.2)))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("gain", [0.0, 0.25])
@pytest.mark.parametrize("kind", ["table", "blend"])
def test_an_average_keeps_words_that_the_newest_table_has_lost(kind, gain):
    average = Table.of_words(5, words_of(0, 1), np.array([[1.0, 2.0], [3.0, 4.0]]))
    wanted = np.asarray(average)
    if kind == "blend":
        average = average_tables(average, average, 0.5)
    newest = Table.of_words(5, words_of(2), np.array([[10.0, 20.0]]))
    found = average_tables(average, newest, gain)
    np.testing.assert_allclose(np.asarray(found), (1.0 - gain) * wanted + gain * np.asarray(newest))


def test_an_average_does_not_see_what_became_of_the_batch():
    table = Table.of_words(5, words_of(0, 1), np.array([[1.0, 2.0], [3.0, 4.0]]))
    average = average_tables(table, table, 0.5)
    batch = Table.of_words(5, words_of(0), np.array([[1.0, 1.0]]))
    newest = table + batch
    wanted = 0.5 * np.asarray(average) + 0.5 * np.asarray(newest)
    later = batch.plus(words_of(0), np.ones((1, 2)), 7.0)
    np.testing.assert_allclose(np.asarray(average_tables(average, newest, 0.5)), wanted)
    np.testing.assert_array_equal(np.asarray(later)[0], 8.0)
