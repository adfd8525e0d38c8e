"""Held-out scores on real tables, beside scikit-learn. Needs a directory of data sets, named by HEADWATER_DATA."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.mixture import GaussianMixture as Peer

import headwater as hw

DIRECTORY = os.environ.get("HEADWATER_DATA", "")
# A table, its column that is not a number, and the number of components.
TABLES = {"abalone": ("sex", 6), "ccpp": (None, 6), "magic04": ("class", 8)}
GAP = 0.1  # nats per row

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not Path(DIRECTORY).is_dir() or not DIRECTORY, reason="HEADWATER_DATA names no directory"),
]


@pytest.fixture(scope="module", params=TABLES)
def table(request):
    """Return standardised training and test rows in random order, and scikit-learn's score of the test rows."""
    name = request.param
    path = Path(DIRECTORY) / name / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"HEADWATER_DATA has no {name}/{name}.csv.gz")
    text, k = TABLES[name]
    frame = pd.read_csv(path)
    rows = frame.drop(columns=[text] if text else []).to_numpy(dtype=float)
    rows = np.random.default_rng(0).permutation(rows)
    cut = len(rows) * 3 // 4
    learn, judge = rows[:cut], rows[cut:]
    centre, spread = learn.mean(axis=0), learn.std(axis=0)
    learn, judge = (learn - centre) / spread, (judge - centre) / spread
    peer = Peer(k, n_init=1, max_iter=200, random_state=0).fit(learn)
    return k, learn, judge, peer.score(judge)


def test_one_pass_scores_like_scikit_learn(table):
    k, learn, judge, theirs = table
    model = hw.GaussianMixture(k, random_state=0)
    for chunk in np.array_split(learn, 20):
        model.partial_fit(chunk)
    assert model.n_samples_seen_ == len(learn)
    assert model.score(judge) > theirs - GAP


def test_fit_scores_like_scikit_learn(table):
    k, learn, judge, theirs = table
    model = hw.GaussianMixture(k, max_iter=200, random_state=0).fit(learn)
    assert model.score(judge) > theirs - GAP


def test_rows_in_the_order_of_their_classes_are_no_trap_for_fit():
    path = Path(DIRECTORY) / "magic04" / "magic04.csv.gz"
    if not path.is_file():
        pytest.skip("HEADWATER_DATA has no magic04/magic04.csv.gz")
    frame = pd.read_csv(path)
    rows = frame.drop(columns="class").to_numpy(dtype=float)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    mixed = np.random.default_rng(1).permutation(rows)
    in_order = hw.GaussianMixture(8, max_iter=200, random_state=0).fit(rows).score(rows)
    assert in_order > hw.GaussianMixture(8, max_iter=200, random_state=0).fit(mixed).score(rows) - GAP
