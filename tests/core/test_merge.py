"""Merging of models of one lineage, the report of a merge, what is refused, and models in their warm-up."""

import copy
import pickle

import numpy as np
import pytest
from merge_models import (
    ADDING,
    FITTED,
    ONLINE,
    assert_close,
    assert_same,
    blurred,
    cases,
    content,
    mixture,
    rows_of,
    trained_apart,
)
from naive import merging as twin
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import headwater as hw
from headwater.core.match import Match, MergeReport, _assign


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
    with pytest.warns(UserWarning, match="may be matched wrongly"):
        merged = hw.merge([one, two])
    report = merged.merge_report_
    assert report.ambiguous
    assert all(k in (0, 1) for k in report.ambiguous)
    assert "may be matched wrongly" in str(report)
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
        components, paid, margin = _assign(cost)
        best, wanted = twin.assignment(cost)
        np.testing.assert_array_equal(components, best)
        np.testing.assert_allclose(paid, cost[np.arange(4), best])
        np.testing.assert_allclose(margin, wanted, atol=1e-12)


def test_one_component_is_never_ambiguous():
    components, paid, margin = _assign(np.array([[3.0]]))
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


def test_models_whose_sum_is_not_finite_are_not_merged():
    """Each of them is finite, by less than a factor of two."""
    rows = np.random.default_rng(0).normal(size=(30, 2))
    refused = 0
    for power in np.arange(-53.0, -52.5, 0.05):
        start = hw.GaussianMixture(1, scale_columns=True, warm_up=20, random_state=0, algorithm="online-vb")
        start.partial_fit(10.0**power * rows)
        try:
            with np.errstate(all="ignore"):
                parts = [start.branch().partial_fit(np.full((300, 2), size)) for size in (0.9e100, 0.89e100)]
        except ValueError as error:
            assert "not finite" in str(error)
            continue
        try:
            with np.errstate(all="ignore"):
                merged = hw.merge(parts)
        except ValueError as error:
            assert str(error).startswith("models must have learned values and weights that are not too far apart")
            refused += 1
        else:
            assert np.isfinite(merged.means_).all()
    assert refused
