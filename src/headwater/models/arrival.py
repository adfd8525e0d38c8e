"""Arrival: one source seen by an array of sensors, of which some may be missing in a snapshot (paper 002).

Snapshots are complex normal with covariance alpha a(x) a(x)^H + v I. The statistic is E[z z^H], which can be averaged, added
and forgotten. Parameters are read out of it by a search over directions: an average of directions would be meaningless between
two lobes, which is why the loop works on statistics. Rows are complex matrices with NaN where a sensor is missing; a row
without any sensor is counted, and its expected statistics are those known already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwater.core.average import fold_share
from headwater.core.batch import Batch
from headwater.core.climb import climb
from headwater.core.contracts import EXACT, NO_SCORES, Inference, Model, Start, StartSettings
from headwater.core.state import Summary
from headwater.core.statistics import LARGEST, Array, Statistics
from headwater.core.values import Matrix
from headwater.families.soundness import (
    INDEFINITE,
    MOST_SHARE,
    NEGATIVE,
    NO_PARAMETERS,
    SLACK,
    TOO_MANY,
    exceeds,
    has_indefinite,
    has_negative,
)
from headwater.kernels.arrival import SILENCE, estep, gather_moments, split_power, sweep_linear
from headwater.kernels.parallel import run_slabs
from headwater.models.steering import Complex, LinearSensors, Sensors

START_PASSES, START_TOL = 60, 1e-6
MOST_POWER = 4.0 * LARGEST**2  # of a sensor
NO_MOMENTS, NO_SOURCES = np.empty((0, 0, 0)), np.empty((0, 2))


@dataclass(frozen=True)
class ArrivalStatistics(Statistics):
    """Count of rows; real and imaginary part (m, m) of E[z z^H]; rows that have each sensor; information about the direction.

    The last is Fisher's for x, of the observed sensors at the parameters of the E-step.
    """

    count: Array
    real: Array
    imag: Array
    heard: Array
    information: Array


@dataclass(frozen=True)
class ArrivalParameters:
    """Direction x, power of the source (alpha) and of the noise (v); the steering vector (2, m) and its derivative by x."""

    direction: float
    power: float
    noise: float
    steering: Array
    slope: Array


@dataclass(frozen=True)
class Arrival(Model[None, ArrivalStatistics, ArrivalParameters]):
    """The model. It has no prior: parameters are those of greatest likelihood."""

    sensors: Sensors

    @property
    def n_components(self) -> int:
        return 1

    @property
    def ways(self) -> frozenset[tuple[str, str]]:
        return frozenset({("exact", "mode")})

    @property
    def has_prior(self) -> bool:
        return False

    def n_parameters(self, width: int) -> int:
        """Direction, power and noise."""
        return 3

    def rows_to_learn(self, width: int) -> int:
        """A snapshot says something of every parameter."""
        return 100

    def rows_to_start(self, width: int) -> int:
        """Enough to tell the main lobe from the others if the source is weaker than the noise."""
        return max(1000, 10 * width)

    def row_bytes(self, width: int) -> int:
        """Memory of a row that waits."""
        return 16 * width

    def zeros(self, width: int) -> ArrivalStatistics:
        real, imag = np.zeros((width, width)), np.zeros((width, width))
        return ArrivalStatistics(np.zeros(1), np.zeros(1), real, imag, np.zeros(width), np.zeros(1))

    def blank_prior(self, width: int) -> None:
        """There is none."""
        return None

    def find_problem(self, record: object, width: int) -> str:
        """What is wrong with a record read from a file; "" if nothing is."""
        if isinstance(record, ArrivalParameters):
            unsound = record.power < 0.0 or record.noise < SILENCE or exceeds(MOST_POWER, record.power, record.noise)
            return NO_PARAMETERS if unsound or not self._leads_to(record.direction, record.steering, record.slope) else ""
        if isinstance(record, ArrivalStatistics):
            if has_negative(record.count, record.heard, record.information, np.diagonal(record.real)):
                return NEGATIVE
            if exceeds(MOST_SHARE, record.count, record.heard):
                return TOO_MANY
            if exceeds(MOST_POWER, record.real, record.imag):
                return "has more power than any row"
            both = np.block([[record.real, -record.imag], [record.imag, record.real]])
            return INDEFINITE if has_indefinite(both, np.abs(both).max()) else ""
        return ""

    def _leads_to(self, x: float, steering: Array, slope: Array) -> bool:
        """Whether these are the steering vector and its derivative of a direction."""
        first, last = self.sensors.direction(np.array(self.sensors.range))
        if not first - SLACK <= x <= last + SLACK:
            return False
        own = zip((steering, slope), self.sensors.steered(x), strict=True)
        return all(np.allclose(found, known, rtol=SLACK, atol=SLACK) for found, known in own)

    # Readout

    def readout(self, name: str, prior: None, statistics: ArrivalStatistics, count: float) -> ArrivalParameters:
        """The parameters of greatest likelihood: a search over directions, the rest in closed form."""
        return self.parameters(self.sensors.peak(statistics.real, statistics.imag), statistics)

    def parameters(self, x: float, statistics: ArrivalStatistics) -> ArrivalParameters:
        """The maximum likelihood parameters of a source in this direction."""
        steering, slope = self.sensors.steered(x)
        power, noise = split_power(statistics.real, statistics.imag, float(statistics.count[0]), steering)
        return ArrivalParameters(x, float(power), float(noise), steering, slope)

    # Merging

    def separation(self, prior: None, totals: ArrivalStatistics, others: ArrivalStatistics) -> Array:
        """Divergence of the two densities, times the rows in which sensors were observed."""
        rows = 0.5 * float(totals.heard.mean() + others.heard.mean())
        return rows * self.contrast(prior, totals, others)[None]

    def contrast(self, prior: None, totals: ArrivalStatistics, others: ArrivalStatistics) -> Array:
        """Symmetric divergence of the two densities, in nats a row."""
        one, other = (self.readout("mode", prior, statistics, 1.0) for statistics in (totals, others))
        return np.array([_excess(one, other) + _excess(other, one)])

    # Rows

    def start(self, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start:
        """Climb from parameters without a source: missing sensors are noise then, and the others give the direction."""
        weights = batch.row_weights[:, None]
        heard = ~np.isnan(batch.X)
        squares = np.where(heard, batch.X.real**2 + batch.X.imag**2, 0.0)
        noise = float((weights * squares).sum() / max(float((weights * heard).sum()), 1e-300))
        middle = float(self.sensors.direction(np.array(np.mean(self.sensors.range))))
        parameters = ArrivalParameters(middle, 0.0, max(noise, SILENCE), *self.sensors.steered(middle))
        summary = self.summarize(parameters, batch, n_threads=n_threads)
        passes = START_PASSES if settings.polish else 0
        end = climb(self, "mode", None, parameters, summary, batch, passes, START_TOL, n_threads)
        return Start(None, end.parameters, end.summary)

    def summarize(
        self,
        parameters: ArrivalParameters,
        batch: Batch,
        pending: Summary | None = None,
        scores: Array = NO_SCORES,
        n_threads: int | None = None,
        inference: Inference = EXACT,
    ) -> Summary:
        """E-step: add the rows to the pending summary, or to a fresh one."""
        width = batch.X.shape[1]
        pending = pending or Summary(self.zeros(width))
        size, moments, heard = batch.size, np.zeros((4, width, width)), np.zeros(width)
        score, information = self._read(parameters, batch, n_threads, scores, NO_SOURCES, moments, heard)
        before = pending.statistics
        real, imag = before.real.copy(), before.imag.copy()
        gather_moments(moments, parameters.steering, parameters.noise, size, heard, real, imag)
        totals = ArrivalStatistics(
            before.from_base, before.count + size, real, imag, before.heard + heard, before.information + information
        )
        return Summary(totals, pending.rows + len(batch), pending.size + size, pending.score + score)

    def _read(
        self, parameters: ArrivalParameters, batch: Batch, n_threads: int | None, scores: Array, sources: Array,
        moments: Array = NO_MOMENTS, heard: Array = NO_SCORES,
    ) -> tuple[float, float]:  # fmt: skip
        """Score of the rows, and information; fills scores, sources, moments and observed sensors where arrays are given."""
        rows, weights = batch.X.view(np.float64), batch.weights

        def work(slab: int, start: int, stop: int) -> tuple[float, float, Array, Array]:
            own, seen = np.zeros_like(moments), np.zeros_like(heard)
            value, known = estep(
                rows, start, stop, weights, parameters.steering, parameters.slope, parameters.power, parameters.noise, own,
                seen, scores, sources,
            )  # fmt: skip
            return value, known, own, seen

        score, information = 0.0, 0.0
        for value, known, own, seen in run_slabs(work, len(batch), n_threads):
            score, information = score + value, information + known
            moments += own
            heard += seen
        return score, information

    def sweeps(self, inference: Inference) -> bool:
        """A kernel cannot call the steering function of a user."""
        return isinstance(self.sensors, LinearSensors)

    def sweep(
        self, name: str, prior: None, statistics: ArrivalStatistics, average: ArrivalStatistics | None, n_eff: float,
        batch: Batch, steps: Array, gains: Array, scores: Array, projection: tuple[str, str] | None = None,
    ) -> tuple[ArrivalStatistics, ArrivalStatistics | None, float]:  # fmt: skip
        """Learn row by row, inside a kernel."""
        assert isinstance(self.sensors, LinearSensors)
        after = statistics.copy()
        moving = None if average is None else average.copy()
        mean = moving or after
        n_eff = sweep_linear(
            batch.X.view(np.float64), batch.weights, self.sensors.turns, self.sensors.limit, steps, gains, n_eff,
            after.real, after.imag, after.heard, after.information, mean.real, mean.imag, mean.heard, mean.information, scores,
        )  # fmt: skip
        fold_share(statistics, after, average, moving, steps, gains)  # counts stay 1
        return after, moving, n_eff

    def log_likelihood(self, parameters: ArrivalParameters, batch: Batch, n_threads: int | None = None) -> Array:
        """Log-density of the observed sensors of every row."""
        scores = np.empty(len(batch))
        self._read(parameters, batch, n_threads, scores, NO_SOURCES)
        return scores

    def posterior(self, parameters: ArrivalParameters, batch: Batch, n_threads: int | None = None) -> Matrix:
        """The expected complex signal of the source in every row (n,)."""
        sources = np.empty((len(batch), 2))
        self._read(parameters, batch, n_threads, NO_SCORES, sources)
        return sources.view(np.complex128)[:, 0]

    def sample(self, parameters: ArrivalParameters, rows: int, rng: np.random.Generator) -> tuple[Complex, Complex]:
        """Draw rows, and the signals of the source that they were drawn with."""
        draws = rng.normal(scale=np.sqrt(0.5), size=(rows, self.sensors.sensors + 1, 2)).view(np.complex128)[..., 0]
        source = np.sqrt(parameters.power) * draws[:, 0]
        vector = parameters.steering[0] + 1j * parameters.steering[1]
        return source[:, None] * vector + np.sqrt(parameters.noise) * draws[:, 1:], source


def _excess(one: ArrivalParameters, other: ArrivalParameters) -> float:
    """tr(G^-1 G') - m of two covariances, each of rank one and a multiple of the identity."""
    m = one.steering.shape[1]
    (ar, ai), (br, bi) = one.steering, other.steering
    own, others = float((one.steering**2).sum()), float((other.steering**2).sum())
    shared = float((ar @ br + ai @ bi) ** 2 + (ar @ bi - ai @ br) ** 2)
    ratio = one.power / (one.noise + one.power * own)
    noise, power = other.noise / one.noise, other.power / one.noise
    return m * noise + power * others - ratio * (noise * own + power * shared) - m
