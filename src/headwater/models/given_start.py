"""Where a mixture starts if the user says where: at given parameters, which may count as rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.batch import NO_LABELS, Batch, join_batches
from headwater.core.contracts import Given, Start, StartSettings
from headwater.core.state import Summary
from headwater.core.statistics import Array, Params
from headwater.families.geometry import RowGeometry

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
