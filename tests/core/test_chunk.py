"""Chunks of a stream: names, companions and schema reach the model, and nothing is lost on the way."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import headwater as hw
from headwater.core.chunk import Chunk

RNG = np.random.default_rng(0)
SCHEMA = {"kind": "table"}


def rows(n=300, names=("a", "b"), **companions):
    return Chunk(RNG.normal(size=(n, 2)), names, schema=SCHEMA, **companions)


def test_names_and_schema_are_noted():
    model = hw.GaussianMixture(1, random_state=0).partial_fit(rows()).partial_fit(rows())
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.schema_ == SCHEMA
    assert np.isfinite(model.score_samples(rows())).all()


@pytest.mark.parametrize(("names", "sentence"), [(("a", "c"), "unknown ones: c and without b"), (("b", "a"), "order")])
def test_other_names_are_refused(names, sentence):
    model = hw.GaussianMixture(1, random_state=0).partial_fit(rows())
    with pytest.raises(ValueError, match=sentence):
        model.partial_fit(rows(names=names))
    assert model.n_samples_seen_ == 300


def test_companions_are_passed_on_or_missed():
    model = hw.RegressionMixture(1, random_state=0)
    chunk = rows(y=RNG.normal(size=300), sample_weight=np.full(300, 2.0))
    with pytest.raises(ValueError, match="comes with y and sample_weight"):
        model.partial_fit(chunk, chunk.y)
    model.partial_fit(**chunk)
    assert model.n_samples_seen_ == 300
    assert model.schema_ == SCHEMA


@pytest.mark.parametrize("model", [hw.MarkovMixture(2, random_state=0), hw.CategoricalHMM(2, random_state=0)])
def test_sequences_of_symbols(model):
    model.partial_fit(**Chunk(RNG.integers(0, 3, 400), lengths=np.full(40, 10), schema={"kind": "sequences"}))
    assert model.schema_ == {"kind": "sequences"}


def test_keys_of_rows():
    model = hw.GaussianHMM(2, random_state=0).partial_fit(**rows(key=np.repeat(["x", "y"], 150)))
    assert model.open_sequences_ == ["x", "y"]


def test_a_vocabulary_grows():
    model = hw.LatentDirichletAllocation(2, vocabulary="open", random_state=0)
    words = [f"w{i}" for i in range(30)]
    for width in (20, 30):
        model.partial_fit(Chunk(csr_array(RNG.poisson(1.0, size=(50, width)).astype(float)), words[:width]))
    assert model.feature_names_in_.tolist() == words
