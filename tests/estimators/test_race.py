"""n_components="auto" for models without splits: a race finds the number; races can be cut, saved and merged."""

import pickle
from copy import copy

import chain_models
import numpy as np
import pytest
from sklearn.base import clone

import headwater as hw
from headwater.core.records import arrays_of
from headwater.estimators.race import Race, Rival, Tally


def topics(n, seed=0):
    """Return documents of three topics; most have one topic."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 0.1), size=n)
    return np.array([rng.multinomial(40, share @ np.kron(np.eye(3), np.full(4, 0.25))) for share in shares])


def auto(**options):
    return hw.LatentDirichletAllocation("auto", **{"warm_up": 120, "random_state": 0, **options})


def chain():
    return hw.GaussianHMM("auto", warm_up=120, lag=10, random_state=0)


def chained(rows, first=0):
    return chain_models.a_stream(900, seed=0)[0][first : first + rows, :1]


def undecided(rows=420):
    """Return a model in the middle of its race."""
    model = chain().partial_fit(chained(rows), key="a")
    assert len(model._runtime.rivals) > 1
    return model


def told(model):
    """Return the whole record of a race, in a form that can be compared."""
    race, states = model._runtime.race, tuple(rival.state for rival in model._runtime.rivals)
    return [array.copy() for array in arrays_of((model._state, race.tally, race.judged, race.until, states))]


def same(one, other, tolerance=0.0):
    assert one._runtime.race.running == other._runtime.race.running
    assert one._runtime.race.leader == other._runtime.race.leader
    assert [rival.dropped_at for rival in one._runtime.race.rivals] == [
        rival.dropped_at for rival in other._runtime.race.rivals
    ]
    for left, right in zip(told(one), told(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


# Numbers that are found


def test_a_fit_chooses_and_then_fits():
    model = auto(max_iter=3).fit(topics(150))
    assert model.race_.leader == model.n_components_ == 3
    chosen = clone(model).set_params(n_components=3).fit(topics(150))
    np.testing.assert_array_equal(model.topics_, chosen.topics_)


def test_a_sample_to_start_from_is_enough():
    model = auto().warm_start_from(topics(200))
    assert model.n_components_ == 3
    assert model.partial_fit(topics(100, seed=1)).n_samples_seen_ == 300


def spectra(n):
    rng = np.random.default_rng(0)
    return rng.exponential(rng.gamma(0.5, size=(n, 3)) @ (np.kron(np.eye(3), np.ones(4)) * 20.0 + 0.01))


def groups(n, k, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 8.0 * rng.integers(k, size=(n, 1))


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        (hw.LatentDirichletAllocation, (topics(700),), 3),
        (hw.ItakuraSaitoNMF, (spectra(700),), 3),
        (hw.GaussianHMM, (groups(700, 2),), 2),
    ],
)
def test_models_that_cannot_be_split_race(kind, given, wanted):
    model = kind("auto", warm_up=200, random_state=0).partial_fit(*given)
    assert model.n_components_ == wanted
    assert model.n_samples_seen_ == 700
    assert model.growth_ is None
    assert "leads" in str(model.race_)
    repr(model)


def test_symbols_race():
    states = np.repeat(np.arange(60) % 2, 20)
    symbols = np.where(np.random.default_rng(0).random(1200) < 0.9, states, 1 - states)
    assert hw.CategoricalHMM("auto", n_features=2, warm_up=400, random_state=0).partial_fit(symbols[:, None]).n_components_ == 2


# Laws in the middle of a race


def test_the_cut_changes_nothing():
    X, whole = chained(420), undecided()
    cut = chain()
    for start in range(0, len(X), 37):
        cut.partial_fit(X[start : start + 37], key="a")
    same(cut, whole, 1e-7)


def test_stored_and_resumed_is_never_stopped():
    model = undecided()
    loaded = pickle.loads(pickle.dumps(model))
    later = chained(100, 420)
    same(loaded.partial_fit(later, key="a"), model.partial_fit(later, key="a"))


@pytest.mark.parametrize("begun", [False, True])
def test_a_file_holds_the_race(begun, tmp_path):
    model = undecided() if begun else chain().partial_fit(chained(100), key="a")
    model.save(tmp_path / "model.hw")
    loaded, later = hw.load(tmp_path / "model.hw"), chained(320, model.n_samples_seen_)
    same(loaded.partial_fit(later, key="a"), model.partial_fit(later, key="a"))


def test_a_copy_learns_on_its_own():
    model = undecided()
    before = told(model)
    copy(model).partial_fit(chained(100, 420), key="a")
    model.n_components_, model.predict(chained(5)), repr(model)
    for left, right in zip(told(model), before, strict=True):
        np.testing.assert_array_equal(left, right)


def test_updates_score_as_the_leader_does():
    X = topics(500)
    model = auto()
    scores = np.concatenate([model.update(chunk) for chunk in (X[:100], X[100:420], X[420:])])
    assert np.isnan(scores[:8]).all()
    assert np.isfinite(scores[8:]).all()
    same(model, auto().partial_fit(X), 1e-9)


def test_branches_go_on_with_the_race_and_merge():
    model = undecided()
    model.close("a")
    one, other = (model.branch().partial_fit(chained(40, first)) for first in (420, 460))
    assert one._runtime.race.running == model._runtime.race.running
    merged = hw.merge([one, other])
    assert merged.n_samples_seen_ == 500
    assert merged._runtime.race.running == model._runtime.race.running


def test_rows_that_wait_are_merged_into_a_race():
    X = topics(600)
    models = [auto(random_state=seed).partial_fit(X[seed::3]) for seed in range(3)]
    assert all(model._runtime.waits_for_race for model in models)
    merged = hw.merge(models)
    assert (merged.n_samples_seen_, merged.n_components_) == (600, 3)


# Sequences, and vocabularies that grow


def test_sequences_go_on_through_a_race():
    rows, model = chain_models.a_stream(900, seed=0)[0][:, :1], hw.GaussianHMM("auto", warm_up=120, lag=10, random_state=0)
    model.partial_fit(rows[:300], key="a").partial_fit(rows[300:420], key="b")
    assert len(model._runtime.rivals) > 1
    model.close("a")
    assert model.open_sequences_ == ["b"]
    model.partial_fit(rows[420:], key="b")
    assert model.n_samples_seen_ == len(rows)
    assert model.filter(rows[:4], key="b").shape == (4, model.n_components_)
    model.close("b")


def test_a_vocabulary_grows_in_a_race():
    model = auto(vocabulary="open")
    model.partial_fit(topics(400)[:, :9])
    assert model._runtime.race.rivals
    model.partial_fit(topics(100))
    assert model.topics_.shape == (model.n_components_, 12)


# How rivals compare


def test_a_tally_is_means_and_standard_errors():
    rng = np.random.default_rng(0)
    scores, weights = rng.normal([0.0, 0.3, 0.2], size=(320, 3)), rng.uniform(0.5, 2.0, size=320)
    tally = Tally.of(3)
    for part in np.array_split(np.arange(330), [1, 60, 61, 200])[:-1]:
        tally = tally.after(scores[part], weights[part])
    tally = tally.after(scores[200:], weights[200:])
    blocks = (scores * weights[:, None]).reshape(10, 32, 3).sum(axis=1)
    np.testing.assert_allclose(tally.means, blocks.sum(axis=0) / weights.sum())
    lead, error = tally.lead(1)
    gaps = blocks[:, [1]] - blocks
    np.testing.assert_allclose(lead, gaps.sum(axis=0) / weights.sum(), atol=1e-12)
    np.testing.assert_allclose(error, gaps.std(axis=0, ddof=1) * np.sqrt(10) / weights.sum(), atol=1e-9)


def test_the_smaller_rival_leads_in_doubt_and_those_behind_drop_out():
    noise = np.random.default_rng(0).normal(size=(640, 1))
    own = 0.2 * np.random.default_rng(1).normal(size=(640, 4))
    scores = noise + own + [-1.0, 0.0, 0.002, -0.5]
    race = (
        Race(tuple(map(Rival, (1, 2, 3, 4))), until=640, last=6400, tally=Tally.of(4)).after(scores, np.ones(640)).compared(760)
    )
    assert race.leader == 2
    assert set(race.running) <= {2, 3}
    assert [one.dropped_at for one in race.rivals][0::3] == [760, 760]
    assert race.rivals[0].behind == pytest.approx(1.0, abs=0.05)


def test_rows_that_are_missing_say_nothing_of_the_number():
    rows = chain_models.a_stream(300, seed=0)[0]
    rows[:200] = np.nan
    model = hw.GaussianHMM("auto", warm_up=120, lag=10, random_state=0)
    scores = model.update(rows)
    assert model.n_components_ == 1
    assert np.isnan(scores[:200]).all()
    assert np.isfinite(scores[256:]).all()  # the first power of two that has rows


def test_what_breaks_off_leaves_rows_as_they_waited(monkeypatch):
    model = auto().partial_fit(topics(50))

    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("headwater.estimators.race_stream._run", broken)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(topics(500))
    assert model.n_samples_seen_ == 50


@pytest.mark.parametrize("kind", [hw.CategoricalHMM, hw.GaussianHMM])
def test_a_stream_goes_on_when_the_race_is_over(kind):
    rows = np.random.default_rng(0).integers(3, size=(600, 1))
    model = kind("auto", warm_up=60, lag=5, random_state=0)
    for chunk in np.split(rows, 20):
        model.partial_fit(chunk)
    assert model.race_.over and model.n_samples_seen_ == 600
    assert model.get_params().get("n_features") is None  # learned attributes are no parameters
    model.partial_fit(rows).update(rows[:30])
    assert model.n_samples_seen_ == 1230
