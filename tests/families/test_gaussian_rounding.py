"""Covariances with a lower bound, against the constrained maximum of the likelihood by a general optimiser."""

from dataclasses import replace

import numpy as np
import pytest
from naive import rounding as naive

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.families.factor_gaussian import FactorGaussian
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import RoundedPrior
from headwater.families.gaussian_scaled import ScaledGaussian

STEPS = {"all": [1.0, 2.0, 0.5], "some": [2.0, 0.0, 3.0], "one": [0.0, 0.0, 4.0], "fine": [1e-3, 0.0, 1e-3]}
kinds = pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
steps_of = pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)


def case(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ [[1.0, 0.8, 0.1], [0.0, 0.3, 0.2], [0.0, 0.0, 0.4]] + rng.integers(2, size=(n, 1))
    return X, rng.dirichlet(np.ones(2), size=n)


def learned(family, X, shares):
    geometry = family.geometry(Batch(X))
    return family.prior(geometry, Batch(X), shares), family.collect_seeds(geometry, Batch(X), shares)


def matrices(family, parameters):
    found, width = family.covariances(parameters), parameters.means.shape[1]
    if family.covariance_type == "full":
        return found
    if family.covariance_type == "tied":
        return np.broadcast_to(found, (2, width, width))
    return np.array([np.diag(np.broadcast_to(one, width)) for one in found])


@pytest.mark.covering("kind", "proper")
@kinds
@steps_of
@pytest.mark.parametrize("proper", [True, False])
def test_the_mode_is_the_best_under_the_bound(kind, steps, proper):
    X, shares = case()
    free, bound = Gaussian(2, kind, 0.0), Gaussian(2, kind, 0.0, resolution=np.array(steps))
    prior, totals = learned(bound, X, shares)
    if not proper:
        prior = bound.flatten_prior(prior)
    assert isinstance(prior, RoundedPrior)
    found, before = (matrices(one, one.readout("mode", p, totals)) for one, p in ((bound, prior), (free, naive.plain(prior))))
    for k in range(2):
        wanted = naive.best_covariance(kind, before[k], np.array(steps) ** 2 / 12)
        np.testing.assert_allclose(found[k], wanted, rtol=2e-4, atol=2e-4)
        assert np.linalg.eigvalsh(found[k] - np.diag(np.array(steps) ** 2 / 12)).min() > -1e-12


@kinds
@pytest.mark.parametrize("name", ["mean", "expect_log", "predictive"])
def test_other_readouts_are_those_of_a_lifted_belief(kind, name):
    X, shares = case()
    steps = np.array([2.0, 0.0, 3.0])
    bound = Gaussian(2, kind, resolution=steps)
    prior, totals = learned(bound, X, shares)
    lifted = bound.belief(prior, totals)
    dof = lifted.dof.reshape(2, -1)
    scale = lifted.scale.reshape(-1, 3, 3) if kind in ("full", "tied") else lifted.scale.reshape(2, -1)
    for k in range(2):
        one = scale[k if len(scale) > 1 else 0] / dof[k, 0]
        one = one if one.ndim == 2 else np.diag(np.broadcast_to(one, 3))
        least = steps**2 / 12 if kind != "spherical" else np.full(3, (steps**2).max() / 12)
        assert np.linalg.eigvalsh(one - np.diag(least)).min() > -1e-12
    # The same belief, from totals that meet the bound.
    raised = replace(totals, second=totals.second + (bound._lifted(prior, totals).second - totals.second))
    ours, theirs = bound.readout(name, prior, totals), Gaussian(2, kind).readout(name, naive.plain(prior), raised)
    for part in ("means", "factor", "offset", "power", "stretch"):
        np.testing.assert_allclose(getattr(ours, part), getattr(theirs, part), rtol=1e-9)


@kinds
def test_steps_that_do_not_matter_change_no_bit(kind):
    X, shares = case()
    free = Gaussian(2, kind)
    prior, totals = learned(free, X, shares)
    for steps in ([0.0, 0.0, 0.0], [1e-3, 0.0, 1e-3]):
        bound = Gaussian(2, kind, resolution=np.array(steps))
        rounded, _ = learned(bound, X, shares)
        for name in ("mode", "mean", "expect_log", "predictive"):
            np.testing.assert_array_equal(bound.readout(name, rounded, totals).factor, free.readout(name, prior, totals).factor)


@kinds
def test_units_change_nothing(kind):
    X, shares = case()
    steps = np.array([2.0, 0.0, 3.0])
    family = ScaledGaussian(2, kind, resolution=steps)
    prior, totals = learned(family, X, shares)
    units = np.array([10.0, 0.1, 3.0])
    other = replace(family, resolution=steps * units)
    theirs, sums = learned(other, X * units, shares)
    ours, found = family.readout("mean", prior, totals), other.readout("mean", theirs, sums)
    np.testing.assert_allclose(other.means(found), family.means(ours) * units, rtol=1e-9)
    np.testing.assert_allclose(ours.factor, found.factor, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_columns_with_masses_of_their_own_are_lifted(kind):
    X, shares = case()
    gapped = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    steps = np.array([2.0, 0.0, 3.0])
    family = Gaussian(2, kind, 0.0, resolution=steps)
    geometry = family.geometry(Batch(GappedRows.of(gapped)))
    prior = family.prior(geometry, Batch(GappedRows.of(gapped)), shares)
    totals = family.collect_seeds(geometry, Batch(GappedRows.of(gapped)), shares)
    least = steps**2 / 12 if kind == "diag" else (steps**2).max() / 12
    plain = Gaussian(2, kind, 0.0)
    for name in ("mode", "mean"):
        found = np.reshape(family.covariances(family.readout(name, prior, totals)), (2, -1))
        free = np.reshape(plain.covariances(plain.readout(name, naive.plain(prior), totals)), (2, -1))
        np.testing.assert_allclose(found, np.maximum(free, least), rtol=1e-9)


def test_the_noise_of_factor_analysers_is_no_less_than_that_of_rounding():
    X, shares = case()
    steps = np.array([2.0, 0.0, 3.0])
    family = FactorGaussian(2, 1, resolution=steps)
    prior, totals = learned(family, X, shares)
    free = FactorGaussian(2, 1)
    noise = free.readout("mode", learned(free, X, shares)[0], totals).noise
    np.testing.assert_allclose(family.readout("mode", prior, totals).noise, np.maximum(noise, steps**2 / 12))


def test_the_coarser_of_two_steps_is_common():
    X, shares = case()
    for family in (Gaussian(2), ScaledGaussian(2), FactorGaussian(2, 1)):
        ones, others = (
            learned(replace(family, resolution=np.array(steps)), X, shares)[0] for steps in ([1.0, 0.0, 2.0], [0.5, 3.0, 2.0])
        )
        units = getattr(ones, "units", np.empty(0))
        common = family.common_prior([ones, others]).steps * (units if units.size else 1.0)
        np.testing.assert_allclose(common, [1.0, 3.0, 2.0])
        assert family.common_prior([ones, ones]) is ones
