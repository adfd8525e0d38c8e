"""Rows whose squares, in the units of their columns, no number can hold are refused when they come; the model is as it was."""

import numpy as np
import odd_rows
import pytest

import headwater as hw
from headwater.estimators import model_file


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("algorithm", ["auto", "online-em"])
@pytest.mark.parametrize("kind", [hw.GaussianMixture, hw.RegressionMixture])
def test_rows_that_wait_for_their_batch_are_refused_at_once(kind, algorithm, parts):
    """They would be folded when the model is read, or after rows that are not to blame."""
    rng = np.random.default_rng(0)
    options = {"scale_columns": True} if "scale_columns" in kind().get_params() else {}
    model = odd_rows.blank(kind, algorithm, parts=parts, **options)
    tiny, far = odd_rows.ROWS["tiny"](150, 4, rng), rng.normal(size=(70, 4))
    far[[7, 40]] *= 1e99
    with np.errstate(all="ignore"):
        model.partial_fit(**odd_rows.CHUNKS[kind](tiny))
        before = model_file.to_bytes(model)
        try:
            model.partial_fit(**odd_rows.CHUNKS[kind](far))
        except ValueError as error:
            assert "the model is as it was" in str(error)
            assert model_file.to_bytes(model) == before
        else:
            assert not options
        assert model_file.from_bytes(model_file.to_bytes(model)).n_samples_seen_ == model.n_samples_seen_
        assert all(np.isfinite(getattr(model, name)).all() for name in model._traits.answers)


@pytest.mark.parametrize("algorithm", ["auto", "soem", "online-em"])
def test_rows_that_wait_for_those_after_them_are_refused_at_once(algorithm):
    rng = np.random.default_rng(0)
    model = odd_rows.blank(hw.GaussianHMM, algorithm, scale_columns=True)
    far = rng.normal(size=(70, 4))
    far[[7, 40]] *= 1e99
    with np.errstate(all="ignore"):
        model.partial_fit(odd_rows.ROWS["tiny"](150, 4, rng))
        with pytest.raises(ValueError, match="the model is as it was"):
            model.partial_fit(far)
        assert model.n_samples_seen_ == 150
        model.partial_fit(odd_rows.ROWS["tiny"](150, 4, rng))
        assert all(np.isfinite(getattr(model, name)).all() for name in model._traits.answers)
