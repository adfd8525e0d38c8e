"""Typicality: light components are left out, and a row is as odd as it is under the others or under their sum."""

import inspect

import every_model
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import headwater as hw
from headwater.core.batch import Batch
from headwater.policies.typicality import kept_components, typicality_of, usual_chain


def slow_scores(model, X, rate=0.05):
    """The definition, row by row, from weights, means and covariances alone."""
    weights, means, covariances = model.weights_, model.means_, model.covariances_
    order, kept, left_out = np.argsort(weights), list(range(len(weights))), 0.0
    for k in order[:-1]:
        left_out += weights[k]
        if weights[k] < rate and left_out <= 4.0 * rate:
            kept.remove(k)
    share = weights[kept] / weights[kept].sum()
    several = np.array([[multivariate_normal.logpdf(x, means[k], covariances[k]) for k in kept] for x in X])
    centre = share @ means[kept]
    spread = sum(
        w * (covariances[k] + np.outer(means[k] - centre, means[k] - centre)) for w, k in zip(share, kept, strict=True)
    )
    one = multivariate_normal.logpdf(X, centre, spread)
    return -np.minimum(logsumexp(several + np.log(share), axis=1), one)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    groups = [rng.normal(size=(900, 3)), rng.normal(size=(900, 3)) + 6.0, 0.1 * rng.normal(size=(40, 3)) - 9.0]
    return rng.permutation(np.vstack(groups))


def test_the_score_is_its_definition(rows):
    model = hw.GaussianMixture(3, random_state=0, algorithm="em", reg_covar=1e-9).fit(rows)
    np.testing.assert_allclose(model.anomaly_score(rows[:200]), slow_scores(model, rows[:200]), rtol=1e-6)
    everything = slow_scores(model, rows[:200], rate=0.0)
    np.testing.assert_allclose(model.anomaly_score(rows[:200], rate=0.0), everything, rtol=1e-6)


@pytest.mark.parametrize("options", [{"covariance_type": kind} for kind in ("full", "tied", "diag", "spherical", "factor")] + [
    {"algorithm": word} for word in ("soem", "online-vb", "quasi-bayes", "moment-matching")
] + [{"background": True}, {"half_life": "auto"}, {"parts": 2}, {"scale_columns": True}, {"reservoir": 0}])  # fmt: skip
def test_odd_rows_with_a_component_of_their_own_are_odd(rows, options):
    model = hw.GaussianMixture(3, random_state=0, n_threads=1, **options)
    model = model.fit(rows) if options.get("covariance_type") == "factor" else model.partial_fit(rows)
    scores, odd = model.anomaly_score(rows), rows[:, 0] < -8.0
    assert scores[odd].min() > scores[~odd].max()


@pytest.mark.parametrize("kind", [one for one in every_model.KINDS if one not in ("topics", "spectra", "arrival")])
def test_every_mixture_and_chain_has_a_score(kind):
    model, chunk = every_model.learned(kind), every_model.stream_of(kind)[0]
    taken = inspect.signature(model.anomaly_score).parameters
    given = {name: chunk[name] for name in ("X", "y", "lengths") if name in taken and name in chunk.keys()}  # noqa: SIM118
    before = repr(model)
    scores = model.anomaly_score(**given)
    silent = np.isnan(scores)  # of an autoregressive chain the first row, which is conditioned upon
    assert silent.sum() == (kind == "autoregressive")
    assert np.isfinite(scores[~silent]).all() and np.ptp(scores[~silent]) > 0.0 and repr(model) == before
    np.testing.assert_array_equal(scores, model.anomaly_score(**given))


def test_the_lightest_components_are_left_out_first_and_not_too_many():
    np.testing.assert_array_equal(kept_components(np.array([1.0]), 0.05), [0])
    np.testing.assert_array_equal(kept_components(np.array([0.04, 0.96]), 0.05), [1])
    np.testing.assert_array_equal(kept_components(np.array([0.05, 0.95]), 0.05), [0, 1])
    assert len(kept_components(np.full(30, 1 / 30), 0.05)) == 24  # at most a fifth of all
    np.testing.assert_array_equal(kept_components(np.array([0.5, 0.0, 0.5]), 0.0), [0, 1, 2])
    np.testing.assert_array_equal(kept_components(np.zeros(2), 0.05), [1])


def test_constant_columns_ties_and_gaps_have_numbers(rows):
    flat = np.column_stack([rows, np.zeros(len(rows))])
    assert np.isfinite(hw.GaussianMixture(3, random_state=0).fit(flat).anomaly_score(flat)).all()
    same = np.ones((300, 2))
    assert np.ptp(hw.GaussianMixture(2, random_state=0).partial_fit(same).anomaly_score(same)) == 0.0
    gaps = rows.copy()
    gaps[::3, 1] = np.nan
    model = hw.GaussianMixture(3, random_state=0).partial_fit(gaps)
    assert np.isfinite(model.anomaly_score(gaps)).all()
    assert np.isfinite(model.anomaly_score([[1e99, -1e99, 0.0]])).all()


def test_documents_are_scored_by_the_word():
    words = every_model.stream_of("multinomial")[0].X.toarray()
    model = hw.MultinomialMixture(2, random_state=0).partial_fit(words)
    np.testing.assert_allclose(model.anomaly_score(words), model.anomaly_score(7.0 * words), rtol=0.3)
    assert np.isnan(model.anomaly_score(np.zeros((1, 6)))).all()


@pytest.mark.parametrize("rate", [-0.1, 0.5, np.nan, "much", True, None])
def test_a_rate_that_is_none_is_refused(rows, rate):
    for model in (hw.GaussianMixture(2, random_state=0).fit(rows[:400]), hw.GaussianHMM(2, random_state=0).fit(rows[:400])):
        with pytest.raises(ValueError, match=r"rate must be a number from 0 to less than 0\.5"):
            model.anomaly_score(rows, rate=rate)


def test_a_chain_without_its_light_state_scores_by_the_others():
    rng = np.random.default_rng(0)
    states = np.r_[np.arange(3000) // 100 % 2, np.full(30, 2), np.arange(1000) // 100 % 2]
    rows = rng.normal(size=(len(states), 1)) + np.array([0.0, 8.0, 30.0])[states][:, None]
    model = hw.GaussianHMM(3, random_state=0).fit(rows)
    scores = model.anomaly_score(rows)
    assert scores[states == 2].min() > scores[states < 2].max()
    parameters = model._parameters_seen()
    small, _ = usual_chain(model._model, parameters, model._state_shares())
    assert small.n_components == 2
    stuck, _ = usual_chain(model._model, parameters, np.array([1.0, 0.0, 0.0]), 0.05)
    assert stuck.n_components in (1, 3)


def test_saved_and_merged_models_score_the_same(rows, tmp_path):
    base = hw.GaussianMixture(3, random_state=0, reservoir=0).partial_fit(rows)
    parts = [base.branch().partial_fit(rows[at::2]) for at in range(2)]
    one, other = hw.merge(parts), hw.merge(parts[::-1])
    np.testing.assert_allclose(one.anomaly_score(rows), other.anomaly_score(rows), rtol=1e-6)
    one.save(tmp_path / "model.hw")
    np.testing.assert_array_equal(hw.load(tmp_path / "model.hw").anomaly_score(rows), one.anomaly_score(rows))


@pytest.mark.parametrize("kind", [hw.GaussianMixture, hw.MultinomialMixture], ids=lambda kind: kind.__name__)
def test_rows_are_as_odd_with_a_label_as_without(kind, rows):
    """Kernels use labels as indices, and the component of a label may be left out."""
    X = np.abs(rows).round()
    model = kind(3, random_state=0).fit(X)
    runtime = model._runtime
    seen = runtime.read()
    law = typicality_of(runtime.learner.model, seen.parameters, seen.belief, runtime.learner.algorithm.report)
    labels = np.full(len(X), len(law.laws[-1][1].log_weights), dtype=np.int64)
    np.testing.assert_array_equal(law.scores(Batch(X, labels=labels)), law.scores(Batch(X)))


@pytest.mark.parametrize("make", [hw.GaussianMixture, hw.MixedMixture, hw.GaussianHMM, hw.SemiMarkov, hw.MixedHMM])
def test_rows_without_a_value_say_nothing_in_whatever_unit(make):
    rows = 1e-4 * np.random.default_rng(0).normal(size=(400, 2))  # densities far above 1
    gaps = rows.copy()
    gaps[[3, 77]] = np.nan
    model = make(2, random_state=0).fit(gaps)
    known, silent = model._score_sketch().rows, np.flatnonzero(np.isnan(model.anomaly_score(gaps)))
    np.testing.assert_array_equal(silent, [3, 77])
    assert known == 398
    assert np.isnan(model.anomaly_pvalue(gaps)[silent]).all()
    assert not model.decide(gaps, rate=0.3)[silent].any()
    assert np.isfinite(model.anomaly_groups(gaps, window=10)["score"]).all()
    with pytest.raises(ValueError, match="at least one row that can be scored"):
        model.label_anomalies(gaps[silent], [1, 1])


def test_regressions_that_miss_something_say_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = X[:, 0] + 1e-4 * rng.normal(size=300)
    y[5] = np.nan
    model = hw.RegressionHMM(2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(model.anomaly_score(X, y))), [5])
    with pytest.raises(ValueError, match="requires y"):
        model.decide(X, rate=0.1)
