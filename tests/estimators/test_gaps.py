"""GaussianMixture answers about rows with gaps, whatever marks a missing value."""

import numpy as np
import pandas as pd
import pytest
from sklearn.mixture import GaussianMixture as Other

import headwater as hw


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(600, 3)) @ rng.normal(size=(3, 3)) + 6.0 * rng.integers(2, size=(600, 1))


@pytest.fixture(scope="module")
def model(rows):
    return hw.GaussianMixture(2, random_state=0).fit(rows)


@pytest.fixture
def gapped(rows):
    found = rows[:40].copy()
    found[np.random.default_rng(1).random(found.shape) < 0.3] = np.nan
    found[7] = np.nan
    return found


def test_a_gap_is_a_column_that_is_not_there(model, rows):
    """Rows without a column score as under the mixture of the other columns."""
    kept = [0, 2]
    other = Other(2).fit(rows[:, kept])
    other.weights_, other.means_ = model.weights_, model.means_[:, kept]
    other.covariances_ = model.covariances_[:, kept][:, :, kept]
    other.precisions_cholesky_ = np.swapaxes(np.linalg.inv(np.linalg.cholesky(other.covariances_)), 1, 2)
    gapped = rows.copy()
    gapped[:, 1] = np.nan
    np.testing.assert_allclose(model.score_samples(gapped), other.score_samples(rows[:, kept]), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(gapped), other.predict_proba(rows[:, kept]), rtol=1e-7, atol=1e-12)
    np.testing.assert_array_equal(model.predict(gapped), other.predict(rows[:, kept]))


def test_a_row_without_a_value_says_nothing(model, gapped):
    assert model.score_samples(gapped)[7] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(model.predict_proba(gapped)[7], model.weights_)
    assert model.predictive_score_samples(gapped)[7] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(model.predictive_score_samples(gapped)).all()


def test_missing_values_of_any_kind_are_the_same(model, gapped):
    wanted = model.score_samples(gapped)
    missing = np.isnan(gapped)
    objects = np.where(missing, None, gapped)
    frame = pd.DataFrame(gapped)
    for given in (
        objects, objects.tolist(), np.where(missing, pd.NA, gapped), frame, frame.convert_dtypes(), frame.astype(object),
        frame.astype("Float64"), np.ma.MaskedArray(np.where(missing, 0.0, gapped), missing),
    ):  # fmt: skip
        np.testing.assert_array_equal(model.score_samples(given), wanted)
    whole = [model.score_one(row) for row in gapped]
    np.testing.assert_allclose(whole, wanted, rtol=1e-12)
    assert model.predict_one(objects[0]) == model.predict(gapped)[0]


def test_chunks_and_threads_change_nothing(model, rows):
    gapped = np.tile(rows, (20, 1))
    gapped[np.random.default_rng(2).random(gapped.shape) < 0.2] = np.nan
    whole = model.score_samples(gapped)
    np.testing.assert_array_equal(hw.GaussianMixture(2, n_threads=1, random_state=0).fit(rows).score_samples(gapped), whole)
    parts = np.concatenate([model.score_samples(part) for part in np.array_split(gapped, 7)])
    np.testing.assert_allclose(parts, whole, rtol=1e-12)


def test_what_is_no_number_is_refused(model):
    for wrong, sentence in (
        ([[1.0, np.inf, np.nan]], "infinity"), ([[1.0, "text", None]], "numbers"), ([[1e200, np.nan, 0.0]], "rescale"),
        ([[np.nan, 1.0]], "features"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            model.score_samples(wrong)


def test_inputs_are_left_alone(model, gapped):
    kept = gapped.copy()
    model.predict_proba(gapped)
    np.testing.assert_array_equal(gapped, kept)
