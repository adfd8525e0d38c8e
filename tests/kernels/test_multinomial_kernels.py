"""The kernels of K multinomials against their naive twins: tables by word, E-steps, readouts and the row-by-row sweep."""

from dataclasses import replace

import numpy as np
import pytest
from naive import multinomial as naive

from headwater.core.state import Batch, SparseRows, sparse_rows
from headwater.families import multinomial as family_file
from headwater.families.multinomial import Multinomial
from headwater.families.multinomial_records import MultinomialStatistics
from headwater.families.multinomial_rows import slab_edges
from headwater.families.table import Table, averaged
from headwater.kernels.lanes import gather_rows, scatter_rows
from headwater.kernels.multinomial import clamped_softmax, columns_times, group_sums, rows_times, softmax_rows, spread_row
from headwater.kernels.tables import add_rows, gather_words, place_words, read_rows, save_rows
from headwater.models.mixture import Mixture, MixturePrior

V = 24
GROUPS = np.repeat(np.arange(5, dtype=np.int32), [6, 1, 9, 5, 3])
EXTRAS = ["plain", "weights", "labels", "weights and labels"]
SHAPES = ["default", "number", "columns", "components"]

sizes = pytest.mark.parametrize("k", [1, 2, 5, 20, 33])
names = pytest.mark.parametrize("name", naive.READOUTS)
in_groups = pytest.mark.parametrize("grouped", [False, True], ids=["one group", "groups"])


def groups_of(grouped):
    return GROUPS if grouped else None


def family_of(k, grouped=False, given=None):
    return Multinomial(k, given, *([GROUPS] if grouped else []))


def counts(rng, n=12):
    """Rows with every oddity: empty, of one word, of thousands of counts, and of weights that are not whole."""
    X = rng.poisson(0.6, (n, V)).astype(float)
    X[1] = 0.0
    X[2] = np.eye(V)[5]
    X[3] = rng.integers(0, 3000, V)
    X[4] = rng.uniform(0.0, 2.0, V) * (rng.uniform(size=V) < 0.5)
    X[5, :3] = [1e-7, 0.5, 20_000.0]
    return X


def held_sparse(X, rng):
    """The rows as a slice out of the middle of others, with some zeros stored."""
    stored = (X != 0.0) | (rng.uniform(size=X.shape) < 0.1)
    around = [rng.uniform(size=(3, X.shape[1])) < 0.5 for _ in range(2)]
    mask = np.vstack([around[0], stored, around[1]])
    values = np.vstack([around[0] * 9.0, X, around[1] * 7.0])
    indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    rows = SparseRows(values[mask], np.nonzero(mask)[1].astype(np.int32), indptr.astype(np.int64), X.shape[1])
    return rows[3 : 3 + len(X)]


def extras_of(extras, k, n, rng):
    weights = rng.uniform(0.1, 3.0, n) if "weights" in extras else np.empty(0)
    labels = rng.integers(-1, k, n) if "labels" in extras else np.empty(0, dtype=np.int64)
    return weights, labels


def prior_of(shape, k, rng):
    """What the user would give, and the Dirichlet parameters and the shift of a mode that it stands for, dense."""
    given = {
        "default": None,
        "number": 1.5,
        "columns": rng.uniform(1.1, 4.0, V),
        "components": rng.uniform(1.1, 4.0, (k, V)),
    }[shape]
    if given is None:
        return None, np.full((V, k), 0.1), 0.0  # is added to counts, whatever is read out
    return given, np.broadcast_to(np.reshape(np.transpose(given), (V if np.ndim(given) else 1, -1)), (V, k)), 1.0


def random_totals(rng, k, grouped=False, factor=0.01):
    """Totals of which only some words are held, as a record and dense."""
    words = rng.permutation(V)[: V - 5].astype(np.int32)
    table = factor * Table.of_words(V, words, rng.gamma(0.5, 1000.0, (len(words), k)))
    dense = np.asarray(table)
    return MultinomialStatistics(
        np.zeros(1), rng.uniform(1.0, 9.0, k), naive.group_sums(dense, groups_of(grouped)), table
    ), dense


def assert_statistics(found, wanted, rtol=1e-11):
    for name, array in zip(("count", "length", "table"), wanted, strict=True):
        array = np.asarray(array)
        scale = np.abs(array).max(initial=0.0)
        np.testing.assert_allclose(np.asarray(getattr(found, name)), array, rtol=rtol, atol=1e-13 * scale, err_msg=name)


# Rows of a table


def test_words_are_listed_as_they_come():
    rng = np.random.default_rng(0)
    indices = rng.integers(0, 9, 30).astype(np.int32)
    slots, words, local = np.zeros(9, dtype=np.int32), np.empty(30, dtype=np.int32), np.empty(30, dtype=np.int32)
    found = gather_words(indices, slots, words, local)
    wanted = list(dict.fromkeys(indices.tolist()))
    assert words[:found].tolist() == wanted
    np.testing.assert_array_equal(words[local], indices)
    assert [slots[word] for word in wanted] == list(range(1, found + 1))
    assert np.count_nonzero(slots) == found


def test_no_word_is_listed_of_no_rows():
    none = np.empty(0, dtype=np.int32)
    assert gather_words(none, np.zeros(3, dtype=np.int32), none, none) == 0


def test_words_get_the_next_slots():
    slots, known = np.array([0, 2, 0, 0, 1], dtype=np.int32), np.array([4, 1, 0, 0, 0], dtype=np.int32)
    assert place_words(np.array([3, 1, 3, 0], dtype=np.int32), slots, known, 2) == 4
    np.testing.assert_array_equal(slots, [4, 2, 0, 3, 1])
    np.testing.assert_array_equal(known[:4], [4, 1, 3, 0])


@sizes
def test_rows_are_added_read_and_saved(k):
    rng = np.random.default_rng(k)
    slots, source = np.array([3, 0, 1, 2], dtype=np.int32), rng.normal(size=(3, k))
    words, rows = np.array([2, 0, 2], dtype=np.int32), rng.normal(size=(3, k))
    target = source.copy()
    add_rows(target, slots, words, rows, -2.0)
    np.testing.assert_allclose(target, source - 2.0 * np.array([rows[0] + rows[2], np.zeros(k), rows[1]]), rtol=1e-13)
    out = np.full((3, k), np.nan)
    read_rows(source, slots, np.array([1, 3, 0], dtype=np.int32), 0.5, out)
    np.testing.assert_array_equal(out, 0.5 * np.array([np.zeros(k), source[1], source[2]]))
    touched, places, saved = np.array([True, False]), np.empty(3, dtype=np.int64), np.empty((3, k))
    kept = save_rows(source, slots, np.array([2, 1, 3, 0, 3], dtype=np.int32), touched, places, saved)
    assert kept == 1 and places[0] == 1 and touched.all()  # word 2 was touched, 1 has no row, 0 came later
    np.testing.assert_array_equal(saved[0], source[1])


@in_groups
@sizes
def test_sums_of_groups(grouped, k):
    rng = np.random.default_rng(k)
    words, rows = rng.permutation(V)[:15].astype(np.int32), rng.normal(size=(17, k))
    length = np.ones((5 if grouped else 1, k))
    group_sums(words, rows, GROUPS if grouped else np.empty(0, dtype=np.int32), length)
    dense = np.zeros((V, k))
    dense[words] = rows[:15]
    np.testing.assert_allclose(length, 1.0 + naive.group_sums(dense, groups_of(grouped)), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("k", [*range(1, 37), 64, 67])
def test_rows_are_gathered_and_scattered(k):
    rng = np.random.default_rng(k)
    table, places = rng.normal(size=(9, k)), rng.integers(0, 9, 12).astype(np.int32)
    data, sums, shares = rng.normal(size=12), rng.normal(size=k), rng.normal(size=k)
    for begin, end in ((0, 12), (3, 8), (5, 6), (4, 4)):
        found, target = sums.copy(), table.copy()
        gather_rows(table, places, data, begin, end, found)
        scatter_rows(target, places, data, begin, end, shares)
        wanted = table.copy()
        for j in range(begin, end):
            wanted[places[j]] += data[j] * shares
        np.testing.assert_allclose(found, sums + data[begin:end] @ table[places[begin:end]], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(target, wanted, rtol=1e-12, atol=1e-13)


# Responsibilities


@sizes
@pytest.mark.parametrize("shift", [0.0, -1e5, -1e103])
def test_softmax_equals_its_twin(k, shift):
    rng = np.random.default_rng(k)
    joint = rng.normal(0.0, 20.0, (7, k)) + shift
    weights, labels = rng.uniform(0.5, 2.0, 7), rng.integers(-1, k, 7)
    resp, scores = naive.responsibilities(joint, labels)
    one = np.empty(k)
    for row, label, wanted, score in zip(joint, labels, resp, scores, strict=True):
        assert clamped_softmax(row, label, one) == pytest.approx(score, rel=1e-14)
        np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-300)
    found, count = np.empty(7), np.ones(k)
    total = softmax_rows(joint, weights, labels, found, count)
    np.testing.assert_allclose(joint, resp, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(found, scores, rtol=1e-14)
    np.testing.assert_allclose(count, 1.0 + weights @ resp, rtol=1e-13)
    assert total == pytest.approx(weights @ scores, rel=1e-13)


@sizes
@pytest.mark.parametrize("alive", [1, 2, 1000])
def test_a_row_is_spread_over_the_components_that_have_a_share(k, alive):
    rng = np.random.default_rng(k)
    shares = rng.dirichlet(np.ones(k))
    shares[rng.permutation(k)[alive:]] = 0.0
    local, data = rng.permutation(9)[:6].astype(np.int32), rng.uniform(0.0, 3.0, 6)
    target = rng.normal(size=(9, k))
    wanted = target.copy()
    wanted[local[1:5]] += 2.5 * np.outer(data[1:5], shares)
    spread_row(1, 5, local, data, shares, 2.5, target)
    np.testing.assert_allclose(target, wanted, rtol=1e-13, atol=1e-14)


# Readouts


@pytest.mark.parametrize("k", [1, 5, 33])
@names
@in_groups
@pytest.mark.parametrize("shape", SHAPES)
def test_readout_equals_its_twin(k, name, grouped, shape):
    rng = np.random.default_rng(k)
    given, beta, shift = prior_of(shape, k, rng)
    family = family_of(k, grouped, given)
    totals, dense = random_totals(rng, k, grouped)
    parameters = family.readout(name, family.settled_prior(V), totals)
    if name == "predictive":
        wanted = beta + dense
        np.testing.assert_allclose(parameters.norm, naive.group_sums(wanted, groups_of(grouped)), rtol=1e-12)
    else:
        wanted = naive.log_probabilities(name, beta + dense, shift, groups_of(grouped))
    np.testing.assert_allclose(parameters.all(), wanted, rtol=1e-12, atol=1e-12)
    some = np.array([7, 23, 7, 0], dtype=np.int32)
    np.testing.assert_array_equal(parameters.at(some), parameters.all()[some])
    if name in ("mode", "mean"):
        sums = naive.group_sums(family.probabilities(parameters).T, groups_of(grouped))
        np.testing.assert_allclose(sums, 1.0, rtol=1e-12)


@in_groups
@pytest.mark.parametrize("mass", [0.0, 1e-290, 1e-200, 1e-20, 1e-13, 1e-9])
def test_the_probabilities_of_a_component_that_has_all_but_died_sum_to_one(grouped, mass):
    rng = np.random.default_rng(0)
    family = family_of(3, grouped, 1.0)
    table = rng.gamma(0.5, 10.0, (V, 3)) * [1.0, mass, 1.0]
    totals = MultinomialStatistics(
        np.zeros(1), np.array([5.0, mass, 5.0]), naive.group_sums(table, groups_of(grouped)), Table.of_dense(table.copy())
    )
    probabilities = family.probabilities(family.readout("mode", family.settled_prior(V), totals)).T
    np.testing.assert_allclose(naive.group_sums(probabilities, groups_of(grouped)), 1.0, rtol=1e-6)
    if mass >= 1e-200:
        wanted = table / naive.in_groups(naive.group_sums(table, groups_of(grouped)), groups_of(grouped), V)
        np.testing.assert_allclose(probabilities, wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["mean", "expect_log", "predictive"])
@pytest.mark.parametrize("beta", [1e-3, 1e3])
def test_weak_and_strong_priors(name, beta):
    rng = np.random.default_rng(1)
    family, X = family_of(5, given=beta), counts(rng)
    totals, dense = random_totals(rng, 5)
    scores, resp = np.empty(len(X)), np.empty((len(X), 5))
    family.estep(family.readout(name, family.settled_prior(V), totals), np.zeros(5), Batch(X), None, scores, resp)
    wanted_resp, wanted_scores = naive.responsibilities(naive.log_densities(name, beta + dense, X))
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(resp, wanted_resp, rtol=1e-6, atol=1e-12)


# E-step


def expected(name, beta, shift, dense, log_weights, X, weights, labels, groups):
    joint = naive.log_densities(name, beta + dense, X, shift, groups) + log_weights
    resp, scores = naive.responsibilities(joint, labels if labels.size else None)
    return resp, scores, naive.totals(X, resp, weights if weights.size else None, groups)


@sizes
@names
@in_groups
@pytest.mark.parametrize("extras", ["plain", "weights and labels"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_estep_equals_its_twin(k, name, grouped, extras, layout):
    rng = np.random.default_rng(k)
    X = counts(rng)
    given, beta, shift = prior_of("components", k, rng)
    family = family_of(k, grouped, given)
    totals, dense = random_totals(rng, k, grouped)
    weights, labels = extras_of(extras, k, len(X), rng)
    log_weights = np.log(rng.dirichlet(np.ones(k)))
    batch = Batch(X if layout == "dense" else held_sparse(X, rng), weights, labels)
    scores, resp = np.empty(len(X)), np.empty((len(X), k))
    parameters = family.readout(name, family.settled_prior(V), totals)
    score, found = family.estep(parameters, log_weights, batch, family.zeros(V), scores, resp)
    wanted_resp, wanted_scores, wanted = expected(name, beta, shift, dense, log_weights, X, weights, labels, groups_of(grouped))
    # The twin's differences of log Gamma lose some digits.
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(resp, wanted_resp, rtol=1e-6, atol=1e-12)
    assert score == pytest.approx((weights if weights.size else np.ones(len(X))) @ wanted_scores, rel=1e-11)
    assert_statistics(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("k", [2, 33])
@in_groups
@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("n", [4, 200])
def test_dense_rows_are_sparse_rows(k, grouped, extras, n):
    # 4 rows have fewer counts than four for each column, 200 have more.
    rng = np.random.default_rng(k)
    X = rng.poisson(0.8, (n, V)).astype(float)
    family, (weights, labels) = family_of(k, grouped), extras_of(extras, k, n, rng)
    totals, _ = random_totals(rng, k, grouped)
    parameters = family.readout("mean", family.settled_prior(V), totals)
    results = []
    for rows in (X, sparse_rows(X), held_sparse(X, rng)):
        scores, resp = np.empty(n), np.empty((n, k))
        score, found = family.estep(parameters, np.zeros(k), Batch(rows, weights, labels), family.zeros(V), scores, resp)
        results.append([np.array(score), scores, resp, *map(np.asarray, found.to_arrays().values())])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("extras", EXTRAS[:2])
def test_given_responsibilities_are_counted_as_they_are(layout, extras):
    rng = np.random.default_rng(0)
    X, family = counts(rng), family_of(5, True)
    resp = rng.uniform(0.0, 2.0, (len(X), 5))
    kept, (weights, labels) = resp.copy(), extras_of(extras, 5, len(X), rng)
    batch = Batch(X if layout == "dense" else held_sparse(X, rng), weights, labels)
    found = family.collect(family.geometry(batch), batch, resp)
    np.testing.assert_array_equal(resp, kept)
    assert_statistics(found, naive.totals(X, kept, weights if weights.size else None, GROUPS))


@names
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_what_is_not_asked_for_changes_nothing(name, layout):
    rng = np.random.default_rng(1)
    X, family = counts(rng), family_of(5)
    batch = Batch(X if layout == "dense" else held_sparse(X, rng), rng.uniform(size=len(X)))
    parameters = family.readout(name, family.settled_prior(V), random_totals(rng, 5)[0])
    scores, resp, alone, only = np.empty(len(X)), np.empty((len(X), 5)), np.empty(len(X)), np.empty((len(X), 5))
    everything, totals = family.estep(parameters, np.zeros(5), batch, family.zeros(V), scores, resp)
    assert family.estep(parameters, np.zeros(5), batch)[1] is None
    assert family.estep(parameters, np.zeros(5), batch)[0] == pytest.approx(everything, rel=1e-14)
    family.estep(parameters, np.zeros(5), batch, scores=alone)
    family.estep(parameters, np.zeros(5), batch, responsibilities=only)
    np.testing.assert_array_equal(alone, scores)
    np.testing.assert_array_equal(only, resp)
    again = family.estep(parameters, np.zeros(5), batch, family.zeros(V))[1]
    np.testing.assert_array_equal(np.asarray(again.table), np.asarray(totals.table))


def test_an_estep_adds_to_what_was_there_and_leaves_it_alone():
    rng = np.random.default_rng(2)
    X, family = counts(rng), family_of(5)
    parameters = family.readout("mean", family.settled_prior(V), random_totals(rng, 5)[0])
    before, dense = random_totals(rng, 5)
    kept = [np.asarray(array).copy() for array in before.to_arrays().values()]
    for rows in (X, sparse_rows(X)):
        alone = family.estep(parameters, np.zeros(5), Batch(rows), family.zeros(V))[1]
        both = family.estep(parameters, np.zeros(5), Batch(rows), before)[1]
        np.testing.assert_allclose(np.asarray(both.table), dense + np.asarray(alone.table), rtol=1e-12)
        np.testing.assert_allclose(both.count, before.count + alone.count, rtol=1e-13)
        for array, wanted in zip(before.to_arrays().values(), kept, strict=True):
            np.testing.assert_array_equal(np.asarray(array), wanted)


@names
@in_groups
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_rows_that_say_nothing(name, grouped, layout):
    family, X = family_of(2, grouped), np.zeros((3, V))
    weights = np.log([0.25, 0.75])
    scores, resp = np.empty(3), np.empty((3, 2))
    parameters = family.readout(name, family.settled_prior(V), family.zeros(V))
    batch = Batch(X if layout == "dense" else sparse_rows(X))
    found = family.estep(parameters, weights, batch, family.zeros(V), scores, resp)[1]
    np.testing.assert_allclose(scores, 0.0, atol=1e-15)
    np.testing.assert_allclose(resp, [[0.25, 0.75]] * 3, rtol=1e-14)
    np.testing.assert_allclose(found.count, [0.75, 2.25], rtol=1e-14)
    np.testing.assert_array_equal(np.asarray(found.table), 0.0)


@pytest.mark.parametrize("belief", [1e-3, 0.1, 1.0, 1e4, 1e9, 1e15])
def test_polyas_urn_by_the_chain_rule(belief):
    family, rng = family_of(1, given=belief), np.random.default_rng(0)
    X = np.zeros((4, V))
    X[1, 3], X[2, :4], X[3] = 1.0, [2.0, 1.0, 7.0, 40.0], rng.integers(0, 200, V)
    scores = np.empty(4)
    parameters = family.readout("predictive", family.settled_prior(V), family.zeros(V))
    family.estep(parameters, np.zeros(1), Batch(X), scores=scores)
    for x, found in zip(X, scores, strict=True):
        wanted = sum(np.log(belief + np.arange(value)).sum() for value in x)
        wanted -= np.log(V * belief + np.arange(x.sum())).sum()
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)


# Slabs and threads


def cut_at(monkeypatch, *edges):
    """Cut even a small batch into slabs, at these rows."""
    monkeypatch.setattr(family_file, "slab_edges", lambda *_: np.array(edges))


@names
@pytest.mark.parametrize("edges", [(0, 75, 150), (0, 1, 1, 30, 80, 150, 150), range(151)], ids=["two", "some empty", "rows"])
def test_slabs_change_nothing_but_the_order_of_sums(name, edges, monkeypatch):
    rng = np.random.default_rng(3)
    X, k = rng.poisson(1.0, (150, V)).astype(float), 5
    X[20:90] = 0.0
    X[0], X[60] = 50.0, 3000.0
    family = family_of(k)
    parameters = family.readout(name, family.settled_prior(V), random_totals(rng, k)[0])
    batch = Batch(held_sparse(X, rng), rng.uniform(size=150), rng.integers(-1, k, 150))
    results = []
    for cut in ((0, 150), edges):
        cut_at(monkeypatch, *cut)
        scores, resp = np.full(150, np.nan), np.full((150, k), np.nan)
        score, found = family.estep(parameters, np.zeros(k), batch, family.zeros(V), scores, resp)
        results.append([np.array(score), scores, resp, *map(np.asarray, found.to_arrays().values())])
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(results[0][1], results[1][1])


@names
def test_threads_do_not_change_a_bit(name, monkeypatch):
    cut_at(monkeypatch, *range(0, 401, 50))
    rng = np.random.default_rng(4)
    X, k = rng.poisson(1.0, (400, V)).astype(float), 20
    family = family_of(k, True)
    parameters = family.readout(name, family.settled_prior(V), random_totals(rng, k, True)[0])
    batch = Batch(sparse_rows(X), rng.uniform(size=400), rng.integers(-1, k, 400))
    results = []
    for n_threads in (1, 2, 3, None):
        scores, resp = np.empty(400), np.empty((400, k))
        score, found = family.estep(parameters, np.zeros(k), batch, family.zeros(V), scores, resp, n_threads=n_threads)
        results.append([np.array(score), scores, resp, *map(np.asarray, found.to_arrays().values())])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("extras", ["plain", "weights and labels"])
def test_slabs_of_dense_rows_are_those_of_sparse_ones_on_any_threads(extras):
    rng = np.random.default_rng(13)
    n, k = 9000, 5  # two slabs
    X, family = rng.poisson(0.5, (n, V)).astype(float), family_of(k)
    parameters = family.readout("mean", family.settled_prior(V), random_totals(rng, k)[0])
    weights, labels = extras_of(extras, k, n, rng)
    results = []
    for rows, n_threads in ((sparse_rows(X), 1), (X, 1), (X, 2), (X, None)):
        scores, resp = np.empty(n), np.empty((n, k))
        batch = Batch(rows, weights, labels)
        score, found = family.estep(parameters, np.zeros(k), batch, family.zeros(V), scores, resp, n_threads=n_threads)
        results.append([np.array(score), scores, resp, *map(np.asarray, found.to_arrays().values())])
    for one, two, three, four in zip(*results, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(two, three)
        np.testing.assert_array_equal(two, four)


@pytest.mark.parametrize("name", ["mean", "predictive"])
def test_the_place_in_memory_does_not_change_a_bit(name):
    rng = np.random.default_rng(5)
    X = sparse_rows(rng.poisson(1.0, (40, V)).astype(float))
    family = family_of(5)
    parameters = family.readout(name, family.settled_prior(V), random_totals(rng, 5)[0])
    results = set()
    for _ in range(200):
        moved = [np.empty(size) for size in rng.integers(1, 400, 5)]
        score, found = family.estep(parameters, np.zeros(5), Batch(X.copy()), family.zeros(V))
        results.add((score, found.count.tobytes(), np.asarray(found.table).tobytes()))
        del moved
    assert len(results) == 1


def test_edges_cover_every_row_once():
    rng = np.random.default_rng(6)
    for n, width in ((1, 3), (9000, 30), (20_000, 4)):
        X = sparse_rows((rng.uniform(size=(n, width)) < 0.5).astype(float))
        for rows in (X, X[n // 3 :]):
            edges = slab_edges(rows, width, 100)
            assert edges[0] == 0 and edges[-1] == len(rows) and (np.diff(edges) >= 0).all()
    assert len(edges) > 2


# Row by row


START, ROWS = 30, 25
STEPS = {
    "equal": 1.0 / (START + np.arange(1.0, ROWS + 1)),
    "decaying": (np.arange(1.0, ROWS + 1) + 2.0) ** -0.6,
    "forgetting half": np.full(ROWS, 0.5),
    "tiny": np.full(ROWS, 1e-13),
    "all": np.ones(ROWS),
    "all at first": np.r_[1.0, 1.0 / np.arange(2.0, ROWS + 1)],
    "all in the middle": np.where(np.arange(ROWS) == 11, 1.0, 0.1),
    "nearly all": np.full(ROWS, 1.0 - 2.0**-53),
}
GAINS = {
    "none": None,
    "random": np.random.default_rng(2).uniform(0.01, 0.99, ROWS),
    "all at first": np.minimum(1.0, 2.0 / np.arange(1.0, ROWS + 1)),
    "all in the middle": np.where(np.arange(ROWS) == 11, 1.0, 0.1),
    "all": np.ones(ROWS),
}


def rows_to_sweep(n=ROWS, seed=7):
    rng = np.random.default_rng(seed)
    sources = rng.dirichlet(np.full(V, 0.5), 3)
    X = np.array([rng.multinomial(rng.integers(0, 12), sources[i % 3]) for i in range(n)]).astype(float)
    X[2 % n] = 0.0
    X[5 % n, 3] = 0.25
    return X


def start_of(k, grouped, rng, average="same"):
    """Means per row: the library's statistics and average, and the twin's."""
    table = rng.gamma(0.4, 2.0, (V, k))
    table[-5:] = 0.0  # words that have not occurred
    words = np.arange(V - 5, dtype=np.int32)
    count = rng.dirichlet(np.full(k, 5.0))
    length = naive.group_sums(table, groups_of(grouped))
    held = MultinomialStatistics(np.array([0.9]), count, length, 4.0 * Table.of_words(V, words, table[:-5] / 4.0))
    if average == "same":
        return held, held, (count, table), (count, table)
    other, share = rng.gamma(0.4, 2.0, (V, k)), rng.dirichlet(np.full(k, 5.0))
    other[-5:] = 0.0
    moving = Table.of_words(V, words, other[:-5].copy())
    if average == "blend":
        moving, other = averaged(moving, held.table, 0.3), 0.7 * other + 0.3 * table
    return (
        held,
        MultinomialStatistics(np.array([0.9]), share, naive.group_sums(other, groups_of(grouped)), moving),
        (count, table),
        (share, other),
    )


def check_sweep(
    name, k, grouped, shape, steps, gains, X, weights=None, labels=None, average="same", layout="sparse", rtol=1e-9
):
    rng = np.random.default_rng(k)
    given, beta, shift = prior_of(shape, k, rng)
    family = family_of(k, grouped, given)
    concentration = rng.uniform(1.1, 3.0, k)
    held, moving, start, start_average = start_of(k, grouped, rng, average)
    before = [np.asarray(array).copy() for part in (held, moving) for array in part.to_arrays().values()]
    rows = X if layout == "dense" else held_sparse(X, rng)
    batch = Batch(rows, *(np.empty(0, kind) if part is None else part for part, kind in ((weights, float), (labels, np.int64))))
    scores = np.empty(len(X))
    prior, own = MixturePrior(concentration, family.settled_prior(V)), (None, np.empty(0)) if gains is None else (moving, gains)
    found, moved, n_eff = Mixture(k, family).sweep(name, prior, held, own[0], float(START), batch, steps, own[1], scores)
    groups = groups_of(grouped)
    (count, table), (mean_count, mean_table), wanted_n_eff, wanted_scores = naive.sweep(
        name, beta, shift, concentration, start, float(START), X, steps, gains, weights, labels, groups, start_average
    )
    np.testing.assert_allclose(scores, wanted_scores, rtol=rtol, atol=1e-9)
    assert n_eff == pytest.approx(wanted_n_eff, rel=1e-12)
    assert_statistics(found, (count, naive.group_sums(table, groups), table), rtol)
    assert found.from_base[0] == pytest.approx(0.9 * np.prod(1.0 - steps), rel=1e-9)
    if gains is None:
        assert moved is None
    else:
        assert_statistics(moved, (mean_count, naive.group_sums(mean_table, groups), mean_table), rtol)
    after = [np.asarray(array) for part in (held, moving) for array in part.to_arrays().values()]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@sizes
@names
@in_groups
@pytest.mark.parametrize("rich", [False, True], ids=["plain", "weights, labels and average"])
def test_sweep_equals_the_naive_loop(k, name, grouped, rich):
    rng = np.random.default_rng(3)
    rich = {"gains": None} if not rich else {
        "gains": GAINS["random"], "weights": rng.uniform(0.2, 3.0, ROWS), "labels": rng.integers(-1, k, ROWS),
    }  # fmt: skip
    check_sweep(name, k, grouped, "components", STEPS["decaying"], X=rows_to_sweep(), **rich)


@names
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_sweep_equals_the_naive_loop_under_every_prior(name, shape, layout):
    check_sweep(name, 2, False, shape, STEPS["equal"], None, rows_to_sweep(), layout=layout)


@names
@pytest.mark.parametrize("rule", STEPS)
def test_sweep_equals_the_naive_loop_with_any_steps(name, rule):
    check_sweep(name, 5, True, "components", STEPS[rule], None, rows_to_sweep())


@pytest.mark.parametrize("rule", ["decaying", "all in the middle"])
@pytest.mark.parametrize("gain", [rule for rule in GAINS if rule != "none"])
@pytest.mark.parametrize("average", ["same", "table", "blend"])
def test_sweep_averages_as_the_naive_loop_does(rule, gain, average):
    check_sweep("mean", 5, False, "components", STEPS[rule], GAINS[gain], rows_to_sweep(), average=average)


@pytest.mark.parametrize("step", [0.5, 1.0 - 1e-3, 0.02])
def test_long_sweeps_do_not_underflow(step):
    X = rows_to_sweep(700)
    check_sweep("mean", 2, False, "components", np.full(700, step), None, X)


def test_a_long_sweep_keeps_the_digits_of_its_average():
    X, time = rows_to_sweep(1500), np.arange(1.0, 1501.0)
    check_sweep("mean", 2, False, "components", (time + 2.0) ** -0.5, np.minimum(0.999, 2.0 / time), X, rtol=1e-7)


def test_one_sweep_is_many():
    rng = np.random.default_rng(8)
    X, family = rows_to_sweep(), family_of(5)
    held, moving, _, _ = start_of(5, False, rng, "blend")
    prior, batch = MixturePrior(np.ones(5), family.settled_prior(V)), Batch(sparse_rows(X))
    steps, gains = STEPS["decaying"], GAINS["random"]
    wanted, wanted_average, wanted_n_eff = Mixture(5, family).sweep(
        "mean", prior, held, moving, 30.0, batch, steps, gains, np.empty(ROWS)
    )
    n_eff = 30.0
    for at in range(0, ROWS, 4):
        rows = slice(at, at + 4)
        held, moving, n_eff = Mixture(5, family).sweep(
            "mean", prior, held, moving, n_eff, batch[rows], steps[rows], gains[rows], np.empty(len(batch[rows]))
        )
    assert n_eff == pytest.approx(wanted_n_eff, rel=1e-12)
    for one, other in ((held, wanted), (moving, wanted_average)):
        for name, array in one.to_arrays().items():
            np.testing.assert_allclose(np.asarray(array), np.asarray(getattr(other, name)), rtol=1e-10, atol=1e-13)


@names
def test_a_sweep_of_one_row_is_an_estep_and_a_fold(name):
    rng = np.random.default_rng(9)
    X, family = rows_to_sweep(), family_of(5, True, 1.5)
    model, prior = Mixture(5, family), MixturePrior(np.full(5, 1.2), family.settled_prior(V))
    held, _, _, _ = start_of(5, True, rng)
    for row in (0, 2, 5):
        batch, scores, own = Batch(X[row : row + 1]), np.empty(1), np.empty(1)
        found, _, _ = model.sweep(name, prior, held, None, 30.0, batch, np.array([0.2]), np.empty(0), scores)
        summary = model.summarize(model.readout(name, prior, held, 30.0), batch, scores=own)
        wanted = held.toward(summary.mean, 0.2)
        assert scores[0] == pytest.approx(own[0], rel=1e-12)
        for field, array in wanted.to_arrays().items():
            np.testing.assert_allclose(np.asarray(getattr(found, field)), np.asarray(array), rtol=1e-10, atol=1e-13)


# What a family says of beliefs


@in_groups
def test_divergence_is_that_of_dirichlets(grouped):
    from scipy import stats

    rng = np.random.default_rng(10)
    groups, family = groups_of(grouped), family_of(2, grouped, 0.7)
    totals, dense = random_totals(rng, 2, grouped, 0.001)
    draws, found = 4000, family.divergence(family.settled_prior(V), totals)
    ratios = np.zeros(draws)
    for k in range(2):
        for g in range(5 if grouped else 1):
            own = np.ones(V, dtype=bool) if groups is None else groups == g
            if own.sum() == 1:
                continue  # a group of one column is certain
            after, before = 0.7 + dense[own, k], np.full(own.sum(), 0.7)
            points = np.maximum(rng.dirichlet(after, draws), 1e-300).T
            points /= points.sum(axis=0)
            ratios += stats.dirichlet.logpdf(points, after) - stats.dirichlet.logpdf(points, before)
    assert abs(found - ratios.mean()) < 4.0 * ratios.std() / np.sqrt(draws)
    assert family.divergence(family.settled_prior(V), family.zeros(V)) == pytest.approx(0.0, abs=1e-10)


@in_groups
def test_mode_maximises_likelihood_plus_log_prior(grouped):
    rng = np.random.default_rng(11)
    groups, family = groups_of(grouped), family_of(2, grouped, rng.uniform(1.1, 4.0, (2, V)))
    prior, (totals, dense) = family.settled_prior(V), random_totals(rng, 2, grouped)
    best = family.probabilities(family.readout("mode", prior, totals))

    def objective(probabilities):
        return (dense.T * np.log(probabilities)).sum() + family.log_prior(prior, family.from_probabilities(probabilities))

    for _ in range(50):
        other = best * np.exp(0.05 * rng.normal(size=best.shape))
        other /= naive.in_groups(naive.group_sums(other.T, groups), groups, V).T
        assert objective(other) < objective(best)


def test_chosen_and_permuted_components_keep_their_numbers():
    rng = np.random.default_rng(12)
    family = family_of(5, True, rng.uniform(1.1, 4.0, (5, V)))
    prior, (totals, dense) = family.settled_prior(V), random_totals(rng, 5, True)
    order = np.array([3, 0])
    few, some = family.chosen(prior, order), family.permuted(totals, order)
    small = replace(family, n_components=2, concentration_prior=family.concentration_prior[order])
    for field, array in vars(small.settled_prior(V)).items():
        np.testing.assert_array_equal(getattr(few, field), array)
    np.testing.assert_array_equal(np.asarray(some.table), dense[:, order])
    np.testing.assert_array_equal(some.count, totals.count[order])


@pytest.mark.parametrize("width", [1, 4, 20, 37])
def test_products_of_sparse_rows(width):
    rng = np.random.default_rng(width)
    X = rng.poisson(0.3, size=(60, 40)).astype(float)
    rows = sparse_rows(X)
    right, left = rng.normal(size=(40, width)), rng.normal(size=(60, width))
    found, transposed = np.zeros((60, width)), np.zeros((40, width))
    rows_times(rows.indptr, rows.indices, rows.data, right, found)
    columns_times(rows.indptr, rows.indices, rows.data, left, transposed)
    np.testing.assert_allclose(found, X @ right, atol=1e-12)
    np.testing.assert_allclose(transposed, X.T @ left, atol=1e-12)
