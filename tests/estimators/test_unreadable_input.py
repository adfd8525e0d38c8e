"""Ambiguous arrays raise one sentence in every method of every model, and change nothing."""

import inspect
import re

import numpy as np
import pytest
from every_model import KINDS, NAMES, learned, stream_of

import headwater as hw
from headwater.core.chunk import Chunk

METHODS = ("fit", "partial_fit", "update", "warm_start_from", "score_samples", "predict", "predict_proba", "transform")
WEIGHED = [kind for kind in KINDS if not KINDS[kind][0]()._traits.chained]


def given(kind, rows=30):
    """Return the arguments of `partial_fit`, with dense rows."""
    chunk = {**stream_of(kind, (rows,))[0]}
    X = chunk["X"].X
    chunk["X"] = X.toarray() if hasattr(X, "toarray") else X
    return chunk


def refused(model, method, arguments, kind=ValueError):
    """Return the sentence of the error of a call, which leaves the model as it was."""
    before = dict(vars(model))
    taken = inspect.signature(getattr(model, method)).parameters
    with pytest.raises(kind) as caught:
        getattr(model, method)(**{name: value for name, value in arguments.items() if name in taken})
    assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def masked(values):
    mask = np.zeros(np.shape(values), dtype=bool)
    mask.flat[1] = True
    return np.ma.masked_array(values, mask=mask)


def takes_gaps(kind):
    return KINDS[kind][0]().__sklearn_tags__().input_tags.allow_nan and kind not in ("symbols", "arrival")


@pytest.mark.covering("kind")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fitted", [True, False])
def test_masked_rows(kind, fitted):
    for method in METHODS:
        model = learned(kind) if fitted else KINDS[kind][0]()
        if not hasattr(model, method) or (not fitted and method in METHODS[4:]):
            continue
        arguments = given(kind)
        arguments["X"] = masked(arguments["X"])
        if takes_gaps(kind):  # what is masked is missing
            named = {**arguments, "X": Chunk(arguments["X"], list(getattr(model, "feature_names_in_", NAMES)))}
            taken = inspect.signature(getattr(model, method)).parameters
            getattr(model, method)(**{name: value for name, value in named.items() if name in taken})
            model = learned(kind) if fitted else KINDS[kind][0]()
        else:
            assert re.search("X is a masked array with 1 masked value|X contains NaN", refused(model, method, arguments))
        arguments["X"] = np.ma.masked_array(arguments["X"].data)  # of which nothing is masked
        taken = inspect.signature(getattr(model, method)).parameters
        if hasattr(model, "feature_names_in_"):
            arguments["X"] = Chunk(arguments["X"], list(model.feature_names_in_))
        getattr(model, method)(**{name: value for name, value in arguments.items() if name in taken})


@pytest.mark.covering("kind")
@pytest.mark.parametrize("kind", WEIGHED)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_masked_weights(kind, method):
    weights = masked(np.ones(30))
    assert "sample_weight is a masked array" in refused(learned(kind), method, {**given(kind), "sample_weight": weights})


def test_masked_targets_labels_lengths_starts_and_streams():
    model, arguments = learned("regression"), given("regression")
    assert "y is a masked array" in refused(model, "partial_fit", {**arguments, "y": masked(arguments["y"])})
    labels = masked(np.zeros(30))
    assert "labels is a masked array" in refused(learned("gaussian"), "partial_fit", {**given("gaussian"), "labels": labels})
    lengths = masked(np.full(3, 10))
    assert "lengths is a masked array" in refused(learned("chain"), "partial_fit", {**given("chain"), "lengths": lengths})
    start = hw.GaussianMixture(2, means_init=masked(np.zeros((2, 3))))
    assert "'means' is a masked array" in refused(start, "fit", given("gaussian"))
    with pytest.raises(ValueError, match="masked array with 1 masked value"):
        next(iter(hw.stream(masked(np.ones((3, 2))))))
    with pytest.raises(ValueError, match="the row is a masked array"):
        learned("directions").score_one(masked(np.ones(3)))
    assert np.isfinite(learned("gaussian").score_one(masked(np.ones(3))))  # where what is masked is missing


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_beyond_float64(kind):
    arguments = given(kind)
    arguments["X"] = np.array(arguments["X"], dtype=object)
    arguments["X"].flat[0] = 10**400
    for method in ("fit", "partial_fit", "update"):
        told = refused(learned(kind), method, arguments)
        assert "whole number too large for float64" in told or "mixes kinds of values" in told  # beside text


def test_other_arguments_beyond_float64():
    huge = [10**400] * 30
    for weights in (10**400, huge):
        told = refused(learned("gaussian"), "partial_fit", {**given("gaussian"), "sample_weight": weights})
        assert "sample_weight contains a whole number too large" in told
    assert "y contains" in refused(learned("regression"), "partial_fit", {**given("regression"), "y": huge})
    assert "labels contains" in refused(learned("gaussian"), "partial_fit", {**given("gaussian"), "labels": huge})
    assert "'means' contains" in refused(hw.GaussianMixture(1, means_init=[[10**400, 0, 0]]), "fit", given("gaussian"))
    with pytest.raises(ValueError, match="the row contains a whole number too large"):
        learned("gaussian").score_one([10**400, 0, 0])


@pytest.mark.covering
@pytest.mark.parametrize("kind", WEIGHED)
@pytest.mark.parametrize("weight", [5e-324, 1e-320, 1e-308])
def test_weights_whose_inverse_overflows(kind, weight):
    for method in ("fit", "partial_fit", "update"):
        told = refused(learned(kind), method, {**given(kind), "sample_weight": np.full(30, weight)})
        assert told.startswith("sample_weight must be 0 or at least 1e-300, got ")


@pytest.mark.covering
@pytest.mark.parametrize("kind", WEIGHED)
@pytest.mark.parametrize("weight", [1e-300, 1e-30, 1e30, "mixed"])
def test_light_and_heavy_weights_leave_a_sound_model(kind, weight):
    for method in ("fit", "partial_fit"):
        model, arguments = KINDS[kind][0](), given(kind, 200)
        weights = 10.0 ** np.random.default_rng(0).uniform(-300, 30, 200) if weight == "mixed" else np.full(200, weight)
        getattr(model, method)(**arguments, sample_weight=weights)
        for name in model._traits.answers:
            assert np.isfinite(np.asarray(getattr(model, name))).all(), name


@pytest.mark.parametrize("method", ["fit", "partial_fit", "score_samples"])
def test_columns_of_one_name(method):
    pandas = pytest.importorskip("pandas")
    twice = pandas.DataFrame(np.ones((30, 3)), columns=["a", "b", "a"])
    assert refused(learned("gaussian"), method, {"X": twice}) == "X must have columns of different names, got 'a' 2 times"
    counts = pandas.DataFrame(np.ones((30, 6)), columns=["a", "b", "a", "c", "d", "b"]).astype("Sparse[float]")
    assert "different names" in refused(learned("multinomial"), method, {"X": counts})


@pytest.mark.parametrize("method", ["fit", "partial_fit", "score_samples"])
def test_frames_that_hold_no_rows_yet(method):
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame({"length": [1.0, 2.0], "weight": [1.0, 2.0], "age": [3.0, 4.0]}).lazy()
    for kind in ("gaussian", "multinomial", "chain"):
        told = refused(learned(kind), method, {"X": lazy}, TypeError)
        assert told == "X is a polars LazyFrame, which holds no rows yet: pass X.collect()"
