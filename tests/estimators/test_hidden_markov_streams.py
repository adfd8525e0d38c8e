"""Streams of hidden Markov models: chunks, sequences by key, reading in mid-stream, closing, copies, merging."""

import copy
import pickle
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from chain_models import a_stream
from hidden_markov_streams import GAUSSIAN, KEYS, ROWS, SYMBOLS, a_model, models, rows_for
from naive import chains as naive_chains
from scipy.special import logsumexp
from sklearn.base import clone

import headwater as hw
from headwater.core.batch import join_batches
from headwater.core.loop import finalize
from headwater.core.records import arrays_of

ALGORITHMS = ("auto", "online-em", "soem", "boem", "online-vb", hw.OnlineEM(batch_size=300), hw.OnlineVB(batch_size=1))
LENGTHS = [1, 2, 97, 300, 1, 499, 500]
QUICK = ("online-em", hw.OnlineEM(batch_size=300))


def in_turn(quick, **others):
    """Return cases for each algorithm; most of them are slow."""
    names, values = (list(others), [others[name] for name in others])
    cases = [(algorithm, *rest) for algorithm in ALGORITHMS for rest in product(*values)]
    marked = [pytest.param(*case, marks=() if case[0] in quick else pytest.mark.slow) for case in cases]
    return pytest.mark.parametrize(",".join(["algorithm", *names]), marked, ids=lambda value: str(value).split("(average")[0])


every = in_turn(QUICK[1:])


def together(state):
    """Return the state with its waiting rows in one piece, whatever the chunks were."""
    waiting = getattr(state, "waiting", None)
    return replace(state, waiting=(join_batches(waiting),)) if waiting else state


def assert_same(one, other, exact=True):
    for left, right in zip(arrays_of(together(one)), arrays_of(together(other)), strict=True):
        if exact:
            np.testing.assert_array_equal(left, right)
        else:
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-11)


def bits(model):
    return pickle.dumps([list(arrays_of(model._state)), model.__dict__.get("_open")])


# The cut


def fed(model, X, mode, size):
    """Return a model that has learned the rows in chunks of about this size."""
    if mode == "lengths":
        ends = np.cumsum(LENGTHS)
        for begin, end, length in zip(ends - LENGTHS, ends, LENGTHS, strict=True):
            model.partial_fit(X[begin:end], lengths=[length])
    elif mode == "scalar keys":  # every run of one key by itself
        for run in np.split(np.arange(len(X)), np.flatnonzero(KEYS[1:] != KEYS[:-1]) + 1):
            model.partial_fit(X[run], key=str(KEYS[run[0]]))
    else:
        for at in range(0, len(X), size):
            rows = slice(at, at + size)
            model.partial_fit(X[rows], **({"key": KEYS[: len(X)][rows]} if mode == "keys" else {}))
    return model


@models
@pytest.mark.parametrize(
    ("algorithm", "mode"),
    [
        pytest.param(algorithm, mode, marks=() if mode == "plain" or algorithm == QUICK[1] else pytest.mark.slow)
        for algorithm in ALGORITHMS
        for mode in ("plain", "keys", "scalar keys", "lengths")
    ],
    ids=str,
)
def test_the_cut_changes_nothing(make, algorithm, mode):
    """Blocks agree bit for bit; step-by-step learning differs by rounding at the ends of chunks."""
    X = rows_for(make)
    whole = a_model(make, algorithm)
    options = {"lengths": LENGTHS} if mode == "lengths" else {"key": KEYS} if "keys" in mode else {}
    whole.partial_fit(X, **options)
    cut = fed(a_model(make, algorithm), X, mode, 61)
    assert_same(cut._state, whole._state, exact=not whole._learner.plan.sweeps)
    assert sorted(map(str, cut.open_sequences_)) == sorted(map(str, whole.open_sequences_))
    assert cut.n_samples_seen_ == whole.n_samples_seen_ == ROWS
    if not whole._learner.plan.sweeps:
        assert cut.score(X) == whole.score(X)


@models
@pytest.mark.parametrize("mode", ["plain", "keys"])
def test_the_cut_of_a_warm_up_changes_nothing(make, mode):
    X = rows_for(make)[:140]
    whole = a_model(make).partial_fit(X, **({"key": KEYS[:140]} if mode == "keys" else {}))
    cut = fed(a_model(make), X, mode, 9)
    assert_same(cut._state, whole._state)
    assert_same(cut._read().parameters, whole._read().parameters)
    one_row = X[:1]
    np.testing.assert_array_equal(cut.filter(one_row, key="two"), whole.filter(one_row, key="two"))


@models
@in_turn(("online-vb",), keyed=(False, True))
def test_updates_score_the_same_however_they_are_cut(make, algorithm, keyed):
    X = rows_for(make)
    whole, cut, plain = (a_model(make, algorithm) for _ in range(3))
    wanted = whole.update(X, **({"key": KEYS} if keyed else {}))
    plain.partial_fit(X, **({"key": KEYS} if keyed else {}))
    scores = np.concatenate(
        [cut.update(X[at : at + 83], **({"key": KEYS[at : at + 83]} if keyed else {})) for at in range(0, ROWS, 83)]
    )
    np.testing.assert_allclose(scores, wanted, rtol=1e-9, atol=1e-11)
    assert np.isnan(wanted[:8]).all()
    assert np.isfinite(wanted[8:]).all()
    missing = np.isnan(X[:, 0])
    np.testing.assert_allclose(wanted[missing][2:], 0.0, atol=1e-12)
    assert_same(cut._state, whole._state, exact=not whole._learner.plan.sweeps)
    assert_same(whole._state, plain._state)


@models
@every
def test_whether_rows_are_scored_or_read_on_the_way_changes_no_score(make, algorithm):
    X = rows_for(make)
    wanted, model = a_model(make, algorithm).update(X, key=KEYS), a_model(make, algorithm)
    for turn, at in enumerate(range(0, ROWS, 59)):
        rows = slice(at, at + 59)
        if turn % 2:
            np.testing.assert_allclose(model.update(X[rows], key=KEYS[rows]), wanted[rows], rtol=1e-9, atol=1e-11)
        else:
            model.partial_fit(X[rows], key=KEYS[rows])
        fresh = pickle.loads(pickle.dumps(model))
        for key in ("one", "new"):
            np.testing.assert_allclose(model.next_state_proba(key), fresh.next_state_proba(key), rtol=1e-10)


@models
@pytest.mark.parametrize("algorithm", ["auto", hw.OnlineEM(batch_size=300)], ids=str)
def test_updates_score_rows_given_those_before_under_the_parameters_of_the_last_fold(make, algorithm):
    """As long as nothing is folded, scores are those of a filter that continues from the warm-up."""
    X = rows_for(make)
    first = int(np.searchsorted(np.cumsum(~np.isnan(X[:, 0])), 150)) + 1  # rows of the warm-up, without those that are missing
    model = a_model(make, algorithm).partial_fit(X[:first])
    parameters = model._state.parameters
    scores = model.update(X[first:400])
    batch = model._sequences_of(X[:400], None)
    np.testing.assert_allclose(scores, model._model.log_likelihood(parameters, batch)[first:400], rtol=1e-10, atol=1e-12)


# Sequences by key


@models
@pytest.mark.parametrize("algorithm", ["online-em", hw.OnlineEM(batch_size=300)], ids=str)
def test_what_keys_are_called_changes_nothing(make, algorithm):
    X = rows_for(make)
    numbers = np.unique(KEYS, return_inverse=True)[1]
    words, ints = (a_model(make, algorithm).partial_fit(X, key=key) for key in (KEYS, numbers))
    lists = a_model(make, algorithm).partial_fit(X, key=KEYS.tolist())
    assert_same(words._state, ints._state)
    assert_same(words._state, lists._state)
    np.testing.assert_array_equal(words.next_state_proba("two"), ints.next_state_proba(2))
    assert sorted(words.open_sequences_) == ["one", "three", "two"]


# Reading in mid-stream


def next_row_score(model, x, states, parameters):
    kind = getattr(model, "covariance_type", None)
    return logsumexp(np.log(states) + naive_chains.log_densities(kind, parameters.emissions, np.atleast_2d(x))[0])


@models
@pytest.mark.parametrize("algorithm", ["online-em", hw.OnlineVB(batch_size=300)], ids=str)
@pytest.mark.parametrize("rows", [140, 600])
def test_answers_about_what_comes_next_agree(make, algorithm, rows):
    X = rows_for(make)
    x = rows_for(make, missing=False)[5]
    model = a_model(make, algorithm).partial_fit(X[:rows], key=KEYS[:rows])
    before = bits(model)
    parameters, _ = model._position()
    for key in ("one", "two", "new"):
        states = model.next_state_proba(key)
        assert states.sum() == pytest.approx(1.0, rel=1e-12)
        if key == "new":
            np.testing.assert_allclose(states, parameters.start, rtol=1e-14)
        score = next_row_score(model, x, states, parameters)
        assert model.score_one(x, key=key) == pytest.approx(score, rel=1e-11)
        joint = (
            np.log(states)
            + naive_chains.log_densities(getattr(model, "covariance_type", None), parameters.emissions, x[None])[0]
        )
        single = model.filter(x, key=key) if make is hw.GaussianHMM else model.filter(x[None], key=key)[0]
        np.testing.assert_allclose(single, np.exp(joint - logsumexp(joint)), rtol=1e-10, atol=1e-14)
        several = model.filter(X[10:20], key=key)
        np.testing.assert_array_equal(model.filter(X[10:11], key=key)[0], several[0])
        np.testing.assert_allclose(several.sum(axis=1), 1.0, rtol=1e-12)
    assert bits(model) == before


@models
def test_what_comes_next_follows_from_the_last_row(make):
    """With all rows in one sequence, the filter at its end is the last row of the smoother."""
    X = rows_for(make)[:140]
    model = a_model(make).partial_fit(X)
    parameters, _ = model._position()
    batch = model._sequences_of(X, None)
    last = model._model.posterior(parameters, batch)[-1]
    np.testing.assert_allclose(model.next_state_proba(), last @ parameters.transitions, rtol=1e-10)
    fitted = (
        make(2, random_state=0).fit(rows_for(make)) if make is hw.GaussianHMM else make(2, n_features=4, random_state=0).fit(X)
    )
    np.testing.assert_allclose(fitted.filter(X)[-1], fitted.predict_proba(X)[-1], rtol=1e-9, atol=1e-13)


def test_the_next_distribution_is_that_of_the_next_row():
    model = a_model(hw.GaussianHMM, covariance_type="full").fit(GAUSSIAN)
    model.partial_fit(GAUSSIAN[:30])
    mean, covariance = model.next_distribution()
    states, emissions = model.next_state_proba(), model._position()[0].emissions
    means, covars = emissions.means + emissions.origin, model._model.family.covariances(emissions)
    np.testing.assert_allclose(mean, states @ means, rtol=1e-12)
    second = sum(p * (c + np.outer(m, m)) for p, m, c in zip(states, means, covars, strict=True))
    np.testing.assert_allclose(covariance, second - np.outer(mean, mean), rtol=1e-9)
    symbols = a_model(hw.CategoricalHMM).partial_fit(SYMBOLS)
    found = symbols.next_distribution()
    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    assert found.shape == (4,)


@pytest.mark.parametrize("algorithm", ["online-em", hw.OnlineEM(batch_size=40)], ids=str)
def test_the_next_distribution_and_the_score_of_a_symbol_are_one_thing(algorithm):
    """Both are about the same next row, whatever was learned since the last fold."""
    model = a_model(hw.CategoricalHMM, algorithm).partial_fit(SYMBOLS[:1010])
    scores = [model.score_one([symbol]) for symbol in range(4)]
    np.testing.assert_allclose(np.exp(scores), model.next_distribution(), rtol=1e-9)


@models
@every
def test_reading_changes_nothing(make, algorithm):
    X = rows_for(make)
    for rows in (100, 400):
        model = a_model(make, algorithm).partial_fit(X[:rows], key=KEYS[:rows])
        before, untouched = bits(model), pickle.loads(pickle.dumps(model))
        for name in ("startprob_", "transmat_", "open_sequences_", "n_samples_seen_"):
            getattr(model, name)
        model.predict_proba(X), model.predict(X), model.score(X), model.decode(X, algorithm="map"), repr(model)
        model.sample(5), model.filter(X[:5], key="one"), model.score_one(X[0], key="x"), model.next_state_proba("one")
        model.next_distribution("two"), model.branch(), model.get_stationary_distribution(), model._repr_html_()
        assert bits(model) == before
        for one in (model, untouched):
            one.partial_fit(X[rows:], key=KEYS[rows:])
        assert_same(model._state, untouched._state)


# Closing


@pytest.mark.covering("make", "algorithm")
@models
@pytest.mark.parametrize("algorithm", ["online-em", hw.OnlineEM(batch_size=40)], ids=str)
@pytest.mark.parametrize("rows", [100, 160, 700])
def test_a_closed_sequence_is_followed_by_another(make, algorithm, rows):
    """Closing a sequence has the effect of `lengths`."""
    X = rows_for(make)[:1000]
    closed = a_model(make, algorithm).partial_fit(X[:rows])
    assert closed.open_sequences_ == [None]
    assert closed.close() is closed
    assert closed.open_sequences_ == []
    parameters, _ = closed._position()
    np.testing.assert_array_equal(closed.next_state_proba(), parameters.start)
    x = rows_for(make, missing=False)[5]
    for key in (None, "new"):
        assert closed.score_one(x, key=key) == pytest.approx(next_row_score(closed, x, parameters.start, parameters), rel=1e-11)
    closed.partial_fit(X[rows:])
    given = a_model(make, algorithm).partial_fit(X, lengths=[rows, len(X) - rows])
    exact = not closed._learner.plan.sweeps
    assert_same(closed._state.statistics, given._state.statistics, exact)
    assert_same(
        finalize(closed._learner.plan, closed._state).statistics, finalize(given._learner.plan, given._state).statistics, exact
    )


@models
def test_complete_sequences_leave_nothing_open(make):
    X, x = rows_for(make), rows_for(make, missing=False)[5]
    model = a_model(make).partial_fit(X, lengths=[ROWS])
    assert model.open_sequences_ == []
    parameters, _ = model._position()
    assert model.score_one(x) == pytest.approx(next_row_score(model, x, parameters.start, parameters), rel=1e-11)


@pytest.mark.parametrize("algorithm", ["online-em", hw.OnlineEM(batch_size=40)], ids=str)
def test_closed_sequences_take_no_memory(algorithm):
    model, sizes = a_model(hw.GaussianHMM, algorithm).partial_fit(GAUSSIAN[:200]), []
    for turn in range(40):
        model.partial_fit(GAUSSIAN[2 * turn : 2 * turn + 2], key=f"visitor {turn}")
        model.partial_fit(GAUSSIAN[:98], key="other").close(f"visitor {turn}")
        sizes.append(len(model._state.unfolded.carry.filters) + len(model._state.unfolded.carry.apart))
    assert max(sizes[-10:]) <= max(sizes[:10])


def test_an_unknown_key_cannot_be_closed():
    model = a_model(hw.GaussianHMM).partial_fit(GAUSSIAN[:50], key="a")
    for key in (None, "b", 3):
        with pytest.raises(ValueError, match="no open sequence with the key"):
            model.close(key)
    assert model.open_sequences_ == ["a"]
    with pytest.raises(ValueError, match="no open sequence"):
        hw.GaussianHMM(2).close()


# Refused


@models
@every
def test_a_refused_chunk_leaves_the_model_as_it_was(make, algorithm):
    X = rows_for(make)
    for rows in (100, 700):
        model = a_model(make, algorithm).partial_fit(X[:rows], key=KEYS[:rows])
        before = bits(model)
        bad = X[:5].copy()
        bad[2, 0] = np.inf
        for chunk, options in (
            (bad, {}), (bad, {"key": "new"}), (X[:5], {"key": ["a"] * 4}), (X[:5], {"key": ["a", "b", "c", "d", 1.5]}),
            (X[:5], {"lengths": [2, 2]}), (X[:5], {"lengths": [5], "key": "a"}), (X[:0], {}), (X[:5], {"key": True}),
        ):  # fmt: skip
            for learn in (model.partial_fit, model.update):
                with pytest.raises((ValueError, TypeError)):
                    learn(chunk, **options)
                assert bits(model) == before
        untouched = a_model(make, algorithm).partial_fit(X[:rows], key=KEYS[:rows])
        for one in (model, untouched):
            one.partial_fit(X[rows:], key=KEYS[rows:])
        assert_same(model._state, untouched._state)


# Copies


@models
@every
def test_copies_and_pickles_go_on_alike(make, algorithm):
    X = rows_for(make)
    for rows in (100, 700):
        model = a_model(make, algorithm).partial_fit(X[:rows], key=KEYS[:rows])
        others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        others += [copy.copy(model)] if rows > 150 else []  # in the warm-up a shallow copy shares the waiting rows
        for other in others:
            other.partial_fit(X[rows:], key=KEYS[rows:])
        model.partial_fit(X[rows:], key=KEYS[rows:])
        for other in others:
            assert_same(other._state, model._state)
            assert other.open_sequences_ == model.open_sequences_
            np.testing.assert_array_equal(other.next_state_proba("two"), model.next_state_proba("two"))
    fresh = clone(model)
    assert not fresh._has_state()
    assert "_open" not in fresh.__dict__


def test_one_thread_or_two():
    X = np.concatenate([GAUSSIAN] * 8)
    one, two = (a_model(hw.GaussianHMM, n_threads=n, warm_up=10_000).partial_fit(X) for n in (1, 2))
    assert_same(one._state, two._state)
    for answer in ("predict_proba", "predict", "score_steps"):
        np.testing.assert_array_equal(getattr(one, answer)(X), getattr(two, answer)(X))


# Merging


@models
@pytest.mark.parametrize("algorithm", ["auto", "online-em"], ids=str)
def test_a_merge_closes_all_sequences(make, algorithm):
    X = rows_for(make)
    base = a_model(make, algorithm).partial_fit(X[:400], key=KEYS[:400])
    branches = [base.branch().partial_fit(X[400:900], key="a"), base.branch().partial_fit(X[900:], key=KEYS[900:])]
    assert base.branch().open_sequences_ == []
    merged = hw.merge(branches)
    assert merged.open_sequences_ == []
    assert merged.n_samples_seen_ == ROWS
    assert merged._state.unfolded.carry is None
    assert not merged._state.unfolded.waiting
    np.testing.assert_array_equal(merged.next_state_proba("a"), merged._position()[0].start)
    assert branches[0].open_sequences_ == ["a"]
    merged.partial_fit(X[:40], key="a")
    assert merged.open_sequences_ == ["a"]


@models
def test_counts_of_a_merge_are_those_of_all_sequences(make):
    """Where counts add up (boem) and parameters hardly move, a merge equals learning all sequences; the base counts once."""
    X = rows_for(make)
    base = a_model(make, hw.BayesianOnlineEM(batch_size=200)).partial_fit(X[:400], lengths=[400]).branch()
    parts = [base.branch() for _ in range(2)]
    for part, rows in zip(parts, (slice(400, 600), slice(600, 800)), strict=True):
        part.partial_fit(X[rows], lengths=[200])
    merged = hw.merge(parts)
    settled = [finalize(one._learner.plan, one._state) for one in (base, *parts)]
    totals = [state.statistics.scaled(state.progress.n_eff) for state in settled]
    wanted = totals[1] + (totals[2] - totals[0])
    found = merged._state.statistics.scaled(merged._state.progress.n_eff)
    assert_same(found.start, wanted.start, exact=False)
    assert_same(found.steps, wanted.steps, exact=False)
    assert_same(found.emissions.count, wanted.emissions.count, exact=False)
    # The sequences of the parts have two starts and 199 transitions each; none was cut, so nothing is lost.
    assert found.start.sum() == pytest.approx(totals[0].start.sum() + 2.0, rel=1e-10)
    assert found.steps.sum() == pytest.approx(totals[0].steps.sum() + 2 * 199.0, rel=1e-10)
    seen = (~np.isnan(X[400:800, 0])).sum()
    assert found.emissions.count.sum() == pytest.approx(totals[0].emissions.count.sum() + seen, rel=1e-10)


def test_models_that_share_no_base_are_matched():
    X, states = a_stream(6000, seed=3)
    one = hw.GaussianHMM(2, random_state=0, algorithm="boem").partial_fit(X[:3000])
    other = hw.GaussianHMM(2, random_state=0, algorithm="boem").partial_fit(X[3000:])
    swapped = hw.GaussianHMM(2, random_state=0, algorithm="boem", init_params="")
    swapped.means_, swapped.covars_ = one.means_[::-1], one.covars_[::-1]
    swapped.startprob_, swapped.transmat_ = one.startprob_[::-1], one.transmat_[::-1, ::-1]
    swapped.partial_fit(X[3000:])
    assert (np.argsort(swapped.means_[:, 0]) != np.argsort(one.means_[:, 0])).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        merged = hw.merge([one, swapped])
    assert merged.n_samples_seen_ == 6000
    order = np.argsort(merged.means_[:, 0])
    np.testing.assert_allclose(merged.means_[order], [[0.0, 0.0], [3.0, 3.0]], atol=0.1)
    np.testing.assert_allclose(np.diag(merged.transmat_), 0.9, atol=0.02)
    assert hw.merge([one, other]).n_samples_seen_ == 6000
    path = merged.predict(X)
    assert max((path == states).mean(), (path != states).mean()) > 0.95
