"""A background beside the components: broken rows make no component and move no mean."""

import numpy as np
import pytest

import headwater as hw
from headwater.estimators import model_file

ALGORITHMS = ("auto", "em", "vb", "online-em", "soem", "boem", "online-vb", "quasi-bayes")


def clean(n, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) + 9.0 * rng.integers(2, size=(n, 1))


def broken(rows, every=100, far=20.0, seed=5):
    found = rows.copy()
    found[::every] = far * np.random.default_rng(seed).normal(size=found[::every].shape)
    return found


def learned(model, rows):
    return model.fit(rows) if model.algorithm in ("em", "vb") else model.partial_fit(rows)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_broken_rows_cost_their_share_and_no_more(algorithm):
    rows, fresh = clean(4000, 0), clean(4000, 1)
    options = {"n_components": 2, "algorithm": algorithm, "random_state": 0}
    best = learned(hw.GaussianMixture(**options), rows).score(fresh)
    model = learned(hw.GaussianMixture(**options, background=True), broken(rows))
    assert best - model.score(fresh) < 0.02
    assert 0.007 < model.background_weight_ < 0.014
    assert model.weights_.sum() + model.background_weight_ == pytest.approx(1.0)


def test_rows_of_the_background_are_minus_one():
    rows = broken(clean(4000, 0), far=60.0)
    model = hw.GaussianMixture(2, background=True, random_state=0).fit(rows)
    found = model.predict(rows)
    assert (found[::100] == -1).mean() > 0.9
    assert (np.delete(found, np.s_[::100]) == -1).mean() < 0.002
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1) + model.background_proba(rows), 1.0)
    assert model.predict_one([900.0, -900.0, 0.0]) == -1
    assert model.predict_one(model.means_[1]) == 1
    drawn, components = model.sample(20_000)
    assert abs((components == -1).mean() - model.background_weight_) < 0.004
    assert np.isfinite(drawn).all()


@pytest.mark.parametrize("algorithm", ["auto", "em"])
def test_a_start_is_not_made_of_broken_rows(algorithm):
    """Distant rows in a few heaps, which k-means takes for groups."""
    rng = np.random.default_rng(3)
    rows = clean(3000, 0)
    rows[::60] = np.array([[4000.0, 0.0, 0.0], [0.0, -7000.0, 1.0]])[rng.integers(2, size=50)] + 100.0 * rng.normal(
        size=(50, 3)
    )
    model = learned(hw.GaussianMixture(2, background=True, algorithm=algorithm, random_state=0), rows)
    np.testing.assert_allclose(np.sort(model.means_[:, 0]), [0.0, 9.0], atol=0.2)


def test_growth_makes_no_component_of_one_row_in_a_thousand():
    rows = broken(clean(6000, 0), every=1000, far=1000.0)
    model = hw.GaussianMixture("auto", background=True, random_state=0).partial_fit(rows)
    assert model.n_components_ == 2
    assert 2e-4 < model.background_weight_ < 3e-3


def test_rows_that_come_later_and_farther_out_are_no_ones():
    model = hw.GaussianMixture(2, background=True, random_state=0).partial_fit(clean(3000, 0))
    before = np.sort(model.means_[:, 0])
    model.partial_fit(np.full((30, 3), 1e12))
    np.testing.assert_allclose(np.sort(model.means_[:, 0]), before, atol=0.05)
    assert (model.predict(np.full((2, 3), 1e12)) == -1).all()


def test_a_given_share_is_not_learned():
    model = hw.GaussianMixture(2, background=0.05, random_state=0).fit(clean(1000, 0))
    assert model.background_weight_ == pytest.approx(0.05)


def test_models_with_a_background_are_merged_pruned_and_kept(tmp_path):
    parts = [
        hw.GaussianMixture(2, background=True, random_state=seed).partial_fit(broken(clean(3000, seed))) for seed in (0, 1)
    ]
    both = hw.merge(parts)
    assert both.n_samples_seen_ == 6000
    assert 0.006 < both.background_weight_ < 0.015
    np.testing.assert_allclose(np.sort(both.means_[:, 0]), [0.0, 9.0], atol=0.1)
    both.save(tmp_path / "both.hw")
    assert hw.load(tmp_path / "both.hw").background_weight_ == both.background_weight_
    assert both.prune(0.4).weights_.sum() + both.background_weight_ == pytest.approx(1.0)


def test_what_has_no_background_says_so():
    rows = clean(200, 0)
    with pytest.raises(AttributeError, match="background_weight_ is there with"):
        _ = hw.GaussianMixture(2).fit(rows).background_weight_
    with pytest.raises(ValueError, match="models without a background"):
        hw.GaussianMixture(2, background=True, weights_init=[0.5, 0.5]).fit(rows)
    with pytest.raises(ValueError, match="background"):
        hw.GaussianMixture(2, background=0.7).fit(rows)
    with pytest.raises(ValueError, match="moment-matching"):
        hw.GaussianMixture(2, background=True, algorithm="moment-matching").fit(rows)


def test_a_table_has_rows_that_belong_to_no_component():
    rng = np.random.default_rng(0)
    kind = rng.random(3000) < 0.4
    rows = np.column_stack(
        [rng.normal(size=3000) + 6.0 * kind, rng.poisson(np.where(kind, 12.0, 2.0)), kind ^ (rng.random(3000) < 0.1)]
    )
    odd = np.arange(3000) % 150 == 0
    rows[odd, 0], rows[odd, 1] = 500.0 * rng.normal(size=20), 5000.0
    columns = {0: "gaussian", 1: "poisson", 2: "categorical"}
    model = hw.MixedMixture(2, columns=columns, background=True, random_state=0).fit(rows)
    assert (model.predict(rows)[odd] == -1).all()
    assert (model.predict(rows)[~odd] == -1).mean() < 0.003
    np.testing.assert_allclose(np.sort(model.means_[:, 0]), [0.0, 6.0], atol=0.2)
    np.testing.assert_allclose(np.sort(model.rates_["x1"]), [2.0, 12.0], atol=0.4)
    X, components = model.sample(5000)
    assert abs((components == -1).mean() - model.background_weight_) < 0.01
    assert np.isfinite(X).all()


def test_a_background_that_no_row_belongs_to_can_be_saved_after_an_alarm():
    """What the components leave of all rows is a difference, which rounding puts below zero."""
    rng = np.random.default_rng(5)
    model = hw.GaussianMixture(
        2, half_life="auto", algorithm=hw.Auto(batch_size=40), warm_up=60, random_state=0, background=True
    )
    for step in range(11):
        rows = rng.normal(size=(70, 3)) + rng.choice([0, 6], size=(70, 1))
        if step >= 5:
            rows = rows + (step // 3) * 8 * (1 - 2 * (step % 2))
        model.partial_fit(100.0 * rows if step == 9 else rows)
        if step > 7:
            assert model_file.from_bytes(model_file.to_bytes(model)).n_samples_seen_ == 70 * (step + 1)
            assert model._state.statistics.background[0] >= 0.0
