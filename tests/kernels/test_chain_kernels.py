"""Hidden Markov chains: the filter, the smoother, the best path and the model against enumeration of all paths."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from chain_cases import K, V, a_chain, a_model, assert_statistics, kinds, some_parameters, some_rows
from naive import chains as naive_chains
from naive import gaussian as naive
from scipy.special import logsumexp
from scipy.stats import norm

import headwater as hw
import headwater.models.chain_smoothing as chain_smoothing
from headwater.core.batch import Batch
from headwater.core.records import arrays_of
from headwater.families.categorical import Categorical
from headwater.kernels.chain_logs import run_log_filter
from headwater.kernels.chains import best_path, condition, run_filter, smooth
from headwater.kernels.mixture import TINY
from headwater.models.chain_records import Carry, ChainParameters
from headwater.models.chain_underflow import Filtered, may_lose
from headwater.models.hidden_markov import HiddenMarkov
from headwater.models.passages import ANY

NO_LOGS = np.empty((0, 0))
SOME_ZEROS = np.array([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.5, 0.0, 0.5]])
CYCLE = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
ABSORBING = np.array([[0.9, 0.05, 0.05], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def filtered(start, transitions, logs, edges=None, known=None, filters=None, in_logs=False):
    """Return shares, ahead and scores of the library's filter, called as the library does: first without logarithms."""
    edges = np.array([0, len(logs)]) if edges is None else np.asarray(edges)
    known = np.zeros(len(edges) - 1, dtype=bool) if known is None else np.asarray(known)
    filters = np.zeros((len(known), K)) if filters is None else filters
    level = logs.max(axis=1)
    shares, ahead, scores = np.exp(logs - level[:, None]), np.empty_like(logs), level.copy()
    wanted = run_filter(shares, NO_LOGS, edges, known, filters, start, transitions, ahead, scores)
    assert (wanted >= 0) == in_logs
    if in_logs:
        shares, scores = np.exp(logs - level[:, None]), level.copy()
        again = run_filter(shares, logs - level[:, None], edges, known, filters, start, transitions, ahead, scores)
        assert again == -1
    return shares, ahead, scores


# The filter, the smoother and the best path, against all paths


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("known", [False, True])
def test_filter_and_smoother_equal_the_enumeration(seed, known):
    rng = np.random.default_rng(seed)
    start, transitions = a_chain(seed)
    logs = rng.normal(size=(6, K)) * 3.0
    logs[2] = 0.0  # missing
    before = rng.dirichlet(np.ones(K)) if known else None
    wanted = naive_chains.enumerate_paths(start, transitions, logs, before)
    _, by_rows, row_scores = naive_chains.forward_backward(start, transitions, logs, before)
    filters = np.array([before if known else np.zeros(K)])
    shares, ahead, scores = filtered(start, transitions, logs, known=[known], filters=filters)
    np.testing.assert_allclose(scores.sum(), wanted.score, rtol=1e-13)
    np.testing.assert_allclose(scores, row_scores, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(shares, by_rows, rtol=1e-12)
    np.testing.assert_array_equal(filters[0], before if known else np.zeros(K))
    first, steps = np.zeros(K), np.zeros((K, K))
    smooth(shares, ahead, np.array([0, 6]), np.array([known]), filters, np.array([6]), transitions, first, steps)
    np.testing.assert_allclose(shares, wanted.states, rtol=1e-12)
    np.testing.assert_allclose(steps * transitions, wanted.steps, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(first, wanted.first, rtol=1e-12)
    np.testing.assert_allclose(filters[0], by_rows[-1], rtol=1e-12)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("counted", [0, 1, 3, 6])
def test_smoother_counts_the_first_rows_given_all(known, counted):
    rng = np.random.default_rng(1)
    start, transitions = a_chain(1)
    logs = rng.normal(size=(6, K)) * 2.0
    before = rng.dirichlet(np.ones(K)) if known else None
    wanted, by_rows, _ = naive_chains.forward_backward(start, transitions, logs, before, counted)
    filters = np.array([before if known else np.zeros(K)])
    shares, ahead, _ = filtered(start, transitions, logs, known=[known], filters=filters)
    first, steps = np.zeros(K), np.zeros((K, K))
    smooth(shares, ahead, np.array([0, 6]), np.array([known]), filters, np.array([counted]), transitions, first, steps)
    np.testing.assert_allclose(shares, wanted.states, rtol=1e-12)
    np.testing.assert_allclose(steps * transitions, wanted.steps, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(first, wanted.first, rtol=1e-12)
    carried = by_rows[counted - 1] if counted else before if known else np.zeros(K)
    np.testing.assert_allclose(filters[0], carried, rtol=1e-12)


def test_several_sequences_are_each_alone():
    rng = np.random.default_rng(2)
    start, transitions = a_chain(2)
    edges, known, counted = np.array([0, 4, 5, 9]), np.array([False, True, True]), np.array([4, 1, 2])
    logs, filters = rng.normal(size=(9, K)) * 2.0, rng.dirichlet(np.ones(K), 3)
    alone = [
        naive_chains.forward_backward(start, transitions, logs[a:b], f if k else None, c)[0]
        for a, b, f, k, c in zip(edges[:-1], edges[1:], filters, known, counted, strict=True)
    ]
    shares, ahead, _ = filtered(start, transitions, logs, edges, known, filters)
    first, steps = np.zeros(K), np.zeros((K, K))
    smooth(shares, ahead, edges, known, filters, counted, transitions, first, steps)
    np.testing.assert_allclose(shares, np.vstack([one.states for one in alone]), rtol=1e-12)
    np.testing.assert_allclose(steps * transitions, sum(one.steps for one in alone), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(first, sum(one.first for one in alone), rtol=1e-12)


CHAINS = {"dense": np.full((K, K), 0.1) + 0.7 * np.eye(K), "zeros": SOME_ZEROS, "cycle": CYCLE, "absorbing": ABSORBING}


def rows_far_away(far):
    """Return log-densities that are very small, in each row, for the states that the chain can be in."""
    logs = np.random.default_rng(3).normal(size=(6, K)) * far
    logs[0] = [-3.0 * far, -2.0 * far, 0.0]
    return logs


def check_filter_and_smoother(start, transitions, logs, comes_back=False):
    """The library's way: the filter, again in logarithms if a state may have been lost, and the smoother that goes with it."""
    wanted = naive_chains.enumerate_paths(start, transitions, logs)
    found = Filtered(*filtered(start, transitions, logs, in_logs=needs_logs(start, transitions, logs)), None)
    chain, edges, known = ChainParameters(start, transitions, None), np.array([0, 6]), np.zeros(1, dtype=bool)
    if may_lose(chain, found.shares, found.ahead):
        found = ANY.filter_in_logs(chain, logs, edges, known, np.zeros((1, K)), found)
    assert (found.logs is not None) == comes_back
    np.testing.assert_allclose(found.scores.sum(), wanted.score, rtol=1e-13)
    first, steps, shares = np.zeros(K), np.zeros((K, K)), found.shares
    ANY.smooth(found, chain, edges, known, np.zeros((1, K)), np.array([6]), first, steps)
    np.testing.assert_allclose(shares, wanted.states, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(steps * transitions, wanted.steps, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(first, wanted.first, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("start", [np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5])], ids=["one", "two"])
@pytest.mark.parametrize(
    ("shape", "far"),
    [(shape, far) for shape in CHAINS for far in (1.0, 100.0)]
    + [(shape, far) for shape in ("dense", "cycle") for far in (900.0, 1e5)],
)
def test_logarithms_where_densities_underflow(start, shape, far):
    """Rows are so far from the possible states that their share of the best state's density is 0."""
    check_filter_and_smoother(start, CHAINS[shape], rows_far_away(far))


@pytest.mark.parametrize(("start", "shape", "far"), [((0.0, 0.5, 0.5), "absorbing", 900.0), ((1.0, 0.0, 0.0), "zeros", 1e5)])
def test_a_state_that_a_row_made_next_to_impossible_comes_back(start, shape, far):
    """No transition leads back to the state: it must have kept its probability of less than 1e-308."""
    check_filter_and_smoother(np.array(start), CHAINS[shape], rows_far_away(far), comes_back=True)


@pytest.mark.parametrize("counted", [6, 3])
@pytest.mark.parametrize("known", [False, True])
def test_the_filter_and_the_smoother_in_logarithms_are_those_in_plain_numbers(known, counted):
    logs, edges = np.random.default_rng(5).normal(size=(10, K)), np.array([0, 6, 10])
    transitions, start = SOME_ZEROS, np.array([0.2, 0.5, 0.3])
    given, known = np.array([[0.5, 0.3, 0.2], [0.0, 0.0, 0.0]]), np.array([known, False])
    chain, number, both = ChainParameters(start, transitions, None), np.array([counted, 4]), []
    plain = Filtered(*filtered(start, transitions, logs, edges, known, given.copy()), None)
    in_logs = ANY.filter_in_logs(chain, logs, edges, known, given.copy(), plain._replace(shares=np.zeros((10, K))))
    assert plain.logs is None and in_logs.logs is not None
    np.testing.assert_allclose(in_logs.shares, plain.shares, rtol=1e-11)
    np.testing.assert_allclose(in_logs.ahead, plain.ahead, rtol=1e-11)
    np.testing.assert_allclose(in_logs.scores, plain.scores, rtol=1e-11, atol=1e-13)
    for found in (plain, in_logs):
        filters, first, steps = given.copy(), np.zeros(K), np.zeros((K, K))
        ANY.smooth(found, chain, edges, known, filters, number, first, steps)
        both.append((found.shares, filters, first, steps * transitions))
    for one, other in zip(*both, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-15)


def test_a_model_sees_a_state_come_back():
    """A left-to-right chain whose first row says the second state, and all others the first: the state must come back."""
    model = hw.GaussianHMM(2, init_params="", random_state=0)
    model.startprob_, model.transmat_ = [0.5, 0.5], [[0.9, 0.1], [0.0, 1.0]]
    model.means_, model.covars_ = [[0.0], [60.0]], np.ones((2, 1))
    X = np.array([[60.0], [0.0], [0.0], [0.0]])
    wanted = naive_chains.enumerate_paths(model.startprob_, model.transmat_, norm.logpdf(X, [0.0, 60.0], 1.0))
    assert model.score(X) == pytest.approx(wanted.score, rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), wanted.states, atol=1e-12)
    assert model.predict_proba(X)[0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize("known", [False, True])
def test_states_whose_probability_has_no_inverse_are_smoothed(known):
    """A state that is reached only from itself keeps less than 1e-308, and the next row is possible in no other."""
    transitions = np.array([[1.0, 0.0], [0.25, 0.75]])
    logs = np.array([[0.0, -700.0], [0.0, -10.0], [-2000.0, 0.0]])
    filters, known = np.array([[0.5, 0.5]]), np.array([known])
    shares, ahead, scores = np.exp(logs), np.empty((3, 2)), np.zeros(3)
    edges, first, steps = np.array([0, 3]), np.zeros(2), np.zeros((2, 2))
    assert run_filter(shares, logs, edges, known, filters, np.array([0.5, 0.5]), transitions, ahead, scores) == -1
    assert 0.0 < ahead[2].min() < 1e-300
    smooth(shares, ahead, edges, known, filters, np.array([3]), transitions, first, steps)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6)  # subnormal numbers have few digits
    assert np.isfinite(steps).all()
    assert (steps * transitions).sum() == pytest.approx(2.0 + known[0], rel=1e-6)


def needs_logs(start, transitions, logs):
    """Return whether some row has a very small density under the possible states."""
    alpha = naive_chains.forward(start, transitions, logs)
    totals = np.diff(logsumexp(alpha, axis=1), prepend=0.0)
    return bool((totals - logs.max(axis=1) < np.log(1e-280)).any())


def test_condition_in_logarithms():
    chances, after = np.array([0.25, 0.75, 0.0]), np.empty(3)
    logs = np.array([-1000.0, -1001.0, 0.0])
    total = condition(chances, np.exp(logs), logs, after)
    weights = np.log(chances[:2]) + logs[:2]
    assert total == pytest.approx(logsumexp(weights), rel=1e-14)
    np.testing.assert_allclose(after, [*np.exp(weights - logsumexp(weights)), 0.0], rtol=1e-13)
    assert np.isnan(condition(chances, np.exp(logs), np.empty(0), after))


def test_a_row_that_is_impossible_says_nothing():
    chances, after = np.array([0.2, 0.3, 0.0]), np.empty(3)
    logs = np.array([-np.inf, -np.inf, 0.0])
    assert condition(chances, np.exp(logs), logs, after) == 0.0
    np.testing.assert_allclose(after, [0.4, 0.6, 0.0], rtol=1e-15)


def test_a_sum_that_is_just_one_is_not_taken_for_impossible():
    """A total of 0 in logarithms means impossible, so a density of exactly 1 gets a tiny negative logarithm."""
    after = np.empty(2)
    total = condition(np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 0.0]), after)
    assert total == -TINY
    np.testing.assert_array_equal(after, [0.0, 1.0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", ["random", "zeros", "cycle", "absorbing"])
def test_best_path_equals_the_enumeration(seed, shape):
    rng = np.random.default_rng(seed)
    start, transitions = a_chain(seed)
    transitions = {"zeros": SOME_ZEROS, "cycle": CYCLE, "absorbing": ABSORBING}.get(shape, transitions)
    logs = rng.normal(size=(7, K)) * 3.0
    logs[2] = 0.0
    wanted = naive_chains.enumerate_paths(start, transitions, logs)
    assert wanted.ties == 1
    path, back = np.empty(7, dtype=np.int64), np.empty((7, K), dtype=np.uint8)
    log_start, log_steps = naive_chains.safe_log(start), naive_chains.safe_log(transitions)
    total = best_path(logs, np.array([0, 7]), log_start, log_steps, back, path)
    assert total == pytest.approx(wanted.best, rel=1e-13)
    assert tuple(path) == wanted.path


def test_best_path_of_ties_is_one_of_the_best():
    logs = np.zeros((6, K))
    start, transitions = np.full(K, 1 / K), np.full((K, K), 1 / K)
    path, back = np.empty(6, dtype=np.int64), np.empty((6, K), dtype=np.uint8)
    for steps in (transitions, CYCLE):
        wanted = naive_chains.enumerate_paths(start, steps, logs)
        assert wanted.ties > 1
        total = best_path(logs, np.array([0, 6]), naive_chains.safe_log(start), naive_chains.safe_log(steps), back, path)
        assert total == pytest.approx(wanted.best, rel=1e-13)
        assert naive_chains.path_weight(start, steps, logs, path) == pytest.approx(wanted.best, rel=1e-13)


def test_best_paths_of_several_sequences_add():
    rng = np.random.default_rng(5)
    start, transitions = a_chain(5)
    logs, edges = rng.normal(size=(9, K)), np.array([0, 1, 4, 9])
    alone = [naive_chains.enumerate_paths(start, transitions, logs[a:b]) for a, b in pairwise(edges)]
    path, back = np.empty(9, dtype=np.int64), np.empty((9, K), dtype=np.uint8)
    total = best_path(logs, edges, np.log(start), np.log(transitions), back, path)
    assert total == pytest.approx(sum(one.best for one in alone), rel=1e-13)
    assert tuple(path) == sum((one.path for one in alone), ())


# The model


@kinds
def test_summary_equals_the_enumeration(kind):
    model, parameters = a_model(kind), some_parameters(kind)
    X, sequences = some_rows(kind, 11, missing=(2, 8)), np.repeat([-1, -6, -7], [5, 1, 5])
    scores = np.empty(11)
    summary = model.summarize(parameters, Batch(X, sequences=sequences), scores=scores)
    logs = naive_chains.log_densities(kind, parameters.emissions, X)
    alone = [naive_chains.enumerate_paths(parameters.start, parameters.transitions, logs[sequences == s]) for s in (-1, -6, -7)]
    states = np.vstack([one.states for one in alone])
    seen = ~np.isnan(X[:, 0])
    if kind is None:
        emissions = (states[seen].sum(axis=0), np.eye(V)[X[seen, 0].astype(int)].T @ states[seen])
    else:
        emissions = naive.totals(kind, X[seen] - parameters.emissions.origin, states[seen])
    wanted = [sum(one.first for one in alone), sum(one.steps for one in alone), *emissions]
    assert_statistics(kind, summary.statistics, wanted)
    assert summary.score == pytest.approx(sum(one.score for one in alone), rel=1e-12)
    assert scores.sum() == pytest.approx(summary.score, rel=1e-12)
    assert (summary.rows, summary.size) == (11, 11.0)
    np.testing.assert_allclose(model.posterior(parameters, Batch(X, sequences=sequences)), states, rtol=1e-11)
    total, path = model.best(parameters, Batch(X, sequences=sequences))
    assert total == pytest.approx(sum(one.best for one in alone), rel=1e-12)
    assert tuple(path) == sum((one.path for one in alone), ())


@kinds
def test_log_densities_are_those_of_the_rows_however_far(kind):
    model, parameters = a_model(kind), some_parameters(kind)
    X = some_rows(kind, 20) * (1.0 if kind is None else 1e4)
    np.testing.assert_allclose(
        model.log_densities_of(parameters, X), naive_chains.log_densities(kind, parameters.emissions, X), rtol=1e-12
    )


@pytest.mark.parametrize("kind", naive.KINDS)
@pytest.mark.parametrize("transitions", [CHAINS["dense"], CYCLE, ABSORBING], ids=["dense", "cycle", "absorbing"])
def test_rows_far_from_the_states_that_can_be_reached(kind, transitions):
    model = a_model(kind)
    parameters = some_parameters(kind, start=np.array([1.0, 0.0, 0.0]), transitions=transitions)
    X = some_rows(kind, 6) * 40.0
    X[3] = parameters.emissions.means[2] + parameters.emissions.origin
    logs = naive_chains.log_densities(kind, parameters.emissions, X)
    wanted = naive_chains.enumerate_paths(parameters.start, transitions, logs)
    assert np.ptp(logs, axis=1).max() > 800.0
    summary = model.summarize(parameters, Batch(X))
    assert summary.score == pytest.approx(wanted.score, rel=1e-12)
    np.testing.assert_allclose(model.posterior(parameters, Batch(X)), wanted.states, rtol=1e-8, atol=1e-12)
    total, path = model.best(parameters, Batch(X))
    assert total == pytest.approx(wanted.best, rel=1e-12)
    assert naive_chains.path_weight(parameters.start, transitions, logs, path) == pytest.approx(wanted.best, rel=1e-12)


@kinds
def test_interleaved_sequences_are_separate_ones(kind):
    model, parameters = a_model(kind), some_parameters(kind)
    X = some_rows(kind, 30, missing=(4, 17))
    sequences = np.random.default_rng(3).integers(3, size=30)
    order = np.argsort(sequences, kind="stable")
    together, apart = (
        model.summarize(parameters, Batch(X[rows], sequences=sequences[rows])) for rows in (np.arange(30), order)
    )
    wanted, score, _ = naive_chains.expected(kind, parameters, X, sequences)
    for summary in (together, apart):
        assert_statistics(kind, summary.statistics, wanted)
        assert summary.score == pytest.approx(score, rel=1e-12)
    inverse = np.argsort(order)
    for answer in (
        lambda batch: model.posterior(parameters, batch),
        lambda batch: model.log_likelihood(parameters, batch),
        lambda batch: model.best(parameters, batch)[1],
    ):
        mixed, plain = (answer(Batch(X[rows], sequences=sequences[rows])) for rows in (np.arange(30), order))
        np.testing.assert_array_equal(mixed, plain[inverse])


@kinds
@pytest.mark.parametrize("rows", [1, 13, 24, 30])
def test_open_summary_equals_the_naive_one(kind, rows):
    model, parameters = a_model(kind), some_parameters(kind)
    X, rng = some_rows(kind, 30, missing=(4, 17)), np.random.default_rng(4)
    sequences = rng.choice([0, 3, 5, -8], size=30)
    before = {number: rng.dirichlet(np.ones(K)) for number in (0, -8, 40)}
    carry = Carry(dict(before))
    summary, after = model.summarize_open(parameters, Batch(X, sequences=sequences), carry, rows)
    wanted, score, filters = naive_chains.expected(kind, parameters, X, sequences, rows, before)
    assert_statistics(kind, summary.statistics, wanted)
    assert summary.score == pytest.approx(score, rel=1e-12)
    assert (summary.rows, summary.size) == (rows, float(rows))
    if rows == 30:
        del filters[-8]  # the sequence is complete
    assert set(after.filters) == set(filters)
    for number, states in filters.items():
        np.testing.assert_allclose(after.filters[number], states, rtol=1e-11)
    np.testing.assert_array_equal(carry.filters[0], before[0])


@kinds
def test_following_in_parts_is_following_at_once(kind):
    model, parameters = a_model(kind), some_parameters(kind)
    X = some_rows(kind, 40, missing=(4, 17, 18))
    sequences = np.random.default_rng(4).integers(3, size=40)
    whole, states, scores, parts = np.empty(40), np.empty((40, K)), np.empty(40), np.empty((40, K))
    model.follow(parameters, Batch(X, sequences=sequences), None, whole, states)
    carry = None
    for at in range(0, 40, 7):
        rows = slice(at, at + 7)
        carry = model.follow(parameters, Batch(X[rows], sequences=sequences[rows]), carry, scores[rows], parts[rows])
    np.testing.assert_array_equal(scores, whole)
    np.testing.assert_array_equal(parts, states)
    logs = naive_chains.log_densities(kind, parameters.emissions, X)
    for number in range(3):
        own = sequences == number
        _, wanted, row_scores = naive_chains.forward_backward(parameters.start, parameters.transitions, logs[own])
        np.testing.assert_allclose(states[own], wanted, rtol=1e-10)
        np.testing.assert_allclose(whole[own], row_scores, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(carry.filters[number], states[own][-1])


# Pieces


def in_pieces(monkeypatch, pieces, slab_rows):
    import headwater.kernels.parallel as parallel

    monkeypatch.setattr(chain_smoothing, "PIECES", pieces)
    monkeypatch.setattr(parallel, "SLAB_ROWS", slab_rows)


def answers(model, parameters, batch, n_threads=None):
    scores = np.empty(len(batch))
    posteriors = model.smoothed(parameters, batch, scores, n_threads)
    summary = model.summarize(parameters, batch, n_threads=n_threads)
    return [posteriors, scores, np.array(summary.score), *arrays_of(summary.statistics)]


@kinds
@pytest.mark.parametrize("lengths", [[300], [7, 90, 1, 1, 64, 64, 73], [1] * 300], ids=["one", "some", "ones"])
def test_pieces_that_meet_are_one_piece(kind, lengths, monkeypatch):
    model, parameters = a_model(kind), some_parameters(kind)
    X = some_rows(kind, 300, missing=(40, 63, 64, 128))
    ends = np.cumsum(lengths)
    batch = Batch(X, sequences=np.repeat(-1 - (ends - lengths), lengths))
    whole = answers(model, parameters, batch)
    in_pieces(monkeypatch, ((32, 60), (100, 120)), 64)
    tried = watched(monkeypatch)
    pieces = answers(model, parameters, batch)
    assert set(tried) == {32}  # that is, the pieces agreed
    for found, wanted in zip(pieces, whole, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


def watched(monkeypatch):
    """Return a list to which the sizes of the tried pieces are appended."""
    tried, slab, whole = [], HiddenMarkov._slab, HiddenMarkov._piece

    def watch(self, task, begin, stop, piece, beyond):
        tried.append(piece)
        return slab(self, task, begin, stop, piece, beyond)

    def watch_whole(self, task):
        tried.append(len(task.X))
        return whole(self, task)

    monkeypatch.setattr(HiddenMarkov, "_slab", watch)
    monkeypatch.setattr(HiddenMarkov, "_piece", watch_whole)
    return tried


@pytest.mark.parametrize("transitions", [CYCLE, ABSORBING, 0.999 * np.eye(K) + 0.001 / K], ids=["cycle", "absorbing", "slow"])
def test_a_chain_that_forgets_slowly_is_still_exact(transitions, monkeypatch):
    model = a_model(None)
    parameters = some_parameters(None, start=np.array([0.2, 0.5, 0.3]), transitions=transitions)
    dull = 0.98 / V + 0.02 * np.random.default_rng(0).dirichlet(np.ones(V), K)
    parameters = replace(parameters, emissions=model.family.from_probabilities(dull))
    batch = Batch(some_rows(None, 400))
    wanted, score, _ = naive_chains.expected(None, parameters, batch.X, np.zeros(400, dtype=int))
    in_pieces(monkeypatch, ((32, 4), (100, 8)), 64)
    tried = watched(monkeypatch)
    summary = model.summarize(parameters, batch)
    assert set(tried) == {32, 100, 400}
    assert_statistics(None, summary.statistics, wanted, atol=1e-9)
    assert summary.score == pytest.approx(score, rel=1e-12)


def test_what_a_piece_thinks_next_to_nothing_of_may_still_be_everything(monkeypatch):
    """With two absorbing states, pieces seem to agree where they meet, but the sum over all rows decides."""
    in_pieces(monkeypatch, ((64, 20), (128, 20)), 64)
    symbols = np.full(9 * 64, 2.0)
    for slab in range(9):
        symbols[slab * 64 + 30 : slab * 64 + 38] = 0.0
        symbols[(slab + 1) * 64 - 16 : (slab + 1) * 64 - 10] = 1.0
    ratio, part = np.exp(10.0), 1e-6
    dull = 1.0 - part - part * ratio
    model = HiddenMarkov(2, Categorical(2, n_symbols=3))
    emissions = model.family.from_probabilities(np.array([[part, part * ratio, dull], [part * ratio, part, dull]]))
    parameters = ChainParameters(np.array([1.0, 1e-35]), np.eye(2), emissions)
    batch, scores = Batch(symbols[:, None]), np.empty(len(symbols))
    posteriors = model.smoothed(parameters, batch, scores)
    logs = naive_chains.log_densities(None, emissions, batch.X)
    wanted, _, row_scores = naive_chains.forward_backward(parameters.start, parameters.transitions, logs)
    np.testing.assert_allclose(scores, row_scores, atol=1e-9)
    np.testing.assert_allclose(posteriors, wanted.states, atol=1e-9)


def test_threads_do_not_change_the_answer(monkeypatch):
    model, parameters = a_model("full"), some_parameters("full")
    batch = Batch(some_rows("full", 400))
    in_pieces(monkeypatch, ((32, 60), (100, 120)), 64)
    for one, two in zip(answers(model, parameters, batch, 1), answers(model, parameters, batch, 2), strict=True):
        np.testing.assert_array_equal(one, two)


def test_states_sum_to_one_beside_huge_log_densities():
    logs = np.array([[-4.4e179, -4.4e179, -2.5e179], [-1e178, -1e178, -1e178], [-3e179, -3e179, -5e179]])
    start, steps = np.log(np.full(3, 1 / 3)), np.log(np.full((3, 3), 1 / 3))
    filtered, ahead, scores = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    run_log_filter(logs, np.array([0, 3]), np.full((1, 3), -np.inf), start, steps, filtered, ahead, scores)
    np.testing.assert_allclose(np.exp(filtered).sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(np.exp(filtered[2]), [0.5, 0.5, 0.0], rtol=1e-9)
    np.testing.assert_allclose(scores, logs.max(axis=1), rtol=1e-9)
