"""Sequences of calls that a user could make, drawn by a seed: after every call the model is saved, loaded and compared.

A model that was never saved and its twin, which is loaded anew before every call, must agree bit for bit.
"""

import inspect
import warnings
from dataclasses import dataclass

import numpy as np
import odd_rows

import headwater as hw
from headwater.core.algorithms import ALGORITHMS
from headwater.core.records import fingerprint
from headwater.estimators import model_file
from headwater.estimators.parameters import parameter_names
from headwater.io.files import container

WIDTH = 4
SIZES = (1, 2, 7, 30, 70, 150)  # rows of a chunk
# Settings that a user may change in mid-stream, for the estimators that have them.
SETTINGS = {
    "half_life": (None, 50.0, 3.0, "auto"),
    "parts": (1, 2, 3),
    "reservoir": ("auto", 100, 0),
    "warm_up": ("auto", 20, 60, 200),
    "lag": (0, 5, 10),
    "n_threads": (1, 2),
    "warm_start": (True, False),
    "max_iter": (1, 5),
    "n_iter": (1, 5),
    "reg_covar": (1e-6, 1e-3),
    "min_covar": (1e-3, 1.0),
    "reg_noise": (1e-6, 1e-2),
    "weight_concentration_prior": (None, 0.01, 1.0, 50.0),
    "probability_concentration_prior": (None, 0.5, 2.0, np.linspace(0.1, 2.0, WIDTH)),
    "startprob_prior": (None, 0.5, 1.0, 3.0),
    "transmat_prior": (None, 0.5, 1.0, 3.0),
    "emissionprob_prior": (None, 0.5, 1.0, 3.0),
    "mean_prior": (None, np.arange(1.0, WIDTH + 1.0)),
    "mean_precision_prior": (None, 0.1, 10.0),
    "degrees_of_freedom_prior": (None, 9.0, 30.0),
    "covariance_prior": (None, 1.0, np.eye(WIDTH)),
    "coef_prior": (None, np.ones(WIDTH), np.ones(WIDTH - 1)),
    "coef_precision_prior": (None, 0.1, 10.0),
    "noise_variance_prior": (None, 0.1, 10.0),
    "doc_topic_prior": (None, 0.1, 3.0),
    "topic_word_prior": (None, 0.1, 3.0),
    "component_prior": (None, 0.1, 3.0),
    "weight_shape": (0.5, 1.0),
    "weight_scale": (None, 0.5, 2.0),
    "params": ("stmc", "ste", "st", "mc", "e", "s", ""),
    "init_params": ("auto", "stmc", "ste", "kmeans", "random", "", "st"),
    "algorithm": (*ALGORITHMS, hw.Auto(batch_size=20), hw.OnlineEM(batch_size=20), hw.OnlineVB(batch_size=20)),
}  # fmt: skip


# And settings that a model is made with.
OPTIONS = {
    "n_components": (1, 2, 2, 3, "auto"),
    "covariance_type": ("full", "tied", "diag", "spherical", "factor"),
    "background": (True, 0.05),
    "resolution": (None, "auto", 0.1),
    "degrees_of_freedom": ("each", "shared", 4.0),
    "dtype": (None, "float32"),
    "scale_columns": (False, False, True),
    "gating": ("fixed", "input"),
    "fit_intercept": (True, False),
    "vocabulary": ("fixed", "open"),
    "parts": (1, 1, 2),
    "half_life": (None, None, 40.0, "auto"),
    "lag": (5, 10),
    "params": ("stmc", "ste", "st", "tmc", "te", ""),
}


# Estimators whose rows may have gaps.
GAPPED = (
    hw.GaussianMixture, hw.StudentMixture, hw.MixedMixture, hw.PoissonMixture, hw.BernoulliMixture, hw.CategoricalMixture,
    hw.GaussianHMM,
)  # fmt: skip


@dataclass
class Situation:
    """A model, another one that it may be merged with, and where its rows come from."""

    kind: type
    rng: np.random.Generator
    data: str

    def chunk(self, n, method=None):
        """Return rows, sometimes with weights if the method takes them."""
        X = odd_rows.ROWS[self.data](n, WIDTH, self.rng)
        chunk = odd_rows.CHUNKS[self.kind](X)
        if self.kind in GAPPED and self.rng.random() < 0.3:
            X = np.array(chunk["X"], dtype=float)
            X[self.rng.random(X.shape) < self.rng.choice([0.02, 0.3, 0.9])] = np.nan
            chunk["X"] = X
        if method is not None and "noise" in inspect.signature(method).parameters and self.rng.random() < 0.3:
            chunk["noise"] = self.rng.choice([0.0, 1e-6, 1.0, 1e20]) * self.rng.random(chunk["X"].shape)
        if method is not None and "sample_weight" in inspect.signature(method).parameters and self.rng.random() < 0.3:
            weights = (np.ones(n), self.rng.integers(0, 3, n), 1e-3 * self.rng.random(n), np.full(n, 1e20), np.full(n, 1e-20))
            chunk["sample_weight"] = weights[self.rng.integers(len(weights))].astype(float)
        return chunk

    def one(self):
        chunk = self.chunk(1)
        X = chunk["X"]
        if not isinstance(X, np.ndarray):
            X = X.toarray()
        return {"x": X[0]} | ({"y": chunk["y"][0]} if "y" in chunk else {})


def fit(model, situation):
    chunk = situation.chunk(situation.rng.choice(SIZES[2:]), model.fit)
    return lambda model: model.fit(**chunk)


def partial_fit(model, situation):
    chunk = situation.chunk(situation.rng.choice(SIZES), model.partial_fit)
    return lambda model: model.partial_fit(**chunk)


def update(model, situation):
    chunk = situation.chunk(situation.rng.choice(SIZES), model.update)

    def call(model):
        model.update(**chunk)
        return model

    return call


def learn_one(model, situation):
    rows = [situation.one() for _ in range(situation.rng.integers(1, 4))]

    def call(model):
        for row in rows:
            model.learn_one(**row)
        return model

    return call


def warm_start_from(model, situation):
    chunk = situation.chunk(situation.rng.choice(SIZES[2:]), model.warm_start_from)
    weight = float(situation.rng.choice([1.0, 0.3, 1e-6]))
    return lambda model: model.warm_start_from(**chunk, weight=weight)


def read(model, situation):
    def call(model):
        for name in model._traits.answers:
            getattr(model, name)
        str(model.health_)
        return model

    return call


def set_params(model, situation):
    rng, names = situation.rng, sorted(set(SETTINGS) & set(parameter_names(type(model))))
    changes = {}
    for name in rng.choice(names, size=rng.integers(1, 3)):
        values = SETTINGS[name]
        changes[str(name)] = values[rng.integers(len(values))]
    return lambda model: model.set_params(**changes)


def branch(model, situation):
    return lambda model: model.branch()


def merge(model, situation):
    rng = situation.rng
    shared = rng.random() < 0.5
    chunks = [situation.chunk(rng.choice(SIZES[2:]), model.partial_fit) for _ in range(2)]

    def call(model):
        start = model.branch()
        other = start.branch() if shared else odd_rows.blank(type(model), "auto").set_params(**model.get_params(deep=False))
        return hw.merge([start.partial_fit(**chunks[0]), other.partial_fit(**chunks[1])])

    return call


def give(model, situation):
    """Set some parameters of a hidden Markov model by hand, as a start."""
    rng, names = situation.rng, [name for name in ("startprob_", "transmat_") if hasattr(type(model), name)]
    if not isinstance(model, hw.GaussianHMM | hw.CategoricalHMM) or model.n_components == "auto":
        return lambda model: model
    name, k = str(rng.choice(names)), model.n_components
    value = rng.dirichlet(np.ones(k), size=None if name == "startprob_" else k)
    if rng.random() < 0.5:
        value = np.ones(k) / k if name == "startprob_" else np.eye(k)

    def call(model):
        setattr(model, name, value)
        return model

    return call


def prune(model, situation):
    return lambda model: model.prune(0.05) if hasattr(model, "prune") else model


def close(model, situation):
    return lambda model: model.close() if hasattr(model, "close") else model


def without_rows(model, situation):
    return lambda model: model_file.from_bytes(container.to_bytes(*model_file.pack(model, raw_rows=False)))


CALLS = (
    fit, partial_fit, partial_fit, partial_fit, partial_fit, update, learn_one, warm_start_from, read, set_params, set_params,
    branch, merge, prune, close, give, without_rows,
)  # fmt: skip


def contents(model):
    """Return what a file holds of a model, without settings that were set to the values they had."""
    header, arrays = model_file.pack(model, answers=False)
    before = {name: tree for name, tree in header["learned_with"].items() if tree != header["parameters"][name]}
    return header | {"learned_with": before}, {name: np.ascontiguousarray(array).tobytes() for name, array in arrays.items()}


def outcome(call, model):
    """Return the model after a call, or the sentence of the error."""
    try:
        return call(model), ""
    except (ValueError, AttributeError) as error:
        assert isinstance(error, ValueError) or "was learned and cannot be set" in str(error)
        assert "cannot be read" not in str(error) and "is damaged" not in str(error), error
        return model, str(error)


def draw_options(kind, rng):
    """Return settings of a model, some of which are not the defaults."""
    names = sorted(set(OPTIONS) & set(parameter_names(kind)))
    chosen = [str(name) for name in names if rng.random() < 0.3]
    options = {name: OPTIONS[name][rng.integers(len(OPTIONS[name]))] for name in chosen}
    if options.get("half_life") == "auto" and "reservoir" not in parameter_names(kind):
        del options["half_life"]
    return options


def run(kind, algorithm, seed, calls=12, trace=None):
    """Make a sequence of calls. After each, the model can be saved and loaded, and then behaves as if it had not been saved."""
    rng = np.random.default_rng(seed)
    situation, options = Situation(kind, rng, str(rng.choice(list(odd_rows.ROWS)))), draw_options(kind, rng)
    model = odd_rows.blank(kind, algorithm, **options)
    done = 0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(calls):
            if rng.random() < 0.2:
                situation.data = str(rng.choice(list(odd_rows.ROWS)))
            make = CALLS[rng.integers(len(CALLS))]
            if not model._has_state() and make not in (fit, partial_fit, update, learn_one, warm_start_from, set_params, give):
                continue
            call = make(model, situation)
            twin = model_file.from_bytes(model_file.to_bytes(model)) if model._has_state() else None
            if trace is not None:
                trace += [*([str(options)] if not trace else ()), (make.__name__, situation.data)]
            model, refused = outcome(call, model)
            done += 1
            if not model._has_state():
                model = odd_rows.blank(kind, algorithm, **options) if refused else model
                continue
            if twin is not None:
                twin, also = outcome(call, twin)
                assert also == refused, (also, refused)
            again = model_file.from_bytes(container.to_bytes(*model_file.pack(model)))
            assert fingerprint(again._state, size=16) == fingerprint(model._state, size=16)
            for other in (again, *(() if twin is None else (twin,))):
                assert contents(other) == contents(model)
    return done
