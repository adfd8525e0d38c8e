"""completion_perplexity: one measure for the topics of any library."""

import numpy as np
import pandas as pd
import pytest
from naive import topics as naive
from scipy import sparse
from sklearn import decomposition
from sklearn.exceptions import NotFittedError
from topic_models import TOPICS, K, V, X, docs, lda, one_sentence, small

import headwater as hw


def halves(rows, random_state=0):
    """Return the two halves of each document."""
    from sklearn.utils.validation import check_random_state

    seed = int(check_random_state(random_state).randint(2**31 - 1))
    held = rows[rows > 0].astype(np.int64)
    first = np.zeros_like(rows)
    first[rows > 0] = np.random.default_rng(seed).binomial(held, 0.5)
    return first, rows - first


@pytest.mark.slow
def test_completion_is_that_of_exact_proportions():
    rows, alpha = docs(200, length=8), np.array([0.4, 0.7, 0.2])
    first, second = halves(rows)
    assert (first + second == rows).all() and first.any(axis=1).mean() > 0.9
    score = 0.0
    for known, hidden in zip(first, second, strict=True):
        words = np.repeat(np.arange(V), known.astype(int))
        share = (
            naive.expected(words, naive.posterior(words, TOPICS.T, alpha)[0], TOPICS.T, alpha)[1] if len(words) < 7 else None
        )
        share = alpha / alpha.sum() if not len(words) else share
        if share is None:
            continue
        score += hidden @ np.log(TOPICS.T @ share)
    kept = np.array([known.sum() < 7 for known in first])
    wanted = np.exp(-score / second[kept].sum())
    assert kept.all() or kept.mean() > 0.95
    assert hw.completion_perplexity(TOPICS, rows, alpha) == pytest.approx(wanted, rel=0.02)


def test_completion_compares_topics_of_every_origin():
    rows = docs(300, seed=7)
    theirs = decomposition.LatentDirichletAllocation(K, random_state=0).fit(X)
    ours = small().partial_fit(X)
    truth = hw.completion_perplexity(TOPICS, rows, 0.4)
    for model in (theirs, ours, theirs.components_, ours.topics_, pd.DataFrame(ours.components_)):
        assert truth * 0.99 < hw.completion_perplexity(model, rows) < V
    assert hw.completion_perplexity(5.0 * TOPICS, rows, 0.4) == pytest.approx(truth, rel=1e-9)
    assert hw.completion_perplexity(TOPICS, sparse.csc_array(rows), 0.4) == truth
    assert hw.completion_perplexity(TOPICS, rows, 0.4, n_threads=1) == hw.completion_perplexity(TOPICS, rows, 0.4, n_threads=2)
    assert hw.completion_perplexity(TOPICS, rows, 0.4, random_state=1) != truth
    assert hw.completion_perplexity(np.ones((2, V)), rows) == pytest.approx(V)
    own = hw.completion_perplexity(theirs, rows)
    assert own == hw.completion_perplexity(theirs.components_, rows, theirs.doc_topic_prior_)


def test_completion_of_words_that_topics_exclude_is_finite():
    topics = TOPICS.copy()
    topics[:, 0] = 0.0
    assert np.isfinite(hw.completion_perplexity(topics, X))


@pytest.mark.parametrize(
    ("topics", "rows", "options", "words"),
    [
        (TOPICS, X[:, :5], {}, "features"),
        (TOPICS, X * 0.5 + 0.1, {}, "whole"),
        (TOPICS, -X, {}, "Negative"),
        (TOPICS, X * 0.0, {}, "words"),
        (TOPICS, X * 1e12, {}, "2\\*\\*31"),
        (TOPICS, "text", {}, "."),
        (TOPICS[0], X, {}, "two dimensions"),
        (-TOPICS, X, {}, "not negative"),
        (TOPICS * np.nan, X, {}, "."),
        (TOPICS * 0.0, X, {}, "positive"),
        (TOPICS[:0], X, {}, "two dimensions|shape"),
        ("topics", X, {}, "topics"),
        (TOPICS, X, {"doc_topic_prior": -1.0}, "doc_topic_prior"),
        (TOPICS, X, {"doc_topic_prior": [1.0, 2.0]}, "doc_topic_prior"),
        (TOPICS, X, {"doc_topic_prior": "learn"}, "doc_topic_prior"),
    ],
)
def test_completion_refuses_nonsense_in_one_sentence(topics, rows, options, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        hw.completion_perplexity(topics, rows, **options)
    one_sentence(caught)


def test_completion_refuses_models_that_have_not_learned():
    for model in (lda(), decomposition.LatentDirichletAllocation()):
        with pytest.raises(NotFittedError):
            hw.completion_perplexity(model, X)
    with pytest.raises((ValueError, TypeError, AttributeError)) as caught:
        hw.completion_perplexity(
            hw.GaussianMixture(2, random_state=0).partial_fit(np.random.default_rng(0).normal(size=(50, V))), X
        )
    one_sentence(caught)
    assert "components_" in str(caught.value) or "topics" in str(caught.value)
