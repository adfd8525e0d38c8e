"""Limits of files: each raises a sentence, and none crashes. And pipes, whose rows are returned as they arrive."""

import json
import os
import threading

import numpy as np
import pytest

import headwater as hw
from headwater.io import byte_streams, first_bytes, memory_limit, sources
from headwater.io.read_errors import StreamError
from headwater.io.readers import delimited, delimited_head, json_lines, lines, svmlight
from headwater.io.recipes.column_choice import resolve_columns


def rows_of(source, **options):
    return np.concatenate([chunk.X for chunk in hw.stream(source, **options)])


def written(path, text):
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("nested", ['{"a":' * 20_000 + "1" + "}" * 20_000, '{"x":1,"a":' + "[" * 20_000 + "]" * 20_000 + "}"])
def test_json_that_is_nested_too_deep_is_refused(tmp_path, nested):
    with pytest.raises(StreamError, match=r"d\.jsonl has values within values, 2000[01] deep, where at most 500 are read"):
        rows_of(written(tmp_path / "d.jsonl", nested + "\n"))


@pytest.mark.parametrize("wrong", ['{"a": x}', '{"a": "x"}', '{"a": [1]}'])
def test_a_json_line_that_cannot_be_read_is_told_by_its_place_in_the_file(tmp_path, monkeypatch, wrong):
    monkeypatch.setattr(lines, "HEAD_BYTES", 64)
    monkeypatch.setattr(json_lines, "HEAD_BYTES", 64)
    path = written(tmp_path / "w.jsonl", '{"a": 1}\n' * 50 + wrong + "\n" + '{"a": 2}\n' * 10)
    with pytest.raises(StreamError, match=r"w\.jsonl cannot be read: JSON parse error: .* in row 50$"):
        rows_of(path)


def test_brackets_in_texts_are_no_nesting(tmp_path):
    objects = [json.dumps({"x": 1.5, "note": '[{"' * 2000}), json.dumps({"x": 2.5, "note": "]}" * 2000, "many": [[]] * 2000})]
    assert rows_of(written(tmp_path / "t.jsonl", "\n".join(objects)), columns=["x"]).ravel().tolist() == [1.5, 2.5]


def test_deep_json_after_the_first_rows_is_refused(tmp_path):
    text = '{"x": 1.0}\n' * (sources.HEAD_BYTES // 10) + '{"x": 1.0, "a": ' + "[" * 600 + "]" * 600 + "}\n"
    with pytest.raises(StreamError, match="601 deep"):
        rows_of(written(tmp_path / "d.jsonl", text))


def test_json_with_too_many_fields_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "FIELD_LIMIT", 20)
    wide = json.dumps({f"c{place}": 1.0 for place in range(21)})
    with pytest.raises(StreamError, match=r"w\.jsonl has a line of 21 fields, where at most 20 are read: store it as \.npy"):
        rows_of(written(tmp_path / "w.jsonl", wide))


WIDE = 200


@pytest.mark.parametrize("ending", ["csv", "headless.csv", "tsv", "jsonl", "svm", "txt", "seq"])
def test_rows_that_are_longer_than_the_first_look_are_read(tmp_path, monkeypatch, ending):
    """Rows of 150,000 columns are so long: the reader looks at one whole row at least."""
    for module in (byte_streams, sources, delimited, delimited_head, lines, json_lines):
        monkeypatch.setattr(module, "HEAD_BYTES", 256)
    for module in (lines, svmlight):
        monkeypatch.setattr(module, "SAMPLE_BYTES", 256)
    X = np.round(np.random.default_rng(0).random((3, WIDE)), 4)
    mark = "\t" if ending == "tsv" else ","
    body = "".join(mark.join(map(str, row)) + "\n" for row in X)
    names = [f"c{place:03}" for place in range(WIDE)]
    text = {
        "csv": mark.join(names) + "\n" + body,
        "headless.csv": body,
        "tsv": mark.join(names) + "\n" + body,
        "jsonl": "".join(json.dumps(dict(zip(names, row.tolist(), strict=True))) + "\n" for row in X),
        "svm": "".join("1 " + " ".join(f"{at + 1}:{one}" for at, one in enumerate(row)) + "\n" for row in X),
        "txt": "\n".join(" ".join(names) for _ in X) + "\n",
        "seq": "\n".join(" ".join(names) for _ in X) + "\n",
    }[ending]
    path = written(tmp_path / f"w.{ending}", text)
    if ending == "seq":
        assert [chunk.X.tolist() for chunk in hw.stream(path)] == [list(range(WIDE)) * 3]
        return
    found = [chunk.X for chunk in hw.stream(path)]
    found = np.concatenate([one.toarray() if hasattr(one, "toarray") else one for one in found])
    assert np.array_equal(found, np.ones((3, WIDE)) if ending == "txt" else X)


def test_a_table_that_is_too_wide_for_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_limit, "UNCHECKED_COLUMNS", 5)
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 100_000)
    path = written(tmp_path / "w.csv", ",".join("abcdef") + "\n" + "1,2,3,4,5,6\n")
    with pytest.raises(
        StreamError, match=r"w\.csv has 6 columns, which take about 0\.0 GB to read, and there is room for 0\.0 GB"
    ):
        rows_of(path)


def test_the_limit_of_the_process_counts_as_memory(monkeypatch):
    resource = pytest.importorskip("resource")
    limit = 2**50
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert 0 < memory_limit._unused_limit() < limit
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1, 1))
    assert memory_limit.available_memory() == 0
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, 1))
    assert memory_limit._unused_limit() is None


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    for module in (sources, first_bytes, lines, delimited, delimited_head):
        monkeypatch.setattr(module, "LINE_BYTES_LIMIT", 2**20)
    for module in (lines, svmlight):
        monkeypatch.setattr(module, "SAMPLE_BYTES", 2**20)
    for name in ("a.csv", "a.jsonl", "a.svm", "a.txt"):
        with pytest.raises(StreamError, match=rf"{name} has a line of more than 1 MB"):
            rows_of(written(tmp_path / name, "1" * 2**23))


# Decimal commas


@pytest.mark.parametrize("text", ["a;b\n1,5;2,75\n3;4,5\n", "1,5;2,75\n3;4,5\n", "a\tb\n1,5\t2,75\n3\t4,5\n"])
def test_decimal_commas_are_found_out(tmp_path, text):
    assert rows_of(written(tmp_path / "d.csv", text)).tolist() == [[1.5, 2.75], [3.0, 4.5]]
    assert rows_of(written(tmp_path / "d.csv", text), decimal=",").tolist() == [[1.5, 2.75], [3.0, 4.5]]


def test_a_comma_that_may_be_either_is_asked_about(tmp_path):
    path = written(tmp_path / "d.csv", "a;b\n1,500;2\n3,125;4\n")
    with pytest.raises(StreamError, match=r"d\.csv has '1,500' in column 'a', whose comma may be a decimal point, or not"):
        rows_of(path)
    assert rows_of(path, decimal=",").tolist() == [[1.5, 2.0], [3.125, 4.0]]
    with pytest.raises(StreamError, match="holds no numbers in column 'a'"):
        rows_of(path, decimal=".")
    with pytest.raises(ValueError, match=r"decimal must be '\.' or ',', got ';'"):
        hw.stream(path, decimal=";")


def test_one_column_may_have_decimal_commas(tmp_path):
    """As a table of two columns it has none in common with its names."""
    path = written(tmp_path / "d.csv", "a\n1,5\n2,25\n")
    with pytest.raises(StreamError, match=r"has 2 values in line 2, where one is expected; decimal=',' reads a comma as the"):
        rows_of(path)
    for text in ("a\n1,5\n2,25\n", "1,5\n2,25\n"):
        assert rows_of(written(tmp_path / "d.csv", text), decimal=",").tolist() == [[1.5], [2.25]]


def test_quoted_decimal_commas_are_explained(tmp_path):
    path = written(tmp_path / "d.csv", 'a,b\n"1,5",2\n3,"4,5"\n')
    with pytest.raises(StreamError, match=r"holds no numbers in .* decimal=',' reads the commas of 'a' as decimal points"):
        rows_of(path)
    assert rows_of(path, decimal=",").tolist() == [[1.5, 2.0], [3.0, 4.5]]
    with pytest.raises(StreamError, match=r"which takes them as they are$"):
        rows_of(written(tmp_path / "w.csv", 'a,b\n"oak, 5",2\n"1,5",3\n'))


def test_a_decimal_comma_that_comes_late_is_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited_head, "HEAD_BYTES", 256)
    path = written(tmp_path / "d.csv", "a;b\n" + "1;2\n" * 256 + "1,5;2\n")
    with pytest.raises(StreamError, match=r"'1,5', which is no number; decimal=',' reads a comma as the decimal point"):
        rows_of(path)


# Pipes


class Typed:
    """A named pipe to which lines are written one by one."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = str(path)
        self.opened = threading.Thread(target=self._open, daemon=True)
        self.opened.start()

    def _open(self):
        self.file = open(self.path, "wb", buffering=0)  # noqa: SIM115

    def write(self, text):
        self.opened.join(60)
        self.file.write(text.encode())


@pytest.fixture
def model():
    rows = np.random.default_rng(0).normal(size=(200, 2))
    learned = hw.GaussianMixture(1, random_state=0)
    return learned.partial_fit(next(iter(hw.stream(_table(rows)))))


def _table(rows):
    import pyarrow as pa

    return pa.table({"a": rows[:, 0], "b": rows[:, 1]})


LIVE = {
    "named csv": ("csv", "a,b\n", ["1.0,2.0\n", "3,4.5\n"], {}),
    "csv that is recognized": (None, "a,b\n", ["1.0,2.0\n", "3,4.5\n"], {}),
    "other columns": ("csv", "b,id,a\n", ["2.0,x,1.0\n", "4.5,7,3\n"], {}),
    "quoted line breaks": ("csv", "b,id,a\n", ['2.0,"x\ny",1.0\n', '4.5,"""",3\n'], {}),
    "json": ("jsonl", "", ['{"a": 1.0, "b": 2}\n', '{"b": 4.5, "a": 3}\n'], {}),
    "json that is recognized": (None, "", ['{"a": 1.0, "b": 2}\n', '{"b": 4.5, "a": 3}\n'], {}),
    "json with a field more": (None, "", ['{"b": 2, "a": 1.0}\n', '{"b": 4.5, "a": 3, "c": [1]}\n'], {}),
    "kept columns": ("csv", "id,a,b\n", ["7,1.0,2.0\n", "x8,3,4.5\n"], {"keep": ["id"]}),
    "tabs": ("tsv", "a\tb\n", ["1.0\t2.0\n", "3\t4.5\n"], {}),
    "decimal commas": ("csv", "a;b\n", ["1,0;2,0\n", "3;4,5\n"], {}),
}


@pytest.mark.parametrize("case", LIVE)
@pytest.mark.parametrize("chunk_rows", [1, "auto"])
def test_rows_of_a_pipe_are_there_before_the_next_ones_come(tmp_path, model, case, chunk_rows):
    """Each line is written after the answer to the line before; a reader that waits for more would wait for ever."""
    form, first, typed, options = LIVE[case]
    pipe = Typed(tmp_path / "pipe")
    found = []

    def read():
        stream = hw.stream(pipe.path, format=form, like=model, chunk_rows=chunk_rows, **options)
        pipe.write(first + typed[0])
        chunks = stream.arriving()
        found.append(next(chunks).X.tolist())
        pipe.write(typed[1])
        found.append(next(chunks).X.tolist())
        pipe.file.close()
        found.append(list(chunks))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(60)
    assert found == [[[1.0, 2.0]], [[3.0, 4.5]], []]


def test_true_and_false_may_begin_with_a_missing_value_in_a_pipe(tmp_path, model):
    for form, text in (
        ("csv", "a,b\n1,NA\n2,true\n3,false\n"),
        ("jsonl", '{"a": 1, "b": null}\n{"a": 2, "b": true}\n{"a": 3}\n'),
    ):
        pipe = Typed(tmp_path / form)
        stream = hw.stream(pipe.path, format=form, like=model, missing="zero")
        pipe.write(text)
        pipe.file.close()
        assert np.concatenate([chunk.X for chunk in stream]).tolist() == [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]


def test_errors_in_a_pipe_say_the_line(tmp_path, model):
    for name, text, said in (
        ("1", "a,b\n1,2\n3,x\n", "line 3: 'x', which is no number"),
        ("2", "a,b\n1,2\n3\n", "1 values in line 3, where 2 are expected"),
        ("3", 'a,b\n1,2\n3,"4\n', "a quotation mark that is never closed"),
    ):
        pipe = Typed(tmp_path / name)
        stream = hw.stream(pipe.path, format="csv", like=model)
        pipe.write(text)
        pipe.file.close()
        with pytest.raises(StreamError, match=said):
            list(stream)


# Rows that lack a value


def test_rows_that_are_left_out_are_counted_or_marked(tmp_path):
    text = "a,b,y,w,k\n1,2,3,1,u\n,2,3,1,u\n4,5,,1,v\n6,7,8,1,\n9,8,7,1,v\n"
    options = {"target": "y", "weight": "w", "key": "k", "missing": "drop", "chunk_rows": 2}
    stream = hw.stream(written(tmp_path / "m.csv", text), **options)
    assert np.concatenate([chunk.X for chunk in stream]).tolist() == [[1, 2], [9, 8]] and stream.rows_left_out == 3
    marked = stream.marked()
    chunks = list(marked.arriving())
    X, y = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("X", "y"))
    assert np.isnan(X).all(axis=1).tolist() == np.isnan(y).tolist() == [False, True, True, True, False]
    assert np.concatenate([chunk.row_numbers for chunk in chunks]).tolist() == [0, 1, 2, 3, 4] and marked.rows_left_out == 0
    assert [key for chunk in chunks for key in chunk.key.tolist()] == ["u", "", "", "", "v"]
    array = np.array([[1.0, 2.0], [np.nan, 1.0]])
    assert np.isnan(next(iter(hw.stream(array, missing="drop").marked())).X).tolist() == [[False] * 2, [True] * 2]


def test_rows_keep_their_numbers_after_files_that_are_left_out_as_a_whole(tmp_path):
    texts = ("a,b\n1,2\n3,4\n", "a,b\n,2\n,4\n", "a,b\n5,6\n7,8\n")
    files = [written(tmp_path / f"{number}.csv", text) for number, text in enumerate(texts)]
    numbers = [0, 1, 4, 5]
    for rows in (1, 2, 3, 100):
        stream = hw.stream(files, missing="drop", chunk_rows=rows)
        assert [number for chunk in stream for number in chunk.row_numbers] == numbers
        assert [number for chunk in stream.chunks(start_row=rows) for number in chunk.row_numbers] == numbers[rows:]
        assert stream.rows_left_out == 2


def test_comments_and_empty_lines_between_sequences_are_not_rows_that_lack_a_value(tmp_path):
    stream = hw.stream(written(tmp_path / "s.seq", "a b\n\n# a comment\nb a\n% another\n"))
    chunks = list(stream)
    assert [length for chunk in chunks for length in chunk.lengths] == [2, 2] and stream.rows_left_out == 0


def test_very_many_columns_are_not_searched_one_by_one():
    class Names(tuple):
        def __contains__(self, name):
            raise AssertionError(f"all names were searched for {name}")

    names = Names(f"c{at}" for at in range(50))
    assert resolve_columns(["c7", 3, "c0", -1], names, "wide.csv", "keep") == ["c7", "c3", "c0", "c49"]
