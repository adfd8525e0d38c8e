"""completion_perplexity: how well topics predict the other half of new documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_random_state

from headwater.core.batch import Batch, SparseRows, drop_zeros
from headwater.core.chunk import Chunk, Chunks
from headwater.core.count_validation import check_counts
from headwater.core.statistics import Array
from headwater.core.validation import check_threads, numeric
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.documents import DocumentReader
from headwater.io.vocabulary import documents_of
from headwater.kernels.topics import completed_score
from headwater.models.topics import Topics

SMALLEST = 1e-12  # probability of a word, so that one that a topic model excludes does not end the comparison


def completion_perplexity(
    topics: object, X: Rows, doc_topic_prior: Values = None, *, random_state: RandomState = 0, n_threads: int | None = None
) -> float:
    """Return the perplexity of one half of each document's words, predicted from the other half.

    Every token goes to either half at random. From the first half the proportions of the document are found by Gibbs sampling
    at the given topics and prior; the second half is scored by exp(-mean log p), p = sum over topics of proportion times
    probability. So nothing is fitted to the words that are scored, and the measure is the same for topics from any library.
    A perplexity by a variational bound (as scikit-learn's `perplexity`) also depends on how loose the bound is.

    Parameters
    ----------
    topics : estimator or array-like of shape (n_components, n_features)
        A fitted model with `components_`, of headwater, scikit-learn or others; or the topics, which are normalised.
    X : list of str, array-like, sparse matrix of shape (n_samples, n_features), or stream
        Documents that were not learned from: whole counts, or texts, for a model that learned texts.
    doc_topic_prior : float or array-like of shape (n_components,), optional
        Dirichlet parameters of the proportions. By default `doc_topic_prior_` of the model, or 1 / n_components.
    random_state : int, RandomState instance or None, default=0
        Decides the halves and the draws.
    n_threads : int, optional
        Threads; all cores by default. The result does not depend on it.

    Returns
    -------
    perplexity : float
        Lower is better; `n_features` for topics that know nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.dirichlet(np.full(50, 0.1), size=3)
    >>> documents = rng.multinomial(80, rng.dirichlet([0.3] * 3, size=200) @ topics)
    >>> bool(hw.completion_perplexity(topics, documents) < hw.completion_perplexity(np.ones((3, 50)), documents))
    True
    >>> round(hw.completion_perplexity(np.ones((3, 50)), documents), 6)
    50.0
    """
    n_threads = check_threads(n_threads)
    rows = _counts_of(topics, X)
    table, prior = _topics_of(topics, doc_topic_prior, rows.width)
    if getattr(topics, "vocabulary", "") == "open":
        rows = rows.widened(table.shape[1])
    if rows.width != table.shape[1]:
        raise ValueError(f"X has {rows.width} features, but the topics have {table.shape[1]}")
    rows = rows.copy()
    if np.any(rows.data != np.round(rows.data)):
        raise ValueError("X must hold whole counts: each of them goes to one half of its document")
    if np.any(rows.data > 2.0**31):
        raise ValueError(f"X contains a count of {rows.data.max():.3g}, but no more than 2**31 can be cut in halves")
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    first = np.random.default_rng(seed).binomial(rows.data.astype(np.int64), 0.5).astype(float)
    second = rows.data - first
    if not second.sum():
        raise ValueError("X must hold at least a few words, got no second half")
    model = Topics(len(table), 1.0, tuple(prior.tolist()))
    parameters = model.given(table)
    seen = Batch(SparseRows(first, rows.indices, rows.indptr, rows.width).without_zeros())
    proportions = model.posterior(parameters, seen, n_threads, seed)
    hidden = SparseRows(second, rows.indices, rows.indptr, rows.width)
    word_major = np.ascontiguousarray(table.T)
    score = completed_score(hidden.indptr, hidden.indices, hidden.data, 0, len(hidden), word_major, proportions)
    return float(np.exp(-score / second.sum()))


def _counts_of(topics: object, X: Rows) -> SparseRows:
    """Counts of the documents; a model of ours says which words it knows, and whether these are its columns."""
    if isinstance(X, Chunks):
        X = X.at_once()["X"]
    if isinstance(topics, DocumentReader):
        rows: SparseRows = topics._rows(X).X
        return rows
    if not isinstance(X, Chunk) and documents_of(X) is not None:
        raise ValueError("X must hold counts of words, since topics has no vocabulary, got documents")
    checked = check_counts(X, owner="completion_perplexity")
    return checked if isinstance(checked, SparseRows) else drop_zeros(checked)


def _topics_of(topics: Any, doc_topic_prior: Values, width: int) -> tuple[Array, Array]:
    """Normalised topics (K, V), and the prior of the proportions (K,); an open vocabulary is as wide as it is asked for."""
    table = topics
    if hasattr(topics, "fit"):
        check_is_fitted(topics)
        if not hasattr(topics, "components_"):
            raise TypeError(f"topics must be a topic model or an array, got {type(topics).__name__}, which has no components_")
        table = topics._seen_by(width).all().T if getattr(topics, "vocabulary", "") == "open" else topics.components_
        if doc_topic_prior is None:
            doc_topic_prior = getattr(topics, "doc_topic_prior_", None)
    table = np.array(numeric(table, "topics"), dtype=float)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"topics must have two dimensions (topics, words), got shape {table.shape}")
    sums = table.sum(axis=1, keepdims=True)
    if not np.isfinite(table).all() or table.min() < 0.0 or not (sums > 0.0).all():
        raise ValueError("topics must hold finite numbers that are not negative, and some that are positive in each")
    table = np.maximum(table / sums, SMALLEST)
    table /= table.sum(axis=1, keepdims=True)
    prior = np.asarray(numeric(1.0 / len(table) if doc_topic_prior is None else doc_topic_prior, "doc_topic_prior"), float)
    if prior.shape not in ((), (len(table),)) or not np.isfinite(prior).all() or not (prior > 0.0).all():
        raise ValueError(f"doc_topic_prior must be positive: a number, or one for each of the {len(table)} topics")
    return table, np.broadcast_to(prior, (len(table),)).copy()
