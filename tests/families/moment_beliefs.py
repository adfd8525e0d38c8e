"""Beliefs for the tests of Bayesian moment matching."""

import itertools

import numpy as np
import pytest
from naive.moments import KINDS, RULES, Belief

PAIRS = list(itertools.product(RULES, RULES))
kinds = pytest.mark.parametrize("kind", KINDS)
pairs = pytest.mark.parametrize("projection", PAIRS, ids=[" and ".join(pair) for pair in PAIRS])


def some_belief(kind, n_components, width, rng, spread=1.5):
    """Return a belief like that after some tens of rows, with overlapping components."""
    shape = (n_components, width) if kind == "diag" else (n_components,)
    nu = rng.gamma(4.0, 4.0, shape) + (width + 3 if kind == "full" else 4)
    covariance = rng.gamma(4.0, 0.25, (n_components, width)) + 0.1
    if kind == "full":
        roots = rng.normal(size=(n_components, width, 3 * width))
        V = nu[:, None, None] * (roots @ np.swapaxes(roots, 1, 2) / (3 * width))
    else:
        V = covariance * (nu if kind == "diag" else nu[:, None])
    kappa = rng.gamma(3.0, 3.0, shape) + 0.2
    return Belief(rng.gamma(3.0, 2.0, n_components) + 0.2, spread * rng.normal(size=(n_components, width)), kappa, nu, V)


def comparable(kind, belief):
    """Return a belief in comparable form: for a spherical component only the sum of V matters."""
    if kind != "spherical":
        return belief
    return belief._replace(V=np.broadcast_to(belief.V.mean(axis=1)[:, None], belief.V.shape))


def assert_same_belief(kind, found, wanted, rtol, lost=0.0):
    """Compare means in standard deviations, and V relative to its largest entry; `lost` is a further tolerance of V."""
    found, wanted = comparable(kind, found), comparable(kind, wanted)
    for name in ("a", "kappa", "nu"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=rtol, err_msg=name)
    variances = np.diagonal(wanted.V, axis1=1, axis2=2) if kind == "full" else wanted.V
    deviations = np.sqrt(variances / (wanted.nu if kind == "diag" else wanted.nu[:, None]))
    assert np.abs((found.means - wanted.means) / (deviations + np.abs(wanted.means))).max() < rtol
    for mine, theirs in zip(found.V, wanted.V, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max() + lost, err_msg="V")


def torn(kind, width, distance=1e5):
    """Return two mirror-image components, and a distant row halfway between them."""
    first = np.eye(width)[0]
    shape = (2, width) if kind == "diag" else (2,)
    V = 200 * (np.array([np.eye(width)] * 2) if kind == "full" else np.ones((2, width)))
    belief = Belief(np.array([20.0, 20.0]), np.array([-first, first]), np.full(shape, 150.0), np.full(shape, 200.0), V)
    return belief, (distance * np.eye(width)[-1] if width > 1 else np.zeros(1))


def some_map(kind, width, rng):
    """Return a linear map that keeps the kind of belief, and a shift."""
    if kind == "diag":
        matrix = np.diag(rng.choice([-1.0, 1.0], width) * np.exp(rng.normal(size=width)))
    elif kind == "spherical":
        matrix = np.exp(rng.normal()) * np.linalg.qr(rng.normal(size=(width, width)))[0]
    else:
        matrix = rng.normal(size=(width, width)) + 2 * np.eye(width)
    return matrix, rng.normal(size=width)


def mapped(kind, belief, matrix, shift):
    if kind == "full":
        V = matrix @ belief.V @ matrix.T
    elif kind == "diag":
        V = belief.V * np.diag(matrix) ** 2
    else:
        V = belief.V * np.abs(np.linalg.det(matrix)) ** (2 / len(matrix))
    return belief._replace(means=belief.means @ matrix.T + shift, V=V)


def natural(kind, mean, kappa, V):
    """V + kappa m m', or column by column."""
    if kind == "full":
        return V + np.reshape(kappa, (-1, 1, 1)) * mean[..., :, None] * mean[..., None, :]
    return V + kappa * mean**2


def column(array):
    """(K, 1) of (K,); (K, d) as it is."""
    return array.reshape(len(array), -1)
