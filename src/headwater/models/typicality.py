"""Typicality: how usual a row is under a mixture that has learned some anomalies, too.

Components that anomalies have made call them usual, so light components are left out. What is left is looked at twice: as the
components it is made of, and as the one component that their statistics add up to. The score of a row is the lower of its two
log-densities: a row between the components is odd by the first, a row far from all that is usual by the second, even where a
narrow component found it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import NO_LABELS, Batch, SparseRows
from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters, MixturePrior

if TYPE_CHECKING:
    from headwater.models.chain_records import ChainParameters
    from headwater.models.hidden_markov import HiddenMarkov

EXPECTED_RATE = 0.05  # of anomalies among learned rows: components that are lighter may be made of them
FARTHEST = 1e250  # of a score, so that sums of them are numbers
MOST_LEFT_OUT = 4.0  # times that rate, of all components that are left out together: many light ones are a finer description


@dataclass(frozen=True)
class Typicality:
    """The laws by which a row is usual: of the components that are kept, and the single one they add up to."""

    laws: tuple[tuple[Mixture, MixtureParameters], ...]
    kept: NDArray[np.int64]

    def scores(self, batch: Batch, n_threads: int | None = None) -> Array:
        """Return the lower of the log-densities (n,) of every row, whatever its label: that may be a component left out."""
        rows = replace(batch, labels=NO_LABELS)
        found = [model.log_likelihood(parameters, rows, n_threads) for model, parameters in self.laws]
        return np.asarray(np.minimum.reduce(found))


def limited(scores: Array) -> Array:
    """Return scores as numbers: a row beyond all reach of the components has the highest there is."""
    return np.asarray(np.clip(np.where(np.isnan(scores), FARTHEST, scores), -FARTHEST, FARTHEST))


def per_size(scores: Array, batch: Batch) -> Array:
    """Return the scores of one word or symbol of rows of counts; NaN for an empty row."""
    rows = batch.X
    if isinstance(rows, SparseRows):
        within = slice(rows.indptr[0], rows.indptr[-1])
        below = np.concatenate([[0.0], np.cumsum(rows.data[within])])
        sizes = np.diff(below[rows.indptr - rows.indptr[0]])
    else:
        sizes = np.asarray(rows).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(sizes > 0.0, scores / sizes, np.nan))


def kept_components(weights: Array, rate: float) -> NDArray[np.int64]:
    """Return the components that are not lighter than a rate of anomalies; the lightest are left out first.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.models.typicality import kept_components
    >>> kept_components(np.array([0.5, 0.02, 0.45, 0.03]), rate=0.05)
    array([0, 2])
    >>> len(kept_components(np.full(100, 0.01), rate=0.05))  # all are light: only some can be anomalies
    80
    """
    shares = weights / max(float(weights.sum()), 1e-300)
    order = np.argsort(shares, kind="stable")
    together = np.cumsum(shares[order]) * (1.0 - 1e-9)  # rounding
    light = order[(shares[order] < rate) & (together <= MOST_LEFT_OUT * rate) & (np.arange(len(order)) < len(order) - 1)]
    return np.setdiff1d(np.arange(len(shares)), light)


def typicality_of(
    model: Mixture,
    parameters: MixtureParameters,
    belief: tuple[MixturePrior, ComponentStatistics, float],
    readout: str,
    rate: float = EXPECTED_RATE,
) -> Typicality:
    """Return what is usual under a mixture: its parameters without light components, and those of the sum of the others.

    `belief` has prior, statistics and count, of which the named readout makes the parameters of the sum.
    """
    kept = kept_components(np.exp(parameters.log_weights), rate)
    log_weights = parameters.log_weights[kept]
    components = model.family.select_parameters(parameters.components, kept)
    with np.errstate(invalid="ignore"):  # statistics that are not finite are refused after the chunk
        several = MixtureParameters(log_weights - np.logaddexp.reduce(log_weights), components)
    laws: list[tuple[Mixture, MixtureParameters]] = [(model.part(len(kept)), several)]
    prior, statistics, count = belief
    if len(kept) > 1 and model.family.adds_up and readout in model.family.readouts - {"match_moments"}:
        everything = np.arange(model.n_components)
        summed = kept if model.has_own_moments else everything  # of a covariance that all share no part can be taken off
        matrix = np.zeros((model.n_components, model.n_components))
        matrix[kept[0], summed] = 1.0
        try:
            whole = model.readout(readout, prior, model.recombine(statistics, matrix), count)
        except np.linalg.LinAlgError:  # without a prior, components that gave their rows away have no parameters
            return Typicality(tuple(laws), kept)
        one = MixtureParameters(np.zeros(1), model.family.select_parameters(whole.components, kept[:1]))
        laws.append((model.part(1), one))
    return Typicality(tuple(laws), kept)


def usual_chain(
    model: HiddenMarkov, parameters: ChainParameters, shares: Array, rate: float = EXPECTED_RATE
) -> tuple[HiddenMarkov, ChainParameters]:
    """Return a chain without its light states; the chain itself, if the others cannot do without them."""
    if not model.spares_states:
        return model, parameters
    kept = kept_components(shares, rate)
    start, steps = parameters.start[kept], parameters.transitions[np.ix_(kept, kept)]
    if len(kept) == len(shares) or start.sum() <= 0.0 or steps.sum(axis=1).min() <= 0.0:
        return model, parameters
    smaller = replace(
        model, n_components=len(kept), family=model.family.resize(len(kept)), start_prior=None, steps_prior=None, hold=None
    )
    return smaller, model.select_parameters(parameters, kept)
