"""headwater label: marks of a person in a column of a file."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import headwater as hw
from headwater.cli import main


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("label")
    rows = np.random.default_rng(0).normal(size=(600, 2))
    (place / "a.csv").write_text("\n".join(["id,a,b", *(f"r{at},{x:.5f},{y:.5f}" for at, (x, y) in enumerate(rows))]) + "\n")
    (place / "seen.csv").write_text("id,a,b,odd\nq,0,5,no\nr,-4,0,Yes\ns,0.1,5.1,\nt,,1,1\n")
    (place / "maybe.csv").write_text("id,a,b,odd\nq,0,5,maybe\n")
    (place / "none.csv").write_text("id,a,b,odd\nq,0,5,\n")
    (place / "t.seq").write_text("a b a c\nb b c a\n" * 20)
    assert main(["fit", "gaussian", str(place / "a.csv"), "--exclude", "id", "-k", "1", "-q", "-o", str(place / "m.hw")]) == 0
    assert main(["fit", "markov", str(place / "t.seq"), "-k", "1", "-q", "-o", str(place / "s.hw")]) == 0
    return place


@pytest.fixture
def run(place, monkeypatch, capsys):
    monkeypatch.chdir(place)

    def run(*arguments, code=0):
        capsys.readouterr()
        assert main([*arguments]) == code
        return capsys.readouterr()

    return run


def test_marks_move_the_scores_of_the_file(run):
    before = hw.load("m.hw")
    said = json.loads(run("label", "m.hw", "seen.csv", "--column", "odd", "-o", "marked.hw", "--json").out)
    assert said == {"output": "marked.hw", "rows": 4, "odd": 2, "usual": 1, "marks_kept": 3}
    after = hw.load("marked.hw")
    X = pd.DataFrame([[0.0, 5.0], [-4.0, 0.0], [0.1, 5.1]], columns=["a", "b"])
    moved = after.anomaly_score(X) - before.anomaly_score(X)
    assert moved[0] < -5.0 and moved[1] > 3.0 and moved[2] < -5.0
    np.testing.assert_array_equal(after.score_samples(X), before.score_samples(X))
    lines = list(csv.DictReader(run("score", "marked.hw", "seen.csv", "--rate", "0.01", "--keep", "id").out.splitlines()))
    assert [line["odd"] for line in lines[:3]] == ["false", "true", "false"]
    assert "headwater label m.hw seen.csv --column odd" in run("inspect", "marked.hw").out


def test_the_file_itself_is_replaced(run, place):
    (place / "own.hw").write_bytes((place / "m.hw").read_bytes())
    assert (
        "2 rows are marked odd and 1 usual, of 4; the model keeps 3 marks."
        in run("label", "own.hw", "seen.csv", "--column", "odd").out
    )
    assert hw.load("own.hw").n_marked_ == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("m.hw", "maybe.csv", "--column", "odd"), "must say 1 or 0, yes or no, odd or usual, or nothing, got 'maybe'"),
        (("m.hw", "none.csv", "--column", "odd"), "must mark at least one row"),
        (("m.hw", "seen.csv", "--column", "nope"), "--column names 'nope', which seen.csv does not have"),
        (("s.hw", "t.seq", "--column", "odd"), "marked in Python"),
        (("m.hw", "seen.csv", "--column", "odd", "--shuffle", "9"), "leave out --shuffle"),
    ],
)
def test_what_cannot_be_marked_is_refused_and_the_file_stays(run, place, arguments, words):
    before = (place / "m.hw").read_bytes()
    assert main(["label", *arguments]) != 0
    assert (place / "m.hw").read_bytes() == before
    said = run("label", *arguments, code=main(["label", *arguments])).err
    assert words in said and said.startswith("headwater: ") and said.count("\n") == 1
