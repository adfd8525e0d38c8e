"""Mixture: K components of a family, with weights under a Dirichlet prior. Knows the E-step, the readouts and the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from headwater.core.average import fold_share
from headwater.core.batch import Batch
from headwater.core.contracts import EXACT, NO_SCORES, Inference, Model, Sampler, Start, StartSettings
from headwater.core.gapped_rows import GappedRows
from headwater.core.noisy_rows import NoisyRows
from headwater.core.state import Stream, Summary
from headwater.core.statistics import HEAVIEST, Array
from headwater.core.values import Index, Matrix
from headwater.families.capabilities import MatchesMoments, SweepsRows
from headwater.families.family import Family
from headwater.families.family_core import Params, Prior, Stats
from headwater.families.geometry import RowGeometry
from headwater.families.soundness import NO_PARAMETERS, NO_PRIOR, are_no_logs, exceeds
from headwater.kernels.mixture import READOUTS, draw_components, weights_readout
from headwater.kernels.parallel import one_blas_thread
from headwater.models.belief_repair import repair_beliefs
from headwater.models.mixture_records import MixtureParameters, MixturePrior, dirichlet_divergence
from headwater.models.start import suffice, tournament

NO_SHARES: Array = np.empty((0, 0))
LOWEST_SCORE = -1e230  # of a batch whose rows lie beyond all reach of the components: files hold it, and means of it are finite


@dataclass(frozen=True)
class Mixture(Model[MixturePrior[Prior], Stats, MixtureParameters[Params]], Generic[Prior, Stats, Params]):
    """A mixture model: pure functions of parameters, statistics and rows."""

    n_components: int
    family: Family[Prior, Stats, Params]
    weight_concentration_prior: float | Array | None = None
    restates = True

    @property
    def ways(self) -> frozenset[tuple[str, str]]:
        """Exact E-steps for every readout of the family; simulated ones, as a check."""
        return frozenset(("exact", readout) for readout in self.family.readouts) | {("simulated", "mode")}

    @property
    def samplers(self) -> Mapping[str, Sampler]:
        """Components are drawn independently, without burn-in."""
        return {"independent": Sampler(n_samples=10)}

    @property
    def has_prior(self) -> bool:
        return self.weight_concentration_prior is not None or self.family.has_prior

    @property
    def is_regularized(self) -> bool:
        return self.family.is_regularized

    def n_parameters(self, width: int) -> int:
        """Number of free parameters, weights included."""
        return self.family.n_parameters(width) + self.n_components - 1

    def rows_to_learn(self, width: int) -> int:
        """Rows that it takes to move every parameter."""
        return self.family.rows_to_learn(width)

    @property
    def rows_to_tell_apart(self) -> int:
        """Rows below which a start misses some components."""
        return self.family.rows_to_tell_apart

    def row_bytes(self, width: int) -> int:
        """Memory of a row that waits."""
        return self.family.row_bytes(width)

    def zeros(self, width: int) -> Stats:
        return self.family.zeros(width)

    def statistics_for(self, name: str, statistics: Stats) -> Stats:
        """Return statistics in the form that the named readout keeps: only moment matching has its own."""
        return self._projected.split_masses(statistics) if name == "match_moments" else statistics

    @property
    def _projected(self) -> MatchesMoments:
        return cast(MatchesMoments, self.family)

    # Priors and readouts

    def flatten_prior(self, prior: MixturePrior[Prior]) -> MixturePrior[Prior]:
        """The prior whose mode is maximum likelihood, unless the user gave one."""
        if self.has_prior:
            return replace(prior, components=self.family.flatten_parts(prior.components))
        return MixturePrior(np.ones(self.n_components), self.family.flatten_prior(prior.components))

    def blank_prior(self, width: int) -> MixturePrior[Prior]:
        """A prior of the right shape."""
        return MixturePrior(np.ones(self.n_components), self.family.blank_prior(width))

    def find_problem(self, record: object, width: int) -> str:
        """What is wrong with a record read from a file; "" if nothing is."""
        if isinstance(record, MixturePrior):
            unsound = record.concentration.min() <= 0.0 or exceeds(HEAVIEST, record.concentration)
            return NO_PRIOR if unsound else self.family.find_problem(record.components, width)
        if isinstance(record, MixtureParameters):
            return NO_PARAMETERS if are_no_logs(record.log_weights) else self.family.find_problem(record.components, width)
        return self.family.find_problem(record, width)

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> MixturePrior[Prior]:
        """The user's prior, completed in the scale of rows that were seeded with these responsibilities."""
        concentration = 1.0 if self.weight_concentration_prior is None else self.weight_concentration_prior
        components = self.family.prior(geometry, batch, responsibilities)
        return MixturePrior(np.array(np.broadcast_to(concentration, self.n_components), dtype=float), components)

    def refine_prior(
        self, prior: MixturePrior[Prior], parameters: MixtureParameters[Params], geometry: RowGeometry
    ) -> MixturePrior[Prior]:
        """The prior of components like these (empirical Bayes)."""
        weights = np.exp(parameters.log_weights)
        components = self.family.refine_prior(prior.components, parameters.components, weights / weights.sum(), geometry)
        return replace(prior, components=components)

    def refit_prior(
        self, prior: MixturePrior[Prior], parameters: MixtureParameters[Params], batch: Batch
    ) -> MixturePrior[Prior]:
        """The prior of components like these, if each has enough of these rows."""
        if not suffice(batch, self.n_components):
            return prior
        return self.refine_prior(prior, parameters, self.family.geometry(batch.in_doubles))

    def readout(self, name: str, prior: MixturePrior[Prior], statistics: Stats, count: float) -> MixtureParameters[Params]:
        """Parameters of the belief prior + count * statistics: "mode", "mean", "expect_log" or "predictive"."""
        totals = statistics if count == 1.0 else statistics.scaled(count)
        log_weights = self.log_weights(name, prior, totals.count)
        return self._scale_weights(MixtureParameters(log_weights, self.family.readout(name, prior.components, totals)), 1.0)

    def log_weights(self, name: str, prior: MixturePrior[Prior], count: Array) -> Array:
        """Log-weights of the belief, or what the readout puts in their place."""
        log_weights = np.empty(self.n_components)
        weights_readout(READOUTS[name], prior.concentration, count, log_weights)
        return log_weights

    def _scale_weights(self, parameters: MixtureParameters[Params], sign: float) -> MixtureParameters[Params]:
        """Weights of components, which sum to one, as parts of all rows, of which some may be a background's; or back (-1)."""
        share = self.family.log_component_share(parameters.components)
        return replace(parameters, log_weights=parameters.log_weights + sign * share) if share else parameters

    def objective(
        self,
        name: str,
        prior: MixturePrior[Prior],
        parameters: MixtureParameters[Params],
        statistics: Stats,
        count: float,
    ) -> float:
        """The term that makes the summed score an objective that passes of the named readout never lower.

        Modes: the log-density of the prior. Variational Bayes: minus KL(belief || prior), which makes it the free energy.
        """
        if name == "expect_log":
            totals = statistics.scaled(count)
            weights = self.weights_divergence(prior, totals.count)
            return -float(weights + self.family.divergence(prior.components, totals))
        if name == "mode":
            weights = ((prior.concentration - 1.0) * self._scale_weights(parameters, -1.0).log_weights).sum()
            return float(weights + self.family.log_prior(prior.components, parameters.components))
        return 0.0

    def weights_divergence(self, prior: MixturePrior[Prior], count: Array) -> float:
        """KL(belief || prior) of the weights."""
        return dirichlet_divergence(prior.concentration, prior.concentration + count)

    def weight_marginals(self, prior: MixturePrior[Prior], count: Array) -> tuple[Array, Array]:
        """Both parameters (K,) of the Beta belief about each weight."""
        return (own := prior.concentration + count), own.sum() - own

    # Merging

    def repair(self, prior: MixturePrior[Prior], totals: Stats, parts: Sequence[Stats]) -> tuple[Stats, tuple[int, ...]]:
        """Return totals that form a valid belief with the prior, and the components that had to be repaired for it.

        A difference of beliefs may be invalid. Such a component gets the mean of the valid parts, or the prior if none is
        valid: beliefs are convex in their natural parameters, so a mean of them is valid.
        """
        if "match_moments" not in self.family.readouts:  # then beliefs are prior and counts, which always add
            return totals, ()
        return repair_beliefs(self._projected, prior, totals, parts)

    def common_prior(self, priors: Sequence[MixturePrior[Prior]]) -> MixturePrior[Prior]:
        """Return the prior of models that are merged: that of the first, but for what their families hold in common."""
        components = self.family.common_prior([prior.components for prior in priors])
        return priors[0] if components is priors[0].components else replace(priors[0], components=components)

    def move_to_prior(self, prior: MixturePrior[Prior], own: MixturePrior[Prior], statistics: Stats) -> Stats:
        """Return statistics that were gathered under the prior `own` about the origin of another."""
        return self.family.move_to_prior(prior.components, own.components, statistics)

    def align(self, known: Stats, statistics: Stats) -> Stats:
        """Return statistics rotated to the axes of others, where axes are arbitrary."""
        return self.family.align(known, statistics)

    def select_statistics(self, statistics: Stats, order: Index) -> Stats:
        """Return statistics with the components in another order."""
        return self.family.select_statistics(statistics, order)

    def select_prior(self, prior: MixturePrior[Prior], order: Index) -> MixturePrior[Prior]:
        """Return the prior of some of the components."""
        return MixturePrior(prior.concentration[order], self.family.select_prior(prior.components, order))

    def select_parameters(self, parameters: MixtureParameters[Params], order: Index) -> MixtureParameters[Params]:
        """Return the parameters of some of the components, whose weights sum to one again."""
        log_weights = parameters.log_weights[order]
        total = 0.0
        if len(log_weights) < self.n_components:
            total = np.logaddexp.reduce(log_weights) - self.family.log_component_share(parameters.components)
        return MixtureParameters(log_weights - total, self.family.select_parameters(parameters.components, order))

    # Moves

    def resize(self, n_components: int) -> Mixture:
        """Return the same kind of mixture with another number of components."""
        return replace(self, n_components=n_components, family=self.family.resize(n_components))

    def part(self, n_components: int) -> Mixture:
        """Return a mixture of so many of the components, to which nothing else is added: a part of the whole density."""
        return replace(self, n_components=n_components, family=self.family.without_background(n_components))

    def recombine(
        self, statistics: Stats, matrix: Array, others: Stats | None = None, other_matrix: Array | None = None
    ) -> Stats:
        """Return matrix @ statistics + other_matrix @ others, over the components: they are merged, split or replaced."""
        return self.family.recombine(statistics, matrix, others, other_matrix)

    @property
    def has_own_moments(self) -> bool:
        """Whether every component has its own moments."""
        return self.family.has_own_moments

    def mend(self, prior: MixturePrior[Prior], totals: Stats, sound: Stats, share: float) -> Stats:
        """Return valid totals; components that no rows could have made are replaced by those of `sound`."""
        return self.family.mend(prior.components, totals, sound, share)

    def posterior_and_scores(
        self, parameters: MixtureParameters[Params], batch: Batch, n_threads: int | None = None
    ) -> tuple[Array, Array]:
        """Return responsibilities (n, K) and scores of rows."""
        shares, scores = np.empty((len(batch), self.n_components)), np.empty(len(batch))
        self.family.estep(
            parameters.components, parameters.log_weights, batch, scores=scores, responsibilities=shares, n_threads=n_threads
        )
        return shares, scores

    def separation(self, prior: MixturePrior[Prior], totals: Stats, others: Stats) -> Array:
        """Symmetric divergence (K, K) of the beliefs about these components and about those, up to a constant."""
        alpha, alphas = (np.maximum(prior.concentration + one.count, 1e-300) for one in (totals, others))
        weights = (alpha[:, None] - alphas) * (digamma(alpha)[:, None] - digamma(alphas))
        return np.asarray(weights + self.family.separation(prior.components, totals, others))

    def contrast(self, prior: MixturePrior[Prior], totals: Stats, others: Stats) -> Array:
        """Symmetric divergence (K,) of the densities of each component here and there, in nats a row."""
        return self.family.contrast(prior.components, totals, others)

    # Rows

    def start(
        self, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None
    ) -> Start[MixturePrior[Prior], Stats, MixtureParameters[Params]]:
        """Find a prior and parameters to start from on the rows of a warm-up."""
        with one_blas_thread():
            batch = batch.in_doubles
            return tournament(replace(self, family=self.family.settle(batch)), batch, key, settings, n_threads)

    def summarize(
        self,
        parameters: MixtureParameters[Params],
        batch: Batch,
        pending: Summary | None = None,
        scores: Array = NO_SCORES,
        n_threads: int | None = None,
        inference: Inference = EXACT,
        responsibilities: Array = NO_SHARES,
    ) -> Summary:
        """E-step: add the rows to the pending summary, whose arrays are reused, or to a fresh one.

        An exact E-step also fills `responsibilities`, if they are given.
        """
        assert len(parameters.log_weights) == self.n_components  # kernels do not check it
        pending = pending or Summary(self.zeros(batch.X.shape[1]))
        options = (parameters.components, parameters.log_weights, batch)
        if inference.way == "exact" or inference.rao_blackwell:  # the expectation of the draws is the exact E-step
            score, totals = self.family.estep(*options, pending.statistics, scores, responsibilities, n_threads=n_threads)
        else:
            shares = np.empty((len(batch), self.n_components))
            score, _ = self.family.estep(*options, scores=scores, responsibilities=shares, n_threads=n_threads)
            known = shares.sum(axis=1, keepdims=True)  # what a background leaves to components is not drawn
            draw_components(shares, inference.n_samples, np.uint64(inference.key), inference.first)
            if self.family.log_component_share(parameters.components):
                shares *= known
            _, totals = self.family.estep(
                *options, pending.statistics, responsibilities=shares, given=True, n_threads=n_threads
            )
        score = max(pending.score + score, LOWEST_SCORE)
        return Summary(totals, pending.rows + len(batch), pending.size + batch.size, score)

    def sweeps(self, inference: Inference) -> bool:
        """Whether rows are learned one by one."""
        return inference.way == "exact"

    def climb(
        self,
        name: str,
        prior: MixturePrior[Prior],
        summary: Summary[Stats],
        batch: Batch,
        passes: int,
        tol: float,
        before: float,
    ) -> tuple[Summary[Stats], MixtureParameters[Params], Array, bool] | None:
        """Passes over one slab of rows, from a summary of them: the fast path, where there is one, of `climb` in start.py."""
        totals = summary.statistics.copy()
        end = self.family.climb(name, prior.components, prior.concentration, batch, passes, tol, before, totals)
        if end is None:
            return None
        log_weights, components, trace, converged = end
        totals.from_base[...] = 0.0
        summary = Summary(totals, len(batch), batch.size, float(trace[-1]) * batch.size)
        return summary, MixtureParameters(log_weights, components), trace, converged

    def collect(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> Summary[Stats]:
        """Summary of rows whose responsibilities are known."""
        return Summary(self.family.collect_seeds(geometry, batch, responsibilities), len(batch), batch.size)

    def sweep(
        self,
        name: str,
        prior: MixturePrior[Prior],
        statistics: Stats,
        average: Stats | None,
        n_eff: float,
        batch: Batch,
        steps: Array,
        gains: Array,
        scores: Array = NO_SCORES,
        projection: tuple[str, str] | None = None,
    ) -> tuple[Stats, Stats | None, float]:
        """Learn row by row: the loop with batches of one, inside a kernel. Returns statistics, average and n_eff.

        With a projection (of weights, of degrees of freedom) every row is learned by moment matching.
        """
        gapped = statistics.gapped or type(batch.X) is GappedRows
        sweeps = self.sweeps_rows(prior) and (not gapped or self.family.sweeps_gaps) and type(batch.X) is not NoisyRows
        if projection is None and not sweeps:
            return super().sweep(name, prior, statistics, average, n_eff, batch, steps, gains, scores)
        if projection is not None:
            after, n_eff = self._projected.match(
                prior.components, prior.concentration, batch, steps, n_eff, statistics, scores, projection
            )
            moving = None
        else:
            after, moving, n_eff = cast(SweepsRows, self.family).sweep(
                name, prior.components, prior.concentration, batch, steps, gains, n_eff, statistics, average, scores
            )
        fold_share(statistics, after, average, moving, steps, gains)
        return after, moving, n_eff

    def sweeps_rows(self, prior: MixturePrior[Prior]) -> bool:
        """Whether a kernel learns rows one by one under this prior."""
        return self.family.can_sweep(prior.components)

    def log_likelihood(self, parameters: MixtureParameters[Params], batch: Batch, n_threads: int | None = None) -> Array:
        """Log-density of every row."""
        scores = np.empty(len(batch))
        self.family.estep(parameters.components, parameters.log_weights, batch, scores=scores, n_threads=n_threads)
        return scores

    def posterior(self, parameters: MixtureParameters[Params], batch: Batch, n_threads: int | None = None) -> Array:
        """Responsibilities (n, K) of rows."""
        responsibilities = np.empty((len(batch), len(parameters.log_weights)))
        self.family.estep(
            parameters.components, parameters.log_weights, batch, responsibilities=responsibilities, n_threads=n_threads
        )
        return responsibilities

    def sample(
        self, parameters: MixtureParameters[Params], rows: int, rng: np.random.Generator, *options: Matrix
    ) -> tuple[Array, NDArray[np.int64]]:
        """Draw rows and the components they came from, sorted by component as scikit-learn has it."""
        weights = np.exp(parameters.log_weights)
        counts = rng.multinomial(rows, weights / weights.sum())
        components = np.repeat(np.arange(self.n_components), counts)
        return self.family.sample(parameters.components, components, rng, *options), components


def mixture_of(stream: Stream) -> Mixture:
    """Return the model of a stream that a policy of mixtures has a record in."""
    assert isinstance(stream.model, Mixture)
    return stream.model
