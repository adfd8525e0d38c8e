"""headwater groups: which customers or windows of a file are odd."""

import csv
import json

import numpy as np
import pytest

from headwater.cli import main


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("groups")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 2))
    rows[np.arange(900) % 3 == 1] *= 1.5
    (place / "a.csv").write_text("\n".join(["a,b", *(f"{x:.5f},{y:.5f}" for x, y in rng.normal(size=(2000, 2)))]) + "\n")
    lines = [f"{'uvw'[at % 3]},{x:.5f},{y:.5f}" for at, (x, y) in enumerate(rows)]
    (place / "new.csv").write_text("\n".join(["host,a,b", *lines]) + "\n")
    assert main(["fit", "gaussian", str(place / "a.csv"), "-k", "1", "-q", "-o", str(place / "m.hw")]) == 0
    return place


@pytest.fixture
def run(place, monkeypatch, capsys):
    monkeypatch.chdir(place)

    def run(*arguments, code=0):
        capsys.readouterr()
        assert main([*arguments]) == code
        return capsys.readouterr()

    return run


def test_groups_and_windows_are_written_the_oddest_first(run):
    lines = list(csv.DictReader(run("groups", "m.hw", "new.csv", "--by", "host").out.splitlines()))
    assert lines[0]["group"] == "v" and len(lines) == 3
    assert float(lines[0]["pvalue"]) < 1e-6 and float(lines[0]["pvalue_peers"]) < 1e-6 and float(lines[1]["pvalue"]) > 1e-4
    said = json.loads(run("groups", "m.hw", "new.csv", "--by", "host", "--window", "50", "-o", "g.csv", "--json").out)
    assert said == {"output": "g.csv", "rows": 900, "lines": 18}
    assert len(run("groups", "m.hw", "new.csv", "--window", "300").out.splitlines()) == 4


def test_what_cannot_be_judged_is_refused_in_a_sentence(run, place):
    assert "give --by COLUMN, --window ROWS, or both" in run("groups", "m.hw", "new.csv", code=2).err
    assert "--by names 'x', which new.csv does not have" in run("groups", "m.hw", "new.csv", "--by", "x", code=1).err
    assert "leave out --shuffle" in run("groups", "m.hw", "new.csv", "--by", "host", "--shuffle", "5", code=2).err
    (place / "gap.csv").write_text("host,a,b\nu,1.0,2.0\n,1.0,2.0\n")
    told = run("groups", "m.hw", "gap.csv", "--by", "host", code=1).err
    assert "column 'host' must name the group of each row, got nothing (first in row 1)" in told


def test_a_window_may_be_longer_than_any_number_of_rows(run):
    one, other = (run("groups", "m.hw", "new.csv", "--window", rows).out for rows in ("900", str(10**30)))
    assert one == other and len(one.splitlines()) == 2
