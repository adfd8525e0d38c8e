"""Rows of float32, float16, int8 and uint8: answers, precision, laws and the `dtype` parameter."""

import numpy as np
import pandas as pd
import pytest
from law_rows import directions
from sklearn.base import clone

import headwater as hw
from headwater.checks import check_laws
from headwater.core.batch import Batch
from headwater.families.gaussian import Gaussian

RNG = np.random.default_rng(0)
CENTRES = 3.0 * RNG.normal(size=(20, 52))
ROWS = (CENTRES[RNG.integers(20, size=1200)] + RNG.normal(size=(1200, 52))).astype(np.float32)


def make(kind="spherical", **options):
    if kind == "directions":
        return hw.VonMisesFisherMixture(20, warm_up=600, random_state=0, **options)
    return hw.GaussianMixture(20, covariance_type=kind, warm_up=600, random_state=0, **options)


kinds = pytest.mark.parametrize("kind", ["spherical", "directions"])


@kinds
def test_answers_have_the_type_of_the_rows(kind):
    model = make(kind).partial_fit(ROWS)
    wide = model.score_samples(ROWS.astype(np.float64)), model.predict_proba(ROWS.astype(np.float64))
    short = model.score_samples(ROWS), model.predict_proba(ROWS)
    for one, other in zip(short, wide, strict=True):
        assert one.dtype == np.float32 and other.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(model.predict(ROWS), model.predict(ROWS.astype(np.float64)))
    assert make(kind, dtype="float64").partial_fit(ROWS).score_samples(ROWS).dtype == np.float64
    assert make(kind, dtype="float32").partial_fit(ROWS).score_samples(ROWS.astype(np.float64)).dtype == np.float32
    assert model.score_samples(pd.DataFrame(ROWS)).dtype == np.float32


LEARNED = {
    "spherical": ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"),
    "directions": ("weights_", "mean_directions_", "concentrations_"),
}


def types_of(model, kind):
    return {getattr(model, name).dtype for name in LEARNED[kind]}


@kinds
def test_learned_attributes_have_the_type_of_all_learned_rows(kind, tmp_path):
    short, wide = {np.dtype(np.float32)}, {np.dtype(np.float64)}
    model = make(kind).partial_fit(ROWS[:700])
    assert types_of(model, kind) == short == types_of(make(kind).fit(ROWS), kind)
    model.save(tmp_path / "short.hw")
    again = hw.load(tmp_path / "short.hw")
    assert types_of(again, kind) == short
    one, other = again.branch().partial_fit(ROWS[700:900]), again.branch().learn_one(ROWS[900])
    assert types_of(hw.merge([one, other]), kind) == short
    other.learn_one(ROWS[901].tolist())  # one row in float64 is enough
    assert types_of(other, kind) == types_of(hw.merge([one, other]), kind) == types_of(hw.merge([other, one]), kind) == wide
    model.learn_one(ROWS[0].tolist())
    assert types_of(model.partial_fit(ROWS), kind) == wide  # what was rounded once stays so
    assert types_of(model.fit(ROWS), kind) == short
    assert types_of(make(kind).warm_start_from(ROWS), kind) == short
    assert types_of(make(kind, dtype="float64").partial_fit(ROWS), kind) == wide
    assert types_of(make(kind, dtype="float32").partial_fit(ROWS.astype(np.float64)), kind) == short
    with pytest.raises(ValueError, match="infinity"):
        again.partial_fit(np.full((3, ROWS.shape[1]), np.inf))
    assert types_of(again, kind) == short


@kinds
def test_descriptions_and_files_do_not_depend_on_the_type_of_attributes(kind, tmp_path):
    model, forced = make(kind).partial_fit(ROWS), make(kind).partial_fit(ROWS).set_params(dtype="float64")
    assert types_of(model, kind) != types_of(forced, kind)
    assert str(model.describe()) == str(forced.describe()) and str(model.health_) == str(forced.health_)
    for name in LEARNED[kind]:
        np.testing.assert_array_equal(getattr(model, name), getattr(forced, name).astype(np.float32))


@kinds
def test_what_is_learned_is_what_doubles_say(kind):
    one, other = make(kind, reservoir=0).partial_fit(ROWS), make(kind, reservoir=0).partial_fit(ROWS.astype(np.float64))
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-4)
    forced = make(kind, reservoir=0, dtype="float64").partial_fit(ROWS)
    np.testing.assert_array_equal(forced.score_samples(ROWS), other.score_samples(ROWS.astype(np.float64)))


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8])
def test_narrow_rows_are_the_numbers_they_are(dtype):
    rows = np.clip(10.0 * ROWS, 0.0, 120.0).astype(dtype)
    one, other = make().partial_fit(rows), make().partial_fit(rows.astype(np.float64))
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-4, atol=1e-3)
    assert one.score_samples(rows).dtype == np.float64


@pytest.mark.parametrize("kind", ["spherical", "diag", "tied"])
def test_products_in_float32_are_near_those_in_float64(kind):
    rows, centres = RNG.normal(size=(500, 64)).astype(np.float32), RNG.normal(size=(40, 64))
    shapes = {"spherical": np.full((40, 64), 0.9), "diag": RNG.uniform(0.5, 1.0, size=(40, 64)), "tied": 0.9 * np.eye(64)}
    family = Gaussian(40, kind)
    parameters = family.make_parameters(np.zeros(64), centres, shapes[kind])
    found = [
        family.estep(parameters, np.full(40, -np.log(40.0)), Batch(X), family.zeros(64), np.empty(500))
        for X in (rows, rows.astype(np.float64))
    ]
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6) and found[0][0] != found[1][0]
    np.testing.assert_allclose(found[0][1].first, found[1][1].first, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(found[0][1].second, found[1][1].second, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_small_models_read_float32_rows_as_doubles(kind):
    rows = RNG.normal(size=(300, 2)).astype(np.float32)
    one, other = (
        hw.GaussianMixture(2, covariance_type=kind, random_state=0).partial_fit(X) for X in (rows, rows.astype(np.float64))
    )
    np.testing.assert_array_equal(one.means_, other.means_.astype(np.float32))
    assert one.score_samples(rows).dtype == np.float32 and one.predict_proba(rows).dtype == np.float32


def test_rows_far_from_zero_lose_nothing_more():
    far = (ROWS + 1000.0).astype(np.float32)
    model = make().partial_fit(far)
    np.testing.assert_allclose(model.score_samples(far), make(dtype="float64").partial_fit(far).score_samples(far), rtol=1e-4)


def test_threads_change_no_bit_and_files_go_on(tmp_path):
    rows = np.tile(ROWS, (4, 1))
    models = [make(n_threads=threads).partial_fit(rows) for threads in (1, 2)]
    np.testing.assert_array_equal(models[0].means_, models[1].means_)
    models[0].save(tmp_path / "short.hw")
    again = hw.load(tmp_path / "short.hw")
    for model in (models[0], again):
        model.partial_fit(ROWS)
    np.testing.assert_array_equal(models[0].score_samples(ROWS), again.score_samples(ROWS))


@kinds
@pytest.mark.parametrize("rows", [300, 700])
def test_files_with_float32_rows_of_a_warm_up_or_a_reservoir_can_be_loaded(kind, rows, tmp_path):
    model = make(kind).partial_fit(ROWS[:rows])
    model.save(tmp_path / "rows.hw")
    again = hw.load(tmp_path / "rows.hw").partial_fit(ROWS[rows:])
    np.testing.assert_array_equal(again.score_samples(ROWS), model.partial_fit(ROWS[rows:]).score_samples(ROWS))


def test_gaps_and_bad_values_are_told_as_ever():
    bad = ROWS.copy()
    bad[7, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        make().partial_fit(bad)
    bad[7, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        make("directions").partial_fit(bad)
    with pytest.raises(ValueError, match="dtype"):
        make(dtype="float16").partial_fit(ROWS)
    before = ROWS.copy()
    make().partial_fit(ROWS)
    np.testing.assert_array_equal(ROWS, before)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["auto", "em", "online-em"])
def test_laws_hold_for_float32_rows(algorithm):
    """Laws that hold to rounding of float64 are tested with float32 rows and products in float64."""
    rows = directions().astype(np.float32)
    check_laws(clone(hw.VonMisesFisherMixture(2, algorithm=algorithm, random_state=0)), rows)
    check_laws(hw.GaussianMixture(2, covariance_type="spherical", algorithm=algorithm, random_state=0), rows)
