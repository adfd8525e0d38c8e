"""The row-by-row sweep of K multinomials against its naive twin."""

import numpy as np
import pytest
from multinomial_cases import SHAPES, V, assert_statistics, family_of, groups_of, held_sparse, in_groups, names, prior_of, sizes
from naive import multinomial as naive

from headwater.core.batch import Batch, drop_zeros
from headwater.families.multinomial_records import MultinomialStatistics
from headwater.families.table import Table, average_tables
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixturePrior

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
        moving, other = average_tables(moving, held.table, 0.3), 0.7 * other + 0.3 * table
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
    prior, own = MixturePrior(concentration, family.make_prior(V)), (None, np.empty(0)) if gains is None else (moving, gains)
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


@pytest.mark.covering("name", "grouped")
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
    prior, batch = MixturePrior(np.ones(5), family.make_prior(V)), Batch(drop_zeros(X))
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
    model, prior = Mixture(5, family), MixturePrior(np.full(5, 1.2), family.make_prior(V))
    held, _, _, _ = start_of(5, True, rng)
    for row in (0, 2, 5):
        batch, scores, own = Batch(X[row : row + 1]), np.empty(1), np.empty(1)
        found, _, _ = model.sweep(name, prior, held, None, 30.0, batch, np.array([0.2]), np.empty(0), scores)
        summary = model.summarize(model.readout(name, prior, held, 30.0), batch, scores=own)
        wanted = held.toward(summary.mean, 0.2)
        assert scores[0] == pytest.approx(own[0], rel=1e-12)
        for field, array in wanted.to_arrays().items():
            np.testing.assert_allclose(np.asarray(getattr(found, field)), np.asarray(array), rtol=1e-10, atol=1e-13)
