"""Model files: a loaded model equals the saved one."""

import json
import os
import stat
import struct

import numpy as np
import pytest
from every_model import KINDS
from safetensors.numpy import load as load_arrays
from saved_examples import MODELS, rows

import headwater as hw
from headwater.core.algorithm import Algorithm
from headwater.core.records import fingerprint
from headwater.estimators import model_file
from headwater.estimators.stored_parameters import OBJECTS


@pytest.mark.parametrize("name", MODELS)
def test_what_comes_back_is_what_was_saved(name, tmp_path):
    model = MODELS[name]()
    before = fingerprint(model._state, size=16)
    model.save(tmp_path / "a.hw")
    again = hw.load(tmp_path / "a.hw")
    assert type(again) is type(model)
    assert fingerprint(again._state, size=16) == before == fingerprint(model._state, size=16)
    assert str(again.get_params()) == str(model.get_params())
    for answer in model._traits.answers:
        np.testing.assert_array_equal(getattr(again, answer), getattr(model, answer))
    again.save(tmp_path / "b.hw")
    assert (tmp_path / "a.hw").read_bytes() == (tmp_path / "b.hw").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["a.hw", "b.hw"]


@pytest.mark.parametrize("name", ["warm-up", "waiting chain", "symbols"])
def test_without_raw_rows(name, tmp_path):
    model = MODELS[name]()
    assert model.holds_rows_
    before = fingerprint(model._state, size=16)
    model.save(tmp_path / "a.hw", raw_rows=False)
    again = hw.load(tmp_path / "a.hw")
    assert not again.holds_rows_
    assert fingerprint(model._state, size=16) == before
    for answer in model._traits.answers:
        np.testing.assert_array_equal(getattr(again, answer), getattr(model, answer))
    held = {array.shape[0] for array in load_arrays((tmp_path / "a.hw").read_bytes()).values() if array.ndim}
    assert max(held) < 50
    assert again.n_samples_seen_ == model.n_samples_seen_


def test_a_file_can_be_read_without_headwater(tmp_path):
    """As docs/guide/model-files.md says."""
    model = MODELS["gaussian"]()
    model.save(tmp_path / "a.hw")
    data = (tmp_path / "a.hw").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["headwater"])
    arrays = load_arrays(data)
    assert (header["format"], header["model"], header["rows"]) == (1, "GaussianMixture", 200)
    assert header["parameters"]["n_components"] == 2
    assert header["state"]["progress"]["rows_seen"] + header["state"]["pending"]["rows"] == 200
    np.testing.assert_array_equal(arrays["answers/means_"], model.means_)


def test_parameters_of_every_kind():
    model = hw.GaussianMixture(
        np.int64(2), algorithm=hw.SatoEM(rate=hw.Harmonic(1.0, 1.0, 100.0)), means_init=[[0.0, 0.0], [5.0, 5.0]],
        covariance_prior=np.eye(2), warm_up=50, random_state=np.random.RandomState(3),
    ).partial_fit(rows())  # fmt: skip
    again = model_file.from_bytes(model_file.to_bytes(model))
    assert again.algorithm == model.algorithm
    assert again.means_init == model.means_init
    np.testing.assert_array_equal(again.covariance_prior, np.eye(2))
    assert again.random_state.randint(1000) == model.random_state.randint(1000)
    again.set_params(tol=0.5)
    third = model_file.from_bytes(model_file.to_bytes(again))
    assert third.tol == 0.5
    assert third._runtime.made_with["tol"] == model.tol


def test_every_algorithm_can_be_a_parameter():
    kinds = Algorithm.__subclasses__()
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert {kind.__name__ for kind in kinds if kind.__module__.startswith("headwater.")} <= set(OBJECTS)


def test_names_results_and_what_is_beside(tmp_path):
    import pandas as pd

    model = hw.GaussianMixture(2, random_state=0).fit(pd.DataFrame(rows(), columns=["a", "ü<b>"]))
    model.schema_, model.history_ = {"kind": "table"}, hw.History()
    model_file.save(model, tmp_path / "a.hw", extra={"position": 7})
    again, extra = model_file.read(tmp_path / "a.hw")
    assert again.feature_names_in_.tolist() == ["a", "ü<b>"]
    assert (again.schema_, again.history_.to_dict(), extra) == ({"kind": "table"}, model.history_.to_dict(), {"position": 7})
    assert (again.converged_, again.n_iter_, again.lower_bounds_) == (model.converged_, model.n_iter_, model.lower_bounds_)


def test_merged_models_and_open_sequences():
    merged = hw.merge([MODELS["gaussian"](), hw.GaussianMixture(2, warm_up=50, random_state=1).partial_fit(rows())])
    assert str(model_file.from_bytes(model_file.to_bytes(merged)).merge_report_) == str(merged.merge_report_)
    chain = MODELS["chain"]()
    again = model_file.from_bytes(model_file.to_bytes(chain))
    assert again.open_sequences_ == ["a", "b"]
    np.testing.assert_array_equal(again.next_state_proba("a"), chain.next_state_proba("a"))


@pytest.mark.parametrize("kind", ["gaussian", "multinomial", "markov", "regression", "topics", "spectra", "chain", "arrival"])
def test_merged_models_of_one_component_are_read_again(kind):
    rng = np.random.default_rng(0)
    parts = [KINDS[kind][0]() for _ in range(2)]
    for part in parts:
        if "n_components" in part.get_params():
            part.set_params(n_components=1)
        part.partial_fit(**KINDS[kind][1](150, rng))
    merged = hw.merge(parts)
    assert np.isinf(merged.merge_report_.matches[0].margin).all()  # there is no other to match
    again = model_file.from_bytes(model_file.to_bytes(merged))
    assert_same_report(again.merge_report_, merged.merge_report_)


def test_merged_models_that_grew_to_different_numbers_are_read_again():
    rng = np.random.default_rng(0)
    parts = [
        hw.GaussianMixture("auto", warm_up=100, random_state=0).partial_fit(rng.normal(size=(400, 1)) + shift)
        for shift in (0.0, 20.0 * (np.arange(400) % 2)[:, None])
    ]
    assert [part.n_components_ for part in parts] == [1, 2]
    merged = hw.merge(parts)
    assert np.isnan(merged.merge_report_.matches[0].divergence).all()
    again = model_file.from_bytes(model_file.to_bytes(merged))
    assert_same_report(again.merge_report_, merged.merge_report_)
    X = rng.normal(size=(50, 1))
    np.testing.assert_array_equal(again.partial_fit(X).score_samples(X), merged.partial_fit(X).score_samples(X))


def assert_same_report(one, other):
    assert (str(one), one.held, len(one.matches)) == (str(other), other.held, len(other.matches))
    for match, expected in zip(one.matches, other.matches, strict=True):
        assert match.models == expected.models
        for name in ("components", "divergence", "margin", "contrast"):
            np.testing.assert_array_equal(getattr(match, name), getattr(expected, name))


def steering(angles):
    return np.exp(1j * np.outer(np.sin(angles), np.arange(3)))


def test_functions_are_asked_for():
    model = hw.DirectionOfArrival(steering=steering, warm_up=20).partial_fit(np.exp(1j * rows(60, 3)))
    data = model_file.to_bytes(model)
    with pytest.raises(ValueError, match="needs steering, a function"):
        model_file.from_bytes(data)
    assert model_file.from_bytes(data, steering=steering).angle_ == model.angle_


def test_nothing_learned_nothing_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        hw.GaussianMixture().save(tmp_path / "a.hw")
    assert not list(tmp_path.iterdir())


def test_writing_is_one_step(tmp_path, monkeypatch):
    model, path = MODELS["gaussian"](), tmp_path / "a.hw"
    model.save(path)
    path.chmod(0o640)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("No space left on device")))
    with pytest.raises(OSError, match=r"a\.hw cannot be written: No space left on device"):
        model.partial_fit(rows()).save(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["a.hw"]
    monkeypatch.undo()
    model.save(path)
    assert path.read_bytes() != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    link = tmp_path / "link.hw"
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink()


def test_places_that_are_none(tmp_path):
    model = MODELS["gaussian"]()
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        model.save(tmp_path / "none" / "a.hw")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        model.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        hw.load(tmp_path / "a.hw")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        hw.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "no model file"),
        (b"x" * 100, "no model file"),
        (b"\xff" * 8, "no model file"),
        (struct.pack("<Q", 2) + b"{}", "no model of headwater"),
        (struct.pack("<Q", 2**40) + b"{}", "no model file"),
    ],
)
def test_files_that_are_none(tmp_path, content, sentence):
    (tmp_path / "a.hw").write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as caught:
        hw.load(tmp_path / "a.hw")
    assert "\n" not in str(caught.value)
