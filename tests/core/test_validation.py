"""Bad input gets the right exception and one sentence that names the argument, what was found and what is wanted."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from headwater.core.batch import NO_LABELS, NO_WEIGHTS
from headwater.core.statistics import LARGEST
from headwater.core.validation import check_labels, check_row, check_rows, check_weights, check_width, make_batch


def refusal(error, function, *arguments):
    """Make a call that must raise exactly this type of exception, and return its sentence."""
    with pytest.raises(error) as caught:
        function(*arguments)
    assert caught.type is error
    sentence = str(caught.value)
    assert sentence.strip() and "\n" not in sentence
    return sentence


def with_value(value, row=1, shape=(3, 2)):
    array = np.ones(shape)
    array[row] = value
    return array


# Rows


@pytest.mark.parametrize(
    "X",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        np.array([[1, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], dtype=np.uint8),
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        np.array([[1, 2], [3, 4]], dtype=np.float16),
        np.array([[1, 2], [3, 4]], dtype=">f8"),
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        np.arange(20.0).reshape(4, 5)[::3, 1:3] * 0 + [[1, 2], [3, 4]],
        np.array([[1, 9, 2, 9], [9, 9, 9, 9], [3, 9, 4, 9]], dtype=float)[::2, ::2],
        np.array([[4, 3], [2, 1]], dtype=float)[::-1, ::-1],
        np.array([[1, 2.0], [np.int8(3), np.float32(4)]], dtype=object),
        np.array([[Decimal(1), Fraction(2)], [3, 4]], dtype=object),
        np.array([["1", 2], [3, 4]], dtype=object),
        pd.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
        pd.DataFrame({"a": [1, 3], "b": [2, 4]}, dtype="Int64"),
        pl.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
    ],
)
def test_rows_of_every_kind_become_c_ordered_doubles(X):
    rows = check_rows(X)
    assert rows.dtype == np.float64 and rows.dtype.isnative and rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, [[1.0, 2.0], [3.0, 4.0]])


def test_booleans_are_zeros_and_ones():
    np.testing.assert_array_equal(check_rows([[True, False], [False, True]]), np.eye(2))


def test_rows_that_are_ready_are_not_copied():
    X = np.ones((3, 2))
    assert check_rows(X) is X


def test_the_largest_value_is_still_a_value():
    assert check_rows([[LARGEST, -LARGEST]]).max() == LARGEST


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (1.0, ["X", "two dimensions", "()", "Reshape your data"]),
        ([1.0, 2.0], ["X", "two dimensions", "(2,)", "X.reshape(-1, 1)", "X.reshape(1, -1)"]),
        (np.ones((2, 2, 2)), ["X", "two dimensions", "got 3"]),
        (np.ones((3, 0)), ["0 feature(s)", "(3, 0)", "minimum of 1"]),
        (np.ones((0, 3)), ["0 sample(s)", "(0, 3)", "minimum of 1"]),
        ([[1.0, 2.0], [3.0]], ["X", "array of numbers"]),
        (with_value(np.nan), ["X", "NaN", "row 1", "drop"]),
        (with_value(np.inf, row=2), ["X", "infinity", "row 2"]),
        (with_value(-np.inf, row=0), ["X", "infinity", "row 0"]),
        (with_value(-1e200), ["X", "1e+200", "1e+100", "rescale"]),
        (np.ones((2, 2)) + 1j, ["X", "Complex data not supported", "complex128"]),
        ([["a", "b"]], ["X", "numbers", "<U1", "encode"]),
        (np.array([["1", "2"]]), ["X", "numbers", "<U1", "encode"]),
        (np.array([[b"a"]]), ["X", "numbers", "S1"]),
        (np.array([["2024-01-01"]], dtype="datetime64[D]"), ["X", "numbers", "datetime64"]),
        (np.array([["a", 1.0]], dtype=object), ["X", "numbers", "object"]),
        (np.array([[None, 1.0]], dtype=object), ["X", "NaN", "row 0"]),
        (pd.DataFrame({"a": ["x", "y"]}), ["X", "numbers"]),
        (pd.DataFrame({"a": [1, None]}, dtype="Int64"), ["X"]),
        (pl.DataFrame({"a": ["x", "y"]}), ["X", "numbers"]),
        (pl.DataFrame({"a": [1.0, None]}), ["X", "NaN", "row 1"]),
    ],
)
def test_rows_are_refused(X, words):
    sentence = refusal(ValueError, check_rows, X)
    for word in words:
        assert word in sentence


def test_an_object_that_is_no_number_is_a_type_error():
    sentence = refusal(TypeError, check_rows, np.array([[{"a": 1}, 1.0]], dtype=object))
    assert "X must hold numbers" in sentence and "object" in sentence


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_rows_are_refused(kind):
    sentence = refusal(TypeError, check_rows, kind(np.eye(3)), "X", "GaussianMixture")
    for word in ("X", "sparse", "GaussianMixture", "X.toarray()"):
        assert word in sentence


def test_the_name_of_the_argument_is_in_the_sentence():
    assert refusal(ValueError, check_rows, [1.0], "rows").startswith("rows must have two dimensions")


def test_width():
    check_width(np.ones((2, 3)), 3, "GaussianMixture")
    sentence = refusal(ValueError, check_width, np.ones((2, 3)), 4, "GaussianMixture")
    assert sentence == "X has 3 features, but GaussianMixture is expecting 4 features as input"


# Weights


def test_no_weights():
    assert check_weights(None, 3) is NO_WEIGHTS


@pytest.mark.parametrize(
    "weights",
    [
        [1, 0, 2], (1.0, 0.0, 2.0), np.array([1, 0, 2], dtype=np.float32), np.array([1, 0, 2], dtype=np.uint8),
        np.array([1, 0, 2], dtype=object), np.array([2.0, 0.0, 1.0])[::-1], pd.Series([1, 0, 2]), pl.Series([1, 0, 2]),
    ],
)  # fmt: skip
def test_weights_of_every_kind(weights):
    checked = check_weights(weights, 3)
    assert checked.dtype == np.float64 and checked.flags.c_contiguous
    np.testing.assert_array_equal(checked, [1.0, 0.0, 2.0])


@pytest.mark.parametrize("weight", [2, 2.0, np.float32(2), np.int64(2)])
def test_one_weight_for_all_rows(weight):
    np.testing.assert_array_equal(check_weights(weight, 3), [2.0, 2.0, 2.0])


def test_boolean_weights_pick_rows():
    np.testing.assert_array_equal(check_weights([True, False, True], 3), [1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(2), ["(2,)", "(3,)", "one weight per row"]),
        ([], ["(0,)", "(3,)"]),
        (np.ones((3, 1)), ["1D", "(3, 1)"]),
        ([1.0, -2.5, 1.0], ["negative", "-2.5"]),
        (-1.0, ["negative", "-1"]),
        (np.zeros(3), ["positive", "zeros only"]),
        (0, ["positive", "zeros only"]),
        ([1.0, np.nan, 1.0], ["NaN", "row 1"]),
        ([1.0, 1.0, np.inf], ["infinity", "row 2"]),
        (np.nan, ["NaN", "row 0"]),
        ([1.0, 1.0, 1e101], ["1e+101", "1e+100"]),
        (["a", "b", "c"], ["numbers", "<U1"]),
        (np.ones(3) * 1j, ["Complex", "complex128"]),
    ],
)
def test_weights_are_refused(weights, words):
    sentence = refusal(ValueError, check_weights, weights, 3)
    for word in ("sample_weight", *words):
        assert word in sentence


# Labels


def test_no_labels():
    assert check_labels(None, 3, 2) is NO_LABELS


@pytest.mark.parametrize(
    "labels",
    [
        [0, -1, 1], [0.0, -1.0, 1.0], np.array([0, -1, 1], dtype=np.int8), np.array([0, -1, 1], dtype=object),
        np.array([1, -1, 0])[::-1], pd.Series([0, -1, 1]), pl.Series([0, -1, 1]),
    ],
)  # fmt: skip
def test_labels_of_every_kind(labels):
    checked = check_labels(labels, 3, 2)
    assert checked.dtype == np.int64 and checked.flags.c_contiguous
    np.testing.assert_array_equal(checked, [0, -1, 1])


def test_boolean_labels_are_components_zero_and_one():
    np.testing.assert_array_equal(check_labels([True, False], 2, 2), [1, 0])


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1], ["(2,)", "(3,)"]),
        ([[0], [1], [0]], ["(3, 1)", "(3,)"]),
        (0, ["()", "(3,)"]),
        ([0, -2, 1], ["-1", "-2"]),
        ([0, 2, 1], ["n_components - 1", "got 2"]),
        ([0, 0.5, 1], ["whole numbers", "-1"]),
        ([0, np.nan, 1], ["NaN", "row 1"]),
        ([0, np.inf, 1], ["infinity", "row 1"]),
        (["a", "b", "a"], ["numbers", "<U1"]),
    ],
)
def test_labels_are_refused(labels, words):
    sentence = refusal(ValueError, check_labels, labels, 3, 2)
    for word in ("labels", *words):
        assert word in sentence


# Batches


def test_rows_of_weight_zero_are_left_out_with_their_labels():
    X, weights, labels = np.arange(6.0).reshape(3, 2), np.array([1.0, 0.0, 2.0]), np.array([0, 1, -1])
    batch = make_batch(X, weights, labels)
    np.testing.assert_array_equal(batch.X, X[[0, 2]])
    np.testing.assert_array_equal(batch.weights, [1.0, 2.0])
    np.testing.assert_array_equal(batch.labels, [0, -1])


def test_a_batch_without_zeros_holds_the_very_rows():
    X = np.ones((3, 2))
    assert make_batch(X, NO_WEIGHTS, NO_LABELS).X is X
    assert make_batch(X, np.ones(3), NO_LABELS).X is X


# One row


@pytest.mark.parametrize(
    "x",
    [
        [1, 2], (1.0, 2.0), np.array([1.0, 2.0]), np.array([1, 2], dtype=np.float32), np.array([1, 2], dtype=object),
        np.array([2.0, 9.0, 1.0])[::-2], [True, 2], {"a": 1, "b": 2}, {"b": 2, "a": 1}, pd.Series([1.0, 2.0]),
    ],
)  # fmt: skip
def test_one_row_of_every_kind(x):
    row = check_row(x, np.array(["a", "b"], dtype=object), 2)
    assert row.shape == (1, 2) and row.dtype == np.float64 and row.flags.c_contiguous
    np.testing.assert_array_equal(row, [[1.0, 2.0]])


def test_a_mapping_names_the_columns_if_nothing_did_before():
    np.testing.assert_array_equal(check_row({"b": 2, "a": 1}, None, None), [[2.0, 1.0]])


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ({"a": 1}, ["['a', 'b']", "['a']"]),
        ({"a": 1, "b": 2, "c": 3}, ["['a', 'b']", "['a', 'b', 'c']"]),
        ({"a": 1, "c": 3}, ["['a', 'b']", "['a', 'c']"]),
        ({}, ["['a', 'b']", "[]"]),
        ([1.0], ["1 features", "2 features"]),
        ([[1.0, 2.0]], ["the row", "one dimension", "(1, 2)"]),
        (1.0, ["the row", "one dimension", "()"]),
        ([], ["the row", "at least one value", "(0,)"]),
        ([1.0, np.nan], ["the row", "NaN"]),
        ({"a": np.inf, "b": 1}, ["the row", "infinity"]),
        ([1.0, 1e101], ["the row", "1e+101"]),
        (["a", "b"], ["the row", "numbers"]),
        ({"a": "x", "b": 1.0}, ["the row", "numbers"]),
        ([1.0, 1j], ["the row", "Complex"]),
    ],
)
def test_one_row_is_refused(x, words):
    sentence = refusal(ValueError, check_row, x, np.array(["a", "b"], dtype=object), 2)
    for word in words:
        assert word in sentence


def test_a_ragged_row_is_refused_in_our_words():
    sentence = refusal(ValueError, check_row, [1.0, [2.0, 3.0]], None, 2)
    assert "the row" in sentence
