"""Model files: a loaded model equals the saved one, and files that headwater did not write are refused in one sentence."""

import json
import os
import stat
import struct
from contextlib import suppress

import chain_models
import numpy as np
import pytest
from every_model import KINDS
from safetensors.numpy import load as load_arrays
from scipy.sparse import csr_array

import headwater as hw
from headwater.core.algorithm import Algorithm
from headwater.core.records import fingerprint
from headwater.estimators import model_file
from headwater.estimators.stored_parameters import OBJECTS
from headwater.io.files import container
from headwater.io.files.records import Damaged

RNG = np.random.default_rng(0)


def rows(n=200, width=2):
    return RNG.normal(size=(n, width)) + 5.0 * RNG.integers(0, 2, size=(n, 1))


def documents(n=150, words=30):
    return csr_array(RNG.poisson(0.4, size=(n, words)).astype(float))


def symbols(n=300):
    return RNG.integers(0, 4, size=(n, 1))


MODELS = {
    "gaussian": lambda: hw.GaussianMixture(2, warm_up=50, random_state=0).partial_fit(rows()),
    "warm-up": lambda: hw.GaussianMixture(2, random_state=0).partial_fit(rows()),
    "fitted": lambda: hw.GaussianMixture(2, covariance_type="tied", random_state=0).fit(rows()),
    "matched": lambda: hw.GaussianMixture(2, algorithm="moment-matching", warm_up=50, random_state=0).partial_fit(rows()),
    "parts": lambda: hw.GaussianMixture(2, covariance_type="diag", parts=2, warm_up=50, random_state=0).partial_fit(rows()),
    "multinomial": lambda: hw.MultinomialMixture(
        2, algorithm=hw.OnlineEM(batch_size=20), warm_up=50, random_state=0
    ).partial_fit(documents()),
    "markov": lambda: hw.MarkovMixture(2, warm_up=20, random_state=0).partial_fit(symbols().reshape(60, 5)),
    "regression": lambda: hw.RegressionMixture(2, gating="input", warm_up=50, random_state=0).partial_fit(
        *(lambda X: (X, X @ [1.0, 2.0]))(rows())
    ),
    "topics": lambda: hw.LatentDirichletAllocation(2, warm_up=50, random_state=0).partial_fit(documents()),
    "spectra": lambda: hw.ItakuraSaitoNMF(2, warm_up=50, random_state=0).partial_fit(RNG.gamma(1.0, size=(120, 6))),
    "chain": lambda: hw.GaussianHMM(2, algorithm="online-em", random_state=0).partial_fit(
        rows(2300), key=np.repeat(["a", "b"], 1150)
    ),
    "waiting chain": lambda: hw.GaussianHMM(2, random_state=0).partial_fit(rows(2300)),
    "symbols": lambda: hw.CategoricalHMM(2, random_state=0).partial_fit(symbols()),
    "arrival": lambda: hw.DirectionOfArrival(warm_up=20).partial_fit(snapshots()),
    "growth": lambda: hw.GaussianMixture("auto", warm_up=1000, random_state=0).partial_fit(
        np.random.default_rng(1).normal(size=(1300, 2)) + 2.0 * np.arange(1300)[:, None] % 6
    ),
    "race": lambda: hw.GaussianHMM("auto", warm_up=120, lag=10, random_state=0).partial_fit(
        chain_models.a_stream(900, seed=0)[0][:420, :1], key="a"
    ),
}  # fmt: skip


def snapshots(n=60):
    return RNG.normal(size=(n, 3)) + 1j * RNG.normal(size=(n, 3))


# More rows, enough to end a warm-up.
MORE = {
    "multinomial": lambda: (documents(),),
    "markov": lambda: (symbols().reshape(60, 5),),
    "regression": lambda: (rows(), rows()[:, 0]),
    "topics": lambda: (documents(),),
    "spectra": lambda: (RNG.gamma(1.0, size=(120, 6)),),
    "symbols": lambda: (symbols(2500),),
    "arrival": lambda: (snapshots(),),
}


@pytest.fixture(scope="module")
def files():
    """Return the bytes of a file of each model."""
    return {name: container.to_bytes(*model_file.pack(make())) for name, make in MODELS.items()}


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


def remade(data, change):
    """Return the file with a changed header or changed arrays, and a valid digest."""
    header, arrays = container.from_bytes(data)
    change(header, arrays)
    header.pop("format") if header.get("format") == 1 else None
    return container.to_bytes(header, arrays)


HOSTILE = {
    "newer": (lambda h, a: h.update(format=2), "newer headwater"),
    "unknown model": (lambda h, a: h.update(model="os"), "no model that is known"),
    "a function as model": (lambda h, a: h.update(model="merge"), "no model that is known"),
    "an abstract model": (lambda h, a: h.update(model="StreamingEstimator"), "no model that is known"),
    "other components": (lambda h, a: h["parameters"].update(n_components=3), "has the shape"),
    "no components": (lambda h, a: h["parameters"].update(n_components=0), "n_components"),
    "more components than memory": (lambda h, a: h["parameters"].update(n_components=10**10), "more than there are numbers"),
    "unknown parameter": (lambda h, a: h["parameters"].update(fit=1), "has the parameter 'fit'"),
    "unknown object": (lambda h, a: h["parameters"].update(algorithm={"object": "Popen"}), "not known"),
    "other covariances": (lambda h, a: h["parameters"].update(covariance_type="diag"), "has the shape"),
    "other width": (lambda h, a: h.update(width=3), "n_features_in_"),
    "method replaced": (lambda h, a: h["results"].update(fit=1), "has the result 'fit'"),
    "names too many": (lambda h, a: h["results"].update(feature_names_in_=["a", "b", "c"]), "3 names for 2 columns"),
    "infinite": (lambda h, a: a["state/statistics/first"].fill(np.inf), "holds NaN, infinity"),
    "negative": (lambda h, a: a["state/statistics/count"].__imul__(-1.0), "negative counts"),
    "not definite": (lambda h, a: a["state/statistics/second"].__imul__(-1.0), "not positive definite"),
    "single precision": (
        lambda h, a: a.update({"state/statistics/count": a["state/statistics/count"].astype("f4")}), "float32"
    ),
    "array missing": (lambda h, a: a.pop("state/statistics/count"), "not there"),
    "prior": (lambda h, a: a["state/base/prior/components/scale"].__imul__(-1.0), "not a valid prior"),
    "negative progress": (lambda h, a: h["state"]["progress"].update(rows_seen=-5), "is negative"),
    "endless progress": (lambda h, a: h["state"]["progress"].update(mass=10**400), "should be float"),
    "a key too large": (lambda h, a: h["state"].update(key=2**80), "should lie between"),
    "no base": (lambda h, a: h["state"].update(base=None), "has no base"),
    "text for a number": (lambda h, a: h["state"]["progress"].update(mass="1"), "should be float"),
    "parts in parts": (
        lambda h, a: h["state"].update(parts=[{**h["state"], "parts": [h["state"].copy()]}]), "parts in its parts"
    ),
    "schema": (lambda h, a: h["results"].update(schema_=[1]), "should be dict"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_made_up_files_are_refused(files, name):
    change, sentence = HOSTILE[name]
    data = remade(files["gaussian"], change)
    with pytest.raises(Damaged, match=sentence) as caught:
        model_file.from_bytes(data)
    assert "\n" not in str(caught.value)


def test_symbols_beyond_the_table_are_refused(files):
    """A kernel would read beyond the end of its arrays."""
    with pytest.raises(Damaged, match="whole numbers from 0 to 3"):
        model_file.from_bytes(remade(files["symbols"], lambda h, a: a["state/buffer/X"].fill(1e6)))


def test_rows_of_another_width_are_refused(tmp_path):
    """A kernel would write beyond the end of its arrays."""
    X = rows(40, 3)
    data = model_file.to_bytes(hw.RegressionMixture(1, random_state=0).partial_fit(X, X[:, 0]))

    def change(header, arrays):
        arrays["state/buffer/X"] = np.ascontiguousarray(arrays["state/buffer/X"][:, :2])

    with pytest.raises(Damaged, match="has the shape"):
        model_file.from_bytes(remade(data, change))


def test_random_states_beyond_their_memory_are_refused():
    """NumPy would read beyond the end of its array."""
    model = hw.GaussianMixture(1, random_state=np.random.RandomState(0)).partial_fit(rows(20))
    data = model_file.to_bytes(model)
    for place in (-1, 625, 10**8):

        def change(header, arrays, place=place):
            header["parameters"]["random_state"]["random"][2] = place

        with pytest.raises(Damaged):
            model_file.from_bytes(remade(data, change))


def test_growths_that_nobody_could_have_seen_are_refused():
    data = model_file.to_bytes(MODELS["growth"]())
    assert model_file.from_bytes(data).growth_.steps

    def step(header, **change):
        header["state"]["base"]["growth"]["steps"][0].update(change)

    for change in (
        {"rows": -1},
        {"before": 0},
        {"after": "2"},
        {"gain": None},
        {"move": "x" * 99},
        {"accepted": 1},
        {"more": 1},
    ):
        with pytest.raises(ValueError, match=r"cannot be read|damaged"):
            model_file.from_bytes(remade(data, lambda h, a, change=change: step(h, **change)))
    for found in (None, 0, 10**9, 7):
        with pytest.raises(ValueError, match=r"cannot be read|damaged"):
            model_file.from_bytes(remade(data, lambda h, a, found=found: h.update(components=found)))


def test_races_that_nobody_could_have_run_are_refused():
    model = MODELS["race"]()
    data = model_file.to_bytes(model)
    assert model_file.from_bytes(data).race_.running == model.race_.running
    assert len(model.race_.running) > 1
    for change in ({"judged": 10**6}, {"leader": 1}, {"tally": None}, {"warm_up": 0}, {"until": 0}, {"rivals": []}):
        with pytest.raises(Damaged):
            model_file.from_bytes(remade(data, lambda h, a, change=change: h["race"].update(change)))


def test_words_beyond_the_table_are_refused(files):
    def change(header, arrays):
        (words,) = {name for name in arrays if name.endswith("statistics/table/words") and "base" not in name}
        arrays[words][0] = 10**6

    with pytest.raises(Damaged, match="words that are not there"):
        model_file.from_bytes(remade(files["multinomial"], change))


def mutants(data, number, seed):
    """Yield files with bytes changed, cut out, doubled or swapped, with the old digest and with a valid one."""
    rng = np.random.default_rng(seed)
    size = struct.unpack("<Q", data[:8])[0]
    for _ in range(number):
        content, kind = bytearray(data), rng.integers(5)
        limit = len(content) if rng.random() < 0.5 else 8 + size
        at = int(rng.integers(limit))
        if kind == 0:
            content[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            content[at] = int(rng.integers(256))
        elif kind == 2:
            del content[at : at + int(rng.integers(1, 50))]
        elif kind == 3:
            content[at:at] = content[max(0, at - int(rng.integers(1, 50))) : at]
        else:
            del content[at:]
        yield bytes(content)


def damage(tree, rng):
    """Return a tree with one random leaf changed."""
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(tree)
    node, key = places[int(rng.integers(len(places)))]
    others = [None, True, -1, 0, 1, 3, 10**9, 2**70, 0.5, -1e300, "", "x", "mode", [], {}, {"array": "answers/means_"}]
    node[key] = others[int(rng.integers(len(others)))]


def hostile(data, number, seed):
    """Yield files with a changed header or changed arrays, and a valid digest."""
    rng = np.random.default_rng(seed)
    for _ in range(number):

        def change(header, arrays):
            if rng.random() < 0.6:
                damage(header, rng)
                return
            name = sorted(arrays)[int(rng.integers(len(arrays)))]  # safetensors returns them in any order
            array = arrays[name]
            if array.size and rng.random() < 0.7:
                values = (
                    [0, 1, -1, 2**31 - 1, -(2**31)]
                    if array.dtype.kind == "i"
                    else [np.nan, np.inf, -np.inf, 0, -1, 1e308, 5e-324]
                )
                array.flat[int(rng.integers(array.size))] = values[int(rng.integers(len(values)))]
            else:
                arrays[name] = (
                    [array[:0], array.T, array.ravel(), array.astype("i4"), array[..., None]][int(rng.integers(5))]
                    if (array.ndim)
                    else array.astype("i8")
                )

        try:
            yield remade(data, change)
        except (ValueError, TypeError, AttributeError):  # a header that JSON does not know
            continue


def assert_refused_or_sound(data, name):
    """Check that a file is refused in one sentence, or that its model answers, and learns or refuses to."""
    try:
        model = model_file.from_bytes(data)
    except (Damaged, OSError) as error:
        assert "\n" not in str(error)
        return False
    for answer in model._traits.answers if not model._runtime.warming_up else ():
        assert np.isfinite(getattr(model, answer)).all(), answer
    with suppress(ValueError, ArithmeticError, np.linalg.LinAlgError), np.errstate(all="ignore"):
        model.partial_fit(*MORE.get(name, lambda: (rows(300),))())
    return True


@pytest.mark.parametrize("name", MODELS)
def test_damaged_files_are_refused(files, name):
    for mutant in mutants(files[name], 20, 0):
        assert not assert_refused_or_sound(mutant, name) or mutant == files[name]
    for mutant in hostile(files[name], 20, 0):
        assert_refused_or_sound(mutant, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_many_damaged_files_are_refused(files, name):
    """More than 10,000 in all."""
    for mutant in mutants(files[name], 400, 1):
        assert not assert_refused_or_sound(mutant, name) or mutant == files[name]
    for mutant in hostile(files[name], 400, 1):
        assert_refused_or_sound(mutant, name)
