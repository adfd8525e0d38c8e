"""Where a mixture starts: seeds, short climbs, and a tournament between them on rows they were not fitted to.

Mixtures with many parameters have a short start: one seed or two that are found with care, and few passes of EM. Where every
pass is dear, a tournament between many seeds costs more than the stream after it. Exchanges (`exchange.py`) find better seeds
than the best of many by Lloyd's steps, and cost no more than one of them. A start at given parameters comes first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from headwater.core.batch import NO_LABELS, Batch, join_batches
from headwater.core.block_climb import climb_blocks
from headwater.core.climb import Climb, climb
from headwater.core.contracts import Given, Start, StartSettings
from headwater.core.row_keys import order_labelled_first
from headwater.core.state import Summary
from headwater.core.statistics import Array, Params
from headwater.families.geometry import RowGeometry
from headwater.models.exchange import exchange_assignments
from headwater.models.extrapolation import FEW_ROWS, STAGE_PASSES, ClimbEnd, PlainPasses, race
from headwater.models.seeding import TURNS, named_assignments, seed_assignments

if TYPE_CHECKING:
    from headwater.models.mixture import Mixture
    from headwater.models.mixture_records import MixtureParameters, MixturePrior


def begin_at_given(model: Mixture, batch: Batch, settings: StartSettings) -> Start:
    """Begin a stream at parameters that say everything, and count as `settings.held` rows.

    The first row of the stream says how long rows are. What the user did not say of the prior is completed in the scale of the
    components.
    """
    assert settings.given is not None
    parameters: MixtureParameters = settings.given.alone()
    pseudo, shares = held_rows(settings.given, parameters, batch, np.exp(parameters.log_weights), settings.held)
    geometry = model.family.geometry(pseudo)
    prior = model.refine_prior(model.prior(geometry, pseudo, shares), parameters, geometry)
    totals = model.collect(geometry, pseudo, shares).statistics
    parameters = settings.given(model.readout(settings.readout, prior, totals, 1.0))  # about the origin of the prior
    return Start(prior, parameters, Summary(totals, 0, pseudo.size), held=pseudo.size)


def start_at_given(model: Mixture, batch: Batch, given: Given, settings: StartSettings, n_threads: int | None = None) -> Start:
    """Start at given parameters; those not given are found on the rows nearest to each component.

    A start that is `held` enters the statistics as pseudo-rows, together with the rows of the batch, and the scale of the
    prior: otherwise the first rows of a stream would override it.
    """
    seen, shares = given.seed(batch)
    own = shares[len(seen) - len(batch) :]
    if not settings.held:
        seen, shares = batch, own

    def found(rows: Batch, shares: Array) -> tuple[RowGeometry, MixturePrior, MixtureParameters]:
        geometry = model.family.geometry(rows)
        prior = model.prior(geometry, rows, shares)
        totals = model.collect(geometry, rows, shares).statistics
        return geometry, prior, given(model.readout(settings.readout, prior, totals, 1.0))

    geometry, prior, parameters = found(seen, shares)
    if not settings.held:
        return Start(prior, parameters, model.summarize(parameters, batch, n_threads=n_threads))
    pseudo, shares = held_rows(given, parameters, seen, np.exp(parameters.log_weights), settings.held)
    beside = replace(batch, weights=batch.row_weights, labels=NO_LABELS)
    geometry, prior, parameters = found(join_batches([pseudo, beside]), np.vstack([shares, own]))
    prior = model.refine_prior(prior, parameters, geometry)
    summary = model.summarize(parameters, batch, n_threads=n_threads)
    held = Summary(model.collect(geometry, pseudo, shares).statistics, 0, pseudo.size)
    return Start(prior, parameters, summary + held, held=pseudo.size)


def held_rows(given: Given[Params], parameters: Params, batch: Batch, weights: Array, held: float) -> tuple[Batch, Array]:
    """Return pseudo-rows of a given start that weigh `held` in all, and the share of each component in them."""
    rows, shares = given.pseudo_rows(parameters, batch)
    shares = shares * (weights / weights.sum())
    size = shares.sum(axis=1)
    kept = np.flatnonzero(size > 0.0)
    return Batch(np.ascontiguousarray(rows[kept]), held * size[kept]), shares[kept] / size[kept, None]


MANY_PARAMETERS = 5000  # from which on a start is short
ROWS_EACH, ROWS_A_COLUMN = 64, 8  # of a component, the larger number, on which seeds are found
LEAST_ROWS_EACH = 4  # below which there is nothing to exchange
PASSES, TOL = 7, 1e-2  # of EM in all, at most, and nats a row that one of them gains
SEED_PASSES = 3  # of these, from each seed; the others are incremental, on all rows


def is_dear(model: Mixture, batch: Batch, settings: StartSettings) -> bool:
    """Whether a start of this model is to be short."""
    n, width = batch.X.shape
    k = model.n_components
    exchanges = k > 2 and settings.method == "kmeans" and n >= LEAST_ROWS_EACH * k
    return exchanges and model.n_parameters(width) > MANY_PARAMETERS


def short_start(model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None) -> Start:
    """Seed by exchanges in every kind of units, climb from each on some rows, and from the best on all."""
    geometry = model.family.geometry(batch)
    n, width = batch.X.shape
    k = model.n_components
    rng = np.random.default_rng(np.random.SeedSequence((key, n)))
    enough = k * max(ROWS_EACH, ROWS_A_COLUMN * width)
    rows = np.arange(n) if n <= enough else order_labelled_first(batch.labels, rng.permutation(n), enough)[:enough]
    learn = batch if n <= enough else batch[rows]

    def climbed(summary: Summary) -> Climb:
        begin = cast("MixtureParameters", None)  # which a climb from a summary does not look at
        return climb(model, settings.readout, prior, begin, summary, learn, SEED_PASSES, tol, n_threads, penalised=False)

    tol = TOL * geometry.scale
    seeds = [exchange_assignments(view, learn, k, rng, n_threads) for view in geometry.views(rows)]
    prior = model.prior(geometry, learn, seeds[0])
    ends = [climbed(model.collect(geometry, learn, seed)) for seed in seeds]
    best = max(ends, key=lambda end: end.trace[-1])
    if len(learn) >= 5 * width * k:
        prior = model.refine_prior(prior, best.parameters, geometry)
    passes = max(1, PASSES - SEED_PASSES * len(seeds))
    best = climb_blocks(model, settings.readout, prior, best.summary.mean, batch, passes, tol, n_threads)
    return Start(prior, best.parameters, best.summary)


ROWS_PER_COLUMN = 5  # of each component, for a prior that is like the components
PRIOR_ROUNDS = 4  # of passes and a prior of what they found, at most: thin components need some
RACE_GAIN = 1e-4  # nats a row that a pass must gain while seeds compete
LEAST_GAIN = 1e-5  # and after that


def tournament(model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start:
    """Seed, climb and compare: some rows fit the seeds, others judge them, the best four climb on more rows, and the best
    of those on all. Labelled rows are among those that fit, and if each component has some, they make one more seed.
    The prior is refined on the way, if each component has enough rows.

    Without `polish` one seed is taken as it is. Parameters that are `given` replace what a seed says.
    """
    if settings.at_once:
        return begin_at_given(model, batch, settings)
    if settings.given is not None and settings.given.locates and not settings.polish:
        return start_at_given(model, batch, settings.given, settings, n_threads)
    if settings.polish and settings.given is None and is_dear(model, batch, settings):
        return short_start(model, batch, key, settings, n_threads)
    geometry = model.family.geometry(batch)
    n, width = batch.X.shape
    n_starts = 1
    if settings.polish and model.n_components > 1:
        n_starts = _number_of_starts(n, model.n_components, model.n_parameters(width))
    rng = np.random.default_rng(np.random.SeedSequence((key, n)))
    learn_rows = judge_rows = final_rows = np.arange(n)
    if n_starts > 1 and n >= 20 * model.n_components:
        enough = min(n // 2, max(2000, model.family.rows_to_seed(width)))
        final_rows = order_labelled_first(batch.labels, rng.permutation(n), enough)[: 3 * enough]
        learn_rows, judge_rows = final_rows[:enough], final_rows[enough : 2 * enough]
    learn, judge, final = batch[learn_rows], batch[judge_rows], batch[final_rows]

    methods = TURNS.get(settings.method, (settings.method,))

    views = geometry.views(learn_rows)

    def seed(index: int) -> Array:
        view, method = views[index % len(views)], methods[index // len(views) % len(methods)]
        steps, tries = (20, 1) if not settings.polish else (3, 1) if n < 200 else (6, 3 if index % 4 < 2 else 1)
        return seed_assignments(method, view, learn, model.n_components, rng, steps, tries)

    def climbed(parameters: MixtureParameters, rows: Batch, passes: int, tol: float, summary: Summary | None = None) -> Climb:
        summary = summary or model.summarize(parameters, rows, n_threads=n_threads)
        tol *= geometry.scale
        return climb(model, settings.readout, prior, parameters, summary, rows, passes, tol, n_threads, penalised=False)

    def patience(rows: Batch) -> int:
        return int(np.clip(5e9 / max(model.family.work(rows), 1.0), 8, 60))

    responsibilities = seed(0)
    prior = model.prior(geometry, learn, responsibilities)
    contenders: list[tuple[float, MixtureParameters]] = []
    told = named_assignments(learn, model.n_components) if settings.polish else None
    for index in range(n_starts + (told is not None)):
        if index:
            responsibilities = told if told is not None and index == n_starts else seed(index)
        summary = model.collect(geometry, learn, responsibilities)
        parameters = cast("MixtureParameters", None)  # not used by a climb from a summary
        if settings.given is not None or not settings.polish:
            parameters = model.readout(settings.readout, prior, summary.statistics, 1.0)
        if settings.given is not None:
            parameters = settings.given(parameters)
        if not settings.polish:
            return Start(prior, parameters, model.summarize(parameters, batch, n_threads=n_threads))
        parameters = climbed(parameters, learn, 9, 1e-3, summary if settings.given is None else None).parameters
        contenders.append((model.summarize(parameters, judge, n_threads=n_threads).score, parameters))
    leaders = _distinct(contenders, 1e-3 * judge.size)[:4]
    plenty = suffice(learn, model.n_components)
    if plenty:
        before, prior = prior, model.refine_prior(prior, leaders[0], geometry)
        plenty = prior.components is not before.components
    passes, tol = PlainPasses(model, settings.readout, prior, final, n_threads), RACE_GAIN * geometry.scale
    ends = [ClimbEnd(one, *passes.look(one), 0) for one in leaders]
    stage = patience(final) if len(final) < FEW_ROWS else STAGE_PASSES  # one call of a kernel for each
    best = race(ends, lambda end, some: passes.climb(end.statistics, some, tol), patience(final), tol, stage)
    found, before_round = best.statistics if len(final) == n else None, -np.inf
    for _ in range(PRIOR_ROUNDS if plenty else 1):
        if plenty:
            prior = model.refine_prior(prior, best.parameters, geometry)
        passes = PlainPasses(model, settings.readout, prior, batch, n_threads)
        found = passes.look(best.parameters)[0] if found is None else found
        best = passes.climb(found, patience(batch), LEAST_GAIN * geometry.scale)
        found, gain, before_round = best.statistics, best.score - before_round, best.score
        if abs(gain) < LEAST_GAIN * geometry.scale:
            break
    summary = Summary(found, n, batch.size, best.score * batch.size)
    return Start(prior, best.parameters, summary)


def suffice(batch: Batch, n_components: int) -> bool:
    """Whether these rows are enough for the prior to be that of components like those found on them."""
    return len(batch) >= ROWS_PER_COLUMN * batch.X.shape[1] * n_components


def _number_of_starts(rows: int, n_components: int, parameters: int) -> int:
    """More components have more local optima; a tiny fit needs few starts; with many parameters each start is expensive."""
    if rows < 200:
        return 3
    return 6 if parameters > 5000 else min(max(8, n_components, 2 * n_components - 10), 24)


def _distinct(contenders: list[tuple[float, MixtureParameters]], gap: float) -> list[MixtureParameters]:
    """Parameters in falling order of score, without those that score like one before: they are the same optimum."""
    kept: list[tuple[float, MixtureParameters]] = []
    for score, parameters in sorted(contenders, key=lambda contender: -contender[0]):
        if not kept or kept[-1][0] - score > gap:
            kept.append((score, parameters))
    return [parameters for _, parameters in kept]
