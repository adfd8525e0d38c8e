"""Spectra: Itakura-Saito NMF. The powers of a row are exponential with a mean that is a weighted sum of K spectra.

A weight h_k is inverse Gamma (shape, scale), so only the product of a spectrum and its scale is identified: the `powers`, which
are the spectrum for weights of scale 1. They are what is learned (paper 001; c, G, y and v as in kernels/spectra.py).

Rows without power are counted, and nothing is learned from them; bins that never had any are left out until they have some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, zeta

from headwater.core.batch import Batch
from headwater.core.contracts import Inference, Sampler, StartSettings
from headwater.core.statistics import HEAVIEST, Array
from headwater.core.values import AnyArray, Index
from headwater.families.soundness import MOST_SHARE, NEGATIVE, NO_PARAMETERS, NO_PRIOR, TOO_MANY, exceeds, has_negative
from headwater.kernels.parallel import MOST_SLABS, run_tasks
from headwater.kernels.spectra import draw_weights_gibbs, draw_weights_metropolis
from headwater.kernels.spectra_mode import map_weights
from headwater.kernels.spectra_scores import marginal_scores, row_scores
from headwater.models.latent_factors import LatentFactors, content_streams
from headwater.models.spectra_records import SpectraParameters, SpectraPrior, SpectraStatistics

NO_ROW: Array = np.empty(0)
NO_TABLE: Array = np.empty((0, 0))
SLAB_WORK = 2**18  # products of a weight and a power for each thread
QUIETEST = 1e-12  # of a spectrum, as a part of its mean: 120 dB below
SILENCE = 1e-140  # rows with less power are silent
MOST_POWER = 1e150  # of a bin
MOST_LOGS = 1e3  # the logarithm of a power, in size
INFORMED = 0.0  # the sharpness that stands for proposals made from the row itself
# Draws for the weights of a row that is not learned, and for its score.
READING = Inference("simulated", "metropolis", burn_in=4, n_samples=64, kappa=INFORMED)
SCORE_DRAWS = 64
MODE_STEPS, MODE_TOL = 500, 1e-5
TRIES = 4
SHAPES, SHAPE_STEPS = (0.1, 50.0), 2


@dataclass(frozen=True)
class Spectra(LatentFactors):
    """The model. `shape` is that of the weights, or None if it is to be learned.

    `prior_rows` is the weight of the prior of the spectra in rows: it has the shape prior_rows - 1 (a' of paper 001).
    """

    n_spectra: int
    shape: float | None = None
    prior_rows: float = 0.0

    @property
    def n_components(self) -> int:
        return self.n_spectra

    @property
    def ways(self) -> frozenset[tuple[str, str]]:
        return frozenset({("simulated", "mode"), ("simulated", "surrogate")})

    @property
    def samplers(self) -> Mapping[str, Sampler]:
        return {"metropolis": Sampler(1, 1, INFORMED), "gibbs": Sampler(10, 5)}

    def rows_to_learn(self, width: int) -> int:
        """A row has information about every bin, so few rows are enough."""
        return 100

    def zeros(self, width: int) -> SpectraStatistics:
        k = self.n_spectra
        parts, up, down = (np.zeros((k, width)) for _ in range(3))
        return SpectraStatistics(np.zeros(1), parts, up, down, np.zeros((2, k)), np.zeros(1), np.zeros(1))

    # Beliefs

    def blank_prior(self, width: int) -> SpectraPrior:
        """A prior of the right shape."""
        return SpectraPrior(np.zeros(1), np.zeros(width), np.ones(1), np.zeros(1))

    def find_problem(self, record: object, width: int) -> str:
        """What is wrong with a record read from a file; "" if nothing is."""
        if isinstance(record, SpectraPrior):
            unsound = has_negative(record.rows, record.spectrum) or record.scale[0] < SILENCE or exceeds(HEAVIEST, record.rows)
            unsound = unsound or exceeds(MOST_SHARE, record.spectrum / width) or exceeds(MOST_POWER, record.scale)
            return NO_PRIOR if unsound or exceeds(MOST_LOGS * width, record.level) else ""
        if isinstance(record, SpectraStatistics):
            parts = (record.parts, record.up, record.down, record.lively, record.accepted, record.moments[1])
            if has_negative(*parts):
                return NEGATIVE
            if exceeds(MOST_SHARE, record.lively, record.accepted) or exceeds(MOST_LOGS**2, record.moments):
                return TOO_MANY
            return "has more power than any row" if exceeds(MOST_POWER, record.parts, record.up, record.down) else ""
        assert isinstance(record, SpectraParameters)
        unsound = (
            has_negative(record.powers) or record.scales.min() < SILENCE or exceeds(MOST_POWER, record.scales, record.powers)
        )
        shape = float(record.shape[0])
        return NO_PARAMETERS if unsound or not SHAPES[0] <= shape <= SHAPES[1] else ""

    def first(self, batch: Batch, rng: np.random.Generator) -> tuple[SpectraPrior, SpectraParameters]:
        """Spectra that are half those of rows that are unlike each other, half the mean spectrum."""
        k, width = self.n_spectra, batch.X.shape[1]
        power = batch.X.mean(axis=1)
        lively = power > SILENCE
        mean, level, rows, weights = np.zeros(width), 1.0, np.zeros((1, width)), np.ones(1)
        if lively.any():
            power, weights = power[lively], batch.row_weights[lively]
            rows = batch.X[lively] / power[:, None]
            mean = weights @ rows / weights.sum()
            level = np.exp(weights @ np.log(power) / weights.sum())
        shape = 1.0 if self.shape is None else self.shape
        scale = level / k * np.exp(digamma(shape))  # E[log h] = log scale - digamma(shape)
        mean = _normal(mean)
        prior = self._prior(mean, scale)
        seeds = rows[_unlike(rows, weights, mean, k, rng)]
        noise = rng.gamma(100.0, 0.01, size=(k, width))  # rows may be equal
        return prior, self._parameters(prior, _normal(0.5 * (seeds + mean) * noise), np.full(k, scale), shape)

    def held_at(self, factors: Array, batch: Batch) -> tuple[SpectraPrior, SpectraParameters, SpectraStatistics]:
        """The statistics of which these powers are the readout, with equal shares of the power; the prior is about them."""
        scales, theta = factors.mean(axis=1), _normal(factors)
        shape = 1.0 if self.shape is None else self.shape
        prior = self._prior(_normal(theta.mean(axis=0)), float(np.exp(np.log(scales).mean())))
        heard, logs = theta > 0.0, np.log(scales) - digamma(shape)
        up = np.where(heard, 1.0 / self.n_spectra, 0.0)
        down = up / np.where(heard, theta, 1.0)
        moments, parameters = np.stack([logs, logs**2 + zeta(2.0, shape)]), self._parameters(prior, theta, scales, shape)
        kept = (np.zeros(1), parameters.powers.copy(), up, down, moments, np.ones(1), np.zeros(1))
        return prior, parameters, SpectraStatistics(*kept)

    def _prior(self, mean: Array, scale: float) -> SpectraPrior:
        logs = np.log(scale * mean[mean > 0.0]).sum()
        return SpectraPrior(np.array([self.prior_rows]), mean, np.array([scale]), np.array([logs]))

    def readout(self, name: str, prior: SpectraPrior, statistics: SpectraStatistics, count: float) -> SpectraParameters:
        """The posterior mode of plain EM, or a step that is longer.

        The second has the same fixed points except for the scale of a spectrum. The scale, and the shape of the weights if it
        is learned, are chosen so that log h has the mean and the variance of the prior: maximum likelihood would use the mean
        of 1 / h, which is dominated by rows in which a component is silent.
        """
        rows, lively = float(prior.rows[0]), count * float(statistics.lively[0])
        shape = self._learned_shape(statistics, lively)
        if name == "mode":
            powers = (count * statistics.parts + rows * prior.scale * prior.spectrum) / (count + rows)
            scales = powers.mean(axis=1)
            return self._parameters(prior, _normal(powers), np.where(scales > SILENCE, scales, prior.scale), shape)
        # Where count (up - down theta) + rows (m / theta - 1) = 0.
        up, down = statistics.up, np.maximum(statistics.down, SILENCE)
        theta = up / down
        if rows:
            half = 0.5 * (up - rows / count)
            theta = (half + np.sqrt(half * half + rows / count * down * prior.spectrum)) / down
        log_scale = np.log(prior.scale)
        if lively:
            found = statistics.moments[0] / statistics.lively + digamma(shape)
            log_scale = (lively * found + rows * log_scale) / (lively + rows)
        return self._parameters(prior, _normal(theta), np.broadcast_to(np.exp(log_scale), (self.n_spectra,)), shape)

    def _learned_shape(self, statistics: SpectraStatistics, lively: float) -> float:
        """The shape of the weights whose log has the observed variance; 1 with a single row."""
        if self.shape is not None:
            return self.shape
        mean, square = statistics.moments / max(float(statistics.lively[0]), SILENCE)
        found = max(float((square - mean * mean).mean()), 0.0)
        variance = (lively * found + zeta(2.0, 1.0)) / (lively + 1.0)
        shape = (1.0 + np.sqrt(1.0 + 4.0 * variance)) / (2.0 * variance)  # near enough for Newton on 1 / trigamma
        for _ in range(SHAPE_STEPS):
            trigamma = zeta(2.0, shape)
            shape += (trigamma / variance - 1.0) * trigamma / (2.0 * zeta(3.0, shape))
        return float(min(max(shape, SHAPES[0]), SHAPES[1]))

    def _parameters(self, prior: SpectraPrior, theta: Array, scales: Array, shape: float) -> SpectraParameters:
        return SpectraParameters(theta * scales[:, None], scales, np.array([shape]), prior.level)

    def select_statistics(self, statistics: SpectraStatistics, order: Index) -> SpectraStatistics:
        moments = np.ascontiguousarray(statistics.moments[:, order])
        tables = {name: getattr(statistics, name)[order] for name in ("parts", "up", "down")}
        return replace(statistics.copy(), moments=moments, **tables)

    def separation(self, prior: SpectraPrior, totals: SpectraStatistics, others: SpectraStatistics) -> Array:
        """The divergence of two powers of a bin, times the rows it is known from: its share of power in the component."""
        (one, known), (other, also) = _known(totals), _known(others)
        return np.array([(0.5 * (known[k] + also) * _distance(one[k], other)).sum(axis=1) for k in range(self.n_spectra)])

    def contrast(self, prior: SpectraPrior, totals: SpectraStatistics, others: SpectraStatistics) -> Array:
        """In nats a bin, for bins in which the component has much power."""
        (one, known), (other, also) = _known(totals), _known(others)
        return (_distance(one, other) * (known + also)).sum(axis=1) / np.maximum((known + also).sum(axis=1), SILENCE)

    # Rows

    def turns(self, batch: Batch) -> int:
        return 4

    def firsts(self, batch: Batch, rng: np.random.Generator) -> Iterator[tuple[SpectraPrior, SpectraParameters]]:
        """Spectra that end up silent stay silent, so several starts compete."""
        return (self.first(batch, rng) for _ in range(TRIES if self.n_spectra > 1 else 1))

    def contenders(self, batch: Batch, settings: StartSettings) -> list[StartSettings]:
        """A start uses the longer steps, which are better there."""
        return [replace(settings, readout="surrogate")]

    def estep(
        self,
        parameters: SpectraParameters,
        batch: Batch,
        totals: SpectraStatistics,
        inference: Inference,
        n_threads: int | None,
    ) -> tuple[float, SpectraStatistics]:
        """Draw the weights of the rows; the score is the log-density at their mean, in units of the prior's spectrum."""
        size = batch.size
        lively = batch.X.max(axis=1) > SILENCE
        places = np.arange(len(batch)) if lively.all() else np.flatnonzero(lively)
        rows = batch if lively.all() else batch[places]
        weighs = rows.size
        powers, X, bins = _heard(parameters, rows.X)
        k, width = powers.shape
        raw = not inference.rao_blackwell
        means, scores, accepted = np.empty((len(rows), k)), np.empty(len(rows)), np.zeros(len(rows))

        def work(cut: tuple[int, int]) -> tuple[Array, ...]:
            own = slice(*cut)
            target, shares, wiener, moments = (*(np.zeros((k, width)) for _ in range(3)), np.zeros((2, k)))
            out = (target if raw else NO_TABLE, shares, wiener, moments, means[own], accepted[own])
            self._draw(parameters, powers, X[own], inference, inference.first + places[own], rows.weights[own], *out)
            row_scores(X, *cut, powers, means, scores)
            return target, shares, wiener, moments

        target, shares, wiener, moments = (*(np.zeros((k, width)) for _ in range(3)), np.zeros((2, k)))
        for tables in run_tasks(work, self._cuts(len(rows), width, inference), n_threads):
            for total, table in zip((target, shares, wiener, moments), tables, strict=True):
                total += table
        parts = target if raw else wiener + powers * np.maximum(weighs - shares, 0.0)
        tables = (parts + (size - weighs) * powers, wiener / powers, shares * (parameters.scales[:, None] / powers))
        if bins is not None:
            tables = self._awoken(parameters, rows, means, bins, tables)
        parts, up, down = tables
        shift, (log_h, square) = np.log(parameters.scales), moments
        moments = np.stack([log_h + weighs * shift, square + shift * (2.0 * log_h + weighs * shift)])
        proposals = (inference.burn_in + inference.n_samples) * (k + (inference.kappa == INFORMED))
        return float(rows.row_weights @ scores) + weighs * float(parameters.level[0]), SpectraStatistics(
            totals.from_base,
            totals.parts + parts,
            totals.up + up,
            totals.down + down,
            totals.moments + moments,
            totals.lively + weighs,
            totals.accepted + float(rows.row_weights @ accepted) / proposals,
        )

    def _awoken(
        self, parameters: SpectraParameters, rows: Batch, means: Array, bins: NDArray[np.bool_], tables: tuple[Array, ...]
    ) -> tuple[Array, Array, Array]:
        """Tables of all bins. A bin without power before is treated as if all spectra had their mean there."""
        full = np.zeros((3, self.n_spectra, len(bins)))
        full[:, :, bins] = tables
        new = ~bins & (rows.X > 0.0).any(axis=0)
        if new.any():
            weights = means * parameters.scales
            shares = (weights / weights.sum(axis=1, keepdims=True)).T * rows.row_weights
            full[1][:, new] = shares @ (rows.X[:, new] / weights.sum(axis=1)[:, None])
            full[2][:, new] = shares.sum(axis=1)[:, None]
            full[0][:, new] = full[1][:, new] * parameters.scales[:, None]
        return full[0], full[1], full[2]

    def log_likelihood(self, parameters: SpectraParameters, batch: Batch, n_threads: int | None = None) -> Array:
        """Log-density of each row with its weights integrated out, by importance sampling; draws depend on the row alone."""
        scores, streams = np.empty(len(batch)), _streams(batch.X)
        powers, X, _ = _heard(parameters, batch.X)
        shape = float(parameters.shape[0])

        def work(cut: tuple[int, int]) -> None:
            marginal_scores(X, *cut, powers, shape, 1.0, SCORE_DRAWS, 0, streams, scores)

        run_tasks(work, self._cuts(len(X), X.shape[1], READING), n_threads)
        return scores

    def posterior(self, parameters: SpectraParameters, batch: Batch, n_threads: int | None = None) -> Array:
        """The expected weights of scale 1; draws depend on the row alone."""
        out, streams = np.empty((len(batch), self.n_spectra)), _streams(batch.X)
        powers, X, _ = _heard(parameters, batch.X)

        def work(cut: tuple[int, int]) -> None:
            own, nothing = slice(*cut), (NO_TABLE, NO_TABLE, NO_TABLE, NO_TABLE)
            self._draw(parameters, powers, X[own], READING, streams[own], NO_ROW, *nothing, out[own], NO_ROW)

        run_tasks(work, self._cuts(len(X), X.shape[1], READING), n_threads)
        return out

    def mode(self, parameters: SpectraParameters, batch: Batch, likelihood: bool, n_threads: int | None = None) -> Array:
        """Weights of scale 1 with the greatest posterior density, or likelihood."""
        out, (powers, X, _) = np.empty((len(batch), self.n_spectra)), _heard(parameters, batch.X)
        prior = (-1.0, 0.0) if likelihood else (float(parameters.shape[0]), 1.0)

        def work(cut: tuple[int, int]) -> None:
            map_weights(X, *cut, powers, *prior, MODE_STEPS, MODE_TOL, out)

        run_tasks(work, self._cuts(len(X), X.shape[1], READING), n_threads)
        return out

    def _draw(
        self, parameters: SpectraParameters, powers: Array, X: Array, inference: Inference, streams: AnyArray, weights: Array,
        target: Array, shares: Array, wiener: Array, moments: Array, means: Array, accepted: Array,
    ) -> None:  # fmt: skip
        head = (X, 0, len(X), powers, float(parameters.shape[0]), 1.0)
        draws = (inference.burn_in, inference.n_samples, inference.rao_blackwell, np.uint64(inference.key), streams)
        out = (weights, target, shares, wiener, moments, means)
        if inference.sampler == "gibbs":
            draw_weights_gibbs(*head, *draws, *out)
        else:
            step = 0.0 if inference.kappa == INFORMED else inference.kappa**-0.5
            draw_weights_metropolis(*head, step, *draws, *out, accepted)

    def _cuts(self, rows: int, width: int, inference: Inference) -> list[tuple[int, int]]:
        """Cut rows into slabs by the work there is, so that threads change nothing."""
        work = rows * width * self.n_spectra * (6 + inference.burn_in + inference.n_samples)
        number = max(1, min(work // SLAB_WORK, MOST_SLABS, rows))
        return list(pairwise(rows * part // number for part in range(number + 1)))

    # Drawing

    def sample(self, parameters: SpectraParameters, rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw rows, and the weights they were drawn with, whose scale is 1."""
        weights = 1.0 / rng.gamma(parameters.shape[0], size=(rows, self.n_spectra))
        powers = parameters.powers
        return weights @ powers * rng.exponential(size=(rows, powers.shape[1])), weights


def _heard(parameters: SpectraParameters, X: Array) -> tuple[Array, Array, NDArray[np.bool_] | None]:
    """Powers and rows without bins that never had power; and the mask of the bins that stay, if some are left out."""
    bins = parameters.powers[0] > 0.0
    if bins.all():
        return parameters.powers, X, None
    return np.ascontiguousarray(parameters.powers[:, bins]), np.ascontiguousarray(X[:, bins]), bins


def _normal(spectra: Array) -> Array:
    """Spectra of mean 1, in which no bin is more than 120 dB below it, except bins that are zero in all of them."""
    heard = spectra > 0.0 if spectra.ndim == 1 else (spectra > 0.0).any(axis=0)
    scaled = spectra / np.maximum(spectra.mean(axis=-1, keepdims=True), SILENCE)
    return np.maximum(scaled, QUIETEST * heard)


def _unlike(rows: Array, weights: Array, mean: Array, number: int, rng: np.random.Generator) -> Index:
    """Places of rows, each drawn by its divergence, whatever its power, from what is nearest to it: the mean or rows before."""
    heard = mean > 0.0
    if not heard.any():
        return np.zeros(number, dtype=np.int64)
    rows, mean = np.maximum(rows[:, heard], QUIETEST), mean[heard]
    entropies, places = np.log(rows).mean(axis=1), np.empty(number, dtype=np.int64)
    nearest, spectrum = np.full(len(rows), np.inf), mean
    for k in range(number):
        divergences = np.log(rows @ (1.0 / spectrum) / len(spectrum)) + np.log(spectrum).mean() - entropies
        nearest = np.minimum(nearest, np.maximum(divergences, 1e-12))
        shares = nearest * weights
        places[k] = rng.choice(len(rows), p=shares / shares.sum())
        spectrum = 0.5 * (rows[places[k]] + mean)
    return places


def _known(totals: SpectraStatistics) -> tuple[Array, Array]:
    """Spectra, and the rows that each bin of them is known from."""
    spectra = np.maximum(_normal(totals.parts), QUIETEST)
    return spectra, spectra * totals.down


def _distance(one: Array, other: Array) -> Array:
    """Symmetric divergence of exponential numbers with these means."""
    ratio = one / other
    return ratio + 1.0 / ratio - 2.0


def _streams(X: Array) -> NDArray[np.int64]:
    """A number for each row that depends on the ratios of its powers alone, so that units change no draw."""
    rows, bins = X.shape
    mean = np.maximum(X.mean(axis=1, keepdims=True), SILENCE)
    logs = np.log(X / mean, where=X > 0.0, out=np.zeros_like(X))
    return content_streams(np.round(logs, 6).ravel() + 0.0, np.tile(np.arange(bins), rows), np.arange(rows + 1) * bins)
