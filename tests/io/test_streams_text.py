"""Streams of documents, sequences and sparse rows."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from stream_files import docword, matrix, svmlight, write

import headwater as hw
from headwater.cli import main
from headwater.io.readers import lines

DOCUMENTS = ["The cat sat.", "", "Ein Bär, ein Bär!", "cat_1 sat on it; the cat"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "documents.txt"
    path.write_text("\n".join(DOCUMENTS) + "\n", encoding="utf8")
    return path


def counts(chunk):
    return [{chunk.columns[j]: int(n) for j, n in enumerate(row) if n} for row in chunk.X.toarray()]


def test_words_are_counted(text):
    (chunk,) = hw.stream(text)
    assert counts(chunk) == [
        {"the": 1, "cat": 1, "sat": 1}, {}, {"ein": 2, "bär": 2}, {"cat_1": 1, "sat": 1, "on": 1, "it": 1, "the": 1, "cat": 1},
    ]  # fmt: skip
    assert chunk.columns == ("the", "cat", "sat", "ein", "bär", "cat_1", "on", "it")
    assert chunk.X.has_sorted_indices


def test_words_are_chosen(text, tmp_path):
    (chunk,) = hw.stream(text, lowercase=False, shortest=3, stop_words=["sat"])
    assert chunk.columns == ("The", "cat", "Ein", "Bär", "ein", "cat_1", "the")
    (tmp_path / "words").write_text("cat\ndog\n")
    for vocabulary in (["cat", "dog"], str(tmp_path / "words")):
        (chunk,) = hw.stream(text, vocabulary=vocabulary)
        assert chunk.X.toarray().tolist() == [[1, 0], [0, 0], [0, 0], [1, 0]]


def test_words_are_hashed(text):
    (chunk,) = hw.stream(text, vocabulary=16)
    assert chunk.shape == (4, 16)
    assert chunk.columns is None
    assert chunk.X.sum(axis=1).tolist() == [3, 0, 4, 6]
    (again,) = hw.stream(text, like={**chunk.schema})
    assert np.array_equal(again.X.toarray(), chunk.X.toarray())


def test_a_vocabulary_is_fixed_by_the_first_documents_or_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "SAMPLE_BYTES", 1000)
    path = tmp_path / "long.txt"
    path.write_text("river stream\n" * 5000 + "river delta\n")
    last = list(hw.stream(path, chunk_rows=1000))[-1]
    assert last.columns == ("river", "stream")
    assert last.X[[-1]].toarray().tolist() == [[1, 0]]
    stream = hw.stream(path, vocabulary="open", chunk_rows=1000)
    first, *_, last = stream
    assert first.columns == ("river", "stream")
    assert last.columns == ("river", "stream", "delta")
    assert first.X.shape[1] == 2
    (again,) = stream.chunks(last.start)
    assert again.columns == last.columns
    assert (again.X != last.X).nnz == 0


def test_an_open_vocabulary_is_read_from_the_model(text, tmp_path):
    model = hw.LatentDirichletAllocation(2, vocabulary="open", random_state=0)
    for chunk in hw.stream(text, vocabulary="open", chunk_rows=1):
        if chunk.X.nnz:
            model.partial_fit(**chunk)
    new = tmp_path / "new.txt"
    new.write_text("a new cat on a mat\n")
    asked = hw.stream(new, like=model, vocabulary="known")
    (chunk,) = asked
    assert counts(chunk) == [{"cat": 1, "on": 1}]
    assert asked.left_out == 4
    assert model.transform(chunk).shape == (1, 2)
    known = list(model.feature_names_in_)
    growing = hw.stream(new, like=model)
    (chunk,) = growing
    assert list(chunk.columns) == [*known, "a", "new", "mat"]
    assert growing.left_out == 0
    assert model.partial_fit(**chunk).n_features_in_ == len(known) + 3
    assert list(model.feature_names_in_) == list(chunk.columns)
    with pytest.raises(ValueError, match="vocabulary='known' means the words of a model: name it by like="):
        hw.stream(new, vocabulary="known")


@pytest.mark.parametrize("option", [{"weight": "w"}, {"label": 0}, {"key": "k"}, {"columns": ["a"]}, {"text": "t"}])
def test_lines_have_no_columns(text, option, tmp_path):
    (tmp_path / "a.seq").write_text("a b\nb a\n")
    (name,) = option
    for path in (text, tmp_path / "a.seq"):
        with pytest.raises(ValueError, match=f"has lines and no columns, so that {name}= names none: leave it out"):
            hw.stream(path, **option).schema  # noqa: B018
    if name in ("weight", "key"):
        with pytest.raises(ValueError, match=r"lacks the column '[wk]'; beside its rows it has none"):
            list(hw.stream(text, like=hw.stream(text), **option))
        with pytest.raises(ValueError, match=r"weight names 'w', which .* does not have; it has no columns with names"):
            hw.stream(csr_array(np.eye(3)), weight="w").schema  # noqa: B018


def test_documents_in_a_column(tmp_path):
    frame = pa.table({"body": DOCUMENTS, "topic": ["x", "y", "x", None], "n": [1, 2, 3, 4]})
    for source in (frame, frame.to_pandas()):
        (chunk,) = hw.stream(source, text="body", label="topic", weight="n")
        assert counts(chunk)[0] == {"the": 1, "cat": 1, "sat": 1}
        assert chunk.labels.tolist() == [0, 1, 0, -1]
        assert chunk.sample_weight.tolist() == [1, 2, 3, 4]
    (again,) = hw.stream(frame.select(["body"]), like=chunk.schema)
    assert np.array_equal(again.X.toarray(), chunk.X.toarray())
    with pytest.raises(ValueError, match="text must name a column of text, but 'n' of the Table holds int64"):
        list(hw.stream(frame, text="n"))


def test_documents_in_memory():
    for source in (iter(DOCUMENTS), pa.array(DOCUMENTS), np.array(DOCUMENTS)):
        assert next(iter(hw.stream(source, format="text"))).shape == (4, 8)
    with pytest.raises(ValueError, match="must hold texts, got 3"):
        list(hw.stream(iter([3]), format="text"))


def test_text_that_is_none(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"fine\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"text.txt cannot be read: 'utf-8' codec can't decode byte 0xff"):
        list(hw.stream(path))
    path.write_text("...\n!!!\n")
    with pytest.raises(ValueError, match="has no words in its first 2 documents"):
        list(hw.stream(path))


SEQUENCES = "% Categories:\n\nfront news\n\n% Sequences:\n\n1 1 2\n10\n# pause\n2 1,10\n"


def test_sequences_of_symbols(tmp_path):
    path = tmp_path / "clicks.seq"
    path.write_text(SEQUENCES)
    stream = hw.stream(path)
    (chunk,) = stream
    assert chunk.X.tolist() == [0, 0, 1, 2, 1, 0, 2]
    assert chunk.lengths.tolist() == [3, 1, 3]
    assert stream.schema == {"kind": "sequences", "symbols": ["1", "2", "10"]}
    new = tmp_path / "new.txt"
    new.write_text("10 1\n")
    (chunk,) = hw.stream(new, like=stream)
    assert chunk.X.tolist() == [2, 0]
    new.write_text("3\n")
    with pytest.raises(ValueError, match=r"new.txt has the symbol '3', which is not among the known ones"):
        list(hw.stream(new, like=stream))
    model = hw.MarkovMixture(1, random_state=0)
    for chunk in hw.stream(path, chunk_rows=2):
        model.partial_fit(**chunk)
    assert model.schema_["symbols"] == ["1", "2", "10"]


def test_sequences_are_shuffled_whole(tmp_path):
    path = tmp_path / "many.seq"
    path.write_text("".join(f"{' '.join(str(n) for n in range(first, first + 1 + first % 4))}\n" for first in range(40)))
    stream = hw.stream(path, chunk_rows=8, shuffle=24)
    chunks = list(stream)
    assert [chunk.start for chunk in chunks] == [0, 8, 16, 24, 32]
    pieces = [piece.tolist() for chunk in chunks for piece in np.split(chunk.X, np.cumsum(chunk.lengths)[:-1])]
    assert sorted(piece[0] for piece in pieces) == list(range(40))
    assert all(piece == list(range(piece[0], piece[0] + 1 + piece[0] % 4)) for piece in pieces)
    assert [piece[0] for piece in pieces] != list(range(40))
    for place, chunk in enumerate(chunks):
        assert stream.position(chunk) == min(40, 8 * (place + 1))
        assert np.array_equal(next(stream.chunks(chunk.start)).X, chunk.X)


def test_sequences_in_memory():
    (chunk,) = hw.stream(iter([[1, 2], "2 2 1"]), format="sequences")
    assert chunk.X.tolist() == [0, 1, 1, 1, 0]
    assert chunk.lengths.tolist() == [2, 3]


def test_words_beside_a_docword_file(tmp_path):
    path = tmp_path / "docword.trees.txt"
    path.write_bytes(docword(matrix(10)))
    (tmp_path / "vocab.trees.txt").write_text("oak\nash\nelm\n")
    (chunk,) = hw.stream(path)
    assert chunk.columns == ("oak", "ash", "elm")
    assert hw.stream(path).total_rows == 10
    (tmp_path / "vocab.trees.txt").write_text("oak\n")
    with pytest.raises(ValueError, match="has 3 words, but the vocabulary holds 1"):
        list(hw.stream(path))


def test_svmlight_has_labels_and_a_width(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(svmlight(matrix(10)))
    (chunk,) = hw.stream(path, label="label", width=5)
    assert chunk.shape == (10, 5)
    assert chunk.labels.tolist() == [i % 3 for i in range(10)]
    (chunk,) = hw.stream(path, target="label")
    assert chunk.y.tolist() == [i % 3 for i in range(10)]
    with pytest.raises(ValueError, match="has a column 3, beyond the 2 of the rows: say more by width="):
        list(hw.stream(path, width=2))
    other = tmp_path / "wider.svm"
    other.write_text("1 7:1\n")
    assert [chunk.shape for chunk in hw.stream([path, other], chunk_rows=10)] == [(10, 7), (1, 7)]
    with pytest.raises(ValueError, match="has a column 7, beyond the 3 of the rows"):
        list(hw.stream(other, like=hw.stream(path)))
    path.write_text("1 0:5 2:1\n0 1:1\n")
    assert [chunk.shape for chunk in hw.stream([path, other], chunk_rows=2)] == [(2, 8), (1, 8)]
    (chunk,) = hw.stream(path)
    assert chunk.X.toarray().tolist() == [[5, 0, 1], [0, 1, 0]]


def test_archives_of_several_arrays(tmp_path):
    np.savez(tmp_path / "two.npz", one=np.ones((2, 2)), two=np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"two.npz holds the arrays 'one', 'two': name one by array="):
        list(hw.stream(tmp_path / "two.npz"))
    assert next(iter(hw.stream(tmp_path / "two.npz", array="two"))).shape == (3, 1)
    np.savez(tmp_path / "object.npz", X=np.array([[{}]]))
    with pytest.raises(ValueError, match="must hold numbers, got an array of object"):
        list(hw.stream(tmp_path / "object.npz"))


def test_sparse_rows_have_no_columns_to_choose(tmp_path):
    with pytest.raises(ValueError, match="holds sparse rows, of which columns= and exclude= choose none"):
        list(hw.stream(write(tmp_path, "svmlight", matrix()), columns=[0]))


@pytest.mark.parametrize("kind", [list, tuple])
def test_texts_of_a_list_are_not_taken_for_names_of_files(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (chunk,) = hw.stream(kind(["The cat sat.", "", "why? who knows", "and/or a dog"]), format="text")
    assert len(chunk) == 4 and chunk.columns[:3] == ("the", "cat", "sat")
    (chunk,) = hw.stream(kind(["cat", "dog"]), format="text")
    assert chunk.columns == ("cat", "dog")
    (chunk,) = hw.stream(kind(["x" * 10_000, "a\0b"]), format="text")
    assert len(chunk) == 2
    (chunk,) = hw.stream(kind(["home shop", "pay home"]), format="sequences")
    assert chunk.X.tolist() == [0, 2, 1, 0] and chunk.lengths.tolist() == [2, 2]


def test_names_of_files_in_a_list_are_read_as_before(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").write_text("one line\n")
    for names in ([str(text)], ["documents.txt", "corpus"], [text, tmp_path / "corpus"], ["doc*.txt"], ["corpus"]):
        assert sum(len(chunk) for chunk in hw.stream(names, format="text")) == 4 * (len(names) > 1 or "corpus" not in names) + (
            "corpus" in str(names)
        )
    with pytest.raises(FileNotFoundError, match=r"missing\.txt"):
        hw.stream(["documents.txt", "missing.txt"], format="text")
    with pytest.raises(ValueError, match=r"name of a file, 'documents\.txt', and what is no file, 'The cat sat\.'"):
        hw.stream(["documents.txt", "The cat sat."], format="text")
    with pytest.raises(FileNotFoundError, match=r"'The cat sat\.' is no file: if these are texts, say so by format='text'"):
        hw.stream(["The cat sat.", "And a dog."])


def test_the_command_line_takes_no_name_for_a_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "lda", "first", "second", "--format", "text", "-o", "model.hw"]) == 1
    assert "first cannot be read" in capsys.readouterr().err
