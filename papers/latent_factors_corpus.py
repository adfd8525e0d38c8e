"""Topics of corpora, by headwater and by its peers: perplexity of held-out documents against seconds of CPU."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import headwater as hw
from headwater.core.simulated_algorithms import AutoSimulatedEM
from headwater.core.statistics import Array
from pages.results import Figures
from papers.latent_factors_scale import Scale

CORPORA = {"newsgroups20": "20 Newsgroups", "ap": "Associated Press"}
HELD_OUT = 0.1
TOP_WORDS, TOP_TOPICS = 8, 8
METROPOLIS_PASSES, BATCH_PASSES = 1, 2  # which take long


def corpus_path(directory: Path | None, name: str) -> Path | None:
    path = directory / name / f"{name}.npz" if directory else None
    return path if path is not None and path.is_file() else None


@dataclass(frozen=True)
class Corpus:
    """Documents to learn from and documents held out, of a fixed shuffle, and the words of the columns."""

    train: Any
    test: Any
    words: Sequence[str]

    @classmethod
    def read(cls, path: Path, most: int) -> Corpus:
        with np.load(path) as stored:
            parts = (stored["data"].astype(float), stored["indices"].astype(np.int32), stored["indptr"])
            rows, words = csr_matrix(parts, shape=tuple(stored["shape"])), [str(word) for word in stored["vocab"]]
        order = np.random.default_rng(np.random.SeedSequence(5)).permutation(rows.shape[0])[:most]
        number = round((1.0 - HELD_OUT) * len(order))
        return cls(rows[order[:number]], rows[order[number:]], words)


# A learner yields after each stage: how far it is, seconds of CPU so far, topics, and the prior of the proportions.
Stages = Iterator[tuple[int, float, Array, Any]]


class Clock:
    """Seconds of CPU spent within `with`, added up."""

    total = 0.0

    def __enter__(self) -> Clock:
        self._began = time.process_time()
        return self

    def __exit__(self, *_: Any) -> None:
        self.total += time.process_time() - self._began


def turns(most: int) -> list[int]:
    """Stages at which a learner of passes is judged."""
    return sorted({stage for stage in (1, 2, 4, most) if stage <= most})


def fitted(corpus: Corpus, scale: Scale, seed: int, *, most: int | None = None, **settings: Any) -> Stages:
    """`fit` with so many passes, each time from the beginning."""
    for passes in turns(most or scale.passes):
        model = hw.LatentDirichletAllocation(
            scale.topics, max_iter=passes, tol=0.0, random_state=seed, n_threads=1, **settings
        )  # fmt: skip
        with Clock() as clock:
            model.fit(corpus.train)
        yield model.n_iter_, clock.total, model.topics_, model.doc_topic_prior_
        if model.n_iter_ < passes:  # it ended by itself, so more passes change nothing
            return


def streamed(corpus: Corpus, scale: Scale, seed: int, **settings: Any) -> Stages:
    """`partial_fit` of the whole corpus, again and again."""
    model, clock = hw.LatentDirichletAllocation(scale.topics, random_state=seed, n_threads=1, **settings), Clock()
    for turn in range(1, scale.passes + 1):
        with clock:
            model.partial_fit(corpus.train)
        if turn in turns(scale.passes):
            yield turn, clock.total, model.topics_, model.doc_topic_prior_


def gensim_stages(corpus: Corpus, scale: Scale, seed: int) -> Stages:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel
    from gensim.models.callbacks import Metric

    logging.getLogger("gensim").setLevel(logging.ERROR)
    found: list[tuple[int, float, Array, Any]] = []
    began, judged = 0.0, 0.0

    class Watch(Metric):  # type: ignore[misc]
        logger, title, viz_env = "shell", "watch", None

        def get_value(self, model: Any = None, **_: Any) -> float:
            nonlocal judged
            now = time.process_time()
            turn = len(found) + 1
            found.append((turn, now - began - judged, model.get_topics().astype(float), np.array(model.alpha, dtype=float)))
            judged += time.process_time() - now
            return 0.0

    documents = [list(one) for one in Sparse2Corpus(corpus.train, documents_columns=False)]
    names = {column: str(column) for column in range(len(corpus.words))}
    began = time.process_time()
    LdaModel(
        documents, scale.topics, names, alpha="auto", passes=scale.passes, random_state=seed, eval_every=None,
        callbacks=[Watch()],
    )  # fmt: skip
    yield from [stage for stage in found if stage[0] in turns(scale.passes)]


def sklearn_online(corpus: Corpus, scale: Scale, seed: int) -> Stages:
    from sklearn.decomposition import LatentDirichletAllocation

    model, clock = LatentDirichletAllocation(scale.topics, total_samples=corpus.train.shape[0], random_state=seed), Clock()
    for turn in range(1, scale.passes + 1):
        with clock:
            model.partial_fit(corpus.train)
        if turn in turns(scale.passes):
            yield turn, clock.total, model.components_.copy(), model.doc_topic_prior_


def sklearn_batch(corpus: Corpus, scale: Scale, seed: int) -> Stages:
    from sklearn.decomposition import LatentDirichletAllocation

    most = min(BATCH_PASSES, scale.passes)
    model = LatentDirichletAllocation(scale.topics, learning_method="batch", max_iter=most, random_state=seed)
    with Clock() as clock:
        model.fit(corpus.train)
    yield most, clock.total, model.components_, model.doc_topic_prior_


def tomotopy_stages(corpus: Corpus, scale: Scale, seed: int) -> Stages:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tomotopy

    model, clock, done = tomotopy.LDAModel(k=scale.topics, seed=seed), Clock(), 0
    for row in corpus.train:
        tokens = np.repeat(row.indices, row.data.astype(int)).astype(str).tolist()
        if tokens:
            model.add_doc(tokens)
    for stop in sorted({sweeps for sweeps in (10, 30, 100, 200, scale.sweeps) if sweeps <= scale.sweeps}):
        with clock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.train(stop - done, workers=1)
        columns = [int(word) for word in model.used_vocabs]
        held = np.array(model.get_count_by_topics()) + model.eta * len(columns)
        done, topics = stop, np.tile((model.eta / held)[:, None], len(corpus.words))  # words that it has not seen
        for k in range(scale.topics):
            topics[k, columns] = model.get_topic_word_dist(k)
        yield done, clock.total, topics, np.array(model.alpha, dtype=float)


@dataclass(frozen=True)
class Line:
    """A learner: what it is, the package it needs, and its stages."""

    name: str
    meaning: str
    package: str
    stages: Callable[[Corpus, Scale, int], Stages]


def _metropolis(corpus: Corpus, scale: Scale, seed: int) -> Stages:
    most = min(METROPOLIS_PASSES, scale.passes)
    return fitted(corpus, scale, seed, most=most, algorithm=AutoSimulatedEM(sampler="metropolis"))


LEARNED = Line(
    "headwater, learned prior", '`LatentDirichletAllocation(K, doc_topic_prior="learn")`, `fit`', "headwater",
    lambda *a: fitted(*a, doc_topic_prior="learn"),
)  # fmt: skip
FIXED = Line("headwater, prior 1/K", "the same with the prior 1/K of the proportions, the default", "headwater", fitted)
METROPOLIS = Line("headwater, Metropolis", "the paper's sampler, 100 draws thrown away, 50 averaged", "headwater", _metropolis)
BELIEFS = Line(
    "headwater, Bayesian online EM", '`algorithm="boem"`, streamed likewise: paper 000 proposes it for these', "headwater",
    lambda *a: streamed(*a, algorithm="boem"),
)  # fmt: skip
VARIATIONAL = Line(
    "headwater, online VB", '`algorithm="online-vb"`, the corpus streamed again and again', "headwater",
    lambda *a: streamed(*a, algorithm="online-vb"),
)  # fmt: skip
COLLAPSED = Line(
    "headwater, SCVB0", '`algorithm="scvb0"`, streamed likewise', "headwater", lambda *a: streamed(*a, algorithm="scvb0")
)
GENSIM = Line("gensim", '`LdaModel(alpha="auto")`, online variational Bayes', "gensim", gensim_stages)
ONLINE = Line("scikit-learn, online", "online variational Bayes, batches of 128", "sklearn", sklearn_online)
BATCH = Line("scikit-learn, batch", "variational Bayes over all documents", "sklearn", sklearn_batch)
TOMOTOPY = Line("tomotopy", "`LDAModel`, collapsed Gibbs of all documents, one worker", "tomotopy", tomotopy_stages)
LINES = (LEARNED, FIXED, METROPOLIS, VARIATIONAL, COLLAPSED, BELIEFS, GENSIM, ONLINE, BATCH, TOMOTOPY)


def missing() -> list[str]:
    """Peers that are not installed."""
    return sorted({line.package for line in LINES if find_spec(line.package) is None})


def top_words(topics: Array, words: Sequence[str], shares: Array) -> list[list[str]]:
    """The most probable words of those topics that hold most."""
    table = topics / topics.sum(axis=1, keepdims=True)
    return [[words[v] for v in np.argsort(-table[k])[:TOP_WORDS]] for k in np.argsort(-shares)[:TOP_TOPICS]]


def corpus_set(line: Line, path: Path, scale: Scale) -> Figures:
    """Perplexities of the held-out documents by stage, and some topics of the last."""
    corpus = Corpus.read(path, scale.documents)
    stages, spent, perplexities = [], [], []
    topics: Array = np.empty(0)
    prior: Any = None
    for stage, clock, topics, prior in line.stages(corpus, scale, 0):
        stages.append(stage)
        spent.append(clock)
        perplexities.append(hw.completion_perplexity(topics, corpus.test, prior))
    weights = np.broadcast_to(np.asarray(prior, dtype=float), (len(topics),))
    result: Figures = {
        "line": line.name, "stages": stages, "seconds": spent, "perplexities": perplexities,
        "documents": corpus.train.shape[0], "held_out": corpus.test.shape[0], "words": len(corpus.words),
        "tokens": float(corpus.train.sum()), "topics": scale.topics, "prior_sum": float(weights.sum()),
    }  # fmt: skip
    if line is LEARNED:
        result["top"] = top_words(topics, corpus.words, weights)
    return result


def one_topic(path: Path, scale: Scale) -> Figures:
    """The perplexity of one topic for all: what there is to gain."""
    corpus = Corpus.read(path, scale.documents)
    counts = np.asarray(corpus.train.sum(axis=0)).ravel() + 0.1
    return {"perplexity": hw.completion_perplexity(counts[None], corpus.test, 1.0)}
