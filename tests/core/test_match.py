"""Merging of models of different lineages: components are matched, and the origin of the rows changes nothing."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
from merge_models import (
    ADDING,
    CENTRES,
    DRIFT,
    FITTED,
    KINDS,
    ONLINE,
    assert_close,
    assert_same,
    cases,
    content,
    mixture,
    prior_of,
    rows_of,
    totals_of,
    trained_apart,
)
from naive import gaussian as naive

import headwater as hw
from headwater.core.records import arrays_of
from headwater.families.gaussian import Gaussian

# Different lineages


def by_cluster(model, offset=0.0):
    """Return the component of each cluster."""
    return model.predict(CENTRES + offset)


@pytest.mark.covering("kind", "algorithm")
@cases(ADDING)
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_merged_models_of_far_clusters_know_the_sum_of_their_rows(kind, algorithm, offset):
    models, X, labels = trained_apart(algorithm, kind, offset=offset)
    merged = hw.merge(models)
    assert merged.n_samples_seen_ == len(X)
    assert merged.merge_report_.reference == 0
    assert merged.merge_report_.ambiguous == ()
    order = by_cluster(merged, offset)
    assert sorted(order) == [0, 1, 2]
    prior = merged._state.base.prior.components
    resp = np.eye(3)[labels]
    count, first, second = naive.totals(kind, X - prior.origin, resp)
    wanted = naive.belief(kind, prior, count, first, second)
    found = merged._component_belief()
    np.testing.assert_allclose(merged.weight_concentration_[order], 1.0 + count, rtol=1e-9)
    np.testing.assert_allclose(found.mean_precision[order].reshape(3, -1)[:, 0], wanted.kappa, rtol=1e-9)
    np.testing.assert_allclose(found.means[order] - prior.origin, wanted.means, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found.dof[order].reshape(3, -1)[:, 0], wanted.nu, rtol=1e-7)
    scale = np.broadcast_to(found.scale, (3, 2, 2)) if kind == "tied" else found.scale[order]
    np.testing.assert_allclose(scale, wanted.scale, rtol=1e-6, atol=1e-6 * np.abs(wanted.scale).max())


@cases(("soem", "online-em"))
def test_merged_online_em_of_far_clusters_is_near_the_sum_of_the_rows(kind, algorithm):
    models, X, labels = trained_apart(algorithm, kind)
    merged = hw.merge(models)
    order = by_cluster(merged)
    for cluster, k in enumerate(order):
        np.testing.assert_allclose(merged.means_[k], X[labels == cluster].mean(axis=0), atol=0.2)
    weights = np.mean([model.weights_[by_cluster(model)] for model in models], axis=0)
    np.testing.assert_allclose(merged.weights_[order], weights, atol=0.08)


@cases(FITTED)
def test_fitted_models_merge(kind, algorithm):
    models, X, labels = trained_apart(algorithm, kind, fit=True, offset=1e4)
    merged = hw.merge(models)
    order = by_cluster(merged, 1e4)
    assert merged.n_samples_seen_ == len(X)
    own = [X[labels == cluster] for cluster in range(3)]
    np.testing.assert_allclose(merged.means_[order], [part.mean(axis=0) for part in own], rtol=1e-5)
    np.testing.assert_allclose(merged.weights_[order], np.bincount(labels) / len(X), atol=1e-3)
    scatter = [np.cov(part.T, bias=True) for part in own]
    if kind == "full":
        np.testing.assert_allclose(merged.covariances_[order], scatter, atol=0.1)
    elif kind == "tied":
        pooled = np.einsum("k,kij->ij", np.bincount(labels) / len(X), scatter)
        np.testing.assert_allclose(merged.covariances_, pooled, atol=0.1)
    for name in ("converged_", "n_iter_", "lower_bound_"):
        assert not hasattr(merged, name)


def test_maximum_likelihood_merges_to_maximum_likelihood():
    models, X, labels = trained_apart("em", "full", fit=True)
    merged = hw.merge(models)
    for cluster, k in enumerate(by_cluster(merged)):
        own = X[labels == cluster]
        np.testing.assert_allclose(merged.weights_[k], len(own) / len(X), rtol=1e-9)
        np.testing.assert_allclose(merged.means_[k], own.mean(axis=0), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(merged.covariances_[k], np.cov(own.T, bias=True) + 1e-6 * np.eye(2), rtol=1e-6)


@pytest.mark.parametrize("algorithm", ["online-vb", "moment-matching", "em"])
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_origins_thousands_apart_are_brought_together(algorithm, kind):
    far = np.array([[0.0, 0.0], [1e4, 0.0], [0.0, -2e4]])
    models, parts = [], []
    for seed, share in enumerate([(0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)]):
        X, own = rows_of(seed, 900 - 100 * seed, share, far)
        model = mixture(algorithm, kind, random_state=seed)
        models.append(model.fit(X) if algorithm == "em" else model.partial_fit(X))
        parts.append((X, own))
    origins = [model._state.base.prior.components.origin for model in models]
    assert np.abs(origins[0] - origins[1]).max() > 3000.0
    merged = hw.merge(models)
    X, own = (np.concatenate(part) for part in zip(*parts, strict=True))
    for cluster, k in enumerate(merged.predict(far)):
        rows = X[own == cluster]
        np.testing.assert_allclose(merged.means_[k], rows.mean(axis=0), rtol=1e-4, atol=0.5)
        variances = np.diag(merged.covariances_[k]) if kind == "full" else merged.covariances_[k]
        wanted = rows.var(axis=0) if kind != "spherical" else rows.var(axis=0).mean()
        # The mean precision of 0.01 pulls by 0.01 * distance^2 / n, no more than a product of all rows would be pulled.
        prior = merged._state.base.prior.components
        pull = prior.mean_precision * (merged.means_[k] - prior.origin) ** 2
        np.testing.assert_allclose(variances, wanted, atol=0.1 * np.max(wanted) + 1.2 * pull.max() / len(rows))


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("warm_ups", [(300, 300), (300, 450)], ids=["alike", "different warm-ups"])
def test_the_order_of_the_list_does_not_change_a_bit(algorithm, warm_ups):
    rows, _ = rows_of(0, 4000)
    base = mixture(algorithm).partial_fit(rows[:500])
    models = [
        base.branch().partial_fit(rows[500:800]),
        base.branch().partial_fit(rows[800:1100]),
        mixture(algorithm, random_state=1, warm_up=warm_ups[1]).partial_fit(rows[1100:1900]),  # as many rows as a branch
        mixture(algorithm, random_state=2).partial_fit(rows[1900:2500]),
        mixture(algorithm, random_state=3, warm_up=warm_ups[0]).partial_fit(rows[2500:2620]),
        mixture(algorithm, random_state=4, warm_up=warm_ups[1]).partial_fit(rows[2620:2740]),
    ]
    wanted = hw.merge(models)
    assert wanted.n_samples_seen_ == 500 + 300 + 300 + 800 + 600 + 240
    rng = np.random.default_rng(0)
    orders = [np.arange(6)[::-1], *(rng.permutation(6) for _ in range(4))]
    for order in orders:
        again = hw.merge([models[i] for i in order])
        assert_same(again, wanted)
        assert order[again.merge_report_.reference] == wanted.merge_report_.reference
        assert again.get_params() == wanted.get_params()
        further = copy.deepcopy(again).partial_fit(rows[3000:])
        assert_same(further, copy.deepcopy(wanted).partial_fit(rows[3000:]))


def test_the_order_does_not_matter_while_all_wait():
    rows, _ = rows_of(0, 900)
    one, two = mixture(warm_up=700).partial_fit(rows[:400]), mixture(warm_up=5000, random_state=1).partial_fit(rows[400:])
    assert_same(hw.merge([one, two]), hw.merge([two, one]))
    assert hw.merge([one, two]).get_params() == hw.merge([two, one]).get_params()


def test_parts_of_one_model_do_not_make_the_order_matter():
    rows, _ = rows_of(0, 3000)
    one = mixture().partial_fit(rows[:2000])
    two = mixture(parts=3, random_state=1).partial_fit(rows[2000:2200])
    assert_same(hw.merge([one, two]), hw.merge([two, one]))


@pytest.mark.covering("algorithm")
@cases(("online-vb", "boem", "online-em", "moment-matching"))
def test_the_order_of_components_does_not_matter(kind, algorithm):
    rows, _ = rows_of(3, 3000)
    large = mixture(algorithm, kind, random_state=1).partial_fit(rows[:1600])
    small = mixture(algorithm, kind).partial_fit(rows[1600:2600])
    weights, means, precisions = small.weights_, small.means_, small.precisions_
    others = []
    for order in ([0, 1, 2], [2, 0, 1], [1, 0, 2]):
        given = {
            "weights_init": weights[order] / weights.sum(),
            "means_init": means[order],
            "precisions_init": precisions if kind == "tied" else precisions[order],
        }
        others.append(mixture(algorithm, kind, **given).partial_fit(rows[1600:2600]))
    merged = [hw.merge([large, other]) for other in others]
    for model, other, order in zip(merged, others, ([0, 1, 2], [2, 0, 1], [1, 0, 2]), strict=True):
        assert_close(model, merged[0])
        (match,) = model.merge_report_.matches
        np.testing.assert_array_equal(np.array(order)[match.components], merged[0].merge_report_.matches[0].components)
        np.testing.assert_allclose(other.means_[match.components], large.means_, atol=1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k", "width"), [(1, 3), (2, 1), (6, 5)])
def test_many_and_few_components_and_columns(kind, k, width):
    rng = np.random.default_rng(k)
    centres = 30.0 * rng.normal(size=(k, width)) + np.arange(k)[:, None] * 40.0
    models, rows, labels = [], [], []
    for seed in range(3):
        own = rng.integers(k, size=1000 - 100 * seed)
        rows.append(rng.normal(size=(len(own), width)) + centres[own] + 1e6)
        labels.append(own)
        models.append(mixture("online-vb", kind, k=k, random_state=seed, warm_up=500).partial_fit(rows[-1]))
    merged, X, own = hw.merge(models), np.concatenate(rows), np.concatenate(labels)
    order = merged.predict(centres + 1e6)
    assert sorted(order) == list(range(k))
    np.testing.assert_allclose(merged.means_[order] - 1e6, [X[own == c].mean(axis=0) - 1e6 for c in range(k)], atol=0.02)
    np.testing.assert_allclose(merged.weight_concentration_[order], 1.0 + np.bincount(own), rtol=1e-9)


FAR = {
    "1e20 apart": lambda rng: (rng.normal(size=(400, 2)), rng.normal(size=(300, 2)) + 1e20),
    "one constant": lambda rng: (rng.normal(size=(400, 2)), np.full((300, 2), 1e8)),
    "both constant": lambda rng: (np.full((400, 2), 3.0), np.full((300, 2), -1e50)),
    "other units": lambda rng: (1e40 * rng.normal(size=(400, 2)), 1e-40 * rng.normal(size=(300, 2))),
    "one column constant": lambda rng: tuple(np.c_[rng.normal(size=n), np.full(n, float(n))] for n in (400, 300)),
}


@pytest.mark.covering("kind", "algorithm")
@cases(("online-vb", "moment-matching", "em"))
@pytest.mark.parametrize("rows", FAR.values(), ids=FAR)
def test_any_finite_models_merge_to_a_finite_one(kind, algorithm, rows):
    models = []
    parts = rows(np.random.default_rng(0))
    for seed, part in enumerate(parts):
        model = mixture(algorithm, kind, k=2, random_state=seed)
        models.append(model.fit(part) if algorithm == "em" else model.partial_fit(part))
    before = [content(model) for model in models]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "2 models merged", UserWarning)
        merged = hw.merge(models)
        assert_same(hw.merge(models[::-1]), merged)
    assert [content(model) for model in models] == before
    assert merged.n_samples_seen_ == 700
    assert all(np.isfinite(array).all() for array in arrays_of(merged._state))
    assert np.isfinite(merged.score_samples(parts[0])).all()


def test_a_lineage_among_strangers_counts_its_base_once():
    rows, _ = rows_of(4, 3000)
    base = mixture("online-vb").partial_fit(rows[:400])
    family = [base.branch().partial_fit(rows[400 + part : 1000 : 2]) for part in range(2)]
    strangers = [mixture("online-vb", random_state=5 + part).partial_fit(rows[1000 + part :: 4]) for part in range(4)]
    merged = hw.merge([strangers[0], family[1], *strangers[1:], family[0]])
    assert merged.n_samples_seen_ == len(rows)
    assert merged.weight_concentration_.sum() == pytest.approx(3.0 + len(rows))
    assert sorted(match.models for match in merged.merge_report_.matches) == [(0,), (2,), (3,), (4,)]
    alone = mixture("online-vb").partial_fit(rows)
    one, two = merged.predict(CENTRES), alone.predict(CENTRES)
    np.testing.assert_allclose(merged.means_[one], alone.means_[two], atol=1e-3)
    np.testing.assert_allclose(merged.covariances_[one], alone.covariances_[two], rtol=0.02, atol=0.05)


def test_a_merged_model_is_a_base_of_its_own():
    models, X, _ = trained_apart("online-vb", "full")
    merged = hw.merge(models)
    branches = [merged.branch().partial_fit(X[part::2]) for part in range(2)]
    again = hw.merge(branches)
    assert again.merge_report_.matches == ()
    assert again.n_samples_seen_ == 2 * len(X)
    assert again.weight_concentration_.sum() == pytest.approx(3.0 + 2 * len(X))


def test_merging_leaves_the_models_alone():
    models, _, _ = trained_apart("auto", "full")
    before = [content(model) for model in models]
    merged = hw.merge(iter(models))
    merged.partial_fit(rows_of(9, 1500)[0])
    assert [content(model) for model in models] == before
    assert not any(hasattr(model, "merge_report_") for model in models)


def test_what_would_count_rows_twice_is_refused():
    rows, _ = rows_of(0, 900)
    model = mixture("quasi-bayes").partial_fit(rows[:600])
    branch = model.branch().partial_fit(rows[600:])
    child = branch.branch().partial_fit(rows[:50])
    other = mixture("quasi-bayes", random_state=1).partial_fit(rows[::-1])
    third = mixture("quasi-bayes", random_state=2).partial_fit(rows[::2])
    waiting = mixture("quasi-bayes", random_state=2).partial_fit(rows[:50])
    both = hw.merge([model, other])
    for models, words in (
        ([model, branch], "count twice"),
        ([child, model], "count twice"),
        ([both, other], "count twice"),
        ([both, model], "count twice"),
        ([both, hw.merge([other, third])], "count twice"),
        ([child, model.branch().partial_fit(rows[:20]).branch().partial_fit(rows[:9])], "count twice"),
        ([branch, copy.deepcopy(branch)], "count twice"),
        ([hw.merge([branch, model.branch().partial_fit(rows[:70])]), branch], "count twice"),
        ([hw.merge([model, waiting]), waiting], "count twice"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            hw.merge(models)
        assert "\n" not in str(caught.value)
    assert hw.merge([branch, model.branch(), model.branch()]).n_samples_seen_ == 900  # idle branches add nothing


# Origins


@pytest.mark.parametrize("kind", KINDS)
def test_rebased_statistics_are_those_about_the_other_origin(kind):
    rng = np.random.default_rng(9)
    family = Gaussian(3, kind)
    X, resp = rng.normal(size=(50, 2)) + 3.0, rng.dirichlet(np.ones(3), 50)
    here, there = rng.normal(size=2), rng.normal(size=2) * 10.0
    one, other = (
        replace(family.zeros(2), count=count, first=first, second=np.tril(second) if kind in ("full", "tied") else second)
        for count, first, second in (naive.totals(kind, X - origin, resp) for origin in (here, there))
    )
    found = family.shift_origin(one, here - there)
    for mine, theirs in zip(arrays_of(found), arrays_of(other), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-9)
    for mine, theirs in zip(arrays_of(family.shift_origin(found, there - here)), arrays_of(one), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize(("kind", "drifted"), DRIFT)
def test_a_belief_is_the_same_about_any_origin(kind, drifted):
    rng = np.random.default_rng(10)
    family, prior = prior_of(kind, rng)
    totals, shift = totals_of(kind, family, rng, drifted=drifted), np.array([7.0, -30.0])
    moved = replace(prior, origin=prior.origin - shift, mean=prior.mean + shift)
    one, other = family.belief(prior, totals), family.belief(moved, family.shift_origin(totals, shift))
    for mine, theirs in zip(arrays_of(other), arrays_of(one), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)
