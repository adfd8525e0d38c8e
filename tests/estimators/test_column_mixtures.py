"""Mixtures of counts, of flags, of categories, and of tables with all of these."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import headwater as hw

WORDS = np.array([["red", "round", "sweet"], ["green", "long", "sour"], ["blue", "flat", "bitter"]], dtype=object)


def fruit(n, seed=0, kinds=2):
    rng = np.random.default_rng(seed)
    drawn = rng.integers(2, size=(n, 1))
    return WORDS[np.where(rng.random((n, 3)) < 0.1, rng.integers(kinds, size=(n, 3)), drawn), np.arange(3)]


def people(n, seed=0):
    """Return a raw table of two kinds of people."""
    rng = np.random.default_rng(seed)
    young = rng.random(n) < 0.4
    return pd.DataFrame({
        "id": np.arange(n),
        "age": np.where(young, rng.normal(25, 4, n), rng.normal(60, 6, n)),
        "pays": np.where(rng.random(n) < np.where(young, 0.9, 0.2), "card", "cash"),
        "owner": rng.random(n) < np.where(young, 0.1, 0.7),
        "visits": rng.poisson(np.where(young, 8, 2)),
        "note": [f"note {number}" for number in range(n)],
    }), young  # fmt: skip


@parametrize_with_checks([hw.PoissonMixture(), hw.BernoulliMixture(binarize=0.0), hw.CategoricalMixture(), hw.MixedMixture()])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def test_rates_are_events_a_unit_of_exposure():
    rng = np.random.default_rng(0)
    kinds, days = rng.integers(2, size=4000), rng.uniform(1, 30, size=4000)
    rates = np.array([[0.2, 3.0], [2.0, 0.5]])
    table = pd.DataFrame(rng.poisson(rates[kinds] * days[:, None]), columns=["calls", "mails"])
    table.insert(1, "days", days)
    model = hw.PoissonMixture(2, exposure="days", random_state=0).partial_fit(table)
    np.testing.assert_allclose(model.rates_[np.argsort(model.rates_[:, 0])], rates, rtol=0.05)
    assert model.credible_intervals().columns == ("calls", "mails")
    by_place = hw.PoissonMixture(2, exposure=1, random_state=0).partial_fit(table.to_numpy())
    np.testing.assert_array_equal(by_place.rates_, model.rates_)


def test_intervals_hold_the_truth():
    rng = np.random.default_rng(1)
    held = []
    for _ in range(40):
        rows = rng.poisson([[2.0, 5.0]], size=(200, 2))
        found = hw.PoissonMixture(1, random_state=0).fit(rows).credible_intervals(0.9).values[0]
        held += [low <= rate <= high for rate, (low, high) in zip((2.0, 5.0), found, strict=True)]
    assert 0.8 < np.mean(held) < 0.98


@pytest.mark.parametrize("make", [
    lambda rows: rows, lambda rows: rows.tolist(), lambda rows: pd.DataFrame(rows),
    lambda rows: pl.DataFrame(rows.tolist(), orient="row"),
    lambda rows: pa.table({f"c{at}": list(column) for at, column in enumerate(rows.T)}),
    lambda rows: pd.DataFrame(rows).astype("category"),
])  # fmt: skip
def test_categories_come_in_any_container(make):
    rows = fruit(300)
    model = hw.CategoricalMixture(2, random_state=0).partial_fit(make(rows))
    plain = hw.CategoricalMixture(2, random_state=0).partial_fit(rows)
    for one, two in zip(model.probabilities_, plain.probabilities_, strict=True):
        np.testing.assert_array_equal(one, two)
    assert [one.tolist() for one in model.categories_] == [one.tolist() for one in plain.categories_]


def test_new_categories_take_a_cell_and_chunks_change_nothing():
    rows = np.vstack([fruit(400), fruit(400, 1, kinds=3)])
    whole = hw.CategoricalMixture(2, warm_up=200, random_state=0).partial_fit(rows)
    parts = hw.CategoricalMixture(2, warm_up=200, random_state=0)
    for start in range(0, 800, 70):
        parts.partial_fit(rows[start : start + 70])
    assert [len(one) for one in whole.categories_] == [3, 3, 3]
    np.testing.assert_allclose(whole.score_samples(rows), parts.score_samples(rows), rtol=1e-9)
    ones = hw.CategoricalMixture(2, warm_up=200, random_state=0).partial_fit(rows[:780])
    for row in rows[780:]:
        ones.learn_one(row.tolist())
    np.testing.assert_allclose(whole.score_samples(rows), ones.score_samples(rows), rtol=1e-9)
    fitted = hw.CategoricalMixture(2, random_state=0).fit(rows)
    assert np.isclose(fitted.score_one(rows[0].tolist()), fitted.score_samples(rows[:1])[0])


def test_models_with_other_categories_merge():
    first, second = fruit(500), fruit(500, 2, kinds=3)[::-1]
    a = hw.CategoricalMixture(2, random_state=0).partial_fit(first)
    b = hw.CategoricalMixture(2, random_state=1).partial_fit(second)
    merged, other = hw.merge([a, b]), hw.merge([b, a])
    rows = np.vstack([first, second])
    np.testing.assert_allclose(merged.score_samples(rows), other.score_samples(rows), rtol=1e-9)
    assert merged.n_samples_seen_ == 1000 and sorted(merged.categories_[0]) == ["blue", "green", "red"]
    shares = merged.weights_ @ merged.probabilities_[0]
    expected = [np.mean(rows[:, 0] == name) for name in merged.categories_[0]]
    np.testing.assert_allclose(shares, expected, atol=0.02)
    base = hw.CategoricalMixture(2, random_state=0).warm_start_from(first)
    branches = [base.branch().partial_fit(part) for part in (second[:250], fruit(250, 3))]
    merged = hw.merge(branches)
    np.testing.assert_allclose(merged.weights_ @ merged.probabilities_[0], [
        np.mean(np.concatenate([first[:, 0], second[:250, 0], fruit(250, 3)[:, 0]]) == name) for name in merged.categories_[0]
    ], atol=0.02)  # fmt: skip


def test_a_table_as_it_comes(tmp_path):
    table, young = people(3000)
    model = hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0)
    with pytest.warns(UserWarning, match="left out") as said:
        model.partial_fit(table[:1500])
    assert {str(one.message).split("'")[1] for one in said} == {"id", "note"}
    model.partial_fit(table[1500:])
    assert model.columns_ == {
        "id": "ignore", "age": "gaussian", "pays": "categorical", "owner": "bernoulli", "visits": "poisson", "note": "ignore",
    }  # fmt: skip
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.means_[order, 0], [25, 60], rtol=0.03)
    np.testing.assert_allclose(model.rates_["visits"][order], [8, 2], rtol=0.06)
    np.testing.assert_allclose(model.probabilities_["owner"][order], [0.1, 0.7], atol=0.04)
    card = list(model.categories_["pays"]).index("card")
    np.testing.assert_allclose(model.probabilities_["pays"][order, card], [0.9, 0.2], atol=0.04)
    assert np.mean((model.predict(table) == order[0]) == young) > 0.99
    model.save(tmp_path / "people.hw")
    again = hw.load(tmp_path / "people.hw")
    np.testing.assert_array_equal(again.score_samples(table), model.score_samples(table))
    more, _ = people(500, 7)
    np.testing.assert_array_equal(again.partial_fit(more).score_samples(table), model.partial_fit(more).score_samples(table))
    text = str(model.describe())
    assert "age" in text and "pays=card" in text and "note" not in text


def test_a_product_is_the_sum_of_its_blocks():
    """Bayes by enumeration: the posterior of a row follows from the product of the densities of its columns."""
    table, _ = people(1000)
    table = table[["pays", "owner", "visits"]]
    model = hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0).fit(table)
    row, names = table.iloc[:1], list(model.categories_["pays"])
    joint = model.weights_.copy()
    for k in range(2):
        share = model.probabilities_["owner"][k]
        rate, count = model.rates_["visits"][k], row["visits"].iloc[0]
        joint[k] *= model.probabilities_["pays"][k, names.index(row["pays"].iloc[0])]
        joint[k] *= share if row["owner"].iloc[0] else 1 - share
        joint[k] *= np.exp(-rate) * rate**count / np.prod(np.arange(1.0, count + 1))
    np.testing.assert_allclose(model.predict_proba(row)[0], joint / joint.sum(), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(row)[0], np.log(joint.sum()), rtol=1e-9)


@pytest.mark.parametrize(("make", "learned", "wrong", "words"), [
    (hw.CategoricalMixture(2), fruit(50), np.full((3, 3), 1.5), "held text before, and holds numbers now"),
    (hw.CategoricalMixture(2), fruit(50), np.array([["a", 1, "b"]], dtype=object), "mixes|held text before"),
    (hw.CategoricalMixture(2, max_categories=3), fruit(50), np.array([["x", "y", "z"], ["v", "w", "u"]]), "more than 3"),
    (hw.PoissonMixture(2), np.ones((50, 2)), -np.ones((3, 2)), "Negative values"),
    (hw.BernoulliMixture(2), np.ones((50, 2)), np.full((3, 2), 2.0), "0 and 1 only"),
    (hw.MixedMixture(2), people(60)[0], people(60)[0][["age", "pays"]], "the columns must be those"),
])  # fmt: skip
def test_bad_rows_get_one_sentence_and_change_nothing(make, learned, wrong, words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = make.partial_fit(learned)
        before = make.score_samples(learned)
        with pytest.raises(ValueError, match=words) as error:
            make.partial_fit(wrong)
        assert "\n" not in str(error.value)
        np.testing.assert_array_equal(make.score_samples(learned), before)


@pytest.mark.parametrize(("options", "words"), [
    ({"columns": {"age": "normal"}}, "must be one of gaussian"), ({"columns": {"agee": "gaussian"}}, "the data does not have"),
    ({"columns": "all"}, "columns"), ({"max_categories": 1}, "max_categories"), ({"prior_weight": 0.0}, "prior_weight"),
])  # fmt: skip
def test_bad_settings_get_one_sentence(options, words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=words):
            hw.MixedMixture(2, **options).fit(people(60)[0])


@pytest.mark.parametrize("size", [1e15, 1e25])
def test_counts_may_be_larger_than_whole_numbers_are(size):
    """The generator of counts knows none beyond 2^63; divergences of components are found by drawing."""
    rows = size * np.random.default_rng(0).poisson(4.0, size=(200, 2))
    model = hw.PoissonMixture(2, warm_up=60, random_state=0).partial_fit(rows).partial_fit(rows)
    drawn, components = model.sample(200)
    np.testing.assert_allclose(drawn, model.rates_[components], rtol=1e-6)
    table = hw.MixedMixture(2, columns={1: "poisson"}, warm_up=60, random_state=0).partial_fit(rows).partial_fit(rows)
    assert "600" not in str(table.health_) and np.isfinite(table.sample(3)[0].astype(float)).all()


def test_words_of_algorithms_that_go_row_by_row_mean_batches_where_no_kernel_does():
    rows = np.random.default_rng(0).poisson(3.0, size=(30, 2)).astype(float)
    for word in ("soem", "boem", "online-vb", "quasi-bayes"):
        assert not hw.PoissonMixture(2, algorithm=word)._make_learner(2).plan.sweeps
        assert hw.GaussianMixture(2, algorithm=word)._make_learner(2).plan.sweeps
        assert not hw.GaussianMixture(2, algorithm=word, resolution="auto")._make_learner(2).plan.sweeps
    asked = hw.PoissonMixture(2, algorithm=hw.BayesianOnlineEM(batch_size=1), warm_up=10, random_state=0)
    assert asked._make_learner(2).plan.sweeps  # as it was asked for
    assert asked.partial_fit(rows).n_samples_seen_ == 30
