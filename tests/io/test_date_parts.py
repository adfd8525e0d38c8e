"""Columns of dates and times become parts, on request: hour and weekday as angles, and the day of the year."""

from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.io.read_errors import StreamError

TIMES = [datetime(2024, 2, 29, 18, 30), datetime(2023, 12, 31, 0, 0), datetime(1969, 7, 20, 20, 17), None, datetime(2024, 1, 1)]
NAMES = ["at:hour_sin", "at:hour_cos", "at:weekday_sin", "at:weekday_cos", "at:day_of_year"]


def wanted(times, clock=True):
    """Return the parts computed by hand; NaN where there is no date."""
    out = []
    for time in times:
        if time is None:
            out.append([np.nan] * (5 if clock else 3))
            continue
        hour = (time.hour + time.minute / 60.0) / 24.0 if clock else 0.0
        angles = [2.0 * np.pi * hour] * clock + [2.0 * np.pi * time.weekday() / 7.0]
        out.append([wave(angle) for angle in angles for wave in (np.sin, np.cos)] + [time.timetuple().tm_yday])
    return np.array(out)


def sources(tmp_path):
    """Return the same times in several containers and files."""
    table = pa.table({"at": pa.array(TIMES, pa.timestamp("ms")), "x": np.arange(5.0)})
    pq.write_table(table, tmp_path / "times.parquet")
    text = "at,x\n" + "".join(f"{'' if time is None else time.isoformat(sep=' ')},{at}\n" for at, time in enumerate(TIMES))
    (tmp_path / "times.csv").write_text(text)
    zoned = pa.array([None if time is None else time.replace(tzinfo=UTC) for time in TIMES], pa.timestamp("us", tz="UTC"))
    return {
        "arrow": table,
        "zone": pa.table({"at": zoned.cast(pa.timestamp("us", tz="Asia/Tokyo")), "x": np.arange(5.0)}),
        "pandas": pd.DataFrame({"at": pd.to_datetime(pd.Series(TIMES)), "x": np.arange(5.0)}),
        "parquet": tmp_path / "times.parquet",
        "csv": tmp_path / "times.csv",
    }


@pytest.mark.parametrize("kind", ["arrow", "zone", "pandas", "parquet", "csv"])
def test_times_of_every_source(kind, tmp_path):
    (chunk,) = hw.stream(sources(tmp_path)[kind], dates="parts", missing="keep")
    assert list(chunk.columns) == [*NAMES, "x"]
    np.testing.assert_allclose(chunk.X[:, :5], wanted(TIMES), atol=1e-12)
    np.testing.assert_array_equal(chunk.X[:, 5], np.arange(5.0))


def test_days_have_no_hour():
    days = [date(2024, 2, 29), date(2023, 1, 1), None]
    (chunk,) = hw.stream(pa.table({"at": days}), dates="parts", missing="keep")
    assert list(chunk.columns) == NAMES[2:]
    np.testing.assert_allclose(chunk.X, wanted(days, clock=False), atol=1e-12)


def test_models_read_other_files_in_the_same_way(tmp_path):
    rng = np.random.default_rng(0)
    at = np.datetime64("2024-01-01") + rng.integers(0, 500_000, size=400).astype("timedelta64[m]")
    frame = pd.DataFrame({"at": at, "x": rng.normal(size=400)})
    model = hw.GaussianMixture(2, random_state=0)
    for chunk in hw.stream(frame, dates="parts"):
        model.partial_fit(chunk)
    model.save(tmp_path / "dates.hw")
    again = hw.load(tmp_path / "dates.hw")
    frame.to_csv(tmp_path / "dates.csv", index=False)
    (chunk,) = hw.stream(tmp_path / "dates.csv", like=again)
    assert list(chunk.columns) == [*NAMES, "x"]
    np.testing.assert_allclose(again.score_samples(chunk), model.score_samples(next(iter(hw.stream(frame, dates="parts")))))


@pytest.mark.parametrize("kind", ["arrow", "zone", "pandas", "parquet", "csv"])
def test_tables_have_parts_beside_their_other_columns(kind, tmp_path):
    (chunk,) = hw.stream(sources(tmp_path)[kind], dates="parts", categories="keep")
    assert list(chunk.columns) == [*NAMES, "x"]
    found = np.column_stack([column.to_numpy(zero_copy_only=False) for column in chunk.X.table.columns[:5]])
    np.testing.assert_allclose(found, wanted(TIMES), atol=1e-12)


def test_models_of_tables_read_other_files_in_the_same_way(tmp_path):
    rng = np.random.default_rng(0)
    at = np.datetime64("2024-01-01") + rng.integers(0, 500_000, size=400).astype("timedelta64[m]")
    frame = pd.DataFrame({"at": at, "kind": rng.choice(["a", "b"], 400), "x": rng.normal(size=400)})
    model = hw.MixedMixture(2, random_state=0)
    for chunk in hw.stream(frame, dates="parts", categories="keep"):
        model.partial_fit(chunk)
    model.save(tmp_path / "dates.hw")
    again = hw.load(tmp_path / "dates.hw")
    frame.to_csv(tmp_path / "dates.csv", index=False)
    (chunk,) = hw.stream(tmp_path / "dates.csv", like=again)
    assert list(chunk.columns) == [*NAMES, "kind", "x"]
    (same,) = hw.stream(frame, dates="parts", categories="keep")
    np.testing.assert_allclose(again.score_samples(chunk), model.score_samples(same))


@pytest.mark.parametrize("text", [False, True])
def test_a_table_says_how_dates_are_learned(text):
    days = pd.date_range("2024-01-01", periods=60)
    frame = pd.DataFrame({"day": days.astype(str) if text else days, "x": np.random.default_rng(0).normal(size=60)})
    with pytest.warns(UserWarning, match="column 'day' is left out, since it holds dates; read with dates='parts', hour"):
        hw.MixedMixture(1, random_state=0).partial_fit(frame)


def test_refusals_are_one_sentence():
    table = pa.table({"at": pa.array(TIMES, pa.timestamp("ms")), "x": np.arange(5.0)})
    with pytest.raises(StreamError, match="use categories='one-hot', categories='drop', dates='parts', or exclude="):
        list(hw.stream(table))
    with pytest.raises(ValueError, match="dates must be one of 'refuse', 'parts', got 'all'"):
        hw.stream(table, dates="all")
    with pytest.raises(StreamError, match="no value in column 'at:hour_sin', row 3"):
        list(hw.stream(table, dates="parts"))
    with pytest.raises(StreamError, match="where dates were before"):
        list(hw.stream([table.slice(0, 2), pa.table({"at": ["a", "b"], "x": [0.0, 1.0]})], dates="parts", missing="keep"))
