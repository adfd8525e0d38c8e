"""GaussianMixture learns from rows with gaps: recovery, rows that are left out, and errors."""

import numpy as np
import pytest
from sklearn.base import clone

import headwater as hw

KINDS = ("full", "tied", "diag", "spherical")


def simulate(n, seed=0, missing=0.25, width=3):
    """Return rows of two groups with correlated columns, complete and with values missing at random."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.full((width, width), 0.6) + 0.4 * np.eye(width))
    X = rng.normal(size=(n, width)) @ root.T + 7.0 * rng.integers(2, size=(n, 1))
    gone = rng.random(X.shape) < missing
    gone[np.arange(n), rng.integers(width, size=n)] = False  # every row has a value
    return X, np.where(gone, np.nan, X)


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ["auto", "em", "online-em"])
def test_gaps_cost_little(kind, algorithm):
    """With a quarter of the values missing, the held-out score is nearly that of complete rows."""
    X, gapped = simulate(3000)
    other, _ = simulate(2000, seed=1)
    models = [hw.GaussianMixture(2, covariance_type=kind, algorithm=algorithm, random_state=0) for _ in range(2)]
    scores = [
        (model.fit(rows) if algorithm == "em" else model.partial_fit(rows)).score(other)
        for model, rows in zip(models, (X, gapped), strict=True)
    ]
    assert scores[1] > scores[0] - 0.02
    np.testing.assert_allclose(np.sort(models[1].means_[:, 0]), np.sort(models[0].means_[:, 0]), atol=0.15)


def test_the_order_of_gaps_and_complete_rows_does_not_matter_to_the_form(tmp_path):
    """Gaps begin late, in the first chunk, or never: statistics add up, and branches merge."""
    X, gapped = simulate(900)
    base = hw.GaussianMixture(2, covariance_type="diag", algorithm="online-em", warm_up=200, random_state=0).partial_fit(
        X[:300]
    )
    late, never = base.branch().partial_fit(gapped[300:600]), base.branch().partial_fit(X[600:])
    assert late.mean_precision_.shape == (2, 3) and never.mean_precision_.shape == (2,)
    for parts in ([late, never], [never, late]):
        merged = hw.merge(parts)
        assert merged.n_samples_seen_ == 900 and merged.mean_precision_.shape == (2, 3)
    late.save(tmp_path / "late.hw")
    again = hw.load(tmp_path / "late.hw").partial_fit(X[600:])
    np.testing.assert_array_equal(again.means_, late.partial_fit(X[600:]).means_)


def test_masses_of_columns_are_what_was_observed():
    _, gapped = simulate(500, missing=0.4)
    model = hw.GaussianMixture(1, covariance_type="diag", algorithm="vb", random_state=0).fit(gapped)
    observed = (~np.isnan(gapped)).sum(axis=0)
    prior = model.mean_precision_[0] - observed
    np.testing.assert_allclose(prior, prior[0])
    np.testing.assert_allclose(model.means_[0], np.nanmean(gapped, axis=0), atol=1e-3)
    ml = hw.GaussianMixture(1, covariance_type="diag", algorithm="em", reg_covar=0.0, random_state=0).fit(gapped)
    np.testing.assert_allclose(ml.means_[0], np.nanmean(gapped, axis=0))
    np.testing.assert_allclose(ml.covariances_[0], np.nanvar(gapped, axis=0))


def test_one_gaussian_is_the_maximum_of_the_likelihood_of_what_was_observed():
    """No change of the mean or the covariance raises the likelihood of the observed values."""
    _, gapped = simulate(400, missing=0.3)
    options = {"algorithm": "em", "reg_covar": 0.0, "tol": 1e-12, "max_iter": 2000, "random_state": 0}
    model = hw.GaussianMixture(1, **options).fit(gapped)
    best, rng = model.score(gapped), np.random.default_rng(0)
    assert best > hw.GaussianMixture(1, **options).fit(gapped[~np.isnan(gapped).any(axis=1)]).score(gapped)
    for _ in range(20):
        step = 1e-2 * rng.normal(size=(3, 3))
        means = model.means_ + 1e-2 * rng.normal(size=(1, 3))
        precisions = np.linalg.inv(model.covariances_[0] + 0.5 * (step + step.T))[None]
        other = hw.GaussianMixture(1, means_init=means, precisions_init=precisions, max_iter=0, algorithm="em").fit(gapped)
        assert other.score(gapped) < best


def test_rows_without_a_value_are_scored_and_left_out():
    _, gapped = simulate(400)
    empty = gapped.copy()
    empty[::10] = np.nan
    kept = np.setdiff1d(np.arange(400), np.arange(0, 400, 10))
    model = hw.GaussianMixture(2, warm_up=100, random_state=0)
    one, other = clone(model), clone(model)
    scores = one.update(empty)
    np.testing.assert_array_equal(scores[kept], other.update(empty[kept]))
    assert np.isnan(scores[::10]).all() and (one.score_samples(empty[::10]).round(12) == 0.0).all()
    np.testing.assert_array_equal(one.means_, other.means_)
    before = one.means_
    assert np.isnan(one.update(empty[:1])).all()
    np.testing.assert_array_equal(one.learn_one(empty[0]).partial_fit(empty[[0, 10]]).means_, before)
    with pytest.raises(ValueError, match="at least one row with a value"):
        clone(model).partial_fit(empty[[0, 10]])
    with pytest.raises(ValueError, match="at least one row with a value"):
        clone(model).fit(empty[[0, 10]])


def test_columns_that_are_empty_at_first_are_learned_when_they_come():
    X, gapped = simulate(1200)
    early = gapped.copy()
    early[:, 2] = np.nan
    for kind in KINDS:
        model = hw.GaussianMixture(2, covariance_type=kind, warm_up=200, random_state=0).partial_fit(early[:600])
        assert np.isfinite(model.score_samples(gapped)).all() and np.isfinite(model.means_).all()
        for _ in range(3):
            model.partial_fit(gapped[600:])
        assert np.isfinite(model.covariances_).all()
        assert model.score(X) > -30.0
    fitted = hw.GaussianMixture(2, max_iter=1000, random_state=0).fit(early)
    assert np.isfinite(fitted.score_samples(early)).all()


def test_refusals_leave_the_model_as_it_was():
    X, gapped = simulate(300)
    model = hw.GaussianMixture(2, missing="error", warm_up=100, random_state=0).partial_fit(X)
    before = model.means_
    for call in (model.partial_fit, model.score_samples, model.update):
        with pytest.raises(ValueError, match="NaN"):
            call(gapped)
    matching = hw.GaussianMixture(2, algorithm="moment-matching", warm_up=100, random_state=0).partial_fit(X)
    for call in (matching.partial_fit, matching.fit):
        with pytest.raises(ValueError, match="'moment-matching' learns from complete rows"):
            call(gapped)
    assert np.isfinite(matching.score_samples(gapped)).all()
    np.testing.assert_array_equal(model.means_, before)
    with pytest.raises(ValueError, match="missing"):
        hw.GaussianMixture(2, missing="drop").fit(X)
    assert model.set_params(missing="accept").partial_fit(gapped).n_samples_seen_ == 600


@pytest.mark.parametrize("kind", KINDS)
def test_a_given_start_weights_and_labels(kind):
    _, gapped = simulate(600)
    means = np.array([[0.0] * 3, [7.0] * 3])
    labels = np.where(np.nanmean(gapped, axis=1) > 3.5, 1, 0)
    model = hw.GaussianMixture(2, covariance_type=kind, means_init=means, warm_up=60, random_state=0)
    model.partial_fit(gapped, sample_weight=np.linspace(0.5, 1.5, 600), labels=np.where(np.arange(600) % 3, -1, labels))
    np.testing.assert_allclose(model.means_, means, atol=0.5)
    pruned = hw.GaussianMixture(4, covariance_type=kind, random_state=0).fit(gapped).prune(0.05)
    assert np.isfinite(pruned.score_samples(gapped)).all()


def test_scale_columns_knows_no_units():
    _, gapped = simulate(800)
    units = np.array([1e-3, 1.0, 1e4])
    for kind in KINDS:
        model = hw.GaussianMixture(2, covariance_type=kind, scale_columns=True, random_state=0)
        one, other = clone(model).fit(gapped), clone(model).fit(gapped * units)
        np.testing.assert_allclose(np.sort(other.means_, axis=0), np.sort(one.means_ * units, axis=0), rtol=1e-6)
        shift = ~np.isnan(gapped) @ np.log(units)
        np.testing.assert_allclose(other.score_samples(gapped * units), one.score_samples(gapped) - shift, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_health_says_how_much_was_missing_and_where_most_is(kind):
    _, gapped = simulate(2000, missing=0.1)
    gapped[np.random.default_rng(1).random(2000) < 0.8, 2] = np.nan
    gapped[np.isnan(gapped).all(axis=1), 0] = 0.0
    model = hw.GaussianMixture(2, covariance_type=kind, algorithm="online-em", random_state=0).partial_fit(gapped)
    findings = {finding.kind: finding for finding in model.health_.findings}
    assert (
        findings["gaps"].numbers["missing"] == pytest.approx(np.isnan(gapped).mean(), abs=0.02) and not findings["gaps"].action
    )
    unseen = [finding for finding in model.health_.findings if finding.kind == "unseen"]
    # what the other columns predict of x2 counts as known, for covariances that hold correlations
    assert bool(unseen) == (kind in ("diag", "spherical")) or all("x2" in finding.sentence for finding in unseen)
    complete = hw.GaussianMixture(2, covariance_type=kind, algorithm="online-em", random_state=0).partial_fit(simulate(2000)[0])
    assert not {"gaps", "unseen"} & {finding.kind for finding in complete.health_.findings}
