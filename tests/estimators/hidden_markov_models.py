"""Hidden Markov models whose parameters are set by hand, and rows for them."""

import numpy as np
import pytest
from chain_models import a_stream, symbol_stream

import headwater as hw

KINDS = ("full", "tied", "diag", "spherical")
LENGTHS = [200, 1, 99, 100]
X, STATES = a_stream(400, seed=2)
SYMBOLS, SYMBOL_STATES = symbol_stream(400, seed=2)
START, STEPS = np.array([0.7, 0.3]), np.array([[0.8, 0.2], [0.3, 0.7]])
MEANS, EMISSIONS = np.array([[0.5, -0.5], [2.0, 2.5]]), np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
COVARS = {
    "full": np.array([[[1.5, 0.3], [0.3, 1.0]], [[1.0, -0.2], [-0.2, 2.0]]]),
    "tied": np.array([[1.5, 0.3], [0.3, 1.0]]),
    "diag": np.array([[1.5, 1.0], [1.0, 2.0]]),
    "spherical": np.array([1.5, 2.0]),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def set_by_hand(model, kind="diag"):
    model.startprob_, model.transmat_ = START, STEPS
    if isinstance(model, hw.CategoricalHMM) or type(model).__name__ in ("CategoricalHMM",):
        model.emissionprob_ = EMISSIONS
    else:
        model.means_, model.covars_ = MEANS, COVARS[kind]
    return model


def by_hand(kind="diag", **options):
    return set_by_hand(hw.GaussianHMM(2, kind, init_params="", **options), kind)


def symbols_by_hand(**options):
    return set_by_hand(hw.CategoricalHMM(2, init_params="", **options))


def dense(kind):
    covars = COVARS[kind]
    if kind == "tied":
        return np.tile(covars, (2, 1, 1))
    return covars if kind == "full" else np.stack([np.diag(np.broadcast_to(c, 2)) for c in covars])


def refused(call, *says):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert any(word in message for word in says), message
