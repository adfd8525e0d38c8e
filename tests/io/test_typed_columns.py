"""Streams that pass columns to models of tables with their types."""

import numpy as np
import pandas as pd
import pytest

import headwater as hw
from headwater.cli import main
from headwater.io.read_errors import StreamError

RNG = np.random.default_rng(3)
KIND = RNG.integers(2, size=900)
TABLE = pd.DataFrame({
    "size": RNG.normal(5.0 * KIND, 1.0).round(3),
    "color": np.array(["red", "green"], dtype=object)[KIND ^ (RNG.random(900) < 0.1)],
    "new": RNG.random(900) < 0.2 + 0.6 * KIND,
    "events": RNG.poisson(1 + 5 * KIND),
})  # fmt: skip
TABLE.loc[RNG.random(900) < 0.1, "color"] = None


@pytest.fixture(params=["csv", "parquet", "jsonl", "arrow", "frame"])
def data(request, tmp_path):
    """Return the table as a file of each format, or in memory."""
    path = tmp_path / f"table.{request.param}"
    if request.param == "csv":
        TABLE.to_csv(path, index=False)
    elif request.param == "parquet":
        TABLE.to_parquet(path)
    elif request.param == "jsonl":
        TABLE.to_json(path, orient="records", lines=True)
    elif request.param == "arrow":
        TABLE.to_feather(path)
    else:
        return TABLE
    return path


def test_every_format_learns_what_the_frame_does(data):
    model = hw.MixedMixture(2, columns={"events": "poisson"}, random_state=0)
    model.partial_fit(hw.stream(data, categories="keep", chunk_rows=256))
    frame = hw.MixedMixture(2, columns={"events": "poisson"}, random_state=0).partial_fit(TABLE)
    assert model.columns_ == frame.columns_
    np.testing.assert_allclose(model.score_samples(TABLE), frame.score_samples(TABLE), rtol=1e-9)
    scores = model.score_samples(hw.stream(data, like=model, chunk_rows=100))
    np.testing.assert_allclose(scores, model.score_samples(TABLE), rtol=1e-12)


def test_shuffled_and_collected_rows_are_the_same_rows(data):
    stream = hw.stream(data, categories="keep", chunk_rows=128, shuffle=512, seed=1)
    chunks = list(stream)
    rows = pd.concat([chunk.X.table.to_pandas() for chunk in chunks])
    assert len(rows) == 900 and not np.array_equal(rows["size"], TABLE["size"])
    np.testing.assert_array_equal(np.sort(rows["size"]), np.sort(TABLE["size"]))
    whole = hw.stream(data, categories="keep", chunk_rows=128).at_once()
    np.testing.assert_array_equal(whole.X.table["size"].to_numpy(), TABLE["size"])
    assert whole.X[[3, 5]].table["color"].to_pylist() == [None if pd.isna(one) else one for one in TABLE["color"][[3, 5]]]


@pytest.mark.filterwarnings("default")  # a warning names the column that is left out, and the command prints it
def test_the_command_line_learns_a_file_that_nobody_prepared(tmp_path, capsys):
    data, model = tmp_path / "table.csv", tmp_path / "table.hw"
    TABLE.assign(number=np.arange(900)).to_csv(data, index=False)
    assert main(["fit", "mixed", str(data), "-k", "auto", "-o", str(model), "--set", "columns={'events': 'poisson'}"]) == 0
    err = capsys.readouterr().err
    assert "column 'number' is left out, since it numbers the rows" in err
    learned = hw.load(model)
    assert learned.n_components_ == 2 and learned.columns_["color"] == "categorical"
    assert main(["score", str(model), str(data)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 901
    assert main(["fit", str(model), str(data), "-o", str(model)]) == 0  # continues with its columns
    assert hw.load(model).n_samples_seen_ == 1800
    assert main(["report", str(model), str(data), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf8")
    assert "color=red" in page and "color: green" in page and "number:" not in page


def test_what_is_no_schema_of_columns_is_refused():
    good = {"kind": "columns", "inputs": [{"name": "a", "type": "text"}]}
    assert hw.stream(TABLE.rename(columns={"color": "a"}), like=good).at_once().X.shape == (900, 1)
    for wrong in ([], [{"name": "a"}], [{"name": "a", "type": "json"}], [{"name": "a", "type": "text"}] * 2):
        with pytest.raises((ValueError, StreamError), match="inputs"):
            hw.stream(TABLE, like={**good, "inputs": wrong}).at_once()


def test_many_columns_that_are_left_out_for_one_reason_are_told_in_one_sentence():
    table = {f"c{at}": [1.0, 1.0, 1.0] for at in range(30)} | {"x": [0.1, 0.4, 0.2], "y": [None, None, None]}
    with pytest.warns(UserWarning) as told:
        hw.MixedMixture(1, warm_up=2, random_state=0).partial_fit(pd.DataFrame(table))
    shown = [str(one.message) for one in told]
    assert (
        shown[0].startswith("columns 'c0', 'c1', 'c2'")
        and "and 20 more are left out, since the first rows have one" in shown[0]
    )
    assert "column 'y' is left out, since" in shown[1]
    assert len(shown) == 2


def test_columns_that_are_neither_words_nor_numbers_are_told_what_is_learned():
    table = pd.DataFrame({"x": [0.1, 0.4, 0.2], "day": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-04"])})
    with pytest.warns(UserWarning, match="column 'day' is left out, since it holds dates; read with dates='parts', hour"):
        hw.MixedMixture(1, warm_up=2, random_state=0).partial_fit(table)


@pytest.mark.parametrize("missing", ["drop", "zero", "blank"])
def test_gaps_of_columns_that_are_kept_as_they_are_stay(tmp_path, capsys, missing):
    """What was asked for is not done, and is said."""
    path = tmp_path / "a.csv"
    path.write_text("x,kind\n" + "1.5,u\n,v\n2.5,\n" * 30)
    with pytest.raises(StreamError, match=f"missing='{missing}' is for rows of numbers, and columns that"):
        next(iter(hw.stream(str(path), categories="keep", missing=missing)))
    model = hw.MixedMixture(1, warm_up=20, random_state=0)
    for chunk in hw.stream(str(path), categories="keep"):
        model.partial_fit(**chunk)
    model.save(tmp_path / "m.hw")
    assert main(["score", str(tmp_path / "m.hw"), str(path), "--missing", missing]) == 1
    assert f"--missing {missing} is for rows of numbers" in capsys.readouterr().err
