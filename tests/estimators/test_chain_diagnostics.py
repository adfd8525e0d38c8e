"""States with a short look ahead, residuals, durations, simulations: by enumeration, and uniform for the right model."""

import chain_models
import numpy as np
import pytest
from naive import chains as naive_chains
from numpy.testing import assert_allclose
from scipy import stats

import headwater as hw
from headwater.plotting import residuals


def gaussian(k=3, **options):
    model = hw.GaussianHMM(k, init_params="", random_state=0, **options)
    model.startprob_ = np.full(k, 1.0 / k)
    model.transmat_ = np.full((k, k), 0.1 / (k - 1)) + (0.9 - 0.1 / (k - 1)) * np.eye(k)
    model.means_, model.covars_ = 2.0 * np.arange(k)[:, None], np.ones((k, 1))
    return model


@pytest.mark.parametrize("lag", [0, 1, 2, 4])
def test_states_with_a_look_ahead_are_those_of_the_rows_so_far(lag):
    model, X = gaussian(), gaussian().sample(6, random_state=1)[0]
    found = model.smooth(X, lag=lag)
    logs = stats.norm.logpdf(X, model.means_.ravel(), 1.0)
    for at in range(6):
        wanted = naive_chains.enumerate_paths(model.startprob_, model.transmat_, logs[: at + lag + 1])
        assert_allclose(found[at], wanted.states[at], rtol=1e-9, atol=1e-13)


def test_without_a_lag_all_rows_are_seen_and_sequences_end():
    model, X = gaussian(), gaussian().sample(400, random_state=2)[0]
    assert_allclose(model.smooth(X, [150, 250]), model.predict_proba(X, [150, 250]), rtol=1e-12)
    assert_allclose(model.smooth(X, [150, 250], lag=300), model.predict_proba(X, [150, 250]), rtol=1e-7, atol=1e-12)
    assert_allclose(model.smooth(X, lag=0), model.filter(X), rtol=1e-9, atol=1e-13)


def test_residuals_are_probabilities_given_the_rows_before():
    model, X = gaussian(), gaussian().sample(20, random_state=3)[0]
    found, now = model.residuals(X, kind="uniform"), model.startprob_
    for at in range(20):
        assert found[at, 0] == pytest.approx(now @ stats.norm.cdf(X[at, 0], model.means_.ravel()), rel=1e-9)
        now = model.next_state_proba(X=X[: at + 1])
    assert_allclose(model.residuals(X), stats.norm.ppf(found), rtol=1e-9)


def right_models():
    counts = hw.PoissonHMM(2, init_params="", random_state=0)
    counts.startprob_, counts.transmat_, counts.lambdas_ = [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.7], [4.0]]
    symbols = hw.CategoricalHMM(2, n_features=3, init_params="", random_state=0)
    symbols.startprob_, symbols.transmat_ = [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]
    symbols.emissionprob_ = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    groups = hw.GMMHMM(2, n_mix=2, init_params="", random_state=0)
    groups.startprob_, groups.transmat_, groups.weights_ = [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.2, 0.8]]
    groups.means_, groups.covars_ = [[[0.0], [3.0]], [[8.0], [9.0]]], np.ones((2, 2, 1))
    return {"numbers": gaussian(), "counts": counts, "symbols": symbols, "groups": groups}


@pytest.mark.parametrize("name", ["numbers", "counts", "symbols", "groups"])
def test_residuals_of_the_right_model_are_uniform_and_independent(name):
    model = right_models()[name]
    X = model.sample(4000, random_state=5)[0]
    found = model.residuals(X, kind="uniform", random_state=0).ravel()
    assert stats.kstest(found, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.05


def test_residuals_of_tables_regressions_and_autoregressions():
    table = chain_models.table_stream(400)
    mixed = hw.MixedHMM(2, columns={1: "poisson", 2: "bernoulli", 3: "categorical"}, random_state=0).fit(table)
    found = mixed.residuals(table, kind="uniform")
    np.testing.assert_array_equal(np.isnan(found), np.isnan(table))
    for column in found.T:
        assert stats.kstest(column[~np.isnan(column)], "uniform").pvalue > 1e-3
    rng = np.random.default_rng(0)
    inputs, states = rng.normal(size=(600, 1)), np.arange(600) // 60 % 2
    target = np.where(states, 3.0, -1.0) * inputs[:, 0] + 0.3 * rng.normal(size=600)
    switching = hw.RegressionHMM(2, random_state=0).fit(inputs, target)
    assert stats.kstest(switching.residuals(inputs, target).ravel(), "norm").pvalue > 1e-3
    assert switching.smooth(inputs, target, lag=2).shape == (600, 2)
    series = np.zeros((600, 1))
    for at in range(1, 600):
        series[at] = 0.8 * series[at - 1] + rng.normal()
    own = hw.AutoregressiveHMM(1, order=1, random_state=0).fit(series)
    found = own.residuals(series)
    assert np.isnan(found[0, 0])
    assert not np.isnan(found[1:]).any()
    assert stats.kstest(found[1:, 0], "norm").pvalue > 1e-3


def test_durations_and_simulations_that_go_on():
    model, past = gaussian(), np.full((10, 1), 4.0)
    assert_allclose(model.expected_durations_, 10.0)
    rows, states = model.forecast(3, past).sample(3000, random_state=0, return_states=True)
    assert rows.shape == (3000, 3, 1)
    assert states.shape == (3000, 3)
    assert_allclose(np.bincount(states[:, 2], minlength=3) / 3000, model.forecast(3, past).state_proba[2], atol=0.03)
    assert_allclose(rows[states == 2].mean(), 4.0, atol=0.1)


def test_the_picture_shows_laws_that_are_too_narrow():
    axes = residuals(np.random.default_rng(0).normal(size=2000) * 2.0)
    heights = [bar.get_height() for bar in axes.patches if bar.get_width() < 0.1]
    assert heights[0] > 2.0 > heights[10]


def test_sentences():
    model, X = gaussian(), np.zeros((5, 1))
    with pytest.raises(ValueError, match="lag must be a whole number of at least 0, or None for all rows, got -1"):
        model.smooth(X, lag=-1)
    with pytest.raises(ValueError, match="kind must be 'normal' or 'uniform', got 'pit'"):
        model.residuals(X, kind="pit")
    with pytest.raises(ValueError, match="values must hold at least one residual, got none"):
        residuals([np.nan])
