"""headwater impute, predict and score --explain of tables with categories, flags and counts."""

import csv
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.cli import main


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    young = rng.random(400) < 0.4
    table = pd.DataFrame({
        "id": [f"p{number}" for number in range(400)],
        "age": np.where(young, rng.normal(25, 4, 400), rng.normal(60, 6, 400)).round(3),
        "pays": np.where(rng.random(400) < np.where(young, 0.9, 0.2), "card", "cash"),
        "owner": rng.random(400) < np.where(young, 0.1, 0.7),
        "visits": rng.poisson(np.where(young, 8, 2)),
    })  # fmt: skip
    table.to_csv(place / "full.csv", index=False)
    gaps = table.astype({"owner": "boolean", "visits": "Int64"})
    for at, name in enumerate(("age", "pays", "owner", "visits")):
        gaps.loc[at::8, name] = None
    gaps.to_csv(place / "gaps.csv", index=False)
    gaps.to_parquet(place / "gaps.parquet", index=False)
    made = ["fit", "mixed", str(place / "full.csv"), "--exclude", "id", "-k", "2", "--set", "columns={'visits': 'poisson'}"]
    assert main([*made, "--json", "-o", str(place / "m.hw")]) == 0
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
    return list(csv.DictReader(text.splitlines()))


def test_gaps_of_tables_are_filled(run, place):
    said = run("impute", "m.hw", "gaps.csv", "-o", "out.csv")
    assert "200 missing values were filled, in 200 of 400 rows" in said.err
    found, before = read((place / "out.csv").read_text()), read((place / "gaps.csv").read_text())
    assert list(found[0]) == ["id", "age", "pays", "owner", "visits"]
    for one, two in zip(found, before, strict=True):
        assert all(one.values()) and all(one[name].lower() == two[name].lower() for name in ("pays", "owner") if two[name])
    model = hw.load(place / "m.hw")
    expected = model.impute(pd.read_csv(place / "gaps.csv").drop(columns="id").astype({"owner": "boolean"}))
    assert [row["pays"] for row in found] == expected["pays"].tolist()
    np.testing.assert_allclose([float(row["age"]) for row in found], expected["age"])
    run("impute", "m.hw", "gaps.parquet", "--method", "mode", "--keep", "id", "-o", "out.parquet")
    filled = pq.read_table(place / "out.parquet")
    assert filled.schema.equals(pq.read_table(place / "gaps.parquet").schema, check_metadata=False)
    assert not any(column.null_count for column in filled.columns)
    whole = run("impute", "m.hw", "gaps.csv", "--method", "sample", "--seed", "3").out
    assert whole == run("impute", "m.hw", "gaps.csv", "--method", "sample", "--seed", "3", "--chunk-rows", "64").out
    told = json.loads(run("impute", "m.hw", "gaps.csv", "--json", "-o", "again.csv").out)
    assert told["values_filled"] == 200


def test_columns_of_tables_are_predicted(run, place):
    model = hw.load(place / "m.hw")
    table = pd.read_csv(place / "full.csv").drop(columns="id")
    found = read(run("predict", "m.hw", "full.csv", "--column", "pays", "--keep", "id").out)
    assert list(found[0]) == ["row", "id", "prediction", "p_card", "p_cash"]
    view = model.classifier("pays")
    np.testing.assert_allclose([float(row["p_card"]) for row in found], view.predict_proba(table.drop(columns="pays"))[:, 0])
    assert [row["prediction"] for row in found] == view.predict(table.drop(columns="pays")).tolist()
    found = read(run("predict", "m.hw", "full.csv", "--column", "owner").out)
    assert list(found[0]) == ["row", "prediction", "p_False", "p_True"]
    found = read(run("predict", "m.hw", "full.csv", "--column", "visits", "--level", "0.8").out)
    low, high = model.regressor("visits").predict_interval(table.drop(columns="visits"), 0.8)
    np.testing.assert_allclose([[float(row["low"]), float(row["high"])] for row in found], np.column_stack([low, high]))
    assert "got 'gold'" in run("predict", "m.hw", "full.csv", "--column", "pays", "--classes", "card,gold", code=2).err
    assert "got 'x'" in run("predict", "m.hw", "full.csv", "--column", "age", "--classes", "x,y", code=2).err


def test_odd_rows_of_tables_are_explained(run, place):
    found = read(run("score", "m.hw", "gaps.csv", "--explain", "--keep", "id").out)
    assert len(found) == 400 and found[3]["id"] == "p3"
    assert {row["reason1"] for row in found} <= {"age", "pays", "owner", "visits"}
    of_pays = [row for row in found if row["reason1"] == "pays"]
    assert of_pays and {row["reason1_value"] for row in of_pays} <= {"card", "cash"}
    assert all(row["reason1_low"] == "" for row in of_pays)
