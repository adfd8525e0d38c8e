"""Columns of streams: selection, categories, missing values, and errors."""

import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from stream_files import dense, matrix, table, write

import headwater as hw

X = matrix()
MIXED = "x,when,kind,flag\n1,2020-01-01,oak,true\n2,2020-01-02,ash,false\n3,2020-01-01,oak,true\n"


@pytest.fixture
def mixed(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text(MIXED)
    return path


def refused(path, content, sentence, kind=ValueError, **options):
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(kind, match=sentence) as caught:
        list(hw.stream(path, **options))
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 600
    assert str(path.name) in said


def test_columns_are_chosen_by_name_or_place(tmp_path):
    for kind in ("csv", "parquet", "jsonl", "arrow"):
        path = write(tmp_path, kind, X)
        for options in ({"columns": ["c", "a"]}, {"columns": [2, 0]}):
            stream = hw.stream(path, **options)
            assert stream.columns == ["c", "a"]
            assert np.array_equal(dense(stream), X[:, [2, 0]])
        assert np.array_equal(dense(hw.stream(path, exclude="b")), X[:, [0, 2]])
        assert np.array_equal(dense(hw.stream(path, exclude=1, target="a")), X[:, [2]])
    assert np.array_equal(dense(hw.stream(write(tmp_path, "npy", X), columns=[2, 1])), X[:, [2, 1]])
    with pytest.raises(ValueError, match=r"columns names 'd', which .* does not have; it has 'a', 'b', 'c'"):
        list(hw.stream(path, columns=["d"]))


def test_categories_are_refused_by_name(mixed):
    refused(mixed, None, r"holds no numbers in columns 'when', 'kind' \(date32\[day\], string\): use categories='one-hot'")


def test_categories_are_dropped(mixed):
    stream = hw.stream(mixed, categories="drop")
    assert stream.columns == ["x", "flag"]
    assert dense(stream).tolist() == [[1, 1], [2, 0], [3, 1]]


def test_categories_are_one_hot(mixed, tmp_path):
    stream = hw.stream(mixed, categories="one-hot", exclude="flag")
    assert stream.columns == ["x", "when=2020-01-01", "when=2020-01-02", "kind=ash", "kind=oak"]
    assert dense(stream).tolist() == [[1, 1, 0, 0, 1], [2, 0, 1, 1, 0], [3, 1, 0, 0, 1]]
    new = tmp_path / "new.csv"
    new.write_text("kind,more,x,when\nelm,1,4,2020-01-02\n")
    assert dense(hw.stream(new, like=stream)).tolist() == [[4, 0, 1, 0, 0]]  # a new level is 0 in all columns
    many = tmp_path / "many.csv"
    refused(
        many, "x,k\n" + "".join(f"1,k{i}\n" for i in range(1001)), "'k' of .* has 1001 different values", categories="one-hot"
    )


def test_dictionaries_of_parquet_are_categories(tmp_path):
    frame = pa.table({"x": [1.0, 2.0], "k": pa.array(["p", "q"]).dictionary_encode()})
    pq.write_table(frame, tmp_path / "k.parquet")
    refused(tmp_path / "k.parquet", None, "holds no numbers in column 'k'")
    assert dense(hw.stream(tmp_path / "k.parquet", categories="one-hot")).tolist() == [[1, 1, 0], [2, 0, 1]]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_only_the_columns_that_are_wanted_may_lack_values(kind, tmp_path):
    frame = pa.table({"a.x": [1.0, 2.0], "b": [None, 1.0], "c": ["p", None]})
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(frame, path)
    else:
        with pa.ipc.new_file(path, frame.schema) as writer:
            writer.write_table(frame)
    assert dense(hw.stream(path, columns=["a.x"], missing="drop")).tolist() == [[1], [2]]
    assert dense(hw.stream(path, exclude="c", missing="drop")).tolist() == [[2, 1]]


def test_numbers_of_all_types():
    frame = pa.table({
        "int": pa.array([1, None], pa.int32()), "flag": [True, False], "half": pa.array(np.float16([1.5, 2.5])),
        "decimal": pa.array([1, 2], pa.decimal128(5, 2)), "none": pa.nulls(2),
    })  # fmt: skip
    assert dense(hw.stream(frame, missing="zero")).tolist() == [[1, 1, 1.5, 1, 0], [0, 0, 2.5, 2, 0]]


@pytest.mark.parametrize(
    ("policy", "rows"),
    [
        ("drop", [[1, 2], [7, 8]]),
        ("zero", [[1, 2], [0, 4], [5, 0], [7, 8]]),
        ("keep", [[1, 2], [np.nan, 4], [5, np.nan], [7, 8]]),
        ("blank", [[1, 2], [np.nan, np.nan], [np.nan, np.nan], [7, 8]]),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy", "jsonl"])
def test_missing_values(policy, rows, suffix, tmp_path):
    values = np.array([[1, 2], [np.nan, 4], [5, np.nan], [7, 8]])
    path = tmp_path / f"rows.{suffix}"
    if suffix == "csv":
        path.write_text("a,b\n1,2\nNA,4\n5,\n7,8\n")
    elif suffix == "parquet":
        pq.write_table(pa.table({"a": [1.0, None, 5.0, 7.0], "b": [2.0, 4.0, np.nan, 8.0]}), path)
    elif suffix == "jsonl":
        path.write_text('{"a":1,"b":2}\n{"a":null,"b":4}\n{"a":5}\n{"a":7,"b":8}\n')
    else:
        np.save(path, values)
    stream = hw.stream(path, missing=policy, chunk_rows=2)
    assert np.array_equal(dense(stream), rows, equal_nan=True)
    assert [len(chunk) for chunk in stream] == [2] * (len(rows) // 2)
    refused(path, None, "has no value in column '(a|x0)', row 1: missing='drop' leaves such rows out")


def test_types_of_csv_do_not_depend_on_the_first_block(tmp_path):
    path = tmp_path / "late.csv"
    many = "1,2\n" * 400_000  # more than the first megabyte, which decides the types
    path.write_text(f"a,b\n{many}1.5,1e3\n")
    last = list(hw.stream(path))[-1]
    assert last.X[-1].tolist() == [1.5, 1000.0]
    refused(path, f"a,b\n{many}oak,1\n", "has in column 'a', line 400002: 'oak', which is no number")
    refused(path, f"a,b\n{many}1,2,3\n", "has 3 values in line 400002, where 2 are expected")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.csv", "", "is empty: there is nothing to learn from it"),
        ("blank.csv", "\n\n \n", "is empty"),
        ("head.csv", "a,b\n", "has names of columns but no rows"),
        ("twice.csv", "a,a\n1,2\n", "has the column 'a' more than once"),
        ("wide.csv", "a,b\n1,2\n1,2,3\n", "has 3 values in line 3, where 2 are expected"),
        ("broken.csv", b"a,b\n1,2\n\xff\xfe,2\n", "UTF8|utf-8|which is no number|no numbers"),
        ("infinite.csv", "a\n1\ninf\n", "has an infinite value in column 'a', row 1"),
        ("binary.csv", bytes(range(256)) * 8, "is no text: it holds binary data"),
        ("text.csv.gz", "a,b\n1,2\n", "cannot be read"),
        ("cut.parquet", b"PAR1 and no more", "cannot be read"),
        ("not.parquet", b"a,b\n1,2\n", "is neither Parquet nor Arrow"),
        ("not.npy", b"a,b\n1,2\n", "cannot be read"),
        ("not.npz", b"a,b\n1,2\n", "cannot be read"),
        ("not.mtx", b"a,b\n1,2\n", "is no Matrix Market file: it begins with"),
        ("not.svm", b"a,b\n1,2\n", "cannot be read"),
        ("docword.not.txt", b"a,b\n1,2\n", "its first three lines must be numbers"),
        ("docword.short.txt", b"2\n2\n2\n1 1 1\n", "holds 1 entries, where its head says 2"),
        ("docword.huge.txt", b"999999999999\n2\n1\n1 1 1\n", "which cannot be"),
        ("late.jsonl", '{"a": 1}\n{"a": "x"}\n', "cannot be read"),
        ("cut.jsonl", '{"a": 1}\n{"a": ', "cannot be read"),
        ("unknown", b"hm", "does not look like any format: name it by format="),
        ("blank.txt", "\n\n", "is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_in_a_sentence(name, content, sentence, tmp_path):
    refused(tmp_path / name, content, sentence)


def test_lines_before_the_names(tmp_path):
    path = tmp_path / "rows.csv"
    for content in ("\n\na,b\n1,2\n", "\ufeffa,b\r\n1,2\r\n", "a,b\n1,2", '"a","b"\n\n"1",2\n', "a;b\n1;2\n"):
        path.write_bytes(content.encode())
        stream = hw.stream(path)
        assert stream.columns == ["a", "b"]
        assert dense(stream).tolist() == [[1, 2]]
    path.write_text('"a\nside",b\n1,2\n')
    assert hw.stream(path).columns == ["a\nside", "b"]
    assert dense(hw.stream(path)).tolist() == [[1, 2]]
    path.write_text("1,2\n3,4\n")
    assert hw.stream(path).columns == ["x0", "x1"]
    assert hw.stream(path, header=True).columns == ["1", "2"]
    assert dense(hw.stream(path, header=True)).tolist() == [[3, 4]]
    path.write_text("id,2019\n1,4\n")
    assert hw.stream(path).columns == ["id", "2019"]
    refused(
        path, "5.1,iris\n4.9,iris\n", "may have names in its first row, or not, '5.1', 'iris': say header=True or header=False"
    )
    assert dense(hw.stream(path, header=False, categories="drop")).tolist() == [[5.1], [4.9]]
    write(tmp_path, "csv", X, stem="a")
    (tmp_path / "b.csv").write_text("a,b,c\n")  # a part without rows
    for parts in ("aba", "baa"):
        assert np.array_equal(dense(hw.stream([tmp_path / f"{part}.csv" for part in parts])), np.vstack([X, X]))


def test_a_quotation_mark_that_is_never_closed_swallows_nothing(tmp_path):
    path = tmp_path / "quotes.csv"
    for content in ('a,b\n1,"x\n2,y\n3,z\n', '1,2\n"3,4\n5,6\n', 'b,a\n"x,1\ny,2\n', 'a\n1\n"2\n3'):
        refused(path, content, "quotation mark|values in line|no value|no number|no column", categories="drop")
    path.write_text('a,b\n1,5" pipe\n2,"a ""b"" c"\n,"two\nlines"')
    assert dense(hw.stream(path, columns=["a"], missing="zero")).tolist() == [[1], [2], [0]]


def test_files_that_are_not_there(tmp_path):
    refused(tmp_path / "none.csv", None, "cannot be read: No such file or directory", FileNotFoundError)
    with pytest.raises(FileNotFoundError, match="matches no file"):
        hw.stream(tmp_path / "*.csv")
    with pytest.raises(FileNotFoundError, match="is a folder without files to read"):
        hw.stream(tmp_path)
    (tmp_path / "notes.md").touch()
    with pytest.raises(FileNotFoundError, match="only 1 with unknown endings: name their format="):
        hw.stream(tmp_path)
    write(tmp_path, "csv", X)
    write(tmp_path, "parquet", X)
    with pytest.raises(ValueError, match="holds files of several formats, csv and parquet: choose some by a glob"):
        hw.stream(tmp_path)


def test_a_cut_archive_is_not_a_short_file(tmp_path):
    for packed in (".gz", ".bz2", ".zst"):
        path = write(tmp_path, "csv", matrix(5000), packed)
        whole = path.read_bytes()
        for length in (len(whole) - 1, len(whole) // 2):
            refused(path, whole[:length], "cannot be read: Truncated compressed stream")


def test_files_must_fit_together(tmp_path):
    first = write(tmp_path, "csv", X, stem="first")
    second = tmp_path / "second.csv"
    for content, sentence in (
        ("a,b\n1,2\n", "second.csv lacks the column 'c'; it has 'a', 'b'"),
        ("a,b,c,d\n1,2,3,4\n", "second.csv has the column 'd', which the first file does not have"),
    ):
        second.write_text(content)
        with pytest.raises(ValueError, match=sentence):
            list(hw.stream([first, second]))
    second.write_text("c,b,a\n3,2,1\n")
    assert dense(hw.stream([first, second]))[-1].tolist() == [1, 2, 3]
    text = write(tmp_path, "text", X)
    with pytest.raises(ValueError, match=r"rows.txt holds lines of text, where a table was before"):
        list(hw.stream([first, text]))


@pytest.mark.slow
def test_a_model_keeps_how_it_was_taught(tmp_path):
    path = tmp_path / "trees.csv"
    path.write_text("h,kind,y\n" + "".join(f"{i % 7},{'oak' if i % 2 else 'ash'},{i % 5}\n" for i in range(60)))
    stream = hw.stream(path, categories="one-hot", target="y")
    model = hw.RegressionMixture(1, random_state=0)
    for chunk in stream:
        model.partial_fit(**chunk)
    assert model.schema_ == stream.schema
    (chunk,) = hw.stream(pa.table({"kind": ["ash"], "h": [1]}), like=model)
    assert np.isfinite(model.predict(chunk)).all()


def test_like_reads_as_a_model_was_taught(tmp_path):
    path = tmp_path / "trees.csv"
    path.write_text("h,kind,y\n" + "".join(f"{i % 7},{'oak' if i % 2 else 'ash'},{i % 5}\n" for i in range(60)))
    stream = hw.stream(path, categories="one-hot", target="y")
    model = SimpleNamespace(schema_=next(iter(stream)).schema)
    assert json.loads(json.dumps(model.schema_)) == stream.schema
    new = tmp_path / "new.csv"
    new.write_text("kind,h\nash,1\n")
    (chunk,) = hw.stream(new, like=model)
    assert chunk.X.tolist() == [[1, 1, 0]]
    assert chunk.y is None
    (chunk,) = hw.stream(new, like=model, target="h")
    assert chunk.y.tolist() == [1]
    with pytest.raises(ValueError, match=r"new.csv lacks the column 'y'"):
        list(hw.stream(new, like=model, target="y"))
    with pytest.raises(ValueError, match="columns are those of the model"):
        list(hw.stream(new, like=model, columns=["h"]))
    for schema, sentence in (
        ({"kind": "table", "inputs": [{"name": 3}]}, "inputs is {'name': 3}"),
        ({"kind": "table", "inputs": [{"name": "a", "levels": ["x", "x"]}]}, "levels is"),
        ({"kind": "table", "inputs": [{"name": "a"}], "missing": "guess"}, "missing is 'guess'"),
        ({"kind": "table", "inputs": []}, "inputs is"),
        ({"kind": "../x"}, "kind is '../x'"),
        ({"kind": "sequences", "symbols": [1]}, "symbols is"),
        ({"kind": "sparse", "width": -1}, "width is -1"),
        ({"kind": "text", "vocabulary": "abc"}, "vocabulary is 'abc'"),
    ):
        with pytest.raises(
            ValueError, match="the schema that rows shall be read by is damaged: " + sentence.replace("[", r"\[")
        ):
            list(hw.stream(new, like=schema))
    with pytest.raises(ValueError, match="like must be a model that learned from a stream, but GaussianMixture has no schema_"):
        hw.stream(new, like=hw.GaussianMixture(1))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"categories": "all"}, "categories must be one of 'refuse', 'one-hot', 'drop', 'keep', got 'all'"),
        ({"missing": None}, "missing must be one of"),
        ({"chunk_rows": 0}, "chunk_rows must be a whole number of at least 1, got 0"),
        ({"shuffle": 1.5}, "shuffle must be a whole number of at least 0, got 1.5"),
        ({"columns": []}, "columns must name at least one column"),
        ({"columns": [1.5]}, "columns must name columns, or give their places"),
        ({"format": "xls"}, "format must be one of 'parquet', .*, got 'xls'"),
        ({"delimiter": "ab"}, "delimiter must be one character, got 'ab'"),
        ({"vocabulary": "all"}, "vocabulary must be one of 'first', 'open', 'known', got 'all'"),
        ({"stop_words": ["a", "a"]}, "stop_words must hold each word once, got 'a' twice"),
    ],
)
def test_options_are_checked(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        hw.stream(X, **options)


def test_complex_snapshots(tmp_path):
    snapshots = X + 1j * X[::-1]
    snapshots[3, 1] = np.nan
    np.save(tmp_path / "snapshots.npy", snapshots)
    (chunk,) = hw.stream(tmp_path / "snapshots.npy", missing="keep")
    assert chunk.X.dtype == np.complex128
    assert np.array_equal(chunk.X, snapshots, equal_nan=True)


def test_sources_that_are_none():
    for source in (3, {"a": 1}, b"a,b"):
        with pytest.raises(TypeError, match="a stream is made of"):
            hw.stream(source)
    with pytest.raises(ValueError, match="empty"):
        hw.stream("")
    with pytest.raises(ValueError, match="must hold numbers, got an array of <U1"):
        list(hw.stream(np.array([["a"]])))


def test_keys_are_text_and_never_missing():
    frame = table(X[:2]).append_column("k", pa.array([7, None]))
    with pytest.raises(ValueError, match="'k' of the Table must name the sequence of each row, but has 1 missing"):
        list(hw.stream(frame, key="k"))
    (chunk,) = hw.stream(frame.slice(0, 1), key="k")
    assert chunk.key.tolist() == ["7"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "frame"])
@pytest.mark.parametrize("options", [{}, {"shuffle": 4}], ids=["in order", "shuffled"])
def test_kept_columns_have_the_types_of_the_file(kind, options, tmp_path):
    whole = pa.table({"x": [1.5, None, 3.0, 4.0, 5.0], "id": [7, 8, None, 10, 11], "name": ["a", "b", "c", "d", None]})
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(whole, path)
    elif kind == "csv":
        csv.write_csv(whole, path)
    elif kind == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in whole.to_pylist()))
    stream = hw.stream(whole if kind == "frame" else path, keep=["id", "name"], missing="drop", chunk_rows=2, **options)
    chunks = list(stream)
    assert stream.columns == ["x"]
    assert [chunk.kept["id"].type for chunk in chunks] == [pa.int64()] * 2
    kept = [pa.table(dict(chunk.kept)).append_column("x", [chunk.X[:, 0]]) for chunk in chunks]
    found = {(row["x"], row["id"], row["name"]) for row in pa.concat_tables(kept).to_pylist()}
    assert found == {(1.5, 7, "a"), (3.0, None, "c"), (4.0, 10, "d"), (5.0, 11, None)}
    assert set(chunks[0].keys()) == {"X"}


def test_columns_of_the_model_are_kept_too(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    first = hw.stream(tmp_path / "a.csv")
    again = next(iter(hw.stream(tmp_path / "a.csv", like=first, keep="b")))
    assert again.X.tolist() == [[1, 2], [3, 4]]
    assert again.kept["b"].to_pylist() == [2, 4]
    assert again.kept["b"].type == pa.int64()
    matrix = next(iter(hw.stream(np.arange(6).reshape(3, 2), keep=[1], columns=[0])))
    assert [values.to_pylist() for values in matrix.kept.values()] == [[1, 3, 5]]
    with pytest.raises(ValueError, match=r"keep names 'c', which .* does not have; it has 'a', 'b'"):
        next(iter(hw.stream(tmp_path / "a.csv", keep="c")))
    (tmp_path / "a.seq").write_text("a b\n")
    with pytest.raises(ValueError, match=r"a.seq is no table, so that keep= can name no columns of it"):
        next(iter(hw.stream(tmp_path / "a.seq", keep="c")))


def test_errors_count_the_rows_of_the_file(tmp_path):
    (tmp_path / "a.csv").write_text(
        "a,b\n" + "".join(f"{'' if row in (1, 2) else 'inf' if row == 6 else row},0\n" for row in range(9))
    )
    with pytest.raises(ValueError, match="infinite value in column 'a', row 6"):
        list(hw.stream(tmp_path / "a.csv", missing="drop", chunk_rows=3))
    rows = np.array([[np.nan, 0], [1, np.nan], [2, 2], [np.inf, 3]])
    with pytest.raises(ValueError, match=r"infinite value in column '.0', row 3"):
        list(hw.stream(rows, missing="drop"))
    assert next(iter(hw.stream(rows[:3], columns=[0], missing="drop"))).X.tolist() == [[1], [2]]  # the other one may be missing


def test_a_word_among_numbers_is_named_with_its_line(tmp_path):
    refused(tmp_path / "a.csv", "x,y\n" + "1,2\n" * 20 + "1,oops\n", "has in column 'y', line 22: 'oops', which is no number")
    refused(tmp_path / "a.csv", "x,y\n1,2\n1,oops\n", "holds no numbers in column 'y'")
    path = tmp_path / "b.csv"
    path.write_text("x,y\n" + "1,2\n" * 20 + "1,oops\n")
    assert hw.stream(path, categories="one-hot").columns == ["x", "y=2", "y=oops"]


def test_names_go_on_in_the_next_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,"na,me ""q""\nline",""\n1,2,3\n4,5,6\n')
    stream = hw.stream(path)
    assert stream.columns == ["a", 'na,me "q"\nline', ""]
    assert dense(stream).tolist() == [[1, 2, 3], [4, 5, 6]]
    refused(path, 'a,"b\nc"\n1,2\n1,x2\n' + "1,2\n" * 20, "line 4: 'x2', which is no number")


def test_answers_need_no_weights_and_labels(tmp_path):
    rows = pa.table({"x": np.arange(40.0) % 7, "w": np.ones(40), "l": np.full(40, -1), "t": np.arange(40.0)})
    mixture, regression = hw.GaussianMixture(2, random_state=0), hw.RegressionMixture(1, random_state=0)
    for model, options in ((mixture, {"weight": "w", "label": "l"}), (regression, {"target": "t"})):
        for chunk in hw.stream(rows, columns=["x"], **options):
            model.partial_fit(**chunk)
            with pytest.raises(ValueError, match=r"which would be lost: pass it as partial_fit\(\*\*chunk\)"):
                model.partial_fit(chunk)
    (chunk,) = hw.stream(rows, like=mixture)
    assert mixture.score_samples(chunk).shape == (40,)
    (chunk,) = hw.stream(rows, like=regression)
    assert np.array_equal(regression.predict(chunk), regression.predict(chunk["X"]))
    (tmp_path / "a.seq").write_text("0 1 1\n1 0\n0 0 0 1\n")
    (chunk,) = hw.stream(tmp_path / "a.seq")
    chain = hw.MarkovMixture(1, random_state=0).partial_fit(**chunk)
    assert np.array_equal(chain.score_samples(chunk), chain.score_samples(chunk.X, chunk.lengths))
    with pytest.raises(ValueError, match="the chunk comes with lengths, which would be lost"):
        chain.partial_fit(chunk)


def test_rows_keep_their_numbers_when_others_are_dropped(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("x,y\n1,2\n,3\n4,5\n6,7\n")
    chunks = list(hw.stream([tmp_path / "a.csv", tmp_path / "b.csv"], missing="drop", chunk_rows=4))
    assert [chunk.row_numbers.tolist() for chunk in chunks] == [[0, 2, 3, 4], [6, 7]]
    assert [chunk.row_numbers.tolist() for chunk in hw.stream(np.ones((3, 2)), chunk_rows=2)] == [[0, 1], [2]]


def test_names_that_are_counted_are_asked_about(tmp_path):
    """pandas writes a frame without names in this way; the numbers would be learned as a row without notice."""
    refused(tmp_path / "counted.csv", "0,1,2\n0.5,0.1,0.2\n", "may have names in its first row")
    assert len(next(iter(hw.stream(tmp_path / "counted.csv", header=True)))) == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("sepal length (cm),petal width (cm),a b c\n5.1,3.5,1\n", ["sepal length (cm)", "petal width (cm)", "a b c"]),
        ("size, in mm\theight, in mm\n1.5\t2.5\n", ["size, in mm", "height, in mm"]),
        ("a b c\n1 2 3\n", ["a", "b", "c"]),
    ],
)
def test_names_of_columns_may_hold_other_delimiters(text, names, tmp_path):
    (tmp_path / "rows.csv").write_text(text)
    (chunk,) = hw.stream(tmp_path / "rows.csv")
    assert list(chunk.columns) == names
