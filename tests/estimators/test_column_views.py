"""regressor and classifier: predict one column of a mixture from the others, with scikit-learn's interface."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import headwater as hw
from headwater.checks import EXPECTED_FAILURES
from headwater.estimators.column_views import ColumnClassifier


def houses(n, seed=0):
    rng = np.random.default_rng(seed)
    size, rooms = rng.gamma(8.0, 10.0, size=n), rng.integers(1, 6, size=n)
    price = 3.0 * size + 20.0 * rooms + 10.0 * rng.normal(size=n)
    return pd.DataFrame({"size": size, "price": price, "rooms": rooms.astype(float)})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    ("view", "expected"),
    [
        # One component by EM: no start is drawn, and no prior is made of the rows of a start.
        (hw.ColumnRegressor(hw.GaussianMixture(1, algorithm="em")), {}),
        (hw.ColumnRegressor(hw.GaussianMixture(1, algorithm="em"), column=0), {}),
        (hw.ColumnRegressor(hw.GaussianMixture(2, random_state=0)), EXPECTED_FAILURES),
        (hw.ColumnClassifier(hw.GaussianMixture(4, random_state=0)), EXPECTED_FAILURES),
    ],
    ids=["regressor", "first-column", "auto", "classifier"],
)
def test_scikit_learns_checks(view, expected):
    results = estimator_checks.check_estimator(view, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(results) > 40
    assert [(result["check_name"], str(result["exception"])) for result in results if result["status"] == "failed"] == []


def test_one_component_is_linear_regression():
    table = houses(3000)
    X, y = table[["size", "rooms"]], table["price"]
    view = hw.GaussianMixture(1, algorithm="em", reg_covar=0.0).fit(table).regressor("price")
    peer = LinearRegression().fit(X, y)
    np.testing.assert_allclose(view.predict(X), peer.predict(X), rtol=1e-6)
    np.testing.assert_allclose(view.score(X, y), peer.score(X, y), rtol=1e-9)
    mean, std = view.predict(X, return_std=True)
    np.testing.assert_allclose(std, np.std(y - peer.predict(X)), rtol=1e-6)
    low, high = view.predict_interval(X, level=0.9)
    np.testing.assert_allclose(0.5 * (low + high), mean, rtol=1e-9)
    assert abs(np.mean((y >= low) & (y <= high)) - 0.9) < 0.02
    again = clone(view).fit(X, y)
    np.testing.assert_allclose(again.predict(X), view.predict(X), rtol=1e-6)
    assert list(again.model_.feature_names_in_) == ["size", "rooms", "price"] and again.place_ == 2


def test_a_view_is_a_fitted_estimator_that_leaves_the_model_alone():
    table = houses(600)
    model = hw.GaussianMixture(2, random_state=0).fit(table)
    before = model.means_
    view = model.regressor("price")
    assert is_regressor(view) and view.n_features_in_ == 2 and list(view.feature_names_in_) == ["size", "rooms"]
    X, y = table[["size", "rooms"]], table["price"]
    expected = view.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(view)).predict(X), expected)
    np.testing.assert_array_equal(model.regressor(1).predict(X), expected)
    np.testing.assert_array_equal(model.regressor(-2).predict(X), expected)
    view.fit(X[:100], y[:100])
    np.testing.assert_array_equal(model.means_, before)
    model.partial_fit(table)  # earlier predictions are unchanged
    np.testing.assert_array_equal(model.regressor("price").model_.n_samples_seen_, 1200)
    with pytest.raises(NotFittedError):
        clone(view).predict(X)


def test_views_in_searches_and_pipelines():
    table = houses(600)
    X, y = table[["size", "rooms"]].to_numpy(), table["price"].to_numpy()
    view = hw.ColumnRegressor(hw.GaussianMixture(random_state=0))
    assert cross_val_score(view, X, y, cv=3).min() > 0.9
    search = GridSearchCV(view, {"model__n_components": [1, 2]}, cv=3).fit(X, y)
    assert search.best_estimator_.model_.n_components_ in (1, 2)
    assert make_pipeline(StandardScaler(), view).fit(X, y).score(X, y) > 0.9


def test_inputs_may_have_gaps():
    table = houses(1500)
    X, y = table[["size", "rooms"]].copy(), table["price"]
    X.loc[::7, "size"] = np.nan
    X.loc[::11, "rooms"] = None
    view = hw.ColumnRegressor(hw.GaussianMixture(2, random_state=0), "price").fit(X, y)
    assert view.score(table[["size", "rooms"]], y) > 0.95
    mean, std = view.predict(X, return_std=True)
    assert np.isfinite(mean).all() and std[7] > 3.0 * std[1]
    nothing = view.predict(pd.DataFrame({"size": [np.nan], "rooms": [np.nan]}))
    np.testing.assert_allclose(nothing, view.model_.weights_ @ view.model_.means_[:, 2])


def test_a_classifier_has_the_posterior_of_its_classes():
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=3000)
    centres = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
    rows = np.column_stack([centres[kind] + rng.normal(size=(3000, 2)), kind])
    model = hw.GaussianMixture(3, random_state=0).fit(rows)
    view = model.classifier(2, classes=[0, 1, 2])
    assert is_classifier(view) and view.classes_.tolist() == [0, 1, 2]
    shares = view.predict_proba(rows[:200, :2])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    truth = np.exp(-0.5 * ((rows[:200, None, :2] - centres) ** 2).sum(axis=2))
    np.testing.assert_allclose(shares, truth / truth.sum(axis=1, keepdims=True), atol=0.12)
    assert view.score(rows[:, :2], kind) > 0.95
    names = np.array(["red", "green", "blue"])[kind]
    words = hw.ColumnClassifier(hw.GaussianMixture(3, random_state=0)).fit(rows[:, :2], names)
    assert words.classes_.tolist() == ["blue", "green", "red"] and words.score(rows[:, :2], names) > 0.95
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(words)).predict(rows[:9, :2]), words.predict(rows[:9, :2]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda model: model.regressor("cost"),
            r"column must be one of those that the model learned \(size, price, rooms\), got 'cost'",
        ),
        (lambda model: model.regressor(3), "column must lie between -3 and 2, got 3"),
        (lambda model: model.regressor(None), "column must be the name of a column or its place, got None"),
        (lambda model: model.regressor(True), "column must be the name of a column or its place, got True"),
        (lambda model: model.classifier("rooms", [1]), r"classes must be at least two different numbers, got \[1\]"),
        (lambda model: model.classifier("rooms", ["a", "b"]), "classes must hold numbers"),
        (lambda model: model.classifier("cost", [0, 1]), "column must be one of"),
    ],
)
def test_views_that_make_no_sense(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call(hw.GaussianMixture(1).fit(houses(50)))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_columns_that_make_no_sense():
    with pytest.raises(NotFittedError):
        hw.GaussianMixture(1).regressor(0)
    with pytest.raises(ValueError, match="knows no names, got 'price'"):
        hw.GaussianMixture(1).fit(houses(50).to_numpy()).regressor("price")
    with pytest.raises(ValueError, match="a model of one column has no other columns"):
        hw.GaussianMixture(1).fit(np.random.default_rng(0).normal(size=(50, 1))).regressor(0)
    table = houses(50)
    with pytest.raises(ValueError, match="X must not have the column 'price', which is the target"):
        hw.ColumnRegressor(hw.GaussianMixture(1), "price").fit(table, table["price"])
    view = hw.GaussianMixture(1).fit(table).regressor("price")
    with pytest.raises(ValueError, match="X has 3 features, but ColumnRegressor is expecting 2"):
        view.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="y must have one target per row"):
        view.fit(np.zeros((4, 2)), np.zeros(3))


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["a", "b", None], "y has no label in row 2, got None: drop the rows without a label"),
        (["a", float("nan"), "b"], "y has no label in row 1, got nan"),
        (["a", pd.NA, "b"], "y has no label in row 1, got <NA>"),
        (["a", 1, "b"], "y must hold labels of one kind, got str and int"),
    ],
)
def test_labels_that_are_none_are_refused(labels, sentence):
    rows = pd.DataFrame({"x": np.arange(60.0), "kind": ["u", "v", "w"] * 20})
    view = ColumnClassifier(hw.MixedMixture(1), "label")
    with pytest.raises(ValueError, match=sentence):
        view.fit(rows, np.array(labels * 20, dtype=object))


def test_an_enum_gets_the_category_that_it_lacks():
    polars = pytest.importorskip("polars")
    kinds = np.random.default_rng(0).integers(2, size=400)
    table = polars.DataFrame(
        {"x": 9.0 * kinds, "kind": polars.Series(np.where(kinds, "b", "a"), dtype=polars.Enum(["a", "b"]))}
    )
    gaps = polars.DataFrame({"x": [0.0, 9.0], "kind": polars.Series([None, None], dtype=polars.Enum(["b"]))})
    filled = hw.MixedMixture(2, random_state=0).fit(table).impute(gaps)
    assert filled["kind"].to_list() == ["a", "b"] and filled["kind"].dtype == polars.Enum(["b", "a"])
