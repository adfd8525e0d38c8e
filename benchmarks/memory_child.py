"""The process whose memory is measured: stream this many rows of a kind, print the resident peak before and after, in MB."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from headwater import CategoricalHMM, GaussianMixture, MultinomialMixture

CHUNK = 50_000
WORDS, LENGTH = 100_000, 30


def peak() -> float:
    """Return the peak resident memory so far. VmHWM is reset when a program starts; ru_maxrss would include the parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status says nothing of VmHWM")


def gaussian_chunks(rng: np.random.Generator) -> Iterator[Any]:
    chunk = rng.normal(size=(CHUNK, 10)) + 3.0 * rng.normal(size=(10, 10))[rng.integers(10, size=CHUNK)]
    while True:
        yield chunk + 0.1 * rng.standard_normal((CHUNK, 10))


def count_chunks(rng: np.random.Generator) -> Iterator[Any]:
    """Sparse documents over many words, of which few are frequent; each source has a region of its own."""
    indptr = np.arange(CHUNK + 1) * LENGTH
    while True:
        words = np.minimum(rng.pareto(0.7, size=(CHUNK, LENGTH)) * 20.0, WORDS - 1.0).astype(np.int32)
        words = (words + WORDS // 10 * rng.integers(10, size=(CHUNK, 1), dtype=np.int32)) % WORDS
        yield csr_array((np.ones(words.size), words.ravel(), indptr), shape=(CHUNK, WORDS))


def symbol_chunks(rng: np.random.Generator) -> Iterator[Any]:
    """Symbols that mostly stay as they are; all chunks are one sequence."""
    while True:
        new = rng.uniform(size=CHUNK) < 0.3
        new[0] = True
        symbols = rng.integers(10, size=CHUNK)
        yield symbols[np.maximum.accumulate(np.where(new, np.arange(CHUNK), 0))][:, None]


KINDS = {
    "gaussian": (GaussianMixture, gaussian_chunks),
    "counts": (MultinomialMixture, count_chunks),
    "symbols": (CategoricalHMM, symbol_chunks),
}


def main(kind: str, rows: int) -> None:
    model_of, chunks_of = KINDS[kind]
    chunks = chunks_of(np.random.default_rng(0))
    held_out = next(chunks)
    model = model_of(10, random_state=0, n_threads=1)
    before = peak()
    while rows > 0:
        fresh = next(chunks)[:rows]
        model.partial_fit(fresh)
        rows -= fresh.shape[0]
    print(before, peak(), model.n_samples_seen_, model.score(held_out))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
