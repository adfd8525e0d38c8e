"""Fits on small clusters in one process: for the tests of `headwater.distributed`."""

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pandas
import pytest
from cluster_models import SIZES, model_of
from every_model import stream_of

import headwater as hw

SLOW = pytest.mark.slow
RESULTS = ("n_iter_", "converged_", "n_samples_seen_", "n_features_in_")


def fit(clusters, model, data, workers=2, **given):
    return hw.distributed.fit(model, data, client=clusters(workers), **given)


def short(table, some):
    """Return the rows of a table; only some run by default."""
    return [row if row in some else pytest.param(*([row] if isinstance(row, str) else row), marks=SLOW) for row in table]


def assert_equal_to_rounding(one, other, rtol=1e-6):
    for name in RESULTS:
        assert getattr(one, name) == getattr(other, name), name
    np.testing.assert_allclose(one.lower_bounds_, other.lower_bounds_, rtol=1e-9)
    for name in one._traits.answers:
        wanted = np.asarray(getattr(other, name))
        np.testing.assert_allclose(getattr(one, name), wanted, rtol=rtol, atol=rtol * np.abs(wanted).max(), err_msg=name)


def table(rows, number=5, **columns):
    """Return a Dask dataframe with companion columns."""
    frame = pandas.DataFrame({**dict(zip("abc", rows.T, strict=False)), **columns})
    return dask.dataframe.from_pandas(frame, npartitions=number, sort=False)


class Died(BaseException):
    """Stands for the end of a process."""


def learned_before(kind="gaussian", word="auto"):
    return model_of(kind, word).partial_fit(stream_of(kind, (300,), seed=5)[0].X)


def write_parquet(path, rows):
    import pyarrow as pa
    from pyarrow.parquet import write_table

    write_table(pa.table({name: rows[:, at] for at, name in enumerate("abc")}), path)


def files(folder, write, number=5):
    """Return files of a stream, and the middle one."""
    paths = [folder / f"part{at}.{write.__name__[6:]}" for at in range(number)]
    for path, chunk in zip(paths, stream_of("gaussian", SIZES[:number]), strict=True):
        write(path, chunk.X)
    return paths, paths[number // 2]


def small(chunks=((40, 40), (3,))):
    return dask.array.from_array(np.concatenate([chunk.X for chunk in stream_of("gaussian", (40, 40))]), chunks=chunks)
