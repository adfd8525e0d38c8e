"""Errors of the loop."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import headwater as hw
from headwater.models.mixture import Mixture


@pytest.mark.parametrize("n_parts", [1, 2])
def test_statistics_that_are_not_finite_are_refused_and_the_model_stays(n_parts, monkeypatch):
    X = np.random.default_rng(0).normal(size=(900, 2))
    model = hw.GaussianMixture(2, algorithm="online-em", warm_up=100, parts=n_parts, random_state=0).partial_fit(X[:600])
    before, summarize = pickle.dumps(model.means_), Mixture.summarize

    def lose(self, *arguments, **options):
        summary = summarize(self, *arguments, **options)
        return replace(summary, statistics=summary.statistics.scaled(np.nan))

    with monkeypatch.context() as patch:
        patch.setattr(Mixture, "summarize", lose)
        with pytest.raises(ValueError, match="not finite"):
            model.partial_fit(X[600:])
    assert pickle.dumps(model.means_) == before
    assert model.n_samples_seen_ == 600
