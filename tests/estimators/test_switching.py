"""RegressionHMM and AutoregressiveHMM: against statsmodels and enumeration, as streams, in files, and their sentences."""

import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from naive import linear_gaussian as naive

import headwater as hw
from headwater.estimators.lagged_rows import lag_rows

START, STEPS = np.array([0.3, 0.7]), np.array([[0.9, 0.1], [0.2, 0.8]])


def switching_rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    states = (np.arange(n) // 60) % 2
    X = rng.normal(size=(n, 2))
    return X, np.where(states, X @ [1.0, -2.0] + 3.0, X @ [-1.0, 0.5]) + np.where(states, 1.0, 0.3) * rng.normal(size=n)


def series(n=600, seed=0, d=1):
    rng = np.random.default_rng(seed)
    x = np.zeros((n, d))
    for t in range(1, n):
        x[t] = (0.8 if t // 60 % 2 else -0.4) * x[t - 1] + (1.0 if t // 60 % 2 else 0.4) * rng.normal(size=d)
    return x


def regression_by_hand():
    model = hw.RegressionHMM(2, init_params="", random_state=0)
    model.startprob_, model.transmat_ = START, STEPS
    model.coef_, model.intercept_, model.noise_variance_ = [[1.0, -2.0], [-0.5, 0.3]], [2.0, 0.5], [1.2, 0.3]
    return model


def autoregression_by_hand(order=2, d=1):
    model, rng = hw.AutoregressiveHMM(2, order, init_params="", random_state=0), np.random.default_rng(7)
    model.startprob_, model.transmat_ = START, STEPS
    model.coef_ = 0.6 / (order * d) * rng.normal(size=(2, order, d, d))
    model.intercept_ = rng.normal(size=(2, d))
    root = rng.normal(size=(2, d, d))
    model.covars_ = root @ np.swapaxes(root, 1, 2) + 0.3 * np.eye(d)
    return model


def statsmodels_score(peer, start, coefficients, variances):
    """Log-likelihoods by statsmodels of each row, at parameters by the names it has for them."""
    values = dict(zip(peer.param_names, np.zeros(len(peer.param_names)), strict=True))
    values |= {"p[0->0]": STEPS[0, 0], "p[1->0]": STEPS[1, 0], **coefficients}
    values |= {f"sigma2[{k}]": value for k, value in enumerate(variances)}
    peer.initialize_known(start)
    return peer.loglikeobs(np.array([values[name] for name in peer.param_names]))


def test_scores_of_a_regression_are_those_of_statsmodels():
    api = pytest.importorskip("statsmodels.tsa.api")
    X, y = switching_rows()
    model = regression_by_hand()
    peer = api.MarkovRegression(y, 2, trend="c", exog=X, switching_variance=True)
    named = {f"const[{k}]": model.intercept_[k] for k in range(2)}
    named |= {f"x{j + 1}[{k}]": model.coef_[k, j] for k in range(2) for j in range(2)}
    model.startprob_ = START @ STEPS @ STEPS  # the law that statsmodels is given is that of two rows before
    wanted = statsmodels_score(peer, START, named, model.noise_variance_)
    np.testing.assert_allclose(model.score_steps(X, y), wanted, rtol=1e-10, atol=1e-10)
    assert model.score(X, y) == pytest.approx(wanted.sum(), rel=1e-10)


def test_scores_of_an_autoregression_are_those_of_statsmodels():
    """Of order 1, conditioned on the first row. (Beyond, statsmodels 0.15 takes the variance of the state one row before.)"""
    api = pytest.importorskip("statsmodels.tsa.api")
    x, model = series(), autoregression_by_hand(1)
    model.intercept_ = np.zeros((2, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = api.MarkovAutoregression(x[:, 0], 2, order=1, trend="n", switching_ar=True, switching_variance=True)
    named = {f"ar.L{lag + 1}[{k}]": model.coef_[k, lag, 0, 0] for k in range(2) for lag in range(1)}
    wanted = statsmodels_score(peer, START, named, model.covars_[:, 0, 0])
    model.startprob_ = START @ STEPS
    found = model.score_steps(x)
    assert found[0] == 0.0
    np.testing.assert_allclose(found[1:], wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_fit_is_no_worse_than_that_of_statsmodels(seed):
    api = pytest.importorskip("statsmodels.tsa.api")
    X, y = switching_rows(400, seed)
    model = hw.RegressionHMM(2, random_state=0, n_iter=300, tol=1e-6).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = api.MarkovRegression(y, 2, trend="c", exog=X, switching_variance=True).fit(search_reps=5)
    assert model.score(X, y) > peer.llf - 1e-6  # whose initial law is the stationary one


@pytest.mark.parametrize("order", [1, 3])
def test_lags_are_those_of_a_loop(order):
    rows, lengths = np.random.default_rng(0).normal(size=(40, 2)), [20, 2, 1, 17]
    found, _ = lag_rows(rows, np.repeat([-1, -21, -23, -24], lengths), order, {})
    np.testing.assert_array_equal(found, naive.lagged(rows, lengths, order))


@pytest.mark.parametrize(("order", "d"), [(1, 1), (2, 2)])
def test_moments_of_an_autoregression_are_those_of_all_paths(order, d):
    model, past = autoregression_by_hand(order, d), np.random.default_rng(1).normal(size=(5, d))
    found, first = model.forecast(4, past), model.next_state_proba(X=past)
    mean, second = np.zeros((4, d)), np.zeros((4, d))
    for path in product(range(2), repeat=4):
        weight = first[path[0]] * np.prod([STEPS[one, other] for one, other in pairwise(path)])
        rows, errors = list(past), []  # how the noise of each step is in the row
        for state in path:
            rows.append(model.intercept_[state] + sum(model.coef_[state, lag] @ rows[-1 - lag] for lag in range(order)))
            own = [sum((model.coef_[state, lag] @ errors[-1 - lag][at] for lag in range(min(order, len(errors)))),
                       np.zeros((d, d))) for at in range(4)]  # fmt: skip
            own[len(errors)] = own[len(errors)] + np.linalg.cholesky(model.covars_[state])
            errors.append(own)
        for step in range(4):
            mean[step] += weight * rows[5 + step]
            second[step] += weight * (rows[5 + step] ** 2 + sum(np.diag(one @ one.T) for one in errors[step]))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(found.variance, second - mean**2, rtol=1e-9)
    drawn = found.sample(40_000)
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - mean) < 4.5 * error).all()
    for q in (0.1, 0.5, 0.9):
        shares = (drawn <= found.quantile(q)).mean(axis=0)
        assert (np.abs(shares - q) < 0.03).all()


def test_the_next_row_of_an_autoregression_is_exact():
    model, past = autoregression_by_hand(2, 2), np.random.default_rng(1).normal(size=(5, 2))
    row = np.array([[0.3, -0.2]])
    with_row = model.score_steps(np.vstack([past, row]))[-1]
    assert model.forecast(1, past).log_density(row)[0] == pytest.approx(with_row, rel=1e-10)


def test_a_forecast_of_a_regression_is_the_mixture_at_the_given_inputs():
    X, y = switching_rows(50)
    model, future = regression_by_hand(), np.array([[0.5, -1.0], [2.0, 0.0], [0.0, 0.0]])
    found, states = model.forecast(3, X, y, future=future), model.next_state_proba(X=X, y=y)
    for step in range(3):
        means = model.intercept_ + model.coef_ @ future[step]
        assert found.mean[step, 0] == pytest.approx(states @ means, rel=1e-11)
        spread = states @ (model.noise_variance_ + means**2) - (states @ means) ** 2
        assert found.variance[step, 0] == pytest.approx(spread, rel=1e-10)
        states = states @ STEPS
    drawn = found.sample(40_000)[:, :, 0]
    assert (np.abs(drawn.mean(axis=0) - found.mean[:, 0]) < 4.5 * drawn.std(axis=0) / 200.0).all()


@pytest.mark.parametrize("parts", [1, 7, 40])
def test_how_a_stream_is_cut_changes_nothing(parts, tmp_path):
    x, (X, y) = series(500, d=2), switching_rows(500)
    one, other = (hw.AutoregressiveHMM(2, 2, warm_up=100, lag=10, random_state=0, algorithm=hw.OnlineEM(batch_size=50))
                  for _ in range(2))  # fmt: skip
    one.partial_fit(x, key="a")
    for at, part in enumerate(np.array_split(x, parts)):
        other.partial_fit(part, key="a")
        if at == parts // 2:
            other.save(tmp_path / "m.hw")
            other = hw.load(tmp_path / "m.hw")
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.forecast(3, key="a").mean, one.forecast(3, key="a").mean, rtol=1e-9)
    whole, cut = (hw.RegressionHMM(2, warm_up=100, lag=10, random_state=0) for _ in range(2))
    whole.partial_fit(X, y)
    for part in np.array_split(np.arange(500), parts):
        cut.partial_fit(X[part], y[part])
    np.testing.assert_allclose(cut.coef_, whole.coef_, rtol=1e-9, atol=1e-12)


def test_keys_names_and_missing_rows():
    pandas = pytest.importorskip("pandas")
    X, y = switching_rows(400)
    table = pandas.DataFrame(X, columns=["heat", "wind"])
    model = hw.RegressionHMM(2, random_state=0).partial_fit(table, y, key=np.repeat(["a", "b"], 200))
    assert list(model.feature_names_in_) == ["heat", "wind"]
    assert model.open_sequences_ == ["a", "b"]
    gone = y.copy()
    gone[7] = np.nan
    assert model.score_steps(table, gone)[7] == 0.0
    x = series(100)
    x[50] = np.nan
    scores = autoregression_by_hand().score_steps(x)
    assert np.flatnonzero(scores == 0.0).tolist() == [0, 1, 50, 51, 52]


def test_sentences():
    X, y = switching_rows(100)
    model = hw.RegressionHMM(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="future must hold the inputs of the next 3 rows, 2 columns, got None"):
        model.forecast(3)
    with pytest.raises(ValueError, match=r"future must have shape \(3, 2\), got \(2, 2\)"):
        model.forecast(3, future=X[:2])
    with pytest.raises(ValueError, match="future must have no missing values, got some"):
        model.forecast(1, future=[[np.nan, 1.0]])
    with pytest.raises(ValueError, match="lengths must add up to the 100 rows of X, got 90"):
        model.fit(X, y, lengths=[90])
    with pytest.raises(ValueError, match="y"):
        model.fit(X, y[:50])
    with pytest.raises(ValueError, match="params must name all of 'cin', which are learned together, or none of them, got"):
        hw.RegressionHMM(2, params="stc").fit(X, y)
    with pytest.raises(ValueError, match="noise_variance_ must be positive, got -1"):
        hw.RegressionHMM(2).noise_variance_ = [1.0, -1.0]
    series_model = hw.AutoregressiveHMM(2, 2, random_state=0).fit(series(200))
    with pytest.raises(ValueError, match="X must end with 2 whole rows to forecast from, as order says, got fewer"):
        series_model.forecast(2, [[1.0]])
    with pytest.raises(ValueError, match="key must be that of an open sequence, got 'x'"):
        series_model.forecast(2, key="x")
    with pytest.raises(ValueError, match="covars_ must hold covariances, which are symmetric and positive definite"):
        hw.AutoregressiveHMM(1).covars_ = [[[1.0, 2.0], [2.0, 1.0]]]


@pytest.mark.parametrize("d", [1, 2])
def test_states_that_differ_in_their_slopes_alone_are_not_said_to_be_the_same(d):
    rng = np.random.default_rng(0)
    states = (np.arange(1200) // 100) % 2
    X = rng.normal(size=(1200, d))
    y = np.where(states, X[:, 0], -X[:, 0]) + 0.5 * rng.normal(size=1200)
    assert not hw.RegressionHMM(2, random_state=0).fit(X, y).health_.of_kind("duplicated")
    for t in range(1, 1200):
        X[t] += np.where(states[t], 0.8, -0.8) * X[t - 1]
    assert not hw.AutoregressiveHMM(2, random_state=0).fit(X).health_.of_kind("duplicated")


def test_states_are_apart_as_the_laws_of_targets_are_where_the_inputs_are():
    X, y = switching_rows()
    model = hw.RegressionHMM(2, random_state=0).fit(X, y)
    apart, _ = model._describer._checks(np.array([300.0, 300.0]), 4.0).divergences()
    expected = np.zeros((2, 2))
    shares = model.predict_proba(X, y)
    for k, j in product(range(2), repeat=2):  # KL of normal laws, averaged over the rows of each state
        means = X @ model.coef_.T + model.intercept_
        for one, other in ((k, j), (j, k)):
            v, w = model.noise_variance_[[one, other]]
            divergence = 0.5 * (v / w - 1.0 - np.log(v / w) + (means[:, one] - means[:, other]) ** 2 / w)
            expected[k, j] += np.average(divergence, weights=shares[:, one])
    np.testing.assert_allclose(apart, expected, rtol=1e-2, atol=1e-9)


def test_states_of_several_columns_are_apart_as_normal_laws_are():
    model = hw.AutoregressiveHMM(2, random_state=0).fit(series(d=3))
    apart, _ = model._describer._checks(np.array([300.0, 300.0]), 9.0).divergences()
    moments, expected = model._design_moments(), np.zeros((2, 2))
    for k, j in product(range(2), repeat=2):
        for one, other in ((k, j), (j, k)):
            precision = np.linalg.inv(model.covars_[other])
            away = model._emissions.coef[one] - model._emissions.coef[other]
            logs = np.linalg.slogdet(model.covars_[other])[1] - np.linalg.slogdet(model.covars_[one])[1]
            fit = np.trace(precision @ model.covars_[one]) + np.trace(precision @ away @ moments[one] @ away.T)
            expected[k, j] += 0.5 * (fit - 3.0 + logs)
    np.testing.assert_allclose(apart, expected, rtol=1e-6, atol=1e-9)


def test_descriptions_have_coefficients():
    X, y = switching_rows()
    model = hw.RegressionHMM(2, random_state=0).fit(X, y)
    for one in model.describe().components:
        values = {value.name: value.value for value in one.values}
        assert list(values) == ["intercept", "x0", "x1", "noise"]
        np.testing.assert_allclose([values["x0"], values["x1"]], model.coef_[one.index])
    lags = hw.AutoregressiveHMM(2, order=3, random_state=0).fit(series())
    assert [value.name for value in lags.describe().components[0].values][1:] == ["lag 1", "lag 2", "lag 3", "noise"]
    assert "lag 3" in repr(lags)
