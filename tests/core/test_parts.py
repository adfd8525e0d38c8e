"""Streams that are learned in parts."""

import copy
import pickle

import numpy as np
import pytest
from merge_models import (
    CENTRES,
    ONLINE,
    assert_close,
    assert_same,
    blurred,
    content,
    is_belief,
    mixture,
    quiet_merge,
    rows_of,
)
from naive import merging as twin
from sklearn.base import clone

import headwater as hw
from headwater.checks import applicable_laws
from headwater.core import merge, shards

# Parts


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(shards, "TURN_ROWS", 16)


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_parts_are_branches_that_got_the_rows_in_turn(algorithm, kind, small_blocks):
    X = blurred(0, 1130)
    weights, labels = 0.5 + np.arange(len(X)) % 3, np.where(np.arange(len(X)) % 9 == 0, 1, -1)
    model = mixture(algorithm, kind, parts=5, reservoir=0).partial_fit(X, sample_weight=weights, labels=labels)
    base = mixture(algorithm, kind, reservoir=0).partial_fit(X[:300], sample_weight=weights[:300], labels=labels[:300])
    by_hand = twin.dealt(base, X[300:], 5, 16, weights[300:], labels[300:])
    merged = quiet_merge(by_hand)
    assert_close(model, merged, 1e-9)
    assert model.n_samples_seen_ == len(X)
    np.testing.assert_allclose(model.score_samples(X), merged.score_samples(X), rtol=1e-8)


@pytest.mark.parametrize("algorithm", ["auto", "online-vb"])
def test_blocks_have_16_rows(algorithm):
    X = blurred(0, 300 + 2 * 3 * 16 + 10)
    model = mixture(algorithm, parts=3, reservoir=0).partial_fit(X)
    base = mixture(algorithm, reservoir=0).partial_fit(X[:300])
    assert_close(model, quiet_merge(twin.dealt(base, X[300:], 3, 16)), 1e-9)
    assert [part.rows - 300 for part in model._state.unfolded.streams] == [2 * 16 + 10, 2 * 16, 2 * 16]


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("half_life", [None, pytest.param(200.0, marks=pytest.mark.slow)])
def test_the_cut_does_not_change_the_parts(algorithm, half_life, small_blocks):
    X = blurred(1, 460)
    whole = mixture(algorithm, parts=3, half_life=half_life).partial_fit(X)
    scores = mixture(algorithm, parts=3, half_life=half_life).update(X)
    for size in (7, 310):
        model, found = mixture(algorithm, parts=3, half_life=half_life), []
        for at in range(0, len(X), size):
            found.append(model.update(X[at : at + size]))
        np.testing.assert_allclose(np.concatenate(found), scores, rtol=1e-7, atol=1e-9)
        assert_close(model, whole, 1e-8)


@pytest.mark.parametrize("algorithm", ["auto", "moment-matching", "online-em"])
def test_threads_do_not_change_the_parts(algorithm):
    X = blurred(2, 300 + 4 * 1024)
    one, two, many = (mixture(algorithm, parts=4, n_threads=n).partial_fit(X) for n in (1, 2, 7))
    assert_same(one, two)
    assert_same(one, many)
    np.testing.assert_array_equal(one.score_samples(X), many.score_samples(X))


@pytest.mark.parametrize("algorithm", ["online-vb", "auto", "moment-matching"])
def test_every_row_is_scored_by_the_part_that_learns_it(algorithm, small_blocks):
    X = blurred(3, 620)
    model = mixture(algorithm, parts=3)
    scores = np.concatenate([model.update(X[:333]), model.update(X[333:])])
    base = mixture(algorithm).partial_fit(X[:300])
    owners = np.arange(320) // 16 % 3
    for part in range(3):
        wanted = base.branch().update(X[300:][owners == part])
        np.testing.assert_allclose(scores[300:][owners == part], wanted, rtol=1e-9)
    zeros = np.where(np.arange(20) % 2 == 0, 0.0, 1.0)
    again = copy.deepcopy(model)
    found = model.update(X[:20], sample_weight=zeros)
    np.testing.assert_allclose(found[1::2], again.update(X[1:20:2]), rtol=1e-9)
    assert np.isfinite(found).all()
    assert model.n_samples_seen_ == 630


@pytest.mark.parametrize("algorithm", ["online-vb", "auto", "moment-matching"])
def test_one_row_at_a_time_works_in_parts(algorithm, small_blocks):
    X = blurred(4, 420)
    model = mixture(algorithm, parts=3, reservoir=0)
    for row in X:
        model.learn_one(row)
    whole = mixture(algorithm, parts=3, reservoir=0).partial_fit(X)
    assert_close(model, whole)
    np.testing.assert_allclose(model.score_one(X[5]), whole.score_samples(X[5:6])[0], rtol=1e-8)
    assert model.predict_one(X[5]) == whole.predict(X[5:6])[0]
    before = content(model)
    model.score_one(X[6])
    assert content(model) == before


def test_parts_are_pickled_branched_and_merged(small_blocks):
    X = blurred(5, 2000)
    model = mixture("online-vb", parts=3).partial_fit(X[:777])
    loaded = pickle.loads(pickle.dumps(model))
    assert_same(loaded.partial_fit(X[777:900]), copy.deepcopy(model).partial_fit(X[777:900]))
    branches = [model.branch().partial_fit(X[777 + part :: 2]) for part in range(2)]
    np.testing.assert_allclose(model.branch().means_, model.means_, rtol=1e-9)
    merged = hw.merge(branches)
    assert merged.n_samples_seen_ == len(X)
    assert merged.merge_report_.matches == ()
    assert merged.weight_concentration_.sum() == pytest.approx(3.0 + len(X))


def test_streams_in_parts_that_share_a_start_merge_without_matching(small_blocks):
    X, _ = rows_of(5, 2000)
    start = mixture("online-vb", parts=3).warm_start_from(X[:300])
    models = [copy.deepcopy(start).partial_fit(X[300 + part :: 3]) for part in range(3)]
    merged = hw.merge(models)
    assert merged.merge_report_.matches == ()
    assert merged.n_samples_seen_ == len(X)
    assert merged.weight_concentration_.sum() == pytest.approx(3.0 + len(X))


def test_a_merged_model_that_goes_on_in_parts_keeps_its_base(small_blocks):
    X, _ = rows_of(5, 2000)
    start = mixture("online-vb", parts=3).warm_start_from(X[:300])
    one, two, three = (start.branch().partial_fit(X[300 + part : 1500 : 3]) for part in range(3))
    merged = hw.merge([hw.merge([one, two]).partial_fit(X[1500:]), three])
    assert merged.n_samples_seen_ == len(X)
    assert merged.weight_concentration_.sum() == pytest.approx(3.0 + len(X))


def test_strangers_in_parts_are_matched(small_blocks):
    X, _ = rows_of(5, 2000)
    one = mixture("online-vb", parts=3).partial_fit(X[:1100])
    two = mixture("online-vb", parts=2, random_state=1).partial_fit(X[1100:])
    merged = hw.merge([two, one])
    assert len(merged.merge_report_.matches) == 1
    assert merged.n_samples_seen_ == len(X)
    np.testing.assert_allclose(merged.means_[merged.predict(CENTRES)], CENTRES, atol=0.3)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 5), (5, 3), (3, 1)])
@pytest.mark.parametrize("algorithm", ["online-vb", "auto", "online-em"])
def test_parts_can_change_in_the_middle_of_a_stream(algorithm, before, after, small_blocks):
    X, _ = rows_of(6, 1500)
    model = mixture(algorithm, parts=before).partial_fit(X[:700])
    branch = copy.deepcopy(model).branch()
    model.set_params(parts=after).partial_fit(X[700:1400])
    model.update(X[1400:])
    assert model.n_samples_seen_ == len(X)
    order = model.predict(CENTRES)
    np.testing.assert_allclose(model.means_[order], CENTRES, atol=0.3)
    if algorithm != "online-em":
        assert model.weight_concentration_.sum() == pytest.approx(3.0 + len(X))
        assert_close(model, branch.set_params(parts=after).partial_fit(X[700:]), 1e-5)


def test_parts_that_change_keep_the_base(small_blocks):
    X, _ = rows_of(6, 1500)
    start = mixture("online-vb").warm_start_from(X[:300])
    one, two = start.branch().partial_fit(X[300:700]), start.branch().partial_fit(X[700:1100])
    one.set_params(parts=3).partial_fit(X[1100:])
    assert hw.merge([one, two]).n_samples_seen_ == len(X)


@pytest.mark.parametrize("algorithm", ["auto", "em", "vb", "online-vb", "online-em"])
@pytest.mark.parametrize("kind", ["full", "spherical"])
def test_fit_with_parts(algorithm, kind, small_blocks):
    X, labels = rows_of(7, 2000)
    model = mixture(algorithm, kind, parts=3).fit(X)
    assert model.n_samples_seen_ == len(X)
    order = model.predict(CENTRES)
    for cluster, k in enumerate(order):
        np.testing.assert_allclose(model.means_[k], X[labels == cluster].mean(axis=0), atol=0.2)
    if algorithm in ("em", "vb"):
        assert_same(model, mixture(algorithm, kind).fit(X))
    if algorithm == "auto":  # passes of EM end in the same place
        plain = mixture(algorithm, kind).fit(X)
        np.testing.assert_allclose(model.means_[order], plain.means_[plain.predict(CENTRES)], rtol=1e-4, atol=1e-3)
    if algorithm not in ("em", "vb"):
        model.partial_fit(X[:333])
        assert model.n_samples_seen_ == 2333
    warm = mixture(algorithm, kind, parts=3, warm_start=True).fit(X)
    warm.fit(X)
    np.testing.assert_allclose(warm.means_[warm.predict(CENTRES)], CENTRES, atol=0.3)


def test_a_start_with_parts(small_blocks):
    X, _ = rows_of(8, 1200)
    model = mixture("online-vb", parts=3).warm_start_from(X[:200], weight=0.1)
    assert model.n_samples_seen_ == 0
    model.partial_fit(X)
    assert model.n_samples_seen_ == len(X)
    by_hand = twin.dealt(mixture("online-vb").warm_start_from(X[:200], weight=0.1), X, 3, 16)
    assert_close(model, hw.merge(by_hand), 1e-9)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "three", None])
def test_bad_parts_are_refused(bad):
    with pytest.raises(ValueError, match="parts"):
        mixture(parts=bad).partial_fit(rows_of(0, 100)[0])


def test_a_half_life_is_as_long_in_parts():
    """A half-life counts the rows of the stream, not those of a part."""
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(6300, 2)), rng.normal(size=(4000, 2)) + 50.0
    alone, apart = (
        mixture("online-vb", k=1, half_life=500.0, parts=parts).partial_fit(old).partial_fit(new) for parts in (1, 3)
    )
    np.testing.assert_allclose(apart.means_, alone.means_, atol=1.0)
    assert apart.mean_precision_[0] == pytest.approx(alone.mean_precision_[0], rel=0.1)


def test_beliefs_that_shrank_in_parts_are_read_as_a_belief(monkeypatch):
    monkeypatch.setattr(shards, "TURN_ROWS", 10)
    rng = np.random.default_rng(2)
    sample = rng.normal(size=(40, 2))
    rows = np.concatenate([3.0 * rng.normal(size=(10, 2)) + 2.0 * rng.normal(size=2) for _ in range(40)])
    model = mixture("moment-matching", parts=40).warm_start_from(sample, weight=0.3).partial_fit(rows)
    assert merge.combine(model._learner.plan.of_shard, model._state.unfolded.streams)[1] != ()
    assert is_belief(model)


# The laws hold in parts, too

LAWFUL = [
    mixture(algorithm, kind, parts=3, warm_up=120, half_life=half_life)
    for kind, algorithm, half_life in (
        ("full", hw.Auto(batch_size=16), None), ("tied", "online-vb", None), ("diag", "boem", None),
        ("diag", hw.OnlineEM(batch_size=8), 80.0),
        # The rest are slow.
        ("full", "moment-matching", None), ("full", "soem", None),
        ("full", "auto", None), ("spherical", "quasi-bayes", None), ("full", "online-em", None),
        ("diag", "moment-matching", 80.0), ("full", "em", None),
    )
]  # fmt: skip
LAW_CASES = [
    pytest.param(
        model,
        law,
        id=f"{model.covariance_type}-{model.algorithm}-{model.half_life}-{law.__name__}",
        marks=() if number < 2 else pytest.mark.slow,
    )
    for number, model in enumerate(LAWFUL)
    for law in applicable_laws(model)
]


@pytest.mark.parametrize(("model", "law"), LAW_CASES)
def test_laws_hold_in_parts(model, law, small_blocks):
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(400, 2)) * [1.0, 3.0] + 4.0 * rng.integers(3, size=(400, 1)) + 100.0
    law(clone(model), rows)
