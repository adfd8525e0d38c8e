"""Mixtures as outlier detectors: the conventions of scikit-learn and of PyOD."""

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import headwater as hw
from headwater.outlier import MixtureOutlier


@parametrize_with_checks([MixtureOutlier(random_state=0)])
def test_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(950, 3)), rng.uniform(-9.0, 9.0, size=(50, 3))])


def test_signs_are_those_of_other_detectors(rows):
    one = MixtureOutlier(contamination=0.05, random_state=0).fit(rows)
    other = IsolationForest(contamination=0.05, random_state=0).fit(rows)
    assert np.mean(one.predict(rows) == other.predict(rows)) > 0.95
    assert np.mean(one.predict(rows) == -1) == pytest.approx(0.05)
    np.testing.assert_array_equal(one.decision_function(rows) < 0.0, one.predict(rows) == -1)
    np.testing.assert_array_equal(one.score_samples(rows), -one.estimator_.anomaly_score(rows))
    assert make_pipeline(StandardScaler(), one).fit_predict(rows).min() == -1


def test_streams_and_other_mixtures(rows):
    streamed = MixtureOutlier(contamination=0.05, random_state=0)
    for chunk in np.array_split(rows[np.random.default_rng(1).permutation(1000)], 5):
        streamed.partial_fit(chunk)
    assert np.mean(streamed.predict(rows) == -1) == pytest.approx(0.05, abs=0.02)
    counts = np.random.default_rng(0).poisson(3.0, size=(500, 4))
    found = MixtureOutlier(hw.PoissonMixture(2, random_state=0)).fit(counts).predict([[3, 3, 3, 3], [40, 3, 3, 3]])
    assert found.tolist() == [1, -1]
    with pytest.raises(TypeError, match="estimator must have an anomaly_score"):
        MixtureOutlier(StandardScaler()).fit(rows)


def test_the_conventions_of_pyod(rows):
    pytest.importorskip("pyod")
    from headwater.outlier import PyODMixture

    detector = PyODMixture(contamination=0.05, random_state=0).fit(rows)
    assert detector.labels_.sum() == 50 == detector.predict(rows).sum()
    np.testing.assert_array_equal(detector.decision_scores_, detector.decision_function(rows))
    assert (detector.decision_scores_ > detector.threshold_).sum() == 50
    for method in ("linear", "unify"):
        chances = detector.predict_proba(rows, method=method)
        assert chances.shape == (1000, 2) and (chances.sum(axis=1) == pytest.approx(1.0))
    labels, confidence = detector.predict(rows, return_confidence=True)
    assert labels.shape == confidence.shape == (1000,)
    assert detector.get_params()["contamination"] == 0.05
    with pytest.raises(ValueError, match="contamination must be in"):
        PyODMixture(contamination=0.9)
    for wrong in ("auto", None, np.float32(0.1)):
        with pytest.raises(ValueError, match="contamination must be a float above 0"):
            PyODMixture(contamination=wrong).fit(rows)
    for estimator in (5, StandardScaler()):
        with pytest.raises(TypeError, match="estimator must have an anomaly_score"):
            PyODMixture(estimator).fit(rows)
