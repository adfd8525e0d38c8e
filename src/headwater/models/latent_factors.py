"""LatentFactors: rows whose distribution is a sum of K shared factors, weighted anew for every row (paper 001, section 2).

A model of this kind is one class in one file. It says what its statistics are and how parameters are read out of them
(`zeros`, `first`, `readout`), how the latent variables of rows are drawn (`samplers`, `estep`), and how rows are scored
(`log_likelihood`, `posterior`); the rest of the contract is here. The E-step adds the expected complete statistics of the rows
to `totals`: an average over draws if it is simulated, or another approximation that `ways` names.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.contracts import EXACT, NO_SCORES, Inference, Model, Start, StartSettings
from headwater.core.state import Summary
from headwater.core.statistics import Array, Params, Prior, Stats
from headwater.core.values import AnyArray, Index


class LatentFactors(Model[Prior, Stats, Params]):
    """Base of the latent factor models."""

    # What a model says

    @abstractmethod
    def first(self, batch: Batch, rng: np.random.Generator) -> tuple[Prior, Params]:
        """Return a prior in the scale of the rows, and parameters to begin with, in which no two factors are alike."""

    def held_at(self, factors: Array, batch: Batch) -> tuple[Prior, Params, Stats]:
        """Return the prior beside given factors, parameters with them, and the expected statistics of a row under these.

        The rows say how long rows are, where factors do not.
        """
        raise ValueError(f"{type(self).__name__} has no start that can be given")

    @abstractmethod
    def estep(
        self, parameters: Params, batch: Batch, totals: Stats, inference: Inference, n_threads: int | None
    ) -> tuple[float, Stats]:
        """Return a score of the rows, and the totals with their expected statistics added."""

    @abstractmethod
    def select_statistics(self, statistics: Stats, order: Index) -> Stats:
        """Return statistics with the factors in another order."""

    @abstractmethod
    def separation(self, prior: Prior, totals: Stats, others: Stats) -> Array:
        """Symmetric divergence (K, K) of the beliefs about these factors and about those, up to a constant."""

    @abstractmethod
    def contrast(self, prior: Prior, totals: Stats, others: Stats) -> Array:
        """Symmetric divergence (K,) of each factor here and there, in nats a row."""

    # What may be said otherwise, beside what `Model` has defaults for: `samplers`, `problem`, ...

    @property
    def ways(self) -> frozenset[tuple[str, str]]:
        """E-steps, each with a readout that it takes."""
        return frozenset({("simulated", "mode")})

    def rows_to_learn(self, width: int) -> int:
        """Rows that move every parameter; a batch is a fifth of them."""
        return 500

    def rows_to_start(self, width: int) -> int:
        """Rows to find a start on."""
        return max(200, 2 * self.n_components)

    def turns(self, batch: Batch) -> int:
        """How often the rows of a start are learned."""
        return 2

    def firsts(self, batch: Batch, rng: np.random.Generator) -> Iterator[tuple[Prior, Params]]:
        """Several of what `first` returns; the best result is taken."""
        yield self.first(batch, rng)

    # What the loop asks beyond that

    def n_parameters(self, width: int) -> int:
        """Number of free parameters."""
        return self.n_components * width

    def contenders(self, batch: Batch, settings: StartSettings) -> list[StartSettings]:
        """Ways to learn the rows of a start; the best result is taken."""
        return [settings]

    def start(
        self, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None
    ) -> Start[Prior, Stats, Params]:
        """Break the symmetry of the factors, and learn the waiting rows several times by online EM in small batches."""
        if settings.factors is not None:
            return self._start_at_given(batch, key, settings, n_threads)
        rng = np.random.default_rng(np.random.SeedSequence((key, len(batch))))
        inference = replace(settings.inference, key=key, first=self.turns(batch) * len(batch))
        ends = []
        for (prior, first), way in product(self.firsts(batch, rng), self.contenders(batch, settings)):
            statistics = self._learned(prior, first, batch, replace(way.inference, key=key), way.readout, rng, n_threads)
            parameters = self.readout(settings.readout, prior, statistics, float(len(batch)))
            summary = self.summarize(parameters, batch, n_threads=n_threads, inference=inference)
            ends.append(Start(prior, parameters, summary))
        return max(ends, key=lambda end: end.summary.score)

    def _start_at_given(self, batch: Batch, key: int, settings: StartSettings, n_threads: int | None) -> Start:
        """Start at given factors, which count as `settings.held` rows beside those of the batch."""
        assert settings.factors is not None
        prior, parameters, mean = self.held_at(settings.factors, batch)
        held = Summary(mean.scaled(settings.held), 0, settings.held)
        if settings.at_once:
            return Start(prior, parameters, held, held=settings.held)
        inference = replace(settings.inference, key=key, first=self.turns(batch) * len(batch))
        summary = self.summarize(parameters, batch, n_threads=n_threads, inference=inference)
        return Start(prior, parameters, summary + held if settings.held else summary, held=settings.held)

    def _learned(
        self, prior: Prior, parameters: Params, batch: Batch, inference: Inference, readout: str, rng: np.random.Generator,
        n_threads: int | None,
    ) -> Stats:  # fmt: skip
        n = len(batch)
        size = int(np.clip(n // 20, 1, self.rows_to_learn(batch.X.shape[1]) // 5))
        statistics: Stats | None = None
        step = 1.0
        for turn in range(self.turns(batch)):
            order = rng.permutation(n)
            for at in range(0, n, size):
                rows, drawing = order[at : at + size], replace(inference, first=turn * n + at)
                mean = self.summarize(parameters, batch[rows], n_threads=n_threads, inference=drawing).mean
                statistics = mean if statistics is None else statistics.toward(mean, (step + 2.0) ** -0.6)
                parameters = self.readout(readout, prior, statistics, min(step * size, n))
                step += 1.0
        assert statistics is not None
        return statistics

    def summarize(
        self,
        parameters: Params,
        batch: Batch,
        pending: Summary[Stats] | None = None,
        scores: Array = NO_SCORES,
        n_threads: int | None = None,
        inference: Inference = EXACT,
    ) -> Summary[Stats]:
        """E-step: add the rows to the pending summary, or to a fresh one."""
        if scores.size:
            scores[...] = self.log_likelihood(parameters, batch, n_threads)
        pending = pending or Summary(self.zeros(batch.X.shape[1]))
        score, totals = self.estep(parameters, batch, pending.statistics, inference, n_threads)
        return Summary(totals, pending.rows + len(batch), pending.size + batch.size, pending.score + score)


def content_streams(values: Array, columns: AnyArray, indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """A seed for the draws of each row, which depends only on its values and their columns."""
    with np.errstate(over="ignore"):
        places = (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03)
        bits = np.ascontiguousarray(values).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ places
        bits ^= bits >> np.uint64(29)
        bits *= np.uint64(0xBF58476D1CE4E5B9)
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(bits, dtype=np.uint64)])
        return (sums[indptr[1:]] - sums[indptr[:-1]]).view(np.int64)
