"""Rows that are not counts raise an error of one sentence and leave the model as it was; unusual counts are learned."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import headwater as hw
from headwater.core.batch import SparseRows, drop_zeros
from headwater.core.count_validation import check_count_items, check_count_row, check_counts
from headwater.core.records import arrays_of
from headwater.core.statistics import LARGEST_COUNT

V = 4
GOOD = np.random.default_rng(0).poisson(2.0, (60, V)).astype(float)


def dense(rows):
    """Return checked rows as a matrix."""
    if not isinstance(rows, SparseRows):
        return rows
    return sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape).toarray()


def refusal(function, *arguments, **options):
    with pytest.raises((ValueError, TypeError)) as caught:
        function(*arguments, **options)
    sentence = str(caught.value)
    assert sentence.strip() and "\n" not in sentence
    return sentence


def content(model):
    return [array.tobytes() for array in arrays_of(model._state)]


@pytest.fixture(scope="module", params=["boem", "auto", "online-em", "warming up"])
def model(request):
    """Return a model that has learned some rows; its warm-up may not be over."""
    waiting = request.param == "warming up"
    options = {"algorithm": "auto" if waiting else request.param, "warm_up": 100 if waiting else 20}
    return hw.MultinomialMixture(2, random_state=0, **options).partial_fit(GOOD)


def assert_refused(model, X, words, **options):
    before, width = content(model), model.n_features_in_
    calls = [model.partial_fit, model.update] if options else [
        model.partial_fit, model.update, model.score_samples, model.predict_proba, model.predictive_score_samples, model.bic,
    ]  # fmt: skip
    for call in calls:
        sentence = refusal(call, X, **options)
        for word in words:
            assert word in sentence, sentence
    unchanged = content(model) == before  # hypothesis cannot simplify the bytes
    assert unchanged and model.n_features_in_ == width and model.n_samples_seen_ == 60


# What is refused


def with_value(value, row=2, kind=np.asarray):
    rows = GOOD[:5].copy()
    rows[row, 1] = value
    return kind(rows)


BAD = {
    "negative": (with_value(-1.0), ["Negative", "row 2"]),
    "negative, sparse": (with_value(-1.0, kind=sparse.csr_array), ["Negative", "row 2"]),
    "negative, coo": (with_value(-1.0, kind=sparse.coo_matrix), ["Negative", "row 2"]),
    "negative integers": (with_value(-1, kind=lambda rows: rows.astype(int)), ["Negative", "row 2"]),
    "hardly negative": (with_value(-1e-300), ["Negative", "row 2"]),
    "nan": (with_value(np.nan), ["NaN", "row 2"]),
    "nan, sparse": (with_value(np.nan, kind=sparse.csr_array), ["NaN", "row 2"]),
    "nan, csc": (with_value(np.nan, kind=sparse.csc_matrix), ["NaN", "row 2"]),
    "infinite": (with_value(np.inf, row=4), ["infinity", "row 4"]),
    "infinite, sparse": (with_value(np.inf, row=4, kind=sparse.csr_matrix), ["infinity", "row 4"]),
    "minus infinity, sparse": (with_value(-np.inf, row=4, kind=sparse.csr_matrix), ["infinity", "row 4"]),
    "huge": (with_value(1e200), ["1e+200"]),
    "huge, sparse": (with_value(1e200, kind=sparse.csr_array), ["1e+200"]),
    "too wide": (np.ones((3, V + 1)), [f"{V + 1} features", f"{V} features"]),
    "too wide, sparse": (sparse.csr_array(np.ones((3, V + 1))), [f"{V + 1} features", f"{V} features"]),
    "too narrow, sparse": (sparse.csr_array(np.ones((3, V - 1))), [f"{V - 1} features", f"{V} features"]),
    "no row": (np.ones((0, V)), ["0 sample(s)"]),
    "no row, sparse": (sparse.csr_array((0, V)), ["0 sample(s)"]),
    "no column": (np.ones((3, 0)), ["0 feature(s)"]),
    "no column, sparse": (sparse.csr_array((3, 0)), ["0 feature(s)"]),
    "neither": (sparse.csr_array((0, 0)), ["0 "]),
    "text": ([["a", "b", "c", "d"]], ["X", "numbers"]),
    "numbers as text": (np.full((2, V), "1"), ["X", "numbers"]),
    "dates": (np.full((2, V), "2024-01-01", dtype="datetime64[D]"), ["X", "numbers"]),
    "complex": (GOOD[:3] + 1j, ["Complex"]),
    "complex, sparse": (sparse.csr_array(GOOD[:3] + 1j), ["Complex"]),
    "objects that are none": (np.array([[1, {}, 2, 3]], dtype=object), ["X", "numbers"]),
    "one dimension": (GOOD[0], ["two dimensions"]),
    "one dimension, sparse": (sparse.coo_array(GOOD[0]), ["two dimensions"]),
    "three dimensions": (GOOD[None], ["two dimensions"]),
    "a number": (3.0, ["two dimensions"]),
    "nothing": (None, ["X"]),
    "a ragged list": ([[1, 2, 3, 4], [1, 2]], ["X"]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_matrix_of_counts_is_refused_and_changes_nothing(model, case):
    X, words = BAD[case]
    assert_refused(model, X, words)


@pytest.mark.parametrize("case", [case for case in BAD if "too" not in case])
def test_what_is_refused_leaves_a_model_unfitted(case):
    for algorithm in ("auto", "em"):
        model = hw.MultinomialMixture(2, algorithm=algorithm)
        refusal(model.fit, BAD[case][0])
        assert not model.__sklearn_is_fitted__() and not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_are_refused_for_their_values_and_for_their_names(kind):
    frame = kind(dict(zip("abcd", GOOD.T, strict=True)))
    model = hw.MultinomialMixture(2, random_state=0, warm_up=20).partial_fit(frame)
    for values in (["x", "y"], [1.0, None], [1.0, -1.0]):
        assert_refused(model, kind({"a": [1.0, 1.0], "b": [1.0, 1.0], "c": [1.0, 1.0], "d": values}), [])
    other = kind(dict(zip("dcba", GOOD.T, strict=True)))
    before = content(model)
    with pytest.raises(ValueError, match="feature names"):  # scikit-learn's own message, in lines
        model.partial_fit(other)
    unchanged = content(model) == before
    assert unchanged


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sample_weight": [-1.0, 1.0, 1.0]}, ["sample_weight"]),
        ({"sample_weight": [np.nan, 1.0, 1.0]}, ["sample_weight"]),
        ({"sample_weight": [0.0, 0.0, 0.0]}, ["sample_weight"]),
        ({"sample_weight": [1.0, 1.0]}, ["sample_weight"]),
        ({"sample_weight": [1e31, 1.0, 1.0]}, ["sample_weight"]),
        ({"labels": [0, 1]}, ["labels"]),
        ({"labels": [0, 1, 2]}, ["labels"]),
        ({"labels": [0, 1, -2]}, ["labels"]),
        ({"labels": [0, 1, 0.5]}, ["labels"]),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_weights_and_labels_are_checked(model, options, words, kind):
    assert_refused(model, kind(GOOD[:3]), words, **options)


# Damaged sparse matrices


def changed(kind, name, place, value):
    """Return a sparse matrix in which one number was changed after SciPy had checked it."""
    matrix = kind(np.eye(V))
    array = getattr(matrix, name).copy()
    array[place] = value
    setattr(matrix, name, array)
    return matrix


def shortened(kind, name, size):
    matrix = kind(np.eye(V))
    setattr(matrix, name, getattr(matrix, name)[:size])
    return matrix


DAMAGED = {
    "a column too far": lambda kind: changed(kind, "indices", 0, V),
    "a column much too far": lambda kind: changed(kind, "indices", 0, 10**6),
    "a column below zero": lambda kind: changed(kind, "indices", 1, -3),
    "pointers that fall": lambda kind: changed(kind, "indptr", 2, 0),
    "pointers below zero": lambda kind: changed(kind, "indptr", 1, -5),
    "pointers that do not start at zero": lambda kind: changed(kind, "indptr", 0, 1),
    "pointers beyond the end": lambda kind: changed(kind, "indptr", -1, 9),
    "pointers far beyond the end": lambda kind: changed(kind, "indptr", -1, 10**8),
    "too few values": lambda kind: shortened(kind, "data", 2),
    "too few columns": lambda kind: shortened(kind, "indices", 2),
    "too few pointers": lambda kind: shortened(kind, "indptr", 3),
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_damaged_rows_are_refused(damage, kind):
    model = hw.MultinomialMixture(2, random_state=0, warm_up=20).partial_fit(GOOD)
    assert_refused(model, DAMAGED[damage](kind), ["X is a damaged sparse matrix"])


CRASHING = """
import numpy as np
from scipy import sparse
from headwater.core.count_validation import check_counts
matrix = sparse.{kind}(np.eye(4))
matrix.{array}[0] = {value}
try:
    check_counts(matrix)
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("kind", "array", "value"),
    [("csc_array", "indices", 10**7), ("csc_matrix", "indptr[-1:]", 10**8), ("coo_array", "coords[0]", 10**7)],
)
def test_matrices_that_are_damaged_do_not_crash_on_the_way_to_rows(kind, array, value):
    # In a separate process: SciPy may crash on them.
    code = CRASHING.format(kind=kind, array=array, value=value)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"ended with signal {-ended.returncode}"
    assert "damaged" in ended.stdout


# What is learned


@pytest.mark.parametrize(
    "X",
    [
        [[1, 0, 2], [0, 3, 0]],
        np.array([[1, 0, 2], [0, 3, 0]], dtype=np.uint8),
        np.array([[1, 0, 2], [0, 3, 0]], dtype=np.int64),
        np.array([[1, 0, 2], [0, 3, 0]], dtype=np.float32),
        np.array([[1, 0, 2], [0, 3, 0]], dtype=np.float16),
        np.array([[1, 0, 2], [0, 3, 0]], dtype=object),
        np.asfortranarray([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]),
        sparse.csr_matrix([[1, 0, 2], [0, 3, 0]]),
        sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]], dtype=np.uint8)),
        sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]], dtype=np.float32)),
        sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]], dtype=np.longdouble)),
        sparse.csc_array([[1, 0, 2], [0, 3, 0]]),
        sparse.coo_array([[1, 0, 2], [0, 3, 0]]),
        sparse.lil_array([[1, 0, 2], [0, 3, 0]]),
        sparse.dok_array([[1, 0, 2], [0, 3, 0]]),
        sparse.dia_array([[1, 0, 2], [0, 3, 0]]),
        sparse.bsr_array([[1, 0, 2], [0, 3, 0]]),
        sparse.csr_array(np.array([[9, 9, 9], [1, 0, 2], [9, 9, 9], [0, 3, 0]]))[1::2],
        pd.DataFrame({"a": [1, 0], "b": [0, 3], "c": [2, 0]}, dtype="Int64"),
        pl.DataFrame({"a": [1, 0], "b": [0, 3], "c": [2, 0]}),
    ],
)
def test_counts_of_every_kind(X):
    rows = check_counts(X)
    np.testing.assert_array_equal(dense(rows), [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    if isinstance(rows, SparseRows):
        assert (rows.data.dtype, rows.indices.dtype, rows.indptr.dtype) == (np.float64, np.int32, np.int64)
        assert rows.shape == (2, 3) and rows.nnz == 3
        assert all(array.flags.c_contiguous for array in (rows.data, rows.indices, rows.indptr))
    else:
        assert rows.dtype == np.float64 and rows.flags.c_contiguous


def test_booleans_are_zeros_and_ones():
    wanted = np.eye(3)
    for X in (wanted.astype(bool), sparse.csr_array(wanted.astype(bool)), sparse.coo_matrix(wanted.astype(bool))):
        np.testing.assert_array_equal(dense(check_counts(X)), wanted)


def test_columns_in_no_order_and_named_twice_are_added_up():
    data, indices, indptr = np.array([1.0, 2.0, 3.0, 4.0]), np.array([3, 0, 3, 2]), np.array([0, 3, 3, 4])
    X = sparse.csr_array((data, indices, indptr), shape=(3, V))
    rows = check_counts(X)
    np.testing.assert_array_equal(dense(rows), [[2.0, 0.0, 0.0, 4.0], [0.0] * 4, [0.0, 0.0, 4.0, 0.0]])
    np.testing.assert_array_equal(rows.indices, [0, 3, 2])
    np.testing.assert_array_equal(X.data, [1.0, 2.0, 3.0, 4.0])  # the arrays of the caller are unchanged
    np.testing.assert_array_equal(X.indices, [3, 0, 3, 2])


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        (sparse.csr_array, (np.array([1, 1, 1]), np.array([0, 3]))),
        (sparse.csc_array, (np.array([0, 0, 0]), np.array([0, 0, 3, 3, 3]))),
        (sparse.coo_array, (([0, 0, 0], [1, 1, 1]),)),
        (sparse.coo_matrix, (([0, 0, 0], [1, 1, 1]),)),
    ],
)
def test_small_integers_do_not_overflow_when_they_are_added_up(kind, places):
    X = kind((np.array([200, 100, 100], dtype=np.uint8), *places), shape=(1, V))
    np.testing.assert_array_equal(dense(check_counts(X)), [[0.0, 400.0, 0.0, 0.0]])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_counts_near_the_end_of_the_integers(kind):
    X = np.full((30, V), 2**62, dtype=np.int64)
    X[::2, 0] = 1
    np.testing.assert_array_equal(dense(check_counts(kind(X))), X.astype(float))
    model = hw.MultinomialMixture(2, random_state=0, warm_up=10).partial_fit(kind(X))
    assert np.isfinite(model.score_samples(kind(X))).all()
    np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1.0)


def test_the_largest_count_is_still_a_count():
    for kind in (np.asarray, sparse.csr_array):
        assert dense(check_counts(kind([[LARGEST_COUNT, 0.0]]))).max() == LARGEST_COUNT


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("algorithm", ["auto", "em", "boem", "soem", "online-em", "vb", "online-vb", "quasi-bayes"])
def test_a_matrix_of_zeros_is_no_evidence(algorithm, kind):
    model = hw.MultinomialMixture(2, algorithm=algorithm, random_state=0, warm_up=5).fit(kind(np.zeros((20, V))))
    np.testing.assert_allclose(model.probabilities_, 1 / V, rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(kind(np.zeros((2, V)))), 0.0, atol=1e-12)
    if algorithm not in ("em", "vb"):
        before = model.partial_fit(kind(GOOD)).probabilities_
        after = model.partial_fit(kind(np.zeros((20, V)))).probabilities_
        if algorithm in ("auto", "boem", "online-vb", "quasi-bayes"):
            np.testing.assert_allclose(after, before, rtol=1e-9)


def test_rows_that_are_ready_are_not_copied():
    X = sparse.csr_array(GOOD)
    X.indptr, wanted = X.indptr.astype(np.int64), X
    rows = check_counts(X)
    assert np.shares_memory(rows.data, wanted.data)
    assert check_counts(rows) is rows
    assert check_counts(GOOD) is GOOD


def test_rows_that_may_not_be_written_to():
    wanted = hw.MultinomialMixture(2, random_state=0, warm_up=20).partial_fit(GOOD)
    X, matrix = GOOD.copy(), sparse.csr_array(GOOD)
    for array in (X, matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    for rows in (X, matrix):
        model = hw.MultinomialMixture(2, random_state=0, warm_up=20).partial_fit(rows)
        np.testing.assert_allclose(model.probabilities_, wanted.probabilities_, rtol=1e-8)


# One row


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([1, 2, 3, -1], ["Negative"]),
        ([1, 2, 3, np.nan], ["NaN"]),
        ([1, 2, 3, np.inf], ["infinity"]),
        ([1, 2, 3], ["3 features"]),
        ([[1, 2, 3, 4]], ["one dimension"]),
        (["a", "b", "c", "d"], ["numbers"]),
        ([1, 2, 3, 4j], ["Complex"]),
        ([], ["one dimension"]),
        (None, ["row"]),
        ({"a": 1}, ["knows no names"]),
    ],
)
def test_one_row_is_checked(model, x, words):
    before = content(model)
    for call in (model.learn_one, model.score_one, model.predict_one):
        sentence = refusal(call, x)
        for word in words:
            assert word in sentence, sentence
    unchanged = content(model) == before
    assert unchanged


def test_one_row_of_a_mapping():
    places = {"a": 0, "b": 1, "c": 2}
    np.testing.assert_array_equal(dense(check_count_items({"c": 2, "a": 1}, places, "it")), [[1.0, 0.0, 2.0]])
    np.testing.assert_array_equal(dense(check_count_items({}, places, "it")), [[0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(check_count_row({"x": 1, "y": 2}, None, None, "it"), [[1.0, 2.0]])
    assert "['d']" in refusal(check_count_items, {"a": 1, "d": 1}, places, "it")
    assert "NaN" in refusal(check_count_items, {"a": np.nan}, places, "it")
    assert "Negative" in refusal(check_count_items, {"a": -1}, places, "it")
    assert "numbers" in refusal(check_count_items, {"a": "one"}, places, "it")
    assert "one number" in refusal(check_count_items, {"a": [1, 2]}, places, "it")


def test_one_sparse_row():
    row = sparse.csr_array([[0.0, 2.0, 1.0]])
    np.testing.assert_array_equal(dense(check_count_row(row, None, 3, "it")), [[0.0, 2.0, 1.0]])
    assert "one row of 4 columns" in refusal(check_count_row, row, None, 4, "it")
    assert "one row" in refusal(check_count_row, sparse.csr_array(np.ones((2, 3))), None, 3, "it")


def test_frames_of_sparse_columns_stay_sparse():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).poisson(0.05, size=(40, 60)).astype(float)
    frame = pandas.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X), columns=[f"word {place}" for place in range(60)])
    found = check_counts(frame)
    assert isinstance(found, SparseRows)
    np.testing.assert_array_equal(dense(found), X)
    model = hw.MultinomialMixture(2, random_state=0, warm_up=20).partial_fit(frame)
    assert model.feature_names_in_[3] == "word 3"
    assert model.learn_one({"word 3": 2}).n_samples_seen_ == 41


# Sparse rows themselves


def test_sparse_rows_are_sliced_and_taken_as_arrays_are():
    rng = np.random.default_rng(1)
    X = rng.poisson(0.5, (30, 7)).astype(float)
    X[3:6] = 0.0
    rows = drop_zeros(X)
    mask = rng.uniform(size=30) < 0.5
    for place in (slice(None), slice(4, 20), slice(20, 4), slice(-5, None), slice(1, None, 3), slice(None, None, -1), mask,
                  np.array([5, 5, 0, 29, 3]), np.array([], dtype=int), slice(30, 40)):  # fmt: skip
        found = rows[place]
        np.testing.assert_array_equal(dense(found.copy()), X[place])
        assert len(found) == len(X[place]) and found.nnz == np.count_nonzero(X[place])
    np.testing.assert_array_equal(dense(rows[5:25][mask[5:25]].copy()), X[5:25][mask[5:25]])
    assert np.shares_memory(rows[4:20].data, rows.data) and not np.shares_memory(rows[4:20].copy().data, rows.data)
