"""Tables by word, responsibilities, readouts and beliefs of K multinomials against their naive twins."""

from dataclasses import replace

import numpy as np
import pytest
from multinomial_cases import (
    GROUPS,
    SHAPES,
    V,
    counts,
    family_of,
    groups_of,
    in_groups,
    names,
    prior_of,
    random_totals,
    sizes,
)
from naive import multinomial as naive

from headwater.core.batch import Batch, drop_zeros
from headwater.families.multinomial_records import MultinomialStatistics
from headwater.families.table import Table
from headwater.kernels.lanes import gather_rows, scatter_rows
from headwater.kernels.multinomial import clamped_softmax, columns_times, group_sums, rows_times, softmax_rows, spread_row
from headwater.kernels.tables import add_rows, gather_words, place_words, read_rows, save_rows

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
    parameters = family.readout(name, family.make_prior(V), totals)
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
    probabilities = family.probabilities(family.readout("mode", family.make_prior(V), totals)).T
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
    family.estep(family.readout(name, family.make_prior(V), totals), np.zeros(5), Batch(X), None, scores, resp)
    wanted_resp, wanted_scores = naive.responsibilities(naive.log_densities(name, beta + dense, X))
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(resp, wanted_resp, rtol=1e-6, atol=1e-12)


# Beliefs of a family


@in_groups
def test_divergence_is_that_of_dirichlets(grouped):
    from scipy import stats

    rng = np.random.default_rng(10)
    groups, family = groups_of(grouped), family_of(2, grouped, 0.7)
    totals, dense = random_totals(rng, 2, grouped, 0.001)
    draws, found = 4000, family.divergence(family.make_prior(V), totals)
    ratios = np.zeros(draws)
    for k in range(2):
        for g in range(5 if grouped else 1):
            own = np.ones(V, dtype=bool) if groups is None else groups == g
            if own.sum() == 1:
                continue  # the probability of a single column in its group is 1
            after, before = 0.7 + dense[own, k], np.full(own.sum(), 0.7)
            points = np.maximum(rng.dirichlet(after, draws), 1e-300).T
            points /= points.sum(axis=0)
            ratios += stats.dirichlet.logpdf(points, after) - stats.dirichlet.logpdf(points, before)
    assert abs(found - ratios.mean()) < 4.0 * ratios.std() / np.sqrt(draws)
    assert family.divergence(family.make_prior(V), family.zeros(V)) == pytest.approx(0.0, abs=1e-10)


@in_groups
def test_mode_maximises_likelihood_plus_log_prior(grouped):
    rng = np.random.default_rng(11)
    groups, family = groups_of(grouped), family_of(2, grouped, rng.uniform(1.1, 4.0, (2, V)))
    prior, (totals, dense) = family.make_prior(V), random_totals(rng, 2, grouped)
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
    prior, (totals, dense) = family.make_prior(V), random_totals(rng, 5, True)
    order = np.array([3, 0])
    few, some = family.select_prior(prior, order), family.select_statistics(totals, order)
    small = replace(family, n_components=2, concentration_prior=family.concentration_prior[order])
    for field, array in vars(small.make_prior(V)).items():
        np.testing.assert_array_equal(getattr(few, field), array)
    np.testing.assert_array_equal(np.asarray(some.table), dense[:, order])
    np.testing.assert_array_equal(some.count, totals.count[order])


@pytest.mark.parametrize("width", [1, 4, 20, 37])
def test_products_of_sparse_rows(width):
    rng = np.random.default_rng(width)
    X = rng.poisson(0.3, size=(60, 40)).astype(float)
    rows = drop_zeros(X)
    right, left = rng.normal(size=(40, width)), rng.normal(size=(60, width))
    found, transposed = np.zeros((60, width)), np.zeros((40, width))
    rows_times(rows.indptr, rows.indices, rows.data, right, found)
    columns_times(rows.indptr, rows.indices, rows.data, left, transposed)
    np.testing.assert_allclose(found, X @ right, atol=1e-12)
    np.testing.assert_allclose(transposed, X.T @ left, atol=1e-12)
