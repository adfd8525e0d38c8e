"""A few documents, and calls of the topic kernels with them."""

import numpy as np

from headwater.kernels.topics import (
    gibbs_documents,
    metropolis_documents,
)
from headwater.kernels.topics_variational import collapsed_documents, mean_field_documents

NOTHING, NO_TABLE = np.empty(0), np.empty((0, 0))


class Documents:
    """Rows of counts as arguments of the kernels, and arrays for their output."""

    def __init__(self, counts, topics, alpha, weights=NOTHING, apart=False):
        rows, (width, k) = np.atleast_2d(np.asarray(counts, dtype=float)), topics.shape
        held = rows != 0.0
        self.indptr = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64)
        self.local, self.data = np.nonzero(held)[1].astype(np.int32), rows[held]
        self.topics, self.n = np.ascontiguousarray(topics), len(rows)
        if apart:  # words of each document by themselves
            self.local = (self.local + width * np.nonzero(held)[0]).astype(np.int32)
            self.topics = np.tile(self.topics, (self.n, 1))
        self.alpha, self.weights = np.asarray(alpha, dtype=float), np.asarray(weights, dtype=float)
        self.streams = np.arange(self.n)
        self.target, self.count, self.tables = np.zeros(self.topics.shape), np.zeros(k), np.zeros(k + 1)
        self.accepted, self.proportions = np.zeros(1), np.zeros((self.n, k))

    @property
    def rows(self):
        return self.indptr, self.local, self.data, 0, self.n, self.topics, self.alpha

    @property
    def found(self):
        return self.target, self.count, self.tables, self.proportions

    def gibbs(self, burn_in=20, n_samples=10, rao_blackwell=True, key=0):
        draws = (burn_in, n_samples, rao_blackwell, np.uint64(key), self.streams, self.weights)
        self.score = gibbs_documents(*self.rows, *draws, self.target, self.count, self.tables, self.proportions)
        return self

    def metropolis(self, burn_in=50, n_samples=50, rao_blackwell=True, kappa=10.0, key=0):
        draws = (burn_in, n_samples, rao_blackwell, kappa, np.uint64(key), self.streams, self.weights)
        room = (self.target, self.count, self.tables, self.accepted, self.proportions)
        self.score = metropolis_documents(*self.rows, *draws, *room)
        return self

    def mean_field(self, iterations=100, tol=0.0):
        self.scores = np.zeros(self.n)
        room = (self.target, self.count, self.tables, self.scores, self.proportions)
        self.score = mean_field_documents(*self.rows, iterations, tol, self.weights, *room)
        return self

    def collapsed(self, burn_in=5):
        self.score = collapsed_documents(*self.rows, burn_in, self.weights, *self.found)
        return self


def topics_of(v, k, seed=0, sharp=0.6):
    return np.random.default_rng(seed).dirichlet(np.full(v, sharp), k).T.copy()
