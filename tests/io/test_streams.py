"""Streams: every format gives the same rows in the same chunks, in every pass."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array, issparse
from stream_files import KINDS, NAMES, PACKED, dense, matrix, table, write

import headwater as hw
from headwater.io.formats import FORMATS

X = matrix()


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "headwater-stream"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert readers() == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_has_the_same_rows(kind, tmp_path):
    about = KINDS[kind]
    stream = hw.stream(write(tmp_path, kind, X), chunk_rows=32)
    for _ in range(2):
        chunks = list(stream)
        assert [(chunk.start, chunk.shape[0]) for chunk in chunks] == [(0, 32), (32, 32), (64, 32), (96, 4)]
        assert np.array_equal(dense(chunks), X)
    for chunk in chunks:
        assert issparse(chunk.X) == about.sparse
        assert chunk.X.dtype == np.float64
        assert about.sparse or chunk.X.flags.c_contiguous
        assert list(chunk.columns or ()) == (
            [] if not about.named else ["x0", "x1", "x2"] if kind == "csv without names" else list(NAMES)
        )
    assert stream.total_rows in (None, 100)
    assert stream.bytes_read == stream.total_bytes > 0


@pytest.mark.covering
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"shuffle": 50, "seed": 3}], ids=["in order", "shuffled"])
def test_a_pass_goes_on_at_any_chunk(kind, options, tmp_path):
    paths = [write(tmp_path, kind, X[:57], stem="one"), write(tmp_path, kind, X[57:], stem="two")]
    if KINDS[kind].sparse:
        options = {**options, "width": 3}
    stream = hw.stream(paths, chunk_rows=16, **options)
    whole = list(stream)
    for place, chunk in enumerate(whole):
        rest = list(stream.chunks(chunk.start))
        assert len(rest) == len(whole) - place
        assert all(
            one.start == other.start and np.array_equal(np.asarray(one), np.asarray(other))
            for one, other in zip(rest, whole[place:], strict=True)
        )
    with pytest.raises(ValueError, match="start_row must be where a chunk begins, a multiple of chunk_rows = 16, got 17"):
        stream.chunks(17)


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("kind", ["csv", "parquet", "text", "npy"])
def test_compressed_files(kind, packed, tmp_path):
    path = write(tmp_path, kind, X, packed)
    assert np.array_equal(dense(hw.stream(path)), X)
    disguised = path.rename(tmp_path / f"disguised{KINDS[kind].suffix}")
    assert np.array_equal(dense(hw.stream(disguised)), X)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
def test_formats_are_told_by_their_looks(kind, tmp_path):
    path = write(tmp_path, kind, X).rename(tmp_path / "rows")
    assert np.array_equal(dense(hw.stream(path)), X)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow stream", "npz", "svmlight", "docword"])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_standard_input(kind, packed, tmp_path, monkeypatch):
    with write(tmp_path, kind, X, packed).open("rb") as file:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=file))
        stream = hw.stream("-", chunk_rows=32)
        assert stream.total_rows in (None, 100)  # looking at the head takes no rows away
        assert np.array_equal(dense(stream), X)
        with pytest.raises(ValueError, match="standard input can be read only once"):
            iter(stream)


def test_standard_input_of_a_process(tmp_path):
    code = "import headwater as hw; print([len(chunk) for chunk in hw.stream('-', chunk_rows=32)])"
    done = subprocess.run([sys.executable, "-c", code], input=KINDS["csv"].write(X), capture_output=True, timeout=60)
    assert done.stdout.decode() == "[32, 32, 32, 4]\n", done.stderr


def test_folders_and_globs_are_read_in_order(tmp_path):
    for number in (2, 0, 1):
        write(tmp_path, "csv", X[number * 30 : number * 30 + 30], stem=f"part-{number}", packed=".gz" if number else "")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.md").write_text("nothing to learn")
    for source in (tmp_path, str(tmp_path), tmp_path / "part-*", sorted(tmp_path.glob("part*")), f"file://{tmp_path}"):
        assert np.array_equal(dense(hw.stream(source)), X[:90])
    assert np.array_equal(dense(hw.stream(f"file://{tmp_path}/*-1.csv.gz")), X[30:60])


def test_addresses_of_fsspec():
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://streams/rows.csv", "wb") as file:
        file.write(KINDS["csv"].write(X))
    assert np.array_equal(dense(hw.stream("memory://streams/rows.csv")), X)
    with pytest.raises(ValueError, match="nosuch://x cannot be read: Protocol not known: nosuch"):
        hw.stream("nosuch://x")
    with pytest.raises(FileNotFoundError, match=r"memory://streams/none.csv cannot be read: there is no such file"):
        hw.stream("memory://streams/none.csv")


def in_memory():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = table(X)
    return {
        "pandas": pandas.DataFrame(X, columns=NAMES, index=np.arange(100)[::-1]),
        "polars": polars.DataFrame(X, schema=list(NAMES)),
        "table": frame,
        "batch": frame.combine_chunks().to_batches()[0],
        "list of batches": frame.to_batches(max_chunksize=13),
        "matrix": X,
        "rows": X.tolist(),
        "sparse": csr_array(X),
        "list of matrices": [X[:10], X[10:]],
        "list of vectors": list(X),
    }


@pytest.mark.parametrize("name", list(in_memory()))
def test_rows_in_memory(name):
    stream = hw.stream(in_memory()[name], chunk_rows=32)
    for _ in range(2):
        assert np.array_equal(dense(stream), X)
    assert stream.total_rows == (None if name.startswith("list") or name == "rows" else 100)


@pytest.mark.parametrize("make", [lambda: (X[i : i + 9] for i in range(0, 100, 9)), lambda: table(X).to_reader(9)])
def test_what_comes_once(make):
    stream = hw.stream(make(), chunk_rows=32)
    assert stream.schema["kind"] == "table"
    assert np.array_equal(dense(stream), X)
    with pytest.raises(ValueError, match="can be read only once, and has been"):
        iter(stream)


def test_shuffling_is_a_permutation_that_the_seed_decides(tmp_path):
    rows = np.arange(1000.0)[:, None]
    orders = [dense(hw.stream(rows, shuffle=400, seed=seed, chunk_rows=100))[:, 0] for seed in (0, 0, 1)]
    assert np.array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])
    for order in orders:
        assert np.array_equal(np.sort(order), rows[:, 0])
        assert np.array_equal(np.sort(order[:400]), rows[:400, 0])  # rows are mixed within the buffer only
    assert np.corrcoef(orders[0][:400], rows[:400, 0])[0, 1] < 0.2


def test_companions_go_with_their_rows():
    frame = {
        "x": np.arange(50.0),
        "y": np.arange(50.0) * 2,
        "w": np.full(50, 0.5),
        "l": np.arange(50) % 2,
        "k": ["p", "q"] * 25,
    }
    options = {"target": "y", "weight": "w", "label": "l", "key": "k"}
    for chunk in hw.stream(pa.table(frame), chunk_rows=20, shuffle=40, **options):
        x = chunk.X[:, 0]
        assert chunk.columns == ("x",)
        assert np.array_equal(chunk.y, 2 * x)
        assert np.array_equal(chunk.labels, x % 2)
        assert np.array_equal(chunk.key, np.where(x % 2, "q", "p"))
        assert np.array_equal(chunk.sample_weight, np.full(len(x), 0.5))
        assert set(chunk.keys()) == {"X", "y", "sample_weight", "labels", "key"}


def test_labels_that_are_words():
    frame = pa.table({"x": np.arange(4.0), "kind": ["oak", None, "ash", "oak"]})
    stream = hw.stream(frame, label="kind")
    assert next(iter(stream)).labels.tolist() == [1, -1, 0, 1]
    assert stream.schema["label_levels"] == ["ash", "oak"]


def test_a_thread_ends_with_the_iteration():
    stream = hw.stream(np.ones((10_000, 2)), chunk_rows=10)
    chunks = iter(stream)
    next(chunks)
    assert len(readers()) == 1
    chunks.close()
    assert readers() == []
    for chunk in stream:
        if chunk.start > 100:
            break
    del chunk
    assert len(list(hw.stream(np.ones((100, 2)), chunk_rows=10, prefetch=False))) == 10
    assert readers() == []


def test_an_error_arrives_where_its_chunk_would():
    def rows():
        yield np.ones((30, 2))
        yield np.full((30, 2), np.inf)

    chunks = iter(hw.stream(rows(), chunk_rows=10))
    assert [next(chunks).start for _ in range(3)] == [0, 10, 20]
    with pytest.raises(ValueError, match="the generator has an infinite value in column 'x0', row 30"):
        next(chunks)


@pytest.mark.slow
def test_a_process_ends_in_the_middle_of_a_pass():
    code = "import headwater as hw, numpy as np; chunks = iter(hw.stream(np.ones((10**5, 3)), chunk_rows=10)); next(chunks)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_formats_are_documented():
    page = Path(__file__).parents[2] / "docs" / "guide" / "streams.md"
    if not page.exists():
        pytest.skip("run from the root of the repository")
    text = page.read_text()
    for one in FORMATS:
        assert f"`{one.name}`" in text
        assert all(suffix in text for suffix in one.suffixes)


def test_chunks_are_as_large_as_their_width_allows():
    sizes = {width: hw.stream(np.ones((2, width))).chunk_rows for width in (1, 8, 10, 50, 500, 20_000)}
    assert sizes == {1: 65536, 8: 65536, 10: 32768, 50: 8192, 500: 1024, 20_000: 16}


@pytest.mark.parametrize("options", [{"missing": "drop"}, {"categories": "one-hot", "missing": "zero", "shuffle": 30}])
def test_a_pass_goes_on_where_rows_are_changed(options, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("x,kind\n" + "".join(f"{'' if n % 3 else n},{'ab'[n % 2]}\n" for n in range(100)))
    stream = hw.stream(path, chunk_rows=8, **{"categories": "drop", **options})
    whole = list(stream)
    assert sum(map(len, whole)) == (34 if options["missing"] == "drop" else 100)
    for place, chunk in enumerate(whole):
        rest = list(stream.chunks(chunk.start))
        assert [one.start for one in rest] == [one.start for one in whole[place:]]
        assert np.array_equal(dense(rest), dense(whole[place:]))


def test_a_pipe_with_a_name(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(KINDS["csv"].write(X)))
    writer.start()
    assert np.array_equal(dense(hw.stream(path, chunk_rows=10)), X)
    writer.join()


def test_rows_of_parquet_are_skipped_unread(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    pq.write_table(table(X), path, row_group_size=20)
    stream = hw.stream(path, chunk_rows=20)
    assert stream.total_rows == 100
    read = []
    whole = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda self, *a, **k: read.append(list(k["row_groups"])) or whole(self, *a, **k)
    )
    assert np.array_equal(dense(stream.chunks(60)), X[60:])
    assert read[-1] == [3, 4]


@pytest.mark.slow
def test_a_large_row_group_is_read_bit_by_bit(tmp_path):
    rows = np.random.default_rng(0).normal(size=(2_000_000, 10))
    pq.write_table(
        pa.table({f"x{place}": rows[:, place] for place in range(10)}), tmp_path / "rows.parquet", row_group_size=len(rows)
    )
    stream = hw.stream(tmp_path / "rows.parquet", chunk_rows=1024, prefetch=False)
    before = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - before for _ in stream)
    assert 0 < most < rows.nbytes / 3


def test_a_fingerprint_changes_with_file_and_options(tmp_path):
    path = write(tmp_path, "csv", X)
    marks = [hw.stream(path).fingerprint(), hw.stream(path).fingerprint(), hw.stream(path, shuffle=10).fingerprint()]
    write(tmp_path, "csv", X[:50])
    marks.append(hw.stream(path).fingerprint())
    assert marks[0] == marks[1]
    assert marks[0] != marks[2]
    assert marks[0] != marks[3]
    assert repr(hw.stream(path, shuffle=10)) == f"Stream({path}, {path.stat().st_size:,} bytes, shuffle=10)"


def test_a_model_learns_a_stream_as_it_learns_the_rows(tmp_path):
    rows = np.random.default_rng(1).normal(size=(3000, 3))
    pq.write_table(table(rows), tmp_path / "rows.parquet")
    learned = hw.GaussianMixture(2, random_state=0)
    for chunk in hw.stream(tmp_path / "rows.parquet", chunk_rows=700):
        learned.partial_fit(**chunk)
    other = hw.GaussianMixture(2, random_state=0)
    for at in range(0, 3000, 700):
        other.partial_fit(rows[at : at + 700])
    assert np.array_equal(learned.means_, other.means_)
    assert learned.feature_names_in_.tolist() == list(NAMES)
