"""Made-up model files with valid digests: small models of every kind, and changes to their files."""

import copy
import json
import warnings
from functools import cache

import every_model
import numpy as np

import headwater as hw
from headwater.core.records import fingerprint
from headwater.diagnostics.distributed_report import DistributedReport, Round
from headwater.estimators import model_file
from headwater.io.files import container
from headwater.io.files.records import Damaged

SIZES = (100, 60)


def learned(kind, options, sizes=SIZES, monitor=False):
    """Return a model of a kind of `every_model`, with other options, after some chunks."""
    model = every_model.KINDS[kind][0]().set_params(**options)
    learn = hw.Monitor(model).learn if monitor else model.partial_fit
    for chunk in every_model.stream_of(kind, sizes):
        learn(**chunk)
    return model


@cache
def counterpart(kind):
    """Return a model of a kind, to merge others with."""
    return learned(kind, {})


def with_gaps_or_errors(kind, options, errors=False):
    """A model of rows some values of which are missing, or that were measured with errors."""
    model, rng = every_model.KINDS[kind][0]().set_params(**options), np.random.default_rng(5)
    for chunk in every_model.stream_of(kind, SIZES):
        X = np.array(chunk.X)
        if errors:
            model.partial_fit(X, noise=rng.random(X.shape))
        else:
            X[rng.random(X.shape) < 0.2] = np.nan
            model.partial_fit(**{**dict(**chunk), "X": X})
    return model


def reported():
    model = learned("gaussian", {})
    rounds = (Round("learning", 3, 200, -3.5, 100, 200, 100, 50), Round("pass", 3, 200, np.nan, 1, 2, 3, 4))
    model.distributed_report_ = DistributedReport(3, rounds, ("part 2 could not be read",))
    return model


SITUATIONS = {
    **{kind: (kind, lambda kind=kind: counterpart(kind)) for kind in every_model.KINDS},
    **{f"{kind} warm-up": (kind, lambda kind=kind: learned(kind, {"warm_up": 500})) for kind in every_model.KINDS},
    "tied": ("gaussian", lambda: learned("gaussian", {"covariance_type": "tied"})),
    "spherical": ("gaussian", lambda: learned("gaussian", {"covariance_type": "spherical", "scale_columns": True})),
    "matched": ("gaussian", lambda: learned("gaussian", {"algorithm": "moment-matching"})),
    "averaged": ("gaussian", lambda: learned("gaussian", {"algorithm": "online-em", "parts": 2})),
    "drift": ("gaussian", lambda: learned("gaussian", {"half_life": "auto", "algorithm": hw.Auto(batch_size=40)}, (100, 150))),
    "growth": ("gaussian", lambda: learned("gaussian", {"n_components": "auto"}, (100, 60))),
    "history": ("gaussian", lambda: learned("gaussian", {}, (100, 200), monitor=True)),
    "report": ("gaussian", reported),
    "merged": ("gaussian", lambda: hw.merge([learned("gaussian", {}, sizes) for sizes in (SIZES, (90, 80))])),
    "factor": ("gaussian", lambda: learned("gaussian", {"covariance_type": "factor", "n_factors": 1})),
    "errors": ("gaussian", lambda: with_gaps_or_errors("gaussian", {}, errors=True)),
    "errors warm-up": ("gaussian", lambda: with_gaps_or_errors("gaussian", {"warm_up": 500}, errors=True)),
    "gaps": ("student", lambda: with_gaps_or_errors("student", {"covariance_type": "diag"})),
    "gaps warm-up": ("gaussian", lambda: with_gaps_or_errors("gaussian", {"warm_up": 500, "resolution": "auto"})),
    "drift beside a background": (
        "background", lambda: learned("background", {"half_life": "auto", "algorithm": hw.Auto(batch_size=40)}, (100, 150)),
    ),
    "table and background": ("mixed", lambda: learned("mixed", {"background": True})),
    "factor online": (
        "gaussian", lambda: learned("gaussian", {"covariance_type": "factor", "n_factors": 1, "algorithm": "online-em"}),
    ),
    "gated warm-up": ("regression", lambda: learned("regression", {"gating": "input", "warm_up": 500})),
    "gated": ("regression", lambda: learned("regression", {"gating": "input"})),
    "words": ("multinomial", lambda: learned("multinomial", {"algorithm": "online-em"})),
    "steps": ("chain", lambda: learned("chain", {"algorithm": "online-em"})),
    "race": ("chain", lambda: learned("chain", {"n_components": "auto", "warm_up": 120, "lag": 10}, (420,))),
}  # fmt: skip


@cache
def _file_of(situation):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parts that are far apart
        return packed(SITUATIONS[situation][1]())


def file_of(situation):
    """Return header and arrays of the file of a model. The file is made once; the header may be changed."""
    header, arrays = _file_of(situation)
    return copy.deepcopy(header), dict(arrays)


def packed(model):
    """Header and arrays of the file of a model, as a checkpoint writes it."""
    position = {"passes": 0, "rows": 160, "complete": False}
    record = {"checkpoint": {"identity": {"a": 1}, "position": position}}
    header, arrays = container.from_bytes(container.to_bytes(*model_file.pack(model, extra=record)))
    return {name: value for name, value in header.items() if name != "format"}, arrays


# Replacements for an array, for one of its numbers, or for a value of the header.
FLOATS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e9, 1e150, 1e249, 1e300, 1e-320, -1e150)
WHOLES = (-1, 0, 1000, 10**6, 2**31 - 1, -(2**31))
VALUES = (
    None, True, -1, 0, 1, 7, 10**6, 10**9, 2**62, 2**70, 0.5, -1e300, 1e150, 1e-320, "", "x", "mode", [], [1], {},
    {"float": "nan"}, {"float": "-inf"}, {"kind": "State"}, {"object": "Harmonic"}, {"list": [1.0]}, "auto", "gone",
)  # fmt: skip
SHAPES = (
    lambda array: array[:0] if array.ndim else array,
    lambda array: array.ravel(),
    lambda array: array[..., None],
    lambda array: np.concatenate([array, array]) if array.ndim else array,
    lambda array: array[..., :-1] if array.ndim else array,
    lambda array: array.astype(np.float32),
    lambda array: np.nan_to_num(array).clip(-1e9, 1e9).astype(np.int64),
)


def changed_array(array, rng):
    """Return an array with one number, all numbers, its scale, its order or its shape changed."""
    numbers = WHOLES if array.dtype.kind in "iu" else FLOATS
    number, way = numbers[rng.integers(len(numbers))], rng.integers(6)
    if way == 5:
        return np.ascontiguousarray(SHAPES[rng.integers(len(SHAPES))](array))
    with np.errstate(all="ignore"):
        if way == 0 and array.size:
            array = array.copy()
            array.flat[rng.integers(array.size)] = np.array(number).astype(array.dtype)
            return array
        if way == 1:
            return np.full_like(array, np.array(number).astype(array.dtype))
        if way == 2:
            return rng.permutation(array.ravel()).reshape(array.shape)
        if way == 3:
            return -array if array.dtype.kind == "f" else array[::-1].copy()
        factor = (2.0, 0.5, 1e12, 1e100, 1e-100)[rng.integers(5)]
        return (array * factor).astype(array.dtype)


def places_of(tree):
    """Return the paths of all values of a header; of long lists only some."""
    for key in tree if isinstance(tree, dict) else sorted({*range(min(3, len(tree))), len(tree) - 1} - {-1}):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places_of(tree[key])


def made_up(header, arrays, number, seed):
    """Yield files: each array is changed once, if there are so many, and as many values of the header as arrays."""
    rng = np.random.default_rng(seed)
    names = sorted(arrays)  # safetensors returns them in any order
    order = [names[at] for at in rng.permutation(len(names))]
    for at in range(number):
        changed, held = copy.deepcopy(header), dict(arrays)
        if at % 2:
            places = list(places_of(changed))
            node, key = places[rng.integers(len(places))]
            value = VALUES[rng.integers(len(VALUES))]
            if value == "gone" and isinstance(node, dict):
                del node[key]
            else:
                node[key] = copy.deepcopy(value)
        else:
            name = order[at // 2 % len(order)]
            held[name] = changed_array(held[name], rng)
        try:
            yield container.to_bytes(changed, held)
        except (ValueError, TypeError, AttributeError):  # a header that JSON does not know
            continue


def probed(model, kind):
    """Read all attributes and answers, and check that they are finite."""
    (chunk,) = every_model.stream_of(kind, (7,), 11)
    given = {name: value for name, value in dict(**chunk).items() if name != "X"}
    answers = {name: getattr(model, name) for name in model._traits.answers}
    answers["score"] = (
        model.score(chunk.X, **given) if model._traits.chained or kind == "topics" else model.score_samples(chunk.X, **given)
    )
    for name, value in answers.items():
        assert np.isfinite(value).all(), name
    json.dumps(model.describe().to_dict(), allow_nan=False)
    for told in (model, model.health_, *(getattr(model, name, None) for name in ("growth_", "race_", "merge_report_"))):
        assert str(told)
    if hasattr(model, "history_"):
        json.dumps(model.history_.to_dict(), allow_nan=False)


def refused_or_sound(data, kind):
    """Return whether a file is refused in one sentence; if not, check that its model can be used and saved."""
    try:
        model = model_file.from_bytes(data)
    except Damaged as error:
        assert "\n" not in str(error)
        return True
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = model_file.from_bytes(model_file.to_bytes(model))
        assert fingerprint(again._state, size=16) == fingerprint(model._state, size=16)
        try:
            probed(model, kind)
        except ValueError as error:
            assert "the columns " in str(error) or "every row is missing" in str(error), (
                error
            )  # it has learned from other rows, or from none
            return False
        try:
            model.partial_fit(**every_model.stream_of(kind, (90,), 7)[0])
        except ValueError as error:
            assert "all rows at once" in str(error) or "must" in str(error), error
        probed(model, kind)
        for raw_rows in (True, False):
            model_file.from_bytes(container.to_bytes(*model_file.pack(model, raw_rows=raw_rows)))
        try:
            both = hw.merge([model_file.from_bytes(data), counterpart(kind)])
        except ValueError as error:
            assert str(error).startswith("models must"), error
        else:
            model_file.from_bytes(model_file.to_bytes(both))
    return False
