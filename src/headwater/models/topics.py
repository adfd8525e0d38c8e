"""Topics: latent Dirichlet allocation. The words of a document come from K topics, in its own proportions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from headwater.core.batch import Batch, SparseRows, drop_zeros
from headwater.core.contracts import Inference, Record, Sampler, StartSettings
from headwater.core.statistics import HEAVIEST, Array
from headwater.core.values import AnyArray, Index
from headwater.families.multinomial import ONE_GROUP, Multinomial
from headwater.families.multinomial_belief import contrast, separation
from headwater.families.multinomial_geometry import Geometry
from headwater.families.multinomial_records import MultinomialParameters, MultinomialPrior, MultinomialStatistics
from headwater.families.multinomial_soundness import find_statistics_problem
from headwater.families.soundness import MOST_SHARE, MOST_WORDS, NEGATIVE, NO_PRIOR, TOO_MANY, exceeds, has_negative
from headwater.families.table import Table, Words
from headwater.kernels.mixture import READOUTS
from headwater.kernels.multinomial import group_sums
from headwater.kernels.parallel import MOST_SLABS, one_blas_thread, run_tasks
from headwater.kernels.tables import add_rows, place_words
from headwater.kernels.topics import gibbs_documents, metropolis_documents, topic_table
from headwater.kernels.topics_variational import collapsed_documents, mean_field_documents
from headwater.models.latent_factors import LatentFactors, content_streams
from headwater.models.seeding import seed_assignments
from headwater.models.topic_slabs import Slab, count_words, slab_of, usual_length

Result = TypeVar("Result")

EMPTY: Array = np.empty(0)
EMPTY_TABLE: Array = np.empty((0, 0))
SLAB_WORK = 2**14  # draws of tokens for each thread
SLAB_CELLS = 2**24  # of the tables of all slabs
CHEAP = 2**22  # products of an E-step, up to which a start tries two kinds of E-steps
MOST_ROOM = 0.1  # parameters of proportions that are learned begin with a sum of at most this part of a row's length
TURNS = (2, 6)  # of the rows of a start
LEAST_PRIOR = 1e-100  # of a proportion
SEEDS = 8  # runs of k-means; the best is taken
INNER_ITERATIONS, INNER_TOL = 100, 1e-3
DRAWN = Inference("simulated", "gibbs", burn_in=10, n_samples=5)
# Draws for the proportions of a document that is not learned.
READING = Inference("simulated", "gibbs", burn_in=20, n_samples=30)


@dataclass(frozen=True)
class TopicStatistics(MultinomialStatistics):
    """Word counts, the statistics of the prior of the proportions, and the share of accepted proposals."""

    tables: Array
    accepted: Array


@dataclass(frozen=True)
class TopicPrior:
    """Dirichlet parameters of the words of each topic, and those of the proportions (K,)."""

    words: MultinomialPrior
    proportions: Array


@dataclass(frozen=True)
class TopicParameters:
    """Topics, read out for the words that are needed, and the Dirichlet parameters of the proportions (K,)."""

    words: MultinomialParameters
    proportions: Array

    def at(self, words: Words) -> Array:
        """Probabilities (W, K) of these words in each topic, or exp(E[log]) of them."""
        part, out = self.words, np.empty((len(words), len(self.proportions)))
        with part.table.reading() as (slots, rows, factor):
            topic_table(part.code, slots, rows, factor, words, float(part.prior.beta[0, 0]), part.norm[0], out)
        return out

    def all(self) -> Array:
        """The same for all words (V, K)."""
        return self.at(np.arange(self.words.table.shape[0], dtype=np.int32))


@dataclass(frozen=True)
class Topics(LatentFactors):
    """The model. `proportion_prior` is a number, one for each topic, or None if it is to be learned."""

    n_topics: int
    word_prior: float
    proportion_prior: Array | Sequence[float] | float | None = None

    @property
    def n_components(self) -> int:
        return self.n_topics

    @property
    def ways(self) -> frozenset[tuple[str, str]]:
        return frozenset({("simulated", "mode"), ("simulated", "mean"), ("collapsed", "mode"), ("mean-field", "expect_log")})

    @property
    def samplers(self) -> Mapping[str, Sampler]:
        return {"gibbs": Sampler(10, 5), "metropolis": Sampler(100, 50, 300.0)}

    @cached_property
    def family(self) -> Multinomial:
        return Multinomial(self.n_topics)

    def rows_to_learn(self, width: int) -> int:
        """Documents that it takes to estimate every topic; with many topics batches are larger, to spare reads of words."""
        return 5 * max(100, self.n_topics)

    def rows_to_start(self, width: int) -> int:
        return max(2000, 10 * self.n_topics)

    def row_bytes(self, width: int) -> int:
        return self.family.row_bytes(width)

    def zeros(self, width: int) -> TopicStatistics:
        k = self.n_topics
        parts = (np.zeros(1), np.zeros(k), np.zeros((1, k)), Table.zeros(width, k))
        return TopicStatistics(*parts, np.zeros(k + 1), np.zeros(1))

    # Beliefs

    def prior(self, width: int) -> TopicPrior:
        """The prior for this many words: `word_prior` is added to the counts, whether mean or mode is read out."""
        beta, nothing, k = np.full((1, 1), self.word_prior), np.zeros((1, 1)), self.n_topics
        totals = np.full((1, k), width * self.word_prior)
        words = MultinomialPrior(beta, nothing, totals, np.zeros((1, k)), np.array([[float(width)]]))
        given = 1.0 / k if self.proportion_prior is None else self.proportion_prior
        return TopicPrior(words, np.full(k, given, dtype=float))

    def blank_prior(self, width: int) -> TopicPrior:
        """A prior of the right shape."""
        return self.prior(width)

    def find_problem(self, record: object, width: int) -> str:
        """What is wrong with a record read from a file; "" if nothing is."""
        if isinstance(record, TopicStatistics):
            if exceeds(MOST_SHARE, record.accepted) or exceeds(MOST_WORDS, record.tables):
                return TOO_MANY
            return NEGATIVE if has_negative(record.tables, record.accepted) else find_statistics_problem(record, ONE_GROUP)
        assert isinstance(record, TopicPrior | TopicParameters)
        if record.proportions.min() < LEAST_PRIOR or exceeds(HEAVIEST, record.proportions):
            return NO_PRIOR
        return self.family.find_problem(record.words, width)

    def first(self, batch: Batch, rng: np.random.Generator) -> tuple[TopicPrior, TopicParameters]:
        """Topics that are half the mean of all rows, half the words of a cluster of rows.

        Clusters are found by k-means under the Hellinger distance: rows that share their largest topic lie together. Words are
        perturbed by a tenth in each topic, so that no two topics are equal.
        """
        X = batch.X if isinstance(batch.X, SparseRows) else drop_zeros(batch.X)
        k, rows = self.n_topics, Batch(X, batch.weights)
        with one_blas_thread():
            view = Geometry.of(rows, k).views(np.arange(len(rows)))[0]
            shares = seed_assignments("kmeans", view, rows, k, rng, lloyd_steps=6, tries=SEEDS)
        words, own = count_words(X, batch.weights, shares)
        common = own.sum(axis=1, keepdims=True)
        own = own / np.maximum(own.sum(axis=0), 1e-300) * common.sum()
        counts = (0.5 * own + 0.5 * common * rng.gamma(100.0, 0.01, size=own.shape)) / k
        table = Table.of_words(X.width, words, counts)
        statistics = replace(self.zeros(X.width), length=counts.sum(axis=0)[None], table=table)
        prior = self.prior(X.width)
        return prior, self.readout("mode", prior, statistics, 1.0)

    def firsts(self, batch: Batch, rng: np.random.Generator) -> Iterator[tuple[TopicPrior, TopicParameters]]:
        """Where proportions are learned also a start with room for many topics in a row.

        From too small a parameter every row stays in one topic, and a topic becomes a cluster of rows: nothing says then that
        it is too small. From one that is too large it falls, but slowly.
        """
        prior, parameters = self.first(batch, rng)
        yield prior, parameters
        room = min(1.0, MOST_ROOM * usual_length(batch) / self.n_topics)
        if self.proportion_prior is None and room > prior.proportions[0]:
            proportions = np.full(self.n_topics, room)
            yield replace(prior, proportions=proportions), replace(parameters, proportions=proportions)

    def turns(self, batch: Batch) -> int:
        """The more words for each word of a topic, the more often: where they are few, a start would learn them by heart."""
        known = usual_length(batch) * len(batch) / (self.n_topics * batch.X.shape[1])
        return int(np.clip(TURNS[0] * known, *TURNS))

    def held_at(self, factors: Array, batch: Batch) -> tuple[TopicPrior, TopicParameters, TopicStatistics]:
        """The expected words of a document of the usual length, in every topic."""
        prior, parameters = self.prior(factors.shape[1]), self.given(factors)
        alpha = prior.proportions
        usual = max(usual_length(batch), 1.0)
        shares = alpha / alpha.sum()
        tables = np.append(alpha, 1.0) * (digamma(usual + alpha.sum()) - digamma(alpha.sum()))  # which leave alpha as it is
        statistics = TopicStatistics(
            np.zeros(1),
            shares,
            usual * shares[None],
            Table.of_dense(np.ascontiguousarray((usual * shares[:, None] * factors).T)),
            tables if self.proportion_prior is None else np.zeros(self.n_topics + 1),
            np.zeros(1),
        )
        return prior, parameters, statistics

    def contenders(self, batch: Batch, settings: StartSettings) -> list[StartSettings]:
        """Where it costs little, mean-field E-steps as well: they find topics hidden behind one that most documents share.

        But where words are rare they lose the seeds, so variational Bayes also begins with draws.
        """
        X = batch.X if isinstance(batch.X, SparseRows) else drop_zeros(batch.X)
        smooth = replace(settings, inference=Inference("mean-field"), readout="expect_log")
        drawn = replace(settings, inference=DRAWN, readout="mode")
        own = drawn if settings.inference.way == "mean-field" else settings
        return [own, smooth] if X.nnz * self.n_topics <= CHEAP else [own]

    def readout(self, name: str, prior: TopicPrior, statistics: TopicStatistics, count: float) -> TopicParameters:
        totals = statistics if count == 1.0 else statistics.scaled(count)
        words = MultinomialParameters.of(name, prior.words, totals, ONE_GROUP)
        return TopicParameters(words, self.proportions(prior, totals))

    def given(self, topics: Array) -> TopicParameters:
        """Return parameters with these topics (K, V)."""
        prior = self.prior(topics.shape[1])
        nothing, zeros = np.zeros((1, 1)), np.zeros((1, self.n_topics))
        words = MultinomialPrior(nothing, nothing, zeros, zeros, prior.words.sizes)
        table = Table.of_dense(np.array(topics.T, order="C"))
        return TopicParameters(MultinomialParameters(READOUTS["mean"], words, table, zeros, ONE_GROUP), prior.proportions)

    def proportions(self, prior: TopicPrior, totals: TopicStatistics) -> Array:
        """Dirichlet parameters of the proportions; learned, the mean of a Gamma belief.

        Tables are what Minka's fixed point counts. Given them the parameters are Gamma distributed (Teh et al., 2006), so that
        they are learned like all else: the prior is Gamma with shape 1 and the mean they begin at, statistics add.
        """
        if self.proportion_prior is not None:
            return prior.proportions
        return (1.0 + totals.tables[:-1]) / (1.0 / prior.proportions + totals.tables[-1])

    def widen(self, value: Record, width: int) -> Record:
        if isinstance(value, TopicPrior):
            return replace(value, words=self.prior(width).words)
        assert isinstance(value, TopicStatistics)
        return replace(value, table=value.table.widened(width))

    def select_statistics(self, statistics: TopicStatistics, order: Index) -> TopicStatistics:
        plain = self.family.select_statistics(statistics, order)
        tables = np.append(statistics.tables[:-1][order], statistics.tables[-1])
        return TopicStatistics(plain.from_base, plain.count, plain.length, plain.table, tables, statistics.accepted.copy())

    def separation(self, prior: TopicPrior, totals: TopicStatistics, others: TopicStatistics) -> Array:
        return separation(prior.words, totals, others)

    def contrast(self, prior: TopicPrior, totals: TopicStatistics, others: TopicStatistics) -> Array:
        return contrast(ONE_GROUP, prior.words, totals, others)

    # Rows

    def estep(
        self, parameters: TopicParameters, batch: Batch, totals: TopicStatistics, inference: Inference, n_threads: int | None
    ) -> tuple[float, TopicStatistics]:
        """Every slab of documents reads the topics of its words, and computes the expected statistics of its tokens."""
        k, width = self.n_topics, batch.X.shape[1]

        def work(slab: Slab) -> tuple[Slab, float, Array, tuple[Array, Array, Array]]:
            target, tables = np.zeros((len(slab.words), k)), np.zeros(k + 1 if self.proportion_prior is None else 0)
            small = (np.zeros(k), tables, np.zeros(1))
            streams = inference.first + slab.first + np.arange(len(slab))
            score = self._inferred(parameters, slab, inference, streams, target, *small, EMPTY, EMPTY_TABLE)
            return slab, score, target, small

        found = self._on_slabs(work, batch, inference, n_threads)
        words, slots, target = found[0][0].words, found[0][0].slots, found[0][2]
        if len(found) > 1:
            slots, words = np.zeros(width, dtype=np.int32), np.empty(sum(len(slab.words) for slab, *_ in found), dtype=np.int32)
            used = 0
            for slab, *_ in found:
                used = place_words(slab.words, slots, words, used)
            words, target = words[:used].copy(), np.zeros((used, k))
            for slab, _, part, _ in found:
                add_rows(target, slots, slab.words, part, 1.0)
        length = np.zeros((1, k))
        group_sums(words, target, ONE_GROUP, length)
        count, tables, accepted = (sum(parts) for parts in zip(*(small for *_, small in found), strict=True))
        return float(sum(score for _, score, *_ in found)), TopicStatistics(
            totals.from_base,
            totals.count + count,
            totals.length + length,
            totals.table + Table.of_words(width, words, target, slots),
            totals.tables + tables if np.size(tables) else totals.tables,
            totals.accepted + accepted,
        )

    def log_likelihood(self, parameters: TopicParameters, batch: Batch, n_threads: int | None = None) -> Array:
        """Mean-field lower bound of the log-probability of each document."""
        scores = np.empty(len(batch))

        def work(slab: Slab) -> None:
            own = scores[slab.first : slab.first + len(slab)]
            nothing = (EMPTY_TABLE, EMPTY, EMPTY, EMPTY)
            self._inferred(parameters, slab, Inference("mean-field"), EMPTY, *nothing, own, EMPTY_TABLE)

        self._on_slabs(work, batch, READING, n_threads)
        return scores

    def posterior(self, parameters: TopicParameters, batch: Batch, n_threads: int | None = None, key: int = 0) -> Array:
        """The expected proportions of each document; draws depend on its words and the key alone."""
        out = np.empty((len(batch), self.n_topics))

        def work(slab: Slab) -> None:
            own = out[slab.first : slab.first + len(slab)]
            nothing = (EMPTY_TABLE, EMPTY, EMPTY, EMPTY)
            streams = content_streams(slab.data, slab.words[slab.local], slab.indptr)
            self._inferred(parameters, slab, replace(READING, key=key), streams, *nothing, EMPTY, own)

        self._on_slabs(work, batch, READING, n_threads)
        return out

    def _inferred(
        self, parameters: TopicParameters, slab: Slab, inference: Inference, streams: AnyArray, target: Array, count: Array,
        tables: Array, accepted: Array, scores: Array, proportions: Array,
    ) -> float:  # fmt: skip
        topics, alpha = parameters.at(slab.words), parameters.proportions
        rows = (slab.indptr, slab.local, slab.data, 0, len(slab), topics, alpha)
        out = (target, count, tables)
        if inference.way == "mean-field":
            return mean_field_documents(*rows, INNER_ITERATIONS, INNER_TOL, slab.weights, *out, scores, proportions)
        if inference.way == "collapsed":
            return collapsed_documents(*rows, inference.burn_in, slab.weights, *out, proportions)
        draws = (inference.burn_in, inference.n_samples, inference.rao_blackwell)
        key = np.uint64(inference.key)
        if inference.way != "simulated":
            raise ValueError(f"topics have no {inference.way} E-step")
        if inference.sampler == "gibbs":
            return gibbs_documents(*rows, *draws, key, streams, slab.weights, *out, proportions)
        return metropolis_documents(
            *rows, *draws, inference.kappa, key, streams, slab.weights, *out, accepted, proportions
        )  # fmt: skip

    def _on_slabs(
        self, work: Callable[[Slab], Result], batch: Batch, inference: Inference, n_threads: int | None
    ) -> list[Result]:
        """Cut documents into slabs, by the work there is, so that threads change nothing, and do it.

        With many topics there are fewer, since each reads the topics of its words, and slabs have words in common.
        """
        X = batch.X if isinstance(batch.X, SparseRows) else drop_zeros(batch.X)
        sweeps = inference.burn_in + inference.n_samples
        most = min(MOST_SLABS, max(4, SLAB_CELLS // max(1, min(X.nnz, X.width) * self.n_topics)))
        number = min(X.nnz * sweeps // SLAB_WORK, most)
        if number < 2:
            return [work(slab_of(X, batch.weights, 0))]
        inner = np.searchsorted(X.indptr, X.indptr[0] + X.nnz * np.arange(1, number) // number)
        edges = np.unique(np.concatenate([[0], np.clip(inner, 0, len(X)), [len(X)]]))

        def one(cut: tuple[int, int]) -> Result:
            return work(slab_of(X[cut[0] : cut[1]], batch.weights[cut[0] : cut[1]], int(cut[0])))

        return run_tasks(one, list(pairwise(edges)), n_threads)

    # Drawing

    def sample(
        self, parameters: TopicParameters, rows: int, rng: np.random.Generator, lengths: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Draw documents of these lengths, and their proportions."""
        topics = parameters.all().T
        topics /= topics.sum(axis=1, keepdims=True)
        proportions = rng.dirichlet(parameters.proportions, size=rows)
        return rng.multinomial(lengths, proportions @ topics).astype(float), proportions
