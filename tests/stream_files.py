"""The same rows in every format, for the tests of streams."""

import bz2
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from scipy.io import mmwrite
from scipy.sparse import csr_array, save_npz

NAMES = ("a", "b", "c")


def matrix(rows=100, seed=0):
    """Return small integers, which every format stores exactly; some rows are empty, and no column is."""
    X = np.random.default_rng(seed).poisson(0.7, size=(rows, 3)).astype(float)
    X[0] = 1.0
    return X


def table(X):
    return pa.table({name: X[:, place] for place, name in enumerate(NAMES)})


def written(write, X):
    out = io.BytesIO()
    write(X, out)
    return out.getvalue()


def csv(X, delimiter=",", header=True):
    options = pa.csv.WriteOptions(delimiter=delimiter, include_header=header)
    return written(lambda X, out: pa.csv.write_csv(table(X), out, options), X)


def ipc(X, kind):
    def write(X, out):
        with kind(out, table(X).schema) as writer:
            writer.write_table(table(X), max_chunksize=7)

    return written(write, X)


def svmlight(X):
    rows = (" ".join(f"{place + 1}:{value:g}" for place, value in enumerate(row) if value) for row in X)
    return "".join(f"{number % 3} {row}".rstrip() + "\n" for number, row in enumerate(rows)).encode()


def docword(X):
    rows, words = np.nonzero(X)
    entries = "".join(f"{row + 1} {word + 1} {X[row, word]:g}\n" for row, word in zip(rows, words, strict=True))
    return f"{X.shape[0]}\n{X.shape[1]}\n{len(rows)}\n{entries}".encode()


def text(X):
    return "".join(
        " ".join(name for name, n in zip(NAMES, row, strict=True) for _ in range(int(n))) + "\n" for row in X
    ).encode()


def json_lines(X):
    return "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in X.tolist()).encode()


@dataclass(frozen=True)
class Kind:
    """A format: the ending of the file, its bytes, and the options of `stream`."""

    suffix: str
    write: Callable
    named: bool = True
    sparse: bool = False


KINDS = {
    "csv": Kind(".csv", csv),
    "csv without names": Kind(".csv", lambda X: csv(X, header=False)),
    "csv with semicolons": Kind(".csv", lambda X: csv(X, ";")),
    "tsv": Kind(".tsv", lambda X: csv(X, "\t")),
    "jsonl": Kind(".jsonl", json_lines),
    "parquet": Kind(".parquet", lambda X: written(lambda X, out: pa.parquet.write_table(table(X), out, row_group_size=23), X)),
    "arrow": Kind(".arrow", lambda X: ipc(X, pa.ipc.new_file)),
    "arrow stream": Kind(".arrows", lambda X: ipc(X, pa.ipc.new_stream)),
    "feather": Kind(".feather", lambda X: written(lambda X, out: pa.feather.write_feather(table(X), out, "zstd"), X)),
    "npy": Kind(".npy", lambda X: written(lambda X, out: np.save(out, X), X), named=False),
    "npy by columns": Kind(".npy", lambda X: written(lambda X, out: np.save(out, np.asfortranarray(X)), X), named=False),
    "npy of small numbers": Kind(".npy", lambda X: written(lambda X, out: np.save(out, X.astype(np.int8)), X), named=False),
    "npz": Kind(".npz", lambda X: written(lambda X, out: np.savez_compressed(out, X=X, other=X), X), named=False),
    "npz by columns": Kind(".npz", lambda X: written(lambda X, out: np.savez(out, np.asfortranarray(X)), X), named=False),
    "sparse npz": Kind(".npz", lambda X: written(lambda X, out: save_npz(out, csr_array(X)), X), named=False, sparse=True),
    "mtx": Kind(".mtx", lambda X: written(lambda X, out: mmwrite(out, csr_array(X)), X), named=False, sparse=True),
    "svmlight": Kind(".svm", svmlight, named=False, sparse=True),
    "docword": Kind(".docword", docword, named=False, sparse=True),
    "text": Kind(".txt", text, sparse=True),
}  # fmt: skip

PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda data: pa.compress(data, "zstd", asbytes=True)}


def write(folder, kind, X, packed="", stem="rows"):
    """Write the rows and return the path."""
    path = folder / f"{stem}{KINDS[kind].suffix}{packed}"
    path.write_bytes(PACKED[packed](KINDS[kind].write(X)))
    return path


def dense(chunks):
    """Return the rows of chunks as one matrix."""
    return np.vstack([np.asarray(chunk) for chunk in chunks])
