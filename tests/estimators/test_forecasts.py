"""Forecasts of chains: against the enumeration of all paths, their coverage, and sentences."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats

import headwater as hw

START, STEPS = np.array([0.5, 0.3, 0.2]), np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.0, 0.4, 0.6]])
MEANS = np.array([[0.0, 1.0], [3.0, -1.0], [6.0, 0.5]])
COVARS = np.array([[[1.0, 0.4], [0.4, 2.0]], [[0.5, 0.0], [0.0, 1.0]], [[2.0, -0.6], [-0.6, 1.0]]])
RATES = np.array([[1.0, 6.0], [4.0, 0.5], [9.0, 2.0]])
EMISSIONS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]])


def gaussian():
    model = hw.GaussianHMM(3, "full", init_params="", random_state=0)
    model.startprob_, model.transmat_, model.means_, model.covars_ = START, STEPS, MEANS, COVARS
    return model


def counts():
    model = hw.PoissonHMM(3, init_params="", random_state=0)
    model.startprob_, model.transmat_, model.lambdas_ = START, STEPS, RATES
    return model


def symbols():
    model = hw.CategoricalHMM(3, init_params="", random_state=0)
    model.startprob_, model.transmat_, model.emissionprob_ = START, STEPS, EMISSIONS
    return model


def enumerate_futures(model, past, steps):
    """Return all paths of states over past and future, and their probabilities given the past: K^(n + h) of them."""
    logs = {"GaussianHMM": _gaussian_logs, "PoissonHMM": _count_logs, "CategoricalHMM": _symbol_logs}
    seen = logs[type(model).__name__](past)
    paths, weights = [], []
    for path in product(range(3), repeat=len(past) + steps):
        weight = START[path[0]] * np.prod([STEPS[one, other] for one, other in pairwise(path)])
        weights.append(weight * np.exp(sum(seen[t, path[t]] for t in range(len(past)))))
        paths.append(path[len(past) :])
    weights = np.array(weights)
    return np.array(paths), weights / weights.sum()


def _gaussian_logs(X):
    return np.column_stack([stats.multivariate_normal.logpdf(X, MEANS[k], COVARS[k]) for k in range(3)]).reshape(len(X), 3)


def _count_logs(X):
    return np.column_stack([stats.poisson.logpmf(X, RATES[k]).sum(axis=1) for k in range(3)])


def _symbol_logs(X):
    return np.log(EMISSIONS.T[X[:, 0]])


def test_the_law_of_gaussian_rows_is_the_sum_over_all_paths():
    past = np.array([[0.2, 0.5], [2.5, -1.0], [3.2, 0.0]])
    paths, weights = enumerate_futures(gaussian(), past, 4)
    found, deviations = gaussian().forecast(4, past), np.sqrt(np.diagonal(COVARS, axis1=1, axis2=2))
    for step in range(4):
        shares = np.array([weights[paths[:, step] == k].sum() for k in range(3)])
        np.testing.assert_allclose(found.state_proba[step], shares, atol=1e-13)
        np.testing.assert_allclose(found.mean[step], shares @ MEANS, rtol=1e-12)
        second = shares @ (MEANS**2 + deviations**2)
        np.testing.assert_allclose(found.variance[step], second - (shares @ MEANS) ** 2, rtol=1e-11)
        for q in (0.01, 0.5, 0.95):
            value = found.quantile(q)[step]
            np.testing.assert_allclose(shares @ stats.norm.cdf(value, MEANS, deviations), q, atol=1e-11)
        row = np.array([1.0, -0.3])
        density = shares @ np.exp(_gaussian_logs(row[None])[0])
        assert found.log_density(np.tile(row, (4, 1)))[step] == pytest.approx(np.log(density), rel=1e-11)


def test_the_law_of_counts_is_the_sum_over_all_paths():
    past = np.array([[0, 5], [4, 1], [3, 0]])
    paths, weights = enumerate_futures(counts(), past, 4)
    found = counts().forecast(4, past.astype(float))
    for step in range(4):
        shares = np.array([weights[paths[:, step] == k].sum() for k in range(3)])
        np.testing.assert_allclose(found.mean[step], shares @ RATES, rtol=1e-12)
        np.testing.assert_allclose(found.variance[step], shares @ (RATES + RATES**2) - (shares @ RATES) ** 2, rtol=1e-11)
        for q in (0.05, 0.5, 0.99):
            value = found.quantile(q)[step]
            assert ((shares @ stats.poisson.cdf(value, RATES)) >= q).all()
            assert ((shares @ stats.poisson.cdf(value - 1, RATES)) < q).all()


def test_the_law_of_symbols_is_the_sum_over_all_paths():
    past = np.array([[0], [1], [1]])
    paths, weights = enumerate_futures(symbols(), past, 4)
    found = symbols().forecast(4, past)
    for step in range(4):
        shares = np.array([weights[paths[:, step] == k].sum() for k in range(3)])
        np.testing.assert_allclose(found.probabilities[step], shares @ EMISSIONS, atol=1e-13)
        assert found.mean[step, 0] == (shares @ EMISSIONS).argmax()
    assert np.isnan(found.quantile(0.5)).all()


def test_sampled_paths_have_the_law_of_all_paths():
    """Steps depend on one another: the mean of the product of two of them is that of all paths."""
    past = np.array([[0.2, 0.5], [2.5, -1.0]])
    paths, weights = enumerate_futures(gaussian(), past, 4)
    drawn = gaussian().forecast(4, past).sample(40_000)
    assert drawn.shape == (40_000, 4, 2)
    wanted = np.einsum("p,pi,pj->ij", weights, MEANS[paths[:, 1]], MEANS[paths[:, 3]])
    found = drawn[:, 1, :, None] * drawn[:, 3, None, :]
    error = found.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(found.mean(axis=0) - wanted) < 4.5 * error).all()
    np.testing.assert_array_equal(gaussian().forecast(4, past).sample(5), gaussian().forecast(4, past).sample(5))


def test_a_stream_goes_on_where_it_ended():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 1)) + 6.0 * (np.arange(900)[:, None] // 50 % 2)
    model = hw.GaussianHMM(2, random_state=0).partial_fit(rows, key="a").partial_fit(rows[:60], key="b")
    np.testing.assert_allclose(model.forecast(1, key="a").state_proba[0], model.next_state_proba("a"), rtol=1e-12)
    np.testing.assert_allclose(model.forecast(3, key="b").state_proba[0], model.next_state_proba("b"), rtol=1e-12)
    mean, covariance = model.next_distribution("a")
    found = model.forecast(1, key="a")
    np.testing.assert_allclose(found.mean[0], mean, rtol=1e-12)
    np.testing.assert_allclose(found.variance[0], np.diag(covariance), rtol=1e-12)
    model = hw.GaussianHMM(2, random_state=0).fit(rows)
    np.testing.assert_allclose(model.forecast(1).state_proba[0], model.next_state_proba(), rtol=1e-12)
    far = model.forecast(5000).state_proba[-1]
    np.testing.assert_allclose(far, model.get_stationary_distribution(), atol=1e-9)


def test_sentences():
    model = hw.GaussianHMM(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.2]] * 30)
    for steps in (0, -3, 1.5, True, "two", 2**21):
        with pytest.raises(ValueError, match="steps must be a whole number from 1 to 1,048,576, got "):
            model.forecast(steps)
    with pytest.raises(ValueError, match="key must be that of an open sequence, got 'x'; open are: none"):
        model.forecast(2, key="x")
    with pytest.raises(ValueError, match="future must be None, since GaussianHMM has no inputs, got some"):
        model.forecast(2, future=[[1.0], [2.0]])
    with pytest.raises(ValueError, match="key names a sequence that was learned, and X are the rows of another"):
        model.partial_fit([[0.0]], key="a").forecast(2, [[1.0]], key="a")
    found = model.forecast(2)
    for q in (0.0, 1.0, [0.5, 1.5], [[0.5]], []):
        with pytest.raises(ValueError, match="q must be a probability between 0 and 1, or a list of some, got "):
            found.quantile(q)
    with pytest.raises(ValueError, match=r"rows must have shape \(2, 1\), got \(3, 1\)"):
        found.log_density([[1.0]] * 3)
    with pytest.raises(ValueError, match="size must be a whole number of at least 1, got 0"):
        found.sample(0)


# How often intervals hold what comes


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 5])
def test_intervals_of_gaussian_series_hold_as_often_as_they_say(step):
    """4,000 forecasts of a model that was learned from 8,000 other rows."""
    rng, truth = np.random.default_rng(step), gaussian()
    learned = hw.GaussianHMM(3, "full", random_state=0, n_iter=50).fit(truth.sample(8000, random_state=5)[0])
    rows, _ = truth.sample(4000 * 30, random_state=int(rng.integers(2**31)))
    inside = np.zeros(2)
    for past in rows.reshape(4000, 30, 2):
        low, high = learned.forecast(step, past[: 30 - step]).interval(0.9)
        inside += (low[-1] <= past[-1]) & (past[-1] <= high[-1])
    assert (inside / 4000 >= 0.88).all()
    assert (inside / 4000 <= 0.92).all()


@pytest.mark.slow
def test_randomised_transforms_of_counts_are_uniform():
    rng, truth = np.random.default_rng(3), counts()
    learned = hw.PoissonHMM(3, random_state=0, n_iter=50).fit(truth.sample(20_000, random_state=5)[0])
    rows, _ = truth.sample(4000 * 20, random_state=9)
    found = np.empty((4000, 2))
    for at, past in enumerate(rows.reshape(4000, 20, 2)):
        shares, x = learned.forecast(1, past[:-1]).state_proba[0], past[-1]
        upto = shares @ stats.poisson.cdf(x, learned.lambdas_)
        below = shares @ stats.poisson.cdf(x - 1, learned.lambdas_)
        found[at] = below + rng.random(2) * (upto - below)
    for column in found.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_series_that_grow_beyond_all_numbers_are_refused():
    """Their moments would be no numbers."""
    rows = 2.0 ** np.arange(300) * (1.0 + 0.01 * np.random.default_rng(0).normal(size=300))
    model = hw.AutoregressiveHMM(2, random_state=0).fit(rows[:, None])
    assert np.isfinite(model.forecast(20).mean).all()
    with pytest.raises(ValueError, match=r"grows without end under its coefficients, and no number can hold step \d+"):
        _ = model.forecast(1000).mean
    with pytest.raises(ValueError, match="ask for fewer steps"):
        model.forecast(2000).sample(3, random_state=0)
