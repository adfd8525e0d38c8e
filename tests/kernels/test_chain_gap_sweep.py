"""Chains whose rows have gaps, step by step: the kernels against Cappé's recursion in plain loops."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from chain_cases import K, a_model, some_parameters
from naive import chains as naive_chains
from test_chain_sweep import SEQUENCES, STEPS, a_prior

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.families.gaussian_records import GappedStatistics
from headwater.families.gaussian_scaled import ScaledGaussian

KINDS = ("full", "tied", "diag", "spherical")
D = 2


@dataclass
class GappedRowsTwin:
    """The statistics of one row with gaps, by the readouts and E-steps of the family, which have slow twins."""

    family: Any
    prior: Any
    parameters: Any = None

    def log_densities(self, name, totals, x):
        self.parameters = self.family.readout(name, self.prior, GappedStatistics.of(*totals))
        return self.family.log_densities_with_gaps(self.parameters, GappedRows.of(x[None]))[0]

    def statistic(self, x, state, n_states):
        found = self.family.collect_with_gaps(self.parameters, GappedRows.of(x[None]), np.eye(n_states)[[state]])
        return list(found.to_arrays().values())[1:]


def gapped_rows(rows=30):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows, D)) + 2.0 * rng.integers(2, size=(rows, 1))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[[4, 17]] = np.nan
    return X


def a_start(kind, model, prior):
    """Mean statistics of twenty complete rows at states drawn at random."""
    rng = np.random.default_rng(9)
    X, shares = rng.normal(size=(20, D)), rng.dirichlet(np.full(K, 0.5), 20)
    totals = model.zeros(D)
    totals.start[...], totals.steps[...] = shares[0], shares[:-1].T @ shares[1:]
    parameters = model.family.readout("mean", prior.emissions, totals.emissions)
    blank = replace(some_parameters(kind), emissions=parameters)
    return model.collected(blank, X, shares, totals, 1).scaled(1.0 / 20.0)


@pytest.mark.covering("kind", "name")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["mode", "mean", "expect_log"])
@pytest.mark.parametrize(("shape", "rule"), [("one", "equal"), ("complete", "decaying"), ("interleaved", "decaying")])
def test_sweep_with_gaps_equals_the_naive_recursion(kind, name, shape, rule):
    prior, model = a_prior(kind), a_model(kind)
    if shape == "complete":  # columns in units
        prior = replace(prior, emissions=replace(prior.emissions, units=np.array([2.0, 0.5])))
        family = model.family
        model = replace(model, family=ScaledGaussian(family.n_components, kind, family.reg_covar))
    held = a_start(kind, model, prior)
    X, gains, scores, steps = gapped_rows(), np.random.default_rng(2).uniform(0.01, 1.0, 30), np.empty(30), STEPS[rule]
    found, moved, n_eff, carry = model.sweep_open(
        name, prior, held, held, 20.0, Batch(X, sequences=SEQUENCES[shape]), steps, gains, scores, None
    )
    emissions = list(held.emissions.with_gaps().to_arrays().values())[1:]
    dense = [held.start, held.steps, *emissions]
    wanted, average, wanted_n_eff, wanted_scores, filters = naive_chains.cappe(
        name, prior, GappedRowsTwin(model.family, prior.emissions), X, SEQUENCES[shape].tolist(), steps, dense, 20.0, gains
    )
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-11)
    assert n_eff == pytest.approx(wanted_n_eff, rel=1e-12)
    for statistics, arrays in ((found, wanted), (moved, average)):
        assert isinstance(statistics.emissions, GappedStatistics)
        own = [statistics.start, statistics.steps, *list(statistics.emissions.to_arrays().values())[1:]]
        for array, other in zip(own, arrays, strict=True):
            np.testing.assert_allclose(array, other, rtol=1e-8, atol=1e-11)
    for number, states in carry.filters.items():
        np.testing.assert_allclose(states, filters[number], rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SEQUENCES)
def test_gaps_that_begin_late_lose_nothing(kind, shape):
    """Rows without gaps come first, so the carried statistics must change their form in mid-stream."""
    prior, model = a_prior(kind), a_model(kind)
    held, steps, X = a_start(kind, model, prior), STEPS["decaying"], gapped_rows()
    X[:12] = np.nan_to_num(X[:12], nan=0.5)
    whole, _, n_eff, _ = model.sweep_open(
        "mode", prior, held, None, 20.0, Batch(X, sequences=SEQUENCES[shape]), steps, np.empty(0), np.empty(30), None
    )
    now, mass, carry = held, 20.0, None
    for part in (slice(0, 7), slice(7, 20), slice(20, 30)):
        batch = Batch(X[part], sequences=SEQUENCES[shape][part])
        scores = np.empty(len(batch))
        now, _, mass, carry = model.sweep_open("mode", prior, now, None, mass, batch, steps[part], np.empty(0), scores, carry)
    assert mass == pytest.approx(n_eff, rel=1e-12)
    for array, other in zip(now.emissions.to_arrays().values(), whole.emissions.to_arrays().values(), strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-8, atol=1e-11)
