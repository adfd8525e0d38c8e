"""Left-to-right chains of three states, for the tests of starts of hidden Markov models."""

import numpy as np
import pytest

import headwater as hw

KINDS = ("full", "tied", "diag", "spherical")
STREAMS = ("auto", "online-em", "soem", "boem", "online-vb")
ALGORITHMS = (*STREAMS, "em", "vb")
LENGTHS = [60, 40, 50, 90]
FIRST = np.array([1.0, 0.0, 0.0])
LEFT_RIGHT = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
MIDDLES = np.array([[4.0, 0.0], [-4.0, 0.0], [0.0, 4.0]])
TABLE = np.array([[0.85, 0.05, 0.05, 0.05], [0.05, 0.85, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85]])


def one_way(lengths=LENGTHS, seed=0):
    """Return rows and symbols of sequences that go through three states in order, each for a third of the sequence."""
    rng = np.random.default_rng(seed)
    states = np.concatenate([np.minimum(np.arange(size) * 3 // size, 2) for size in lengths])
    symbols = (rng.random(len(states))[:, None] > np.cumsum(TABLE, axis=1)[states]).sum(axis=1)[:, None]
    return rng.normal(size=(len(states), 2)) + MIDDLES[states], symbols, states


ROWS, SYMBOLS, STATES = one_way()


def chain(kind, **options):
    """Return a model with this kind of covariance, or of symbols, and rows for it."""
    options = {"random_state": 0, "warm_up": 150, **options}
    if kind == "symbols":
        return hw.CategoricalHMM(options.pop("n_components", 3), n_features=4, **options), SYMBOLS
    return hw.GaussianHMM(options.pop("n_components", 3), kind, **options), ROWS


def left_right(kind, init_params=None, **options):
    """Return the same, with a left-to-right chain set by hand."""
    model, rows = chain(kind, init_params=init_params or ("e" if kind == "symbols" else "mc"), **options)
    model.startprob_, model.transmat_ = FIRST, LEFT_RIGHT
    return model, rows


every_kind = pytest.mark.parametrize("kind", [*KINDS, "symbols"])
GIVEN = {
    "startprob_": np.array([0.2, 0.5, 0.3]), "transmat_": np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]),
    "means_": MIDDLES + 0.5, "emissionprob_": TABLE,
}  # fmt: skip
COVARS = {
    "full": np.tile(2.0 * np.eye(2), (3, 1, 1)),
    "tied": 2.0 * np.eye(2),
    "diag": np.full((3, 2), 2.0),
    "spherical": [2.0] * 3,
}
NAMES = {"s": "startprob_", "t": "transmat_", "m": "means_", "c": "covars_", "e": "emissionprob_"}


def set_by_hand(model, letters):
    for letter in letters:
        name = NAMES[letter]
        setattr(model, name, COVARS[model.covariance_type] if letter == "c" else GIVEN[name])
    return model
