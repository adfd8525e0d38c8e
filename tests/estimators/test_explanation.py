"""explain: which column makes a row odd, compared with conditioning one entry at a time on the others."""

import json

import numpy as np
import pandas as pd
import pytest
from naive import conditional as twin

import headwater as hw


def rows_of(n, seed=0, width=5):
    rng = np.random.default_rng(seed)
    roots = np.random.default_rng(1).normal(size=(2, width, width))
    source = rng.integers(2, size=n)
    return 4.0 * source[:, None] + np.einsum("nij,nj->ni", roots[source], rng.normal(size=(n, width)))


@pytest.fixture(scope="module")
def model():
    return hw.GaussianMixture(2, random_state=0).fit(rows_of(2000))


@pytest.mark.parametrize("predictive", [False, True])
def test_every_entry_is_judged_as_by_conditioning_on_the_others(model, predictive):
    rng = np.random.default_rng(2)
    X = rows_of(12, seed=3) + 3.0 * (rng.random((12, 5)) < 0.2)
    gaps = rng.random(X.shape) < 0.25
    gaps[0] = False
    reasons = model.explain(np.where(gaps, np.nan, X), level=0.8, predictive=predictive)
    if predictive:
        belief = model._component_belief()
        dofs = belief.dof - 4.0
        means, scales = (
            belief.means,
            belief.scale * ((belief.mean_precision + 1.0) / (belief.mean_precision * dofs))[:, None, None],
        )
        concentration = model.weight_concentration_
        weights = concentration / concentration.sum()
    else:
        weights, means, scales, dofs = model.weights_, model.means_, model.covariances_, None
    for i, j in zip(*np.nonzero(~gaps), strict=True):
        tail, surprise, mean, cdf = twin.explain_entry(weights, means, scales, X[i], gaps[i], j, dofs)
        np.testing.assert_allclose(reasons.tail[i, j], tail, rtol=1e-6)
        np.testing.assert_allclose(reasons.surprise[i, j], surprise, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(reasons.expected[i, j], mean, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose([cdf(reasons.low[i, j]), cdf(reasons.high[i, j])], [0.1, 0.9], rtol=1e-7)
    law = model.condition(np.where(gaps, np.nan, X), predictive=predictive)
    np.testing.assert_array_equal(np.isnan(reasons.tail), gaps)
    np.testing.assert_allclose(reasons.expected[gaps], law.mean[gaps])
    np.testing.assert_allclose(reasons.low[gaps], law.interval(0.8)[0][gaps])


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_the_surprises_add_up_to_the_joint_density_by_the_chain_rule(kind):
    """-log p(x_j | rest) = log p(rest) - log p(x), with the rest scored as a row with a gap."""
    learned = hw.GaussianMixture(3, covariance_type=kind, random_state=0).fit(rows_of(900))
    X = rows_of(20, seed=4)
    surprise = learned.explain(X).surprise
    for j in range(5):
        gappy = X.copy()
        gappy[:, j] = np.nan
        np.testing.assert_allclose(surprise[:, j], learned.condition(gappy).log_marginal - learned.score_samples(X), rtol=1e-7)


def test_tails_are_uniform_where_the_model_is_true():
    rows = np.random.default_rng(0).normal(size=(6000, 3)) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.3, 0.2], [0.0, 0.0, 1.0]])
    reasons = hw.GaussianMixture(1).fit(rows[:3000]).explain(rows[3000:])
    for rate in (0.01, 0.1, 0.5):
        np.testing.assert_allclose((reasons.tail < rate).mean(axis=0), rate, atol=4.5 * np.sqrt(rate / 3000))


def test_the_column_that_is_wrong_comes_first(model):
    X = rows_of(300, seed=5)
    reasons = model.explain(X)
    wrong = np.random.default_rng(6).integers(5, size=300)
    X[np.arange(300), wrong] = reasons.expected[np.arange(300), wrong] + 4.0 * (
        reasons.high[np.arange(300), wrong] - reasons.low[np.arange(300), wrong]
    )
    table = model.explain(X).top(1)
    assert np.mean(table["column"] == np.array([f"x{j}" for j in wrong])) > 0.8


def test_a_pair_that_moves_together_is_found_where_neither_column_is_odd():
    rng = np.random.default_rng(0)
    common, third = rng.normal(size=4000), rng.normal(size=4000)
    rows = np.column_stack([common, common + 0.05 * rng.normal(size=4000), third, rng.normal(size=4000)])
    learned = hw.GaussianMixture(1).fit(pd.DataFrame(rows, columns=["inlet", "outlet", "load", "noise"]))
    odd = pd.DataFrame([[7.0, 7.0, 0.0, 0.0], [0.1, 0.1, 0.0, 0.0]], columns=["inlet", "outlet", "load", "noise"])
    reasons = learned.explain(odd)
    assert reasons.tail.min() > 0.05
    pairs = reasons.pairs(2)
    assert pairs["row"].tolist() == [0] and pairs["first"][0] == "inlet" and pairs["second"][0] == "outlet"
    assert pairs["tail"][0] < 1e-9 and pairs["tail_first"][0] > 0.05
    odd.loc[0, "load"] = np.nan
    assert learned.explain(odd).pairs()["row"].tolist() == [0]
    odd.loc[0, "inlet"] = np.nan
    assert len(learned.explain(odd).pairs()) == 0


def test_pairs_of_independent_columns_agree_with_those_of_a_full_covariance():
    rows = np.random.default_rng(0).normal(size=(4000, 3))
    odd = np.array([[2.4, 2.4, 0.0]])
    found = [hw.GaussianMixture(1, covariance_type=kind).fit(rows).explain(odd).pairs(1) for kind in ("full", "diag")]
    assert [one["first"].tolist() + one["second"].tolist() for one in found] == [["x0", "x1"]] * 2
    np.testing.assert_allclose(np.log(found[0]["tail"]), np.log(found[1]["tail"]), atol=1.0)


def test_far_rows_are_ranked_beyond_the_least_number(model):
    X = np.tile(rows_of(1, seed=7), (2, 1))
    X[0, 2] += 1e4
    X[1, 2] += 1e5
    reasons = model.explain(X)
    assert (reasons.tail[:, 2] == 0.0).all() and np.isfinite(reasons.surprise).all()
    assert np.isfinite(reasons._log_tail).all() and reasons._log_tail[1].min() < reasons._log_tail[0].min()
    assert json.dumps(reasons.to_dict())


def test_tables_and_notebooks(model):
    X = rows_of(30, seed=8)
    X[3] = np.nan
    X[4, 1:] = np.nan
    reasons = model.explain(X)
    table = reasons.top(2)
    assert len(table) == 28 * 2 + 1 and table.keys()[:2] == ["row", "column"]
    assert (np.bincount(table["row"], minlength=30)[[3, 4, 5]] == [0, 1, 2]).all()
    first = table["tail"][table["row"] == 0]
    assert first[0] == reasons.tail[0].min() and first[0] <= first[1]
    assert list(pd.DataFrame(table.to_dict()).columns) == table.keys()
    assert "and 37 more" in str(table) and "<table>" in table._repr_html_()
    assert "30 rows of 5 columns" in repr(reasons) and "<table>" in reasons._repr_html_()
    assert len(reasons) == 30 and reasons.columns == ("x0", "x1", "x2", "x3", "x4")
    whole = reasons.to_dict()
    assert whole["tail"][3] == [None] * 5 and whole["level"] == 0.9
    assert len(model.explain(X).top(99)) == 28 * 5 + 1
    for call, words in (
        (lambda: reasons.top(0), "k must be a whole number of at least 1, got 0"),
        (lambda: reasons.pairs(1.5), "k must be a whole number of at least 1, got 1.5"),
        (lambda: reasons.pairs(1, alone=2.0), "level must lie between 0 and 1, got 2.0"),
        (lambda: model.explain(X, level=0.0), "level must lie between 0 and 1, got 0.0"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_one_column_has_no_others_to_be_judged_by():
    rows = np.random.default_rng(0).normal(size=(500, 1))
    reasons = hw.GaussianMixture(1).fit(rows).explain([[0.0], [8.0], [np.nan]])
    assert reasons.tail[0] > 0.9 and reasons.tail[1] < 1e-9 and np.isnan(reasons.tail[2])
    assert len(reasons.pairs()) == 0
