"""K Gaussians and rows with gaps: which rows go to which kernel, and what the kernels for gaps need besides parameters."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.families.family import EMPTY, EMPTY_TABLE
from headwater.families.gaussian_records import (
    ColumnParameters,
    GappedStatistics,
    GaussianParameters,
    GaussianStatistics,
)
from headwater.families.posterior import posterior
from headwater.families.triangles import invert_triangles
from headwater.kernels.gaps import sort_by_gaps
from headwater.kernels.gaussian_gap_columns import estep_columns_gaps
from headwater.kernels.gaussian_gaps import estep_matrix_gaps
from headwater.kernels.parallel import one_blas_thread, run_slabs

if TYPE_CHECKING:
    from headwater.families.gaussian import Gaussian

NARROW = 32  # columns up to which products of matrices use one thread anyway
LOG_2_PI = float(np.log(2.0 * np.pi))

KEPT_SIZE = 2**18  # numbers of the factors, of which four times as many are then kept for each thread

_latest = local()  # the last parameters of this thread, and what a kernel is given of them

Made = TypeVar("Made")


@dataclass(frozen=True)
class Answers:
    """Where an E-step writes scores (n,) and responsibilities (n, K), which it reads instead if they are given; or empty.

    `filled` has zeros in the gaps of rows (n, d), or is empty; full and tied covariance write there what they expect.
    """

    scores: Array
    responsibilities: Array
    given: bool
    filled: Array = field(default_factory=lambda: EMPTY_TABLE)

    def part(self, rows: NDArray[np.int64]) -> Answers:
        """Return the arrays for some of the rows, with given values."""
        scores = np.empty(len(rows)) if self.scores.size else self.scores
        shares = self.responsibilities[rows] if self.responsibilities.size else self.responsibilities
        return Answers(scores, shares, self.given, self.filled)

    def put(self, rows: NDArray[np.int64], found: Answers) -> None:
        """Write what was found for some of the rows."""
        if self.scores.size:
            self.scores[rows] = found.scores
        if self.responsibilities.size and not self.given:
            self.responsibilities[rows] = found.responsibilities


def estep_with_gaps(
    family: Gaussian,
    parameters: GaussianParameters,
    log_weights: Array,
    batch: Batch,
    totals: GaussianStatistics | None,
    answers: Answers,
    n_threads: int | None,
) -> tuple[float, GaussianStatistics | None]:
    """E-step of rows with gaps. Complete rows go to their own kernel; rows without a value add nothing."""
    X: GappedRows = batch.X
    width, score = X.shape[1], 0.0
    order, ends = np.empty(len(X), dtype=np.int64), np.empty(X.shape[1] + 2, dtype=np.int64)
    if totals is not None:
        totals = totals.with_gaps()
    if not family.kind.matrix and not X.is_empty.any():  # a kernel that looks at masks costs less than sorting rows out
        kernel = _columns_kernel(family, parameters, log_weights)
        return run_kernel(family, kernel, batch, totals, answers, n_threads), totals
    sort_by_gaps(X.missing, order, ends)
    complete, partial, empty = order[: ends[1]], order[ends[1] : ends[width]], order[ends[width] :]
    if len(complete):
        room = answers.part(complete)
        rows = cut_batch(batch, complete, X.complete(complete))
        own, totals = family.estep(
            parameters, log_weights, rows, totals, room.scores, room.responsibilities, room.given, n_threads
        )  # fmt: skip
        score += own
        answers.put(complete, room)
    if len(empty):
        score += answer_empty(log_weights, cut_batch(batch, empty, X[empty]), empty, answers)
    if len(partial):
        room = answers.part(partial)
        if family.kind.matrix:
            rows, kernel = cut_batch(batch, partial, X), _matrix_kernel(family, parameters, log_weights, partial)
        else:
            rows, kernel = cut_batch(batch, partial, X[partial]), _columns_kernel(family, parameters, log_weights)
        score += run_kernel(family, kernel, rows, totals, room, n_threads, len(partial))
        answers.put(partial, room)
    return score, totals


def add_complete(
    family: Gaussian,
    parameters: GaussianParameters,
    log_weights: Array,
    batch: Batch,
    totals: GaussianStatistics | None,
    answers: Answers,
    n_threads: int | None,
) -> tuple[float, GaussianStatistics | None]:
    """E-step of complete rows whose statistics are added to those of rows with gaps."""
    score, own = family.estep(
        parameters, log_weights, batch, family.zeros(batch.X.shape[1]), answers.scores, answers.responsibilities,
        answers.given, n_threads,
    )  # fmt: skip
    assert own is not None and totals is not None
    _add_in_place(totals, own.with_gaps())
    return score, totals


def _add_in_place(totals: GaussianStatistics, part: GaussianStatistics) -> None:
    for mine, theirs in zip(totals.to_arrays().values(), part.to_arrays().values(), strict=True):
        mine += theirs


def cut_batch(batch: Batch, places: NDArray[np.int64], X: Array | GappedRows) -> Batch:
    """Some rows of a batch, in another form."""
    weights = batch.weights[places] if batch.weights.size else batch.weights
    return Batch(X, weights, batch.labels[places] if batch.labels.size else batch.labels)


def answer_empty(log_weights: Array, batch: Batch, places: NDArray[np.int64], answers: Answers) -> float:
    """Score rows without a value: their density is 1, and their responsibilities are the weights. Nothing is learned."""
    if answers.given:
        return 0.0
    joint = np.tile(log_weights, (len(places), 1))
    found = posterior(joint, batch.labels)
    if not batch.labels.size:
        found[:] = logsumexp(log_weights)
    answers.put(places, Answers(found, joint, False))
    return float(batch.row_weights @ found)


def expect_gaps(family: Gaussian, parameters: GaussianParameters, log_weights: Array, X: GappedRows) -> Array:
    """Return rows with what is expected in their gaps, given what was observed of them; densities are not heavy-tailed."""
    lacking = np.flatnonzero(X.missing.any(axis=1))
    some, filled = X[lacking], X.values.copy()
    if not len(lacking):
        return filled
    matrix = family.kind.matrix
    found = np.where(some.missing, 0.0, some.values)
    shares = EMPTY_TABLE if matrix else np.empty((len(some), len(log_weights)))
    answers = Answers(EMPTY, shares, False, found if matrix else EMPTY_TABLE)
    estep_with_gaps(family, parameters, log_weights, Batch(some), None, answers, 1)
    if matrix:
        found += np.where(some.missing, parameters.origin, 0.0)
        empty = some.is_empty
        found[empty] = parameters.origin + np.exp(log_weights - logsumexp(log_weights)) @ parameters.means
    else:
        found = np.where(some.missing, parameters.origin + shares @ parameters.means, found)
    filled[lacking] = found
    return filled


def run_kernel(
    family: Gaussian,
    kernel: Callable[..., float],
    batch: Batch,
    totals: GaussianStatistics | None,
    answers: Answers,
    n_threads: int | None,
    n_rows: int | None = None,
) -> float:
    """Call the kernel for every slab, each with its own totals, and add these up in a fixed order."""
    width = batch.X.shape[1]

    def work(slab: int, start: int, stop: int) -> tuple[float, GaussianStatistics | None]:
        part = None if totals is None else family.zeros(width).with_gaps()
        return kernel(batch, start, stop, answers, part), part

    score = 0.0
    for value, part in run_slabs(work, len(batch) if n_rows is None else n_rows, n_threads):
        score += value
        if totals is not None and part is not None:
            _add_in_place(totals, part)
    return score


def _matrix_kernel(
    family: Gaussian, parameters: GaussianParameters, log_weights: Array, listed: NDArray[np.int64]
) -> Callable[..., float]:
    """The kernel of full and tied covariance, for listed rows, with all but the rows and the room for answers."""
    width = parameters.shift.shape[1]
    factor, shaped, gap_offset, gap_power = _kept("matrices", parameters, lambda: _matrices_of(parameters))
    offset = parameters.offset + log_weights
    none, no_cube = np.empty((0, 0)), np.empty((0, 0, 0))

    def kernel(batch: Batch, start: int, stop: int, answers: Answers, part: GappedStatistics | None) -> float:
        moments = (np.empty(0), none, no_cube, none, none)
        if part is not None:
            second = part.second.reshape(-1, width, width)
            moments = (part.count, part.first, second, part.observed, part.known)
        return float(
            estep_matrix_gaps(
                batch.X.values, batch.X.missing, listed, start, stop, batch.weights, batch.labels, parameters.origin,
                parameters.means, factor, *shaped, parameters.shift, offset, gap_offset, gap_power, parameters.stretch,
                answers.scores, answers.responsibilities, answers.given, answers.filled, *moments,
            )
        )  # fmt: skip

    return kernel


def _matrices_of(parameters: GaussianParameters) -> tuple[Array, tuple[Array, ...], Array, Array]:
    """Return what that kernel is given of parameters."""
    width = parameters.shift.shape[1]
    factor = np.ascontiguousarray(np.tril(parameters.factor.reshape(-1, width, width)))
    one_thread = one_blas_thread() if width > NARROW else nullcontext()
    with np.errstate(all="ignore"), one_thread:  # a trial of a search may be invalid, and then scores NaN
        lengths = np.sqrt(np.square(factor).sum(axis=1))  # square roots of the diagonal of the precision
        scaled = factor / lengths[:, None, :]
        turned = np.ascontiguousarray(np.swapaxes(scaled, 1, 2))
        narrow = 1.0 / (np.square(lengths) * row_variances(factor))
        shaped = (turned, turned @ scaled, 1.0 / lengths, np.log(lengths), narrow)
    return factor, shaped, *gap_tables(parameters)


def _kept(kind: str, parameters: GaussianParameters, make: Callable[[], Made]) -> Made:
    """Return what is made of parameters, once for those that a stream holds from batch to batch and that are not large."""
    if parameters.factor.size > KEPT_SIZE:
        return make()
    known = getattr(_latest, kind, None)
    if known is None or known[0]() is not parameters:
        known = weakref.ref(parameters), make()
        setattr(_latest, kind, known)
    found: Made = known[1]
    return found


def _columns_kernel(family: Gaussian, parameters: GaussianParameters, log_weights: Array) -> Callable[..., float]:
    """The same of diagonal and spherical covariance, for all rows."""
    factor, shift, *shaped, tail = _kept("columns", parameters, lambda: _columns_of(parameters, family.spherical))
    none = np.empty((0, 0))

    def kernel(batch: Batch, start: int, stop: int, answers: Answers, part: GappedStatistics | None) -> float:
        moments = (np.empty(0), none, none, none)
        if part is not None:
            moments = (part.count, part.first, part.second, part.observed)
        score = estep_columns_gaps(
            batch.X.values, batch.X.missing, start, stop, batch.weights, batch.labels, parameters.origin, factor, shift,
            log_weights, *shaped, tail and not family.spherical,
            tail and family.spherical, answers.scores, answers.responsibilities, answers.given, *moments,
        )  # fmt: skip
        if part is not None:
            part.known[...] = part.observed
        return float(score)

    return kernel


def _columns_of(parameters: GaussianParameters, spherical: bool) -> tuple[Any, ...]:
    """Return what that kernel is given of parameters, and whether they have the tail of a Student-t."""
    k, width = parameters.shift.shape
    tail = bool((parameters.power > 0.0).any())
    power, stretch = (
        np.array(np.broadcast_to(one.reshape(k, -1), (k, width))) for one in (parameters.power, parameters.stretch)
    )
    gap_offset = gap_power = np.empty((0, 0))
    factor, shift = parameters.factor, parameters.shift
    if tail and spherical:
        gap_power = power[:, :1] - 0.5 * np.arange(width + 1.0)
        gap_offset = gammaln(gap_power) - gammaln(gap_power[:, -1:])
        factor, shift = factor * np.sqrt(stretch), shift * np.sqrt(stretch)
        constants = np.log(factor) - 0.5 * np.log(np.pi)
    else:
        constants = column_constants(parameters)
    return factor, shift, constants, gap_offset, gap_power, power, stretch, tail


def gap_tables(parameters: GaussianParameters) -> tuple[Array, Array]:
    """Return what m gaps add to the constant of a row's log-density, besides their precisions, and the power of its tail.

    Both are (K, d + 1). A Gaussian gains m log(2 pi) / 2. A Student-t over the whole row keeps its degrees of freedom, so its
    power falls by m / 2.
    """
    k, width = parameters.shift.shape
    gaps = np.arange(width + 1.0)
    power, stretch = parameters.power[:, None], parameters.stretch[:, None]
    if not (power > 0.0).any():
        return np.tile(0.5 * LOG_2_PI * gaps, (k, 1)), np.zeros((k, width + 1))
    left = power - 0.5 * gaps
    return gammaln(left) - gammaln(power) - 0.5 * gaps * np.log(stretch / np.pi), left


def column_constants(parameters: GaussianParameters) -> Array:
    """Return what each column (K, d) adds to the log-density of its component, where columns are independent."""
    if isinstance(parameters, ColumnParameters):
        return parameters.constants
    k, width = parameters.shift.shape
    log_factor = np.log(parameters.factor)
    power, stretch = parameters.power.reshape(k, -1), parameters.stretch.reshape(k, -1)
    if (power > 0.0).any():
        return log_factor + gammaln(power) - gammaln(power - 0.5) + 0.5 * np.log(stretch / np.pi)
    rest = (parameters.offset - log_factor.sum(axis=1)) / width  # the same for all columns
    return log_factor + rest[:, None]


def row_variances(factor: Array) -> Array:
    """Return the variances (K, d) of components with these inverse Cholesky factors (K, d, d)."""
    try:
        root = invert_triangles(factor)
    except np.linalg.LinAlgError:  # a trial of a search may be invalid, and then scores NaN
        return np.full(factor.shape[:2], np.inf)
    return np.einsum("kij,kij->ki", root, root)


def collect_gapped_seeds(family: Gaussian, origin: Array, batch: Batch, responsibilities: Array) -> GaussianStatistics:
    """Return statistics of rows whose responsibilities are known, before there are any parameters, about the origin.

    Correlations are not known yet, so a gap gets the mean and the variance of its group in that column.
    """
    X: GappedRows = batch.X
    there = ~X.missing
    weights = np.where(X.is_empty, 0.0, batch.row_weights)
    shares = responsibilities * weights[:, None]
    centred = np.where(X.missing, 0.0, X.values - origin)
    totals = family.zeros(X.shape[1]).with_gaps()
    totals.count[...] = shares.sum(axis=0)
    totals.observed[...] = totals.known[...] = shares.T @ there
    seen = np.maximum(totals.observed, 1e-300)
    first, second = shares.T @ centred, shares.T @ centred**2
    if not family.kind.matrix:
        totals.first[...], totals.second[...] = first, second
        return totals
    means = first / seen
    variances = np.maximum(second / seen - means**2, 0.0)
    lacking = np.maximum(totals.count[:, None] - totals.observed, 0.0)
    totals.first[...] = first + lacking * means
    products = totals.second.reshape(-1, X.shape[1], X.shape[1])
    for k, share in enumerate(shares.T):
        completed = np.where(X.missing, means[k], centred)
        own = (completed * share[:, None]).T @ completed + np.diag(lacking[k] * variances[k])
        products[k if len(products) > 1 else 0] += np.tril(own)
    return totals
