"""Reservoirs in model files and messages: they are read as they were written, and all others are refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import headwater as hw
from headwater.core.batch import NO_LABELS, NO_WEIGHTS, Batch, SparseRows
from headwater.core.records import fingerprint
from headwater.estimators import model_file
from headwater.io.files import container
from headwater.io.files.messages import from_bytes, to_bytes
from headwater.io.files.records import Damaged
from headwater.io.files.states import holds_rows
from headwater.policies.reservoir import Reservoir, add_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2)) + 5.0 * RNG.integers(0, 2, size=(200, 1))
COUNTS = csr_array(RNG.poisson(0.4, size=(150, 30)).astype(float))
SPARSE = SparseRows(COUNTS.data, COUNTS.indices.astype(np.int32), COUNTS.indptr.astype(np.int64), 30)


def sampled(model, batch, capacity=40, room=2**30, **options):
    """Return the model with a reservoir, after rows in chunks."""
    reservoir = Reservoir(7, capacity, room)
    for at in range(0, len(batch), 30):
        reservoir = add_rows(reservoir, batch[at : at + 30], at, **options)
    model._runtime = model._runtime.with_state(model._state.with_record("reservoir", reservoir))
    return model


def gaussian(**options):
    model = hw.GaussianMixture(2, warm_up=50, random_state=0).partial_fit(X)
    return sampled(model, Batch(X, RNG.uniform(0.5, 2.0, 200), RNG.integers(-1, 2, 200)), **options)


def multinomial(**options):
    return sampled(hw.MultinomialMixture(2, warm_up=50, random_state=0).partial_fit(COUNTS), Batch(SPARSE), **options)


MODELS = {
    "gaussian": gaussian,
    "aging": lambda: gaussian(clock=3.0),
    "all rows": lambda: gaussian(capacity=1000),
    "multinomial": multinomial,
    "sparse, bounded in bytes": lambda: multinomial(room=2000),
    "no row fits": lambda: multinomial(room=20),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_comes_back_is_what_was_saved(name, tmp_path):
    model = MODELS[name]()
    before = fingerprint(model._state, size=16)
    model.save(tmp_path / "a.hw")
    again = hw.load(tmp_path / "a.hw")
    assert fingerprint(again._state, size=16) == before == fingerprint(model._state, size=16)
    assert again.holds_rows_ == model.holds_rows_ == (name != "no row fits")
    again.save(tmp_path / "b.hw")
    assert (tmp_path / "a.hw").read_bytes() == (tmp_path / "b.hw").read_bytes()
    more = Batch(SPARSE if isinstance(model._state.records["reservoir"].batch.X, SparseRows) else X)
    first, second = (add_rows(one._state.records["reservoir"], more, 200, clock=4.0) for one in (model, again))
    assert fingerprint(first, size=16) == fingerprint(second, size=16)


@pytest.mark.parametrize("name", ["gaussian", "multinomial"])
def test_without_raw_rows(name, tmp_path):
    model = MODELS[name]()
    model.save(tmp_path / "a.hw", raw_rows=False)
    again = hw.load(tmp_path / "a.hw")
    assert "reservoir" not in again._state.records and not again.holds_rows_ and model.holds_rows_
    assert again.n_samples_seen_ == model.n_samples_seen_
    assert not any("reservoir" in array for array in container.read(tmp_path / "a.hw")[1])


def test_files_of_before_are_read():
    model = hw.GaussianMixture(2, warm_up=50, reservoir=0, random_state=0).partial_fit(X)
    header, arrays = model_file.pack(model)
    assert header["state"].pop("reservoir") is None
    again = model_file.from_bytes(container.to_bytes(header, arrays))
    assert fingerprint(again._state, size=16) == fingerprint(model._state, size=16)


def test_a_state_in_parts_with_reservoirs():
    model = hw.GaussianMixture(2, parts=4, warm_up=50, random_state=0).partial_fit(X)
    parts = tuple(
        part.with_record("reservoir", add_rows(Reservoir(part.key, 5, 999), Batch(X[:9]), 0))
        for part in model._state.unfolded.streams
    )
    model._runtime = model._runtime.with_state(replace(model._state, unfolded=replace(model._state.unfolded, streams=parts)))
    again = model_file.from_bytes(model_file.to_bytes(model))
    assert again.holds_rows_ and holds_rows(again._state.unfolded.streams[3])
    assert fingerprint(again._state, size=16) == fingerprint(model._state, size=16)


SAMPLE = "state/reservoir/sample"


def entries(name, change):
    def changed(header, arrays):
        arrays[f"{SAMPLE}/{name}"] = change(arrays[f"{SAMPLE}/{name}"].copy())

    return changed


def filled(value, at=0):
    def change(array):
        array[at] = value
        return array

    return change


def parts(**values):
    return lambda header, arrays: header["state"]["reservoir"].update(values)


HOSTILE = {
    "another kind": (parts(kind="Summary"), "of kind 'Summary'"),
    "another part": (parts(pile=None), "other parts"),
    "a key too large": (parts(key=2**64), "should lie between"),
    "a negative key": (parts(key=-1), "should lie between"),
    "no room": (parts(capacity_rows=0), "should lie between"),
    "too many rows": (parts(capacity_rows=39), "more than it has room for"),
    "too many bytes": (parts(capacity_bytes=100), "more than it has room for"),
    "half a row of room": (parts(capacity_rows=40.5), "should be int"),
    "no number as limit": (parts(limit={"float": "nan"}), "infinite"),
    "a limit below all": (parts(limit={"float": "-inf"}), "infinite"),
    "a limit below some": (parts(limit=-3.0), "beyond its limit"),
    "no sample, and a limit": (parts(sample=None), "has seen no row"),
    "ranks out of order": (entries("ranks", lambda ranks: ranks[::-1].copy()), "not in their order"),
    "ranks that are NaN": (entries("ranks", filled(np.nan)), "NaN"),
    "ranks of other keys": (entries("keys", filled(0)), "not those of its keys"),
    "ranks too few": (entries("ranks", lambda ranks: ranks[1:]), "has the shape"),
    "places too many": (entries("places", lambda places: np.append(places, 3)), "has the shape"),
    "places before the stream": (entries("places", filled(-1)), "outside of the stream"),
    "places after the stream": (entries("places", filled(200)), "outside of the stream"),
    "keys that are signed": (entries("keys", lambda keys: keys.astype(np.int64)), "int64"),
    "weights of nothing": (entries("batch/weights", filled(0.0)), "no stream has"),
    "no weights": (entries("batch/weights", lambda weights: NO_WEIGHTS), "without weights"),
    "no labels": (entries("batch/labels", lambda labels: NO_LABELS), "without weights or labels"),
    "labels of nobody": (entries("batch/labels", filled(2)), "not there"),
    "rows too narrow": (entries("batch/X", lambda rows: rows[:, :1].copy()), "has the shape"),
    "rows too few": (entries("batch/X", lambda rows: rows[1:].copy()), "entries for 39 rows"),
    "rows that are infinite": (entries("batch/X", filled(np.inf)), "infinity"),
    "rows that are missing": (entries("batch/X", filled(np.nan)), "NaN"),
    "sequences": (entries("batch/sequences", lambda none: np.arange(40)), "no stream has"),
}


@pytest.fixture(scope="module")
def files():
    return {name: model_file.to_bytes(MODELS[name]()) for name in ("gaussian", "multinomial")}


def remade(data, change):
    header, arrays = container.from_bytes(data)
    change(header, arrays)
    header.pop("format")
    return container.to_bytes(header, arrays)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("model", ["gaussian"])
def test_made_up_files_are_refused(files, model, name):
    change, sentence = HOSTILE[name]
    with pytest.raises(Damaged, match=sentence) as caught:
        model_file.from_bytes(remade(files[model], change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (entries("batch/X/indices", filled(30)), "columns that are not there"),
        (entries("batch/X/indices", lambda columns: columns[::-1].copy()), "not in their order"),
        (entries("batch/X/data", filled(-1.0)), "Negative values"),
        (entries("batch/X/indptr", filled(10**6, -1)), "damaged sparse matrix"),
        (entries("batch/X/indptr", lambda ends: ends[:0]), "damaged sparse matrix"),
    ],
)
def test_made_up_counts_are_refused(files, change, sentence):
    with pytest.raises(Damaged, match=sentence):
        model_file.from_bytes(remade(files["multinomial"], change))


def test_chains_keep_no_sample():
    model = hw.GaussianHMM(2, warm_up=100, random_state=0).partial_fit(X)
    sampled(model, Batch(X))
    with pytest.raises(Damaged, match="which this model does not keep"):
        model_file.from_bytes(model_file.to_bytes(model))


@pytest.mark.parametrize("name", ["gaussian", "aging", "multinomial", "no row fits"])
def test_messages(name):
    model = MODELS[name]()
    reservoir = model._state.records["reservoir"]
    data = to_bytes(reservoir)
    assert data == to_bytes(reservoir.settled)
    again = from_bytes(data, model._learner, Reservoir)
    assert fingerprint(again, size=16) == fingerprint(reservoir, size=16)
    header, arrays = container.from_bytes(data)
    header["sum"]["limit"] = -9.0
    header.pop("format")
    if len(reservoir):
        with pytest.raises(Damaged, match=r"^the message cannot be read: .*beyond its limit"):
            from_bytes(container.to_bytes(header, arrays), model._learner, Reservoir)


def test_a_reservoir_that_has_seen_nothing():
    learner = MODELS["gaussian"]()._learner
    assert len(from_bytes(to_bytes(Reservoir(2**63, 5, 5)), learner, Reservoir)) == 0


def test_a_warm_up_with_a_sample_is_refused():
    """The warm-up keeps all of its rows; only a stream after it has a sample."""
    header, arrays = model_file.pack(hw.GaussianMixture(2, random_state=0).partial_fit(X))
    other, samples = model_file.pack(gaussian())
    header["state"]["reservoir"] = other["state"]["reservoir"]
    with pytest.raises(ValueError, match="a sample of a stream that has not begun"):
        model_file.from_bytes(container.to_bytes(header, arrays | samples))
