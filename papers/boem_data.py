"""The documents of paper 000's experiments: generated ones, the Gutenberg corpus, and the starts that are drawn for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from headwater.core.statistics import Array

MEAN_LENGTH = 5000
FEWEST_WORDS = 100
MEAN_ROWS = 200  # documents whose mean is half of a start that is made of documents
GUTENBERG = "gutenberg_10k/gutenberg_10k.npz"
TINY = 1e-300


@dataclass(frozen=True)
class Truth:
    """A mixture of multinomials to draw documents from: n_c weights, and n_c rows of probabilities."""

    weights: Array
    probabilities: Array

    @classmethod
    def drawn(cls, clusters: int, columns: int, seed: int, weights: Any = None) -> Truth:
        """Section 6.1: probabilities and weights are U(0, 1), normalised, unless the weights are given."""
        rng = np.random.default_rng(np.random.SeedSequence((61, seed, clusters, columns)))
        probabilities = uniform_start(clusters, columns, rng)
        given = rng.uniform(size=clusters) if weights is None else np.asarray(weights, dtype=float)
        return cls(given / given.sum(), probabilities)

    def sample(self, documents: int, spread: float, seed: int, length: int = MEAN_LENGTH) -> Array:
        """Documents of normally distributed lengths; those of fewer words than wanted are drawn again."""
        rng = np.random.default_rng(np.random.SeedSequence((611, seed, documents)))
        clusters = rng.choice(len(self.weights), size=documents, p=self.weights)
        lengths = np.zeros(documents)
        fewest = min(FEWEST_WORDS, length // 2)
        while (short := lengths < fewest).any():
            lengths[short] = np.round(rng.normal(length, spread, size=int(short.sum())))
        return rng.multinomial(lengths.astype(int), self.probabilities[clusters]).astype(float)

    @property
    def margin(self) -> float:
        """Nats that a document of the mean length speaks for its own cluster, against the one that is closest to it."""
        logs = np.log(self.probabilities)
        apart = (self.probabilities * logs).sum(axis=1, keepdims=True) - self.probabilities @ logs.T
        return float(MEAN_LENGTH * apart[~np.eye(len(apart), dtype=bool)].min())

    def score(self, rows: Any) -> float:
        """Mean log-likelihood of the documents."""
        return score(rows, self.weights, self.probabilities)


def score(rows: Any, weights: Array, probabilities: Array) -> float:
    """Mean log-likelihood of documents under a mixture, without the number of orders of their words."""
    joint = rows @ np.log(np.maximum(probabilities.T, TINY)) + np.log(np.maximum(weights, TINY))
    return float(np.logaddexp.reduce(joint, axis=1).mean())


def log_prior(probabilities: Array, beta: float) -> float:
    """Log-density of the clusters' probabilities, and of weights under alpha = 1, in the paper's prior."""
    n_c, n_a = probabilities.shape
    constant = gammaln(n_c) + n_c * (gammaln(n_a * beta) - n_a * gammaln(beta))
    return float(constant + (beta - 1.0) * np.log(np.maximum(probabilities, TINY)).sum())


# Starts


def uniform_start(clusters: int, columns: int, rng: np.random.Generator) -> Array:
    """The paper's: U(0, 1), normalised."""
    drawn = rng.uniform(size=(clusters, columns))
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def document_start(clusters: int, rows: Any, rng: np.random.Generator) -> Array:
    """Half of each cluster is a document drawn at random, half the mean of the first documents."""
    chosen = rows[np.sort(rng.choice(rows.shape[0], size=clusters, replace=False))]
    documents = chosen.toarray() if hasattr(chosen, "toarray") else chosen
    mean = np.asarray(rows[:MEAN_ROWS].sum(axis=0)).ravel() + 1.0
    return np.asarray(0.5 * documents / documents.sum(axis=1, keepdims=True) + 0.5 * mean / mean.sum())


def starts(kind: str, number: int, clusters: int, rows: Any) -> list[Array]:
    """The first starts of a kind, "uniform" or "documents": the same for every learner, and however many are asked for."""
    drawn = []
    for seed in range(number):
        rng = np.random.default_rng(np.random.SeedSequence((50, seed, clusters)))
        by_document = kind == "documents"
        drawn.append(document_start(clusters, rows, rng) if by_document else uniform_start(clusters, rows.shape[1], rng))
    return drawn


# Gutenberg


def gutenberg_path(directory: Path | None) -> Path | None:
    """Where the corpus is, if it is there."""
    path = None if directory is None else directory / GUTENBERG
    return path if path is not None and path.is_file() else None


def load_gutenberg(path: Path, at_most: int) -> csr_array:
    """Documents of the corpus, which is sorted by author, in random order."""
    with np.load(path, allow_pickle=False) as held:
        counts = csr_array((held["data"].astype(float), held["indices"], held["indptr"]), shape=tuple(held["shape"]))
    order: NDArray[np.int64] = np.random.default_rng(4322).permutation(counts.shape[0])
    return counts[order[:at_most]]
