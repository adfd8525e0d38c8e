"""Moves of a mixture that EM cannot make: a component is split, two are merged, one is removed.

A move is rated on reservoir rows by its gain with all other components fixed. The caller climbs from there and judges it on
rows that were not used to propose it. This file knows no family: it asks the model for seeds of two groups, for statistics of
rows with known responsibilities, and for sums over components.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix
from headwater.families.components import ComponentStatistics
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters, MixturePrior
from headwater.models.seeding import TURNS, seed_assignments

OWN = 0.02  # responsibility from which on a row belongs to a component
TOUCHED = 1e-3  # responsibility from which on a merger changes the score of a row
STEPS = 3  # of the local refit of a split
CLUMP = 0.2  # of a component's rows
SEEDS = ("kmeans", "planes")


@dataclass(frozen=True)
class View:
    """Reservoir rows with their responsibilities and scores under a mixture."""

    model: Mixture
    readout: str
    prior: MixturePrior
    parameters: MixtureParameters
    batch: Batch
    responsibilities: Array
    scores: Array
    method: str = "kmeans"
    clumps: int = 0  # additional splits of a component: the neighbourhood of a row, and the rest

    @classmethod
    def of(
        cls,
        model: Mixture,
        readout: str,
        prior: MixturePrior,
        parameters: MixtureParameters,
        batch: Batch,
        method: str,
        n_threads: int | None,
        clumps: int = 0,
    ) -> View:
        """Look at rows with these parameters."""
        return cls(
            model, readout, prior, parameters, batch, *model.posterior_and_scores(parameters, batch, n_threads), method, clumps
        )

    @cached_property
    def shares(self) -> Array:
        """How much of the rows each component is responsible for."""
        return np.asarray(self.batch.row_weights @ self.responsibilities / self.batch.size)

    def mean(self, values: Array, rows: Matrix = slice(None)) -> float:
        """Mean over all rows of values that some of them have."""
        return float(self.batch.row_weights[rows] @ values) / self.batch.size


@dataclass(frozen=True)
class Split:
    """What splitting a component would gain, in nats a row, and the statistics of the two, per row."""

    component: int
    gain: float
    statistics: ComponentStatistics


@dataclass(frozen=True)
class Removal:
    """What merging two components, or removing one, would gain; usually negative."""

    components: tuple[int, ...]
    gain: float


@dataclass(frozen=True)
class Move:
    """A split combined with a merger or a removal, and the expected gain of both."""

    split: Split
    fall: Removal
    gain: float

    @property
    def word(self) -> str:
        """The move in words."""
        parts = " and ".join(str(k) for k in self.fall.components)
        return f"split {self.split.component}, {'merge' if len(self.fall.components) == 2 else 'give up'} {parts}"


def find_split(view: View, component: int, rng: np.random.Generator) -> Split | None:
    """Return the best of a few ways to split a component; None if its rows are too few."""
    model, batch = view.model, view.batch
    own = np.flatnonzero(view.responsibilities[:, component] > OWN)
    shares = view.responsibilities[own, component]
    weights = batch.row_weights[own] * shares
    least = 2 * (model.rows_to_learn(batch.X.shape[1]) // model.n_components + 1)
    if len(own) < 2 * least or weights.sum() < least:
        return None
    local = Batch(batch[own].X, batch.row_weights[own])
    pair = model.part(2)
    prior = model.select_prior(view.prior, [component, component])
    twice = model.select_parameters(view.parameters, [component, component])
    background = view.scores[own] + np.log(np.maximum(1.0 - shares, 1e-12))
    best: Split | None = None
    for groups in _halves(pair, replace(local, weights=weights), view.method, rng, view.clumps):
        found = _refit(view, pair, prior, twice, local, groups * shares[:, None], background, own)
        if found is not None and (best is None or found[0] > best.gain):
            best = Split(component, *found)
    return best


def find_removals(view: View, statistics: ComponentStatistics, count: float, named: frozenset[int]) -> list[Removal]:
    """Rate mergers of the pairs that overlap most, and the removal of each component; those named by labels are not touched."""
    model, shares, batch = view.model, view.responsibilities, view.batch
    k = model.n_components
    lengths = np.sqrt(np.einsum("ij,ij->j", shares, shares)) + 1e-12
    overlap = (shares / lengths).T @ (shares / lengths)
    first, second = np.triu_indices(k, 1)
    found = []
    single = model.part(1)
    for at in np.argsort(-overlap[first, second], kind="stable")[: 2 * k]:
        i, j = int(first[at]), int(second[at])
        if named & {i, j}:
            continue
        matrix = np.eye(k)
        matrix[i, j], matrix[j, j] = 1.0, 0.0
        merged = model.readout(view.readout, view.prior, model.recombine(statistics, matrix), count)
        both = shares[:, i] + shares[:, j]
        rows = np.flatnonzero(both > TOUCHED)
        if not len(rows):
            found.append(Removal((i, j), 0.0))
            continue
        one = MixtureParameters(merged.log_weights[[i]], model.family.select_parameters(merged.components, [i]))
        density = single.log_likelihood(one, Batch(batch[rows].X), 1)
        rest = np.maximum(1.0 - both[rows], 1e-12)
        gain = view.mean(np.log(rest + np.exp(np.minimum(density - view.scores[rows], 50.0))), rows)
        found.append(Removal((i, j), gain))
    for one_k in range(k):
        if one_k not in named:
            left = np.log(np.maximum(1.0 - shares[:, one_k], 1e-12)) - np.log(max(1.0 - view.shares[one_k], 1e-12))
            found.append(Removal((one_k,), view.mean(left)))
    return found


def apply_move(model: Mixture, statistics: ComponentStatistics, move: Move) -> ComponentStatistics:
    """Return statistics after a move; the number of components stays."""
    k = model.n_components
    own, new = np.eye(k), np.zeros((k, 2))
    target = move.fall.components[-1]
    if len(move.fall.components) == 2:
        own[move.fall.components[0], target] = 1.0
    own[[move.split.component, target]] = 0.0
    new[move.split.component, 0] = new[target, 1] = 1.0
    return model.recombine(statistics, own, move.split.statistics, new)


def _halves(pair: Mixture, batch: Batch, method: str, rng: np.random.Generator, clumps: int = 0) -> Iterator[Array]:
    """Ways to split rows in two: along their principal direction, by seeds, by distance from the mean, and by neighbourhoods.

    The third is for components of different widths in one place.
    """
    geometry = pair.family.geometry(batch)
    view = geometry.views(np.arange(len(batch)))[0]
    weights = batch.row_weights
    centred = view - weights @ view / weights.sum()
    values, vectors = np.linalg.eigh((centred * weights[:, None]).T @ centred)
    yield np.eye(2)[(centred @ vectors[:, -1] > 0.0).astype(np.int64)]
    yield seed_assignments(method, view, batch, 2, rng, 3, 1)
    wide = values > 1e-12 * values[-1]
    outward = np.square(centred @ (vectors[:, wide] / np.sqrt(values[wide]))).sum(axis=1)
    yield np.eye(2)[(outward > np.median(outward)).astype(np.int64)]
    for place in rng.choice(len(batch), clumps, p=weights / weights.sum()):
        far = np.einsum("ij,ij->i", view - view[place], view - view[place])
        yield np.eye(2)[(far < np.quantile(far, CLUMP)).astype(np.int64)]


def _refit(
    view: View,
    pair: Mixture,
    prior: MixturePrior,
    twice: MixtureParameters,
    batch: Batch,
    shares: Array,
    background: Array,
    rows: Matrix,
) -> tuple[float, ComponentStatistics] | None:
    """A few steps of EM for two components in the place of one, with all others fixed."""
    width, size = batch.X.shape[1], view.batch.size
    parameters, scores = twice, np.empty(len(batch))
    for step in range(STEPS + 1):
        totals = pair.zeros(width)
        _, totals = pair.family.estep(
            parameters.components, np.zeros(2), batch, totals, responsibilities=np.ascontiguousarray(shares), given=True,
            n_threads=1,
        )  # fmt: skip
        assert totals is not None
        if totals.count.min() < 2.0:
            return None
        parameters = pair.readout(view.readout, prior, totals, 1.0)
        if step == STEPS:
            break
        halves = np.empty((len(batch), 2))
        pair.family.estep(
            parameters.components, np.log(totals.count / size), batch, scores=scores, responsibilities=halves, n_threads=1
        )
        together = np.logaddexp(background, scores)
        shares = halves * np.exp(scores - together)[:, None]
    gain = view.mean(together - view.scores[rows], rows)
    return (gain, totals.scaled(1.0 / size)) if np.isfinite(gain) else None


def seed_method(method: str) -> str:
    """Return a split of rows in two by a model with this way of seeding."""
    first = TURNS.get(method, (method,))[0]
    return first if first in SEEDS else "kmeans"
