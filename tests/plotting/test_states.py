"""A series on the colours of its states, with dates on the axis."""

import matplotlib.dates
import numpy as np
import pandas as pd
import pytest

import headwater as hw
from headwater.plotting import states

ROWS = np.random.default_rng(0).normal(size=(120, 2)) + 6.0 * (np.arange(120)[:, None] // 40 % 2)
MONTHS = np.datetime64("2000-01") + np.arange(120)


@pytest.fixture(scope="module")
def model():
    return hw.GaussianHMM(2, random_state=0).fit(ROWS)


def test_spans_change_where_the_state_does(model):
    axes = states(model, ROWS, column=1)
    spans = [patch for patch in axes.patches if patch.get_alpha() == 0.25]
    assert [span.get_x() for span in spans] == [0, 40, 80]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), ROWS[:, 1])


def test_dates_are_given_or_those_of_a_frame(model):
    for axes in (states(model, ROWS, dates=MONTHS), states(hw.GaussianHMM(2, random_state=0).fit(ROWS), ROWS, dates=MONTHS)):
        assert isinstance(axes.xaxis.get_major_formatter(), matplotlib.dates.AutoDateFormatter)
    frame = pd.DataFrame(ROWS, columns=["a", "b"], index=pd.to_datetime(MONTHS.astype("datetime64[ns]")))
    axes = states(hw.GaussianHMM(2, random_state=0).fit(frame), frame)
    assert isinstance(axes.xaxis.get_major_formatter(), matplotlib.dates.AutoDateFormatter)


def test_targets_are_drawn():
    inputs = ROWS[:, :1]
    target = np.where(np.arange(120) // 40 % 2, 2.0, -2.0) * inputs[:, 0]
    axes = states(hw.RegressionHMM(2, random_state=0).fit(inputs, target), inputs, target)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), target)


def test_sentences(model):
    with pytest.raises(TypeError, match="model must be a hidden Markov model, got GaussianMixture"):
        states(hw.GaussianMixture(1, random_state=0).fit(ROWS), ROWS)
    with pytest.raises(ValueError, match="column must be one of the 2 of X, from 0 on, got 2"):
        states(model, ROWS, column=2)
    with pytest.raises(ValueError, match="dates must have one value for each of the 120 rows"):
        states(model, ROWS, dates=MONTHS[:5])
