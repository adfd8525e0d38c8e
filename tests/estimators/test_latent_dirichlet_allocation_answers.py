"""LatentDirichletAllocation: answers and errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
from naive import topics as naive
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from topic_models import (
    SPARSE,
    K,
    V,
    X,
    content,
    docs,
    lda,
    one_sentence,
    small,
)

import headwater as hw
from headwater.checks import check_estimator
from headwater.core.batch import Batch, drop_zeros

# Answers


def test_proportions_may_be_left_as_they_are():
    model = small().partial_fit(X)
    whole = model.transform(X, normalize=False)
    np.testing.assert_allclose(whole.sum(axis=1), 40.0 + model.doc_topic_prior_.sum())
    np.testing.assert_allclose(whole / whole.sum(axis=1, keepdims=True), model.transform(X))


def test_proportions_depend_on_the_document_alone():
    model = small().partial_fit(X)
    found = model.transform(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found > 0.0).all()
    some = np.random.default_rng(5).permutation(400)[:37]
    np.testing.assert_array_equal(model.transform(X[some]), found[some])
    np.testing.assert_array_equal(model.transform(np.vstack([X[3], X[3]])), found[[3, 3]])
    for row in (0, 17):
        np.testing.assert_array_equal(model.transform(X[[row]])[0], found[row])


def test_proportions_are_those_of_enumeration():
    model = small(doc_topic_prior=[0.3, 1.0, 0.5]).partial_fit(X)
    words = [[0, 0, 5], [1, 9, 9, 10], [4]]
    rows = np.array([naive.counts_of(one, V) for one in words])
    topics, alpha = model.topics_.T, model.doc_topic_prior_
    wanted = np.array([naive.expected(one, naive.posterior(one, topics, alpha)[0], topics, alpha)[1] for one in words])
    batch, parameters = Batch(drop_zeros(rows)), model._read().parameters
    found = np.mean([model._model.posterior(parameters, batch, key=key) for key in range(200)], axis=0)
    np.testing.assert_allclose(found, wanted, atol=0.01)
    exact = [naive.posterior(one, topics, alpha)[1] for one in words]
    bounds = model.score_samples(rows)
    assert (bounds <= np.add(exact, 1e-9)).all() and (bounds > np.subtract(exact, 1.0)).all()


def test_scores_and_perplexity():
    model = small().partial_fit(X)
    assert model.score(X) == pytest.approx(model.score_samples(X).sum())
    assert model.perplexity(X) == pytest.approx(np.exp(-model.score(X) / X.sum()))
    assert model.perplexity(SPARSE) == model.perplexity(X)
    assert 1.0 < model.perplexity(X) < V + 5


def test_documents_are_drawn_from_the_model():
    model = lda("online-vb", doc_topic_prior=0.4).partial_fit(docs(2000))
    rows, shares = model.sample(3000, 30)
    assert rows.shape == (3000, V) and (rows.sum(axis=1) == 30).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(rows.mean(axis=0) / 30, model.topics_.mean(axis=0), atol=0.02)
    assert (model.sample(5)[0].sum(axis=1) == 40).all()
    assert model.sample(3, [1, 0, 7])[0].sum(axis=1).tolist() == [1, 0, 7]
    for length in (-1, 2.5, [1, 2]):
        with pytest.raises(ValueError, match="length") as caught:
            model.sample(3, length)
        one_sentence(caught)
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)


@pytest.mark.parametrize("prior", [1e-8, 1e8])
def test_documents_are_drawn_under_any_prior(prior):
    rows, shares = small(doc_topic_prior=prior).partial_fit(X).sample(20)
    assert np.isfinite(shares).all() and np.isfinite(rows).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_the_scikit_learn_face():
    model = small()
    assert repr(model).startswith("LatentDirichletAllocation(")
    with pytest.raises(NotFittedError):
        model.transform(X)
    cloned = clone(model.partial_fit(X))
    assert not cloned._has_state() and cloned.get_params()["n_components"] == K
    assert list(model.get_feature_names_out()) == [f"latentdirichletallocation{k}" for k in range(K)]
    frame = model.set_output(transform="pandas").transform(pd.DataFrame(X))
    assert isinstance(frame, pd.DataFrame) and frame.shape == (400, K)
    assert "most probable words" in repr(model) and "400 rows of 12 columns" in repr(model)
    assert "<table" in model._repr_html_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(lda().fit_transform(X), lda().fit(X).transform(X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("algorithm", ["auto", "online-vb", "scvb0"])
def test_the_laws_and_the_checks_of_scikit_learn(algorithm):
    check_estimator(hw.LatentDirichletAllocation(3, algorithm=algorithm))


# Bad input


@pytest.mark.parametrize("vocabulary", ["fixed", "open"])
@pytest.mark.parametrize("seen", [60, 250])
def test_bad_input_leaves_the_model_as_it_was(vocabulary, seen):
    model = small(vocabulary=vocabulary).partial_fit(X[:seen])
    before = content(model)
    nan, negative, huge = X[:5].copy(), X[:5].copy(), X[:5].copy()
    nan[1, 2], negative[1, 2], huge[1, 2] = np.nan, -1.0, 1e200
    bad = [nan, negative, huge, X[:0], X[0], X[:5].astype(str) + "x", [["a"] * V] * 3, X[:5] + 1j, None, "text", X[None]]
    bad += [sparse.csr_array(negative), sparse.csr_array(nan), sparse.csr_array((0, V))]
    for rows in bad:
        for method in (model.partial_fit, model.update, model.transform, model.score_samples):
            with pytest.raises((ValueError, TypeError)) as caught:
                method(rows)
            one_sentence(caught)
    for weights in (-np.ones(5), np.full(5, np.nan), np.zeros(5), np.ones(4), "heavy"):
        with pytest.raises((ValueError, TypeError)) as caught:
            model.partial_fit(X[:5], sample_weight=weights)
        one_sentence(caught)
    assert content(model) == before
    assert model.n_features_in_ == V


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 0}, "n_components"),
        ({"k": 2.5}, "n_components"),
        ({"doc_topic_prior": 0.0}, "doc_topic_prior"),
        ({"doc_topic_prior": -1.0}, "doc_topic_prior"),
        ({"doc_topic_prior": np.inf}, "doc_topic_prior"),
        ({"doc_topic_prior": np.nan}, "doc_topic_prior"),
        ({"doc_topic_prior": "guess"}, "doc_topic_prior"),
        ({"doc_topic_prior": [1.0, 2.0]}, "doc_topic_prior must be 'learn', a positive number, or 3 of them"),
        ({"doc_topic_prior": [1.0, 2.0, 0.0]}, "doc_topic_prior"),
        ({"doc_topic_prior": [1.0, 2.0, np.nan]}, "doc_topic_prior"),
        ({"doc_topic_prior": ["a", "b", "c"]}, "doc_topic_prior"),
        ({"topic_word_prior": 0.0}, "topic_word_prior"),
        ({"topic_word_prior": np.inf}, "topic_word_prior"),
        ({"topic_word_prior": "learn"}, "topic_word_prior"),
        ({"vocabulary": "closed"}, "vocabulary"),
        ({"algorithm": "em"}, "cannot be learned by"),
        ({"half_life": 0.0}, "half_life"),
        ({"parts": 0}, "parts"),
        ({"warm_up": 0}, "warm_up"),
        ({"max_iter": -1}, "max_iter"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(options, words):
    for method in ("fit", "partial_fit"):
        with pytest.raises((ValueError, TypeError), match=words) as caught:
            getattr(lda(**options), method)(X)
        one_sentence(caught)


def test_perplexity_takes_sub_sampling_as_scikit_learn_does():
    model = lda().partial_fit(X)
    assert model.perplexity(X, sub_sampling=True) == model.perplexity(X, True) == model.perplexity(X)
    with pytest.raises(ValueError, match="sub_sampling must be True or False, got 'no'"):
        model.perplexity(X, sub_sampling="no")


def test_fit_transform_normalizes_if_asked_to_as_scikit_learn_does():
    whole = lda().fit_transform(X, normalize=False)
    np.testing.assert_allclose(whole.sum(axis=1), X.sum(axis=1) + 1.0)
    np.testing.assert_allclose(whole / whole.sum(axis=1, keepdims=True), lda().fit_transform(X))
