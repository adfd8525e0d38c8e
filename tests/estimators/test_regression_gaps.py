"""RegressionMixture with gating='input' and missing inputs or targets."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import headwater as hw


def simulate(n, seed=0, missing=0.2, width=2):
    """Return inputs and targets of two regressions with separate inputs, complete and with values missing at random."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    X = rng.normal(size=(n, width)) @ np.linalg.cholesky(0.5 * np.eye(width) + 0.5).T + 4.0 * group[:, None]
    y = np.where(group == 0, X.sum(axis=1), 3.0 - 2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)
    gone = rng.random((n, width + 1)) < missing
    gone[gone.all(axis=1)] = False
    return X, y, np.where(gone[:, :-1], np.nan, X), np.where(gone[:, -1], np.nan, y)


def joint_laws(model):
    """Return weight, mean and covariance of inputs and target of each component, computed by hand."""
    for k, weight in enumerate(model.weights_):
        mean, covariance, slope = model.input_means_[k], model.input_covariances_[k], model.coef_[k]
        whole = np.append(mean, mean @ slope + model.intercept_[k])
        cross = covariance @ slope
        corner = slope @ cross + model.noise_variance_[k]
        yield weight, whole, np.block([[covariance, cross[:, None]], [cross[None], np.array([[corner]])]])


def log_joint(model, rows):
    """(n, K): log-density of what was observed under each component, with its weight; log-weight alone if nothing was."""
    out = np.empty((len(rows), len(model.weights_)))
    for k, (weight, mean, covariance) in enumerate(joint_laws(model)):
        for i, row in enumerate(rows):
            o = ~np.isnan(row)
            density = multivariate_normal(mean[o], covariance[np.ix_(o, o)]).logpdf(row[o]) if o.any() else 0.0
            out[i, k] = np.log(weight) + density
    return out


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("algorithm", ["em", "vb"])
def test_answers_are_those_of_marginals_and_conditionals(algorithm, intercept):
    _, _, X, y = simulate(400)
    model = hw.RegressionMixture(2, gating="input", algorithm=algorithm, fit_intercept=intercept, random_state=0).fit(X, y)
    X, y = X[:60], y[:60]
    rows = np.column_stack([X, y])
    inputs = np.column_stack([X, np.full(60, np.nan)])
    joint, prior = log_joint(model, rows), log_joint(model, inputs)
    wanted = logsumexp(joint, axis=1) - logsumexp(prior, axis=1)
    np.testing.assert_allclose(model.score_samples(X, y), wanted, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X, y), np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), atol=1e-8)
    shares = np.exp(prior - logsumexp(prior, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), shares, atol=1e-8)
    means, variances = np.empty((60, 2)), np.empty((60, 2))
    for k, (_, mean, covariance) in enumerate(joint_laws(model)):
        for i, x in enumerate(X):
            o = np.append(~np.isnan(x), False)
            gain = covariance[-1, o] @ np.linalg.inv(covariance[np.ix_(o, o)]) if o.any() else np.zeros(0)
            means[i, k] = mean[-1] + gain @ (inputs[i, o] - mean[o])
            variances[i, k] = covariance[-1, -1] - gain @ covariance[o, -1]
    found, deviation = model.predict(X, return_std=True)
    expected = (shares * means).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    np.testing.assert_allclose(deviation**2, (shares * (variances + (means - expected[:, None]) ** 2)).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(model.predict_component_means(X), means, rtol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("algorithm", ["em", "vb"])
def test_passes_never_lose(algorithm, intercept):
    _, _, X, y = simulate(300, missing=0.3)
    model = hw.RegressionMixture(
        2, gating="input", algorithm=algorithm, fit_intercept=intercept, tol=0.0, max_iter=40, reg_covar=0.0, reg_noise=0.0,
        random_state=0,
    )  # fmt: skip
    with pytest.warns(Warning, match="converge"):
        model.fit(X, y)
    assert np.diff(model.lower_bounds_).min() > -1e-9


@pytest.mark.parametrize("algorithm", ["auto", "em", "online-em", "online-vb", "boem", "soem"])
def test_gaps_cost_little(algorithm):
    X, y, gapped_X, gapped_y = simulate(2000)
    other, target, *_ = simulate(1000, seed=1)
    models = [hw.RegressionMixture(2, gating="input", algorithm=algorithm, random_state=0) for _ in range(2)]
    for model, rows in zip(models, ((X, y), (gapped_X, gapped_y)), strict=True):
        model.fit(*rows) if algorithm == "em" else model.partial_fit(*rows)
    scores = [model.score_samples(other, target).mean() for model in models]
    assert scores[1] > scores[0] - 0.05
    assert models[1].score(other, target) > models[0].score(other, target) - 0.01


def test_a_missing_target_tells_of_the_inputs_alone():
    X, y, *_ = simulate(1000)
    target = np.where(np.random.default_rng(0).random(1000) < 0.9, np.nan, y)
    few = ~np.isnan(target)
    model = hw.RegressionMixture(2, gating="input", algorithm="em", random_state=0).fit(X, target)
    alone = hw.RegressionMixture(2, gating="input", algorithm="em", random_state=0).fit(X[few], y[few])
    order, other = np.argsort(model.input_means_[:, 0]), np.argsort(alone.input_means_[:, 0])
    inputs = hw.GaussianMixture(2, algorithm="em", random_state=0).fit(X)
    wanted = inputs.means_[np.argsort(inputs.means_[:, 0])]
    assert np.abs(model.input_means_[order] - wanted).max() < 0.3 * np.abs(alone.input_means_[other] - wanted).max()
    np.testing.assert_allclose(model.coef_[order], alone.coef_[other], atol=0.05)
    np.testing.assert_array_equal(model.score_samples(X, np.full(1000, np.nan)), 0.0)


def test_streams_are_saved_merged_and_read_row_by_row(tmp_path):
    _, _, X, y = simulate(900)
    base = hw.RegressionMixture(2, gating="input", warm_up=200, reservoir=200, random_state=0).partial_fit(X[:300], y[:300])
    ones = [base.branch().partial_fit(X[part], y[part]) for part in (slice(300, 600), slice(600, 900))]
    merged = hw.merge(ones)
    assert merged.n_samples_seen_ == 900 and np.isfinite(merged.predict(X)).all()
    ones[0].save(tmp_path / "gaps.hw")
    again = hw.load(tmp_path / "gaps.hw")
    np.testing.assert_array_equal(again.predict(X), ones[0].predict(X))
    again.learn_one(X[0], y[0]).learn_one([None, 1.0], None)
    assert np.isfinite(again.score_one([None, 1.0], 2.0)) and again.n_samples_seen_ == 602
    assert "of the values were missing" in str(merged.health_)
    assert np.isfinite(again.update(X[:50], y[:50])).all()


def test_refusals_are_one_sentence():
    whole, target, X, y = simulate(200)
    fixed = hw.RegressionMixture(2, random_state=0, warm_up=60).fit(whole, target)
    before = fixed.coef_
    for call in (fixed.fit, fixed.partial_fit, fixed.score_samples, fixed.update):
        with pytest.raises(ValueError, match=r"X contains NaN \(first in row \d+\): .*gating='input'"):
            call(X, target)
    with pytest.raises(ValueError, match="gating='input'"):
        fixed.predict(X)
    with pytest.raises(ValueError, match="y contains NaN"):
        fixed.partial_fit(whole, y)
    np.testing.assert_array_equal(fixed.coef_, before)
    with pytest.raises(ValueError, match="no closed form"):
        hw.RegressionMixture(2, gating="input", algorithm="quasi-bayes", warm_up=60).partial_fit(X, y)
    with pytest.raises(ValueError, match="no closed form"):
        hw.RegressionMixture(2, gating="input", warm_up=60).fit(X, y).predictive_score_samples(X, y)
    with pytest.raises(ValueError, match="infinity"):
        hw.RegressionMixture(2, gating="input").fit(X, np.where(np.isnan(y), np.inf, y))


def test_given_coefficients_and_growth_know_gaps():
    _, _, X, y = simulate(1500)
    given = hw.RegressionMixture(2, gating="input", coef_init=[[1.0, 1.0], [-2.0, 0.0]], max_iter=0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(given.coef_, [[1.0, 1.0], [-2.0, 0.0]])
    grown = hw.RegressionMixture("auto", gating="input", random_state=0).partial_fit(X, y)
    assert grown.n_components_ >= 2
