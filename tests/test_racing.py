"""n_components="auto": a race finds the number of components, whatever the cut, and can be read, stored, copied and merged."""

import pickle
from copy import copy

import chain_models
import numpy as np
import pytest
from sklearn.base import clone

import headwater as hw
from headwater.estimators.race import Race, Rival, Tally
from headwater.state import arrays_of


def groups(n, k, seed=0, apart=8.0):
    """Rows of k groups on a line, in two columns."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + apart * rng.integers(k, size=(n, 1))


def auto(**options):
    return hw.GaussianMixture("auto", **{"covariance_type": "diag", "warm_up": 120, "random_state": 0, **options})


def undecided(rows=480):
    """A model in the middle of its race."""
    model = auto().partial_fit(groups(rows, 3, apart=4.0))
    assert len(model._rivals) > 1
    return model


def told(model):
    """All that a race knows, in a form that can be compared."""
    race, states = model._race, tuple(rival._state for rival in model._rivals)
    return [array.copy() for array in arrays_of((model._state, race.tally, race.judged, race.until, states))]


def same(one, other, tolerance=0.0):
    assert one._race.running == other._race.running
    assert one._race.leader == other._race.leader
    assert [rival.dropped_at for rival in one._race.rivals] == [rival.dropped_at for rival in other._race.rivals]
    for left, right in zip(told(one), told(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


# The number that is found


@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_stream_finds_the_number_of_groups(k):
    model = auto()
    for chunk in np.array_split(groups(3000, k), 7):
        model.partial_fit(chunk)
    assert model.n_components_ == k == len(model.weights_)
    assert model.race_.over
    assert model._rivals == ()
    assert model.n_components == "auto"
    assert model.n_samples_seen_ == 3000
    assert "leads" in str(model.race_)


@pytest.mark.parametrize(("rows", "options"), [(150, {}), (3000, {"warm_up": "auto"}), (200, {"algorithm": "em"})])
def test_a_fit_finds_the_number_of_groups(rows, options):
    X = groups(rows, 3)
    X = X[np.argsort(X[:, 0])]  # the order of the rows is not trusted
    model = auto(**options).fit(X)
    assert model.n_components_ == 3
    assert model.converged_
    assert model.race_.leader == 3
    chosen = clone(model).set_params(n_components=3).fit(X)
    np.testing.assert_array_equal(model.means_, chosen.means_)


def test_a_sample_to_start_from_is_enough():
    model = auto().warm_start_from(groups(200, 3))
    assert model.n_components_ == 3
    assert model.partial_fit(groups(100, 3, seed=1)).n_samples_seen_ == 300


def test_a_fit_may_go_on_from_a_race():
    model = undecided().set_params(warm_start=True)
    found = model.n_components_
    assert model.fit(groups(300, 3, apart=4.0)).n_components_ == found
    assert model.race_.over


def counts(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.multinomial(30, np.kron(np.eye(3), np.full(2, 0.5))[rng.integers(3, size=n)])


def walks(n):
    change = np.random.default_rng(0).random((n, 12)) < np.where(np.arange(n) % 2, 0.1, 0.9)[:, None]
    return np.cumsum(change, axis=1) % 3


def topics(n):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(3, 0.1), size=n)
    return np.array([rng.multinomial(40, share @ np.kron(np.eye(3), np.full(4, 0.25))) for share in shares])


def spectra(n):
    rng = np.random.default_rng(0)
    return rng.exponential(rng.gamma(0.5, size=(n, 3)) @ (np.kron(np.eye(3), np.ones(4)) * 20.0 + 0.01))


def lines(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    return X, np.where(rng.random(n) < 0.5, 5.0 * X[:, 0], -5.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        (hw.MultinomialMixture, (counts(700),), 3),
        (hw.MarkovMixture, (walks(700),), 2),
        (hw.RegressionMixture, lines(700), 2),
        (hw.LatentDirichletAllocation, (topics(700),), 3),
        (hw.ItakuraSaitoNMF, (spectra(700),), 3),
        (hw.GaussianHMM, (groups(700, 2),), 2),
    ],
)
def test_every_model_races(kind, given, wanted):
    model = kind("auto", warm_up=200, random_state=0).partial_fit(*given)
    assert model.n_components_ == wanted
    assert model.n_samples_seen_ == 700
    repr(model)


def test_symbols_race():
    states = np.repeat(np.arange(60) % 2, 20)
    symbols = np.where(np.random.default_rng(0).random(1200) < 0.9, states, 1 - states)
    assert hw.CategoricalHMM("auto", n_features=2, warm_up=400, random_state=0).partial_fit(symbols[:, None]).n_components_ == 2


# Laws in the middle of a race


def test_the_cut_changes_nothing():
    X, whole = groups(480, 3, apart=4.0), undecided()
    for size in (1, 37):
        cut = auto()
        for start in range(0, len(X), size):
            cut.partial_fit(X[start : start + size])
        same(cut, whole, 1e-9)


def test_one_row_at_a_time_is_a_chunk():
    X, model = groups(480, 3, apart=4.0), auto()
    for row in X:
        model.learn_one(row)
    same(model, undecided(), 1e-9)
    assert np.isfinite(model.score_one(X[0]))


def test_stored_and_resumed_is_never_stopped():
    model = undecided()
    loaded = pickle.loads(pickle.dumps(model))
    later = groups(200, 3, seed=1, apart=4.0)
    same(loaded.partial_fit(later), model.partial_fit(later))


@pytest.mark.parametrize("begun", [False, True])
def test_a_file_holds_the_race(begun, tmp_path):
    model = undecided() if begun else auto().partial_fit(groups(100, 3, apart=4.0))
    model.save(tmp_path / "model.hw")
    loaded, later = hw.load(tmp_path / "model.hw"), groups(400, 3, seed=1, apart=4.0)
    same(loaded.partial_fit(later), model.partial_fit(later))


def test_a_copy_learns_on_its_own():
    model = undecided()
    before = told(model)
    copy(model).partial_fit(groups(300, 3, seed=1))
    model.n_components_, model.predict(groups(5, 3)), repr(model)
    for left, right in zip(told(model), before, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_refused_chunk_leaves_the_race_as_it_was():
    for model in (auto().partial_fit(groups(50, 2)), undecided()):
        before = told(model)
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(np.full((3, 2), np.nan))
        for left, right in zip(told(model), before, strict=True):
            np.testing.assert_array_equal(left, right)


def test_updates_score_as_the_leader_does():
    X = groups(700, 2)
    model = auto()
    scores = np.concatenate([model.update(chunk) for chunk in (X[:100], X[100:460], X[460:])])
    assert np.isnan(scores[:8]).all()
    assert np.isfinite(scores[8:]).all()
    same(model, auto().partial_fit(X), 1e-9)
    assert abs(scores[-100:].mean() - model.score(X[-100:])) < 0.1


def test_rows_that_wait_need_not_be_scored():
    X, model = groups(700, 2), auto()
    scores = model._update_after_start(X=X)
    assert np.isnan(scores[:376]).all()
    assert np.isfinite(scores[376:]).all()
    same(model, auto().partial_fit(X), 1e-9)


def test_weights_are_judged_by():
    X = groups(700, 2)
    heavy = auto().partial_fit(X, sample_weight=np.full(700, 2.0))
    assert heavy.n_components_ == auto().partial_fit(X).n_components_ == 2


# Before the race


def test_rows_that_wait_can_be_read():
    model = auto().partial_fit(groups(110, 2))
    assert model.n_components_ == 2  # by folds of the first 64
    assert not model.race_.rivals
    assert model.predict_proba(groups(5, 2)).shape == (5, 2)
    assert auto().partial_fit(groups(3, 2)).n_components_ == 1


# Merging


def test_branches_go_on_with_the_race_and_merge():
    model = undecided()
    one, other = (model.branch().partial_fit(groups(40, 3, seed=seed, apart=4.0)) for seed in (1, 2))
    assert one._race.running == model._race.running
    merged = hw.merge([one, other])
    assert merged.n_samples_seen_ == 560
    assert merged._race.running == model._race.running
    assert hw.merge([other, one]).score(groups(50, 3)) == merged.score(groups(50, 3))
    later = merged.partial_fit(groups(4000, 3, seed=3, apart=4.0))
    assert later.n_components_ == 3
    assert later.race_.over


def test_rows_that_wait_are_merged_into_a_race():
    X = groups(900, 2)
    models = [auto(random_state=seed).partial_fit(X[seed::3]) for seed in range(3)]
    assert all(model._waits for model in models)
    merged = hw.merge(models)
    assert merged.n_samples_seen_ == 900
    assert merged.n_components_ == 2
    again = hw.merge([merged, auto(random_state=9).partial_fit(groups(50, 2, seed=4))])
    assert (again.n_samples_seen_, again.n_components_) == (950, 2)


def test_other_winners_are_refused():
    one, other = auto().partial_fit(groups(700, 2)), auto(random_state=1).partial_fit(groups(700, 4))
    with pytest.raises(ValueError, match="one n_components, got 2 and 4, which 'auto' chose"):
        hw.merge([one, other])


def test_a_branch_ends_the_waiting():
    branched = auto().partial_fit(groups(110, 2)).branch()
    assert branched.race_.over
    assert branched.n_components_ == 2
    assert branched.partial_fit(groups(50, 2, seed=1)).n_samples_seen_ == 160


# Sequences, and vocabularies that grow


def test_sequences_go_on_through_a_race():
    rows, model = chain_models.a_stream(900, seed=0)[0][:, :1], hw.GaussianHMM("auto", warm_up=120, lag=10, random_state=0)
    model.partial_fit(rows[:300], key="a").partial_fit(rows[300:420], key="b")
    assert len(model._rivals) > 1
    model.close("a")
    assert model.open_sequences_ == ["b"]
    model.partial_fit(rows[420:], key="b")
    assert model.n_samples_seen_ == len(rows)
    assert model.filter(rows[:4], key="b").shape == (4, model.n_components_)
    model.close("b")


def test_a_vocabulary_grows_in_a_race():
    model = hw.LatentDirichletAllocation("auto", vocabulary="open", warm_up=120, random_state=0)
    model.partial_fit(topics(400)[:, :9])
    assert model._race.rivals
    model.partial_fit(topics(100))
    assert model.topics_.shape == (model.n_components_, 12)


# What is refused, and what stays as it was


def test_what_needs_a_number_is_refused():
    X = groups(50, 2)
    with pytest.raises(ValueError, match="labels name components, so n_components must be a number"):
        auto().partial_fit(X, labels=np.zeros(50))
    with pytest.raises(ValueError, match="where means_init says something of each component"):
        auto(means_init=[[0.0, 0.0]]).partial_fit(X)
    with pytest.raises(ValueError, match="must be a number where parameters are set by hand"):
        hw.GaussianHMM("auto").startprob_ = [1.0]
    with pytest.raises(ValueError, match="n_components"):
        hw.GaussianMixture("many").fit(X)
    model = auto().partial_fit(X)
    with pytest.raises(ValueError, match="cannot change from 'auto' to 3"):
        model.set_params(n_components=3).partial_fit(X)


def test_parameters_are_kept():
    model = clone(auto().partial_fit(groups(50, 2)))
    assert model.get_params()["n_components"] == "auto"
    assert not hasattr(model, "_race")
    plain = hw.GaussianMixture(2, random_state=0).fit(groups(50, 2))
    assert (plain.n_components_, plain.race_) == (2, None)


def test_a_pruned_model_has_a_number():
    pruned = auto().partial_fit(groups(700, 2)).prune(0.0)
    assert pruned.n_components == pruned.n_components_ == 2
    assert pruned.race_ is None


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


def test_parts_race():
    model = auto(parts=2).partial_fit(groups(900, 2))
    assert model.n_components_ == 2
    assert model.n_samples_seen_ == 900


def test_rows_that_are_missing_say_nothing_of_the_number():
    rows = chain_models.a_stream(300, seed=0)[0]
    rows[:200] = np.nan
    model = hw.GaussianHMM("auto", warm_up=120, lag=10, random_state=0)
    scores = model.update(rows)
    assert model.n_components_ == 1
    assert np.isnan(scores[:200]).all()
    assert np.isfinite(scores[256:]).all()  # the first power of two that has rows


def test_what_breaks_off_leaves_rows_as_they_waited(monkeypatch):
    model = auto().partial_fit(groups(50, 2))

    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("headwater.estimators.racing._run", broken)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(groups(500, 2))
    assert model.n_samples_seen_ == 50
