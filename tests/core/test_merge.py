"""Models that learned apart: merging, starts that are shared, and streams that are learned in parts."""

import copy
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from naive import gaussian as naive
from naive import merging as twin
from scipy import special
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import headwater as hw
from headwater.checks import applicable_laws
from headwater.core import loop
from headwater.core.match import Match, MergeReport, _assigned
from headwater.core.state import arrays_of
from headwater.estimators import model_file
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_belief import inverses, log_determinants
from headwater.families.gaussian_records import GaussianPrior, MomentStatistics
from headwater.models.mixture import Mixture, MixturePrior

KINDS = naive.KINDS
ADDING = ("boem", "online-vb", "quasi-bayes", "moment-matching", "auto")  # whose natural parameters add
ONLINE = ("soem", "online-em", *ADDING)
FITTED = ("em", "vb", "auto")
CENTRES = np.array([[0.0, 0.0], [40.0, 10.0], [-10.0, 50.0]])


def cases(algorithms):
    pairs = [(kind, word) for kind in KINDS for word in algorithms if (kind, word) != ("tied", "moment-matching")]
    return pytest.mark.parametrize(("kind", "algorithm"), pairs)


def rows_of(seed, n, weights=(0.5, 0.3, 0.2), centres=CENTRES):
    """Rows of far clusters, and the clusters they came from."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(centres), size=n, p=weights)
    return rng.normal(size=(n, 2)) * [1.0, 2.0] + centres[labels], labels


def blurred(seed, n):
    """Rows of clusters that overlap, so that what was learned when matters."""
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
    same = content(one) == content(other)  # the bytes themselves are no help
    assert same


def quiet_merge(models):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return hw.merge(models)


def random_tree(parts, rng):
    """Merge two random ones until one is left."""
    parts = list(parts)
    while len(parts) > 1:
        one, two = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(hw.merge([one, two]))
    return parts[0]


# One lineage


BIG_TREES = [("full", "moment-matching"), ("full", "online-vb"), ("diag", "moment-matching")]


@pytest.mark.parametrize(("kind", "algorithm"), BIG_TREES)
def test_any_tree_of_64_branches_gives_one_model(kind, algorithm):
    rows, _ = rows_of(0, 500 + 64 * 40)
    base = mixture(algorithm, kind).partial_fit(rows[:500])
    parts = [base.branch().partial_fit(rows[500 + part :: 64]) for part in range(64)]
    whole = hw.merge(parts)
    assert whole.n_samples_seen_ == len(rows)
    own, each = twin.natural(base), [twin.natural(part) for part in parts]
    for index, found in enumerate(twin.natural(whole)):
        wanted = own[index] + sum(part[index] - own[index] for part in each)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    rng = np.random.default_rng(1)
    for _ in range(2):
        assert_close(random_tree(parts, rng), whole, 1e-9)
        assert_close(hw.merge([parts[i] for i in rng.permutation(64)]), whole, 1e-9)


@cases(ONLINE)
@pytest.mark.parametrize("half_life", [None, pytest.param(400.0, marks=pytest.mark.slow)])
def test_any_tree_of_eight_branches_gives_one_model(kind, algorithm, half_life):
    rows = blurred(0, 1300)
    base = mixture(algorithm, kind, half_life=half_life).partial_fit(rows[:500])
    parts = [base.branch().partial_fit(rows[500 + 100 * part : 600 + 100 * part]) for part in range(8)]
    whole = hw.merge(parts)
    assert whole.n_samples_seen_ == len(rows)
    assert whole.merge_report_.matches == ()
    rng = np.random.default_rng(1)
    for _ in range(2):
        assert_close(random_tree(parts, rng), whole)


@cases(ADDING)
def test_a_merge_is_the_product_of_the_posteriors_over_what_they_share(kind, algorithm):
    rows = blurred(1, 1100)
    base = mixture(algorithm, kind, reservoir=0).warm_start_from(rows[:400])
    parts = [copy.deepcopy(base).partial_fit(rows[400 + part :: 3]) for part in range(3)]
    shared = twin.natural(base)
    for own, found, *each in zip(shared, twin.natural(hw.merge(parts)), *map(twin.natural, parts), strict=True):
        np.testing.assert_allclose(found, own + sum(part - own for part in each), rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("algorithm", FITTED)
def test_branches_of_a_fitted_model_merge_without_matching(algorithm):
    rows, _ = rows_of(0, 900)
    model = mixture(algorithm).fit(rows)
    merged = hw.merge([model.branch(), model.branch(), model.branch()])
    assert merged.merge_report_.matches == ()
    assert_close(merged, hw.merge([model]))
    np.testing.assert_allclose(merged.means_, model.means_, atol=1e-2)
    assert merged.n_samples_seen_ == 900


def test_bases_that_count_differently_are_different_bases():
    rows, _ = rows_of(0, 900)
    full = mixture().warm_start_from(rows[:500]).partial_fit(rows[500:700])
    half = mixture().warm_start_from(rows[:500], weight=0.5).partial_fit(rows[700:])
    merged = hw.merge([full, half])
    assert merged.n_samples_seen_ == 500 + 200 + 200
    assert merged.weight_concentration_.sum() == pytest.approx(3.0 + 500 + 200 + 250 + 200)


def test_a_base_of_doubled_weights_is_another_base():
    rows, _ = rows_of(0, 500)
    once, twice = mixture("em").fit(rows), mixture("em").fit(rows, sample_weight=np.full(500, 2.0))
    merged = hw.merge([once, twice])
    assert merged.n_samples_seen_ == 1000
    assert merged._state.progress.weight_seen == pytest.approx(1500.0)


# Different lineages


def trained_apart(algorithm, kind, sizes=(1400, 1100, 1000), offset=0.0, fit=False, **options):
    """Models that share nothing, whose warm-ups had the clusters in different shares, and all of their rows."""
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


def by_cluster(model, offset=0.0):
    """The component of each cluster."""
    return model.predict(CENTRES + offset)


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


# The report


@pytest.mark.parametrize("algorithm", ["online-vb", "moment-matching"])
def test_components_without_a_counterpart_are_reported(algorithm):
    rng = np.random.default_rng(0)
    one, two = (
        mixture(algorithm, k=2, random_state=0).partial_fit(rng.normal(size=(rows, 2)) + far * rng.integers(2, size=(rows, 1)))
        for rows, far in ((1500, 10.0), (1200, 30.0))
    )
    with pytest.warns(UserWarning, match="has no counterpart in model 1"):
        merged = hw.merge([one, two])
    (match,) = merged.merge_report_.matches
    near = int(np.argmin(np.abs(merged.means_).sum(axis=1)))
    assert match.contrast[near] < 0.1
    assert merged.merge_report_.distant == (1 - near,)


def test_what_is_ambiguous_is_reported():
    rng = np.random.default_rng(0)
    one, two = (mixture("online-vb", k=2, random_state=seed).partial_fit(rng.normal(size=(700, 2))) for seed in (0, 1))
    with pytest.warns(UserWarning, match="matched in doubt"):
        merged = hw.merge([one, two])
    report = merged.merge_report_
    assert report.ambiguous
    assert all(k in (0, 1) for k in report.ambiguous)
    assert "in doubt" in str(report)
    assert np.isfinite(merged.score_samples(rng.normal(size=(5, 2)))).all()


def test_a_clear_match_has_a_margin():
    models, _, _ = trained_apart("online-vb", "full")
    report = hw.merge(models).merge_report_
    assert [match.models for match in report.matches] == [(1,), (2,)]
    for match in report.matches:
        assert (match.margin > 100.0 * match.divergence).all()
        assert match.ambiguous == ()
    assert "3 groups" in str(report)
    assert f"{report.rows:,}" in str(report)


def test_the_assignment_is_the_cheapest_and_its_margins_are_right():
    rng = np.random.default_rng(0)
    for _ in range(20):
        cost = rng.exponential(size=(4, 4))
        components, paid, margin = _assigned(cost)
        best, wanted = twin.assignment(cost)
        np.testing.assert_array_equal(components, best)
        np.testing.assert_allclose(paid, cost[np.arange(4), best])
        np.testing.assert_allclose(margin, wanted, atol=1e-12)


def test_one_component_is_never_ambiguous():
    components, paid, margin = _assigned(np.array([[3.0]]))
    assert components.tolist() == [0]
    assert paid.tolist() == [3.0]
    assert margin.tolist() == [np.inf]
    match = Match((1,), components, paid, margin, np.array([100.0]))
    assert match.ambiguous == match.distant == ()


def test_a_report_of_one_model_says_so_in_few_words():
    model = mixture().partial_fit(rows_of(0, 500)[0])
    report = hw.merge([model]).merge_report_
    assert isinstance(report, MergeReport)
    assert (report.models, report.rows, report.reference, report.matches, report.repaired) == (1, 500, 0, (), ())


def test_the_report_goes_with_the_merge_it_tells_of():
    models, X, _ = trained_apart("auto", "full")
    merged = hw.merge(models)
    assert not hasattr(clone(merged), "merge_report_")
    assert hasattr(pickle.loads(pickle.dumps(merged)), "merge_report_")
    assert not hasattr(merged.fit(X), "merge_report_")


# Divergences


def prior_of(kind, rng, flat=False):
    family = Gaussian(3, kind)
    if flat:
        return family, family.flat_prior(rng.normal(size=2))
    scale = {"full": np.array([[3.0, 1.0], [1.0, 2.0]]), "tied": np.array([[3.0, 1.0], [1.0, 2.0]])}
    scale = scale.get(kind, np.array([2.0, 2.0]) if kind == "spherical" else np.array([3.0, 1.0]))
    return family, GaussianPrior(rng.normal(size=2), rng.normal(size=2), 0.5, 5.0, scale, 0.0)


def totals_of(kind, family, rng, n=60, drifted=False, origin=0.0):
    """Statistics of random rows about an origin; `drifted` ones have masses of their own, as moment matching makes them."""
    X, resp = rng.normal(size=(n, 2)) * 2.0 + [1.0, -1.0], rng.dirichlet(np.ones(3), n)
    count, first, second = naive.totals(kind, X - origin, resp)
    second = np.tril(second) if kind in ("full", "tied") else second
    totals = replace(family.zeros(2), count=count, first=first, second=second)
    if drifted:
        totals = Mixture(3, family).kept("match_moments", totals)
        shape = totals.dof_count.shape
        mean_count = totals.mean_count * rng.uniform(1.0, 1.2, shape)
        totals = replace(totals, mean_count=mean_count, dof_count=totals.dof_count * rng.uniform(0.5, 1.5, shape))
    return totals


DRIFT = [(kind, drifted) for kind in KINDS for drifted in (False, True) if not (kind == "tied" and drifted)]


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
    """Of a flat prior there is no divergence, but a component is nearest to itself all the same."""
    rng = np.random.default_rng(7)
    family, prior = prior_of(kind, rng, flat=True)
    X, labels = rows_of(0, 600)
    count, first, second = naive.totals(kind, X - prior.origin, np.eye(3)[labels])
    second = np.tril(second) if kind in ("full", "tied") else second
    totals = replace(family.zeros(2), count=count, first=first, second=second)
    found = family.separation(prior, totals, family.permuted(totals, np.array([2, 0, 1])))
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found.argmin(axis=1), [1, 2, 0])
    np.testing.assert_allclose(found.min(axis=1), 0.0, atol=1e-6)


def test_the_weights_count_in_the_divergence():
    """Of an assignment as a whole it is Jeffreys' divergence of the Dirichlets, up to a constant."""
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
    found = family.rebased(one, here - there)
    for mine, theirs in zip(arrays_of(found), arrays_of(other), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-9)
    for mine, theirs in zip(arrays_of(family.rebased(found, there - here)), arrays_of(one), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize(("kind", "drifted"), DRIFT)
def test_a_belief_is_the_same_about_any_origin(kind, drifted):
    rng = np.random.default_rng(10)
    family, prior = prior_of(kind, rng)
    totals, shift = totals_of(kind, family, rng, drifted=drifted), np.array([7.0, -30.0])
    moved = replace(prior, origin=prior.origin - shift, mean=prior.mean + shift)
    one, other = family.belief(prior, totals), family.belief(moved, family.rebased(totals, shift))
    for mine, theirs in zip(arrays_of(other), arrays_of(one), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)


# Refused


def finished(seed=1, n=500, columns=2, names=None, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)) + 6.0 * rng.integers(2, size=(n, 1))
    if names is not None:
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(X, columns=names)
    return mixture(options.pop("algorithm", "online-vb"), k=options.pop("n_components", 2), **options).partial_fit(X)


class Other(hw.GaussianMixture):
    """Another class."""


REFUSED = {
    "width": lambda: [finished(), finished(columns=3)],
    "algorithm": lambda: [finished(), finished(algorithm="boem")],
    "algorithm object": lambda: [finished(algorithm=hw.OnlineVB()), finished(algorithm=hw.OnlineVB(batch_size=10))],
    "n_components": lambda: [finished(), finished(n_components=3)],
    "covariance_type": lambda: [finished(), finished(kind="diag")],
    "half_life": lambda: [finished(half_life=100.0), finished(half_life=200.0)],
    "half_life or none": lambda: [finished(half_life=100.0), finished()],
    "reg_covar": lambda: [finished(), finished(reg_covar=1e-3)],
    "weight_concentration_prior": lambda: [finished(), finished(weight_concentration_prior=2.0)],
    "mean_prior": lambda: [finished(mean_prior=[0.0, 0.0]), finished(mean_prior=[0.0, 1.0])],
    "mean_precision_prior": lambda: [finished(), finished(mean_precision_prior=0.5)],
    "degrees_of_freedom_prior": lambda: [finished(), finished(degrees_of_freedom_prior=9.0)],
    "covariance_prior": lambda: [finished(covariance_prior=np.eye(2)), finished(covariance_prior=2.0 * np.eye(2))],
    "names": lambda: [finished(names=["a", "b"]), finished(names=["b", "a"])],
    "names behind one without": lambda: [finished(), finished(2, names=["a", "b"]), finished(3, names=["b", "a"])],
    "class": lambda: [finished(), Other(2, algorithm="online-vb", warm_up=300, random_state=0).partial_fit(blurred(0, 400))],
    "waiting of another width": lambda: [finished(), finished(n=100, columns=3)],
}


@pytest.mark.parametrize("models", REFUSED.values(), ids=REFUSED)
def test_models_that_do_not_go_together_are_refused(models):
    models = models()
    before = [content(model) for model in models]
    for given in (models, models[::-1]):
        with pytest.raises(ValueError, match=r"^models must ") as caught:
            hw.merge(given)
        assert "\n" not in str(caught.value)
    assert [content(model) for model in models] == before


def test_what_is_no_model_or_not_fitted_is_refused():
    model = finished()
    before = content(model)
    with pytest.raises(ValueError, match="at least one"):
        hw.merge([])
    with pytest.raises(ValueError, match="twice"):
        hw.merge([model, finished(2), model])
    with pytest.raises(TypeError, match="headwater models"):
        hw.merge([model, "model"])
    with pytest.raises(TypeError, match="headwater models"):
        hw.merge(["model"])
    for models in ([model, clone(model)], [clone(model), model]):
        with pytest.raises(NotFittedError):
            hw.merge(models)
    assert content(model) == before


def test_equal_priors_in_other_clothes_go_together():
    one, two = finished(mean_prior=[0.0, 1.0]), finished(2, mean_prior=np.array([0, 1]))
    assert hw.merge([one, two]).n_samples_seen_ == 1000


# Models in their warm-up


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("rows", [(100, 80), (200, 150)], ids=["not over", "over together"])
def test_models_in_warm_up_pool_their_rows(algorithm, rows):
    X, labels = rows_of(0, sum(rows))
    given, weights = np.where(np.arange(len(X)) % 7 == 0, labels, -1), 0.5 + np.arange(len(X)) % 3
    cut = rows[0]
    one = mixture(algorithm).partial_fit(X[:cut], sample_weight=weights[:cut], labels=given[:cut])
    two = mixture(algorithm, random_state=1).partial_fit(X[cut:], sample_weight=weights[cut:], labels=given[cut:])
    together = mixture(algorithm).partial_fit(X, sample_weight=weights, labels=given)
    merged = hw.merge([two, one])
    assert_same(merged, together)
    assert_same(hw.merge([one, two]), together)
    assert set(merged.merge_report_.replayed) == {0, 1}
    assert merged.n_samples_seen_ == len(X)
    assert (one.n_samples_seen_, two.n_samples_seen_) == rows


def test_a_model_in_warm_up_merged_alone_is_itself():
    model = mixture().partial_fit(rows_of(0, 100)[0])
    assert_same(hw.merge([model]), model)


@pytest.mark.parametrize("algorithm", ONLINE)
def test_a_finished_model_learns_the_rows_of_one_that_waits(algorithm):
    X = blurred(2, 2000)
    model = mixture(algorithm).partial_fit(X[:1850])
    waiting = mixture(algorithm, random_state=1).partial_fit(X[1850:])
    wanted = copy.deepcopy(model).partial_fit(X[1850:])
    merged = hw.merge([waiting, model])
    assert merged.merge_report_.replayed == (0,)
    assert merged.merge_report_.reference == 1
    assert_close(merged, wanted, 1e-8)


def test_a_large_model_that_waits_does_not_lead():
    X, _ = rows_of(0, 1500)
    waiting = mixture(warm_up=1200).partial_fit(X[:1000])
    model = mixture(warm_up=1200, random_state=1).warm_start_from(X[1000:1200])
    merged = hw.merge([waiting, model])
    assert merged.merge_report_.reference == 1
    assert merged.n_samples_seen_ == 1200


# Products that are no belief


def moments(kind, **changed):
    """Statistics of moment matching for two components of two columns, the first of which has been changed."""
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
    totals, repaired = model.repaired(prior, moments(kind, **changed), parts)
    assert repaired == (0,)
    assert model.family.valid(prior.components, totals).all()
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
    same, repaired = model.repaired(prior, totals, [moments(kind)])
    assert repaired == ()
    assert same is totals


def is_belief(model):
    belief = model._component_belief()
    scale = np.linalg.eigvalsh(belief.scale) if model.covariance_type == "full" else belief.scale
    least = 1.0 if model.covariance_type == "full" else 0.0
    enough = (belief.mean_precision > 0.0).all() and (belief.dof > least).all()
    return bool(enough and (scale > 0.0).all() and (model.weight_concentration_ > 0.0).all())


def weak_branches(kind, seed, n=40, **options):
    """Branches of a base that knows next to nothing, each of which learned rows of its own kind."""
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
    start = parts[0].branch()  # a start like theirs, to give in any order
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
    """Of another lineage, a part may be no belief with the prior of the reference, nor the mean of such parts."""
    model, prior = Mixture(2, Gaussian(2, "full")), moment_prior("full")
    parts = [moments("full", V=-5.0), moments("full", V=-5.0)]
    totals, repaired = model.repaired(prior, parts[0] + parts[1], parts)
    assert repaired == (0,)
    assert model.family.valid(prior.components, totals).all()


@pytest.mark.parametrize("seed", [26, 54])
def test_strangers_of_other_scales_merge_to_a_belief(seed):
    """A belief that shrank in a wide prior may be none in the thin prior of the reference."""
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


# A start that is shared


@cases(ONLINE)
def test_copies_of_a_start_merge_without_matching(kind, algorithm):
    rows, _ = rows_of(0, 1300)
    start = mixture(algorithm, kind).warm_start_from(rows[:400])
    copies = [copy.deepcopy(start), pickle.loads(pickle.dumps(start)), start.branch(), start]
    for part, model in enumerate(copies):
        model.partial_fit(rows[400 + part :: 4])
    merged = hw.merge(copies)
    assert merged.merge_report_.matches == ()
    assert merged.n_samples_seen_ == len(rows)


def test_the_same_start_elsewhere_is_the_same_base():
    rows, _ = rows_of(0, 1300)
    workers = [mixture().warm_start_from(rows[:400]).partial_fit(rows[400 + part :: 2]) for part in range(2)]
    merged = hw.merge(workers)
    assert merged.merge_report_.matches == ()
    assert merged.n_samples_seen_ == len(rows)


@pytest.mark.parametrize("rows", [3, 20, 250, 400])
@pytest.mark.parametrize("algorithm", ["auto", "moment-matching", "online-em"])
def test_a_start_ends_the_warm_up_whatever_its_size(algorithm, rows):
    X, _ = rows_of(0, 1000)
    start = mixture(algorithm).warm_start_from(X[:rows])
    assert start._state.base is not None
    assert start.n_samples_seen_ == rows
    assert start.weight_concentration_.sum() == pytest.approx(3.0 + rows)
    assert start.partial_fit(X[rows:]).n_samples_seen_ == len(X)
    assert np.isfinite(start.score_samples(X)).all()


def test_a_start_on_the_rows_of_a_warm_up_is_that_warm_up():
    X, labels = rows_of(0, 300)
    weights, given = 0.5 + np.arange(300) % 3, np.where(np.arange(300) % 5 == 0, labels, -1)
    options = {"sample_weight": weights, "labels": given}
    assert_same(mixture().warm_start_from(X, **options), mixture().partial_fit(X, **options))


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("weight", [0.5, 0.01])
def test_a_start_whose_rows_come_again_is_not_counted(algorithm, weight):
    X, _ = rows_of(0, 1500)
    start = mixture(algorithm).warm_start_from(X[:400], weight=weight)
    assert start.n_samples_seen_ == 0
    assert start.weight_concentration_.sum() == pytest.approx(3.0 + 400 * weight)
    parts = [start.branch().partial_fit(X[part::3]) for part in range(3)]
    merged = hw.merge(parts)
    assert merged.n_samples_seen_ == len(X)
    if algorithm in ADDING:
        assert merged.weight_concentration_.sum() == pytest.approx(3.0 + 400 * weight + len(X))
    order = merged.predict(CENTRES)
    np.testing.assert_allclose(merged.means_[order], CENTRES, atol=0.5)


def test_a_start_forgets_what_was_learned():
    X, _ = rows_of(0, 1000)
    fresh = mixture().warm_start_from(X[:300])
    used = mixture().fit(X[300:]).warm_start_from(X[:300])
    assert_same(used, fresh)
    assert not hasattr(used, "converged_")
    wide = mixture(k=2).partial_fit(np.random.default_rng(0).normal(size=(400, 5))).warm_start_from(X[:300])
    assert wide.n_features_in_ == 2
    assert_same(mixture().partial_fit(X[300:400]).warm_start_from(X[:300]), fresh)


def nan_rows():
    rows = rows_of(0, 50)[0]
    rows[3, 1] = np.nan
    return rows


GOOD = rows_of(0, 50)[0]
BAD_STARTS = {
    "zero": (GOOD, {"weight": 0.0}), "negative": (GOOD, {"weight": -1.0}), "above one": (GOOD, {"weight": 1.5}),
    "nan weight": (GOOD, {"weight": np.nan}), "text": (GOOD, {"weight": "half"}), "none": (GOOD, {"weight": None}),
    "an array": (GOOD, {"weight": np.ones(50)}), "too few rows": (GOOD[:2], {}), "nan": (nan_rows(), {}),
    "too few that count": (GOOD, {"sample_weight": np.r_[np.ones(2), np.zeros(48)]}), "no rows": (GOOD[:0], {}),
    "weights of another length": (GOOD, {"sample_weight": np.ones(49)}), "labels": (GOOD, {"labels": np.full(50, 3)}),
}  # fmt: skip


@pytest.mark.parametrize(("X", "options"), BAD_STARTS.values(), ids=BAD_STARTS)
def test_bad_starts_are_refused(X, options):
    model = mixture().fit(rows_of(1, 500)[0])
    before, known = content(model), dict(model.__dict__)
    with pytest.raises(ValueError) as caught:
        model.warm_start_from(X, **options)
    assert "\n" not in str(caught.value)
    assert content(model) == before
    assert model.__dict__ == known
    new = mixture()
    with pytest.raises(ValueError):
        new.warm_start_from(X, **options)
    assert set(new.__dict__) == set(mixture().__dict__)


@pytest.mark.parametrize("algorithm", ["em", "vb"])
def test_batch_algorithms_have_no_stream_to_start(algorithm):
    model = mixture(algorithm)
    with pytest.raises(ValueError, match="needs all rows at once"):
        model.warm_start_from(rows_of(0, 100)[0])
    assert set(model.__dict__) == set(mixture(algorithm).__dict__)


# Parts


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(loop, "PART_ROWS", 16)


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_parts_are_branches_that_got_the_rows_in_turn(algorithm, kind, small_blocks):
    X = blurred(0, 1130)
    weights, labels = 0.5 + np.arange(len(X)) % 3, np.where(np.arange(len(X)) % 9 == 0, 1, -1)
    model = mixture(algorithm, kind, parts=5, reservoir=0).partial_fit(X, sample_weight=weights, labels=labels)
    base = mixture(algorithm, kind, reservoir=0).partial_fit(X[:300], sample_weight=weights[:300], labels=labels[:300])
    by_hand = twin.dealt(base, X[300:], 5, 16, weights[300:], labels[300:])
    merged = quiet_merge(by_hand)
    assert_close(model, merged, 1e-9)
    assert model.n_samples_seen_ == len(X)
    np.testing.assert_allclose(model.score_samples(X), merged.score_samples(X), rtol=1e-8)


@pytest.mark.parametrize("algorithm", ["auto", "online-vb"])
def test_blocks_have_16_rows(algorithm):
    X = blurred(0, 300 + 2 * 3 * 16 + 10)
    model = mixture(algorithm, parts=3, reservoir=0).partial_fit(X)
    base = mixture(algorithm, reservoir=0).partial_fit(X[:300])
    assert_close(model, quiet_merge(twin.dealt(base, X[300:], 3, 16)), 1e-9)
    assert [part.rows - 300 for part in model._state.parts] == [2 * 16 + 10, 2 * 16, 2 * 16]


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("half_life", [None, pytest.param(200.0, marks=pytest.mark.slow)])
def test_the_cut_does_not_change_the_parts(algorithm, half_life, small_blocks):
    X = blurred(1, 460)
    whole = mixture(algorithm, parts=3, half_life=half_life).partial_fit(X)
    scores = mixture(algorithm, parts=3, half_life=half_life).update(X)
    for size in (7, 310):
        model, found = mixture(algorithm, parts=3, half_life=half_life), []
        for at in range(0, len(X), size):
            found.append(model.update(X[at : at + size]))
        np.testing.assert_allclose(np.concatenate(found), scores, rtol=1e-7, atol=1e-9)
        assert_close(model, whole, 1e-8)


@pytest.mark.parametrize("algorithm", ["auto", "moment-matching", "online-em"])
def test_threads_do_not_change_the_parts(algorithm):
    X = blurred(2, 300 + 4 * 1024)
    one, two, many = (mixture(algorithm, parts=4, n_threads=n).partial_fit(X) for n in (1, 2, 7))
    assert_same(one, two)
    assert_same(one, many)
    np.testing.assert_array_equal(one.score_samples(X), many.score_samples(X))


@pytest.mark.parametrize("algorithm", ["online-vb", "auto", "moment-matching"])
def test_every_row_is_scored_by_the_part_that_learns_it(algorithm, small_blocks):
    X = blurred(3, 620)
    model = mixture(algorithm, parts=3)
    scores = np.concatenate([model.update(X[:333]), model.update(X[333:])])
    base = mixture(algorithm).partial_fit(X[:300])
    owners = np.arange(320) // 16 % 3
    for part in range(3):
        wanted = base.branch().update(X[300:][owners == part])
        np.testing.assert_allclose(scores[300:][owners == part], wanted, rtol=1e-9)
    zeros = np.where(np.arange(20) % 2 == 0, 0.0, 1.0)
    again = copy.deepcopy(model)
    found = model.update(X[:20], sample_weight=zeros)
    np.testing.assert_allclose(found[1::2], again.update(X[1:20:2]), rtol=1e-9)
    assert np.isfinite(found).all()
    assert model.n_samples_seen_ == 630


@pytest.mark.parametrize("algorithm", ["online-vb", "auto", "moment-matching"])
def test_one_row_at_a_time_works_in_parts(algorithm, small_blocks):
    X = blurred(4, 420)
    model = mixture(algorithm, parts=3, reservoir=0)
    for row in X:
        model.learn_one(row)
    whole = mixture(algorithm, parts=3, reservoir=0).partial_fit(X)
    assert_close(model, whole)
    np.testing.assert_allclose(model.score_one(X[5]), whole.score_samples(X[5:6])[0], rtol=1e-8)
    assert model.predict_one(X[5]) == whole.predict(X[5:6])[0]
    before = content(model)
    model.score_one(X[6])
    assert content(model) == before


def test_parts_are_pickled_branched_and_merged(small_blocks):
    X = blurred(5, 2000)
    model = mixture("online-vb", parts=3).partial_fit(X[:777])
    loaded = pickle.loads(pickle.dumps(model))
    assert_same(loaded.partial_fit(X[777:900]), copy.deepcopy(model).partial_fit(X[777:900]))
    branches = [model.branch().partial_fit(X[777 + part :: 2]) for part in range(2)]
    np.testing.assert_allclose(model.branch().means_, model.means_, rtol=1e-9)
    merged = hw.merge(branches)
    assert merged.n_samples_seen_ == len(X)
    assert merged.merge_report_.matches == ()
    assert merged.weight_concentration_.sum() == pytest.approx(3.0 + len(X))


def test_streams_in_parts_that_share_a_start_merge_without_matching(small_blocks):
    X, _ = rows_of(5, 2000)
    start = mixture("online-vb", parts=3).warm_start_from(X[:300])
    models = [copy.deepcopy(start).partial_fit(X[300 + part :: 3]) for part in range(3)]
    merged = hw.merge(models)
    assert merged.merge_report_.matches == ()
    assert merged.n_samples_seen_ == len(X)
    assert merged.weight_concentration_.sum() == pytest.approx(3.0 + len(X))


def test_a_merged_model_that_goes_on_in_parts_keeps_its_base(small_blocks):
    X, _ = rows_of(5, 2000)
    start = mixture("online-vb", parts=3).warm_start_from(X[:300])
    one, two, three = (start.branch().partial_fit(X[300 + part : 1500 : 3]) for part in range(3))
    merged = hw.merge([hw.merge([one, two]).partial_fit(X[1500:]), three])
    assert merged.n_samples_seen_ == len(X)
    assert merged.weight_concentration_.sum() == pytest.approx(3.0 + len(X))


def test_strangers_in_parts_are_matched(small_blocks):
    X, _ = rows_of(5, 2000)
    one = mixture("online-vb", parts=3).partial_fit(X[:1100])
    two = mixture("online-vb", parts=2, random_state=1).partial_fit(X[1100:])
    merged = hw.merge([two, one])
    assert len(merged.merge_report_.matches) == 1
    assert merged.n_samples_seen_ == len(X)
    np.testing.assert_allclose(merged.means_[merged.predict(CENTRES)], CENTRES, atol=0.3)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 5), (5, 3), (3, 1)])
@pytest.mark.parametrize("algorithm", ["online-vb", "auto", "online-em"])
def test_parts_can_change_in_the_middle_of_a_stream(algorithm, before, after, small_blocks):
    X, _ = rows_of(6, 1500)
    model = mixture(algorithm, parts=before).partial_fit(X[:700])
    branch = copy.deepcopy(model).branch()
    model.set_params(parts=after).partial_fit(X[700:1400])
    model.update(X[1400:])
    assert model.n_samples_seen_ == len(X)
    order = model.predict(CENTRES)
    np.testing.assert_allclose(model.means_[order], CENTRES, atol=0.3)
    if algorithm != "online-em":
        assert model.weight_concentration_.sum() == pytest.approx(3.0 + len(X))
        assert_close(model, branch.set_params(parts=after).partial_fit(X[700:]), 1e-5)


def test_parts_that_change_keep_the_base(small_blocks):
    X, _ = rows_of(6, 1500)
    start = mixture("online-vb").warm_start_from(X[:300])
    one, two = start.branch().partial_fit(X[300:700]), start.branch().partial_fit(X[700:1100])
    one.set_params(parts=3).partial_fit(X[1100:])
    assert hw.merge([one, two]).n_samples_seen_ == len(X)


@pytest.mark.parametrize("algorithm", ["auto", "em", "vb", "online-vb", "online-em"])
@pytest.mark.parametrize("kind", ["full", "spherical"])
def test_fit_with_parts(algorithm, kind, small_blocks):
    X, labels = rows_of(7, 2000)
    model = mixture(algorithm, kind, parts=3).fit(X)
    assert model.n_samples_seen_ == len(X)
    order = model.predict(CENTRES)
    for cluster, k in enumerate(order):
        np.testing.assert_allclose(model.means_[k], X[labels == cluster].mean(axis=0), atol=0.2)
    if algorithm in ("em", "vb"):
        assert_same(model, mixture(algorithm, kind).fit(X))
    if algorithm == "auto":  # passes of EM end in the same place
        plain = mixture(algorithm, kind).fit(X)
        np.testing.assert_allclose(model.means_[order], plain.means_[plain.predict(CENTRES)], rtol=1e-4, atol=1e-3)
    if algorithm not in ("em", "vb"):
        model.partial_fit(X[:333])
        assert model.n_samples_seen_ == 2333
    warm = mixture(algorithm, kind, parts=3, warm_start=True).fit(X)
    warm.fit(X)
    np.testing.assert_allclose(warm.means_[warm.predict(CENTRES)], CENTRES, atol=0.3)


def test_a_start_with_parts(small_blocks):
    X, _ = rows_of(8, 1200)
    model = mixture("online-vb", parts=3).warm_start_from(X[:200], weight=0.1)
    assert model.n_samples_seen_ == 0
    model.partial_fit(X)
    assert model.n_samples_seen_ == len(X)
    by_hand = twin.dealt(mixture("online-vb").warm_start_from(X[:200], weight=0.1), X, 3, 16)
    assert_close(model, hw.merge(by_hand), 1e-9)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "three", None])
def test_bad_parts_are_refused(bad):
    with pytest.raises(ValueError, match="parts"):
        mixture(parts=bad).partial_fit(rows_of(0, 100)[0])


def test_a_half_life_is_as_long_in_parts():
    """Rows of the stream, not of a part, are what a half-life is counted in."""
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(6300, 2)), rng.normal(size=(4000, 2)) + 50.0
    alone, apart = (
        mixture("online-vb", k=1, half_life=500.0, parts=parts).partial_fit(old).partial_fit(new) for parts in (1, 3)
    )
    np.testing.assert_allclose(apart.means_, alone.means_, atol=1.0)
    assert apart.mean_precision_[0] == pytest.approx(alone.mean_precision_[0], rel=0.1)


def test_beliefs_that_shrank_in_parts_are_read_as_a_belief(monkeypatch):
    monkeypatch.setattr(loop, "PART_ROWS", 10)
    rng = np.random.default_rng(2)
    sample = rng.normal(size=(40, 2))
    rows = np.concatenate([3.0 * rng.normal(size=(10, 2)) + 2.0 * rng.normal(size=2) for _ in range(40)])
    model = mixture("moment-matching", parts=40).warm_start_from(sample, weight=0.3).partial_fit(rows)
    assert loop.combine(model._learner.alone, model._state.parts)[1] != ()
    assert is_belief(model)


# The laws hold in parts, too

LAWFUL = [
    mixture(algorithm, kind, parts=3, warm_up=120, half_life=half_life)
    for kind, algorithm, half_life in (
        ("full", hw.Auto(batch_size=16), None), ("tied", "online-vb", None), ("diag", "boem", None),
        ("diag", hw.OnlineEM(batch_size=8), 80.0),
        # The rest are slow.
        ("full", "moment-matching", None), ("full", "soem", None),
        ("full", "auto", None), ("spherical", "quasi-bayes", None), ("full", "online-em", None),
        ("diag", "moment-matching", 80.0), ("full", "em", None),
    )
]  # fmt: skip
LAW_CASES = [
    pytest.param(
        model,
        law,
        id=f"{model.covariance_type}-{model.algorithm}-{model.half_life}-{law.__name__}",
        marks=() if number < 4 else pytest.mark.slow,
    )
    for number, model in enumerate(LAWFUL)
    for law in applicable_laws(model)
]


@pytest.mark.parametrize(("model", "law"), LAW_CASES)
def test_laws_hold_in_parts(model, law, small_blocks):
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(400, 2)) * [1.0, 3.0] + 4.0 * rng.integers(3, size=(400, 1)) + 100.0
    law(clone(model), rows)


# Rows of very different size leave matrices that are singular but for rounding


def mixed_sizes(n, rng):
    return (np.where(rng.random((n, 1)) < 0.01, 1e100, 1.0) * rng.normal(size=(n, 4))).clip(-1e100, 1e100)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("seed", [1, 2])
def test_variational_bayes_takes_rows_of_very_different_size(covariance_type, seed):
    X = mixed_sizes(400, np.random.default_rng(seed))
    model = hw.GaussianMixture(2, covariance_type=covariance_type, algorithm="vb", warm_up=60, random_state=0)
    with np.errstate(all="ignore"):
        model.fit(X)
    assert all(np.isfinite(getattr(model, name)).all() for name in model._answers)
    assert np.isfinite(model.lower_bound_)


@pytest.mark.filterwarnings("ignore:.*lies far apart:UserWarning")
@pytest.mark.parametrize("algorithm", ["soem", "online-em", "quasi-bayes"])
@pytest.mark.parametrize("gating", ["fixed", "input"])
def test_regressions_of_very_different_rows_are_merged(algorithm, gating):
    """Origins differ as much as rows, and what is brought from one to another loses its digits."""
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
