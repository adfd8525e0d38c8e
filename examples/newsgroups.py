"""Twenty newsgroups: documents clustered in one pass by their words, with some, all or none of the labels.

``python -m pages newsgroups`` measures it and writes docs/examples/newsgroups.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import MultinomialNB

import headwater as hw
from examples import newsgroups_values as values
from examples.newsgroups_values import FIRST, FIT, KMEANS, NB, STARTED, STREAM
from pages.page import Measures, Page
from pages.results import Figures

FILE = "newsgroups20/newsgroups20.npz"

CHUNK = 500
FOLDS = 3  # of the labelled documents, to choose naive Bayes' alpha; so many of each group are labelled at least
ALPHAS = (0.001, 0.01, 0.1, 1.0)
KMEANS_STARTS = 3
TOP_WORDS = 8
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Scale:
    """How much is done: seeds, percentages of labels, documents of each part."""

    seeds: int = 10
    percentages: tuple[int, ...] = (0, 1, 10, 100)
    documents: int | None = None


# The documents


@dataclass(frozen=True)
class Corpus:
    """Counts of words by document, the group of each, and the names of groups and words."""

    learn: csr_array
    learn_groups: Labels
    judge: csr_array
    judge_groups: Labels
    names: list[str]
    vocabulary: list[str]

    @classmethod
    def load(cls, path: Path, at_most: int | None = None) -> Corpus:
        with np.load(path) as file:
            ends = file["indptr"].astype(np.int32)
            words = (file["data"].astype(float), file["indices"].astype(np.int32), ends)
            rows = csr_array(words, shape=tuple(file["shape"].tolist()))
            groups, test = file["label"].astype(np.int64), file["is_test"].astype(bool)
            names, vocabulary = file["label_names"].tolist(), file["vocab"].tolist()
        parts = []
        for part in (np.flatnonzero(~test), np.flatnonzero(test)):
            kept = part if at_most is None else part[:: -(-len(part) // at_most)]
            parts += [rows[kept], groups[kept]]
        return cls(*parts, names, vocabulary)

    def labels(self, percentage: int, rng: np.random.Generator) -> Labels:
        """The group of so many percent of the documents of each group, drawn at random; -1 for the others."""
        labels = np.full(len(self.learn_groups), -1)
        for group in range(len(self.names)) if percentage else ():
            own = rng.permutation(np.flatnonzero(self.learn_groups == group))
            number = max(FOLDS, round(percentage / 100 * len(own)))
            labels[own[:number]] = group
        return labels


@dataclass(frozen=True)
class Learned:
    """Predictions of a learner for the test documents: groups, and log-probability per word if it has one; and its cost."""

    predicted: Labels
    seconds: float
    score: float | None = None
    model: Any = None


# The learners: each takes the documents, their labels, the order of the stream, and a seed


def mixture(corpus: Corpus, seed: int) -> hw.MultinomialMixture:
    """Return an unfitted mixture of multinomials, with one component for each group."""
    return hw.MultinomialMixture(len(corpus.names), random_state=seed, n_threads=1)


def fed(model: hw.MultinomialMixture, corpus: Corpus, labels: Labels, order: Labels) -> hw.MultinomialMixture:
    """Stream documents in this order, in chunks."""
    for begin in range(0, len(order), CHUNK):
        chunk = order[begin : begin + CHUNK]
        model.partial_fit(corpus.learn[chunk], labels=labels[chunk])
    return model


def judged(learn: Callable[[], hw.MultinomialMixture], corpus: Corpus) -> Learned:
    """Learn, with CPU seconds, and predict the test documents."""
    began = time.process_time()
    model = learn()
    _ = model.weights_  # reading ends an incomplete warm-up, and folds the last rows
    seconds = time.process_time() - began
    score = float(model.score_samples(corpus.judge).sum() / corpus.judge.sum())
    return Learned(model.predict(corpus.judge), seconds, score, model)


def stream(corpus: Corpus, labels: Labels, order: Labels, seed: int) -> Learned:
    """One pass."""
    return judged(lambda: fed(mixture(corpus, seed), corpus, labels, order), corpus)


def labelled_first(corpus: Corpus, labels: Labels, order: Labels, seed: int) -> Learned:
    """One pass that begins with the labelled documents."""
    order = order[np.argsort(labels[order] < 0, kind="stable")]
    return judged(lambda: fed(mixture(corpus, seed), corpus, labels, order), corpus)


def started(corpus: Corpus, labels: Labels, order: Labels, seed: int) -> Learned:
    """A start on the labelled documents alone, then one pass over the others."""
    known, others = order[labels[order] >= 0], order[labels[order] < 0]

    def learn() -> hw.MultinomialMixture:
        model = mixture(corpus, seed).warm_start_from(corpus.learn[known], labels=labels[known])
        return fed(model, corpus, labels, others)

    return judged(learn, corpus)


def fitted(corpus: Corpus, labels: Labels, order: Labels, seed: int) -> Learned:
    """All documents in memory."""

    return judged(lambda: mixture(corpus, seed).fit(corpus.learn[order], labels=labels[order]), corpus)


def naive_bayes(corpus: Corpus, labels: Labels, order: Labels, seed: int) -> Learned:
    """Learns from the labelled documents only; its alpha is chosen by folds of these."""
    known = order[labels[order] >= 0]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    began = time.process_time()
    search = GridSearchCV(MultinomialNB(), {"alpha": ALPHAS}, cv=folds).fit(corpus.learn[known], labels[known])
    seconds = time.process_time() - began
    joint = search.best_estimator_.predict_joint_log_proba(corpus.judge)
    return Learned(joint.argmax(axis=1), seconds, float(logsumexp(joint, axis=1).sum() / corpus.judge.sum()))


def k_means(corpus: Corpus, labels: Labels, order: Labels, seed: int) -> Learned:
    """Mini-batch k-means on tf-idf, labels ignored."""
    began = time.process_time()
    scale = TfidfTransformer(norm="l2", sublinear_tf=True)
    rows = scale.fit_transform(corpus.learn[order])
    model = MiniBatchKMeans(len(corpus.names), n_init=KMEANS_STARTS, random_state=seed).fit(rows)
    seconds = time.process_time() - began
    return Learned(model.predict(scale.transform(corpus.judge)).astype(np.int64), seconds)


LEARNERS = {STREAM: stream, FIRST: labelled_first, STARTED: started, FIT: fitted, NB: naive_bayes, KMEANS: k_means}
# The learners without labels, with some, and with all.
NONE, SOME, ALL = (STREAM, FIT, KMEANS), (STREAM, FIRST, STARTED, FIT, NB), (STREAM, FIT, NB)


# Outcomes


def matched(predicted: Labels, groups: Labels, number: int) -> Labels:
    """The group of each cluster in the best one-to-one matching of clusters to groups."""
    table = np.zeros((number, number))
    np.add.at(table, (predicted, groups), 1.0)
    return linear_sum_assignment(-table)[1]


def outcome(learned: Learned, corpus: Corpus) -> Figures:
    """How the predictions agree with the groups of the documents to judge by."""
    groups = corpus.judge_groups
    names = matched(learned.predicted, groups, len(corpus.names))
    return {
        "accuracy": float(np.mean(learned.predicted == groups)),
        "matched": float(np.mean(names[learned.predicted] == groups)),
        "nmi": float(normalized_mutual_info_score(groups, learned.predicted)),
        "ari": float(adjusted_rand_score(groups, learned.predicted)),
        "score": learned.score, "seconds": learned.seconds,
    }  # fmt: skip


def components(learned: Learned, corpus: Corpus) -> list[Figures]:
    """The components in the order of the groups they match: what they hold, and the words that tell them from the others."""
    model, groups = learned.model, corpus.judge_groups
    names = matched(learned.predicted, groups, len(corpus.names))
    probabilities, overall = model.probabilities_, model.weights_ @ model.probabilities_
    telling = probabilities * np.log(probabilities / overall)
    found = []
    for one in np.argsort(names):
        own = np.bincount(groups[learned.predicted == one], minlength=len(names))
        top = np.argsort(-telling[one], kind="stable")[:TOP_WORDS]
        found.append({
            "matched": corpus.names[names[one]], "weight": float(model.weights_[one]), "documents": int(own.sum()),
            "group": corpus.names[np.argmax(own)], "share": float(own.max() / max(own.sum(), 1)),
            "words": [corpus.vocabulary[at] for at in top],
        })  # fmt: skip
    return found


# The page


def facts(corpus: Corpus, scale: Scale) -> Figures:
    return {
        "documents": len(corpus.learn_groups), "judged": len(corpus.judge_groups), "words": len(corpus.vocabulary),
        "tokens": int(corpus.learn.sum()), "groups": len(corpus.names), "chunk": CHUNK, "seeds": scale.seeds, "folds": FOLDS,
        "alphas": [*ALPHAS], "kmeans_starts": KMEANS_STARTS,
    }  # fmt: skip


def drawn(corpus: Corpus, percentage: int, seed: int) -> tuple[Labels, Labels]:
    """Order and labels of a run."""
    rng = np.random.default_rng(np.random.SeedSequence((20, seed)))
    return rng.permutation(len(corpus.learn_groups)), corpus.labels(percentage, rng)


def compared(corpus: Corpus, percentage: int, seeds: int) -> Figures:
    """Every learner with so many labels, seed by seed."""
    kept: dict[str, list[Figures]] = {}
    for seed in range(seeds):
        order, labels = drawn(corpus, percentage, seed)
        for name in {0: NONE, 100: ALL}.get(percentage, SOME):
            kept.setdefault(name, []).append(outcome(LEARNERS[name](corpus, labels, order, seed), corpus))
    return {"percentage": percentage, "labelled": int((labels >= 0).sum()), "runs": kept}


def shown(corpus: Corpus) -> Figures:
    order, labels = drawn(corpus, 0, 0)
    return {"components": components(stream(corpus, labels, order, 0), corpus)}


def measure(scale: Scale, data: Path | None) -> Measures:
    assert data is not None
    corpus = Corpus.load(data / FILE, scale.documents)
    for compiled in (stream, fitted):
        compiled(corpus, drawn(corpus, 10, 0)[1], np.arange(min(len(corpus.learn_groups), 2500)), 0)
    yield "corpus", partial(facts, corpus, scale)
    for percentage in scale.percentages:
        yield f"labels/{percentage}", partial(compared, corpus, percentage, scale.seeds)
    yield "components", partial(shown, corpus)


PAGE = Page(
    name="newsgroups", room="examples", full=Scale(), quick=Scale(1, (0, 10, 100), 600), minutes=1,
    seeds="0 to 9: order, labelled documents and start",
    parts={"learners": measure}, values={"learners": values.learners}, needs=(FILE,),
    names={name: getattr(values, name) for name in ("STREAM", "FIRST", "STARTED", "FIT", "NB", "KMEANS")},
    pictures={"newsgroups": values.draw}, silent=(ConvergenceWarning,),
)  # fmt: skip
