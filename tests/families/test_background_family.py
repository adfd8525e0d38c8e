"""Components with a background, and wide laws, against their slow twins."""

import numpy as np
import pytest
from naive import background as naive

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.families.background import Background
from headwater.families.bernoulli import Bernoulli
from headwater.families.category_tables import CategoryTables
from headwater.families.gaussian import Gaussian
from headwater.families.poisson import Poisson
from headwater.families.product import Block, Product
from headwater.families.wide_law import WIDTH, WideLaw, find_middle, log_counts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) * [1.0, 10.0, 0.1] + 5.0 * RNG.integers(2, size=(60, 1))
X[7] = [300.0, -900.0, 50.0]
GAPS = np.where(RNG.random(X.shape) < 0.3, np.nan, X)
GAPS[4] = np.nan
WEIGHTS = RNG.integers(1, 4, size=60).astype(float)
SHARES = RNG.dirichlet(np.ones(2), size=60)


def known(family, rows, name="mode"):
    batch = Batch(rows, WEIGHTS)
    geometry = family.geometry(batch)
    prior = family.prior(geometry, batch, SHARES)
    return prior, family.readout(name, prior, family.collect_seeds(geometry, batch, SHARES))


@pytest.mark.parametrize("rows", [X, GAPS], ids=["complete", "gaps"])
@pytest.mark.parametrize("kind", ["full", "diag"])
@pytest.mark.parametrize("share", [None, 0.2])
def test_an_estep_shares_rows_with_the_background(rows, kind, share):
    family = Background(Gaussian(2, kind), share)
    given = GappedRows.of(rows) if np.isnan(rows).any() else rows
    _, parameters = known(family, given)
    weights = np.array([0.3, 0.7])
    found, scores = np.empty((60, 2)), np.empty(60)
    score, totals = family.estep(
        parameters, np.log(weights) + parameters.log_rest, Batch(given, WEIGHTS), family.zeros(3), scores, found
    )
    wide = np.array([naive.log_cauchy(x, parameters.law.centre, parameters.law.spread, WIDTH) for x in rows])
    logs = family.log_densities_with_gaps(parameters, given) if rows is GAPS else family.log_densities(parameters, given)
    shares, outside, wanted = naive.estep(logs, wide, weights, np.exp(parameters.log_background))
    np.testing.assert_allclose(found, shares, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(scores, wanted, rtol=1e-9, atol=1e-9)
    assert abs(score - WEIGHTS @ wanted) < 1e-8 * abs(score)
    there = ~np.isnan(rows).all(axis=1)
    np.testing.assert_allclose(totals.background, WEIGHTS[there] @ outside[there], rtol=1e-8)
    np.testing.assert_allclose(totals.count, (WEIGHTS[there, None] * shares[there]).sum(axis=0), rtol=1e-9)
    assert outside[7] > 0.999
    if share is not None:
        assert np.exp(parameters.log_background) == pytest.approx(share)


def test_the_middle_of_rows_is_that_of_copies_and_not_of_gaps():
    law = find_middle(Batch(GAPS, WEIGHTS), GAPS)
    for column, centre, spread in zip(GAPS.T, law.centre, law.spread, strict=True):
        there = ~np.isnan(column)
        low, middle, high = (naive.quantile(column[there], WEIGHTS[there], part) for part in (0.05, 0.5, 0.95))
        assert (centre, spread) == (middle, 0.5 * (high - low))
    copies = np.repeat(GAPS, WEIGHTS.astype(int), axis=0)
    again = find_middle(Batch(copies), copies)
    np.testing.assert_array_equal([law.centre, law.spread], [again.centre, again.spread])


@pytest.mark.parametrize("value", [0.0, 3.7, 1e9])
def test_columns_of_one_value_have_a_spread(value):
    rows = np.full((20, 1), value)
    assert find_middle(Batch(rows), rows).spread[0] > 0.0


def test_laws_of_counts_flags_and_categories_sum_to_one():
    law = WideLaw(np.array([3.0]), np.array([2.0]))
    counts = np.arange(200_000.0)[:, None]
    found = np.exp(log_counts(law, counts))
    np.testing.assert_allclose(np.log(found[:50]), [naive.log_count(x, 3.0 + 2.0 * WIDTH + 1.0) for x in range(50)], rtol=1e-9)
    assert 1.0 - 1e-4 < found.sum() < 1.0
    codes = np.arange(3.0)[:, None]
    assert np.exp(CategoryTables(2, 8, (3,)).log_wide(law, codes)).sum() == pytest.approx(1.0)
    assert np.exp(Bernoulli(2).log_wide(law, codes[:2])).sum() == pytest.approx(1.0)
    drawn = Poisson(2).sample_wide(law, 20_000, np.random.default_rng(1))
    np.testing.assert_allclose((drawn == 0.0).mean(), found[0], atol=0.01)


def test_a_table_has_the_product_of_the_laws_of_its_blocks():
    blocks = (Block("gaussian", Gaussian(2), (0, 2)), Block("bernoulli", Bernoulli(2), (1,)))
    rows = np.column_stack([X[:, 0], X[:, 1] > 0.0, X[:, 2]])
    rows[3, 0] = np.nan
    family = Product(2, 3, blocks)
    law = family.wide_law(Batch(rows))
    wanted = [naive.log_cauchy(x[[0, 2]], law.centre[[0, 2]], law.spread[[0, 2]], WIDTH) - np.log(2.0) for x in rows]
    np.testing.assert_allclose(family.log_wide(law, rows), wanted, rtol=1e-9)


def test_components_that_are_merged_or_given_up_leave_all_rows_counted():
    family = Background(Gaussian(2))
    _, parameters = known(family, X)
    _, totals = family.estep(parameters, np.log([0.5, 0.5]) + parameters.log_rest, Batch(X), family.zeros(3))
    assert totals.count.sum() + totals.background[0] == pytest.approx(60.0)
    for matrix in (np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 0.0]]), np.eye(2)[::-1]):
        after = family.recombine(totals, matrix)
        assert after.count.sum() + after.background[0] == pytest.approx(60.0)
