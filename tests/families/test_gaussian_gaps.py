"""Densities and statistics of Gaussians with gaps, against the marginals and conditionals of every pattern."""

from itertools import product

import numpy as np
import pytest
from naive import gaps as naive
from naive import gaussian

import headwater as hw
from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.families.family import GAPS_REFUSED, log_densities_by_estep
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GappedStatistics
from headwater.families.gaussian_scaled import ScaledGaussian
from headwater.families.multinomial import Multinomial
from headwater.kernels.gaps import sort_by_gaps

K = 3
kinds = pytest.mark.parametrize("kind", gaussian.KINDS)
names = pytest.mark.parametrize("name", gaussian.READOUTS)
widths = pytest.mark.parametrize("width", [1, 2, 5])


def case(width, seed=0):
    """Return correlated rows, complete and with every pattern of gaps: the first has none, the last has no value."""
    rng = np.random.default_rng(seed)
    patterns = np.array(list(product([False, True], repeat=width)))
    n = max(40, 2 * len(patterns))
    X = rng.normal(size=(n, width)) @ rng.normal(size=(width, width)) + 3.0 * rng.integers(2, size=(n, 1))
    missing = np.resize(patterns, (n, width))
    return X, np.where(missing, np.nan, X), rng.dirichlet(np.ones(K), size=n)


def learned(family, X, shares):
    batch = Batch(X)
    geometry = family.geometry(batch)
    return family.prior(geometry, batch, shares), family.collect_seeds(geometry, batch, shares)


def believed(kind, prior, totals):
    return gaussian.belief(kind, prior, totals.count, totals.first, mirrored(kind, totals.second))


def mirrored(kind, second):
    return second + np.swapaxes(np.tril(second, -1), -1, -2) if kind in ("full", "tied") else second


@pytest.mark.covering("kind", "name")
@kinds
@names
@widths
def test_log_densities_are_marginals(kind, name, width):
    X, gapped, shares = case(width)
    family = Gaussian(K, kind)
    prior, totals = learned(family, X, shares)
    found = family.log_densities_with_gaps(family.readout(name, prior, totals), GappedRows.of(gapped))
    wanted = naive.log_densities(name, kind, believed(kind, prior, totals), prior.floor, gapped - prior.origin)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@kinds
@names
def test_densities_in_units_are_those_of_the_columns(kind, name):
    """A sphere in units of the columns is an ellipsoid along the axes: its twin is a diagonal one."""
    X, gapped, shares = case(3)
    X, gapped = X * [1e-3, 1.0, 50.0], gapped * [1e-3, 1.0, 50.0]
    family = ScaledGaussian(K, kind)
    prior, totals = learned(family, X, shares)
    parameters = family.readout(name, prior, totals)
    found = family.log_densities_with_gaps(parameters, GappedRows.of(gapped))
    inner = naive.log_densities(name, kind, believed(kind, prior, totals), prior.floor, (gapped - prior.origin) / prior.units)
    np.testing.assert_allclose(found, inner - (~np.isnan(gapped) @ np.log(prior.units))[:, None], rtol=1e-9, atol=1e-9)


@pytest.mark.covering("kind", "name")
@kinds
@pytest.mark.parametrize("name", ["mode", "mean", "expect_log"])
@widths
def test_statistics_are_those_of_completed_rows(kind, name, width):
    X, gapped, shares = case(width)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))
    family = Gaussian(K, kind)
    prior, totals = learned(family, X, shares)
    parameters, log_weights = family.readout(name, prior, totals), np.log([0.5, 0.2, 0.3])
    scores, resp = np.empty(len(X)), np.empty((len(X), K))
    batch = Batch(GappedRows.of(gapped), weights)
    score, found = family.estep(parameters, log_weights, batch, family.zeros(width), scores, resp)
    joint = naive.log_densities(name, kind, believed(kind, prior, totals), prior.floor, gapped - prior.origin) + log_weights
    wanted_resp, wanted_scores = gaussian.responsibilities(joint)
    np.testing.assert_allclose(resp, wanted_resp, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-9)
    assert score == pytest.approx(weights @ wanted_scores, rel=1e-9)
    covariances = np.broadcast_to(family.covariances(parameters), (K, width, width)) if kind in ("full", "tied") else None
    wanted = naive.totals(kind, gapped - prior.origin, wanted_resp, parameters.means, covariances, weights)
    assert isinstance(found, GappedStatistics)
    second = mirrored(kind, found.second)
    for one, other in zip((found.count, found.first, second, found.observed, found.known), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9 * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize("kind", ["full", "tied"])
@pytest.mark.parametrize(("width", "share", "runs"), [(6, 0.4, 12), (26, 0.2, 1), (40, 0.7, 1)])
def test_rows_that_share_gaps_and_wide_rows(kind, width, share, runs):
    """Runs of one pattern share factors; wide rows are gathered; of very many gaps factors are made twice."""
    rng = np.random.default_rng(5)
    k, n = 10, 8 * runs
    patterns = rng.random((n // runs, width)) < share
    patterns[:, 0], patterns[:, 1] = True, False
    means, weights = rng.normal(size=(k, width)), rng.uniform(1e-20, 3e-20, size=n)
    shares = np.eye(k)[rng.integers(k, size=60 * k)]
    X = shares @ means + 0.5 * rng.normal(size=(60 * k, width)) @ rng.normal(size=(width, width)) / np.sqrt(width)
    family = Gaussian(k, kind)
    prior, totals = learned(family, X, shares)
    parameters = family.readout("mode", prior, totals)
    gapped = np.where(np.repeat(patterns, runs, axis=0), np.nan, X[:n])
    scores, resp = np.empty(n), np.empty((n, k))
    batch = Batch(GappedRows.of(gapped), weights)
    _, found = family.estep(parameters, np.full(k, -np.log(k)), batch, family.zeros(width), scores, resp)
    joint = naive.log_densities("mode", kind, believed(kind, prior, totals), prior.floor, gapped - prior.origin) - np.log(k)
    wanted_resp, wanted_scores = gaussian.responsibilities(joint)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(resp, wanted_resp, rtol=1e-7, atol=1e-12)
    covariances = np.broadcast_to(family.covariances(parameters), (k, width, width))
    wanted = naive.totals(kind, gapped - prior.origin, wanted_resp, parameters.means, covariances, weights)
    assert isinstance(found, GappedStatistics)
    second = mirrored(kind, found.second)
    for one, other in zip((found.count, found.first, second, found.observed, found.known), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * np.abs(other).max())


@kinds
def test_complete_rows_among_others_keep_their_bits(kind):
    X, gapped, shares = case(4)
    family = Gaussian(K, kind)
    parameters = family.readout("mean", *learned(family, X, shares))
    mixed = np.vstack([gapped, X])
    found = family.log_densities_with_gaps(parameters, GappedRows.of(mixed))
    complete = ~np.isnan(mixed).any(axis=1)
    np.testing.assert_array_equal(found[complete], log_densities_by_estep(family, parameters, mixed[complete]))


def test_labels_clamp_rows_with_gaps():
    X, gapped, shares = case(3)
    family = Gaussian(K, "full")
    parameters = family.readout("mean", *learned(family, X, shares))
    labels = np.random.default_rng(2).integers(-1, K, size=len(X))
    resp = np.empty((len(X), K))
    family.estep(parameters, np.log(np.full(K, 1 / K)), Batch(GappedRows.of(gapped), labels=labels), responsibilities=resp)
    named = labels >= 0
    np.testing.assert_array_equal(resp[named], np.eye(K)[labels[named]])


def test_near_singular_covariances_lose_no_digits():
    """The squared residual is not computed as a difference of large squares."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(400, 1))
    X = z + 1e-6 * rng.normal(size=(400, 3))
    family = Gaussian(1, "full", reg_covar=0.0)
    prior, totals = learned(family, X, np.ones((400, 1)))
    prior = family.flat_prior(prior.origin)
    parameters = family.readout("mode", prior, totals)
    gapped = X[:50].copy()
    gapped[:, 1] = np.nan
    found = family.log_densities_with_gaps(parameters, GappedRows.of(gapped))[:, 0]
    covariance = family.covariances(parameters)[0][np.ix_([0, 2], [0, 2])]
    centred = X[:50, [0, 2]] - family.means(parameters)[0, [0, 2]]
    wide = np.float128 if hasattr(np, "float128") else np.longdouble
    a, b, c = (covariance[i, j].astype(wide) for i, j in ((0, 0), (0, 1), (1, 1)))
    x, y = centred.T.astype(wide)
    wanted = -0.5 * ((c * x**2 - 2 * b * x * y + a * y**2) / (a * c - b**2) + np.log(a * c - b**2)) - np.log(2 * np.pi)
    np.testing.assert_allclose(found, wanted.astype(float), rtol=1e-3)


def test_rows_are_sorted_by_their_gaps():
    rng = np.random.default_rng(4)
    for width in (3, 20, 90):
        missing = np.repeat(rng.random((6, width)) < 0.4, 5, axis=0)[rng.permutation(30)]
        missing[:2], missing[2:4] = False, True
        order, ends = np.empty(30, dtype=np.int64), np.empty(width + 2, dtype=np.int64)
        sort_by_gaps(missing, order, ends)
        gaps = missing.sum(axis=1)
        assert sorted(order) == list(range(30)) and (np.diff(gaps[order]) >= 0).all()
        assert ends.tolist() == [int((gaps < number).sum()) for number in range(width + 2)]
        changes = 1 + (missing[order][1:] != missing[order][:-1]).any(axis=1).sum()
        assert changes <= len(np.unique(missing, axis=0)) + 2  # two patterns with one hash may be mixed


def test_rows_without_any_value_are_found():
    rng = np.random.default_rng(5)
    for width in (1, 2, 3, 12):
        missing = rng.random((200, width)) < 0.7
        missing[::9], missing[1::9] = True, False
        found = GappedRows(np.where(missing, np.nan, 1.0), missing).is_empty
        np.testing.assert_array_equal(found, missing.all(axis=1))


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_what_is_kept_of_parameters_is_that_of_these_parameters(kind):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 3))
    gapped = GappedRows.of(np.where(rng.random(X.shape) < 0.2, np.nan, X))
    models = [hw.GaussianMixture(2, covariance_type=kind, random_state=0).fit(part) for part in (X[:150], X[150:] + 5.0)]

    def densities(model):
        return model._model.family.log_densities_with_gaps(model._read().parameters.components, gapped)

    one, other = densities(models[0]), densities(models[1])
    assert not np.allclose(one, other)
    np.testing.assert_array_equal(densities(models[0]), one)
    np.testing.assert_array_equal(densities(models[1]), other)


def test_a_family_without_gaps_refuses_them():
    rows = GappedRows.of(np.array([[1.0, np.nan]]))
    family = Multinomial(2)
    assert not family.takes_gaps
    for call in (lambda: family.log_densities_with_gaps(None, rows), lambda: family.collect_with_gaps(None, rows, None)):
        with pytest.raises(ValueError, match=GAPS_REFUSED):
            call()
