"""Streams of hidden Markov models, and comparisons of them."""

import numpy as np
import pytest
from chain_models import a_stream, symbol_stream

import headwater as hw

ROWS = 1400
GAUSSIAN, SYMBOLS = a_stream(ROWS)[0], symbol_stream(ROWS)[0]
KEYS = np.array(["one", "two", "three"])[np.random.default_rng(1).integers(3, size=ROWS)]
models = pytest.mark.parametrize("make", [hw.GaussianHMM, hw.CategoricalHMM])


def a_model(make, algorithm="auto", **options):
    options = {"warm_up": 150, "lag": 20, "random_state": 0, **options}
    return (
        make(2, algorithm=algorithm, **options)
        if make is hw.GaussianHMM
        else make(2, n_features=4, algorithm=algorithm, **options)
    )


def rows_for(make, missing=True):
    X = (GAUSSIAN if make is hw.GaussianHMM else SYMBOLS).copy()
    if missing:
        X[[3, 4, 149, 150, 151, 700, 1399]] = np.nan
    return X
