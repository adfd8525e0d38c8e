"""Damaged files: a stream gives finite rows or raises one sentence, and never hangs or crashes."""

import contextlib
import signal

import numpy as np
import pytest
from scipy.sparse import issparse
from stream_files import KINDS, PACKED, matrix, write

import headwater as hw

X = matrix(40)
SECONDS = 20
NUMBERS = [b"0", b"-1", b"1e999", b"nan", b"999999999999999999999", b'"', b"\n", b",", b"\xff", b"\0\0\0\0", b"{", b" "]
COMPLETE = (
    "parquet",
    "arrow",
    "arrow stream",
    "feather",
    "npy",
    "npz",
    "sparse npz",
    "docword",
    "mtx",
)  # formats with a known end


def mutated(data, rng):
    """Return the bytes damaged: flipped, cut, doubled, left out, or replaced by difficult values."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        if not data:
            break
        begin = int(rng.integers(len(data)))
        end = min(len(data), begin + int(rng.integers(1, 40)))
        match rng.integers(6):
            case 0:
                data[begin] ^= 1 << int(rng.integers(8))
            case 1:
                del data[begin:end]
            case 2:
                data[begin:begin] = data[begin:end]
            case 3:
                data[begin:end] = rng.bytes(end - begin)
            case 4:
                data[begin : begin + 1] = NUMBERS[rng.integers(len(NUMBERS))]
            case 5:
                del data[begin:]
    return bytes(data)


@contextlib.contextmanager
def within(seconds):
    def stop(number, frame):
        raise AssertionError(f"nothing came for {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(path, **options):
    """Read a file to its end; return the number of rows, or the sentence."""
    rows = 0
    try:
        with within(SECONDS):
            for chunk in hw.stream(path, chunk_rows=16, **options):
                values = chunk.X.data if issparse(chunk.X) else chunk.X
                assert np.isfinite(values).all()
                assert chunk.start == rows
                assert chunk.columns is None or len(chunk.columns) == chunk.shape[1]
                rows += len(chunk)
                if rows > 100_000:
                    break
    except (ValueError, OSError) as error:
        said = str(error)
        assert path.name in said, said
        assert "\n" not in said
        assert len(said) < 700
        return said
    assert rows > 0
    return rows


def fuzz(kind, seeds, tmp_path):
    found = [0, 0]
    for seed in seeds:
        rng = np.random.default_rng((seed, sum(kind.encode())))
        packed = list(PACKED)[rng.integers(len(PACKED))] if rng.uniform() < 0.2 else ""
        path = write(tmp_path, kind, X, packed)
        path.write_bytes(mutated(path.read_bytes(), rng))
        options = {"categories": "one-hot"} if rng.uniform() < 0.3 else {}
        options |= {"missing": "drop"} if rng.uniform() < 0.3 else {}
        found[isinstance(outcome(path, **options), str)] += 1
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind, tmp_path):
    fuzz(kind, range(3), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_damaged_files(kind, tmp_path):
    assert fuzz(kind, range(1000, 1060), tmp_path)[True] > 0


WRONG = [
    None,
    -1,
    3,
    10**30,
    1.5,
    True,
    "",
    "x",
    [],
    [[]],
    ["x"],
    ["x", "x"],
    [1],
    {},
    {"name": []},
    [{"name": "a", "levels": "b"}],
]


@pytest.mark.parametrize("kind", ["csv", "npy", "svmlight", "text", "sequences"])
def test_damaged_schemas(kind, tmp_path):
    if kind == "sequences":
        path = tmp_path / "rows.seq"
        path.write_text("x y x\n")
    else:
        path = write(tmp_path, kind, X)
    schema = hw.stream(path).schema
    for name in {*schema, "target", "weight", "label", "key", "label_levels", "buckets", "open", "complex", "base"}:
        for value in WRONG:
            try:
                chunks = list(hw.stream(path, like={**schema, name: value}, prefetch=False))
            except ValueError as error:
                assert "\n" not in str(error)
            else:
                assert sum(map(len, chunks)) in (len(X), 3)


@pytest.mark.parametrize("kind", COMPLETE)
def test_no_file_is_shorter_than_it_says(kind, tmp_path):
    path = write(tmp_path, kind, X)
    whole = path.read_bytes()
    assert outcome(path) == len(X)
    for length in np.linspace(1, len(whole) - 2, 12).astype(int):
        path.write_bytes(whole[:length])
        assert isinstance(outcome(path), str), f"{length} of {len(whole)} bytes were read without complaint"
