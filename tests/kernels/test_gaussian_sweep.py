"""The row-by-row kernel against the naive loop, and against the loop of the library with batches of one."""

from dataclasses import replace

import numpy as np
import pytest
from naive import gaussian as naive

from headwater.core.algorithms import ALGORITHMS, BayesianOnlineEM, OnlineEM, SatoEM
from headwater.core.batch import Batch
from headwater.core.contracts import StartSettings
from headwater.core.learner import Learner
from headwater.core.loop import advance, finalize
from headwater.core.schedules import ForgettingFactor, Harmonic
from headwater.core.state import WarmUp
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianPrior, GaussianStatistics
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixturePrior

K, D, START, ROWS = 3, 2, 30, 30
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.2, 3.0, ROWS)
LABELS = RNG.choice([-1, -1, 0, 1, 2], ROWS)
CENTRES = np.array([[0.0, 0.0], [2.5, 1.0], [-1.0, 3.0]])
X = RNG.normal(size=(START + ROWS, D)) + CENTRES[RNG.integers(0, K, START + ROWS)]

STEPS = {
    "equal": lambda sizes: naive.equal_steps(sizes, mass=START),
    "decaying": lambda sizes: naive.timed_steps(lambda t: (t + 2.0) ** -0.6, sizes),
    "forgetting": lambda sizes: naive.equal_steps(sizes, half_life=25.0, mass=START),
    "slower than equal": lambda sizes: naive.timed_steps(lambda t: 0.3 / (t + START), sizes),
}
kinds = pytest.mark.parametrize("kind", naive.KINDS)


def a_prior(kind, flat=False):
    if flat:
        return MixturePrior(np.ones(K), Gaussian(K, kind, reg_covar=0.02).flat_prior(X.mean(axis=0)))
    scale = {"full": [[2.0, 0.3], [0.3, 1.0]], "tied": [[2.0, 0.3], [0.3, 1.0]], "diag": [2.0, 1.0]}
    scale = np.array(scale.get(kind, [1.5, 1.5]))
    return MixturePrior(np.array([1.0, 1.5, 2.0]), GaussianPrior(X.mean(axis=0), np.array([0.2, -0.1]), 0.4, 4.5, scale, 0.0))


def start_of(kind, origin):
    """Mean statistics of the first rows at random responsibilities: the twin's, and the library's."""
    resp = np.random.default_rng(1).dirichlet(np.full(K, 0.3), START)
    dense = [part / START for part in naive.totals(kind, X[:START] - origin, resp)]
    return dense, GaussianStatistics(np.array([0.9]), dense[0], dense[1], lower(kind, dense[2]))


def lower(kind, second):
    return np.tril(second) if kind in ("full", "tied") else second


def assert_same_statistics(kind, found, wanted):
    for name, array in zip(("count", "first", "second"), (*wanted[:2], lower(kind, wanted[2])), strict=True):
        np.testing.assert_allclose(getattr(found, name), array, rtol=1e-9, atol=1e-12, err_msg=name)


def check_against_twin(name, kind, prior, rule, weights, labels, average):
    dense, held = start_of(kind, prior.components.origin)
    before = held.copy()
    steps = STEPS[rule](np.ones(ROWS) if weights is None else weights)
    gains = np.random.default_rng(2).uniform(0.01, 1.0, ROWS) if average else np.empty(0)
    batch = Batch(
        X[START:],
        np.empty(0) if weights is None else weights,
        np.empty(0, dtype=np.int64) if labels is None else labels,
    )
    scores = np.empty(ROWS)
    found, moved, n_eff = Mixture(K, Gaussian(K, kind)).sweep(
        name, prior, held, held if average else None, float(START), batch, steps, gains, scores
    )
    wanted, wanted_average, wanted_n_eff, wanted_scores = naive.sweep(
        name, kind, prior.components, prior.concentration, dense, float(START), X[START:], steps,
        gains if average else None, weights, labels,
    )  # fmt: skip
    assert_same_statistics(kind, found, wanted)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-11)
    assert n_eff == pytest.approx(wanted_n_eff, rel=1e-12)
    share, averaged_share = 0.9, 0.9
    for i, step in enumerate(steps):
        share *= 1.0 - step
        averaged_share += (gains[i] if average else 0.0) * (share - averaged_share)
    assert found.from_base == pytest.approx(share, rel=1e-10)
    if average:
        assert_same_statistics(kind, moved, wanted_average)
        assert moved.from_base == pytest.approx(averaged_share, rel=1e-10)
    else:
        assert moved is None
    for field, array in held.to_arrays().items():
        np.testing.assert_array_equal(array, getattr(before, field))


@pytest.mark.covering("kind", "name")
@kinds
@pytest.mark.parametrize("name", naive.READOUTS)
@pytest.mark.parametrize("rule", STEPS)
@pytest.mark.parametrize("rich", [False, True], ids=["plain", "weights, labels and average"])
def test_sweep_equals_the_naive_loop(kind, name, rule, rich):
    extras = (WEIGHTS, LABELS, True) if rich else (None, None, False)
    check_against_twin(name, kind, a_prior(kind), rule, *extras)


@kinds
@pytest.mark.parametrize("extras", [(WEIGHTS, None, False), (None, LABELS, False), (None, None, True)])
def test_sweep_equals_the_naive_loop_with_each_extra_alone(kind, extras):
    check_against_twin("mean", kind, a_prior(kind), "decaying", *extras)


@pytest.mark.covering("kind")
@kinds
@pytest.mark.parametrize("rule", STEPS)
def test_sweep_of_maximum_likelihood_equals_the_naive_loop(kind, rule):
    check_against_twin("mode", kind, a_prior(kind, flat=True), rule, None, None, False)


@kinds
def test_tiny_steps_hardly_move_the_statistics(kind):
    prior = a_prior(kind)
    dense, held = start_of(kind, prior.components.origin)
    found, _, n_eff = Mixture(K, Gaussian(K, kind)).sweep(
        "mode", prior, held, None, float(START), Batch(X[START:]), np.full(ROWS, 1e-13), np.empty(0)
    )
    assert_same_statistics(kind, found, dense)
    assert n_eff == pytest.approx(START)


# The loop of the library with batches of one


ONE_BY_ONE = {
    **{
        word: replace(kind(), batch_size=1)
        for word, kind in ALGORITHMS.items()
        if kind.online and "exact" in kind.ways and not kind().projection
    },
    "boem, mode": BayesianOnlineEM("mode"),
    "online-em, no average": OnlineEM(batch_size=1, average=False),
    "soem, harmonic": SatoEM(rate=Harmonic(2.0, 1.0, 3.0)),
    "soem, forgetting factor": SatoEM(rate=ForgettingFactor(0.7, 50.0)),
}


@pytest.mark.covering("kind", "algorithm")
@kinds
@pytest.mark.parametrize("algorithm", list(ONE_BY_ONE.values()), ids=list(ONE_BY_ONE))
@pytest.mark.parametrize("half_life", [None, 30.0])
def test_sweep_is_the_loop_with_batches_of_one(kind, algorithm, half_life):
    model = Mixture(K, Gaussian(K, kind))
    learner = Learner(model, algorithm, D, StartSettings(), half_life, warm_up=START)
    base, _ = advance(learner.plan, WarmUp(0), Batch(X[:START]))
    batch = Batch(X[START:], WEIGHTS, LABELS)
    scores = np.empty(ROWS)
    state, _ = advance(learner.plan, base, batch, scores)
    statistics, average, progress, parameters, wanted_scores = naive.folds(learner.plan, base, batch)
    pairs = [(state.statistics, statistics), (state.parameters.components, parameters.components)]
    pairs += [(state.records["average"], average)] if average is not None else []
    for found, wanted in pairs:
        for name, array in vars(wanted).items():
            np.testing.assert_allclose(getattr(found, name), array, rtol=1e-8, atol=1e-10, err_msg=name)
    np.testing.assert_allclose(state.parameters.log_weights, parameters.log_weights, rtol=1e-9)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-10)
    for name, value in vars(progress).items():
        assert getattr(state.progress, name) == pytest.approx(value, rel=1e-9), name
    assert finalize(learner.plan, state) is state
