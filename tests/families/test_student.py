"""The Student family against its slow twin: densities, hidden precisions, completed rows, degrees of freedom."""

import numpy as np
import pytest
from naive import student as naive
from scipy import stats
from scipy.special import gammaln

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.families.student import Student
from headwater.families.student_records import LEAST_DOF, MOST_DOF, expected_tail, solve_dof

K = 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 10.0, 0.1] + 5.0 * RNG.integers(2, size=(40, 1))
X[3] += 40.0
GAPS = np.where(RNG.random(X.shape) < 0.3, np.nan, X)
GAPS[5] = np.nan
SHARES = RNG.dirichlet(np.ones(K), size=len(X))
kinds = pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])


def known(kind, name="mode", dof="each", rows=X):
    """Return a family, its prior, and parameters and statistics after two steps of EM from made-up groups."""
    family, batch = Student(K, kind, 1e-6, dof), Batch(rows)
    geometry = family.geometry(batch)
    prior = family.prior(geometry, batch, SHARES)
    first = family.readout(name, prior, family.collect_seeds(geometry, batch, SHARES))
    totals = family.collect(first, rows, SHARES)
    return family, prior, family.readout(name, prior, totals), totals


def matrices(family, parameters):
    scales = family.scales(parameters)
    if family.covariance_type == "tied":
        return np.repeat(scales[None], K, axis=0)
    if family.covariance_type == "full":
        return scales
    return np.array([np.diag(np.broadcast_to(scale, 3)) for scale in scales])


@kinds
@pytest.mark.parametrize("rows", [X, GAPS], ids=["complete", "gaps"])
def test_densities_are_those_of_the_multivariate_t(kind, rows):
    family, _, parameters, _ = known(kind)
    given = GappedRows.of(rows) if np.isnan(rows).any() else rows
    found, means, scales = family.log_densities(parameters, given), family.means(parameters), matrices(family, parameters)
    wanted = [[naive.log_density(x, means[k], scales[k], parameters.dof[k]) for k in range(K)] for x in rows]
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.covering("kind")
@kinds
@pytest.mark.parametrize("rows", [X, GAPS], ids=["complete", "gaps"])
def test_statistics_are_expected_over_hidden_precisions(kind, rows):
    family, prior, parameters, _ = known(kind)
    rows, shares = rows[:12], SHARES[:12]
    given = GappedRows.of(rows) if np.isnan(rows).any() else rows
    found = family.collect(parameters, given, shares)
    about = family.means(parameters) - prior.origin
    count, mass, first, second, tails = naive.statistics(
        rows - prior.origin, shares, about, matrices(family, parameters), parameters.dof
    )
    for one, other in ((found.count, count), (found.mass, mass), (found.first, first), (found.tails, tails)):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    wanted = {
        "full": np.tril(second), "tied": np.tril(second.sum(axis=0)),
        "diag": np.diagonal(second, axis1=1, axis2=2), "spherical": np.diagonal(second, axis1=1, axis2=2),
    }[kind]  # fmt: skip
    np.testing.assert_allclose(
        np.tril(found.second) if kind in ("full", "tied") else found.second, wanted, rtol=1e-7, atol=1e-9
    )


@kinds
def test_what_is_expected_of_distances_is_that_of_drawn_beliefs(kind):
    """The readout of variational Bayes equals Gaussian log-densities averaged over draws of means and precisions."""
    family, prior, parameters, totals = known(kind, "expect_log", 5.0)
    belief, rng = family.gaussian.belief(prior, totals.as_moments()), np.random.default_rng(1)
    x, k, n, width = X[0], 0, 200_000, 3
    if kind in ("full", "tied"):
        scale = belief.scale if kind == "tied" else belief.scale[k]
        draws = stats.wishart.rvs(belief.dof[k], np.linalg.inv(scale), size=n, random_state=rng)
    elif kind == "diag":
        draws = rng.gamma(0.5 * belief.dof[k], 2.0 / belief.scale[k], size=(n, width))[:, :, None] * np.eye(width)
    else:
        draws = rng.gamma(0.5 * width * belief.dof[k], 2.0 / (width * belief.scale[k]), size=n)[:, None, None] * np.eye(width)
    roots = np.linalg.cholesky(draws)
    noise = np.linalg.solve(np.swapaxes(roots, 1, 2), rng.normal(size=(n, width))[..., None])[..., 0]
    away = x - belief.means[k] - noise / np.sqrt(belief.mean_precision[k])
    distance = np.einsum("ni,nij,nj->n", away, draws, away).mean()
    log_det = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1).mean()
    dof = 5.0  # the integral over u of u^((dof + d) / 2 - 1) exp(-u (dof + q) / 2), times its constants
    power = 0.5 * (dof + width)
    wanted = (
        0.5 * log_det - 0.5 * width * np.log(2.0 * np.pi) + 0.5 * dof * np.log(0.5 * dof)
        - gammaln(0.5 * dof) + gammaln(power) - power * np.log(0.5 * (dof + distance))
    )  # fmt: skip
    assert abs(family.log_densities(parameters, x[None])[0, k] - wanted) < 0.02


def test_degrees_of_freedom_solve_their_equation():
    dof = np.geomspace(LEAST_DOF, 9000.0, 40)
    np.testing.assert_allclose(solve_dof(expected_tail(dof)), dof, rtol=1e-9)
    np.testing.assert_array_equal(solve_dof(np.array([-1.0, -1e9, np.nan])), [MOST_DOF, LEAST_DOF, MOST_DOF])


@pytest.mark.parametrize(("word", "same"), [("each", False), ("shared", True), (3.0, True)])
def test_degrees_of_freedom_are_shared_or_given_if_asked_for(word, same):
    dof = known("full", dof=word)[2].dof
    assert (dof[0] == dof[1]) == same
    assert word != 3.0 or dof[0] == 3.0
