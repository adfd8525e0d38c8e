"""headwater fit --standard-errors: columns with the errors of other columns, in files and streams."""

import numpy as np
import pandas as pd
import pytest

import headwater as hw
from headwater.cli import main


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(600, 2)) @ [[0.6, 0.3], [0.0, 0.4]] + 4.0 * rng.integers(2, size=(600, 1))
    errors = rng.choice([0.2, 1.5], size=true.shape)
    measured = true + errors * rng.normal(size=true.shape)
    frame = pd.DataFrame({"a": measured[:, 0], "a_err": errors[:, 0], "b": measured[:, 1], "b_err": errors[:, 1]})
    frame.loc[::9, ["a", "a_err"]] = np.nan
    return frame


def options():
    return {"standard_errors": ["a_err", "b_err"], "missing": "keep"}


def test_a_stream_of_standard_errors_is_noise(table):
    streamed = hw.GaussianMixture(2, random_state=0).partial_fit(hw.stream(table, chunk_rows=100, **options()))
    given = hw.GaussianMixture(2, random_state=0)
    given.partial_fit(table[["a", "b"]], noise=np.square(table[["a_err", "b_err"]].to_numpy()))
    np.testing.assert_allclose(streamed.means_, given.means_, rtol=1e-9)
    assert streamed.schema_["standard_errors"] == ["a_err", "b_err"]
    scores = streamed.score_samples(hw.stream(table, like=streamed))
    noise = np.square(table[["a_err", "b_err"]].to_numpy())
    np.testing.assert_allclose(scores, given.score_samples(table[["a", "b"]], noise=noise), rtol=1e-9)
    exact = streamed.score_samples(hw.stream(table[["a", "b"]], like=streamed))  # the errors may be absent
    np.testing.assert_allclose(exact, given.score_samples(table[["a", "b"]]), rtol=1e-9)


def test_shuffled_rows_keep_their_errors(table):
    for chunk in hw.stream(table.dropna(), shuffle=200, chunk_rows=100, columns=["a", "b"], standard_errors=["a_err", "-"]):
        places = [np.flatnonzero(table["b"] == value)[0] for value in chunk.X[:, 1]]
        np.testing.assert_allclose(chunk.noise[:, 0], table["a_err"].to_numpy()[places] ** 2)
        assert not chunk.noise[:, 1].any()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"standard_errors": ["a_err"]}, "standard_errors must name a column for each column of numbers"),
        ({"standard_errors": ["a_err", "none"]}, "standard_errors names 'none', which"),
        ({**options(), "categories": "keep"}, "standard_errors are for models of numbers"),
    ],
)
def test_what_cannot_be_is_refused(table, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        next(iter(hw.stream(table, **given)))


def test_commands(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table.to_csv("x.csv", index=False)
    wrong, lost = table.copy(), table.copy()
    wrong.loc[3, "b_err"], lost.loc[3, "b_err"] = -1.0, np.nan
    wrong.to_csv("wrong.csv", index=False), lost.to_csv("lost.csv", index=False)
    fit = ("fit", "gaussian", "-k", "2", "-q", "--standard-errors", "a_err,b_err")
    assert main([*fit, "x.csv", "-o", "m.hw"]) == 0
    assert main(["score", "m.hw", "x.csv", "-q", "-o", "scores.csv"]) == 0
    model = hw.load("m.hw")
    noise = np.square(table[["a_err", "b_err"]].to_numpy())
    found = pd.read_csv("scores.csv")["score"]
    np.testing.assert_allclose(found, model.score_samples(table[["a", "b"]], noise=noise), rtol=1e-6)
    assert main([*fit, "x.csv", "--passes", "3"]) == 0
    for data, more, sentence in (
        ("wrong.csv", (), "column 'b_err' of wrong.csv must hold standard errors, got -1.0 in row 3"),
        ("lost.csv", (), "--standard-errors must say how uncertain each value is that is there, got NaN (row 3)"),
        ("x.csv", ("--algorithm", "quasi-bayes"), "--standard-errors must be None for algorithm 'quasi-bayes'"),
        ("x.csv", ("--cluster", "local:1"), "are learned on one machine"),
    ):
        capsys.readouterr()
        assert main([*fit, data, *more]) != 0
        assert sentence in " ".join(capsys.readouterr().err.split())
    assert main(["fit", "hmm", "x.csv", "--standard-errors", "a_err,b_err"]) != 0
    assert "does not take --standard-errors" in " ".join(capsys.readouterr().err.split())


def test_columns_that_number_the_rows_are_refused(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    numbered = table[["a", "b"]].fillna(0.0)
    numbered.insert(0, "key", 1000 + np.arange(len(table)))
    numbered.to_csv("x.csv", index=False)
    fit = ("fit", "gaussian", "x.csv", "-k", "2", "-q")
    for more in ((), ("--passes", "2"), ("--passes", "auto")):
        assert main([*fit, *more]) != 0
        found = " ".join(capsys.readouterr().err.split())
        assert "column 'key' numbers the rows, as ids do: leave it out by --exclude" in found
    assert main([*fit, "--exclude", "key"]) == 0
    assert main([*fit, "--columns", "key,a"]) == 0
    numbered.drop(columns="key").to_csv("y.csv", index=False)
    assert main(["fit", "gaussian", "y.csv", "-k", "2", "-q"]) == 0
