"""P-values, thresholds and decisions of every model, and along streams."""

import inspect

import every_model
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import headwater as hw
from headwater.policies.online_testing import DECAYS, FIRST_WEALTH, SHARES, STEP, Follower, Series
from headwater.policies.testing import benjamini_hochberg


def gamma(t):
    """Share of the wealth that test t (from 1) gets."""
    return np.sum(SHARES * DECAYS * (1.0 - DECAYS) ** (t - 1.0))


def slow_lord(pvalues, level):
    """LORD++, from its definition."""
    times, found = [], []
    for t, p in enumerate(pvalues, start=1):
        wealth = FIRST_WEALTH * level * gamma(t)
        wealth += sum((level * (1 - FIRST_WEALTH) if not j else level) * gamma(t - at) for j, at in enumerate(times))
        found.append(p <= wealth)
        times += [t] if found[-1] else []
    return np.array(found)


def slow_follower(pvalues, rate):
    nats, found = -np.log(rate), []
    for p in pvalues:
        found.append(min(-np.log(p), 30.0) >= nats)
        nats += STEP * (found[-1] - rate)
    return np.array(found)


@pytest.fixture(scope="module")
def pvalues():
    rng = np.random.default_rng(0)
    return np.where(rng.random(1500) < 0.05, 1e-5, 1.0) * rng.random(1500)


def test_the_wealth_is_spent_once():
    assert np.sum(SHARES * (1.0 - (1.0 - DECAYS) ** 2.0**30)) == pytest.approx(1.0)  # of all tests
    assert np.sum([gamma(t) for t in range(1, 500)]) == pytest.approx(np.sum(SHARES * (1.0 - (1.0 - DECAYS) ** 499)))


def test_decisions_along_a_stream_are_their_definitions(pvalues):
    series, threshold, rejected, odd = Series.begin(0.1), Follower.begin(0.02), [], []
    for part in np.split(pvalues, [1, 300, 301, 1000]):
        series, some = series.take(part)
        threshold, others = threshold.take(part)
        rejected, odd = [*rejected, some], [*odd, others]
    np.testing.assert_array_equal(np.concatenate(rejected), slow_lord(pvalues, 0.1))
    np.testing.assert_array_equal(np.concatenate(odd), slow_follower(pvalues, 0.02))
    assert series.tests == threshold.rows == 1500


def test_benjamini_and_hochberg(pvalues):
    from scipy.stats import false_discovery_control

    np.testing.assert_array_equal(benjamini_hochberg(pvalues, 0.1), false_discovery_control(pvalues) <= 0.1)


@pytest.mark.parametrize("kind", [one for one in every_model.KINDS if one not in ("topics", "spectra", "arrival")])
def test_every_mixture_and_chain_decides(kind, tmp_path):
    model, chunk = every_model.learned(kind), every_model.stream_of(kind)[0]
    taken = inspect.signature(model.anomaly_score).parameters
    given = {name: chunk[name] for name in chunk.keys() if name in taken}  # noqa: SIM118
    model.calibrate(**given)
    pvalues = model.anomaly_pvalue(**given)
    known = pvalues[np.isfinite(pvalues)]
    assert ((known > 0.0) & (known <= 1.0)).all()
    assert np.mean(known <= 0.3) == pytest.approx(0.3, abs=0.1)  # the rows themselves
    model.decide_next(**given, rate=0.1)
    model.save(tmp_path / "model.hw")
    loaded = hw.load(tmp_path / "model.hw")
    for one in (model, loaded):
        np.testing.assert_array_equal(one.anomaly_pvalue(**given), pvalues)
    np.testing.assert_array_equal(model.decide_next(**given, rate=0.1), loaded.decide_next(**given, rate=0.1))
    np.testing.assert_array_equal(model.decide(**given, fdr=0.2), loaded.decide(**given, fdr=0.2))


@pytest.fixture
def model():
    return hw.GaussianMixture(1, random_state=0).fit(np.random.default_rng(0).normal(size=(30_000, 2)))


def test_the_rate_follows_drift(model):
    rng = np.random.default_rng(1)
    odd = np.concatenate([model.decide_next((1.0 + step / 40) * rng.normal(size=(1000, 2)), rate=0.02) for step in range(40)])
    assert np.mean(odd) == pytest.approx(0.02, rel=0.1)
    assert np.mean([model.decide(1.9 * rng.normal(size=(1000, 2)), rate=0.02)]) > 0.1  # a threshold that stands still


def test_few_discoveries_are_false(model):
    rng, false, found = np.random.default_rng(1), [], []
    for _ in range(40):
        rows, odd = rng.normal(size=(1000, 2)), rng.random(1000) < 0.03
        rows[odd] += 5.0
        copy = model.branch()
        said = np.concatenate([copy.decide_next(part, fdr=0.1) for part in np.split(rows, 4)])
        false, found = [*false, np.mean(~odd[said]) if said.any() else 0.0], [*found, np.mean(said[odd])]
    assert np.mean(false) <= 0.1 + 2.0 * np.std(false) / np.sqrt(40)
    assert np.mean(found) > 0.8


def test_bad_requests_are_refused(model):
    rows, known = np.zeros((2, 2)), model._runtime
    for options, words in (
        ({}, "one of rate and fdr"),
        ({"rate": 0.1, "fdr": 0.1}, "one of rate and fdr"),
        ({"rate": 0.0}, "rate must be a number between 0 and 1, got 0.0"),
        ({"fdr": "x"}, "fdr must be a number"),
    ):
        for method in (model.decide, model.decide_next):
            with pytest.raises(ValueError, match=words):
                method(rows, **options)
    with pytest.raises(ValueError, match="rate must be a number"):
        model.threshold(True)
    assert model._runtime is known
    swept = hw.GaussianMixture(1, algorithm="online-vb").partial_fit(np.random.default_rng(0).normal(size=(9000, 2)))
    with pytest.raises(ValueError, match="has kept no scores of usual rows"):
        swept.anomaly_pvalue(rows)
    assert swept.calibrate(rows + 1.0).anomaly_pvalue(rows).shape == (2,)
    with pytest.raises(ValueError, match="once the warm-up is over"):
        hw.GaussianMixture(1).partial_fit(rows + np.array([[0.0], [1.0]])).decide_next(rows, rate=0.1)


def test_what_a_model_does_not_have_is_refused(model):
    rows = np.zeros((2, 2))
    with pytest.raises(ValueError, match="y must be None, since GaussianMixture has no target"):
        model.decide(rows, [0.0, 1.0], rate=0.1)
    with pytest.raises(ValueError, match="lengths must be None, since GaussianMixture has no sequences"):
        model.anomaly_groups(rows, lengths=[2])
    with pytest.raises(KeyError, match="no column 'host': there are 'first'"):
        model.anomaly_groups(rows)["host"]


def test_chains_that_were_set_by_hand_have_no_stream(tmp_path):
    model = hw.BernoulliHMM(2)
    with pytest.raises(NotFittedError, match="or set probabilities_, startprob_, transmat_"):
        model.forecast(3)
    model.startprob_, model.transmat_, model.probabilities_ = [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.1], [0.9]]
    rows = np.array([[1.0], [0.0], [np.nan]])
    assert model.n_marked_ == 0 and model.forecast(3).mean.shape == (3, 1)
    np.testing.assert_array_equal(np.isnan(model.anomaly_score(rows)), [False, False, True])
    for ask in (
        lambda: model.decide(rows, rate=0.1),
        lambda: model.decide_next(rows, rate=0.1),
        lambda: model.label_anomalies(rows, [1, 0, None]),
        lambda: model.anomaly_groups(rows),
        lambda: model.calibrate(rows),
        lambda: model.branch(),
        lambda: model.save(tmp_path / "model.hw"),
    ):
        with pytest.raises(NotFittedError, match="this BernoulliHMM has learned no rows"):
            ask()
