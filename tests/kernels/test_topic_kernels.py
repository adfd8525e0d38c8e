"""The topic kernels against naive twins: mean-field, collapsed, parts and rows."""

import tracemalloc

import numpy as np
import pytest
from naive import topics as naive
from scipy import special, stats
from topic_cases import NO_TABLE, NOTHING, Documents, topics_of

from headwater.kernels import topics as kernels
from headwater.kernels.mixture import READOUTS
from headwater.kernels.random import begin_stream
from headwater.kernels.topics import (
    MOST_TOKENS,
    add_tables,
    block_masses,
    completed_score,
    draw_dirichlet,
    end_document,
    log_likelihood_of,
    log_likelihoods,
    most_entries,
    pick_smooth,
    tokens_of,
    topic_table,
)

# Mean-field

COUNTS = np.array([[3.0, 0.0, 1.0, 0.0, 2.0], [0.0, 5.0, 0.5, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [40.0, 7.0, 0.0, 2.0, 9.0]])


@pytest.mark.parametrize("alpha", [[0.3, 0.3], [1.0, 1.0, 1.0], [0.05, 5.0, 0.5], [3e-3, 3e-3, 0.2]])
@pytest.mark.parametrize("iterations", [0, 1, 7, 100])
def test_mean_field_equals_its_twin(alpha, iterations):
    topics, alpha = topics_of(5, len(alpha), 6), np.array(alpha)
    documents = Documents(COUNTS, topics, alpha).mean_field(iterations)
    target, tables = np.zeros(topics.shape), np.zeros(len(alpha) + 1)
    for row, counts in enumerate(COUNTS):
        gamma, own, bound = naive.mean_field(counts, topics, alpha, iterations)
        target += own
        tables += naive.tables(gamma - alpha, alpha)
        assert documents.scores[row] == pytest.approx(bound, rel=1e-8)
        np.testing.assert_allclose(documents.proportions[row], gamma / gamma.sum(), rtol=1e-8, atol=1e-12)
    assert documents.score == pytest.approx(documents.scores.sum())
    np.testing.assert_allclose(documents.target, target, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(documents.tables, tables, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("alpha", [[0.3, 0.3], [0.05, 5.0, 0.5], [2.0, 1.0, 1.0], [1e-3, 1e-3]])
def test_the_bound_is_one_and_never_falls(alpha):
    topics, alpha = topics_of(5, len(alpha), 7), np.array(alpha)
    for words in ([0, 0, 1, 4], [2], [3, 1, 3, 0, 2]):
        counts, exact = naive.counts_of(words, 5), naive.posterior(words, topics, alpha)[1]
        bounds = [Documents(counts, topics, alpha).mean_field(iterations).score for iterations in range(30)]
        assert np.diff(bounds).min() > -1e-9
        assert max(bounds) <= exact + 1e-9
        assert bounds[-1] > exact - 1.5


def test_the_bound_of_long_documents_is_one():
    topics, alpha = topics_of(5, 2, 8), np.array([0.5, 1.5])
    places = (np.arange(20_000) + 0.5) / 20_000
    shares = stats.beta(*alpha).ppf(places)
    for counts in COUNTS:
        exact = special.logsumexp(counts @ np.log(topics @ np.array([shares, 1.0 - shares]))) - np.log(20_000)
        assert exact - 1.5 < Documents(counts, topics, alpha).mean_field().score <= exact + 1e-3


def test_mean_field_stops_when_nothing_moves():
    topics, alpha = topics_of(5, 3, 9), np.full(3, 0.3)
    loose, tight = (Documents(COUNTS, topics, alpha).mean_field(1000, tol) for tol in (1e-3, 0.0))
    np.testing.assert_allclose(loose.proportions, tight.proportions, atol=0.02)
    assert (loose.scores <= tight.scores + 1e-9).all()


def test_mean_field_of_one_word_and_many_topics():
    k = 3000
    topics, alpha = topics_of(3, k, 19), np.full(k, 1.0 / k)
    documents = Documents([1.0, 0.0, 0.0], topics, alpha).mean_field()
    assert documents.target.sum() == pytest.approx(1.0)
    assert documents.score > -20.0


# Collapsed


@pytest.mark.parametrize("burn_in", [0, 1, 5])
@pytest.mark.parametrize("alpha", [[0.3, 0.3], [0.05, 5.0, 0.5]])
def test_collapsed_equals_its_twin(burn_in, alpha):
    topics, alpha, weights = topics_of(5, len(alpha), 10), np.array(alpha), np.array([1.0, 0.5, 3.0, 2.0])
    documents = Documents(COUNTS, topics, alpha, weights).collapsed(burn_in)
    target, tables, count, score = np.zeros(topics.shape), np.zeros(len(alpha) + 1), np.zeros(len(alpha)), 0.0
    for row, (counts, weight) in enumerate(zip(COUNTS, weights, strict=True)):
        words = np.flatnonzero(counts)
        held, own, gained = naive.collapsed(words, counts[words], topics, alpha, burn_in)
        target += weight * own
        score += weight * gained
        count += weight * held / counts.sum()
        tables += weight * naive.tables(held, alpha)
        np.testing.assert_allclose(documents.proportions[row], (held + alpha) / (counts.sum() + alpha.sum()), rtol=1e-9)
    np.testing.assert_allclose(documents.target, target, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(documents.count, count, rtol=1e-9)
    np.testing.assert_allclose(documents.tables, tables, rtol=1e-8)
    assert documents.score == pytest.approx(score, rel=1e-9)


# Parts


@pytest.mark.parametrize("name", ["mode", "mean", "expect_log"])
@pytest.mark.parametrize("beta", [0.01, 0.5, 3.0])
def test_topic_table(name, beta):
    rng = np.random.default_rng(11)
    v, k, factor = 12, 5, 2.5
    table = rng.gamma(0.4, 5.0, (v, k))
    absent = np.array([2, 7, 11])
    table[absent] = 0.0
    known = np.setdiff1d(np.arange(v), absent)[::-1]
    slots = np.zeros(v + 3, dtype=np.int32)
    slots[known] = np.arange(1, len(known) + 1)
    rows = np.ascontiguousarray(table[known] / factor)
    sums = (beta + table).sum(axis=0)
    norm = special.digamma(sums) if name == "expect_log" else np.log(sums)
    words, out = np.array([5, 2, 0, 11, 10], dtype=np.int32), np.full((5, k), np.nan)
    topic_table(READOUTS[name], slots, rows, factor, words, beta, norm, out)
    np.testing.assert_allclose(out, naive.topic_table(name, table, beta)[words], rtol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 31, 32, 33, 63, 64, 65, 100, 1000])
def test_smooth_draws_pick_the_right_topic(k):
    rng = np.random.default_rng(k)
    topics, alpha = rng.gamma(0.5, size=(3, k)), rng.gamma(0.5, size=k)
    topics[1, ::2] = 0.0  # what is not possible is not drawn
    blocks = np.full((3, (k + 31) // 32), np.nan)
    block_masses(topics, alpha, blocks)
    for word in range(3):
        mass = alpha * topics[word]
        ends = np.cumsum(mass)
        np.testing.assert_allclose(blocks[word], ends[np.minimum(np.arange(32, len(blocks[word]) * 32 + 1, 32), k) - 1])
        if word == 1 and k == 1:
            continue
        for topic in np.flatnonzero(mass > 1e-9 * ends[-1])[:: max(1, k // 100)]:
            for part in (1e-3, 0.5, 1.0 - 1e-3):
                assert pick_smooth(ends[topic] - part * mass[topic], word, topics, alpha, blocks) == topic
        first = np.flatnonzero(mass)[0]
        assert mass[pick_smooth(1e-300, word, topics, alpha, blocks)] > 0.0
        assert pick_smooth(1e-12 * mass[first], word, topics, alpha, blocks) == first
        for u in (ends[-1], np.nextafter(ends[-1], np.inf), 2.0 * ends[-1]):
            assert 0 <= pick_smooth(u, word, topics, alpha, blocks) < k


def test_a_completed_score_is_that_of_words_given_proportions():
    rng = np.random.default_rng(12)
    topics, proportions = topics_of(5, 3, 13), rng.dirichlet(np.ones(3), 4)
    rows = Documents(COUNTS, topics, np.ones(3))
    found = completed_score(rows.indptr, rows.local, rows.data, 0, 4, topics, proportions)
    assert found == pytest.approx(naive.completed(COUNTS, topics, proportions), rel=1e-10)
    part = completed_score(rows.indptr, rows.local, rows.data, 1, 3, topics, proportions)
    assert part == pytest.approx(naive.completed(COUNTS[1:3], topics, proportions[1:3]), rel=1e-10)


def test_tables_are_rises_of_digamma():
    for held in ([3.0, 0.0, 1.0], [0.25, 1e-9, 0.0], [1e6, 1e12, 0.5], [0.0, 0.0, 0.0]):
        for alpha in ([0.05, 5.0, 0.5], [1e-8, 1.0, 1e8]):
            held, alpha, found = np.array(held), np.array(alpha), np.full(4, 1.0)
            add_tables(held, held.sum(), 2.0, alpha, alpha.sum(), found)
            np.testing.assert_allclose(found, 1.0 + 2.0 * naive.tables(held, alpha), rtol=1e-9, atol=1e-8)


def test_counts_are_cut_into_tokens():
    data = np.array([3.0, 0.5, 2.4, 0.0, 1e-300])
    sizes, weights = np.zeros(5, dtype=np.int64), np.zeros(5)
    assert tokens_of(0, 5, data, sizes, weights) == 8
    assert sizes.tolist() == [3, 1, 3, 0, 1]
    np.testing.assert_allclose(sizes * weights, data)
    assert tokens_of(1, 3, data, sizes, weights) == 4
    for huge in ([1e12], [1e12, 1.0, 0.5], [1e40, 1e30, 1.0], [2.0**20 + 1.0]):
        data = np.array(huge)
        number = tokens_of(0, len(data), data, sizes, weights)
        assert number <= MOST_TOKENS + len(data)
        np.testing.assert_allclose((sizes * weights)[: len(data)], data)


# Rows

RUNS = {
    "gibbs": Documents.gibbs,
    "gibbs raw": lambda documents: documents.gibbs(rao_blackwell=False),
    "metropolis": Documents.metropolis,
    "metropolis raw": lambda documents: documents.metropolis(rao_blackwell=False),
    "mean-field": Documents.mean_field,
    "collapsed": Documents.collapsed,
}
every = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
MANY = np.random.default_rng(14).poisson(0.8, (40, 5)).astype(float)
MANY[[3, 17]] = 0.0


@every
def test_all_tokens_are_there(run):
    topics, alpha = topics_of(5, 3, 15), np.array([0.2, 1.0, 0.5])
    documents = run(Documents(MANY, topics, alpha))
    np.testing.assert_allclose(documents.target.sum(axis=1), MANY.sum(axis=0))
    np.testing.assert_allclose(documents.proportions.sum(axis=1), 1.0)
    assert documents.count.sum() == pytest.approx(np.count_nonzero(MANY.any(axis=1)))
    assert np.isfinite(documents.score) and documents.score < 0.0


@every
def test_documents_without_words(run):
    topics, alpha = topics_of(5, 3, 15), np.array([0.2, 1.0, 0.5])
    documents = run(Documents(np.zeros((2, 5)), topics, alpha))
    np.testing.assert_allclose(documents.proportions, np.tile(alpha / alpha.sum(), (2, 1)))
    for part in (documents.target, documents.count, documents.tables):
        np.testing.assert_allclose(part, 0.0, atol=1e-12)
    assert documents.score == pytest.approx(0.0, abs=1e-10)


@every
def test_weights_scale_what_is_learned(run):
    topics, alpha = topics_of(5, 3, 15), np.array([0.2, 1.0, 0.5])
    plain, double = run(Documents(MANY, topics, alpha)), run(Documents(MANY, topics, alpha, np.full(40, 2.0)))
    np.testing.assert_array_equal(plain.proportions, double.proportions)
    for one, other in zip(plain.found[:3], double.found[:3], strict=True):
        np.testing.assert_allclose(2.0 * one, other, rtol=1e-12)
    assert double.score == pytest.approx(2.0 * plain.score)
    weights = np.random.default_rng(16).uniform(0.0, 3.0, 40)
    found, sums = run(Documents(MANY, topics, alpha, weights)), [0.0, 0.0, 0.0, 0.0]
    for row, weight in enumerate(weights):
        alone = Documents(MANY[row], topics, alpha)
        alone.streams = np.array([row])
        run(alone)
        parts = (*alone.found[:3], alone.score)
        sums = [total + weight * part for total, part in zip(sums, parts, strict=True)]
    for one, other in zip((*found.found[:3], found.score), sums, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@every
@pytest.mark.parametrize("cut", [1, 13, 39])
def test_a_cut_changes_nothing(run, cut):
    topics, alpha = topics_of(5, 3, 15), np.array([0.2, 1.0, 0.5])
    whole, first, second = (Documents(rows, topics, alpha) for rows in (MANY, MANY[:cut], MANY[cut:]))
    second.streams = np.arange(cut, 40)
    second.target, second.count, second.tables, second.accepted = first.target, first.count, first.tables, first.accepted
    for documents in (whole, first, second):
        run(documents)
    np.testing.assert_array_equal(whole.proportions, np.vstack([first.proportions, second.proportions]))
    np.testing.assert_array_equal(whole.count, second.count)
    np.testing.assert_array_equal(whole.tables, second.tables)
    np.testing.assert_allclose(whole.target, second.target, rtol=1e-12)
    assert whole.score == pytest.approx(first.score + second.score, rel=1e-12)


@pytest.mark.parametrize("run", [RUNS["gibbs"], RUNS["metropolis"]], ids=["gibbs", "metropolis"])
def test_streams_and_keys_decide_the_draws(run):
    topics, alpha = topics_of(5, 3, 15), np.array([0.2, 1.0, 0.5])
    row = np.tile(COUNTS[3], (6, 1))
    one = run(Documents(row, topics, alpha))
    assert len({tuple(proportions) for proportions in one.proportions}) == 6
    backwards = Documents(row, topics, alpha)
    backwards.streams = np.arange(6)[::-1].copy()
    np.testing.assert_array_equal(run(backwards).proportions, one.proportions[::-1])


def test_nothing_is_learned_where_there_is_no_room():
    topics, alpha = topics_of(5, 3, 15), np.array([0.2, 1.0, 0.5])
    for name, run in RUNS.items():
        wanted, reading = run(Documents(MANY, topics, alpha)), Documents(MANY, topics, alpha)
        reading.target, reading.count, reading.accepted = NO_TABLE, NOTHING, NOTHING
        if name != "metropolis":  # it draws tokens for the tables alone
            reading.tables = NOTHING
        run(reading)
        np.testing.assert_allclose(reading.proportions, wanted.proportions, rtol=1e-12)
        assert reading.score == pytest.approx(wanted.score)


def test_huge_counts_cost_no_more_than_some_thousand_tokens():
    assert kernels.MOST_TOKENS <= 10_000
    topics, alpha = topics_of(4, 3, 17), np.full(3, 0.5)
    Documents([1.0, 2.0, 0.0, 0.0], topics, alpha).gibbs(1, 1)
    documents = Documents([[1e12, 3e12, 0.0, 5.0], [1e40, 0.0, 1e30, 0.5]], topics, alpha)
    tracemalloc.start()
    try:
        documents.gibbs(2, 2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * kernels.MOST_TOKENS
    np.testing.assert_allclose(documents.target.sum(axis=1), [1e40, 3e12, 1e30, 5.5])
    assert all(np.isfinite(part).all() for part in documents.found)


@every
@pytest.mark.parametrize("alpha", [1e-8, 1e8])
@pytest.mark.parametrize("counts", [[1e-8, 0.0, 2e-8], [1e12, 0.0, 3.0], [1.0, 1.0, 1.0]], ids=["tiny", "huge", "ones"])
def test_extremes_stay_finite(run, alpha, counts):
    topics = topics_of(3, 4, 18) + 1e-12
    documents = Documents([counts, counts], topics, np.full(4, alpha))
    if max(counts) > 1e6 and run is not Documents.mean_field:
        documents.data[documents.data > 1e6] = 1e4
    run(documents)
    assert all(np.isfinite(part).all() for part in documents.found)
    assert np.isfinite(documents.score)
    np.testing.assert_allclose(documents.target.sum(), documents.data.sum())


# The parts they are made of


def test_proposals_are_dirichlet():
    center, kappa, state = np.array([0.6, 0.3, 0.1]), 7.0, np.zeros(1, dtype=np.uint64)
    drawn, logs = np.empty((2, 4000, 3))
    for i in range(4000):
        begin_stream(state, np.uint64(5), i)
        draw_dirichlet(state, kappa, center, drawn[i], logs[i])
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(drawn), logs, atol=1e-12)
    shape = kappa * center + 1.0
    for k in range(3):
        assert stats.kstest(drawn[:, k], stats.beta(shape[k], shape.sum() - shape[k]).cdf).pvalue > 1e-3


def test_words_of_a_document_are_scored_by_its_proportions():
    documents, proportions, mixed = (
        Documents([[2.0, 0.0, 1.0, 3.0]], topics_of(4, 3, 2), np.ones(3)),
        np.array([0.2, 0.5, 0.3]),
        np.empty(3),
    )
    log_likelihoods(0, 3, documents.local, documents.topics, proportions, mixed)
    wanted = documents.topics[[0, 2, 3]] @ proportions
    np.testing.assert_allclose(mixed, wanted, rtol=1e-14)
    assert log_likelihood_of(0, 3, documents.data, mixed) == pytest.approx(np.log(wanted) @ [2.0, 1.0, 3.0], rel=1e-14)


def test_the_end_of_a_document():
    alpha, count, proportions = np.array([0.5, 1.5]), np.ones(2), np.zeros((2, 2))
    means = np.array([3.0, 1.0])
    end_document(means, 4.0, 2.0, alpha, 2.0, 1, count, proportions)
    np.testing.assert_allclose(count, 1.0 + 2.0 * np.array([0.75, 0.25]))
    np.testing.assert_allclose(proportions, [[0.0, 0.0], [3.5 / 6.0, 2.5 / 6.0]])
    assert not means.any()
    end_document(means, 0.0, 2.0, alpha, 2.0, 0, count, proportions)
    np.testing.assert_allclose(proportions[0], alpha / 2.0)


def test_the_longest_row():
    assert most_entries(np.array([0, 3, 3, 8, 9]), 0, 4) == 5
    assert most_entries(np.array([0, 3, 3, 8, 9]), 0, 2) == 3
    assert most_entries(np.array([0]), 0, 0) == 0
