"""Mixtures of counts, flags, categories and tables: condition, impute, explain, and predict a column."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.utils import estimator_checks

import headwater as hw
from headwater.checks import EXPECTED_FAILURES

pytestmark = pytest.mark.filterwarnings("ignore:column .* is left out:UserWarning")


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    young = rng.random(n) < 0.4
    return pd.DataFrame({
        "name": [f"n{number}" for number in range(n)],
        "age": np.where(young, rng.normal(25, 4, n), rng.normal(60, 6, n)),
        "height": rng.normal(170, 9, n),
        "pays": np.where(rng.random(n) < np.where(young, 0.9, 0.2), "card", np.where(rng.random(n) < 0.8, "cash", "coin")),
        "owner": rng.random(n) < np.where(young, 0.1, 0.7),
        "visits": rng.poisson(np.where(young, 8, 2)),
    })  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0).fit(people(1500))


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(3)
    kinds = rng.integers(2, size=800)
    shares = np.array(
        [[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.5, 0.4, 0.1]], [[0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [0.2, 0.1, 0.7]]]
    )
    words = np.array([["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]], dtype=object)
    codes = np.array([[rng.choice(3, p=shares[kind, at]) for at in range(3)] for kind in kinds])
    rows = words[np.arange(3), codes]
    return hw.CategoricalMixture(2, random_state=0).fit(rows), rows


def joint(model, rows):
    """Return the probabilities that the model gives to whole rows of categories."""
    found = np.zeros(len(rows))
    for k, weight in enumerate(model.weights_):
        share = np.full(len(rows), weight)
        for at, (names, table) in enumerate(zip(model.categories_, model.probabilities_, strict=True)):
            share *= [table[k, list(names).index(row[at])] for row in rows]
        found += share
    return found


def test_conditionals_of_categories_are_bayes_by_enumeration(classes):
    model, _ = classes
    every = np.array(list(product(*(names.tolist() for names in model.categories_))), dtype=object)
    chance = joint(model, every)
    for given in (["a", None, "g"], [None, None, "i"], [None, "e", None]):
        fits = np.all([[value is None or one == value for one, value in zip(row, given, strict=True)] for row in every], axis=1)
        law = model.condition(np.array([given], dtype=object))
        np.testing.assert_allclose(law.log_marginal[0], np.log(chance[fits].sum()), atol=0.01)  # free cells
        missing = [at for at, value in enumerate(given) if value is None]
        expected = every[fits][np.argmax(chance[fits])]
        np.testing.assert_array_equal(law.mode()[0], expected)
        np.testing.assert_array_equal(model.impute(np.array([given], dtype=object), "mode")[0], expected)
        for at in missing:
            marginal = np.array([chance[fits & (every[:, at] == name)].sum() for name in model.categories_[at]])
            found = law.probabilities(at)[0]
            # Where two are missing, the enumeration leaves out the free cells of the other column.
            np.testing.assert_allclose(found, marginal / marginal.sum(), rtol=1e-9 if len(missing) == 1 else 1e-5)
            assert law.mean[0, at] == law.categories(at)[found.argmax()]
            np.testing.assert_allclose(law.variance[0, at], 1.0 - np.square(marginal / marginal.sum()).sum(), atol=0.01)
        drawn = law.sample(4000, random_state=0)[:, 0]
        for at in missing:
            share = [np.mean(drawn[:, at] == name) for name in model.categories_[at]]
            np.testing.assert_allclose(share, law.probabilities(at)[0], atol=0.04)
        ratio = law.log_density(every[fits][:1])[0] - law.log_density(every[fits][-1:])[0]
        np.testing.assert_allclose(ratio, np.log(chance[fits][0] / chance[fits][-1]), rtol=1e-9)


def test_what_is_odd_of_categories_is_bayes_by_enumeration(classes):
    model, rows = classes
    every = np.array(list(product(*(names.tolist() for names in model.categories_))), dtype=object)
    chance = joint(model, every)
    reasons = model.explain(rows[:20])
    for row, values in enumerate(rows[:20]):
        for at in range(3):
            others = [one for one in range(3) if one != at]
            fits = np.all(every[:, others] == values[others], axis=1)
            shares = chance[fits] / chance[fits].sum()
            own = shares[list(every[fits][:, at]).index(values[at])]
            assert abs(reasons.surprise[row, at] + np.log(own)) < 0.02
            assert abs(reasons.tail[row, at] - shares[shares <= own * (1 + 1e-9)].sum()) < 0.02
            assert reasons.expected[row, at] == every[fits][shares.argmax(), at]
    assert np.isnan(reasons.low.astype(float)).all() and reasons.values[0, 0] == rows[0, 0]
    assert reasons.to_dict()["expected"][0][0] in ("a", "b", "c")


def test_an_unseen_category_is_odd_and_can_be_conditioned_on(classes):
    model, _ = classes
    row = np.array([["z", "d", None]], dtype=object)
    law = model.condition(row)
    np.testing.assert_allclose(law.weights.sum(), 1.0)
    assert law.mean[0, 0] is None and law.mean[0, 2] in ("g", "h", "i")
    assert model.impute(row)[0, 0] == "z"
    reasons = model.explain(row)
    assert reasons.tail[0, 0] < 1e-2 < reasons.tail[0, 1] and reasons.order(1)[0, 0] == 0


def test_counts_are_bayes_by_enumeration():
    rng = np.random.default_rng(0)
    kinds, days = rng.integers(2, size=600), rng.uniform(0.5, 3.0, size=600)
    rates = np.array([[1.0, 6.0], [5.0, 0.5]])
    rows = np.column_stack([rng.poisson(rates[kinds] * days[:, None]), days])
    model = hw.PoissonMixture(2, exposure=2, random_state=0).fit(rows)
    counts = np.arange(200)
    for predictive in (False, True):
        law = model.condition([[4.0, np.nan, 2.0], [np.nan, np.nan, 1.5]], predictive=predictive)

        def chance(x, y, time, predictive=predictive):
            if not predictive:
                each = stats.poisson.pmf(x, model.rates_[:, 0] * time) * stats.poisson.pmf(y, model.rates_[:, 1] * time)
                return float(model.weights_ @ each)
            return float(np.exp(model.predictive_score_samples([[x, y, time]])[0]))

        shares = np.array([chance(4, y, 2.0) for y in counts])
        shares /= shares.sum()
        np.testing.assert_allclose(law.mean[0, 1], shares @ counts, rtol=1e-6)
        np.testing.assert_allclose(law.variance[0, 1], shares @ counts**2 - (shares @ counts) ** 2, rtol=1e-6)
        low, high = law.interval(0.9)
        running = np.cumsum(shares)
        assert low[0, 1] == np.argmax(running >= 0.05) and high[0, 1] == np.argmax(running >= 0.95)
        assert law.mode()[0, 1] == shares.argmax() and law.mode()[1, 2] == 1.5
        shares = np.array([[chance(x, y, 1.5) for y in range(30)] for x in range(30)])
        assert tuple(law.mode()[1, :2]) == np.unravel_index(shares.argmax(), shares.shape)
        reasons = model.explain([[4.0, 9.0, 2.0]], predictive=predictive)
        given = np.array([chance(4, y, 2.0) for y in counts])
        given /= given.sum()
        np.testing.assert_allclose(reasons.surprise[0, 1], -np.log(given[9]), rtol=1e-6)
        np.testing.assert_allclose(reasons.tail[0, 1], min(1.0, 2.0 * min(given[:10].sum(), given[9:].sum())), rtol=1e-6)
        assert np.isnan(reasons.tail[0, 2]) and np.isnan(reasons.expected[0, 2])
    drawn = model.condition([[np.nan, 3.0, 1.0]]).sample(6000, random_state=1)[:, 0, 0]
    assert (drawn == np.round(drawn)).all() and abs(drawn.mean() - model.condition([[np.nan, 3.0, 1.0]]).mean[0, 0]) < 0.2
    whole = model.impute(np.array([[np.nan, 3.0, 1.0]]), "mode")
    assert whole[0, 0] == round(whole[0, 0])
    with pytest.raises(ValueError, match="the exposure, must be positive, got a missing value"):
        model.condition([[1.0, 2.0, np.nan]])
    with pytest.raises(ValueError, match="Negative values"):
        model.impute([[-1.0, np.nan, 2.0]])


def test_flags_are_bayes_by_enumeration():
    rng = np.random.default_rng(0)
    kinds = rng.integers(2, size=700)
    chance = np.array([[0.9, 0.8, 0.7], [0.2, 0.1, 0.4]])
    rows = (rng.random((700, 3)) < chance[kinds]).astype(float)
    model = hw.BernoulliMixture(2, random_state=0).fit(rows)

    def share(row):
        return float(np.exp(model.score_samples([row])[0]))

    law = model.condition([[1.0, np.nan, np.nan]])
    every = {bits: share([1.0, *bits]) for bits in product((0.0, 1.0), repeat=2)}
    total = sum(every.values())
    np.testing.assert_allclose(law.mean[0, 1], (every[1.0, 0.0] + every[1.0, 1.0]) / total, rtol=1e-9)
    np.testing.assert_allclose(law.variance[0, 1], law.mean[0, 1] * (1 - law.mean[0, 1]), rtol=1e-9)
    assert tuple(law.mode()[0, 1:]) == max(every, key=every.get)
    view = model.classifier(1, classes=[0, 1])
    np.testing.assert_allclose(view.predict_proba([[1.0, np.nan]])[0, 1], law.mean[0, 1], rtol=1e-9)
    reasons = model.explain([[1.0, 0.0, 1.0]])
    own = share([1.0, 0.0, 1.0]) / (share([1.0, 0.0, 1.0]) + share([1.0, 1.0, 1.0]))
    np.testing.assert_allclose(reasons.surprise[0, 1], -np.log(own), rtol=1e-9)
    np.testing.assert_allclose(reasons.tail[0, 1], own if own < 0.5 else 1.0, rtol=1e-9)


def test_a_table_is_the_product_of_its_blocks(model):
    """Numbers are correlated within the Gaussian block; all else is independent given the component."""
    table = people(1500)
    row = table.iloc[[0]].copy()
    row["age"] = np.nan
    law = model.condition(row)
    logs = np.log(model.weights_)
    place = list(model.categories_["pays"]).index(row["pays"].iloc[0])
    logs += np.log(model.probabilities_["pays"][:, place]) + stats.poisson.logpmf(row["visits"].iloc[0], model.rates_["visits"])
    yes = model.probabilities_["owner"]
    logs += np.log(yes if row["owner"].iloc[0] else 1 - yes)
    means, covariances, height = model.means_, model.covariances_, row["height"].iloc[0]
    logs += stats.norm.logpdf(height, means[:, 1], np.sqrt(covariances[:, 1, 1]))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    np.testing.assert_allclose(law.weights[0], weights, rtol=1e-9)
    centre = means[:, 0] + covariances[:, 0, 1] / covariances[:, 1, 1] * (height - means[:, 1])
    np.testing.assert_allclose(law.mean[0, 1], weights @ centre, rtol=1e-9)
    np.testing.assert_allclose(model.regressor("age").predict(row.drop(columns="age"))[0], weights @ centre, rtol=1e-9)
    full = table.iloc[[0]]
    scores = law.log_marginal[0] + law.log_density(full)[0]
    np.testing.assert_allclose(scores, model.score_samples(full)[0], rtol=1e-9)


def test_leaving_a_column_out_is_conditioning_on_the_others(model):
    table = people(1500).iloc[:6]
    reasons = model.explain(table)
    for at, name in enumerate(table.columns[1:], start=1):
        hidden = table.astype(object)
        hidden[name] = None
        law = model.condition(hidden)
        np.testing.assert_allclose(reasons.surprise[:, at], -law.log_density(table), rtol=1e-7, atol=1e-9)
        if name != "owner":
            np.testing.assert_array_equal(reasons.expected[:, at] == law.mean[:, at], True) if name == "pays" else (
                np.testing.assert_allclose(reasons.expected[:, at].astype(float), law.mean[:, at].astype(float), rtol=1e-9)
            )
    assert np.isnan(reasons.tail[:, 0]).all()
    pairs = reasons.pairs(3, alone=0.5)
    assert set(pairs.keys()) >= {"first", "second", "tail"}
    odd = table.iloc[[0]].copy()
    odd["pays"], odd["visits"] = "coin", 40
    assert "visits" in str(model.explain(odd).top(1))


def containers():
    table = people(12, seed=5)
    table = table.astype({"owner": "boolean", "visits": "Int64", "pays": object})
    for at, name in enumerate(("age", "pays", "owner", "visits", "name")):
        table.loc[at::5, name] = None
    return table


@pytest.mark.covering("make")
@pytest.mark.parametrize(
    "make",
    [
        lambda table: table,
        lambda table: table.astype({"pays": "category"}),
        lambda table: table.astype({"pays": "string"}),
        lambda table: pl.from_pandas(table),
        lambda table: pl.from_pandas(table).with_columns(pl.col("pays").cast(pl.Categorical)),
        lambda table: pl.from_pandas(table).with_columns(pl.col("pays").cast(pl.Enum(["card", "cash", "coin"]))),
        lambda table: pa.Table.from_pandas(table, preserve_index=False),
        lambda table: pa.Table.from_pandas(table.astype({"pays": "category"}), preserve_index=False),
        lambda table: pa.Table.from_pandas(table, preserve_index=False).to_batches()[0],
    ],
    ids=["objects", "category", "string", "polars", "polars-categorical", "polars-enum", "arrow", "dictionary", "batch"],
)
@pytest.mark.parametrize("method", ["mean", "mode", "sample"])
def test_impute_gives_back_the_container_that_came_in(model, make, method):
    plain, given = containers(), make(containers())
    filled = model.impute(given, method, random_state=0)
    assert type(filled) is type(given)
    kinds = given.schema.types if hasattr(given.schema if hasattr(given, "schema") else None, "types") else list(given.dtypes)
    after = filled.schema.types if hasattr(given.schema if hasattr(given, "schema") else None, "types") else list(filled.dtypes)
    if not isinstance(given, pd.DataFrame) or not hasattr(given["pays"].dtype, "categories"):  # which may gain some
        assert list(kinds) == list(after)
    frame = filled.to_pandas() if hasattr(filled, "to_pandas") else filled
    for name in ("age", "height", "pays", "owner", "visits"):
        column, before = frame[name].tolist(), plain[name].tolist()
        assert not any(pd.isna(one) for one in column)
        assert all(one == two for one, two in zip(column, before, strict=True) if not pd.isna(two))
    assert set(frame["pays"]) <= {"card", "cash", "coin"}
    assert frame["name"].isna().tolist() == plain["name"].isna().tolist()  # which the model leaves out


@pytest.mark.parametrize("kind", ["str", "string", pd.ArrowDtype(pa.string())], ids=["str", "string", "arrow"])
def test_numbers_in_columns_of_text_are_filled_as_text(model, kind):
    table = containers()
    gaps = table[["age", "visits"]].isna()
    table = table.astype({"age": kind, "visits": kind})
    table[gaps.columns] = table[gaps.columns].mask(gaps)  # pandas 2 writes a gap as "<NA>" when it makes text of numbers
    filled = model.impute(table)
    assert list(filled.dtypes) == list(table.dtypes)
    ages = filled["age"].astype(float)
    np.testing.assert_allclose(ages, model.impute(containers())["age"].astype(float), rtol=1e-12)
    numbers = people(300, seed=1)[["age", "height"]]
    numbers.loc[::7, "age"] = np.nan
    gaussian = hw.GaussianMixture(2, random_state=0).fit(numbers)
    np.testing.assert_allclose(gaussian.impute(numbers.astype(kind)).astype(float), gaussian.impute(numbers), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_arrays_of_objects_and_lists_are_filled(model):
    rows = containers().to_numpy(dtype=object)
    rows[pd.isna(rows)] = None
    filled = model.impute(rows)
    assert filled.dtype == object and isinstance(filled[1, 3], str) and isinstance(filled[2, 4], bool)
    listed = model.impute(rows.tolist())
    assert listed[1, 3] == filled[1, 3]
    numbers = hw.CategoricalMixture(2, random_state=0).fit(np.random.default_rng(0).integers(3, size=(200, 4)))
    gaps = np.array([[0.0, np.nan, 1.0, 2.0]])
    assert numbers.impute(gaps)[0, 1] in (0.0, 1.0, 2.0) and numbers.impute(gaps).dtype == float


def test_intervals_hold_the_truth_as_often_as_they_say(model):
    table = people(4000, seed=11)
    for name in ("age", "visits"):
        low, high = model.regressor(name).predict_interval(table.drop(columns=name), level=0.9)
        held = np.mean((table[name] >= low) & (table[name] <= high))
        assert 0.88 < held < (0.92 if name == "age" else 0.96)  # of counts at least
    shares = model.classifier("pays").predict_proba(table.drop(columns="pays"))
    card = list(model.classifier("pays").classes_).index("card")
    sure = shares[:, card] > 0.8
    assert abs(np.mean(table["pays"][sure] == "card") - shares[sure, card].mean()) < 0.03


def test_a_classifier_predicts_words(model):
    table = people(1500)
    view = model.classifier("pays")
    X, y = table.drop(columns="pays"), table["pays"]
    assert is_classifier(view) and view.classes_.tolist() == ["card", "cash", "coin"]
    np.testing.assert_allclose(view.predict_proba(X).sum(axis=1), 1.0)
    assert set(view.predict(X)) <= {"card", "cash", "coin"} and view.score(X, y) > 0.7
    assert model.classifier("owner").classes_.tolist() == [False, True]
    assert model.classifier("visits", classes=[0, 1, 2]).predict(table[:2].drop(columns="visits")).tolist()
    again = clone(view).fit(X, y)
    assert again.model_.columns_["pays"] == "categorical" and again.score(X, y) > 0.7
    numbers = hw.ColumnClassifier(hw.MixedMixture(2, random_state=0)).fit(table[["age", "owner"]], [3, 4] * 750)
    assert set(numbers.predict(table[["age", "owner"]])) <= {3, 4}
    two = model.classifier("pays", classes=["card", "cash"])
    assert two.predict_proba(X[:1]).shape == (1, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.regressor("pays"), "column 'pays' is 'categorical', which has no mean: ask for a classifier"),
        (lambda model: model.regressor("owner"), "column 'owner' is 'bernoulli', which has no mean"),
        (lambda model: model.regressor("name"), "column 'name' is 'ignore'"),
        (lambda model: model.classifier("name"), "column 'name' is 'ignore', which the model has left out"),
        (lambda model: model.classifier("age"), "classes must be at least two different numbers, got None"),
        (lambda model: model.classifier("pays", ["card", "gold"]), "classes must be at least two of the categories"),
        (lambda model: model.classifier("wage"), "column must be one of those that the model learned"),
        (lambda model: model.condition(people(3).drop(columns="age")), "got without age"),
        (lambda model: model.impute(people(3), method="median"), "method must be one of"),
        (lambda model: model.condition(people(3)).probabilities("pays"), "must be missing in every row"),
        (lambda model: model.condition(people(3)).categories("age"), "'gaussian' and has no categories"),
        (lambda model: model.impute(people(3).assign(pays=[1.0, 2.0, 3.0])), "held text before, and holds numbers now"),
        (lambda model: model.impute(people(3).assign(visits=[-1, 2, 3])), "a count must not be negative"),
    ],
)
def test_questions_that_make_no_sense(model, call, words):
    with pytest.raises(ValueError, match=words):
        call(model)


def test_credible_intervals_of_a_table_hold_the_truth(model):
    found = model.credible_intervals(0.9)
    assert found.columns[:2] == ("age", "height") and "pays=card" in found.columns and "owner" in found.columns
    assert found.weights.shape == (2, 2) and found.values.shape == (2, len(found.columns), 2) and "age" in str(found)
    rng, held = np.random.default_rng(2), []
    for _ in range(30):
        kinds = rng.choice(["a", "b", "c"], p=[0.5, 0.3, 0.2], size=150)
        table = pd.DataFrame({"x": rng.normal(size=150), "kind": kinds, "yes": rng.random(150) < 0.3, "n": rng.poisson(4, 150)})
        intervals = hw.MixedMixture(1, columns={"n": "poisson"}, random_state=0).fit(table).credible_intervals(0.9)
        truth = {"x": 0.0, "kind=a": 0.5, "kind=b": 0.3, "kind=c": 0.2, "yes": 0.3, "n": 4.0}
        ends = dict(zip(intervals.columns, intervals.values[0], strict=True))
        held += [ends[name][0] <= value <= ends[name][1] for name, value in truth.items()]
    assert 0.8 < np.mean(held) < 0.97
    words = hw.CategoricalMixture(2, random_state=0).fit(np.random.default_rng(0).choice(["a", "b"], size=(300, 3)))
    assert words.credible_intervals().values.shape == (2, 6, 2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "view",
    [
        hw.ColumnRegressor(hw.MixedMixture(2, random_state=0)),
        hw.ColumnClassifier(hw.MixedMixture(4, random_state=0)),
    ],
    ids=["regressor", "classifier"],
)
def test_scikit_learns_checks(view):
    results = estimator_checks.check_estimator(view, expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None)
    assert [(result["check_name"], str(result["exception"])) for result in results if result["status"] == "failed"] == []


def test_a_column_of_which_no_category_was_seen_keeps_its_gaps():
    table = people(200).assign(nothing=None)
    model = hw.MixedMixture(2, columns={"nothing": "categorical"}, random_state=0).fit(table)
    assert model.impute(table[:2])["nothing"].isna().all()
    assert np.isnan(model.explain(table[:2]).tail[:, -1]).all()


def test_a_report_says_what_makes_rows_of_a_table_odd():
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=800)
    frame = pd.DataFrame(
        {"size": rng.normal(size=800) + 6.0 * kind, "shape": np.where(kind, "round", "long"), "paid": rng.random(800) < 0.5}
    )
    model = hw.MixedMixture(2, random_state=0).fit(frame)
    odd = pd.DataFrame({"size": [0.0, 40.0, 0.0], "shape": ["round", "long", "square"], "paid": [True, False, True]})
    text = " ".join(hw.report(model, pd.concat([frame, odd])).split())
    assert "shape <b>round</b> expected long" in text
    assert "size <b>40</b> expected" in text
    assert "shape <b>square</b> expected long" in text or "shape <b>a new category</b> expected long" in text
    values = [value for component in model.describe().components for value in component.values]
    assert {value.name for value in values if value.is_share} == {"shape=round", "shape=long", "paid"}
    assert all((value.spread is None) == value.is_share for value in values)
