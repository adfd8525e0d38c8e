"""headwater impute, headwater predict and headwater score --explain."""

import csv
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.cli import main

NAMES = ("size", "rooms", "price")


def houses(n):
    rng = np.random.default_rng(0)
    size, rooms = rng.gamma(8.0, 10.0, size=n), rng.integers(1, 6, size=n)
    return np.column_stack([size, rooms, 3.0 * size + 20.0 * rooms + 10.0 * rng.normal(size=n)])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("gaps")
    rows = houses(400)
    lines = [f"h{at},{row[0]:.6f},{row[1]:.0f},note {at},{row[2]:.6f}" for at, row in enumerate(rows)]
    (place / "full.csv").write_text("\n".join(["id,size,rooms,note,price", *lines]) + "\n")
    cells = [line.split(",") for line in lines]
    for at in range(0, 400, 5):
        cells[at][1 + at % 2] = ""
    cells[7][1] = cells[7][2] = cells[7][4] = ""
    (place / "gaps.csv").write_text("\n".join(["id,size,rooms,note,price", *map(",".join, cells)]) + "\n")
    (place / "no_price.csv").write_text("\n".join(["rooms,id,size", *(f"{one[2]},{one[0]},{one[1]}" for one in cells)]) + "\n")
    assert (
        main(
            ["fit", "gaussian", str(place / "full.csv"), "--exclude", "id,note", "-k", "2", "--json", "-o", str(place / "m.hw")]
        )
        == 0
    )
    return place


@pytest.fixture
def run(place, monkeypatch, capsys):
    monkeypatch.chdir(place)

    def run(*arguments, code=0):
        capsys.readouterr()
        assert main([*arguments]) == code
        return capsys.readouterr()

    return run


def read(text):
    rows = list(csv.DictReader(text.splitlines()))
    return {name: [row[name] for row in rows] for name in rows[0]}


def values_of(place, name="gaps.csv"):
    columns = read((place / name).read_text())
    return pd.DataFrame({name: [float(cell) if cell else np.nan for cell in columns[name]] for name in NAMES})


def test_gaps_are_filled_and_all_columns_stay_in_their_order(run, place):
    said = run("impute", "m.hw", "gaps.csv", "-o", "out.csv")
    assert "83 missing values were filled, in 81 of 400 rows" in said.err and said.out == ""
    found, before = read((place / "out.csv").read_text()), read((place / "gaps.csv").read_text())
    assert list(found) == list(before) and found["id"] == before["id"] and found["note"] == before["note"]
    expected = hw.load(place / "m.hw").condition(values_of(place)).mean
    np.testing.assert_allclose(np.array([found[name] for name in NAMES], float).T, expected)
    chosen = read(run("impute", "m.hw", "gaps.csv", "--keep", "note").out)
    assert list(chosen) == ["size", "rooms", "note", "price"]


def test_draws_are_those_of_the_seed_whatever_the_chunks(run, place):
    whole = run("impute", "m.hw", "gaps.csv", "--method", "sample", "--seed", "3").out
    parts = run("impute", "m.hw", "gaps.csv", "--method", "sample", "--seed", "3", "--chunk-rows", "64").out
    other = run("impute", "m.hw", "gaps.csv", "--method", "sample", "--seed", "4").out
    sizes = [np.array(read(one)["size"], float) for one in (whole, parts, other)]
    np.testing.assert_allclose(sizes[0], sizes[1], rtol=1e-9)
    assert not np.allclose(sizes[0], sizes[2])
    said = json.loads(run("impute", "m.hw", "gaps.csv", "--json", "-o", "out.parquet").out)
    assert said == {"output": "out.parquet", "rows": 400, "rows_with_gaps": 81, "values_filled": 83}
    assert pq.read_table(place / "out.parquet").column_names == ["id", "size", "rooms", "note", "price"]


def test_a_column_is_predicted_from_a_file_that_does_not_have_it(run, place):
    found = read(run("predict", "m.hw", "no_price.csv", "--column", "price", "--keep", "id").out)
    assert list(found) == ["row", "id", "prediction", "low", "high"] and len(found["row"]) == 400
    X = values_of(place)
    X["price"] = np.nan
    law = hw.load(place / "m.hw").condition(X)
    np.testing.assert_allclose(np.array(found["prediction"], float), law.mean[:, 2])
    np.testing.assert_allclose(np.array(found["high"], float), law.interval(0.9)[1][:, 2])
    same = read(
        run("predict", "m.hw", "gaps.csv", "--column", "price", "--level", "0.5", "--keep", "price", "--keep", "id").out
    )
    assert same["id"] == found["id"]
    np.testing.assert_allclose(np.array(same["low"], float), law.interval(0.5)[0][:, 2])
    np.testing.assert_array_equal(np.array(same["price"][:7], float), values_of(place)["price"][:7])
    assert same["price"][7] == ""


def test_few_values_are_predicted_with_their_probabilities(run, place):
    found = read(run("predict", "m.hw", "full.csv", "--column", "rooms", "--classes", "1,2,3,4,5", "--keep", "rooms").out)
    assert list(found) == ["row", "rooms", "prediction", "p1", "p2", "p3", "p4", "p5"]
    shares = np.array([found[f"p{at}"] for at in range(1, 6)], float)
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    assert np.mean(np.array(found["prediction"], float) == np.array(found["rooms"], float)) > 0.6


def test_scores_come_with_reasons(run, place):
    X = values_of(place, "full.csv")
    reasons = hw.load(place / "m.hw").explain(X)
    found = read(run("score", "m.hw", "full.csv", "--explain", "--keep", "id").out)
    order = reasons.tail.argsort(axis=1)
    assert found["reason1"] == [NAMES[at] for at in order[:, 0]] and found["reason3"] == [NAMES[at] for at in order[:, 2]]
    np.testing.assert_allclose(np.array(found["reason1_tail"], float), reasons.tail.min(axis=1), rtol=1e-9)
    np.testing.assert_allclose(np.array(found["reason2_expected"], float), reasons.expected[np.arange(400), order[:, 1]])
    lines = run(
        "score", "m.hw", "full.csv", "--explain", "--only-odd", "--rate", "0.02", "--against", "data", "--keep", "id", "--json"
    ).out
    odd = [json.loads(line) for line in lines.splitlines()]
    assert 1 <= len(odd) <= 9
    for line in odd:
        at = int(line["id"][1:])
        assert line["reason1"] == NAMES[order[at, 0]] and line["reason1_surprise"] == pytest.approx(
            reasons.surprise[at, order[at, 0]]
        )


def test_commands_that_make_no_sense(run, place):
    assert main(["fit", "multinomial", "full.csv", "--columns", "rooms,size", "-k", "1", "--json", "-o", "counts.hw"]) == 0
    for line, code, words in (
        ("impute m.hw gaps.csv --method median", 2, "--method must be mean, mode or sample, got 'median'"),
        ("impute m.hw gaps.csv --shuffle 9", 2, "leave out --shuffle"),
        ("impute m.hw no_price.csv", 1, "lacks the column 'price'"),
        ("impute counts.hw gaps.csv", 1, "multinomial does not know what some columns say of the others"),
        ("impute m.hw gaps.csv -o gaps.csv", 2, "would replace"),
        ("predict m.hw gaps.csv --column cost", 2, "that the model learned (size, rooms, price), got 'cost'"),
        ("predict m.hw gaps.csv --column price --level 1", 2, "--level must lie between 0 and 1, got 1"),
        ("predict m.hw gaps.csv --column rooms --classes a,b", 2, "--classes must be numbers, separated by commas, got 'a'"),
        ("predict m.hw gaps.csv --column rooms --classes 1", 1, "classes must be at least two different numbers"),
        ("predict counts.hw gaps.csv --column rooms", 1, "does not know what some columns say"),
    ):
        said = run(*line.split(), code=code)
        assert words in said.err and said.err.count("\n") == 1, said.err


def test_files_with_gaps_are_learned_and_every_row_has_a_line(run, place):
    run("fit", "gaussian", "gaps.csv", "--exclude", "id,note", "-k", "2", "--json", "-o", "holes.hw")
    model = hw.load(place / "holes.hw")
    rows = pd.read_csv(place / "gaps.csv")[list(NAMES)]
    wanted = hw.GaussianMixture(2, random_state=0, resolution="auto").partial_fit(rows)
    np.testing.assert_allclose(model.means_, wanted.means_)
    run("score", "holes.hw", "gaps.csv", "-o", "scores.csv")
    np.testing.assert_allclose(pd.read_csv(place / "scores.csv")["score"], model.score_samples(rows), atol=1e-12)
    said = run("fit", "gaussian", "gaps.csv", "--exclude", "id,note", "-k", "2", "--missing", "refuse", code=1)
    assert "has no value in column 'size'" in said.err


def test_a_model_of_complete_rows_leaves_the_score_of_a_row_that_lacks_a_value_empty(run, place):
    run("fit", "multinomial", "full.csv", "--columns", "rooms,size", "-k", "1", "--json", "-o", "whole.hw")
    said = run("score", "whole.hw", "gaps.csv", "-o", "some.csv")
    found = pd.read_csv(place / "some.csv")
    lacking = pd.read_csv(place / "gaps.csv")[["rooms", "size"]].isna().any(axis=1)
    assert len(found) == 400 and (found["score"].isna() == lacking).all()
    assert f"{lacking.sum()} of 400 rows have no score, since they lack a value" in said.err


def test_names_may_be_given_one_by_one_or_with_commas():
    from headwater.cli.support.options import split_names

    assert split_names(["a", "b,c "]) == split_names("a, b,c") == ["a", "b", "c"]
    assert split_names(()) is None and split_names(None) is None and split_names([""]) == []
