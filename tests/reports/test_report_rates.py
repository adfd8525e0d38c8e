"""How many rows a report says would be odd at which rate."""

import numpy as np

import headwater as hw
from headwater.reports.rates import RATES, RateCounts


def test_rates_are_those_of_decisions(tmp_path):
    rng = np.random.default_rng(0)
    model = hw.GaussianMixture(1, random_state=0).partial_fit(rng.normal(size=(6000, 2)))
    rows = np.vstack([rng.normal(size=(995, 2)), np.full((5, 2), 9.0)])
    counted = RateCounts(model)
    counted.take({"X": rows})
    lines = counted.lines()
    assert [line.odd for line in lines] == [int(model.decide(rows, rate=rate).sum()) for rate in RATES]
    assert lines[0].odd >= 5 and lines[1].expected == 1.0
    assert [line.extrapolated for line in lines] == [True, False, False, False]
    page = hw.report(model, rows, tmp_path / "page.html")
    assert "How many at which rate" in page and "finer than the learned rows show" in page


def test_models_without_scores_say_nothing(tmp_path):
    rng = np.random.default_rng(0)
    model = hw.GaussianHMM(2, random_state=0).fit(rng.normal(size=(300, 1)))
    assert not RateCounts(model).lines()
    assert "How many at which rate" not in hw.report(model, rng.normal(size=(50, 1)), tmp_path / "page.html")
