"""GaussianMixtures are merged."""

import numpy as np
import pytest
from gaussian_models import assert_same_model, simulate
from sklearn.exceptions import NotFittedError

import headwater as hw


class Renamed(hw.GaussianMixture):
    """Another class of model."""


def test_merged_branches_are_close_to_one_stream():
    X, _ = simulate("full", 16_000)
    base = hw.GaussianMixture(3, random_state=0).partial_fit(X[:4000])
    parts = [base.branch().partial_fit(X[4000 + 4000 * part : 8000 + 4000 * part]) for part in range(3)]
    merged = hw.merge(iter(parts))
    together = hw.GaussianMixture(3, random_state=0).partial_fit(X)
    assert merged.n_samples_seen_ == together.n_samples_seen_ == 16_000
    np.testing.assert_allclose(merged.weight_concentration_.sum(), together.weight_concentration_.sum())
    assert_same_model(merged, together, rtol=0.0, atol=0.01)
    assert abs(merged.score(X) - together.score(X)) < 1e-4
    assert [part.n_samples_seen_ for part in (base, *parts)] == [4000, 8000, 8000, 8000]
    assert merged.partial_fit(X).n_samples_seen_ == 32_000
    assert type(merged) is hw.GaussianMixture


def test_a_branch_leaves_its_model_alone():
    X, _ = simulate("full", 3000)
    model = hw.GaussianMixture(3, random_state=0).partial_fit(X[:500])  # still warming up
    before = model.means_
    branch = model.branch()
    assert_same_model(branch, model)
    branch.partial_fit(X[500:] + 5.0)
    np.testing.assert_array_equal(model.means_, before)
    assert (model.n_samples_seen_, branch.n_samples_seen_) == (500, 3000)


def test_models_that_do_not_belong_together_are_not_merged():
    X, _ = simulate("full", 300)
    wide = np.hstack([X, X])

    def make(rows=X, **settings):
        return hw.GaussianMixture(2, **{"warm_up": 100, "random_state": 0, **settings}).partial_fit(rows)

    base = make()
    renamed = Renamed(2, warm_up=100, random_state=0).partial_fit(X)
    for models, words in [
        ([], "models must hold at least one model"),
        ([base, make(wide)], "one width, got 2 and 4 columns"),
        ([base, renamed], "one class, got GaussianMixture and Renamed"),
        ([base, make(algorithm="online-em")], "one algorithm"),
        ([base, make(covariance_type="diag")], "one covariance_type, got 'full' and 'diag'"),
        ([base, make(half_life=50.0)], "one half_life, got None and 50.0"),
        ([make(half_life=50.0), make(half_life="auto")], "one half_life, got 50.0 and 'auto'"),
    ]:
        with pytest.raises(ValueError, match=words) as caught:
            hw.merge(models)
        assert "\n" not in str(caught.value)
    with pytest.raises(NotFittedError):
        hw.merge([base, hw.GaussianMixture(2)])
    for models in ([base, {}], [{}, base]):
        with pytest.raises(TypeError, match="headwater models, got dict"):
            hw.merge(models)


def test_models_of_other_priors_are_not_merged():
    X, _ = simulate("full", 300)
    one, other = (
        hw.GaussianMixture(1, warm_up=100, mean_precision_prior=strength, random_state=0).partial_fit(X)
        for strength in (1.0, 1000.0)
    )
    with pytest.raises(ValueError, match="models must have one mean_precision_prior"):
        hw.merge([one, other])


def test_a_model_is_not_merged_with_itself():
    model = hw.GaussianMixture(2, warm_up=100, random_state=0).partial_fit(simulate("full", 300)[0])
    with pytest.raises(ValueError, match="models must"):
        hw.merge([model, model])


def test_merging_one_model_is_a_copy():
    X, _ = simulate("full", 3000)
    model = hw.GaussianMixture(3, random_state=0).partial_fit(X)
    merged = hw.merge([model])
    assert_same_model(merged, model)
    merged.partial_fit(X + 1.0)
    assert model.n_samples_seen_ == 3000
