"""The series of a chain in a report: one column on the colours of its states, thinned, with gaps and dates."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from every_model import KINDS, learned, stream_of

import headwater as hw
from headwater.core.chunk import Chunk
from headwater.reports import reading, series

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

RNG = np.random.default_rng(0)
STATES = np.arange(3000) // 300 % 2
X = np.column_stack([RNG.normal(size=3000), 6.0 * STATES + RNG.normal(size=3000)])
DAYS = np.datetime64("2001-01-01") + np.arange(3000)


@pytest.fixture(scope="module")
def model():
    return hw.GaussianHMM(2, random_state=0).fit(X)


def series_of(model, data):
    return reading.summarize_data(model, data, 1).series


def thinned(values, states, stride):
    """What bins hold, row by row."""
    low, high, usual = [], [], []
    for start in range(0, len(values), stride):
        known = [value for value in values[start : start + stride] if not np.isnan(value)]
        low.append(min(known, default=np.nan))
        high.append(max(known, default=np.nan))
        held = list(states[start : start + stride])
        usual.append(min(set(held), key=lambda one: (-held.count(one), one)))
    return low, high, usual


def test_a_long_series_is_thinned_and_missing_values_leave_gaps(model):
    rows = X.copy()
    rows[400:500] = np.nan
    rows[5::7, 1] = np.nan
    found = series_of(model, rows)
    assert (found.name, found.rows, found.stride, len(found.low)) == ("x1", 3000, 4, 750)
    low, high, usual = thinned(rows[:, 1], model.predict(rows), 4)
    np.testing.assert_array_equal(found.low, low)
    np.testing.assert_array_equal(found.high, high)
    np.testing.assert_array_equal(found.states, usual)
    assert np.isnan(found.low[100:125]).all() and found.when[100] == 400
    assert not found.dated and not found.one_of_many


def test_chunks_change_no_series(model, monkeypatch):
    whole = series_of(model, X)
    monkeypatch.setattr(series, "BLOCK", 700)
    for size in (3000, 999, 40):
        cut = series_of(model, [X[at : at + size] for at in range(0, 3000, size)])
        for name in ("low", "high", "states", "when"):
            np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name))
        assert (cut.rows, cut.stride) == (3000, 4)


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_dates_are_the_index_of_a_frame(zone):
    frame = pd.DataFrame(X[:400], columns=["a", "b"], index=pd.DatetimeIndex(DAYS[:400], tz=zone))
    model = hw.GaussianHMM(2, random_state=0).fit(frame)
    found = series_of(model, frame)
    wanted = DAYS[:400] - np.timedelta64(9 if zone else 0, "h")
    assert found.dated and found.name == "b"
    np.testing.assert_array_equal(found.when, wanted.astype(series.PRECISION))
    assert found.when.dtype == np.dtype(series.PRECISION)
    monthly = frame.set_axis(pd.period_range("2001-01", periods=400, freq="M"))
    assert series_of(model, monthly).when[1] == np.datetime64("2001-02-01")
    assert series_of(model, frame.reset_index(drop=True)).when.tolist() == list(range(400))


def test_dates_are_a_column_that_was_kept(model, tmp_path):
    lines = [f"{day},{a},{b}" for day, (a, b) in zip(DAYS, X.tolist(), strict=True)]
    (tmp_path / "days.csv").write_text("\n".join(["day,x0,x1", *lines]))
    found = series_of(model, hw.stream(tmp_path / "days.csv", columns=["x0", "x1"], keep="day", chunk_rows=500))
    np.testing.assert_array_equal(found.when, DAYS[::4].astype(series.PRECISION))
    shuffled = [Chunk(X, kept={"day": pa.array(DAYS[::-1])}), Chunk(X, kept={"day": pa.array([None] * 3000, pa.date32())})]
    assert [series_of(model, one).dated for one in shuffled] == [False, False]  # an axis of time needs both


def test_one_of_many_sequences_is_drawn(model):
    keyed = [Chunk(X[at : at + 600], key=np.tile(["u", "v", "w"], 200)) for at in (0, 600)]
    found = series_of(model, keyed)
    assert found.one_of_many and found.rows == 400
    np.testing.assert_array_equal(found.low, X[:1200:3, 1])
    np.testing.assert_array_equal(found.states, model.predict(X[:1200:3]))
    complete = [Chunk(X[:600], lengths=[100, 400, 100]), Chunk(X[600:], lengths=[2400])]
    found = series_of(model, complete)
    assert found.one_of_many and found.when.tolist() == list(range(100, 500))
    alone = series_of(model, Chunk(X[:600], lengths=[600]))
    assert not alone.one_of_many and alone.rows == 600


@pytest.mark.parametrize("kind", KINDS)
def test_chains_have_a_series_and_others_have_none(kind):
    model = learned(kind)
    found = series_of(model, stream_of(kind))
    chained = model._traits.chained
    assert (found is not None) == chained
    if chained:
        assert found.rows == 500 and set(found.states.tolist()) <= {0, 1}
        assert found.name == {"symbols": "symbol", "switching": "target"}.get(kind, found.name)


def test_categories_are_drawn_if_there_is_nothing_else():
    words = np.where(STATES[:600] ^ (RNG.random(600) < 0.1), "<on>", "off").astype(object)
    table = pd.DataFrame({"light": words, "power": 3.0 * STATES[:600] + RNG.normal(size=600)})
    assert series_of(hw.MixedHMM(2, random_state=0).fit(table), table).name == "power"
    found = series_of(hw.MixedHMM(2, random_state=0).fit(table[["light"]]), table[["light"]])
    assert found.name == "light" and sorted(found.levels) == ["<on>", "off"]
    codes = np.asarray([found.levels.index(word) for word in words], dtype=float)
    np.testing.assert_array_equal(found.low, codes)


def test_the_picture_of_a_page(model):
    rows = X.copy()
    rows[400:500] = np.nan
    frame = pd.DataFrame(rows, columns=["a", "b<b>"], index=pd.DatetimeIndex(DAYS))
    html = hw.report(hw.GaussianHMM(2, random_state=0).fit(frame), frame)
    picture = re.search(r'<figure class="series">.*?</figure>', html, re.DOTALL)[0]
    assert "“b&lt;b&gt;” over 3,000 rows" in picture and "stands for 4 rows" in picture and "gaps are" in picture
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert {"state 0", "state 1", "b&lt;b&gt;"} <= set(texts) and any(text.startswith("2005") for text in texts)
    assert picture.count("opacity: 0.35") == 2
    assert len(picture) < 120_000
    assert 'class="series"' not in hw.report(model) and 'class="series"' not in hw.report(model, X[:1])


def test_a_restless_series_makes_no_large_page():
    flips = np.arange(2000) % 2
    rows = (RNG.normal(size=2000) + 20.0 * flips)[:, None]
    model = hw.GaussianHMM(2, random_state=0).fit(rows)
    found = series_of(model, rows[:1000])
    picture, _ = series.draw_series(found, ["#0072b2", "#e69f00"])
    assert (np.diff(found.states) != 0).all() and len(picture) < 200_000
