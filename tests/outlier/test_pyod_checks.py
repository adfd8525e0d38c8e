"""PyODMixture by the checks that PyOD makes of its own detectors: attributes, shapes, ranges, ranks, rejection, copies."""

import warnings

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

pytest.importorskip("pyod")

from pyod.utils.data import generate_data

from headwater.outlier import PyODMixture

# What PyOD itself says of old methods, and of its own defaults.
pytestmark = pytest.mark.filterwarnings("ignore:Function fit_predict", "ignore:The cost of rejection")


@pytest.fixture(scope="module")
def data():
    return generate_data(n_train=200, n_test=100, n_features=10, contamination=0.1, random_state=42)


@pytest.fixture(scope="module")
def detector(data):
    return PyODMixture(contamination=0.1, random_state=0).fit(data[0])


def test_what_was_learned_is_there_and_ranks_new_rows(detector, data):
    train, test, _, odd = data
    assert detector.decision_scores_.shape == detector.labels_.shape == (len(train),) and np.isfinite(detector.threshold_)
    assert detector.labels_.sum() == 20
    assert roc_auc_score(odd, detector.decision_function(test)) >= 0.8
    assert detector.predict(test).shape == odd.shape


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_probabilities_and_confidences_lie_between_0_and_1(detector, data, method):
    chances, confidence = detector.predict_proba(data[1], method=method, return_confidence=True)
    labels, sure = detector.predict(data[1], return_confidence=True)
    for one in (chances, confidence, sure, detector.predict_confidence(data[1])):
        assert one.min() >= 0.0 and one.max() <= 1.0 and len(one) == len(data[1])
    assert labels.shape == sure.shape == data[3].shape
    with pytest.raises(ValueError, match="something"):
        detector.predict_proba(data[1], method="something")


def test_ranks_have_the_order_of_scores(detector, data):
    scores = detector.decision_function(data[1])
    for normalized, most in ((False, len(data[0]) + 1), (True, 1.01)):
        ranks = detector._predict_rank(data[1], normalized=normalized)
        np.testing.assert_allclose(rankdata(ranks), rankdata(scores), atol=3)
        assert ranks.min() > -0.1 and ranks.max() < most


def test_rows_can_be_rejected(detector, data):
    labels, (rate, bound, cost) = detector.predict_with_rejection(data[1], return_stats=True)
    assert labels.shape == data[3].shape and set(labels) <= {-2, 0, 1}
    assert 0.0 <= rate <= 1.0 and 0.0 <= bound <= 1.0 and cost >= 0.0


def test_old_calls_and_copies_work(data):
    detector = PyODMixture(contamination=0.1, random_state=0)
    assert detector.fit_predict(data[0]).shape == data[2].shape
    for scoring in ("roc_auc_score", "prc_n_score"):
        assert 0.8 <= detector.fit_predict_score(data[1], data[3], scoring=scoring) <= 1.0
    with warnings.catch_warnings(), pytest.raises(NotImplementedError):
        detector.fit_predict_score(data[1], data[3], scoring="something")
    assert clone(detector).get_params() == detector.get_params()
