"""What the draw of a token costs, by the number of topics: the library's Gibbs sampler beside one that looks at every topic."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from headwater.core.batch import Batch, SparseRows
from headwater.core.contracts import Inference
from headwater.core.statistics import Array
from headwater.kernels._jit import kernel
from headwater.kernels.topics import gibbs_documents
from headwater.models.topics import EMPTY_TABLE, Topics
from pages.results import Figures
from papers.latent_factors_scale import Scale

NUMBERS = (16, 50, 100, 200, 500, 1000, 2000)
VOCABULARY, LENGTH = 2000, 200
WORD_PRIOR, TOTAL_PRIOR = 0.05, 5.0  # of the topics that the documents are drawn from, and the sum of alpha
BURN_IN, KEPT = 10, 5


@kernel
def dense_documents(indptr, entries, topics, alpha, sweeps, uniforms):
    """Collapsed Gibbs that weighs every topic for every token; returns a sum, so that nothing is left out."""
    n_topics, seen, at = alpha.size, 0.0, 0
    running, held = np.empty(n_topics), np.zeros(n_topics)
    drawn = np.zeros(entries.size, dtype=np.int64)
    for i in range(indptr.size - 1):
        held[:] = 0.0
        for sweep in range(sweeps):
            for t in range(indptr[i], indptr[i + 1]):
                if sweep:
                    held[drawn[t]] -= 1.0
                total = 0.0
                for k in range(n_topics):
                    total += topics[entries[t], k] * (held[k] + alpha[k])
                    running[k] = total
                u, k = uniforms[at % uniforms.size] * total, 0
                at += 1
                while k < n_topics - 1 and running[k] < u:
                    k += 1
                drawn[t] = k
                held[k] += 1.0
                seen += total
    return seen


def corpus(topics: int, tokens: int) -> tuple[Array, Array, SparseRows]:
    """Topics (V, K), alpha, and documents that are drawn with them."""
    rng = np.random.default_rng(np.random.SeedSequence((6, topics)))
    table = rng.dirichlet(np.full(VOCABULARY, WORD_PRIOR), size=topics)
    alpha = np.full(topics, TOTAL_PRIOR / topics)
    number = max(2, tokens // LENGTH)
    rows = [rng.multinomial(LENGTH, rng.dirichlet(alpha) @ table) for _ in range(number)]
    held = [np.flatnonzero(row) for row in rows]
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in held])]).astype(np.int64)
    data = np.concatenate([row[one] for row, one in zip(rows, held, strict=True)]).astype(float)
    return np.ascontiguousarray(table.T), alpha, SparseRows(data, np.concatenate(held).astype(np.int32), indptr, VOCABULARY)


def seconds(work: Callable[[], Any]) -> float:
    """Of the CPU, the better of two."""
    spent = []
    for _ in range(2):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


def cost_set(topics: int, scale: Scale) -> Figures:
    """Nanoseconds a token is drawn in."""
    table, alpha, rows = corpus(topics, scale.tokens)
    table = np.maximum(table, 1e-12)
    tokens, sweeps = float(rows.data.sum()), BURN_IN + KEPT + 1
    words, nothing = np.arange(VOCABULARY, dtype=np.int32), np.empty(0)
    streams, weights = np.arange(len(rows)), np.ones(len(rows))

    def kernel_alone() -> None:
        target = np.zeros((len(words), topics))
        gibbs_documents(
            rows.indptr, rows.indices, rows.data, 0, len(rows), table, alpha, BURN_IN, KEPT, True, np.uint64(1), streams,
            weights, target, np.zeros(topics), nothing, EMPTY_TABLE,
        )  # fmt: skip

    model = Topics(topics, 0.01, tuple(alpha.tolist()))
    given, inference = model.given(np.ascontiguousarray(table.T)), Inference("simulated", "gibbs", BURN_IN, KEPT)
    few = max(2, len(rows) // max(1, topics // 50))  # where every topic is looked at, fewer documents do
    counts = rows.data[: rows.indptr[few]].astype(np.int64)
    entries = np.repeat(rows.indices[: rows.indptr[few]], counts)
    ends = np.concatenate([[0], np.cumsum(counts)])[rows.indptr[: few + 1]]
    uniforms = np.random.default_rng(0).random(2**16)
    spent = seconds(kernel_alone)
    whole = seconds(lambda: model.summarize(given, Batch(rows), n_threads=1, inference=inference))
    dense = seconds(lambda: dense_documents(ends, entries, table, alpha, sweeps, uniforms))
    return {
        "topics": topics, "tokens": tokens, "vocabulary": VOCABULARY, "length": LENGTH, "documents": len(rows),
        "total_prior": TOTAL_PRIOR, "kernel": 1e9 * spent / (tokens * sweeps), "step": 1e9 * whole / (tokens * sweeps),
        "dense": 1e9 * dense / (len(entries) * sweeps),
    }  # fmt: skip
