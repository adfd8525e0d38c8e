"""Where a hidden Markov chain starts: seeds of its states, short climbs of Baum-Welch, and the best of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch, join_batches
from headwater.core.climb import Climb, climb
from headwater.core.contracts import Given, Start, StartSettings
from headwater.core.gapped_rows import GappedRows, as_gapped, find_absent
from headwater.core.state import Summary
from headwater.core.statistics import Array
from headwater.families.geometry import RowGeometry
from headwater.models.chain_records import ChainParameters, ChainPrior, ChainStatistics
from headwater.models.seeding import seed_assignments
from headwater.models.start import held_rows

if TYPE_CHECKING:
    from headwater.models.hidden_markov import HiddenMarkov

SOME_ROWS = 4000  # on which seeds climb first
MANY_ROWS = 65536  # on which few seeds climb, if all must be used
STAY = 0.5  # share of a seed's passages that it begins with; the rest is even


def start_chain(model: HiddenMarkov, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start:
    """Seed, climb and compare: seeds climb on some rows, then the better half, then the best three on all rows; the best wins.

    Seeds are groups of rows (of symbols by their contexts). Every third is random: states may differ only in their transitions.
    Without `polish` one seed is taken as it is. If a chain is given, states are put in its order. Parameters that are `given`
    replace those of a seed before it climbs, and those of the best one in the end; their zero probabilities stay zero.
    """
    if settings.at_once:
        return _begin_at_given(model, batch, settings)
    if settings.given is not None and settings.held:
        return _given_chain(model, batch, settings.given, settings, n_threads)
    rng = np.random.default_rng(np.random.SeedSequence((key, len(batch))))
    present, observed = _present_rows(model, batch)
    geometry = model.family.geometry(observed)
    views = geometry.views(np.arange(len(observed)))
    n_seeds = 3 if len(batch) < 200 or (settings.whole and len(batch) > MANY_ROWS) else 12
    if not settings.polish or settings.states is not None or model.n_components == 1:
        n_seeds = 1
    searching = model if settings.hold is None else replace(model, hold=settings.hold)

    def seed(index: int) -> Array:
        if settings.states is not None:
            return settings.states(observed)
        if index % 3 == 2 or settings.method == "random":
            return _random(observed.X, model.n_components, rng)
        method = "kmeans" if settings.method in ("kmeans", "random") else settings.method
        place = index % len(views)
        if method == "planes" and place:  # the first view has a target, the others are places
            method = "kmeans"
        return seed_assignments(method, views[place], observed, model.n_components, rng, 10, 1)

    def climbed(parameters: ChainParameters, rows: Batch, passes: int, tol: float, summary: Summary | None = None) -> Climb:
        summary = summary or model.summarize(parameters, rows, n_threads=n_threads)
        tol *= geometry.scale
        own = prior if searching.hold is None else replace(prior, fixed=parameters)
        return climb(searching, settings.readout, own, parameters, summary, rows, passes, tol, n_threads, penalised=False)

    def named(parameters: ChainParameters) -> ChainParameters:
        """Climb as if no chain were given to learn the transitions, and order the states as in the given chain."""
        assert settings.order is not None
        free, tol = replace(model, hold=None), 1e-4 * geometry.scale
        summary = free.summarize(parameters, some, n_threads=n_threads)
        end = climb(
            free, settings.readout, unconfined, parameters, summary, some, 10, tol, n_threads, penalised=False
        )  # fmt: skip
        statistics = end.summary.statistics
        return model.select_parameters(end.parameters, settings.order(statistics.start, statistics.steps, rng))

    some = batch if settings.whole else batch[: max(SOME_ROWS, len(batch) // 8)]
    ends: list[Climb] = []
    responsibilities = seed(0)
    prior = unconfined = model.prior(geometry, observed, responsibilities)
    for index in range(n_seeds):
        responsibilities = seed(index) if index else responsibilities
        parameters = model.readout(settings.readout, prior, _collect(model, geometry, batch, present, responsibilities), 1.0)
        if settings.order is not None:
            parameters = named(parameters)
        if settings.given is not None:
            parameters = settings.given(parameters)
            prior = prior.confined(parameters)
        if not settings.polish:
            return Start(_held(model, prior, parameters), parameters, model.summarize(parameters, batch, n_threads=n_threads))
        ends.append(climbed(parameters, some, 10, 1e-4))
    ends = [climbed(end.parameters, some, 5, 1e-4, end.summary) for end in _best(ends, 6)]
    ends = _best(ends, 3)
    whole = len(some) == len(batch)
    ends = [climbed(end.parameters, batch, 12, 1e-5, end.summary if whole else None) for end in ends]
    best = _best(ends, 1)[0]
    if len(batch) >= 5 * batch.X.shape[1] * model.n_components:
        weights = best.summary.statistics.emissions.count
        emissions = model.family.refine_prior(prior.emissions, best.parameters.emissions, weights / weights.sum(), geometry)
        prior = replace(prior, emissions=emissions)
    best = climbed(best.parameters, batch, 20, 1e-6, best.summary)
    if settings.given is None:
        return Start(_held(model, prior, best.parameters), best.parameters, best.summary)
    parameters = settings.given(best.parameters)
    return Start(_held(model, prior, parameters), parameters, model.summarize(parameters, batch, n_threads=n_threads))


def _held(model: HiddenMarkov, prior: ChainPrior, parameters: ChainParameters) -> ChainPrior:
    """Return the prior with the parameters that are not to be learned, if there are some."""
    return prior if model.hold is None else replace(prior, fixed=parameters)


def _given_chain(
    model: HiddenMarkov, batch: Batch, given: Given, settings: StartSettings, n_threads: int | None = None
) -> Start:
    """Start at given states, which count as `settings.held` rows beside those of the batch (see `start_at_given`)."""
    present, observed = _present_rows(model, batch)
    seen, shares = given.seed(observed)
    own = shares[len(seen) - len(observed) :]

    def found(rows: Batch, shares: Array) -> tuple[RowGeometry, ChainPrior, ChainParameters]:
        geometry = model.family.geometry(rows)
        totals = _collect(model, geometry, batch, present, own)
        totals = replace(totals, emissions=model.family.collect_seeds(geometry, rows, shares))
        prior = model.prior(geometry, rows, shares)
        return geometry, prior, given(model.readout(settings.readout, prior, totals, 1.0))

    _, _, parameters = found(seen, shares)
    weights = _stationary(parameters.transitions)
    pseudo, shares = held_rows(given, parameters, seen, weights, settings.held)
    shares, pseudo = shares * pseudo.weights[:, None], Batch(pseudo.X)  # chains know no weights of rows
    geometry, prior, parameters = found(join_batches([pseudo, observed]), np.vstack([shares, own]))
    prior = replace(prior, emissions=model.family.refine_prior(prior.emissions, parameters.emissions, weights, geometry))
    prior = _held(model, prior.confined(parameters), parameters)
    summary = model.summarize(parameters, batch, n_threads=n_threads)
    held = _held_summary(model, geometry, pseudo, shares, parameters, settings.held)
    return Start(prior, parameters, summary + held, held=settings.held)


def _begin_at_given(model: HiddenMarkov, batch: Batch, settings: StartSettings) -> Start:
    """Begin a stream at a chain that says everything, and counts as `settings.held` rows (see `begin_at_given`)."""
    assert settings.given is not None
    parameters: ChainParameters = settings.given.alone()
    weights = _stationary(parameters.transitions)
    pseudo, shares = held_rows(settings.given, parameters, batch, weights, settings.held)
    shares, pseudo = shares * pseudo.weights[:, None], Batch(pseudo.X)
    geometry = model.family.geometry(pseudo)
    prior = model.prior(geometry, pseudo, shares)
    prior = replace(prior, emissions=model.family.refine_prior(prior.emissions, parameters.emissions, weights, geometry))
    held = _held_summary(model, geometry, pseudo, shares, parameters, settings.held)
    parameters = settings.given(model.readout(settings.readout, prior, held.statistics, 1.0))  # about the origin of the prior
    return Start(_held(model, prior.confined(parameters), parameters), parameters, held, held=settings.held)


def _held_summary(
    model: HiddenMarkov, geometry: RowGeometry, pseudo: Batch, shares: Array, parameters: ChainParameters, held: float
) -> Summary:
    """Return the summary of `held` rows of a long sequence that is as a chain says, with one first row."""
    weights = _stationary(parameters.transitions)
    steps = held * weights[:, None] * parameters.transitions
    emissions = model.family.collect_seeds(geometry, pseudo, shares)
    statistics = replace(model.zeros(pseudo.X.shape[1]), start=parameters.start.copy(), steps=steps, emissions=emissions)
    return Summary(statistics, 0, held)


def _stationary(transitions: Array) -> Array:
    """Return the stationary distribution of the states, with a little mixing added."""
    k = len(transitions)
    mixing = 0.999 * transitions / transitions.sum(axis=1, keepdims=True) + 0.001 / k
    system = np.vstack([mixing.T - np.eye(k), np.ones(k)])
    found = np.linalg.lstsq(system, np.append(np.zeros(k), 1.0), rcond=None)[0]
    return np.asarray(np.maximum(found, 0.0) / np.maximum(found, 0.0).sum())


def _present_rows(model: HiddenMarkov, batch: Batch) -> tuple[NDArray[np.int64], Batch]:
    """Return which rows are not missing, and these."""
    present = np.flatnonzero(~find_absent(batch.X))
    if not len(present):
        raise ValueError("every row is missing (NaN): there is nothing to start from")
    rows = batch.X[present]
    return present, Batch(as_gapped(rows) if model.family.takes_gaps else rows)


def _best(ends: list[Climb], number: int) -> list[Climb]:
    """The climbs with the best objective."""
    return sorted(ends, key=lambda end: -end.trace[-1])[:number]


def _random(X: Array | GappedRows, n_states: int, rng: np.random.Generator) -> Array:
    """Responsibilities that are the same for equal rows, and random otherwise."""
    values, places = np.unique(X.filled(np.inf) if isinstance(X, GappedRows) else X, axis=0, return_inverse=True)
    return rng.dirichlet(np.ones(n_states), size=len(values))[places.ravel()]


def _collect(
    model: HiddenMarkov, geometry: RowGeometry, batch: Batch, present: NDArray[np.int64], responsibilities: Array
) -> ChainStatistics:
    """Statistics of rows whose states are known, without transitions."""
    k = model.n_components
    rows = batch.X[present]
    observed = Batch(as_gapped(rows) if model.family.takes_gaps else rows)
    emissions = model.family.collect_seeds(geometry, observed, responsibilities)
    mean = responsibilities.mean(axis=0)
    states = np.full((len(batch), k), 1.0 / k)
    states[present] = responsibilities
    follows = batch.sequences[1:] == batch.sequences[:-1] if batch.sequences.size else np.ones(len(batch) - 1, dtype=bool)
    steps = states[:-1][follows].T @ states[1:][follows]
    steps = STAY * steps + (1.0 - STAY) * steps.sum(axis=1, keepdims=True) / k
    zeros = model.zeros(batch.X.shape[1])
    return replace(zeros, start=mean, steps=steps, emissions=emissions)
