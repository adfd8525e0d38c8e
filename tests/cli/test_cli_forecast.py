"""headwater forecast."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import headwater as hw
from headwater.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 2)) + 6.0 * (np.arange(900)[:, None] // 50 % 2)
    text = "\n".join(["heat,noise,machine", *(f"{x:.6f},{y:.6f},{'ab'[at % 2]}" for at, (x, y) in enumerate(rows))])
    (tmp_path / "rows.csv").write_text(text + "\n")
    (tmp_path / "other.csv").write_text("heat,noise\n0.1,0.2\n6.0,6.1\n")

    def run(*arguments, code=0):
        capsys.readouterr()
        assert main([*arguments]) == code
        return capsys.readouterr()

    return run


def read(text):
    return list(csv.DictReader(text.splitlines()))


def test_the_table_is_the_forecast_of_the_model(run):
    run("fit", "hmm", "rows.csv", "-k", "2", "--exclude", "machine", "-o", "m.hw")
    lines = read(run("forecast", "m.hw", "--steps", "3").out)
    found = hw.load("m.hw").forecast(3)
    assert list(lines[0]) == ["step", "heat", "heat_low", "heat_high", "noise", "noise_low", "noise_high", "state_0", "state_1"]
    np.testing.assert_allclose([[float(line[name]) for name in ("heat", "noise")] for line in lines], found.mean, rtol=1e-6)
    np.testing.assert_allclose([float(line["heat_low"]) for line in lines], found.interval(0.9)[0][:, 0], rtol=1e-6)
    half = read(run("forecast", "m.hw", "--steps", "1", "--level", "0.5").out)
    np.testing.assert_allclose(float(half[0]["heat_low"]), found.quantile(0.25)[0, 0], rtol=1e-6)


def test_another_sequence_a_key_and_paths(run):
    run("fit", "hmm", "rows.csv", "-k", "2", "--exclude", "machine", "-o", "m.hw")
    lines = read(run("forecast", "m.hw", "other.csv", "--steps", "2").out)
    other = pd.DataFrame({"heat": [0.1, 6.0], "noise": [0.2, 6.1]})
    found = hw.load("m.hw").forecast(2, other)
    np.testing.assert_allclose([float(line["heat"]) for line in lines], found.mean[:, 0], rtol=1e-6)
    paths = read(run("forecast", "m.hw", "--steps", "2", "--paths", "3").out)
    assert [(line["path"], line["step"]) for line in paths] == [(p, s) for p in "123" for s in "12"]
    again = read(run("forecast", "m.hw", "--steps", "2", "--paths", "3").out)
    assert paths == again != read(run("forecast", "m.hw", "--steps", "2", "--paths", "3", "--seed", "1").out)
    run("fit", "hmm", "rows.csv", "-k", "2", "--key", "machine", "--algorithm", "online-em", "-o", "keyed.hw")
    lines = read(run("forecast", "keyed.hw", "--of", "b").out)
    assert float(lines[0]["heat"]) == pytest.approx(hw.load("keyed.hw").forecast(1, key="b").mean[0, 0], rel=1e-6)
    told = [json.loads(line) for line in run("forecast", "keyed.hw", "--of", "a", "--json").out.splitlines()]
    assert told[0]["step"] == 1


def test_mistakes_are_one_sentence(run):
    run("fit", "hmm", "rows.csv", "-k", "2", "--exclude", "machine", "-o", "m.hw")
    run("fit", "gaussian", "rows.csv", "-k", "2", "--exclude", "machine", "-o", "g.hw")
    for said, *arguments in (
        ("gaussian has no sequences to forecast: hidden Markov models have", "g.hw"),
        ("--level must lie between 0 and 1, got 2", "m.hw", "--level", "2"),
        ("--of names a sequence that was learned", "m.hw", "other.csv", "--of", "a"),
        ("--steps", "m.hw", "--steps", "0"),
    ):
        assert said in run("forecast", *arguments, code=2).err
    assert "--of must name an open sequence, got x; none has a name" in run("forecast", "m.hw", "--of", "x", code=1).err
    run("fit", "hmm", "rows.csv", "-k", "2", "--key", "machine", "--algorithm", "online-em", "-o", "keyed.hw")
    assert "got x; open are a, b" in run("forecast", "keyed.hw", "--of", "x", code=1).err
