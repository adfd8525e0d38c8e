"""Models that learn apart, from a common start."""

import copy
import pickle

import numpy as np
import pytest
from merge_models import (
    ADDING,
    CENTRES,
    ONLINE,
    assert_same,
    cases,
    content,
    mixture,
    rows_of,
)

import headwater as hw


@cases(ONLINE)
def test_copies_of_a_start_merge_without_matching(kind, algorithm):
    rows, _ = rows_of(0, 1300)
    start = mixture(algorithm, kind).warm_start_from(rows[:400])
    copies = [copy.deepcopy(start), pickle.loads(pickle.dumps(start)), start.branch(), start]
    for part, model in enumerate(copies):
        model.partial_fit(rows[400 + part :: 4])
    merged = hw.merge(copies)
    assert merged.merge_report_.matches == ()
    assert merged.n_samples_seen_ == len(rows)


def test_the_same_start_elsewhere_is_the_same_base():
    rows, _ = rows_of(0, 1300)
    workers = [mixture().warm_start_from(rows[:400]).partial_fit(rows[400 + part :: 2]) for part in range(2)]
    merged = hw.merge(workers)
    assert merged.merge_report_.matches == ()
    assert merged.n_samples_seen_ == len(rows)


@pytest.mark.parametrize("rows", [3, 20, 250, 400])
@pytest.mark.parametrize("algorithm", ["auto", "moment-matching", "online-em"])
def test_a_start_ends_the_warm_up_whatever_its_size(algorithm, rows):
    X, _ = rows_of(0, 1000)
    start = mixture(algorithm).warm_start_from(X[:rows])
    assert not start._runtime.warming_up
    assert start.n_samples_seen_ == rows
    assert start.weight_concentration_.sum() == pytest.approx(3.0 + rows)
    assert start.partial_fit(X[rows:]).n_samples_seen_ == len(X)
    assert np.isfinite(start.score_samples(X)).all()


def test_a_start_on_the_rows_of_a_warm_up_is_that_warm_up():
    X, labels = rows_of(0, 300)
    weights, given = 0.5 + np.arange(300) % 3, np.where(np.arange(300) % 5 == 0, labels, -1)
    options = {"sample_weight": weights, "labels": given}
    assert_same(mixture().warm_start_from(X, **options), mixture().partial_fit(X, **options))


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("weight", [0.5, 0.01])
def test_a_start_whose_rows_come_again_is_not_counted(algorithm, weight):
    X, _ = rows_of(0, 1500)
    start = mixture(algorithm).warm_start_from(X[:400], weight=weight)
    assert start.n_samples_seen_ == 0
    assert start.weight_concentration_.sum() == pytest.approx(3.0 + 400 * weight)
    parts = [start.branch().partial_fit(X[part::3]) for part in range(3)]
    merged = hw.merge(parts)
    assert merged.n_samples_seen_ == len(X)
    if algorithm in ADDING:
        assert merged.weight_concentration_.sum() == pytest.approx(3.0 + 400 * weight + len(X))
    order = merged.predict(CENTRES)
    np.testing.assert_allclose(merged.means_[order], CENTRES, atol=0.5)


def test_a_start_forgets_what_was_learned():
    X, _ = rows_of(0, 1000)
    fresh = mixture().warm_start_from(X[:300])
    used = mixture().fit(X[300:]).warm_start_from(X[:300])
    assert_same(used, fresh)
    assert not hasattr(used, "converged_")
    wide = mixture(k=2).partial_fit(np.random.default_rng(0).normal(size=(400, 5))).warm_start_from(X[:300])
    assert wide.n_features_in_ == 2
    assert_same(mixture().partial_fit(X[300:400]).warm_start_from(X[:300]), fresh)


def infinite_rows():
    rows = rows_of(0, 50)[0]
    rows[3, 1] = np.inf
    return rows


GOOD = rows_of(0, 50)[0]
BAD_STARTS = {
    "zero": (GOOD, {"weight": 0.0}), "negative": (GOOD, {"weight": -1.0}), "above one": (GOOD, {"weight": 1.5}),
    "nan weight": (GOOD, {"weight": np.nan}), "text": (GOOD, {"weight": "half"}), "none": (GOOD, {"weight": None}),
    "an array": (GOOD, {"weight": np.ones(50)}), "too few rows": (GOOD[:2], {}), "infinite": (infinite_rows(), {}),
    "too few that count": (GOOD, {"sample_weight": np.r_[np.ones(2), np.zeros(48)]}), "no rows": (GOOD[:0], {}),
    "weights of another length": (GOOD, {"sample_weight": np.ones(49)}), "labels": (GOOD, {"labels": np.full(50, 3)}),
}  # fmt: skip


@pytest.mark.parametrize(("X", "options"), BAD_STARTS.values(), ids=BAD_STARTS)
def test_bad_starts_are_refused(X, options):
    model = mixture().fit(rows_of(1, 500)[0])
    before, known = content(model), dict(model.__dict__)
    with pytest.raises(ValueError) as caught:
        model.warm_start_from(X, **options)
    assert "\n" not in str(caught.value)
    assert content(model) == before
    assert model.__dict__ == known
    new = mixture()
    with pytest.raises(ValueError):
        new.warm_start_from(X, **options)
    assert set(new.__dict__) == set(mixture().__dict__)


@pytest.mark.parametrize("algorithm", ["em", "vb"])
def test_batch_algorithms_have_no_stream_to_start(algorithm):
    model = mixture(algorithm)
    with pytest.raises(ValueError, match="needs all rows at once"):
        model.warm_start_from(rows_of(0, 100)[0])
    assert set(model.__dict__) == set(mixture(algorithm).__dict__)
