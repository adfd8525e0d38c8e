"""MultinomialMixture: formats of rows, labels and weights, and single rows."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from count_models import (
    ADDING,
    KINDS,
    ONLINE,
    SPARSE,
    TOPICS,
    K,
    V,
    X,
    assert_close,
    assert_sound,
    content,
    given,
    mixture,
    unconverged,
)
from naive import multinomial as naive
from scipy import sparse
from sklearn.naive_bayes import MultinomialNB

# Formats of rows


def damaged_order(X):
    """Return a CSR matrix with unordered columns, and with counts that are split in two."""
    data, indices, indptr = [], [], [0]
    for row in X:
        columns = np.flatnonzero(row)[::-1]
        indices += [*columns, *columns[:2]]
        data += [*(row[columns] - np.isin(columns, columns[:2])), *np.ones(len(columns[:2]))]
        indptr.append(len(data))
    return sparse.csr_array((np.array(data), indices, indptr), shape=X.shape)


def with_zeros(X):
    """Return a CSR matrix that stores its zeros."""
    n, width = X.shape
    return sparse.csr_array((X.ravel(), np.tile(np.arange(width), n), np.arange(0, n * width + 1, width)), shape=X.shape)


FORMS = {
    "list": lambda X: X.tolist(),
    "integers": lambda X: X.astype(int),
    "small integers": lambda X: X.astype(np.uint8),
    "single precision": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "objects": lambda X: X.astype(object),
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csr of bytes": lambda X: sparse.csr_array(X.astype(np.uint8)),
    "csc": sparse.csc_array,
    "coo": sparse.coo_matrix,
    "lil": sparse.lil_matrix,
    "dok": sparse.dok_array,
    "bsr": sparse.bsr_array,
    "no order": damaged_order,
    "zeros stored": with_zeros,
    "pandas": lambda X: pd.DataFrame(X).rename(columns=str),
    "polars": lambda X: pl.DataFrame(X),
    "pandas, sparse": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)).rename(columns=str),
}


@pytest.mark.covering
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", ["auto", "boem", "em"])
def test_the_form_of_the_rows_changes_nothing(form, algorithm):
    rows = FORMS[form](X)
    wanted, found = (mixture(algorithm, max_iter=5, tol=0.1).fit(one) for one in (X, rows))
    assert_close(found, wanted, 1e-6)
    np.testing.assert_allclose(found.predict_proba(rows), wanted.predict_proba(X), rtol=1e-6, atol=1e-9)
    if algorithm != "em":
        wanted, found = (mixture(algorithm).partial_fit(one) for one in (X, rows))
        assert_close(found, wanted, 1e-6)


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("parts", [1, 3])
def test_dense_and_sparse_chunks_may_alternate(algorithm, parts):
    wanted, found = mixture(algorithm, parts=parts).partial_fit(X), mixture(algorithm, parts=parts)
    for number, at in enumerate(range(0, 400, 23)):
        found.partial_fit((X if number % 2 else SPARSE)[at : at + 23])
    assert_close(found, wanted, 1e-6)


def test_counts_of_any_size():
    rng = np.random.default_rng(6)
    for length in (0, 1, 3, 100_000):
        rows = rng.multinomial(length, TOPICS[rng.integers(K, size=150)]).astype(float)
        for algorithm in ONLINE:
            assert_sound(mixture(algorithm).partial_fit(sparse.csr_array(rows)), rows[:10])


def test_weights_that_are_not_whole():
    rng = np.random.default_rng(7)
    rows = X * rng.uniform(0.0, 2.0, X.shape)
    for algorithm in ("auto", "quasi-bayes", "em"):
        model = mixture(algorithm).fit(rows)
        assert_sound(model, rows)
        assert np.mean(model.predict(rows) == mixture(algorithm).fit(sparse.csr_array(rows)).predict(rows)) == 1.0


# Labels and weights


@pytest.mark.parametrize("algorithm", ["em", *ADDING])
def test_rows_that_are_all_labelled_are_counted_as_in_naive_bayes(algorithm):
    bayes = MultinomialNB(alpha=0.1).fit(X, KINDS)
    model = mixture(algorithm)
    model = model.fit(X, labels=KINDS) if algorithm == "em" else model.partial_fit(SPARSE, labels=KINDS)
    np.testing.assert_allclose(model.probabilities_, np.exp(bayes.feature_log_prob_), rtol=1e-9)
    smoothing = 0.0 if algorithm == "em" else 1.0
    np.testing.assert_allclose(model.weights_, (bayes.class_count_ + smoothing) / (len(X) + K * smoothing), rtol=1e-9)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_some_labels_name_the_components(order, way):
    order = np.array(order)
    labels = np.where(np.arange(400) < 40, order[KINDS], -1)
    model = getattr(mixture(), way)(SPARSE, labels=labels)
    np.testing.assert_allclose(model.probabilities_[order], TOPICS, atol=0.05)
    np.testing.assert_array_equal(model.predict(X[:40]), labels[:40])


def test_a_labelled_row_scores_its_joint_probability():
    model = mixture("boem").partial_fit(X[:200])
    wanted = naive.log_joint(np.log(model.weights_), np.log(model.probabilities_.T), X[200:201])[0]
    for label in range(K):
        assert copy.deepcopy(model).update(X[200:201], labels=[label])[0] == pytest.approx(wanted[label], rel=1e-10)


@pytest.mark.parametrize("algorithm", ["em", "vb"])
def test_whole_weights_are_copies_and_zero_is_absent(algorithm):
    times = np.random.default_rng(8).integers(0, 4, len(X))
    with unconverged():
        weighted = mixture(algorithm, max_iter=5, **given()).fit(SPARSE, sample_weight=times)
        copied = mixture(algorithm, max_iter=5, **given()).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.probabilities_, copied.probabilities_, rtol=1e-9)
    np.testing.assert_allclose(weighted.weights_, copied.weights_, rtol=1e-9)
    assert weighted.lower_bound_ == pytest.approx(copied.lower_bound_, rel=1e-12)


@pytest.mark.parametrize("algorithm", ONLINE)
def test_rows_of_weight_zero_are_absent_from_a_stream(algorithm):
    times = (np.arange(400) % 3).astype(float)
    with_them, without = mixture(algorithm), mixture(algorithm).partial_fit(X[times > 0], sample_weight=times[times > 0])
    for at in range(0, 400, 50):
        with_them.partial_fit(SPARSE[at : at + 50], sample_weight=times[at : at + 50])
    assert_close(with_them, without, 1e-7)


# One row

WORDS = [f"word {number}" for number in range(V)]


@pytest.mark.parametrize("algorithm", ONLINE)
def test_learn_one_is_partial_fit_of_one_row(algorithm):
    one, many = mixture(algorithm, warm_up=20), mixture(algorithm, warm_up=20).partial_fit(X[:60])
    for row in X[:60]:
        one.learn_one(row)
    assert_close(one, many, 1e-6)
    assert one.score_one(X[70]) == pytest.approx(one.score_samples(X[70:71])[0], abs=0.5)
    assert one.predict_one(X[70]) == one.predict(X[70:71])[0]


def test_words_that_a_mapping_does_not_have_are_zero():
    frame = pd.DataFrame(X, columns=WORDS)
    model = mixture("boem").partial_fit(frame)
    row = {name: value for name, value in zip(WORDS, X[5], strict=True) if value}
    assert len(row) < V
    assert model.score_one(row) == pytest.approx(model.score_samples(frame[5:6])[0], rel=1e-12)
    assert model.predict_one(row) == model.predict(frame[5:6])[0]
    wanted = copy.deepcopy(model).partial_fit(frame[5:6])
    assert_close(model.learn_one(row), wanted)
    before = content(model)
    assert model.score_one({}) == pytest.approx(0.0, abs=1e-12)
    for call in (model.score_one, model.predict_one, model.learn_one):
        with pytest.raises(ValueError, match="not know: \\['unknown'\\]") as caught:
            call({**row, "unknown": 1})
        assert "\n" not in str(caught.value)
        with pytest.raises(ValueError, match="Negative values"):
            call({WORDS[0]: -1})
    unchanged = content(model) == before
    assert unchanged
