"""Settings that are changed in mid-stream: what goes on, in whole streams and in shards, and in files."""

import numpy as np
import pytest

import headwater as hw

RNG = np.random.default_rng(0)
X = np.where(RNG.random((600, 1)) < 0.5, 0.0, 4.0) + RNG.normal(size=(600, 2))
DOCUMENTS = RNG.poisson(0.8, size=(400, 12)).astype(float) + np.eye(12)[RNG.integers(12, size=400)]


@pytest.mark.parametrize("change", [{"reservoir": 0}, {"algorithm": "boem"}, {"algorithm": "online-em"}], ids=str)
@pytest.mark.parametrize("rows", [20, 30, 300])
def test_shards_stop_their_search_with_the_stream(change, rows, tmp_path):
    model = hw.GaussianMixture(2, warm_up=60, random_state=0, parts=3).partial_fit(X[:300])
    model.set_params(**change).partial_fit(X[300 : 300 + rows])
    model.save(tmp_path / "model.hw")
    loaded = hw.load(tmp_path / "model.hw")
    np.testing.assert_array_equal(loaded.means_, model.means_)
    assert loaded.n_samples_seen_ == 300 + rows


def test_settings_of_a_model_hold_from_the_next_row_on():
    def learned(**change):
        model = hw.LatentDirichletAllocation(2, warm_up=60, random_state=0).partial_fit(DOCUMENTS[:200])
        return model.set_params(**change).partial_fit(DOCUMENTS[200:])

    np.testing.assert_array_equal(learned().doc_topic_prior_, np.full(2, 0.5))
    assert not np.array_equal(learned(doc_topic_prior="learn").doc_topic_prior_, np.full(2, 0.5))


def test_a_lag_holds_from_the_next_row_on():
    def scores(**change):
        model = hw.GaussianHMM(2, warm_up=120, random_state=0, algorithm=hw.OnlineEM(batch_size=30)).partial_fit(X[:300])
        return model.set_params(**change).update(X[300:])

    assert not np.array_equal(scores(), scores(lag=3))


def test_rows_are_counted_whatever_parameters_are_set():
    model = hw.GaussianHMM("auto", warm_up=500, random_state=0).partial_fit(X[:90]).set_params(half_life=-1)
    assert model.n_samples_seen_ == 90 and model.holds_rows_
