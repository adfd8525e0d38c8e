"""The example of drift: its streams, its page, and the whole command on simulated data."""

import gzip
import json

import numpy as np
import pytest
from page_checks import complete

pytest.importorskip("examples", reason="run from the root of the repository")

from examples import drift, drift_data, drift_values
from pages.__main__ import main


def test_streams_drift_as_they_say():
    made = drift_data.streams(6000, 0)
    assert set(made) == set(drift_data.KINDS)
    assert all(rows.shape == (6000, 2) and np.isfinite(rows).all() for rows in made.values())
    late = made["abrupt"][5000:]
    assert (np.linalg.norm(late - [10.0, 10.5], axis=1) < 3.0).mean() == pytest.approx(0.25, abs=0.05)
    weights = made["weights"]
    first = np.linalg.norm(weights, axis=1) < 3.0
    assert first[:3000].mean() == pytest.approx(0.4, abs=0.05) and first[3000:].mean() == pytest.approx(0.1, abs=0.05)


def test_the_page_says_what_the_figures_do():
    run = {"auto": -4.0, "None": -6.0, "500": -4.5, "1000": -3.9}
    assert drift.best_fixed(run) == 1000
    assert drift_values.line("abrupt", run, list(run)) == ["abrupt", "-4.000", "-6.000", "-4.500", "**-3.900**"]
    said = drift_values.verdict({"abrupt": run, "gradual": {**run, "auto": -3.8}}, "stream")
    assert "better in 1 of 2, and at worst 0.100 nats a row behind (abrupt)" in said
    assert "1,000 rows, it is 0.000 nats a row" in said


@pytest.mark.slow
def test_the_command_runs_from_end_to_end(tmp_path):
    folder = tmp_path / "data" / "electricity_nsw"
    folder.mkdir(parents=True)
    rows = 100.0 * (drift_data.streams(5000, 1)["abrupt"] + 20.0)
    with gzip.open(folder / "electricity_nsw.csv.gz", "wt", encoding="utf-8") as file:
        file.write("period,nswprice,nswdemand\n" + "".join(f"1,{price:.2f},{demand:.2f}\n" for price, demand in rows))
    out = tmp_path / "out"
    assert main(["drift", "--quick", "--data", str(tmp_path / "data"), "--out", str(out)]) == 0
    figures = json.loads((out / "drift.json").read_text())["figures"]
    assert set(figures["streams"]["seed/0"]["runs"]) == set(drift_data.KINDS)
    assert figures["electricity"]["trace"]["rows"][-1] == 5000
    text = complete((out / "drift.md").read_text())
    assert "| abrupt |" in text and "in 5,000 half-hours" in text
    assert (out / "drift.png").stat().st_size > 10_000
