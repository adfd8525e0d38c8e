"""GaussianHMM on rows with missing values: answers by enumeration of all paths, and parameters near those of complete rows."""

import numpy as np
import pandas as pd
import pytest
from chain_models import a_stream, gapped_stream
from hidden_markov_models import MEANS, START, STEPS, by_hand, dense, every_kind
from naive import chains as naive
from scipy.stats import multivariate_normal

import headwater as hw
from headwater.estimators import model_file

LENGTHS = [5, 1, 3]
SHORT = gapped_stream(9, seed=3)
SHORT[2] = np.nan


def log_densities(kind, X):
    """(T, K): the marginal density of what was observed under each state; 0 where nothing was."""
    out = np.zeros((len(X), 2))
    for i, x in enumerate(X):
        seen = ~np.isnan(x)
        for k in range(2 if seen.any() else 0):
            out[i, k] = multivariate_normal(MEANS[k][seen], dense(kind)[k][np.ix_(seen, seen)]).logpdf(x[seen])
    return out


@every_kind
def test_answers_are_those_of_all_paths(kind):
    model, logs = by_hand(kind), log_densities(kind, SHORT)
    assert np.isnan(SHORT).any() and not np.isnan(SHORT).all(axis=1)[0]
    ends = np.cumsum(LENGTHS)
    wanted = [naive.enumerate_paths(START, STEPS, logs[end - size : end]) for size, end in zip(LENGTHS, ends, strict=True)]
    assert model.score(SHORT, LENGTHS) == pytest.approx(sum(one.score for one in wanted), rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(SHORT, LENGTHS), np.concatenate([one.states for one in wanted]), atol=1e-10)
    best, path = model.decode(SHORT, LENGTHS)
    assert best == pytest.approx(sum(one.best for one in wanted), rel=1e-10)
    if all(one.ties == 1 for one in wanted):
        assert path.tolist() == [state for one in wanted for state in one.path]
    _, filters, scores = naive.forward_backward(START, STEPS, logs)
    np.testing.assert_allclose(model.filter(SHORT), filters, atol=1e-10)
    np.testing.assert_allclose(model.score_steps(SHORT), scores, atol=1e-10)
    assert model.score_one(SHORT[0]) == pytest.approx(scores[0], abs=1e-10)


@every_kind
@pytest.mark.parametrize("algorithm", ["em", "vb"])
def test_passes_never_lose(kind, algorithm):
    """Exact passes raise the likelihood of what was observed, or its bound."""
    X = gapped_stream(300, seed=5)
    model = hw.GaussianHMM(2, kind, algorithm=algorithm, n_iter=30, tol=0.0, min_covar=0.0, random_state=0).fit(X, [200, 100])
    assert len(model.monitor_.history) > 3
    assert np.diff(model.monitor_.history).min() > -1e-7


@pytest.mark.covering("algorithm")
@every_kind
@pytest.mark.parametrize("algorithm", ["auto", "online-em", "online-vb", "soem", "boem"])
def test_a_fifth_of_the_values_costs_little(kind, algorithm):
    whole, states = a_stream(3000, seed=1)
    gapped = whole.copy()
    gapped[np.random.default_rng(0).random(whole.shape) < 0.2] = np.nan
    other, _ = a_stream(1000, seed=2)
    models = [hw.GaussianHMM(2, kind, algorithm=algorithm, random_state=0).partial_fit(X) for X in (whole, gapped)]
    assert models[1].score(other) > models[0].score(other) - 0.02 * len(other)
    order = np.argsort(models[1].means_[:, 0])
    assert np.mean(order[states] == models[1].predict(gapped)) > 0.9


def test_gaps_of_every_kind_are_the_same():
    X = gapped_stream(200, seed=8)
    model = hw.GaussianHMM(2, random_state=0).fit(X)
    objects = np.where(np.isnan(X), None, X.astype(object))
    masked = np.ma.masked_invalid(X)
    frame = pd.DataFrame(X).convert_dtypes()
    assert frame.isna().to_numpy().any()
    for rows in (objects, masked, frame):
        assert hw.GaussianHMM(2, random_state=0).fit(rows).score(X) == model.score(X)
        np.testing.assert_array_equal(model.predict(rows), model.predict(X))


def test_health_says_what_was_missing():
    X = gapped_stream(600, seed=9)
    X[np.random.default_rng(1).random(600) < 0.7, 1] = np.nan
    found = str(hw.GaussianHMM(2, "diag", random_state=0).partial_fit(X).health_)
    assert "of the values were missing" in found and "State" in found
    assert "missing" not in str(hw.GaussianHMM(2, random_state=0).partial_fit(a_stream(300)[0]).health_)


@pytest.mark.parametrize("params", ["stm", "stc", "mc"])
def test_what_is_not_to_be_learned_stays(params):
    X = gapped_stream(300, seed=4)
    model = by_hand("diag", params=params, n_iter=5).fit(X)
    assert np.isfinite(model.score(X))
    assert np.allclose(model.means_, MEANS) == ("m" not in params)
    assert np.allclose(model.transmat_, STEPS) == ("t" not in params)


def test_a_race_knows_gaps(tmp_path):
    X = gapped_stream(500, seed=6)
    model = hw.GaussianHMM("auto", random_state=0).partial_fit(X)
    assert model.n_components_ >= 2
    model.save(tmp_path / "race.hw")
    assert hw.load(tmp_path / "race.hw").score(X) == model.score(X)


@pytest.mark.parametrize("algorithm", ["online-em", "auto"])
def test_gaps_that_begin_late_are_saved_and_merged(algorithm, tmp_path):
    whole, gapped = a_stream(900, seed=3)[0], gapped_stream(900, seed=4)
    base = hw.GaussianHMM(2, "full", algorithm=algorithm, warm_up=200, random_state=0).partial_fit(whole[:300])
    late, never = base.branch().partial_fit(gapped[:300], key="a"), base.branch().partial_fit(whole[300:600])
    late.save(tmp_path / "late.hw")
    again = hw.load(tmp_path / "late.hw").partial_fit(gapped[300:600], key="a")
    np.testing.assert_array_equal(again.means_, late.partial_fit(gapped[300:600], key="a").means_)
    one, other = hw.merge([late, never]), hw.merge([never, late])
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-9)
    assert np.isfinite(one.score(gapped))


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_a_column_that_a_state_never_sees_is_no_nan(kind):
    """Maximum likelihood knows nothing of it: neither a mean nor a variance."""
    rows = np.array([[np.nan, -0.5, -0.4, np.nan], [1.8, 1.1, -0.3, 0.8]])
    model = hw.GaussianHMM(2, covariance_type=kind, algorithm="em", random_state=0).fit(rows)
    assert np.isfinite(model.means_).all() and np.isfinite(model.covars_).all()
    assert np.isfinite(model_file.from_bytes(model_file.to_bytes(model)).score(rows))


@pytest.mark.parametrize("params", ["tmc", "stm", "st"])
def test_what_is_not_learned_can_be_saved_beside_rows_with_gaps(params):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(120, 3)) + 8.0 * rng.integers(2, size=(120, 1))
    rows[rng.random(rows.shape) < 0.2] = np.nan
    model = hw.GaussianHMM(2, params=params, warm_up=60, random_state=0).partial_fit(rows)
    again = model_file.from_bytes(model_file.to_bytes(model))
    np.testing.assert_array_equal(again.partial_fit(rows).means_, model.partial_fit(rows).means_)
