"""Columns that number the rows: a sentence where a model of numbers would learn them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import headwater as hw
from headwater.distributed.tasks import Columns

RNG = np.random.default_rng(0)
PLAIN = pd.DataFrame({"a": RNG.normal(size=200), "b": RNG.normal(size=200)})
FRAMES = {
    "pandas": lambda rows: rows,
    "nullable": lambda rows: rows.convert_dtypes(),
    "polars": pl.from_pandas,
    "table": lambda rows: pa.Table.from_pandas(rows, preserve_index=False),
    "batch": lambda rows: pa.RecordBatch.from_pandas(rows, preserve_index=False),
    "chunk": lambda rows: next(iter(hw.stream(rows))),
}


def learn(rows, kind=hw.GaussianMixture):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = kind(n_components=2, random_state=0).partial_fit(rows)
        model.partial_fit(rows)  # what is known already is not said again
    return [str(one.message) for one in told if "numbers the rows" in str(one.message)]


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_column_that_numbers_the_rows_is_named(make):
    (told,) = learn(make(PLAIN.assign(number=np.arange(200) + 7)))
    assert told == "column 'number' numbers the rows, as ids do: leave it out, unless it says something of the rows"
    assert learn(make(PLAIN)) == []


def test_whole_numbers_that_only_rise_are_named_and_others_are_not():
    steps = RNG.integers(1, 9, size=200)
    (told,) = learn(PLAIN.assign(first=np.cumsum(steps), second=np.cumsum(steps[::-1])))
    assert "'first' numbers the rows, as ids do (and 1 more)" in told
    assert learn(PLAIN.assign(age=steps, time=np.cumsum(steps) + 0.5)) == []
    assert learn(PLAIN.assign(number=np.arange(200))[:40]) == []  # too few rows
    assert learn(PLAIN.assign(number=pd.array([None, *range(199)], dtype="Int64"))) == []
    assert learn(PLAIN.assign(number=np.arange(200)).to_numpy()) == []  # which has no names
    assert len(learn(PLAIN.assign(number=np.arange(200)), hw.StudentMixture)) == 1


def test_a_warning_that_is_an_error_leaves_the_model_as_it_was():
    model = hw.GaussianMixture(2, random_state=0)
    with pytest.raises(UserWarning, match="numbers the rows"):
        model.partial_fit(PLAIN.assign(number=np.arange(200)))
    assert not hasattr(model, "n_features_in_")
    assert model.partial_fit(PLAIN).n_features_in_ == 2


def test_workers_of_a_cluster_look_at_the_columns():
    from headwater.distributed.messages import blank_to_bytes
    from headwater.distributed.parts import Part, ReadPlan
    from headwater.distributed.tasks import look_at_columns

    frame = PLAIN.assign(number=np.arange(200))
    plan = ReadPlan("frames", hw.stream(frame).schema, {}, 100)
    found = look_at_columns(blank_to_bytes(hw.GaussianMixture(2, random_state=0)), {}, Part(0, "part"), frame, plan)
    assert found == Columns(3, ("number",))
