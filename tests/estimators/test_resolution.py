"""Rounded columns: no component is thinner than the rounding error, and scores of cells do not depend on units."""

import numpy as np
import pytest

import headwater as hw
from headwater.diagnostics.health import Health


def table(n=1200, seed=0):
    """Return rows of whole numbers with many zeros, of unrounded numbers, and of percentages of which many are 100."""
    z = np.random.default_rng(seed).normal(size=(n, 4))
    percent = np.where(z[:, 3] > 0.3, 100.0, np.clip((50 + 20 * z[:, 2]).round(1), 0, 100))
    return np.column_stack([np.clip(1.5 * z[:, 0], 0, 4).round(), z[:, 0] + z[:, 1], percent])


ROWS = table()
STEPS = np.array([1.0, 0.0, 0.1])
kinds = pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "factor"])


def model(**options):
    return hw.GaussianMixture(**{"n_components": 4, "random_state": 0, "resolution": "auto", "warm_up": 200, **options})


def thinnest(fitted):
    """Return the least eigenvalue of the covariances minus those of the steps."""
    covariances, kind = fitted.covariances_, fitted.covariance_type
    if kind in ("diag", "spherical"):
        covariances = np.array([np.diag(np.broadcast_to(one, 3)) for one in covariances])
    return np.linalg.eigvalsh(covariances - np.diag(fitted.resolution_**2 / 12)).min()


@pytest.mark.covering("kind")
@kinds
@pytest.mark.parametrize("algorithm", ["auto", "em", "online-em"])
def test_no_component_is_thinner_than_the_steps(kind, algorithm):
    fitted = model(covariance_type=kind, algorithm=algorithm, reg_covar=1e-9, n_factors=1, max_iter=20, tol=1.0)
    fitted = fitted.fit(ROWS) if algorithm == "em" else fitted.partial_fit(ROWS)
    np.testing.assert_array_equal(fitted.resolution_, STEPS)
    assert thinnest(fitted) > -1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@kinds
@pytest.mark.parametrize("algorithm", ["em", "vb"])
def test_every_pass_gains(kind, algorithm):
    if kind == "factor" and algorithm == "vb":
        pytest.skip("factors are not learned by variational Bayes")
    fitted = model(covariance_type=kind, algorithm=algorithm, reg_covar=0.0, n_factors=1, max_iter=60, tol=0.0).fit(ROWS)
    assert np.diff(fitted.lower_bounds_).min() > -1e-9


def test_without_it_one_component_has_all_the_likelihood():
    bound, free = model(algorithm="em").fit(ROWS), model(algorithm="em", resolution=None).fit(ROWS)
    assert free.score(ROWS) > bound.score(ROWS) + 2.0  # nats that only reflect the floor
    lower = [model(algorithm="em", resolution=None, reg_covar=reg).fit(ROWS).score(ROWS) for reg in (1e-6, 1e-10)]
    assert abs(lower[0] - lower[1]) > 1.0
    held = [model(algorithm="em", reg_covar=reg).fit(ROWS).score(ROWS) for reg in (1e-6, 1e-10)]
    assert abs(held[0] - held[1]) < 0.01


def test_cells_know_no_units():
    fitted = model().fit(ROWS)
    densities, cells = fitted.score_samples(ROWS), fitted.score_samples(ROWS, cells=True)
    np.testing.assert_allclose(cells - densities, np.log(0.1), rtol=1e-9)
    other = model(scale_columns=True).fit(ROWS[:, ::2]).score_samples(ROWS[:, ::2], cells=True)
    scaled = ROWS[:, ::2] * [1024.0, 2.0**-7]
    again = model(scale_columns=True).fit(scaled)
    np.testing.assert_allclose(again.resolution_, [1024.0, 0.1 / 128], rtol=1e-9)
    np.testing.assert_allclose(again.score_samples(scaled, cells=True), other, rtol=1e-6, atol=1e-6)
    gapped = ROWS[:2].copy()
    gapped[0, 2] = np.nan
    np.testing.assert_allclose(
        fitted.score_samples(gapped, cells=True) - fitted.score_samples(gapped), [0.0, np.log(0.1)], atol=1e-12
    )
    with pytest.raises(ValueError, match="cells=True adds the logarithms of the steps"):
        model(resolution=None).fit(ROWS).score_samples(ROWS, cells=True)


def test_steps_are_given_or_found_at_the_end_of_the_warm_up():
    given = model(resolution=[2.0, 0.0, 0.0]).partial_fit(ROWS)
    np.testing.assert_array_equal(given.resolution_, [2.0, 0.0, 0.0])
    assert model(resolution=None).partial_fit(ROWS).resolution_.tolist() == [0.0, 0.0, 0.0]
    late = np.vstack([ROWS[:300], ROWS[300:] + 0.25])  # finer values after the warm-up
    np.testing.assert_array_equal(model().partial_fit(late).resolution_, STEPS)
    refused = model(resolution=[1.0, 1.0])
    with pytest.raises(ValueError, match="one for each of 3 columns"):
        refused.partial_fit(ROWS)
    assert not hasattr(refused, "n_features_in_")
    with pytest.raises(ValueError, match="resolution must be None for algorithm 'moment-matching'"):
        model(algorithm="moment-matching").partial_fit(ROWS)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"algorithm": "online-vb"},
        pytest.param({"n_components": "auto"}, marks=pytest.mark.slow),
        {"parts": 2},
        {"half_life": "auto"},
        {"reservoir": 0},
    ],
)
def test_chunks_files_and_gaps_change_nothing(options, tmp_path):
    rows = np.where(np.random.default_rng(3).random(ROWS.shape) < 0.05, np.nan, ROWS)[:600]
    one, other = model(**options).partial_fit(rows), model(**options)
    for chunk in np.array_split(rows, [1, 40, 190, 333]):
        other = other.partial_fit(chunk)
    other.save(tmp_path / "half.hw")
    for again in (other, hw.load(tmp_path / "half.hw")):
        np.testing.assert_allclose(again.means_, one.means_, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(again.resolution_, STEPS)
        assert thinnest(again) > -1e-9


def test_merged_models_have_the_coarser_step():
    fine, coarse = ROWS.copy(), table(seed=1)
    coarse[:, 2] = coarse[:, 2].round()
    ones, others = model(n_components=1).partial_fit(fine), model(n_components=1).partial_fit(coarse)
    for merged in (hw.merge([ones, others]), hw.merge([others, ones])):
        np.testing.assert_array_equal(merged.resolution_, [1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="resolution"):
        hw.merge([ones, model(n_components=1, resolution=None).partial_fit(coarse)])


def test_health_proposes_a_resolution():
    free = model(resolution=None).partial_fit(ROWS)
    found = {one.kind: one for one in free.health_.findings}["rounded"]
    assert found.action and "x0 (to 1)" in found.sentence and "resolution='auto'" in found.sentence
    waiting = model(resolution=None).partial_fit(ROWS[:60]).health_
    assert isinstance(waiting, Health) and "rounded" in {one.kind for one in waiting.findings}
    assert "rounded" not in {one.kind for one in model().partial_fit(ROWS).health_.findings}
    smooth = model(resolution=None, n_components=1).partial_fit(np.random.default_rng(0).normal(size=(400, 2)))
    assert "rounded" not in {one.kind for one in smooth.health_.findings}


def test_whole_numbers_of_a_table_make_no_thin_component():
    mixed = hw.MixedMixture(3, random_state=0, reg_covar=1e-9).fit(ROWS)
    assert mixed.resolution_ == {"x0": 1.0, "x1": 0.0, "x2": 0.1}
    lifted = mixed.covariances_ - np.diag(STEPS**2 / 12)
    assert np.linalg.eigvalsh(lifted).min() > -1e-9
    cells = mixed.score_samples(ROWS, cells=True)
    np.testing.assert_allclose(cells - mixed.score_samples(ROWS), np.log(0.1), rtol=1e-9)
    free = hw.MixedMixture(3, random_state=0, reg_covar=1e-9, resolution=None).fit(ROWS)
    assert free.score(ROWS) > mixed.score(ROWS) + 1.0 and free.resolution_["x0"] == 0.0
    with pytest.raises(ValueError, match="cells=True"):
        free.score_samples(ROWS, cells=True)


@pytest.mark.parametrize("scale_columns", [True, False])
def test_steps_may_be_far_beyond_the_spread_of_a_column(scale_columns, tmp_path):
    """Columns are measured in steps, then; in units of their spread no file could hold the steps."""
    rows = np.random.default_rng(0).normal(size=(300, 3)) * np.array([1e-120, 1e-60, 1.0])
    learned = model(n_components=2, resolution=0.1, scale_columns=scale_columns).partial_fit(rows)
    learned.save(tmp_path / "steps.hw")
    again = hw.load(tmp_path / "steps.hw")
    np.testing.assert_array_equal(again.score_samples(rows), learned.score_samples(rows))
    np.testing.assert_allclose(np.diagonal(again.covariances_, axis1=1, axis2=2)[:, :2], 0.1**2 / 12, rtol=0.2)
