"""Seeds by exchanges of centres: what they find, what they keep, and their kernels."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import headwater as hw
from headwater.core.batch import Batch
from headwater.kernels.groups import add_groups, part_groups, turn_directions
from headwater.models.exchange import exchange_assignments, exchange_groups
from tests.naive import groups as naive


def clusters(n, n_components, width, apart, seed=0):
    """Return rows about separated centres, and the centre of each."""
    rng = np.random.default_rng(seed)
    centres, kinds = apart * rng.normal(size=(n_components, width)), rng.integers(n_components, size=n)
    return centres[kinds] + rng.normal(size=(n, width)), kinds


def groups_of(rows, n_components, seed=0, weights=None, labels=None, centres=None, n_threads=1):
    weights = np.ones(len(rows)) if weights is None else weights
    labels = np.full(len(rows), -1) if labels is None else labels
    centres = np.full((n_components, rows.shape[1]), np.nan) if centres is None else centres
    return exchange_groups(rows, weights, centres, labels, np.random.default_rng(seed), n_threads)


def squares(rows, groups, centres):
    return float(np.square(rows - centres[groups]).sum())


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, 5)).astype(np.float32)
    return rows, rng.random(60), rng.integers(4, size=60), rng.normal(size=(4, 5)), rng.normal(size=(4, 5))


def test_sums_of_groups_are_those_of_a_loop(made):
    rows, weights, groups, _, _ = made
    sums = np.zeros((4, 5))
    add_groups(rows, weights, groups, sums)
    np.testing.assert_allclose(sums, naive.sums_of_groups(rows, weights, groups, 4), rtol=1e-12)


def test_a_turn_multiplies_by_the_scatter_of_the_group(made):
    rows, weights, groups, centres, directions = made
    turned = np.zeros((4, 5))
    turn_directions(rows, weights, groups, centres, directions, turned)
    np.testing.assert_allclose(turned, naive.turned_directions(rows, weights, groups, centres, directions), rtol=1e-10)


def test_rows_are_parted_by_the_side_of_the_centre_on_which_they_lie(made):
    rows, _, groups, centres, directions = made
    sides = np.empty_like(groups)
    part_groups(rows, groups, centres, directions, sides)
    np.testing.assert_array_equal(sides, naive.sides_of_groups(rows, groups, centres, directions))


def test_exchanges_find_groups_that_steps_of_lloyd_do_not():
    rows, kinds = clusters(2000, 40, 30, 1.0)
    groups, centres = groups_of(rows, 40)
    chosen = np.random.default_rng(0).choice(len(rows), 40, replace=False)
    plain = naive.lloyd(rows, rows[chosen], 25)
    assert adjusted_rand_score(kinds, groups) > 0.95 > adjusted_rand_score(kinds, plain[0])
    assert squares(rows, groups, centres) < squares(rows, *plain)


def test_groups_do_not_depend_on_threads():
    rows, _ = clusters(1500, 20, 10, 1.0)
    np.testing.assert_array_equal(groups_of(rows, 20)[0], groups_of(rows, 20, n_threads=2)[0])


def test_a_row_that_weighs_two_counts_as_two_rows():
    rows = clusters(400, 8, 6, 4.0)[0].astype(np.float32).astype(float)  # in the form that exchanges expect
    twice = np.where(np.arange(400) < 200, 2.0, 1.0)
    groups, centres = groups_of(rows, 8, weights=twice)
    for k in range(8):
        np.testing.assert_allclose(centres[k], np.average(rows[groups == k], axis=0, weights=twice[groups == k]), rtol=1e-9)


def test_labelled_rows_stay_and_their_components_are_where_they_are():
    rows, kinds = clusters(600, 6, 5, 5.0)
    labels = np.where(np.arange(600) < 60, kinds, -1)
    batch = Batch(rows, labels=labels)
    found = exchange_assignments(rows, batch, 6, np.random.default_rng(0)).argmax(axis=1)
    np.testing.assert_array_equal(found[:60], kinds[:60])
    assert np.mean(found == kinds) > 0.99


def test_rows_that_are_all_alike_make_groups_nevertheless():
    groups, centres = groups_of(np.ones((50, 3)), 4)
    assert set(groups) <= set(range(4))
    assert np.isfinite(centres).all()


def test_a_short_start_finds_many_components_of_many_columns():
    rows, kinds = clusters(2600, 60, 90, 0.8)
    model = hw.GaussianMixture(60, covariance_type="spherical", random_state=0, n_threads=1).partial_fit(rows)
    assert adjusted_rand_score(kinds, model.predict(rows)) > 0.95


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_a_short_start_does_not_depend_on_chunks_and_threads(kind):
    rows, _ = clusters(400, 12 if kind == "full" else 60, 40 if kind == "full" else 45, 1.0)
    k = 12 if kind == "full" else 60
    options = {"covariance_type": kind, "random_state": 0, "warm_up": 300}
    whole = hw.GaussianMixture(k, n_threads=1, **options).partial_fit(rows)
    parts = hw.GaussianMixture(k, n_threads=2, **options)
    for part in np.split(rows, [17, 170, 305]):
        parts.partial_fit(part)
    np.testing.assert_allclose(parts.means_, whole.means_, rtol=1e-8, atol=1e-10)
