"""scale_columns: the model does not depend on the units of the columns, and its answers are in these units."""

import chain_models
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import headwater as hw
from headwater.plotting.shared import covariances_of

UNITS = 2.0 ** np.array([-20, 20, 0])  # powers of two, which lose no digit
OFFSET = np.array([0.0, -1e7, 1e5])
VOLUME = np.log(UNITS).sum()
KINDS = ("full", "tied", "diag", "spherical")


@pytest.fixture(scope="module")
def drawn():
    """Return rows of three groups, the group of each, and the same rows in other units."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=900)
    rows = 5.0 * rng.normal(size=(3, 3))[group] + rng.normal(size=(900, 3)) * np.array([0.5, 1.0, 1.5])[group, None]
    return rows, group, rows * UNITS + OFFSET


def model(kind, **options):
    return hw.GaussianMixture(3, covariance_type=kind, scale_columns=True, warm_up=300, random_state=0, **options)


def squared(kind):
    return np.outer(UNITS, UNITS) if kind in ("full", "tied") else UNITS**2


@pytest.mark.covering("kind")
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_units_are_the_same_model(kind, learn, drawn):
    rows, group, _ = drawn
    other = rows * UNITS
    one, two = getattr(model(kind), learn)(rows), getattr(model(kind), learn)(other)
    assert adjusted_rand_score(group, two.predict(other)) > 0.9
    np.testing.assert_allclose(two.score_samples(other) + VOLUME, one.score_samples(rows), rtol=1e-9)
    np.testing.assert_allclose(two.predictive_score_samples(other) + VOLUME, one.predictive_score_samples(rows), rtol=1e-9)
    # If several seeds reach the same optimum, rounding decides which of them gives the order of the components.
    first, second = (np.argsort(found.means_[:, 0] / found.means_[:, 0].std()) for found in (one, two))
    kept = (slice(None),) * 2 if kind == "tied" else (first, second)
    np.testing.assert_allclose(two.means_[second] / UNITS, one.means_[first], atol=1e-9)
    np.testing.assert_allclose(two.covariances_[kept[1]] / squared(kind), one.covariances_[kept[0]], atol=1e-9)
    np.testing.assert_allclose(two.precisions_[kept[1]] * squared(kind), one.precisions_[kept[0]], rtol=1e-9, atol=1e-9)
    ours, theirs = one.credible_intervals(X=rows), two.credible_intervals(X=other)
    np.testing.assert_allclose(theirs.means[second] / UNITS[:, None], ours.means[first], atol=1e-9)
    np.testing.assert_allclose(theirs.variances[second] / UNITS[:, None] ** 2, ours.variances[first], rtol=1e-9)
    sample = two.sample(4000)[0] / UNITS
    np.testing.assert_allclose(sample.mean(axis=0), rows.mean(axis=0), atol=0.4)
    np.testing.assert_allclose(sample.std(axis=0), rows.std(axis=0), rtol=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_an_offset_changes_nothing(kind, drawn):
    rows, _, other = drawn
    one, two = model(kind).partial_fit(rows), model(kind).partial_fit(other)
    np.testing.assert_allclose(two.score_samples(other) + VOLUME, one.score_samples(rows), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_reported_is_the_density(kind, drawn):
    from scipy.stats import multivariate_normal

    _, _, other = drawn
    found = model(kind).fit(other)
    shape = {"full": (3, 3, 3), "tied": (3, 3), "diag": (3, 3), "spherical": (3, 3)}[kind]
    assert found.covariances_.shape == shape
    covariances = found.covariances_ if kind == "full" else [found.covariances_] * 3 if kind == "tied" else None
    if covariances is None:
        covariances = [np.diag(one) for one in found.covariances_]
    # SciPy's own check of a covariance is not made for such units, so the density is taken in others.
    density = sum(
        weight * multivariate_normal((mean - OFFSET) / UNITS, covariance / np.outer(UNITS, UNITS)).pdf((other - OFFSET) / UNITS)
        for weight, mean, covariance in zip(found.weights_, found.means_, covariances, strict=True)
    )
    np.testing.assert_allclose(found.score_samples(other), np.log(density) - VOLUME, rtol=1e-6)


def test_the_floor_is_a_part_of_the_spread():
    """scikit-learn's reg_covar is a million times the variance of this column."""
    rng = np.random.default_rng(0)
    rows = 1e-6 * (rng.normal(size=(600, 2)) + 6.0 * rng.integers(2, size=(600, 1)))
    plain, scaled = (
        hw.GaussianMixture(2, algorithm="em", scale_columns=scale, random_state=0).fit(rows) for scale in (False, True)
    )
    assert plain.covariances_[0, 0, 0] > 9e-7
    assert scaled.covariances_[0, 0, 0] == pytest.approx(1e-12, rel=0.3)
    assert scaled.score(rows) > plain.score(rows) + 5.0


@pytest.mark.parametrize("algorithm", ["em", "vb"])
def test_standard_columns_change_nothing(algorithm):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2)) + 4.0 * rng.integers(2, size=(400, 1))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    one, two = (
        hw.GaussianMixture(2, algorithm=algorithm, scale_columns=scale, random_state=0).fit(rows) for scale in (False, True)
    )
    np.testing.assert_allclose(two.means_, one.means_, atol=1e-9)
    np.testing.assert_allclose(two.lower_bounds_, one.lower_bounds_, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_models_in_other_units_merge(kind, drawn):
    """Each has units of its own warm-up: statistics are brought to those of the reference."""
    _, group, other = drawn
    parts = [model(kind).set_params(random_state=seed).partial_fit(other[seed::2]) for seed in range(2)]
    units = [part._read().stream.base.prior.components.units for part in parts]
    assert not np.array_equal(*units)
    merged = hw.merge(parts)
    assert merged.n_samples_seen_ == 900
    whole = model(kind).partial_fit(other)
    assert merged.score(other) > whole.score(other) - 0.02
    assert adjusted_rand_score(group, merged.predict(other)) > 0.9
    with pytest.raises(ValueError, match="one scale_columns"):
        hw.merge([parts[0], hw.GaussianMixture(3, covariance_type=kind, warm_up=300).partial_fit(other)])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_is_in_the_units_of_the_columns(kind, drawn):
    rows, _, other = drawn
    known = model(kind).fit(other)
    precisions = known.precisions_
    given = {"means_init": known.means_, "weights_init": known.weights_}
    if kind != "spherical":
        given["precisions_init"] = precisions
    again = model(kind, max_iter=0, **given).fit(other)
    np.testing.assert_allclose((again.means_ - OFFSET) / UNITS, (known.means_ - OFFSET) / UNITS, atol=1e-6)
    if kind != "spherical":
        np.testing.assert_allclose(again.covariances_ / squared(kind), known.covariances_ / squared(kind), atol=1e-6)
    centre = rows.mean(axis=0) * UNITS + OFFSET
    held = model(kind, mean_prior=centre, mean_precision_prior=1e9).fit(other)
    np.testing.assert_allclose((held.means_ - OFFSET) / UNITS, np.tile(rows.mean(axis=0), (3, 1)), atol=1e-3)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_a_prior_is_in_the_units_of_the_columns(kind, drawn):
    rows, _, other = drawn
    wide = np.full(3, 50.0)
    one = model(kind, covariance_prior=np.diag(wide) if kind == "full" else wide).fit(rows)
    prior = np.diag(wide * UNITS**2) if kind == "full" else wide * UNITS**2
    two = model(kind, covariance_prior=prior).fit(other)
    # Rounding may decide the order of the components, so they are matched by their means.
    first, second = np.argsort(one.means_[:, 0]), np.argsort(two.means_[:, 0])
    np.testing.assert_allclose((two.means_[second] - OFFSET) / UNITS, one.means_[first], atol=1e-6)
    np.testing.assert_allclose(two.covariances_[second] / squared(kind), one.covariances_[first], atol=1e-6)


def test_a_constant_column_is_as_it_is():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=300), np.full(300, 7.0)])
    found = hw.GaussianMixture(1, covariance_type="diag", scale_columns=True, random_state=0).fit(rows)
    np.testing.assert_allclose(found.means_[0, 1], 7.0)
    assert np.isfinite(found.score_samples(rows)).all()


def test_means_alone_may_be_given_to_spheres():
    rows = np.random.default_rng(0).normal(size=(200, 2))
    found = hw.GaussianMixture(2, covariance_type="spherical", means_init=[[-1.0, 0.0], [1.0, 0.0]], max_iter=0, random_state=0)
    np.testing.assert_allclose(found.fit(rows).means_, [[-1.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize("algorithm", ["auto", "online-em"])
@pytest.mark.parametrize("kind", ["full", "spherical"])
def test_chains_know_units(kind, algorithm):
    rows = chain_models.a_stream(600, seed=7)[0]
    rows[[3, 400]] = np.nan
    units = UNITS[: rows.shape[1]]
    one, two = (
        hw.GaussianHMM(2, kind, scale_columns=True, algorithm=algorithm, warm_up=150, lag=10, random_state=0) for _ in range(2)
    )
    scores, others = one.update(rows), two.update(rows * units)
    present = np.where(np.isnan(rows[:, 0]), 0.0, np.log(units).sum())
    np.testing.assert_allclose(others[8:] + present[8:], scores[8:], rtol=1e-6)
    np.testing.assert_allclose(two.means_ / units, one.means_, rtol=1e-6)
    np.testing.assert_allclose(two.covars_ / np.outer(units, units), one.covars_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(two.next_distribution()[0] / units, one.next_distribution()[0], rtol=1e-6)
    with pytest.raises(ValueError, match="params must name all of"):
        hw.GaussianHMM(2, params="st", scale_columns=True).fit(rows)


def test_units_cannot_change_on_the_way(drawn):
    begun = model("diag").partial_fit(drawn[2])
    with pytest.raises(ValueError, match="scale_columns cannot change"):
        begun.set_params(scale_columns=False).partial_fit(drawn[2])


def test_spheres_in_units_are_described_drawn_and_saved(drawn, tmp_path):
    _, _, other = drawn
    found = model("spherical").fit(other)
    parts = found.describe().components
    spreads = [value.spread for value in parts[0].values]
    np.testing.assert_allclose(spreads, np.sqrt(found.covariances_[parts[0].index]))
    variances = found.covariances_[:, [0, 2]]
    np.testing.assert_array_equal(covariances_of(found, (0, 2)), variances[:, :, None] * np.eye(2))
    found.save(tmp_path / "model.hw")
    again = hw.load(tmp_path / "model.hw")
    np.testing.assert_array_equal(again.score_samples(other), found.score_samples(other))
    np.testing.assert_array_equal(again.partial_fit(other).means_, found.partial_fit(other).means_)


def test_a_growth_knows_units(drawn):
    rows, _, other = drawn
    found = [model("diag").set_params(n_components="auto").partial_fit(one) for one in (rows, other)]
    assert found[0].n_components_ == found[1].n_components_ == 3
