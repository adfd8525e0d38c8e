"""Hidden Markov chains learned step by step and in blocks, against recursions in plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from chain_cases import K, V, a_model, assert_statistics, kinds, some_parameters, some_rows
from naive import chains as naive_chains

from headwater.core.algorithms import BayesianOnlineEM, OnlineEM, OnlineVB, SatoEM
from headwater.core.batch import Batch
from headwater.core.learner import Learner
from headwater.core.loop import advance
from headwater.core.records import arrays_of
from headwater.core.state import WarmUp
from headwater.families.categorical import Categorical
from headwater.families.gaussian_records import GaussianPrior
from headwater.models.chain_records import ChainPrior, ChainStatistics

# Step by step


def a_prior(kind, seed=0):
    rng = np.random.default_rng(seed)
    start, steps = rng.uniform(1.0, 2.0, K), rng.uniform(1.0, 2.0, (K, K))
    if kind is None:
        family = Categorical(K, rng.uniform(1.0, 2.0, (K, V)), n_symbols=V)
        emissions = family.make_prior(V)
    else:
        scale = {"full": [[2.0, 0.3], [0.3, 1.0]], "tied": [[2.0, 0.3], [0.3, 1.0]], "diag": [2.0, 1.0]}
        emissions = GaussianPrior(
            np.array([0.3, -0.2]), np.array([0.2, -0.1]), 0.4, 4.5, np.array(scale.get(kind, [1.5, 1.5])), 0.0
        )
    return ChainPrior(start, steps, np.minimum(start, 1.0), np.minimum(steps, 1.0), emissions)


def twin_of(kind, prior):
    if kind is None:
        shape = (V, K)
        return naive_chains.SymbolRows(
            np.broadcast_to(prior.emissions.beta, shape), np.broadcast_to(prior.emissions.shift, shape)
        )
    return naive_chains.GaussianRows(kind, prior.emissions)


def a_start(kind, prior):
    """Return mean statistics of twenty rows with random states, for the twin and for the library."""
    model, rng = a_model(kind), np.random.default_rng(9)
    X, shares = some_rows(kind, 20, seed=5), rng.dirichlet(np.full(K, 0.5), 20)
    totals = model.zeros(X.shape[1])
    totals.start[...], totals.steps[...] = shares[0], shares[:-1].T @ shares[1:]
    blank = some_parameters(kind)
    if kind is not None:
        blank = replace(blank, emissions=model.family.blank_parameters(prior.emissions.origin))
    statistics = model.collected(blank, X, shares, totals, 1).scaled(1.0 / 20.0)
    return [np.array(part) for part in naive_chains.flat_parts(kind, statistics)], statistics


SEQUENCES = {
    "one": np.zeros(30, dtype=np.int64),
    "complete": np.repeat([-1, -10, -11, -13], [9, 1, 2, 18]),
    "interleaved": np.random.default_rng(6).integers(3, size=30),
}
STEPS = {
    "decaying": (np.arange(30) + 3.0) ** -0.6,
    "equal": 1.0 / (21.0 + np.arange(30)),
}


@pytest.mark.covering("kind", "name")
@kinds
@pytest.mark.parametrize("name", ["mode", "mean", "expect_log"])
@pytest.mark.parametrize(("shape", "rule"), [("one", "equal"), ("complete", "decaying"), ("interleaved", "decaying")])
def test_sweep_equals_the_naive_recursion(kind, name, shape, rule):
    prior = a_prior(kind)
    dense, held = a_start(kind, prior)
    before = [array.copy() for array in arrays_of(held)]
    X = some_rows(kind, 30, missing=() if name == "expect_log" else (4, 17))
    gains, scores, steps = np.random.default_rng(2).uniform(0.01, 1.0, 30), np.empty(30), STEPS[rule]
    found, moved, n_eff, carry = a_model(kind).sweep_open(
        name, prior, held, held, 20.0, Batch(X, sequences=SEQUENCES[shape]), steps, gains, scores, None
    )
    wanted, average, wanted_n_eff, wanted_scores, filters = naive_chains.cappe(
        name, prior, twin_of(kind, prior), X, SEQUENCES[shape].tolist(), steps, dense, 20.0, gains
    )
    assert_statistics(kind, found, wanted, 1e-9, 1e-12)
    assert_statistics(kind, moved, average, 1e-9, 1e-12)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-11)
    assert n_eff == pytest.approx(wanted_n_eff, rel=1e-12)
    for number, states in carry.filters.items():
        np.testing.assert_allclose(states, filters[number], rtol=1e-9)
    for array, old in zip(arrays_of(held), before, strict=True):
        np.testing.assert_array_equal(array, old)


@kinds
@pytest.mark.parametrize("missing", [(4,), (0, 1), (28, 29)], ids=["inside", "first", "last"])
def test_missing_rows_of_a_variational_sweep_lose_nothing(kind, missing):
    prior = a_prior(kind)
    dense, held = a_start(kind, prior)
    X, steps, scores = some_rows(kind, 30, missing=missing), STEPS["decaying"], np.empty(30)
    options = (Batch(X, sequences=SEQUENCES["one"]), steps, np.empty(0), scores, None)
    found, _, _, _ = a_model(kind).sweep_open("expect_log", prior, held, None, 20.0, *options)
    wanted, _, _, wanted_scores, _ = naive_chains.cappe(
        "expect_log", prior, twin_of(kind, prior), X, [0] * 30, steps, dense, 20.0
    )
    assert found.start.sum() + found.steps.sum() == pytest.approx(1.0, rel=1e-12)
    assert_statistics(kind, found, wanted, 1e-9, 1e-12)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-11)


@kinds
@pytest.mark.parametrize("shape", SEQUENCES)
def test_sweep_in_parts_is_the_sweep_at_once(kind, shape):
    prior = a_prior(kind)
    _, held = a_start(kind, prior)
    X, steps = some_rows(kind, 30, missing=(4, 17)), STEPS["decaying"]
    model, scores, parts = a_model(kind), np.empty(30), np.empty(30)
    whole, _, n_eff, _ = model.sweep_open(
        "mode", prior, held, None, 20.0, Batch(X, sequences=SEQUENCES[shape]), steps, np.empty(0), scores, None
    )
    statistics, count, carry = held, 20.0, None
    for at in range(0, 30, 4):
        rows = slice(at, at + 4)
        statistics, _, count, carry = model.sweep_open(
            "mode", prior, statistics, None, count, Batch(X[rows], sequences=SEQUENCES[shape][rows]), steps[rows],
            np.empty(0), parts[rows], carry,
        )  # fmt: skip
    for one, other in zip(arrays_of(statistics), arrays_of(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(parts, scores, rtol=1e-11, atol=1e-13)
    assert count == pytest.approx(n_eff, rel=1e-13)


@kinds
@pytest.mark.parametrize("shape", SEQUENCES)
def test_at_fixed_parameters_the_recursion_is_forward_and_backward(kind, shape):
    """With steps of 1/n and fixed parameters, the statistics after n rows are exactly those of Baum-Welch."""
    parameters, X = some_parameters(kind), some_rows(kind, 30, missing=(4, 17))
    prior, sequences = a_prior(kind), SEQUENCES[shape]
    if kind is not None:
        prior = replace(prior, emissions=replace(prior.emissions, origin=parameters.emissions.origin))
    fixed = (
        parameters.start,
        parameters.transitions,
        lambda x: naive_chains.log_densities(kind, parameters.emissions, x[None])[0],
    )
    nothing = [np.zeros_like(part) for part in a_start(kind, prior)[0]]
    mean, _, _, scores, _ = naive_chains.cappe(
        "mode", prior, twin_of(kind, prior), X, sequences.tolist(), 1.0 / np.arange(1, 31), nothing, 1.0, fixed=fixed
    )
    summary = a_model(kind).summarize(parameters, Batch(X, sequences=sequences))
    assert_statistics(kind, summary.statistics, [30.0 * part for part in mean])
    assert summary.score == pytest.approx(scores.sum(), rel=1e-12)


@kinds
@pytest.mark.parametrize("shape", SEQUENCES)
def test_the_sweep_at_a_prior_that_nothing_moves_is_forward_and_backward(kind, shape):
    """The same for the kernel: the prior is so strong that no row moves its mean."""
    parameters, X = some_parameters(kind), some_rows(kind, 30, missing=(4, 17))
    sequences, strong, none = SEQUENCES[shape], 1e14, np.zeros
    if kind is None:
        probabilities = np.exp(parameters.emissions.logs).T
        emissions = Categorical(K, strong * probabilities, n_symbols=V).make_prior(V)
    else:  # one mean and covariance for all states: only the chain distinguishes them
        scale = np.array({"full": [[2.0, 0.3], [0.3, 1.0]], "diag": [2.0, 1.0]}.get(kind, [1.5, 1.5]))
        scale = np.array([[2.0, 0.3], [0.3, 1.0]]) if kind == "tied" else scale
        emissions = GaussianPrior(np.array([0.3, -0.2]), np.array([0.2, -0.1]), strong, strong, strong * scale, 0.0)
    prior = ChainPrior(strong * parameters.start, strong * parameters.transitions, none(K), none((K, K)), emissions)
    model, scores = a_model(kind), np.empty(30)
    zeros = model.zeros(X.shape[1])
    alike = model.readout("mean", prior, zeros, 1.0)
    steps = 1.0 / np.arange(2, 32)  # empty statistics worth one row come before
    found, _, n_eff, _ = model.sweep_open(
        "mean", prior, zeros, None, 1.0, Batch(X, sequences=sequences), steps, np.empty(0), scores, None
    )
    summary = model.summarize(alike, Batch(X, sequences=sequences))
    assert n_eff == pytest.approx(31.0)
    wanted = naive_chains.flat_parts(kind, summary.statistics)
    assert_statistics(kind, found.scaled(31.0), wanted, 1e-9, 1e-9)
    assert scores.sum() == pytest.approx(summary.score, rel=1e-10)


@kinds
def test_what_is_carried_does_not_grow_with_the_rows(kind):
    prior = a_prior(kind)
    _, held = a_start(kind, prior)
    sizes = []
    for rows in (10, 1000):
        X, steps = some_rows(kind, rows), (np.arange(rows) + 3.0) ** -0.6
        found = a_model(kind).sweep_open(
            "mode", prior, held, None, 20.0, Batch(X, sequences=np.zeros(rows, dtype=np.int64)), steps, np.empty(0),
            np.empty(rows), None,
        )  # fmt: skip
        sizes.append([array.shape for part in found for array in arrays_of(part)])
    assert sizes[0] == sizes[1]


# Blocks


@pytest.mark.covering("algorithm")
@kinds
@pytest.mark.parametrize(
    ("shape", "algorithm"),
    [
        ("one", OnlineEM(batch_size=40)), ("complete", OnlineVB(batch_size=40)), ("interleaved", SatoEM(batch_size=40)),
        pytest.param("interleaved", BayesianOnlineEM(batch_size=40), marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "word", value),
)  # fmt: skip
def test_blocks_are_folded_as_in_plain_loops(kind, shape, algorithm):
    model, rng = a_model(kind, lag=7), np.random.default_rng(8)
    X, rows = some_rows(kind, 260, missing=(50, 71, 130)), 260
    lengths = [3, 1, 80, 47, 2, 90, 37]
    sequences = {
        "one": np.zeros(rows, dtype=np.int64),
        "complete": np.repeat(-1 - (np.cumsum(lengths) - lengths), lengths),
        "interleaved": rng.integers(3, size=rows),
    }[shape]
    learner = Learner(model, algorithm, X.shape[1], warm_up=59)  # of the first 60 rows one is missing
    state, _ = advance(learner.plan, WarmUp(0), Batch(X[:60], sequences=sequences[:60]))
    filters = {number: np.array(states) for number, states in state.unfolded.carry.filters.items()}
    found, _ = advance(learner.plan, state, Batch(X[60:], sequences=sequences[60:]))
    loops = naive_chains.blocks(learner.plan, kind, state, X[60:], sequences[60:], filters)
    folded, answer = 0, next(loops)
    while True:
        mean, progress, folded = answer
        statistics = rebuilt(kind, found.statistics, mean)
        parameters = model.readout(algorithm.readout, state.base.prior, statistics, learner.plan.count(progress))
        try:
            answer = loops.send(parameters)
        except StopIteration:
            break
    assert folded == 160
    assert_statistics(kind, found.statistics, mean, 1e-9, 1e-10)
    assert sum(map(len, found.unfolded.waiting)) == 40
    assert found.progress.rows_seen == 220
    for name, value in vars(progress).items():
        assert getattr(found.progress, name) == pytest.approx(value, rel=1e-12), name


def rebuilt(kind, like, parts):
    """Return statistics of the library, made from those of the twin."""
    start, steps, count, *rest = parts
    if kind is None:
        emissions = Categorical(K, n_symbols=V).unflat(np.concatenate([count, rest[0].ravel()]), 1)
    else:
        second = np.tril(rest[1]) if kind in ("full", "tied") else rest[1]
        emissions = replace(like.emissions, count=count, first=rest[0], second=second)
    return ChainStatistics(np.zeros(1), start, steps, emissions)
