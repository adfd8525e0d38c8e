"""Starts of mixtures with many parameters: one seed or two that are found with care, and few passes of EM.

Where every pass is dear, a tournament between many seeds costs more than the stream after it. Exchanges (`exchange.py`) find
better seeds than the best of many by Lloyd's steps, and cost no more than one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from headwater.core.batch import Batch
from headwater.core.block_climb import climb_blocks
from headwater.core.climb import Climb, climb
from headwater.core.contracts import Start, StartSettings
from headwater.core.row_order import order_labelled_first
from headwater.core.state import Summary
from headwater.models.exchange import exchange_assignments

if TYPE_CHECKING:
    from headwater.models.mixture import Mixture
    from headwater.models.mixture_records import MixtureParameters

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
