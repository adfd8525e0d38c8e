"""Mixtures that learned apart, and comparisons of them, for the tests of merging."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from naive import gaussian as naive

import headwater as hw
from headwater.core.records import arrays_of
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianPrior
from headwater.models.mixture import Mixture

KINDS = naive.KINDS
ADDING = ("boem", "online-vb", "quasi-bayes", "moment-matching", "auto")  # whose natural parameters add
ONLINE = ("soem", "online-em", *ADDING)
FITTED = ("em", "vb", "auto")
CENTRES = np.array([[0.0, 0.0], [40.0, 10.0], [-10.0, 50.0]])


def cases(algorithms):
    pairs = [(kind, word) for kind in KINDS for word in algorithms if (kind, word) != ("tied", "moment-matching")]
    return pytest.mark.parametrize(("kind", "algorithm"), pairs)


def rows_of(seed, n, weights=(0.5, 0.3, 0.2), centres=CENTRES):
    """Return rows of clusters far apart, and the cluster of each."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(centres), size=n, p=weights)
    return rng.normal(size=(n, 2)) * [1.0, 2.0] + centres[labels], labels


def blurred(seed, n):
    """Return rows of clusters that overlap, so that the order of learning matters."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) * [1.0, 1.5] + 2.5 * rng.integers(3, size=(n, 1))


def mixture(algorithm="auto", kind="full", k=3, **options):
    options = {"random_state": 0, "warm_up": 300, **options}
    return hw.GaussianMixture(k, covariance_type=kind, algorithm=algorithm, **options)


def answers(model):
    found = [model.weights_, model.means_, model.covariances_, model.weight_concentration_, model.mean_precision_]
    return [*found, model.degrees_of_freedom_]


def assert_close(one, other, rtol=1e-8):
    assert one.n_samples_seen_ == other.n_samples_seen_
    for mine, theirs in zip(answers(one), answers(other), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())


def content(model):
    return [array.tobytes() for array in arrays_of(model._state)]


def assert_same(one, other):
    same = content(one) == content(other)  # hypothesis cannot simplify the bytes
    assert same


def quiet_merge(models):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return hw.merge(models)


def trained_apart(algorithm, kind, sizes=(1400, 1100, 1000), offset=0.0, fit=False, **options):
    """Return models with separate starts, whose warm-ups had the clusters in different shares, and all of their rows."""
    shares = ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5), (0.1, 0.6, 0.3))
    models, rows, labels = [], [], []
    for seed, (size, share) in enumerate(zip(sizes, shares, strict=False)):
        X, own = rows_of(10 + seed, size, share)
        X = X + offset
        model = mixture(algorithm, kind, random_state=seed, **options)
        models.append(model.fit(X) if fit else model.partial_fit(X))
        rows.append(X)
        labels.append(own)
    return models, np.concatenate(rows), np.concatenate(labels)


def prior_of(kind, rng, flat=False):
    family = Gaussian(3, kind)
    if flat:
        return family, family.flat_prior(rng.normal(size=2))
    scale = {"full": np.array([[3.0, 1.0], [1.0, 2.0]]), "tied": np.array([[3.0, 1.0], [1.0, 2.0]])}
    scale = scale.get(kind, np.array([2.0, 2.0]) if kind == "spherical" else np.array([3.0, 1.0]))
    return family, GaussianPrior(rng.normal(size=2), rng.normal(size=2), 0.5, 5.0, scale, 0.0)


def totals_of(kind, family, rng, n=60, drifted=False, origin=0.0):
    """Return statistics of random rows about an origin; `drifted` ones have separate masses, as after moment matching."""
    X, resp = rng.normal(size=(n, 2)) * 2.0 + [1.0, -1.0], rng.dirichlet(np.ones(3), n)
    count, first, second = naive.totals(kind, X - origin, resp)
    second = np.tril(second) if kind in ("full", "tied") else second
    totals = replace(family.zeros(2), count=count, first=first, second=second)
    if drifted:
        totals = Mixture(3, family).statistics_for("match_moments", totals)
        shape = totals.dof_count.shape
        mean_count = totals.mean_count * rng.uniform(1.0, 1.2, shape)
        totals = replace(totals, mean_count=mean_count, dof_count=totals.dof_count * rng.uniform(0.5, 1.5, shape))
    return totals


DRIFT = [(kind, drifted) for kind in KINDS for drifted in (False, True) if not (kind == "tied" and drifted)]


def is_belief(model):
    belief = model._component_belief()
    scale = np.linalg.eigvalsh(belief.scale) if model.covariance_type == "full" else belief.scale
    least = 1.0 if model.covariance_type == "full" else 0.0
    enough = (belief.mean_precision > 0.0).all() and (belief.dof > least).all()
    return bool(enough and (scale > 0.0).all() and (model.weight_concentration_ > 0.0).all())
