"""Models and events of the tests of live models."""

import json

import numpy as np

import headwater as hw

COLUMNS = ("a", "b", "c")


def rows(number, seed=0):
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 3.0]])
    return centers[rng.integers(2, size=number)] + rng.normal(size=(number, 3))


def learned_model(number=2000, seed=0):
    """A model with names of columns and usual scores."""
    import pandas as pd

    model = hw.GaussianMixture(2, random_state=0, warm_up=500)
    monitor = hw.Monitor(model, timed=False)
    for part in np.split(rows(number, seed), [number // 2]):  # rows of the start have no scores
        monitor.learn(pd.DataFrame(part, columns=COLUMNS))
    return model


def events(number, seed=1, first=0):
    return [
        {"id": first + place, **dict(zip(COLUMNS, row, strict=True))}
        for place, row in enumerate(rows(number, seed).round(6).tolist())
    ]


def write_lines(path, found, mode="w"):
    with path.open(mode) as file:
        file.writelines(json.dumps(one) + "\n" for one in found)
    return path
