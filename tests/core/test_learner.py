"""The laws of the loop, for every algorithm from one table."""

import copy
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from naive import gaussian as naive
from scipy import integrate, stats

from headwater.core import steps
from headwater.core.algorithms import ALGORITHMS, BatchEM, BatchVB, BayesianOnlineEM, SatoEM
from headwater.core.batch import Batch, Buffer
from headwater.core.batch_fit import Passes, learn
from headwater.core.contracts import StartSettings
from headwater.core.learner import Learner
from headwater.core.loop import advance, branch, finalize, report
from headwater.core.merge import merge
from headwater.core.schedules import ForgettingFactor
from headwater.core.state import Stream, WarmUp
from headwater.core.steps import belief
from headwater.core.warm_up import UNKNOWN_ROWS
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianPrior
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixturePrior

K, D, N, WARM_UP, BATCH = 2, 2, 300, 64, 16
RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0.0], [3.0, 1.0]])
X = RNG.normal(size=(N, D)) * [1.0, 0.5] + CENTRES[RNG.integers(0, K, N)]
ROWS = Batch(X)
RICH = Batch(X, RNG.uniform(0.2, 3.0, N), RNG.choice([-1, -1, -1, 0, 1], N))

ONLINE = {
    f"{word}, batches of {size}": replace(kind(), batch_size=size)
    for word, kind in ALGORITHMS.items()
    if kind.online and not kind().projection and kind.ways != ("collapsed",)
    for size in (1, BATCH)
}
ONLINE["boem, mode"] = BayesianOnlineEM("mode", batch_size=BATCH)
EQUAL = {
    name: algorithm for name, algorithm in ONLINE.items() if name.split(",")[0] not in ("soem", "online-em", "simulated-em")
}

kinds = pytest.mark.parametrize("kind", naive.KINDS)
half_lives = pytest.mark.parametrize("half_life", [None, 80.0])
branches = pytest.mark.parametrize("branched", [False, True], ids=["from warm-up", "from a branch"])


def table(rows):
    return pytest.mark.parametrize("algorithm", list(rows.values()), ids=list(rows))


def learner_of(algorithm, kind="full", half_life=None, **family):
    model = Mixture(K, Gaussian(K, kind, **family))
    return Learner(model, algorithm, D, StartSettings(), half_life, warm_up=WARM_UP, n_threads=1)


def leaves(value, path=""):
    """Return every array and number of a state, by path."""
    if isinstance(value, Buffer):
        yield f"{path}.rows", value.rows
        if value.rows:
            yield from leaves(value.batch(), f"{path}.batch")
    elif is_dataclass(value):
        for field in fields(value):
            if field.compare:
                yield from leaves(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, dict):
        for name in sorted(value):
            yield from leaves(value[name], f"{path}.{name}")
    else:
        yield path, value


def assert_identical(one, other):
    for (path, mine), (_, theirs) in zip(leaves(one), leaves(other), strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=path)


def assert_close(one, other, rtol=1e-8):
    for (path, mine), (_, theirs) in zip(leaves(one), leaves(other), strict=True):
        if isinstance(mine, float | int | np.ndarray):
            np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-10, err_msg=path)
        else:
            assert mine == theirs, path


def stream(learner, batch, chunk, scores=None):
    state = WarmUp(key=3)
    for at in range(0, len(batch), chunk):
        part = slice(at, at + chunk)
        state, _ = advance(learner.plan, state, batch[part], *([] if scores is None else [scores[part]]))
    return state


# Chunks


@pytest.mark.covering("algorithm")
@table({**ONLINE, "soem, forgetting factor": SatoEM(rate=ForgettingFactor(0.7, 50.0))})
@half_lives
@pytest.mark.parametrize(
    "batch",
    # Slow: test_laws.py tries the cut of plain rows on every estimator.
    [pytest.param(ROWS, id="rows", marks=pytest.mark.slow), pytest.param(RICH, id="weights and labels")],
)
def test_the_cut_into_chunks_does_not_change_the_state(algorithm, half_life, batch):
    learner = learner_of(algorithm, half_life=half_life)
    wanted = stream(learner, batch, N)
    assert isinstance(wanted, Stream)
    for chunk in (1, 37):
        assert_close(stream(learner, batch, chunk), wanted)


@pytest.mark.parametrize("algorithm", [ONLINE["online-vb, batches of 1"], ONLINE[f"auto, batches of {BATCH}"]])
def test_the_cut_into_chunks_does_not_change_the_scores(algorithm):
    learner = learner_of(algorithm)
    wanted = np.full(N, np.nan)
    stream(learner, ROWS, N, wanted)
    assert np.isfinite(wanted[UNKNOWN_ROWS:]).all()
    for chunk in (1, 37):
        scores = np.full(N, np.nan)
        stream(learner, ROWS, chunk, scores)
        np.testing.assert_allclose(scores, wanted, rtol=1e-8, atol=1e-10)


@table({name: algorithm for name, algorithm in ONLINE.items() if name.endswith(" 1")})
def test_the_stretches_of_a_sweep_do_not_change_the_state(algorithm, monkeypatch):
    learner = learner_of(algorithm)
    wanted = stream(learner, RICH, N)
    monkeypatch.setattr(steps, "SWEEP_ROWS", 7)
    assert_close(stream(learner, RICH, N), wanted)


@pytest.mark.covering("algorithm")
@table({name: algorithm for name, algorithm in ONLINE.items() if algorithm.batch_size == BATCH})
@half_lives
@pytest.mark.parametrize("batch", [ROWS, RICH], ids=["rows", "weights and labels"])
def test_batches_are_folded_as_by_hand(algorithm, half_life, batch):
    learner = learner_of(algorithm, half_life=half_life)
    base = stream(learner, batch[:WARM_UP], N)
    rest = batch[WARM_UP : WARM_UP + 10 * BATCH]
    scores = np.empty(len(rest))
    state, info = advance(learner.plan, copy.deepcopy(base), rest, scores)
    statistics, average, progress, parameters, wanted_scores = naive.folds(learner.plan, base, rest)
    wanted = replace(base, statistics=statistics, progress=progress, parameters=parameters).with_record("average", average)
    assert_close(state, wanted)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-10)
    assert info.score == pytest.approx(np.average(wanted_scores, weights=rest.row_weights))


# Reading


@pytest.mark.covering("algorithm")
@table(ONLINE)
@pytest.mark.parametrize("rows", [10, WARM_UP - 1, WARM_UP, WARM_UP + BATCH + 5])
def test_reading_changes_nothing(algorithm, rows):
    learner = learner_of(algorithm)
    state = stream(learner, RICH[:rows], 7)
    before = copy.deepcopy(state)
    settled = finalize(learner.plan, state)
    report(learner.plan, state)
    belief(learner.plan, settled)
    assert_identical(state, before)
    assert_identical(finalize(learner.plan, state), settled)
    kept = copy.deepcopy(settled)
    read_on, _ = advance(learner.plan, state, RICH[rows:])
    unread, _ = advance(learner.plan, before, RICH[rows:])
    assert_identical(read_on, unread)
    assert_identical(settled, kept)


@table(ONLINE)
def test_inputs_are_not_changed_nor_kept(algorithm):
    learner = learner_of(algorithm)
    batch = copy.deepcopy(RICH[:100])
    state, _ = advance(learner.plan, WarmUp(3), batch)
    assert_identical(batch, RICH[:100])
    before = copy.deepcopy(state)
    for array in (batch.X, batch.weights, batch.labels):
        array[...] = 1
    assert_identical(state, before)


# Counting


@pytest.mark.covering("algorithm")
@table(ONLINE)
@pytest.mark.parametrize("rows", [10, WARM_UP, WARM_UP + 5, WARM_UP + BATCH + 5])
@pytest.mark.parametrize("batch", [ROWS, RICH], ids=["rows", "weights and labels"])
def test_every_row_is_seen_exactly_once(algorithm, rows, batch):
    settled = finalize(learner_of(algorithm).plan, stream(learner_of(algorithm), batch[:rows], 7))
    assert settled.unfolded.summary is None
    assert settled.progress.rows_seen == rows
    assert settled.progress.weight_seen == pytest.approx(batch[:rows].size)
    assert settled.progress.folds == pytest.approx(
        batch[:rows].size / learner_of(algorithm).plan.batch_rows(learner_of(algorithm).model)
    )
    assert settled.statistics.count.sum() == pytest.approx(1.0)


@pytest.mark.covering("algorithm")
@table(EQUAL)
@pytest.mark.parametrize("rows", [10, WARM_UP, WARM_UP + 5, WARM_UP + BATCH + 5])
@pytest.mark.parametrize("batch", [ROWS, RICH], ids=["rows", "weights and labels"])
def test_under_equal_weights_counts_and_moments_are_those_of_all_rows(algorithm, rows, batch):
    learner = learner_of(algorithm)
    settled = finalize(learner.plan, stream(learner, batch[:rows], 7))
    prior, statistics, count = belief(learner.plan, settled)
    totals = statistics.scaled(count)
    centred = batch.X[:rows] - prior.components.origin
    weights = batch.row_weights[:rows]
    assert count == pytest.approx(weights.sum())
    assert totals.count.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(totals.first.sum(axis=0), weights @ centred, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(totals.second.sum(axis=0), np.tril((weights * centred.T) @ centred), rtol=1e-9)
    base_share = min(rows, WARM_UP) if batch is ROWS else weights[:WARM_UP].sum()
    assert totals.from_base == pytest.approx(base_share)


@table(ONLINE)
def test_labelled_rows_count_for_their_component(algorithm):
    batch = Batch(X, labels=np.random.default_rng(1).integers(0, K, N))
    learner = learner_of(algorithm)
    prior, statistics, count = belief(learner.plan, finalize(learner.plan, stream(learner, batch, 50)))
    if algorithm in EQUAL.values():
        np.testing.assert_allclose(statistics.count * count, np.bincount(batch.labels), rtol=1e-9)
        for k in range(K):
            sums = (X[batch.labels == k] - prior.components.origin).sum(axis=0)
            np.testing.assert_allclose(statistics.first[k] * count, sums, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_allclose(statistics.count, np.bincount(batch.labels) / N, atol=0.15)


# Passes over all rows


GIVEN = {"mean_prior": np.array([0.5, -0.5]), "mean_precision_prior": 5.0, "degrees_of_freedom_prior": 9.0}
PRIORS = {"full": np.array([[3.0, 1.0], [1.0, 2.0]]), "tied": np.eye(2), "diag": np.array([3.0, 1.0]), "spherical": 2.0}
PASSES = {"em": BatchEM(), "vb": BatchVB()}


@pytest.mark.covering("kind", "algorithm")
@kinds
@table(PASSES)
@pytest.mark.parametrize("given", [False, True], ids=["no prior", "prior"])
@pytest.mark.parametrize("batch", [ROWS, RICH], ids=["rows", "weights and labels"])
def test_no_pass_lowers_the_objective(kind, algorithm, given, batch):
    family = Gaussian(3, kind, reg_covar=0.0, **({**GIVEN, "covariance_prior": PRIORS[kind]} if given else {}))
    model = Mixture(3, family, weight_concentration_prior=2.5 if given else None)
    learner = Learner(model, algorithm, D, warm_up=WARM_UP)
    _, end = learn(learner.plan, batch, key=1, passes=Passes(150, 0.0))
    steps = np.diff(end.trace)
    assert len(steps) == 149
    assert steps.min() > -1e-10
    assert end.trace[-1] - end.trace[0] > 1e-3


@kinds
def test_objective_of_maximum_likelihood_is_the_mean_log_likelihood(kind):
    learner = learner_of(BatchEM(), kind, reg_covar=0.0)
    _, end = learn(learner.plan, ROWS, key=1, passes=Passes(5, 0.0))
    parameters = end.parameters
    _, scores = naive.responsibilities(naive.log_joint(kind, parameters.components, parameters.log_weights, X))
    assert end.trace[-1] == pytest.approx(scores.mean(), rel=1e-10)


@kinds
def test_free_energy_of_one_component_is_the_log_evidence(kind):
    rows = X[:40]
    learner = Learner(Mixture(1, Gaussian(1, kind)), BatchVB(), D, warm_up=WARM_UP)
    state, end = learn(learner.plan, Batch(rows), key=1, passes=Passes(2, 0.0))
    prior = state.base.prior.components
    centred, evidence = rows - prior.origin, 0.0
    for i in range(len(rows)):
        believed = naive.belief(kind, prior, *naive.totals(kind, centred[:i], np.ones((i, 1))))
        evidence += naive.log_densities("predictive", kind, believed, 0.0, centred[i : i + 1])[0, 0]
    assert end.trace[-1] * len(rows) == pytest.approx(evidence, rel=1e-9)


def test_the_price_of_the_weights_is_the_divergence_of_their_beliefs():
    model, count = Mixture(K, Gaussian(K)), 20.0
    components = GaussianPrior(np.zeros(D), np.zeros(D), 0.01, D + 2.0, (D + 2.0) * np.eye(D), 0.0)
    prior = MixturePrior(np.array([0.7, 2.5]), components)
    totals = replace(model.zeros(D), count=np.array([0.8, 0.2]), second=np.stack([np.eye(D)] * 2))
    after, before = stats.beta(16.7, 6.5), stats.beta(0.7, 2.5)
    wanted, _ = integrate.quad(lambda w: after.pdf(w) * (after.logpdf(w) - before.logpdf(w)), 0.0, 1.0, epsabs=1e-11)
    found = -model.objective("expect_log", prior, None, totals, count)
    assert found - model.family.divergence(prior.components, totals.scaled(count)) == pytest.approx(wanted, rel=1e-8)


@kinds
def test_batch_em_ends_where_the_likelihood_is_stationary(kind):
    learner = learner_of(BatchEM(), kind, reg_covar=0.0)
    state, end = learn(learner.plan, ROWS, key=1, passes=Passes(3000, 1e-15))
    again, _ = learn(learner.plan, ROWS, key=1, passes=Passes(1, 0.0), resume=(state, end.trace[-1]))
    assert_close(again.records["fit_result"], state.records["fit_result"], rtol=1e-4)
    count = state.statistics.count
    np.testing.assert_allclose(np.exp(state.records["fit_result"].log_weights), count, rtol=1e-4)
    moments = state.statistics.first.sum(axis=0) + state.base.prior.components.origin
    np.testing.assert_allclose(moments, X.mean(axis=0), rtol=1e-9)


@kinds
@table(PASSES)
def test_copies_of_a_row_are_a_row_of_their_weight(kind, algorithm):
    learner = replace(learner_of(algorithm, kind), warm_up=None)
    copies = np.random.default_rng(2).integers(1, 4, N)
    start, _ = learn(learner.plan, ROWS, key=1, passes=Passes(3, 0.0))
    batches = Batch(X, copies.astype(float)), Batch(np.repeat(X, copies, axis=0))
    weighted, repeated = (
        learn(learner.plan, batch, key=1, passes=Passes(5, 0.0), resume=(start, -np.inf))[0] for batch in batches
    )
    assert_close(weighted.parameters, repeated.parameters)
    assert weighted.progress.weight_seen == pytest.approx(repeated.progress.weight_seen)


# Merging


CUTS = [(64, 67), (67, 84), (84, 164), (164, 165), (165, 205), (205, 240), (240, 250), (250, 300)]


def workers(algorithm, half_life, batch, branched=False):
    """Return a learner, the state at the end of its warm-up, and eight states that continued from there with their own rows.

    If `branched`, they continued from a state that had learned some rows after its warm-up.
    """
    learner = learner_of(algorithm, half_life=half_life)
    base = stream(learner, batch[:WARM_UP], N)
    if branched:
        base = branch(learner.plan, advance(learner.plan, base, batch[-50:])[0])
    states = [advance(learner.plan, copy.deepcopy(base), batch[start:stop])[0] for start, stop in CUTS]
    return learner, base, states


@pytest.mark.covering("algorithm")
@table(ONLINE)
@half_lives
def test_merging_is_commutative(algorithm, half_life):
    learner, _, states = workers(algorithm, half_life, RICH)
    wanted = merge(learner.plan, states)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(states))
        assert_close(replace(merge(learner.plan, [states[i] for i in order]), key=wanted.key), wanted)


@pytest.mark.covering("algorithm")
@table(ONLINE)
@half_lives
@branches
def test_merging_is_associative(algorithm, half_life, branched):
    learner, _, states = workers(algorithm, half_life, RICH, branched)
    wanted = merge(learner.plan, states)

    def tree(parts, cut):
        if len(parts) == 1:
            return parts[0]
        at = cut(len(parts))
        return merge(learner.plan, [tree(parts[:at], cut), tree(parts[at:], cut)])

    for cut in (lambda n: n // 2, lambda n: 1, lambda n: n - 1, lambda n: min(3, n - 1)):
        assert_close(tree(states, cut), wanted)


@pytest.mark.covering("algorithm")
@table(ONLINE)
@half_lives
@branches
@pytest.mark.parametrize("part", [0, 2])
def test_the_base_is_the_identity_of_merging(algorithm, half_life, branched, part):
    learner, base, states = workers(algorithm, half_life, RICH, branched)
    alone, wanted = merge(learner.plan, [states[part]]), finalize(learner.plan, states[part])
    assert_close(alone.parameters, wanted.parameters)
    assert_close(report(learner.plan, alone), report(learner.plan, wanted))
    for parts in ([states[part], base], [base, states[part], base]):
        merged = merge(learner.plan, parts)
        # The next test checks how far a schedule has come in its own mass.
        assert_close(replace(merged, progress=replace(merged.progress, mass=alone.progress.mass)), alone)
    assert_close(merge(learner.plan, [base]).parameters, base.parameters)


@pytest.mark.covering("algorithm")
@table(ONLINE)
@half_lives
def test_a_branch_believes_what_its_state_does(algorithm, half_life):
    learner = learner_of(algorithm, half_life=half_life)
    state = stream(learner, RICH[:150], 37)
    before = copy.deepcopy(state)
    twig = branch(learner.plan, state)
    assert_identical(state, before)
    assert_identical(twig.parameters, finalize(learner.plan, state).parameters)
    assert_identical(report(learner.plan, twig), report(learner.plan, state))
    assert twig.base.lineage != state.base.lineage
    assert twig.base.lineage == branch(learner.plan, before).base.lineage
    assert twig.base.progress == twig.progress
    wanted, _ = advance(learner.plan, finalize(learner.plan, state), RICH[150:])
    assert_close(advance(learner.plan, twig, RICH[150:])[0].parameters, wanted.parameters)


@pytest.mark.covering("algorithm")
@table(ONLINE)
@half_lives
def test_a_state_merged_with_the_base_learns_on_as_if_it_were_not(algorithm, half_life):
    learner, base, states = workers(algorithm, half_life, RICH)
    wanted, _ = advance(learner.plan, finalize(learner.plan, states[2]), RICH[:70])
    merged, _ = advance(learner.plan, merge(learner.plan, [states[2], base]), RICH[:70])
    assert_close(merged.parameters, wanted.parameters)
    assert_close(report(learner.plan, merged), report(learner.plan, wanted))


@table(ONLINE)
def test_merging_does_not_change_its_parts(algorithm):
    learner, _, states = workers(algorithm, None, RICH)
    before = copy.deepcopy(states)
    merge(learner.plan, states)
    for state, kept in zip(states, before, strict=True):
        assert_identical(state, kept)


@pytest.mark.covering("algorithm")
@table(ONLINE)
@half_lives
def test_a_merged_state_has_seen_the_rows_of_all_its_parts_and_the_base_once(algorithm, half_life):
    learner, base, states = workers(algorithm, half_life, RICH)
    merged = merge(learner.plan, states)
    assert merged.progress.rows_seen == N
    assert merged.progress.weight_seen == pytest.approx(RICH.size)
    assert merged.statistics.count.sum() == pytest.approx(1.0)
    assert merged.base.lineage == base.base.lineage


@pytest.mark.covering("algorithm")
@table(EQUAL)
@pytest.mark.parametrize("batch", [ROWS, RICH], ids=["rows", "weights and labels"])
def test_at_fixed_parameters_learning_apart_and_merging_is_learning_all(algorithm, batch):
    waiting = replace(algorithm, batch_size=10**6)
    learner, base, states = workers(waiting, None, batch)
    assert all(state.parameters is not None and state.unfolded.summary is not None for state in states)
    together, _ = advance(learner.plan, copy.deepcopy(base), batch[WARM_UP:])
    assert_close(merge(learner.plan, states).progress, finalize(learner.plan, together).progress)
    assert_close(merge(learner.plan, states).statistics, finalize(learner.plan, together).statistics)
    assert_close(report(learner.plan, merge(learner.plan, states)), report(learner.plan, together))
