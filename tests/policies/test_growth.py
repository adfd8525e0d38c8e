"""n_components="auto" of mixtures: growth by accepted splits, for any chunks; reading, saving and merging."""

import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import headwater as hw
from headwater.cli import main
from headwater.core.batch import Batch
from headwater.core.records import arrays_of
from headwater.policies import growth_states
from headwater.policies.growth import Growth, SearchRows, Stage, Step
from headwater.policies.search_context import Budget


def groups(n, k, seed=0, apart=8.0):
    """Return rows of k groups on a line, in two columns."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + apart * rng.integers(k, size=(n, 1))


def auto(**options):
    return hw.GaussianMixture("auto", **{"covariance_type": "diag", "warm_up": 120, "random_state": 0, **options})


def more_and_more(seed=0):
    """Return rows of two groups, and then of three: growth must continue after the warm-up."""
    return np.concatenate([groups(120, 2, seed), groups(1500, 3, seed + 1)])


def same(one, other, tolerance=0.0):
    assert (one.n_components_, str(one.growth_)) == (other.n_components_, str(other.growth_))
    for left, right in zip(arrays_of(one._state), arrays_of(other._state), strict=True):
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


# Numbers that are found


@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_stream_finds_the_number_of_groups(k):
    model = auto()
    for chunk in np.array_split(groups(3000, k), 7):
        model.partial_fit(chunk)
    assert model.n_components_ == k == len(model.weights_)
    assert model.n_components == "auto"
    assert model.race_ is None
    made = [step for step in model.growth_.steps if step.accepted]
    assert [step.after for step in made] == list(range(2, k + 1))
    if k > 1:
        assert "split 0" in str(model.growth_)
        assert f"grew by {k - 1} split" in str(model.describe())


@pytest.mark.parametrize("kind", ["full", "tied", "spherical"])
def test_every_covariance_grows(kind):
    assert auto(covariance_type=kind).partial_fit(groups(1500, 3)).n_components_ == 3


@pytest.mark.parametrize(("rows", "options"), [(150, {}), (3000, {"warm_up": "auto"}), (200, {"algorithm": "em"})])
def test_a_fit_grows_and_then_fits(rows, options):
    X = groups(rows, 3)
    X = X[np.argsort(X[:, 0])]  # the order of the rows does not matter
    model = auto(**options).fit(X)
    assert model.n_components_ == 3
    assert model.converged_
    assert model.growth_.steps[0].judges == (0 if rows < 1000 else model.growth_.steps[0].judges) <= rows
    chosen = clone(model).set_params(n_components=3).fit(X)
    np.testing.assert_array_equal(model.means_, chosen.means_)


def test_few_rows_are_enough():
    assert hw.GaussianMixture("auto", random_state=0).fit(load_iris().data).n_components_ in (2, 3)
    assert auto().partial_fit(groups(3, 2)).n_components_ == 1


def counts(n):
    rng = np.random.default_rng(0)
    return rng.multinomial(30, np.kron(np.eye(3), np.full(2, 0.5))[rng.integers(3, size=n)])


def walks(n):
    change = np.random.default_rng(0).random((n, 12)) < np.where(np.arange(n) % 2, 0.1, 0.9)[:, None]
    return np.cumsum(change, axis=1) % 3


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
    ],
)
def test_every_mixture_grows(kind, given, wanted):
    model = kind("auto", warm_up=200, random_state=0).partial_fit(*given)
    assert model.n_components_ == wanted
    assert model.growth_.steps[0].before == 1
    repr(model)


@pytest.mark.parametrize("options", [{}, {"half_life": 400.0}, {"parts": 2}])
def test_a_stream_grows_after_its_warm_up(options):
    model = auto(**options).partial_fit(more_and_more())
    assert model.n_components_ == 3
    assert model.growth_.steps[0].rows == 120
    assert max(step.rows for step in model.growth_.steps if step.accepted) > 120
    weights = model.weight_concentration_ - model.weight_concentration_.min()
    assert np.isfinite(weights).all()
    assert abs(model.score(groups(500, 3, seed=9)) - auto().fit(groups(2000, 3, seed=8)).score(groups(500, 3, seed=9))) < 0.3


def test_without_kept_rows_only_the_warm_up_grows():
    model = auto(reservoir=0).partial_fit(more_and_more())
    assert model.n_components_ == 2
    assert {step.rows for step in model.growth_.steps} == {120}


def test_components_that_stay_keep_their_place():
    model = auto().partial_fit(groups(240, 2))
    before = model.means_.copy()
    after = model.partial_fit(np.concatenate([groups(1200, 2, 1), np.array([0.0, 40.0]) + groups(600, 1, 2)])).means_
    assert len(after) == 3
    np.testing.assert_allclose(after[:2], before, atol=0.5)


# The criterion


def test_a_split_has_to_be_sure_and_worth_something():
    few = SearchRows(Batch(groups(100, 1)), None, "mode", "kmeans")
    judged = SearchRows(Batch(groups(100, 1)), Batch(groups(100, 1)), "mode", "kmeans")
    verdict = growth_states.Verdict
    assert growth_states.accepts(judged, verdict(0.01, 2.6), 5)
    assert not growth_states.accepts(judged, verdict(0.01, 2.4), 5)
    assert not growth_states.accepts(judged, verdict(1e-4, 9.0), 5)
    price = 2.5 * np.log(100.0) / 100.0
    assert growth_states.accepts(few, verdict(1.01 * price, 0.0), 5)
    assert not growth_states.accepts(few, verdict(0.99 * price, 0.0), 5)


def test_components_of_no_use_fall():
    X = groups(8000, 2, seed=1)
    model = hw.GaussianMixture(4, covariance_type="diag", random_state=0).fit(X)._model
    rng, width = np.random.default_rng(0), X.shape[1]
    propose, judge = Batch(X[::2].copy()), Batch(X[1::2].copy())
    geometry = model.family.geometry(propose)
    ground = SearchRows(propose, judge, "mode", "kmeans", geometry)
    shares = rng.dirichlet(np.ones(2), size=len(propose))
    shares = np.concatenate([shares * (propose.X[:, :1] > 4.0), shares * (propose.X[:, :1] <= 4.0)], axis=1)
    statistics = model.collect(geometry, propose, shares).mean
    reached = Stage(model, model.prior(geometry, propose, shares), Stage.first(model, ground).reached)
    stage, steps = growth_states.grow_components(ground, reached.climb(ground, 4, statistics), rng, Budget(np.inf))
    assert width == 2
    assert stage.k == 2
    assert [step.after for step in steps if step.accepted] == [3, 2]
    assert {step.move.split()[0] for step in steps if step.accepted} <= {"merge", "give"}


def test_a_growth_remembers_what_was_made_and_the_last_that_was_not():
    made, refused = Step(100, 1, 2, 0.5, 9.0, 50, "split 0", True), Step(100, 2, 3, 0.0, 0.1, 50, "split 1")
    growth = Growth().after((made, refused)).after((refused,))
    assert growth.steps == (made, refused)
    assert growth.after(()) == growth
    assert growth.after((), 70.0).allowance(100, 60) == growth.allowance(100, 60) - 70.0
    assert "by 1 split; one more would gain 0 nats a row (0.1 standard errors), too little to be sure" in growth.sentence
    assert len(Growth().after((made,) * 300).steps) < 110


# Laws


def test_the_cut_changes_nothing():
    X, whole = more_and_more(), auto().partial_fit(more_and_more())
    assert whole._state.base.records["growth"].steps[-1].rows > 120
    for size in (1, 37):
        cut = auto()
        for start in range(0, len(X), size):
            cut.partial_fit(X[start : start + size])
        same(cut, whole, 1e-7)


def test_reading_changes_nothing():
    X, read = more_and_more(), auto()
    for chunk in np.array_split(X, 9):
        read.partial_fit(chunk)
        read.n_components_, read.means_, read.score_one(chunk[0]), read.growth_, repr(read)
    same(read, auto().partial_fit(X), 1e-7)


def test_a_reading_may_have_more_components_than_the_stream():
    X = more_and_more()[:230]
    model = auto().partial_fit(X)
    assert (model._runtime.learner.model.n_components, model.n_components_) == (2, 3)
    assert model.predict_proba(X[:4]).shape == (4, 3)
    assert np.isfinite(model.score_one(X[0]))
    assert 0 <= model.predict_one(X[0]) < 2


@pytest.mark.parametrize("rows", [60, 300, 1200])
def test_stored_and_resumed_is_never_stopped(rows, tmp_path):
    X = more_and_more()
    model = auto().partial_fit(X[:rows])
    model.save(tmp_path / "model.hw")
    copies = hw.load(tmp_path / "model.hw"), pickle.loads(pickle.dumps(model))
    model.partial_fit(X[rows:])
    for copied in copies:
        same(copied.partial_fit(X[rows:]), model)


def test_a_file_without_rows_holds_what_was_read(tmp_path):
    model = auto().partial_fit(more_and_more()[:230])
    model.save(tmp_path / "model.hw", raw_rows=False)
    loaded = hw.load(tmp_path / "model.hw")
    assert loaded.n_components_ == model.n_components_ == 3
    np.testing.assert_allclose(loaded.means_, model.means_)
    assert loaded.partial_fit(groups(50, 3)).n_components_ == 3


def test_a_fit_may_go_on_from_a_stream():
    model = auto(warm_start=True).partial_fit(groups(480, 3))
    assert model.fit(groups(300, 3)).n_components_ == 3
    assert model.growth_.steps[0].rows == 120


def test_what_breaks_off_leaves_rows_as_they_waited(monkeypatch):
    model = auto().partial_fit(groups(50, 2))

    def broken(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("headwater.policies.growth_states.grow_components", broken)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(groups(500, 2))
    assert model.n_samples_seen_ == 50


def test_updates_score_every_row():
    X = groups(700, 2)
    model = auto()
    scores = np.concatenate([model.update(chunk) for chunk in (X[:100], X[100:460], X[460:])])
    assert np.isnan(scores[:8]).all()
    assert np.isfinite(scores[8:]).all()
    same(model, auto().partial_fit(X), 1e-7)
    assert abs(scores[-100:].mean() - model.score(X[-100:])) < 0.1


# Merging


def test_branches_grow_apart_and_merge():
    model = auto().partial_fit(groups(240, 2))
    one, other = model.branch(), model.branch()
    one.partial_fit(groups(1000, 3, seed=1))
    other.partial_fit(groups(100, 2, seed=2))
    assert (one._runtime.learner.model.n_components, other._runtime.learner.model.n_components) == (3, 2)
    merged = hw.merge([one, other])
    assert (merged.n_samples_seen_, merged.n_components_) == (1340, 3)
    shares = np.sort(merged.weights_ * 1340)
    np.testing.assert_allclose(shares, [333, 503, 503], atol=60)
    assert hw.merge([other, one]).score(groups(50, 3)) == pytest.approx(merged.score(groups(50, 3)), abs=1e-6)
    assert merged.partial_fit(groups(2000, 3, seed=3)).n_components_ == 3


def test_rows_that_wait_are_merged():
    X = groups(240, 2)
    models = [auto(random_state=seed).partial_fit(X[seed::3]) for seed in range(3)]
    merged = hw.merge(models)
    assert (merged.n_samples_seen_, merged.n_components_) == (240, 2)


def test_others_are_matched_or_brought_to_one_number():
    one, same_number, other = (auto(random_state=k).partial_fit(groups(700, n)) for k, n in enumerate((2, 2, 4)))
    assert hw.merge([one, same_number]).n_components_ == 2
    merged = hw.merge([one, other])
    assert (merged.n_samples_seen_, merged.n_components_) == (1400, 4)
    assert "another number of components" in str(merged.merge_report_)
    np.testing.assert_array_equal(hw.merge([other, one]).means_, merged.means_)
    held_out = np.vstack([groups(150, 2, seed=9), groups(150, 4, seed=9)])
    assert merged.score(held_out) > max(one.score(held_out), other.score(held_out))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_models_that_chose_other_numbers_merge_in_any_order(seed):
    """Three and more models, in lists and in trees: no row is lost, and the order of a list does not matter."""
    numbers = np.random.default_rng(seed).permutation([1, 2, 3, 4])
    models = [auto(random_state=k).partial_fit(groups(200 + 20 * k, n, seed=seed + k)) for k, n in enumerate(numbers)]
    assert len({model.n_components_ for model in models}) > 2
    merged, rows = hw.merge(models), sum(model.n_samples_seen_ for model in models)
    for order in itertools.permutations(range(4)):
        again = hw.merge([models[at] for at in order])
        assert again.n_samples_seen_ == rows
        np.testing.assert_array_equal(again._state.statistics.first, merged._state.statistics.first)
    tree = hw.merge([hw.merge(models[:2]), hw.merge(models[2:])])
    chain = hw.merge([hw.merge([hw.merge(models[:2]), models[2]]), models[3]])
    held_out = np.vstack([groups(100, n, seed=50 + seed) for n in numbers])
    for other in (tree, chain):
        assert other.n_samples_seen_ == rows
        assert other.score(held_out) > merged.score(held_out) - 0.1
    assert merged.partial_fit(groups(500, 4, seed=60)).n_samples_seen_ == rows + 500


def test_models_without_kept_rows_must_have_one_number():
    one, other = (auto(random_state=k, reservoir=0).partial_fit(groups(700, n)) for k, n in enumerate((2, 4)))
    with pytest.raises(ValueError, match="one n_components, got 2 and 4, which 'auto' chose"):
        hw.merge([one, other])


def test_a_branch_ends_the_waiting():
    branched = auto().partial_fit(groups(110, 2)).branch()
    assert branched.n_components_ == 2
    assert branched.partial_fit(groups(50, 2, seed=1)).n_samples_seen_ == 160


@pytest.mark.parametrize(
    "algorithm", ["boem", "online-vb", "quasi-bayes", hw.BayesianOnlineEM(estimate="mode"), hw.OnlineVB(batch_size=200)]
)
def test_streams_of_counts_that_add_grow(algorithm, tmp_path):
    """Clusters that come late are found, in passes and streams, and a file goes on as if nothing had happened."""
    early, late = groups(1500, 2), groups(6000, 4, seed=1)
    model = auto(algorithm=algorithm).partial_fit(early)
    assert model.n_components_ == 2 and model.algorithm is algorithm
    model.save(tmp_path / "model.hw")
    whole, resumed = (one.partial_fit(late) for one in (model, hw.load(tmp_path / "model.hw")))
    assert whole.n_components_ == 4 and "split" in str(whole.growth_)
    np.testing.assert_array_equal(whole.means_, resumed.means_)
    assert auto(algorithm=algorithm).fit(late).n_components_ == 4


def test_a_reader_goes_on_with_growth_that_the_stream_could_not_pay_for():
    """Of clusters that come late a search on the way finds as many as its budget allows; the others are found on reading."""
    rng = np.random.default_rng(1)
    centres = rng.normal(scale=6.0, size=(6, 4))
    labels = np.concatenate([rng.integers(3, size=8000), rng.integers(6, size=16_000)])
    rows = centres[labels] + rng.normal(size=(len(labels), 4))
    model = hw.GaussianMixture("auto", random_state=0)
    for at in range(0, len(rows), 1000):
        model.partial_fit(rows[at : at + 1000])
    assert model._state.model.n_components < 6 == model.n_components_


# Errors, and what they leave unchanged


@pytest.mark.parametrize("algorithm", ["online-em", "soem", hw.OnlineVB(decay=0.7), "moment-matching"])
@pytest.mark.parametrize("method", ["fit", "partial_fit", "update", "warm_start_from"])
def test_streams_that_would_not_grow_are_refused(algorithm, method):
    model = auto(algorithm=algorithm)
    word = algorithm if isinstance(algorithm, str) else algorithm.word
    with pytest.raises(ValueError, match=f"n_components='auto' grows in a stream by 'auto', 'boem'.*{word!r}") as told:
        getattr(model, method)(groups(240, 2))
    assert "\n" not in str(told.value) and not model._has_state()
    for kind in (hw.MultinomialMixture, hw.MarkovMixture) if algorithm != "moment-matching" else ():
        with pytest.raises(ValueError, match="grows in a stream"):
            kind("auto", algorithm=algorithm).partial_fit([[0, 1, 1], [1, 0, 0]])


def test_a_command_that_would_not_grow_is_refused(tmp_path, capsys):
    np.savetxt(tmp_path / "rows.csv", groups(60, 2), delimiter=",", header="a,b", comments="")
    asked = ["fit", "gaussian", str(tmp_path / "rows.csv"), "-k", "auto", "--set", "algorithm=online-em"]
    assert main([*asked, "-o", str(tmp_path / "model.hw")]) == 2
    told = capsys.readouterr().err.strip()
    assert "grows in a stream" in told and "\n" not in told


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
    plain = hw.GaussianMixture(2, random_state=0).fit(groups(50, 2))
    assert (plain.n_components_, plain.growth_, plain.race_) == (2, None, None)


def test_a_pruned_model_has_a_number():
    pruned = auto().partial_fit(groups(700, 2)).prune(0.0)
    assert pruned.n_components == pruned.n_components_ == 2
    assert pruned.growth_ is None
