"""E-steps of rows with measurement errors, against inverses of whole covariances, row by row."""

import numpy as np
import pytest
from naive import noise as naive

from headwater.core.batch import Batch, join_batches
from headwater.core.gapped_rows import GappedRows
from headwater.core.noisy_rows import NoisyRows, as_covariances
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_scaled import ScaledGaussian
from headwater.families.noise_removal import remove_noise

K = 3
kinds = pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
shapes = pytest.mark.parametrize("correlated", [False, True])
gaps = pytest.mark.parametrize("gapped", [False, True])


def case(correlated, gapped, width=3, n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)) @ rng.normal(size=(width, width)) + 3.0 * rng.integers(2, size=(n, 1))
    noise = rng.gamma(1.0, size=(n, width))
    noise[::7] = 0.0
    if correlated:
        root = rng.normal(size=(n, width, width))
        noise = root @ np.swapaxes(root, 1, 2)
    if gapped:
        X = np.where(rng.random(X.shape) < 0.3, np.nan, X)
        X[4] = np.nan
    return NoisyRows.of_errors(GappedRows.of(X), noise), rng.dirichlet(np.ones(K), size=n)


def learned(family, rows, shares):
    geometry = family.geometry(Batch(rows))
    return family.prior(geometry, Batch(rows), shares), family.collect_seeds(geometry, Batch(rows), shares)


def matrices(family, parameters):
    found, width = family.covariances(parameters), parameters.means.shape[1]
    if family.covariance_type in ("full", "tied"):
        return np.broadcast_to(found, (K, width, width))
    return np.array([np.diag(np.broadcast_to(one, width)) for one in found])


@pytest.mark.covering("kind", "correlated", "gapped")
@kinds
@shapes
@gaps
@pytest.mark.parametrize("scaled", [False, True])
def test_densities_and_moments(kind, correlated, gapped, scaled):
    rows, shares = case(correlated, gapped)
    family = (ScaledGaussian if scaled else Gaussian)(K, kind)
    prior, totals = learned(family, rows, shares)
    parameters = family.readout("mean", prior, totals)
    found = family.log_densities_with_gaps(parameters, rows)
    means, covariances, errors = family.means(parameters), matrices(family, parameters), as_covariances(rows.noise)
    np.testing.assert_allclose(found, naive.log_densities(means, covariances, rows.values, errors), rtol=1e-9, atol=1e-9)
    if scaled:
        return
    moments = family.collect_with_gaps(parameters, rows, shares)
    centred = rows.values - prior.origin
    wanted = naive.collect(kind, parameters.means, covariances, centred, errors, shares)
    second = moments.second
    if kind in ("full", "tied"):
        second = second + np.swapaxes(np.tril(second, -1), -1, -2)
    for one, two in zip((moments.count, moments.first, second, moments.observed, moments.known), wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-8)


@kinds
@gaps
def test_no_errors_are_exact_rows(kind, gapped):
    rows, shares = case(False, gapped)
    exact = NoisyRows.of_errors(GappedRows(rows.values, rows.missing), np.zeros(rows.shape))
    plain = GappedRows(rows.values, rows.missing) if gapped else rows.values
    family = Gaussian(K, kind)
    prior, totals = learned(family, plain, shares)
    for name in ("mode", "mean", "expect_log"):
        parameters = family.readout(name, prior, totals)
        scores, others = np.empty((2, len(rows)))
        one, two = (
            family.estep(parameters, np.log(np.full(K, 1 / K)), Batch(X), family.zeros(3), into)[1]
            for X, into in ((exact, scores), (plain, others))
        )
        np.testing.assert_allclose(scores, others, rtol=1e-9, atol=1e-9)
        for part in ("count", "first", "second"):
            np.testing.assert_allclose(getattr(one, part), getattr(two, part), rtol=1e-9, atol=1e-9)


@shapes
def test_errors_beside_which_a_component_is_wide_are_not_lost_to_rounding(correlated):
    """Of rows far from a component whose columns are nearly one, only what was measured is left."""
    rng = np.random.default_rng(3)
    wide = (rng.normal(size=(40, 1)) + 1e-6 * rng.normal(size=(40, 3))) * [1e-40, 1.0, 1e90]
    family, shares = Gaussian(K, "full"), rng.dirichlet(np.ones(K), size=40)
    parameters = family.readout("mean", *learned(family, wide, shares))
    X, errors = rng.normal(size=(5, 3)), np.tile([0.0, 0.0, 0.25], (5, 1))
    rows = NoisyRows.of_errors(GappedRows.of(X), as_covariances(errors) if correlated else errors)
    moments = family.collect_with_gaps(parameters, rows, np.full((5, K), 1.0 / K))
    centred = X - parameters.origin
    np.testing.assert_allclose(moments.first, np.tile(centred.sum(axis=0) / K, (K, 1)), rtol=1e-12)
    np.testing.assert_allclose(moments.second[0], np.tril(centred.T @ centred) / K, rtol=1e-12)
    assert (family.find_problem(moments.scaled(1.0 / 5.0), 3)) == ""


@kinds
def test_small_errors_are_weighed_as_large_ones(kind):
    """Whether errors are a little above or below what counts as next to none changes next to nothing."""
    rows, shares = case(False, False)
    family = Gaussian(K, kind)
    parameters = family.readout("mean", *learned(family, rows, shares))
    variances = matrices(family, parameters)[:, [0, 1, 2], [0, 1, 2]]
    found = []
    for part in (0.5, 2.0):
        small = NoisyRows.of_errors(GappedRows.of(rows.values), np.full(rows.shape, part * 1e-12 * variances.min()))
        found.append(family.collect_with_gaps(parameters, small, shares).to_arrays())
    for name in found[0]:
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-9, atol=1e-9)


@kinds
def test_variances_are_diagonal_covariances(kind):
    rows, shares = case(False, True)
    family = Gaussian(K, kind)
    prior, totals = learned(family, rows, shares)
    wide = NoisyRows(rows.values, rows.missing, as_covariances(rows.noise))
    parameters = family.readout("expect_log", prior, totals)
    for one, two in ((rows, wide),):
        np.testing.assert_allclose(
            family.log_densities_with_gaps(parameters, one), family.log_densities_with_gaps(parameters, two), rtol=1e-9
        )
        left, right = (family.collect_with_gaps(parameters, X, shares).to_arrays() for X in (one, two))
        for name in left:
            np.testing.assert_allclose(left[name], right[name], rtol=1e-9, atol=1e-9)


def test_a_tail_takes_no_errors():
    rows, shares = case(False, False)
    family = Gaussian(K)
    with pytest.raises(ValueError, match="no predictive density"):
        family.log_densities_with_gaps(family.readout("predictive", *learned(family, rows, shares)), rows)


def test_rows_are_cut_and_joined_with_their_noise():
    rows, _ = case(False, True)
    wide, _ = case(True, False)
    joined = join_batches([Batch(rows[:5]), Batch(wide[[1, 3]]), Batch(np.ones((2, 3)))]).X
    assert isinstance(joined, NoisyRows) and joined.noise.shape == (9, 3, 3)
    np.testing.assert_array_equal(joined.noise[:5], as_covariances(rows.noise[:5]))
    np.testing.assert_array_equal(joined.noise[5:7], wide.noise[[1, 3]])
    assert not joined.noise[7:].any() and not joined.missing[7:].any()
    np.testing.assert_array_equal(rows[np.arange(30) % 2 == 0].noise, rows.noise[::2])
    np.testing.assert_array_equal(wide.columns(slice(1, 3)).noise, wide.noise[:, 1:, 1:])
    assert rows.nbytes == rows.values.nbytes + rows.noise.nbytes


@pytest.mark.parametrize("matrix", [False, True])
def test_a_start_takes_the_errors_off(matrix):
    rng = np.random.default_rng(0)
    true = rng.normal(size=(20000, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    noise = np.tile([1.0, 0.25], (20000, 1))
    rows = NoisyRows.of_errors(true + rng.normal(size=true.shape) * np.sqrt(noise), noise)
    observed, wanted = np.cov(rows.values.T), np.cov(true.T)
    found = remove_noise(matrix, rows, np.ones(20000), observed if matrix else np.diag(observed))
    np.testing.assert_allclose(found, wanted if matrix else np.diag(wanted), atol=0.06)
    known = observed if matrix else np.diag(observed)
    least = remove_noise(matrix, NoisyRows.of_errors(true, noise * 100), np.ones(20000), known)
    np.testing.assert_allclose(least, 0.1 * known, rtol=1e-6, atol=1e-12)


def test_errors_are_taken_off_each_column_in_its_own_units():
    """Columns may differ by more than numbers can bear when they are compared as they are."""
    units = 10.0 ** np.linspace(-50.0, 90.0, 4)
    root = np.random.default_rng(0).normal(size=(4, 4))
    covariance, noise = root @ root.T, np.full((500, 4), 0.05)
    plain = remove_noise(True, NoisyRows.of_errors(np.zeros((500, 4)), noise), np.ones(500), covariance)
    scaled = NoisyRows.of_errors(np.zeros((500, 4)), noise * units**2)
    found = remove_noise(True, scaled, np.ones(500), covariance * units * units[:, None])
    np.testing.assert_allclose(found / units / units[:, None], plain, rtol=1e-9, atol=1e-12)
    most = NoisyRows.of_errors(np.zeros((500, 4)), noise * [1e120, 0.0, 0.0, 0.0])  # larger than rows spread: not believed
    found = remove_noise(True, most, np.ones(500), np.eye(4))
    np.testing.assert_allclose(found, np.diag([0.1, 1.0, 1.0, 1.0]), atol=1e-9)
