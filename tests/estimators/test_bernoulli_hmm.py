"""BernoulliHMM: against enumeration of all paths, on streams, from given parameters, and its sentences."""

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import headwater as hw

CHANCES = np.array([[0.9, 0.2, 0.5], [0.1, 0.7, 0.6]])
STEPS = np.array([[0.9, 0.1], [0.2, 0.8]])


def flags(rows, seed=0, gaps=False):
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(rows) > 0.95) % 2
    X = (rng.random((rows, 3)) < CHANCES[states]).astype(float)
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, states


def by_hand(**options):
    model = hw.BernoulliHMM(2, init_params="", random_state=0, **options)
    model.startprob_, model.transmat_, model.probabilities_ = [0.3, 0.7], STEPS, CHANCES
    return model


def test_scores_and_forecasts_are_those_of_all_paths():
    X, model = flags(6, 1, gaps=True)[0], by_hand()
    logs = np.where(np.isnan(X)[:, None], 0.0, np.log(np.where(X[:, None] == 1.0, CHANCES, 1.0 - CHANCES))).sum(axis=2)
    total, ends = 0.0, np.zeros(2)
    for path in product(range(2), repeat=6):
        steps = np.prod([STEPS[a, b] for a, b in pairwise(path)])
        weight = [0.3, 0.7][path[0]] * steps * np.exp(logs[np.arange(6), path].sum())
        total, ends[path[-1]] = total + weight, ends[path[-1]] + weight
    assert model.score(X) == pytest.approx(np.log(total), rel=1e-12)
    assert_allclose(model.forecast(1, X).mean[0], ends / total @ STEPS @ CHANCES, rtol=1e-10)


@pytest.mark.parametrize("algorithm", ["auto", "em", "soem", "boem", "vb", "online-vb"])
def test_probabilities_are_found(algorithm, tmp_path):
    X, states = flags(3000, 2, gaps=True)
    model = hw.BernoulliHMM(2, algorithm=algorithm, random_state=0)
    model = model.fit(X) if algorithm in ("em", "vb") else model.partial_fit(X[:1700]).partial_fit(X[1700:])
    order = np.argsort(-model.probabilities_[:, 0])
    assert_allclose(model.probabilities_[order], CHANCES, atol=0.06)
    assert np.mean(order[states] == model.predict(X)) > 0.93
    model.save(tmp_path / "flags.hw")
    assert_array_equal(hw.load(tmp_path / "flags.hw").predict_proba(X), model.predict_proba(X))
    drawn, _ = model.sample(500, random_state=1)
    assert set(np.unique(drawn)) == {0, 1} and drawn.dtype == np.int64


def test_branches_add_up_and_booleans_are_rows():
    X, _ = flags(1600, 3)
    base = hw.BernoulliHMM(2, random_state=0).partial_fit(X[:800] == 1.0)
    merged = hw.merge([base.branch().partial_fit(X[800:1200]), base.branch().partial_fit(X[1200:])])
    assert merged.n_samples_seen_ == 1600
    assert_allclose(np.sort(merged.probabilities_[:, 0]), [0.1, 0.9], atol=0.08)


def test_sentences():
    model = by_hand()
    with pytest.raises(ValueError, match="X must hold 0 and 1 only, or NaN for what is missing, got 2"):
        model.fit([[0.0, 2.0, 1.0]] * 4)
    with pytest.raises(ValueError, match=r"probabilities_ must lie between 0 and 1, got 1\.5"):
        model.probabilities_ = [[0.5], [1.5]]
    with pytest.raises(ValueError, match="probability_prior must be between 0 and 1, got 1"):
        hw.BernoulliHMM(2, probability_prior=[0.5, 0.5, 1.0]).fit(flags(50)[0])
    with pytest.raises(ValueError, match="lengths must add up to the 50 rows of X, got 40"):
        model.fit(flags(50)[0], lengths=[40])
    with pytest.raises(ValueError, match="steps must"):
        model.forecast(0, flags(5)[0])
    assert_array_equal(model.probabilities_, CHANCES)
