"""Topics: CPU time to the perplexity at which tomotopy, gensim and scikit-learn end, by one common evaluator.

Every peer is stopped now and then, and `headwater.completion_perplexity` says how well its topics predict the other half of
held-out documents; the clock stands still meanwhile. It counts CPU seconds of the process, one thread each. So are we in a
first pass of `partial_fit`, start included; for more passes we are charged for a whole `fit` with so many. The first look that
finds us as good as the best a peer gets is held against what the peer had spent by then.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from benchmarks.data import Array
from benchmarks.line import Line, at_least, at_most, quotient, times
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import interleave
from headwater import LatentDirichletAllocation, completion_perplexity
from pages.machine import cores

ALPHA, ETA = 0.1, 0.01
CHUNK = 1000
PASSES = 12
CLOSE = 1.01  # final perplexity against tomotopy's


@dataclass(frozen=True)
class Corpus:
    name: str
    train: csr_array
    held_out: csr_array
    n_topics: int
    truth: float | None = None


@dataclass(frozen=True)
class Curve:
    """CPU seconds and perplexity after each stage."""

    seconds: list[float]
    perplexities: list[float]

    def until(self, perplexity: float) -> float:
        """Seconds until it was this good; NaN if it never was."""
        good = [spent for spent, found in zip(self.seconds, self.perplexities, strict=True) if found <= perplexity]
        return good[0] if good else float("nan")


def synthetic(documents: int, rng: np.random.Generator, width: int = 5000, n_topics: int = 50, length: int = 100) -> Corpus:
    """Documents of about 100 words from topics that are Dirichlet(0.05) over 5000 words, in proportions Dirichlet(0.1)."""
    topics = rng.dirichlet(np.full(width, 0.05), size=n_topics)
    parts = []
    for at in range(0, documents + documents // 10, CHUNK):
        size = min(CHUNK, documents + documents // 10 - at)
        proportions = rng.dirichlet(np.full(n_topics, ALPHA), size=size)
        parts.append(csr_array(rng.multinomial(rng.poisson(length, size=size), proportions @ topics).astype(float)))
    rows = vstack(parts, format="csr")
    held_out = rows[documents:]
    return Corpus("synthetic", rows[:documents], held_out, n_topics, completion_perplexity(topics, held_out, ALPHA))


def newsgroups(divide: int) -> Corpus | None:
    """The 20 newsgroups as counts of words, if HEADWATER_DATA has them: nine tenths to learn from, in a random order."""
    path = Path(os.environ.get("HEADWATER_DATA", "")) / "newsgroups20" / "newsgroups20.npz"
    if not path.is_file():
        return None
    with np.load(path) as found:
        parts = (found["data"].astype(float), found["indices"], found["indptr"])
        rows = csr_array(parts, shape=tuple(found["shape"]))
    rows = rows[np.random.default_rng(0).permutation(rows.shape[0])[: rows.shape[0] // divide]]
    cut = rows.shape[0] * 9 // 10
    return Corpus("newsgroups", rows[:cut], rows[cut:], 50)


@benchmark
def topics(scale: Scale) -> Iterator[Line]:
    rng = np.random.default_rng(scale.first_seed)
    corpora = [synthetic(scale.rows(10_000, 300), rng), newsgroups(scale.divide if scale.divide < 1000 else 200)]
    for corpus in corpora:
        if corpus is not None:
            yield from compared(corpus, scale)
    yield from threads(corpora[0], scale)
    yield many_topics(scale)


def compared(corpus: Corpus, scale: Scale) -> Iterator[Line]:
    ours = curve_of_ours(corpus, PASSES if scale.judged else 1)
    iterations = (50, 100, 150, 200, 300, 400) if scale.judged else (1,)
    truth = f"; the truth has {corpus.truth:.0f}" if corpus.truth else ""
    once = -(-corpus.train.shape[0] // (2 * CHUNK)) - 1
    first, last = (f"{ours.perplexities[at]:.0f} in {ours.seconds[at]:.1f} s" for at in (once, -1))
    for name, run, bound in (
        ("tomotopy", lambda: tomotopy_curve(corpus, iterations), 2),
        ("gensim", lambda: gensim_curve(corpus, 10 if scale.judged else 1), 10),
        ("scikit-learn", lambda: sklearn_curve(corpus, 10 if scale.judged else 1), 10),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # messages of peers when they are loaded
            peer = run() if find_spec(name.replace("scikit-learn", "sklearn")) else None
        if peer is None:
            yield Line(f"topics, {corpus.name}: {name}", float("nan"), None, "s", None, None, f"{name} is not installed")
            continue
        goal = min(peer.perplexities)
        spent, theirs = ours.until(goal), peer.until(goal)
        note = f"CPU seconds to perplexity {goal:.0f}, {name}'s best; ours {first} after one pass, {last} after {PASSES}{truth}"
        yield Line(
            f"topics, {corpus.name}: {name}", spent, theirs, "s", quotient(theirs, spent), at_least(bound), note,
            details={"ours": ours.__dict__, "peer": peer.__dict__},
        )  # fmt: skip
        if name == "tomotopy":
            end = ours.perplexities[-1]
            yield Line(
                f"topics, {corpus.name}: perplexity", end / goal, 1.0, "of tomotopy's", goal / end, at_most(CLOSE),
                f"{end:.0f} after {PASSES} passes, {goal:.0f} after {iterations[-1]} iterations{truth}",
            )  # fmt: skip


def model(n_topics: int, seed: int = 0, n_threads: int = 1, **options: Any) -> LatentDirichletAllocation:
    """Return a model with tomotopy's defaults: a prior of the words, and a learned prior of the proportions."""
    return LatentDirichletAllocation(
        n_topics, doc_topic_prior="learn", topic_word_prior=ETA, random_state=seed, n_threads=n_threads, tol=0.0, **options
    )


def curve_of_ours(corpus: Corpus, passes: int) -> Curve:
    """A stream, and `fit` with two passes, three, ...: each from the start, so that no document counts twice."""
    model(2).fit(corpus.train[:200]).transform(corpus.train[:5])  # compile
    n = corpus.train.shape[0]
    streaming = model(corpus.n_topics)

    def advance(at: int) -> None:
        _ = streaming.partial_fit(corpus.train[at : at + 2 * CHUNK]).topics_

    def read() -> tuple[Array, Any]:
        return streaming.topics_, streaming.doc_topic_prior_

    curve = staged(corpus, range(0, n, 2 * CHUNK), advance, read)
    for number in range(2, passes + 1):
        if number > 6 and number % 3:
            continue
        fitted = model(corpus.n_topics, max_iter=number)
        begin = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.fit(corpus.train)
        _ = fitted.topics_
        curve.seconds.append(process_time() - begin)
        curve.perplexities.append(completion_perplexity(fitted, corpus.held_out))
    return curve


def staged(corpus: Corpus, stages: Any, advance: Callable[[Any], None], read: Callable[[], tuple[Array, Any]]) -> Curve:
    """Learn in stages, and evaluate the topics after each with the clock stopped."""
    curve, spent = Curve([], []), 0.0
    for stage in stages:
        begin = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            advance(stage)
        spent += process_time() - begin
        found, prior = read()
        curve.seconds.append(spent)
        curve.perplexities.append(completion_perplexity(found, corpus.held_out, prior))
    return curve


def tomotopy_curve(corpus: Corpus, iterations: tuple[int, ...]) -> Curve:
    import tomotopy

    peer = tomotopy.LDAModel(k=corpus.n_topics, alpha=ALPHA, eta=ETA, seed=1)
    for words, counts in documents_of(corpus.train):
        peer.add_doc([str(word) for word in np.repeat(words, counts)])
    peer.train(0)
    places = np.array([int(word) for word in peer.used_vocabs])
    done = [0]

    def advance(stage: int) -> None:
        peer.train(stage - done[0], workers=1)
        done[0] = stage

    def read() -> tuple[Array, Any]:
        table = np.zeros((corpus.n_topics, corpus.train.shape[1]))
        table[:, places] = [peer.get_topic_word_dist(k) for k in range(corpus.n_topics)]
        return table, np.asarray(peer.alpha, dtype=float)

    return staged(corpus, iterations, advance, read)


def gensim_curve(corpus: Corpus, passes: int) -> Curve:
    from gensim.models import LdaModel

    bags = [list(zip(words.tolist(), counts.tolist(), strict=True)) for words, counts in documents_of(corpus.train)]
    names = {word: str(word) for word in range(corpus.train.shape[1])}
    peer = LdaModel(
        num_topics=corpus.n_topics, id2word=names, alpha="auto", eta=ETA, chunksize=CHUNK, random_state=1, eval_every=None,
        dtype=np.float64,
    )  # fmt: skip
    return staged(corpus, range(passes), lambda _: peer.update(bags), lambda: (peer.get_topics(), np.asarray(peer.alpha)))


def sklearn_curve(corpus: Corpus, passes: int) -> Curve:
    from sklearn.decomposition import LatentDirichletAllocation as Peer

    n = corpus.train.shape[0]
    peer = Peer(corpus.n_topics, doc_topic_prior=ALPHA, topic_word_prior=ETA, total_samples=n, random_state=1)

    def advance(_: int) -> None:
        for at in range(0, n, CHUNK):
            peer.partial_fit(corpus.train[at : at + CHUNK])

    return staged(corpus, range(passes), advance, lambda: (peer.components_, ALPHA))


def documents_of(rows: csr_array) -> Iterator[tuple[Any, Any]]:
    for i in range(rows.shape[0]):
        held = slice(rows.indptr[i], rows.indptr[i + 1])
        yield rows.indices[held], rows.data[held].astype(int)


def threads(corpus: Corpus | None, scale: Scale) -> Iterator[Line]:
    """The same documents on two threads and on one: the same answer, sooner."""
    if corpus is None or cores() < 2:
        return
    started = {n: model(corpus.n_topics, n_threads=n).warm_start_from(corpus.train[:500]) for n in (1, 2)}
    found = {}

    def learned(n: int, _: int) -> None:
        found[n] = started[n].branch().partial_fit(corpus.train)

    timings = interleave({n: lambda repeat, n=n: learned(n, repeat) for n in (1, 2)}, scale.repeats)
    same = np.array_equal(found[1].components_, found[2].components_)
    note = f"wall seconds of one pass; peer: headwater on one thread; {'the same bits' if same else 'NOT the same answer'}"
    yield times("topics, two threads", timings[2], timings[1], target=at_least(1.7), note=note)


def many_topics(scale: Scale) -> Line:
    """Wall time per token as the number of topics grows; a dense sampler's would grow as it."""
    rng = np.random.default_rng(scale.first_seed)
    corpus = synthetic(scale.rows(4000, 300), rng, n_topics=100)
    tokens = float(corpus.train.sum())
    cost = {}
    for n_topics in (100, 1000) if scale.judged else (10, 20):
        started = model(n_topics).warm_start_from(corpus.train[: min(2000, corpus.train.shape[0])])
        begin = perf_counter()
        started.partial_fit(corpus.train)
        _ = started.doc_topic_prior_
        cost[n_topics] = (perf_counter() - begin) / tokens
    few, many = cost.values()
    names = list(cost)
    note = f"per token of a pass: {1e6 * few:.2f} us at K {names[0]}, {1e6 * many:.2f} us at K {names[1]}"
    return Line(
        f"topics, K {names[1]} against K {names[0]}", many / few, names[1] / names[0], "times the cost",
        quotient(names[1] / names[0], many / few), at_least(2), note,
    )  # fmt: skip
