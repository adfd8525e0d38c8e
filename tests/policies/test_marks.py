"""Rows that a person marked: what they do to scores, and that they stay."""

import inspect

import every_model
import numpy as np
import pandas as pd
import pytest

import headwater as hw
from headwater.core.batch import SparseRows, drop_zeros
from headwater.families.row_profile import profile_of_categories, profile_of_shares, profile_of_values
from headwater.policies.marks import BEYOND, CAPACITY, NOISE, Marks, merge_marks, scale_of
from headwater.policies.names import MARKS


def slow_scores(model, marked, odd, before, X, scores):
    """The definition: a Gaussian process on compressed columns, one row after the other."""
    sketch, rows = model._score_sketch(), model._model.sample(model._read().parameters, 2000, np.random.default_rng(0))[0]
    centre, spread = rows.mean(axis=0), rows.std(axis=0)

    def place(x):
        z = (np.asarray(x) - centre) / spread
        return np.sign(z) * np.log1p(np.abs(z)) / np.sqrt(len(z))

    def likeness(x, y):
        return np.exp(-0.5 * np.sum((place(x) - place(y)) ** 2))

    def at(score):
        return np.arcsinh((score - sketch.origin) / sketch.unit)

    high = max(at(sketch.threshold(0.01)), 0.0)
    aims = [max(at(score), high) + BEYOND if verdict else 0.0 for score, verdict in zip(before, odd, strict=True)]
    missing = np.array(aims) - at(np.array(before))
    matrix = np.array([[likeness(x, y) + NOISE * (i == j) for j, y in enumerate(marked)] for i, x in enumerate(marked)])
    weights = np.linalg.solve(matrix, missing)
    found = []
    for x, score in zip(X, scores, strict=True):
        moved = at(score) + sum(weight * likeness(x, y) for weight, y in zip(weights, marked, strict=True))
        found.append(sketch.origin + sketch.unit * np.sinh(moved))
    return np.array(found)


@pytest.fixture(scope="module")
def model():
    return hw.GaussianMixture(2, random_state=0, warm_up=200).partial_fit(np.random.default_rng(0).normal(size=(3000, 3)))


@pytest.fixture(scope="module")
def marked():
    return np.array([[0.0, 5.0, 0.0], [0.1, 4.8, 0.2], [-4.0, 0.0, 0.0], [1.0, 1.0, -5.0]]), [0, 0, 1, 1]


def test_scores_are_their_definition(model, marked):
    X = np.vstack([marked[0], np.random.default_rng(1).normal(size=(20, 3)) * 2.0])
    before = model.anomaly_score(X)
    after = model.branch().label_anomalies(*marked).anomaly_score(X)
    np.testing.assert_allclose(after, slow_scores(model, *marked, before[:4], X, before), rtol=1e-6, atol=1e-6)
    assert after[:2].max() < before.min() + 3.0 < before[:2].min() and (after[2:4] > before[2:4]).all()
    far = np.array([[60.0, -80.0, 90.0]])
    np.testing.assert_allclose(model.branch().label_anomalies(*marked).anomaly_score(far), model.anomaly_score(far), rtol=0.05)


def test_the_density_and_what_was_learned_stay(model, marked):
    after = model.branch()
    known = after.weights_.copy(), after.score_samples(marked[0]), after.predict_proba(marked[0])
    after.label_anomalies(*marked)
    now = after.weights_, after.score_samples(marked[0]), after.predict_proba(marked[0])
    for one, other in zip(known, now, strict=True):
        np.testing.assert_array_equal(one, other)
    rows = np.random.default_rng(2).normal(size=(500, 3))
    np.testing.assert_array_equal(after.partial_fit(rows).means_, model.branch().partial_fit(rows).means_)
    assert after.n_marked_ == 4 and after.anomaly_score(marked[0][:1])[0] < model.anomaly_score(marked[0][:1])[0] - 5.0


def test_marks_in_parts_saved_and_pruned_are_the_same(model, marked, tmp_path):
    X, odd = marked
    whole, parts = model.branch().label_anomalies(X, odd), model.branch()
    for row, verdict in zip(X, odd, strict=True):
        parts.label_anomalies(row[None], [verdict])
    np.testing.assert_allclose(parts.anomaly_score(X), whole.anomaly_score(X), rtol=1e-6)
    whole.save(tmp_path / "model.hw")
    np.testing.assert_array_equal(hw.load(tmp_path / "model.hw").anomaly_score(X), whole.anomaly_score(X))
    assert whole.prune(min_weight=0.9).n_marked_ == 4
    again = whole.branch().label_anomalies(X[:1], [1])
    assert again.n_marked_ == 4 and again.anomaly_score(X[:1])[0] > whole.anomaly_score(X[:1])[0] + 3.0


def test_branches_unite_their_marks(model, marked):
    X, odd = marked
    one, other = model.branch().label_anomalies(X[:3], odd[:3]), model.branch().label_anomalies(X[2:], odd[2:])
    both = hw.merge([one, other])
    assert both.n_marked_ == 4 and hw.merge([one, other, model.branch()]).n_marked_ == 4
    np.testing.assert_allclose(hw.merge([other, one]).anomaly_score(X), both.anomaly_score(X), rtol=1e-6)


def test_merging_has_neither_order_nor_tree_and_no_more_than_the_newest():
    rng = np.random.default_rng(0)
    centre, spread = scale_of(rng.normal(size=(100, 32)))
    blank = Marks.blank().on_scale(centre, spread, 0.0, 1.0, 3.0)
    rows = rng.normal(size=(400, 32))
    parts = [blank.add(rows[at : at + 200], np.ones(200), rng.random(200) < 0.5) for at in (0, 100, 200)]
    whole = merge_marks(parts)
    assert len(whole) == CAPACITY
    for order in ([2, 0, 1], [1, 2, 0]):
        a, b, c = (parts[at] for at in order)
        for other in (merge_marks([a, b, c]), merge_marks([merge_marks([a, b]), c])):
            for name in ("profiles", "verdicts", "times", "scores"):
                np.testing.assert_array_equal(getattr(other, name), getattr(whole, name))
    newest = blank.add(rows, np.ones(400), np.ones(400) > 0)
    kept = newest.profiles[newest.verdicts != 0.0]
    assert {tuple(one) for one in kept} == {tuple(one) for one in rows[-CAPACITY:]}


@pytest.mark.parametrize("kind", [one for one in every_model.KINDS if one not in ("topics", "spectra", "arrival")])
def test_every_mixture_and_chain_takes_marks(kind, tmp_path):
    model, chunk = every_model.learned(kind), every_model.stream_of(kind)[0]
    taken = inspect.signature(model.anomaly_score).parameters
    given = {name: chunk[name] for name in ("X", "y", "lengths") if name in taken and name in chunk.keys()}  # noqa: SIM118
    if model._read().stream.records.get("scores") is None:
        model.calibrate(**given)
    before = model.anomaly_score(**given)
    top = np.argsort(-before, kind="stable")[:4]
    odd = np.full(len(before), np.nan)
    odd[top[:1]] = 0.0
    model.label_anomalies(odd=odd, **given)
    after = model.anomaly_score(**given)
    assert after[top[0]] < before[top[0]]
    np.testing.assert_array_equal(np.isfinite(after), np.isfinite(before))
    model.save(tmp_path / "model.hw")
    np.testing.assert_array_equal(hw.load(tmp_path / "model.hw").anomaly_score(**given), after)


@pytest.mark.parametrize("options", [{}, {"parts": 2}, {"half_life": "auto"}, {"n_components": "auto"}])
def test_marks_stay_while_a_stream_goes_on(options):
    rng = np.random.default_rng(0)
    model = hw.GaussianMixture(**{"n_components": 2, "random_state": 0, **options}).partial_fit(rng.normal(size=(400, 2)))
    model.label_anomalies([[0.0, 5.0]], [False])
    for _ in range(4):
        model.partial_fit(rng.normal(size=(700, 2)))
    plain = hw.GaussianMixture(**{"n_components": 2, "random_state": 0, **options}).fit(rng.normal(size=(3000, 2)))
    assert model.n_marked_ == 1
    assert model.anomaly_score([[0.0, 5.0]])[0] < plain.anomaly_score([[0.0, 5.0]])[0] - 5.0
    assert model.anomaly_pvalue([[0.0, 5.0]])[0] > 0.05


def test_pvalues_after_marks_are_right_after_calibrate(model, marked):
    rng = np.random.default_rng(3)
    after = model.branch().label_anomalies(*marked).calibrate(rng.normal(size=(5000, 3)))
    assert np.mean(after.anomaly_pvalue(rng.normal(size=(20_000, 3))) <= 0.05) == pytest.approx(0.05, abs=0.012)


def test_profiles_are_those_of_each_row_alone():
    rng = np.random.default_rng(0)
    wide, codes = rng.normal(size=(5, 50)), rng.integers(4, size=(5, 3)).astype(float)
    codes[2, 1] = np.nan
    counts = rng.poisson(0.4, size=(6, 40)).astype(float)
    counts[3] = 0.0
    for function, rows in ((profile_of_values, wide), (profile_of_categories, codes), (profile_of_shares, counts)):
        np.testing.assert_allclose(function(rows), np.vstack([function(row[None]) for row in rows]), atol=1e-12)
    sparse = drop_zeros(counts)
    assert isinstance(sparse, SparseRows)
    np.testing.assert_allclose(profile_of_shares(sparse), profile_of_shares(counts), atol=1e-12)
    np.testing.assert_allclose(profile_of_shares(sparse[2:5]), profile_of_shares(counts[2:5]), atol=1e-12)
    assert np.linalg.norm(profile_of_categories(np.array([[0.0], [1.0]])), axis=1) == pytest.approx(np.sqrt(32.0))


@pytest.mark.parametrize(
    ("rows", "odd", "words"),
    [
        ([[0.0, 0.0, 0.0]], [2], "odd must be 1"),
        ([[0.0, 0.0, 0.0]], [-1], r"odd must be 1 \(odd\), 0 \(usual\) or NaN \(not looked at\) for each row, got -1"),
        ([[0.0, 0.0, 0.0]], ["odd"], "odd must be 1"),
        ([[0.0, 0.0, 0.0]], [np.nan], "odd must mark at least one row"),
        ([[0.0, 0.0, 0.0]], [1, 0], "odd must have a value for each of the 1 rows, got 2"),
        ([[0.0, 0.0, 0.0]], 1, "odd must have a value for each row"),
        ([[0.0, 0.0, 0.0]], {0: 1}, "odd must have a value for each row, in the order of the rows"),
        ([[0.0, 0.0, 0.0]], "1", "odd must have a value for each row, in the order of the rows"),
        ([[0.0, 0.0]], [1], "features"),
    ],
)
def test_what_is_no_mark_is_refused_and_changes_nothing(model, rows, odd, words):
    known = model._runtime
    with pytest.raises((ValueError, TypeError), match=words):
        model.label_anomalies(rows, odd)
    assert model._runtime is known and MARKS not in model._read().stream.records


@pytest.mark.parametrize("marks", [pd.array([1, None, 0], dtype="Int64"), pd.array([True, None, False], dtype="boolean")])
def test_marks_of_pandas_may_be_missing(model, marks):
    assert model.branch().label_anomalies(np.eye(3), marks).n_marked_ == 2


def test_nonsense_rows_leave_numbers(model):
    wild = np.array([[1e99, -1e99, 0.0], [0.0, 0.0, 1e-300], [5.0, 5.0, 5.0]])
    after = model.branch().label_anomalies(wild, [1, 0, 1])
    assert np.isfinite(after.anomaly_score(np.vstack([wild, np.zeros((3, 3))]))).all()
    gaps = hw.GaussianMixture(2, random_state=0).partial_fit(np.where(np.arange(600).reshape(200, 3) % 7, 1.0, np.nan))
    gaps.label_anomalies([[np.nan, 9.0, 1.0], [np.nan, np.nan, 2.0]], [0, 1])
    assert np.isfinite(gaps.anomaly_score([[np.nan, 9.0, 1.0], [1.0, 1.0, np.nan]])).all()
