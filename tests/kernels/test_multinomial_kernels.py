"""The E-step of K multinomials against its naive twin."""

import numpy as np
import pytest
from multinomial_cases import (
    GROUPS,
    V,
    assert_statistics,
    counts,
    family_of,
    groups_of,
    held_sparse,
    in_groups,
    names,
    prior_of,
    random_totals,
    sizes,
)
from naive import multinomial as naive

from headwater.core.batch import Batch, drop_zeros
from headwater.families import multinomial as family_file
from headwater.families.multinomial_rows import slab_edges

EXTRAS = ["plain", "weights", "labels", "weights and labels"]


def extras_of(extras, k, n, rng):
    weights = rng.uniform(0.1, 3.0, n) if "weights" in extras else np.empty(0)
    labels = rng.integers(-1, k, n) if "labels" in extras else np.empty(0, dtype=np.int64)
    return weights, labels


# E-step


def expected(name, beta, shift, dense, log_weights, X, weights, labels, groups):
    joint = naive.log_densities(name, beta + dense, X, shift, groups) + log_weights
    resp, scores = naive.responsibilities(joint, labels if labels.size else None)
    return resp, scores, naive.totals(X, resp, weights if weights.size else None, groups)


@pytest.mark.covering("name", "grouped", "layout")
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
    parameters = family.readout(name, family.make_prior(V), totals)
    score, found = family.estep(parameters, log_weights, batch, family.zeros(V), scores, resp)
    wanted_resp, wanted_scores, wanted = expected(name, beta, shift, dense, log_weights, X, weights, labels, groups_of(grouped))
    # The differences of log Gamma in the twin lose some digits.
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
    parameters = family.readout("mean", family.make_prior(V), totals)
    results = []
    for rows in (X, drop_zeros(X), held_sparse(X, rng)):
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
    found = family.collect_seeds(family.geometry(batch), batch, resp)
    np.testing.assert_array_equal(resp, kept)
    assert_statistics(found, naive.totals(X, kept, weights if weights.size else None, GROUPS))


@names
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_what_is_not_asked_for_changes_nothing(name, layout):
    rng = np.random.default_rng(1)
    X, family = counts(rng), family_of(5)
    batch = Batch(X if layout == "dense" else held_sparse(X, rng), rng.uniform(size=len(X)))
    parameters = family.readout(name, family.make_prior(V), random_totals(rng, 5)[0])
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
    parameters = family.readout("mean", family.make_prior(V), random_totals(rng, 5)[0])
    before, dense = random_totals(rng, 5)
    kept = [np.asarray(array).copy() for array in before.to_arrays().values()]
    for rows in (X, drop_zeros(X)):
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
    parameters = family.readout(name, family.make_prior(V), family.zeros(V))
    batch = Batch(X if layout == "dense" else drop_zeros(X))
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
    parameters = family.readout("predictive", family.make_prior(V), family.zeros(V))
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
    parameters = family.readout(name, family.make_prior(V), random_totals(rng, k)[0])
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
    parameters = family.readout(name, family.make_prior(V), random_totals(rng, k, True)[0])
    batch = Batch(drop_zeros(X), rng.uniform(size=400), rng.integers(-1, k, 400))
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
    parameters = family.readout("mean", family.make_prior(V), random_totals(rng, k)[0])
    weights, labels = extras_of(extras, k, n, rng)
    results = []
    for rows, n_threads in ((drop_zeros(X), 1), (X, 1), (X, 2), (X, None)):
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
    X = drop_zeros(rng.poisson(1.0, (40, V)).astype(float))
    family = family_of(5)
    parameters = family.readout(name, family.make_prior(V), random_totals(rng, 5)[0])
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
        X = drop_zeros((rng.uniform(size=(n, width)) < 0.5).astype(float))
        for rows in (X, X[n // 3 :]):
            edges = slab_edges(rows, width, 100)
            assert edges[0] == 0 and edges[-1] == len(rows) and (np.diff(edges) >= 0).all()
    assert len(edges) > 2
