"""Rows of counts: passes over sparse rows against SciPy's products, and clusters against k-means on tf-idf."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.cluster import MiniBatchKMeans
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score

from benchmarks.data import Array
from benchmarks.line import Line, at_least, quotient, rates
from benchmarks.passes import per_pass
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import timed
from headwater import MultinomialMixture
from pages.machine import cores

CHUNK = 1000
PASSES = 11
PRIOR = 1.1  # its mode adds a tenth of a count to every word


@dataclass(frozen=True)
class Documents:
    """Rows of counts, the source of each, and the probabilities (K, V) they were drawn from."""

    rows: csr_array
    sources: Array
    probabilities: Array


def sparse_documents(n: int, width: int, n_components: int, rng: np.random.Generator, length: int = 100) -> Documents:
    """Documents of about `length` words; half of the words come from a background that all sources share."""
    background = rng.dirichlet(np.full(width, 0.2))
    own = rng.dirichlet(np.full(width, 0.02), size=n_components)
    return _drawn(n, 0.5 * background + 0.5 * own, rng.poisson(length, size=n), rng)


def long_documents(n: int, width: int, n_components: int, rng: np.random.Generator) -> Documents:
    """Paper 000, section 6.1.1: uniform probabilities, normalised, and about 5000 words a document."""
    probabilities = rng.uniform(size=(n_components, width))
    weights = rng.uniform(size=n_components)
    lengths = np.maximum(rng.normal(5000.0, 50.0, size=n), 100.0).astype(int)
    return _drawn(n, probabilities / probabilities.sum(axis=1, keepdims=True), lengths, rng, weights / weights.sum())


def _drawn(n: int, probabilities: Array, lengths: Array, rng: np.random.Generator, weights: Array | None = None) -> Documents:
    sources = rng.choice(len(probabilities), size=n, p=weights)
    parts = [slice(at, at + CHUNK) for at in range(0, n, CHUNK)]
    rows = [csr_array(rng.multinomial(lengths[part], probabilities[sources[part]]).astype(float)) for part in parts]
    return Documents(vstack(rows, format="csr"), sources, probabilities)


@benchmark
def counts(scale: Scale) -> Iterator[Line]:
    rng = np.random.default_rng(scale.first_seed)
    for n_components in (20, 100):
        yield from one_pass(sparse_documents(scale.rows(20_000, 200), 5000, n_components, rng), scale)
    for name, make in (
        ("20k x 5k sparse, K20", partial(sparse_documents, scale.rows(20_000, 400), 5000, 20)),
        ("paper 000's 10k x 1k, K5", partial(long_documents, scale.rows(10_000, 400), 1000, 5)),
    ):
        yield clusters(name, make, scale)


# Passes


def one_pass(documents: Documents, scale: Scale) -> Iterator[Line]:
    """One E- and M-step on sparse rows, from the same parameters."""
    k = len(documents.probabilities)
    start = documents.probabilities + 1e-6
    start /= start.sum(axis=1, keepdims=True)
    fits: dict[Any, Callable[[int], Any]] = {n: partial(ours_fit, documents, start, n) for n in {1, min(2, cores())}}
    fits["peer"] = partial(scipy_fit, documents, start)
    score, (_, peer_score) = fits[1](PASSES).lower_bound_, fits["peer"](PASSES)
    timings = per_pass(fits, 2 * scale.repeats, PASSES)
    n, nnz = documents.rows.shape[0], documents.rows.nnz
    gap = abs(score - peer_score)
    note = f"{n:,} rows, {nnz / n:.0f} words each; log-posteriors after {PASSES} passes differ by {gap:.0e} nat/row"
    name = f"E+M pass, sparse counts K{k}"
    yield rates(name, timings[1], timings["peer"], rows=n, target=at_least(2), note=note)
    if 2 in timings:
        yield rates(f"{name}, 2 threads", timings[2], timings["peer"], rows=n, note="peer: SciPy, which has one")


def ours_fit(documents: Documents, start: Array, n_threads: int, passes: int) -> MultinomialMixture:
    model = MultinomialMixture(
        len(start), algorithm="em", tol=0.0, max_iter=passes, probabilities_init=start, n_threads=n_threads,
        weights_init=np.full(len(start), 1.0 / len(start)), probability_concentration_prior=PRIOR, random_state=0,
    )  # fmt: skip
    return model.fit(documents.rows)


def scipy_fit(documents: Documents, start: Array, passes: int) -> tuple[Array, float]:
    """EM with SciPy's products of a sparse and a dense matrix, the transpose made once; `fit` starts with a pass, too."""
    rows, back = documents.rows, documents.rows.T.tocsr()
    table, log_weights, penalty = np.log(start.T), np.full(len(start), -np.log(len(start))), 0.0
    for turn in range(passes + 1):
        joint = rows @ table
        joint += log_weights
        peak = joint.max(axis=1, keepdims=True)
        joint -= peak
        np.exp(joint, out=joint)
        total = joint.sum(axis=1, keepdims=True)
        joint /= total
        score = float((np.log(total) + peak).sum())
        objective = (score + penalty) / len(joint)
        if turn < passes:
            belief = back @ joint
            belief += PRIOR - 1.0
            table = np.log(belief)
            table -= np.log(belief.sum(axis=0))
            log_weights = np.log(np.maximum(joint.mean(axis=0), 1e-300))
            penalty = (PRIOR - 1.0) * table.sum()
    return table, objective


# Clusters


def clusters(name: str, make: Callable[[np.random.Generator], Documents], scale: Scale) -> Line:
    """Time to clusters, ours in one pass. If our median adjusted Rand index is below the peer's, the ratio counts as 0."""
    seconds: dict[str, list[float]] = {"ours": [], "peer": []}
    found: dict[str, list[float]] = {"ours": [], "peer": []}
    for seed in range(scale.first_seed, scale.first_seed + scale.seeds):
        documents = make(np.random.default_rng(seed))
        for side, work in (("ours", ours_clusters), ("peer", peer_clusters)):
            if seed == scale.first_seed:
                work(documents, seed)  # compile
            spent, labels = timed(work, documents, seed)
            seconds[side].append(spent)
            found[side].append(float(adjusted_rand_score(documents.sources, labels)))
    ours, peer = (median(found[side]) for side in ("ours", "peer"))
    ratio = quotient(median(seconds["peer"]), median(seconds["ours"])) if ours >= peer else 0.0
    note = (
        f"adjusted Rand index {ours:.3f} (worst {min(found['ours']):.3f}) against {peer:.3f} of MiniBatchKMeans on tf-idf; "
        f"medians of {scale.seeds} seeds"
    )
    return Line(
        f"clusters, {name}", median(seconds["ours"]), median(seconds["peer"]), "s", ratio, at_least(1), note,
        details={"seconds": seconds, "adjusted_rand": found},
    )  # fmt: skip


def ours_clusters(documents: Documents, seed: int) -> Array:
    model = MultinomialMixture(len(documents.probabilities), random_state=seed, n_threads=1)
    for at in range(0, documents.rows.shape[0], CHUNK):
        model.partial_fit(documents.rows[at : at + CHUNK])
    return model.predict(documents.rows)


def peer_clusters(documents: Documents, seed: int) -> Array:
    rows = TfidfTransformer().fit_transform(documents.rows)
    return MiniBatchKMeans(len(documents.probabilities), random_state=seed).fit_predict(rows)
