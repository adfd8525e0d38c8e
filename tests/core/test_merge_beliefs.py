"""Merging as a product of beliefs: divergences, products that are not a belief, and rows of very different size."""

from dataclasses import replace

import numpy as np
import pytest
from merge_models import DRIFT, KINDS, assert_close, is_belief, mixture, prior_of, quiet_merge, rows_of, totals_of
from naive import gaussian as naive
from naive import merging as twin
from scipy import special

import headwater as hw
from headwater.core.records import arrays_of
from headwater.estimators import model_file
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_belief import inverses, log_determinants
from headwater.families.gaussian_records import GaussianPrior, MomentStatistics
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixturePrior

# Divergences


@pytest.mark.parametrize(("kind", "drifted"), DRIFT)
def test_separation_is_the_divergence_of_beliefs_both_ways(kind, drifted):
    rng = np.random.default_rng(5)
    for _ in range(3):
        family, prior = prior_of(kind, rng)
        totals, others = (totals_of(kind, family, rng, n, drifted) for n in (60, 25))
        wanted = twin.jeffreys(kind, family.belief(prior, totals), family.belief(prior, others))
        np.testing.assert_allclose(family.separation(prior, totals, others), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(family.separation(prior, others, totals), wanted.T, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(np.diag(family.separation(prior, totals, totals)), 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_separation_is_that_of_draws(kind):
    rng = np.random.default_rng(6)
    family, prior = prior_of(kind, rng)
    totals, others = totals_of(kind, family, rng, 30), totals_of(kind, family, rng, 20)
    found = family.separation(prior, totals, others)[0, 1]
    one, other = (twin.component(kind, family.belief(prior, part), k) for k, part in enumerate((totals, others)))
    wanted, error = twin.sampled_jeffreys(kind, one, other, 3000, rng)
    assert error < 0.1 * wanted
    assert found == pytest.approx(wanted, abs=5.0 * error)


@pytest.mark.parametrize("kind", KINDS)
def test_maximum_likelihoods_can_be_told_apart(kind):
    """Under a flat prior there is no divergence, but a component is still nearest to itself."""
    rng = np.random.default_rng(7)
    family, prior = prior_of(kind, rng, flat=True)
    X, labels = rows_of(0, 600)
    count, first, second = naive.totals(kind, X - prior.origin, np.eye(3)[labels])
    second = np.tril(second) if kind in ("full", "tied") else second
    totals = replace(family.zeros(2), count=count, first=first, second=second)
    found = family.separation(prior, totals, family.select_statistics(totals, np.array([2, 0, 1])))
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found.argmin(axis=1), [1, 2, 0])
    np.testing.assert_allclose(found.min(axis=1), 0.0, atol=1e-6)


def test_the_weights_count_in_the_divergence():
    """Summed over an assignment it is Jeffreys' divergence of the Dirichlets, up to a constant."""
    rng = np.random.default_rng(8)
    family, components = prior_of("full", rng)
    model, prior = Mixture(3, family), MixturePrior(np.array([0.7, 0.7, 0.7]), components)
    totals, others = totals_of("full", family, rng), totals_of("full", family, rng, 30)
    extra = model.separation(prior, totals, others) - family.separation(components, totals, others)

    def dirichlet_kl(a, b):
        out = special.gammaln(a.sum()) - special.gammaln(a).sum() - special.gammaln(b.sum()) + special.gammaln(b).sum()
        return out + (a - b) @ (special.digamma(a) - special.digamma(a.sum()))

    rest = []
    for order in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        a, b = 0.7 + totals.count, 0.7 + others.count[order]
        rest.append(dirichlet_kl(a, b) + dirichlet_kl(b, a) - extra[[0, 1, 2], order].sum())
    np.testing.assert_allclose(rest, rest[0], rtol=1e-9)


# Products that are no belief


def moments(kind, **changed):
    """Return statistics of moment matching for two components of two columns; the first component was changed."""
    columns = 2 if kind == "diag" else 1
    values = {"count": 10.0, "kappa": 10.0, "nu": 10.0, "V": 10.0, **changed}
    second = np.stack([values["V"] * np.eye(2), 10.0 * np.eye(2)])
    if kind != "full":
        second = np.diagonal(second, axis1=1, axis2=2).copy()
    return MomentStatistics(
        np.zeros(1), np.array([values["count"], 10.0]), np.zeros((2, 2)), second,
        np.repeat([[values["kappa"]], [10.0]], columns, axis=1), np.repeat([[values["nu"]], [10.0]], columns, axis=1),
    )  # fmt: skip


def moment_prior(kind):
    scale = np.eye(2) if kind == "full" else np.ones(2)
    return MixturePrior(np.ones(2), GaussianPrior(np.zeros(2), np.zeros(2), 0.01, 4.0, scale, 0.0))


BROKEN = {
    "kappa": {"kappa": -5.0}, "no kappa": {"kappa": -0.01}, "nu": {"nu": -4.0}, "V": {"V": -5.0}, "no V": {"V": -1.0},
    "large V": {"V": -1e12}, "weight": {"count": -5.0}, "no weight": {"count": -1.0}, "all": {"kappa": -1.0, "count": -3.0},
}  # fmt: skip


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("changed", BROKEN.values(), ids=BROKEN)
def test_a_product_that_is_no_belief_is_replaced(kind, changed):
    model, prior = Mixture(2, Gaussian(2, kind)), moment_prior(kind)
    parts = [moments(kind), moments(kind, kappa=4.0, nu=6.0)]
    totals, repaired = model.repair(prior, moments(kind, **changed), parts)
    assert repaired == (0,)
    assert model.family.find_proper(prior.components, totals).all()
    assert (prior.concentration + totals.count > 0.0).all()
    good = moments(kind)
    for mine, theirs in zip(arrays_of(replace(totals, count=good.count)), arrays_of(good), strict=True):
        if len(mine) > 1:
            np.testing.assert_array_equal(mine[1], theirs[1])
    assert all(np.isfinite(array).all() for array in arrays_of(model.readout("match_moments", prior, totals, 1.0)))


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_a_product_that_is_a_belief_is_left_alone(kind):
    model, prior = Mixture(2, Gaussian(2, kind)), moment_prior(kind)
    totals = moments(kind, kappa=-0.005, nu=-0.5, count=-0.5, V=-0.5)
    same, repaired = model.repair(prior, totals, [moments(kind)])
    assert repaired == ()
    assert same is totals


def weak_branches(kind, seed, n=40, **options):
    """Return branches of a base of very few rows; each learned rows of its own kind."""
    rng = np.random.default_rng(seed)
    sample = rng.normal(size=(40, 2))
    base = mixture("moment-matching", kind, **options).warm_start_from(sample, weight=0.3)
    return [base.branch().partial_fit(3.0 * rng.normal(size=(10, 2)) + 2.0 * rng.normal(size=2)) for _ in range(n)], sample


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_beliefs_that_shrank_still_merge_to_a_belief(kind, seed):
    parts, sample = weak_branches(kind, seed)
    with pytest.warns(UserWarning, match="their mean was taken"):
        merged = hw.merge(parts)
    assert merged.merge_report_.repaired
    assert is_belief(merged)
    assert np.isfinite(merged.score_samples(sample)).all()
    merged.partial_fit(sample)
    assert is_belief(merged)
    tree = quiet_merge([quiet_merge(parts[:13]), quiet_merge(parts[13:])])
    assert is_belief(tree)


def test_a_repair_names_components_of_the_merged_model():
    parts, _ = weak_branches("diag", 4)
    start = parts[0].branch()  # a similar start, in any order
    rng = np.random.default_rng(0)
    large = mixture("moment-matching", "diag", random_state=3).partial_fit(2.0 * rng.normal(size=(900, 2)))
    found = []
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        given = {"weights_init": start.weights_[order], "means_init": start.means_[order]}
        given["precisions_init"] = start.precisions_[order]
        group, _ = weak_branches("diag", 4, **given)
        found.append(quiet_merge([large, *group]))
    assert 0 < len(found[0].merge_report_.repaired) < 3
    for model in found[1:]:
        assert_close(model, found[0], 1e-6)
        assert model.merge_report_.repaired == found[0].merge_report_.repaired


def test_a_repair_that_no_part_can_make_is_a_belief_all_the_same():
    """A part of another lineage may be no belief under the prior of the reference; nor may the mean of such parts."""
    model, prior = Mixture(2, Gaussian(2, "full")), moment_prior("full")
    parts = [moments("full", V=-5.0), moments("full", V=-5.0)]
    totals, repaired = model.repair(prior, parts[0] + parts[1], parts)
    assert repaired == (0,)
    assert model.family.find_proper(prior.components, totals).all()


@pytest.mark.parametrize("seed", [26, 54])
def test_strangers_of_other_scales_merge_to_a_belief(seed):
    """A belief that shrank under a wide prior may be no belief under the narrow prior of the reference."""
    rng = np.random.default_rng(seed)
    thin = 0.01 * rng.normal(size=(300, 2)) + rng.integers(2, size=(300, 1))
    sample, rows = 5.0 * rng.normal(size=(30, 2)), 5.0 * rng.normal(size=(20, 2))
    large = mixture("moment-matching", k=2, warm_up=50).partial_fit(thin)
    small = mixture("moment-matching", k=2, random_state=1).warm_start_from(sample, weight=0.2).partial_fit(rows)
    assert is_belief(large)
    assert is_belief(small)
    merged = quiet_merge([large, small])
    assert is_belief(merged)
    assert np.linalg.eigvalsh(merged.covariances_).min() > 1e-8


# Rows of very different size make matrices that are singular up to rounding


def mixed_sizes(n, rng):
    return (np.where(rng.random((n, 1)) < 0.01, 1e100, 1.0) * rng.normal(size=(n, 4))).clip(-1e100, 1e100)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("seed", [1, 2])
def test_variational_bayes_takes_rows_of_very_different_size(covariance_type, seed):
    X = mixed_sizes(400, np.random.default_rng(seed))
    model = hw.GaussianMixture(2, covariance_type=covariance_type, algorithm="vb", warm_up=60, random_state=0)
    with np.errstate(all="ignore"):
        model.fit(X)
    assert all(np.isfinite(getattr(model, name)).all() for name in model._traits.answers)
    assert np.isfinite(model.lower_bound_)


@pytest.mark.filterwarnings("ignore:.*far from it:UserWarning")
@pytest.mark.parametrize("algorithm", ["soem", "online-em", "quasi-bayes"])
@pytest.mark.parametrize("gating", ["fixed", "input"])
def test_regressions_of_very_different_rows_are_merged(algorithm, gating):
    """Origins differ as much as the rows do, and a change of origin loses digits."""
    options = {"gating": gating, "algorithm": algorithm, "warm_up": 60, "random_state": 0}
    with np.errstate(all="ignore"):
        for seed in (0, 1):
            rng = np.random.default_rng(seed)
            rows = [mixed_sizes(400, rng) for _ in range(2)]
            parts = [hw.RegressionMixture(2, **options).partial_fit(X[:, :-1], X[:, -1]) for X in rows]
            again = model_file.from_bytes(model_file.to_bytes(hw.merge(parts)))
            assert again.n_samples_seen_ == 800
            assert np.isfinite(again.coef_).all() and np.isfinite(again.predict(rows[0][:, :-1])).all()


def test_inverses_of_indefinite_matrices_are_those_of_definite_ones_near_them():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 5, 5))
    sound = root @ np.swapaxes(root, 1, 2)
    assert np.array_equal(inverses(sound), np.linalg.inv(sound))
    assert np.array_equal(log_determinants(sound), np.linalg.slogdet(sound)[1])
    line = 1e50 * rng.normal(size=5)
    matrices = np.concatenate([sound, [np.outer(line, line), -np.eye(5), np.zeros((5, 5))]])
    found = inverses(matrices)
    assert np.array_equal(found[:3], np.linalg.inv(sound))
    assert np.isfinite(found).all() and np.isfinite(log_determinants(matrices)).all()
    assert np.array_equal(inverses(sound[0]), np.linalg.inv(sound[0]))
