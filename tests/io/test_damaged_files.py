"""Files that are damaged or made up are refused in one sentence, or their models answer and learn."""

import struct
from contextlib import suppress

import numpy as np
import pytest
from saved_examples import MODELS, MORE, rows

import headwater as hw
from headwater.estimators import model_file
from headwater.io.files import container
from headwater.io.files.records import Damaged


@pytest.fixture(scope="module")
def files():
    """Return the bytes of a file of each model."""
    return {name: container.to_bytes(*model_file.pack(make())) for name, make in MODELS.items()}


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
