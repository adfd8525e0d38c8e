"""Schedules against scalar loops, their independence of the cut into chunks, and Proposition 1 of paper 000."""

from dataclasses import dataclass

import numpy as np
import pytest
from naive import gaussian as naive

import headwater as hw
from headwater.core.schedules import Decay, Equal, ForgettingFactor, Harmonic, linear_recurrence, with_half_life
from headwater.core.state import Progress
from headwater.core.statistics import Array, Statistics

WEIGHTED = np.random.default_rng(0).uniform(0.2, 3.0, 100)


def forgetting_steps(kappa, t0):
    """Return the steps of the explicit sums of paper 000, eq. 5."""

    def steps(sizes, batch_size):
        times = np.arange(1, len(sizes) + 1)
        zeta = 1 - 1 / np.maximum((times - 2) * kappa + t0, 1.0)
        return naive.forgetting_sum(zeta, np.zeros(len(sizes)))[1]

    return steps


TIMED = {
    "decay": (Decay(), lambda t: (t + 2.0) ** -0.6),
    "decay, Sato's": (Decay(0.9, 10.0, 2.0), lambda t: 2.0 * (t + 10.0) ** -0.9),
    "decay, too large at first": (Decay(0.6, 0.0, 3.0), lambda t: 3.0 * t**-0.6),
    "window": (Decay.window(50.0, 0.7), lambda t: (1.0 + t / 50.0) ** -0.7 / 50.0),
    "harmonic": (Harmonic(2.0, 0.5, 7.0), lambda t: 2.0 / (0.5 * t + 7.0)),
    "harmonic, 1/t": (Harmonic(), lambda t: 1.0 / t),
}
TWINS = {
    "equal": (Equal(), lambda sizes, batch_size: naive.equal_steps(sizes)),
    "equal, half-life 30": (Equal(30.0), lambda sizes, batch_size: naive.equal_steps(sizes, 30.0)),
    "equal, forgets at once": (Equal(1e-3), lambda sizes, batch_size: naive.equal_steps(sizes, 1e-3)),
    **{
        name: (schedule, lambda sizes, batch_size, rate=rate: naive.timed_steps(rate, sizes, batch_size))
        for name, (schedule, rate) in TIMED.items()
    },
}
FORGETTING = {
    "forgetting factor": (ForgettingFactor(0.7, 5.0), forgetting_steps(0.7, 5.0)),
    "forgetting factor, defaults": (ForgettingFactor(), forgetting_steps(0.7, 5000.0)),
    "forgetting factor, t0 = 1": (ForgettingFactor(0.5, 1.0), forgetting_steps(0.5, 1.0)),
}


def table(rows):
    return pytest.mark.parametrize(("schedule", "twin"), list(rows.values()), ids=list(rows))


def warm(batch_size):
    """Return the progress at the end of a warm-up of 20 rows."""
    return Progress(rows_seen=20, weight_seen=20.0, folds=20.0 / batch_size, mass=20.0, n_eff=20.0)


def carried(schedule, progress, sizes, batch_size, cuts):
    """Return the steps of a run of folds that is cut into pieces, and the progress at its end."""
    steps = []
    for piece in np.split(sizes, cuts):
        found = schedule(progress, piece, batch_size)
        for size, step in zip(piece, found, strict=True):
            progress = progress.after(1, float(size), float(step), size / batch_size)
        steps.append(found)
    return np.concatenate(steps), progress


@table(TWINS)
@pytest.mark.parametrize("batch_size", [1.0, 16.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_equal_the_scalar_loop(schedule, twin, batch_size, weighted):
    sizes = WEIGHTED * batch_size if weighted else np.full(100, batch_size)
    np.testing.assert_allclose(schedule(Progress(), sizes, batch_size), twin(sizes, batch_size), rtol=1e-12)


@table(FORGETTING)
def test_forgetting_factor_steps_normalise_the_explicit_sums(schedule, twin):
    sizes = np.full(60, 16.0)
    np.testing.assert_allclose(schedule(Progress(), sizes, 16.0), twin(sizes, 16.0), rtol=1e-12)


@table({**TWINS, **FORGETTING})
@pytest.mark.parametrize("half_life", [None, 40.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cuts", [range(1, 100), [1, 38, 75]], ids=["one by one", "in pieces"])
def test_the_cut_into_chunks_does_not_change_the_steps(schedule, twin, half_life, weighted, cuts):
    schedule = with_half_life(schedule, half_life)
    sizes = WEIGHTED if weighted else np.ones(100)
    wanted = schedule(warm(1.0), sizes, 1.0)
    found, _ = carried(schedule, warm(1.0), sizes, 1.0, list(cuts))
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


@table({**TWINS, **FORGETTING})
@pytest.mark.parametrize("half_life", [None, 40.0])
def test_steps_are_positive_and_at_most_one(schedule, twin, half_life):
    for progress in (Progress(), warm(16.0)):
        steps = with_half_life(schedule, half_life)(progress, 16.0 * WEIGHTED, 16.0)
        assert ((steps > 0.0) & (steps <= 1.0)).all()


@table({name: TWINS[name] for name in TIMED})
def test_a_half_life_is_the_least_that_is_forgotten(schedule, twin):
    steps = with_half_life(schedule, 10.0)(warm(1.0), WEIGHTED, 1.0)
    assert (steps >= 1.0 - 0.5 ** (WEIGHTED / 10.0) - 1e-15).all()
    assert (steps >= schedule(warm(1.0), WEIGHTED, 1.0) - 1e-15).all()


def test_a_row_of_the_equal_schedule_fades_by_half_in_a_half_life():
    steps = Equal(25.0)(warm(1.0), np.ones(60), 1.0)
    shares = steps * np.append(np.cumprod((1.0 - steps)[::-1])[::-1][1:], 1.0)
    np.testing.assert_allclose(shares[:-25] / shares[25:], 0.5, rtol=1e-10)


@pytest.mark.parametrize("parts", [[0.5, 0.5], [0.1, 0.2, 0.7], [2.0], [1.0, 3.0, 0.25]])
def test_parts_of_a_batch_compose_to_their_share_of_steps(parts):
    g, batch_size = 0.1, 16.0
    steps = Harmonic(g, 0.0, 1.0)(Progress(), batch_size * np.array(parts), batch_size)
    np.testing.assert_allclose(steps, 1.0 - (1.0 - g) ** np.array(parts), rtol=1e-12)
    assert np.prod(1.0 - steps) == pytest.approx((1.0 - g) ** sum(parts), rel=1e-12)


@dataclass(frozen=True)
class Value(Statistics):
    value: Array


@pytest.mark.parametrize(("kappa", "t0"), [(0.7, 5.0), (0.7, 5000.0), (0.01, 1.5), (3.0, 2.0)])
def test_proposition_1_the_recursion_equals_the_forgetting_factor_form(kappa, t0):
    values = np.random.default_rng(1).normal(size=(50, 2))
    zeta = 1 - 1 / ((np.arange(1, 51) - 2) * kappa + t0)
    wanted, eta = naive.forgetting_sum(zeta, values)
    held, progress, found = Value(np.ones(1), np.full(2, np.pi)), Progress(n_eff=1.0), []
    for value in values:
        step = float(ForgettingFactor(kappa, t0)(progress, np.ones(1), 1.0)[0])
        held = held.toward(Value(np.zeros(1), value), step)
        progress = progress.after(1, 1.0, step, 1.0)
        found.append(held.value)
        assert step == pytest.approx(eta[len(found) - 1], rel=1e-12)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("sizes", [np.ones(100), WEIGHTED], ids=["rows", "weights"])
def test_under_equal_steps_the_effective_count_is_the_weight_seen(sizes):
    _, progress = carried(Equal(), warm(1.0), sizes, 1.0, [30])
    assert progress.n_eff == pytest.approx(20.0 + sizes.sum(), rel=1e-13)
    assert progress.mass == pytest.approx(20.0 + sizes.sum(), rel=1e-13)
    assert progress.weight_seen == pytest.approx(20.0 + sizes.sum(), rel=1e-13)
    assert progress.rows_seen == 120


def test_the_effective_count_is_that_of_the_weighted_mean():
    # A mean with shares s_i of n_i rows each has the variance of one with 1 / sum(s_i^2 / n_i) rows.
    steps = Decay()(warm(1.0), np.ones(40), 1.0)
    _, progress = carried(Decay(), warm(1.0), np.ones(40), 1.0, [7])
    left = np.append(np.cumprod((1.0 - steps)[::-1])[::-1], 1.0)
    shares = np.append(left[0], steps * left[1:])
    assert progress.n_eff == pytest.approx(1.0 / np.sum(shares**2 / np.append(20.0, np.ones(40))), rel=1e-12)


def test_linear_recurrence_equals_the_loop_even_where_products_underflow():
    rng = np.random.default_rng(2)
    factors, terms = rng.uniform(0.0, 1.0, 200) ** rng.integers(1, 400, 200), rng.normal(size=200)
    factors[50] = 0.0
    value, wanted = 3.0, []
    for factor, term in zip(factors, terms, strict=True):
        value = factor * value + term
        wanted.append(value)
    np.testing.assert_allclose(linear_recurrence(3.0, factors, terms), wanted, rtol=1e-12)


@pytest.mark.parametrize("kind", [hw.BayesianOnlineEM, hw.OnlineVB, hw.QuasiBayes])
def test_with_refine_counts_that_add_are_as_good_as_batch_em(kind):
    """On short soft documents row-by-row steps of 1/n keep what early rows were counted as; with a reservoir they do not."""
    rng = np.random.default_rng(0)
    topics = np.array([[0.4, 0.3, 0.1, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.1, 0.3, 0.4]])
    rows = rng.multinomial(6, topics[rng.integers(2, size=30_000)])
    start = {"probabilities_init": 0.9 / 6 + 0.1 * topics, "weights_init": [0.5, 0.5], "warm_up": 200, "random_state": 0}
    best = hw.MultinomialMixture(2, algorithm="em", tol=1e-8, max_iter=2000, **start).fit(rows).score(rows)
    short = [
        best - hw.MultinomialMixture(2, algorithm=kind(refine=refine), **start).partial_fit(rows).score(rows)
        for refine in (False, True)
    ]
    assert short[1] < 0.5 * short[0] and short[1] < 1e-4


def test_refine_is_checked():
    with pytest.raises(ValueError, match="refine must be True or False, got 1"):
        hw.QuasiBayes(refine=1)
    with pytest.raises(ValueError, match=r"refine needs steps of equal weight, so decay must be None with it, got 0\.7"):
        hw.OnlineVB(decay=0.7, refine=True)


def test_refine_without_effect_is_refused_and_the_model_stays_as_it_was():
    rows = np.random.default_rng(0).normal(size=(80, 2))
    refined = hw.OnlineVB(refine=True)
    for model, X in (
        (hw.GaussianHMM(2, algorithm=refined), rows),
        (hw.LatentDirichletAllocation(2, algorithm=refined), abs(rows)),
    ):
        with pytest.raises(ValueError, match="refine=True restates the counts of mixtures by reservoir rows"):
            model.partial_fit(X)
        assert not hasattr(model, "n_features_in_")
