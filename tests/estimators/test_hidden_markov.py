"""GaussianHMM and CategoricalHMM: parameters set by hand, errors, merging, missing rows, forgetting."""

import copy

import numpy as np
import pytest
from chain_models import a_stream, symbol_stream
from hidden_markov_models import (
    COVARS,
    EMISSIONS,
    LENGTHS,
    MEANS,
    START,
    STEPS,
    SYMBOLS,
    X,
    by_hand,
    dense,
    every_kind,
    refused,
    symbols_by_hand,
)
from naive import chains as naive_chains
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import headwater as hw
from headwater.checks import check_laws
from headwater.core.records import arrays_of

# Parameters that are set by hand


@every_kind
def test_a_model_set_by_hand_answers(kind):
    model = by_hand(kind)
    rows, lengths = X[:8], [5, 3]
    logs = np.column_stack([multivariate_normal(m, c).logpdf(rows) for m, c in zip(MEANS, dense(kind), strict=True)])
    alone = [naive_chains.enumerate_paths(START, STEPS, part) for part in (logs[:5], logs[5:])]
    assert model.score(rows, lengths) == pytest.approx(sum(one.score for one in alone), rel=1e-12)
    score, posteriors = model.score_samples(rows, lengths)
    assert score == pytest.approx(sum(one.score for one in alone), rel=1e-12)
    states = np.vstack([one.states for one in alone])
    np.testing.assert_allclose(posteriors, states, rtol=1e-10)
    np.testing.assert_array_equal(model.predict_proba(rows, lengths), posteriors)
    best, path = model.decode(rows, lengths)
    assert best == pytest.approx(sum(one.best for one in alone), rel=1e-12)
    assert tuple(path) == alone[0].path + alone[1].path
    np.testing.assert_array_equal(model.predict(rows, lengths), path)
    best, path = model.decode(rows, lengths, algorithm="map")
    assert best == pytest.approx(states.max(axis=1).sum(), rel=1e-10)
    np.testing.assert_array_equal(path, states.argmax(axis=1))
    by_map = by_hand(kind, decoder="map")
    np.testing.assert_array_equal(by_map.predict(rows, lengths), path)
    np.testing.assert_allclose(model.score_steps(rows, lengths).sum(), score, rtol=1e-12)
    np.testing.assert_array_equal(model.covars_, dense(kind))
    assert model.covars_.shape == (2, 2, 2)
    np.testing.assert_array_equal(model.means_, MEANS)
    np.testing.assert_allclose(model.startprob_, START, rtol=1e-15)
    np.testing.assert_allclose(model.transmat_, STEPS, rtol=1e-15)


def test_symbols_set_by_hand_answer():
    model, rows = symbols_by_hand(), SYMBOLS[:8]
    wanted = naive_chains.enumerate_paths(START, STEPS, np.log(EMISSIONS.T)[rows[:, 0].astype(int)])
    assert model.score(rows) == pytest.approx(wanted.score, rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(rows), wanted.states, rtol=1e-10)
    best, path = model.decode(rows)
    assert best == pytest.approx(wanted.best, rel=1e-12)
    assert tuple(path) == wanted.path
    np.testing.assert_allclose(model.emissionprob_, EMISSIONS, rtol=1e-14)
    assert model.score(rows[:, 0].astype(int).tolist()) == model.score(rows)


def test_what_is_impossible_has_no_probability():
    model = hw.CategoricalHMM(2, init_params="")
    model.startprob_, model.transmat_ = [1.0, 0.0], np.eye(2)
    model.emissionprob_ = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    assert model.score([[0], [1]]) == pytest.approx(2 * np.log(0.5), rel=1e-14)
    assert model.score([[2]]) == -np.inf
    assert model.score([[0], [2], [1]]) == -np.inf
    np.testing.assert_array_equal(model.predict_proba([[0], [1], [1]]), [[1.0, 0.0]] * 3)
    assert np.isfinite(model.predict_proba([[0], [2], [1]])).all()


@every_kind
def test_given_parameters_are_where_a_fit_starts(kind):
    fitted = by_hand(kind, n_iter=0).fit(X, LENGTHS)
    np.testing.assert_allclose(fitted.means_, MEANS, rtol=1e-12)
    np.testing.assert_allclose(fitted.covars_, dense(kind), rtol=1e-12)
    np.testing.assert_allclose(fitted.transmat_, STEPS, rtol=1e-12)
    with pytest.raises(AttributeError, match="cannot be set"):
        fitted.means_ = MEANS


@pytest.mark.parametrize(
    ("letters", "names"),
    [("s", ["startprob_"]), ("t", ["transmat_"]), ("st", ["startprob_", "transmat_"]), ("mc", ["means_", "covars_"])],
)
def test_what_init_params_leaves_out_is_where_a_fit_starts(letters, names):
    rest = "".join(letter for letter in "stmc" if letter not in letters)
    model = hw.GaussianHMM(2, init_params=rest, n_iter=0, random_state=0)
    for name in names:
        setattr(model, name, {"startprob_": START, "transmat_": STEPS, "means_": MEANS, "covars_": COVARS["diag"]}[name])
    model.fit(X)
    for name in names:
        wanted = {"startprob_": START, "transmat_": STEPS, "means_": MEANS, "covars_": dense("diag")}[name]
        np.testing.assert_allclose(getattr(model, name), wanted, rtol=1e-12)


@pytest.mark.parametrize("letters", ["", "m", "c", "st", "stc"])
@every_kind
def test_params_hold_what_they_should(kind, letters):
    model = by_hand(kind, params=letters, n_iter=3, tol=0.0).fit(X, LENGTHS)
    for letter, name, before in (
        ("s", "startprob_", START), ("t", "transmat_", STEPS), ("m", "means_", MEANS), ("c", "covars_", dense(kind)),
    ):  # fmt: skip
        held = np.allclose(getattr(model, name), before, rtol=1e-9)
        assert held == (letter not in letters), name
    assert np.diff(model.lower_bounds_).min() > -1e-10


@pytest.mark.parametrize("letters", ["", "s", "e", "st"])
def test_params_of_symbols_hold_what_they_should(letters):
    model = symbols_by_hand(params=letters, n_iter=3, emissionprob_prior=1.0).fit(SYMBOLS, LENGTHS)
    for letter, name, before in (("s", "startprob_", START), ("t", "transmat_", STEPS), ("e", "emissionprob_", EMISSIONS)):
        assert np.allclose(getattr(model, name), before, rtol=1e-9) == (letter not in letters), name


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("startprob_", [0.5, 0.4], "sum to 1"), ("startprob_", [1.5, -0.5], "probabilities"), ("startprob_", [1.0], "shape"),
        ("transmat_", np.full((3, 3), 1 / 3), "shape"), ("transmat_", [[0.5, 0.5], [0.5, 0.6]], "sum to 1"),
        ("means_", np.zeros((3, 2)), "shape"), ("means_", [[np.nan, 0.0], [0.0, 0.0]], "finite"), ("means_", "ab", "means_"),
        ("covars_", np.zeros((2, 2)), "positive"), ("covars_", np.ones(3), "shape"), ("startprob_", ["a", "b"], "startprob_"),
    ],
)  # fmt: skip
def test_parameters_that_make_no_sense_are_refused(name, value, says):
    model = by_hand()
    before = model.score(X)
    with pytest.raises(ValueError, match=says) as caught:
        setattr(model, name, value)
    assert "\n" not in str(caught.value)
    assert model.score(X) == before


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_covariances_must_be_positive_definite(kind):
    model = hw.GaussianHMM(2, kind)
    for wrong in (np.ones((2, 2)), np.array([[1.0, 0.5], [-0.5, 1.0]])):
        with pytest.raises(ValueError, match="symmetric and positive definite"):
            model.covars_ = np.tile(wrong, (2, 1, 1)) if kind == "full" else wrong


def test_given_parameters_must_fit_the_rows_and_one_another():
    model = by_hand()
    with pytest.raises(ValueError, match=r"column|feature|width|shape"):
        model.fit(X[:, :1])
    with pytest.raises(ValueError, match=r"column|feature|width|shape"):
        model.score(X[:, :1])
    model = by_hand()
    model.covars_ = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"columns|shape"):
        model.score(X)
    with pytest.raises(ValueError, match=r"column|feature|width|shape"):
        model.fit(X)
    stale = by_hand().set_params(n_components=3)
    with pytest.raises(ValueError, match=r"shape|n_components|states"):
        stale.fit(X)


# The estimator


@pytest.mark.parametrize("make", [hw.GaussianHMM, hw.CategoricalHMM])
def test_constructors_only_store(make):
    options = {"n_components": 3, "startprob_prior": [1.0, 2.0, 3.0], "algorithm": "soem", "lag": 7, "params": "st", "tol": 0.5}
    model = make(**options)
    for name, value in options.items():
        assert model.get_params()[name] is value
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(n_iter=3) is model
    assert model.n_iter == 3
    assert repr(model).startswith(f"{make.__name__}(")
    x = [0.0, 0.0] if make is hw.GaussianHMM else [0]
    for read in (
        lambda: model.startprob_, lambda: model.transmat_, lambda: model.predict([x]), lambda: model.score([x]),
        lambda: model.sample(), lambda: model.n_samples_seen_, lambda: model.open_sequences_, lambda: model.next_state_proba(),
        lambda: model.filter([x]), lambda: model.monitor_, lambda: model.branch(), lambda: model.score_one(x),
    ):  # fmt: skip
        with pytest.raises(NotFittedError):
            read()


def test_a_learned_model_shows_its_states():
    for model in (hw.GaussianHMM(2, random_state=0).fit(X), hw.CategoricalHMM(2, random_state=0).fit(SYMBOLS)):
        text = repr(model)
        assert "400 rows seen" in text
        assert "stays" in text
        assert "<table" in model._repr_html_()


def test_learn_one_is_learning_one_row():
    one, many = (hw.GaussianHMM(2, random_state=0, warm_up=50, algorithm=hw.OnlineEM(batch_size=20), lag=5) for _ in range(2))
    for row in X[:120]:
        one.learn_one(row)
    many.partial_fit(X[:120])
    for left, right in zip(arrays_of(one._state), arrays_of(many._state), strict=True):
        np.testing.assert_array_equal(left, right)
    symbols = hw.CategoricalHMM(2, n_features=4, random_state=0)
    for symbol in SYMBOLS[:30]:
        symbols.learn_one(symbol)
    assert symbols.n_samples_seen_ == 30
    with pytest.raises(ValueError):
        symbols.learn_one([0, 1, 2])
    with pytest.raises(ValueError):
        symbols.score_one([0, 1, 2])
    assert symbols.filter([0, 1, 2]).shape == (3, 2)
    assert symbols.n_samples_seen_ == 30


def test_a_fit_forgets_what_a_stream_taught():
    model = hw.GaussianHMM(2, random_state=0).partial_fit(X + 50.0, key="a")
    model.fit(X)
    fresh = hw.GaussianHMM(2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.means_, fresh.means_)
    assert model.open_sequences_ == []
    assert model.n_samples_seen_ == 400


def test_frames_have_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = hw.GaussianHMM(2, random_state=0).fit(frame, LENGTHS)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.score(frame) == hw.GaussianHMM(2, random_state=0).fit(X, LENGTHS).score(X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "c"}))
    keyed = hw.GaussianHMM(2, random_state=0).partial_fit(frame, key=pandas.Series(["x", "y"] * 200))
    assert keyed.open_sequences_ == ["x", "y"]


BAD_LENGTHS = [
    ([3, 3], "add up"), ([10, 0], "at least 1"), ([12, -2], "at least 1"), (["a"], "lengths"), ([5.5, 4.5], "whole"),
    (10, "list"), ([], "list"), ([np.nan], "lengths"), ([[5, 5]], "list"), ("ten", "lengths"), ([np.inf], "lengths"),
]  # fmt: skip


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("make", [hw.GaussianHMM, hw.CategoricalHMM])
def test_bad_input_gets_one_sentence(make, fitted):
    good = (X if make is hw.GaussianHMM else SYMBOLS)[:10]
    model = make(2, random_state=0) if make is hw.GaussianHMM else make(2, n_features=4, random_state=0)
    if fitted:
        model.fit(X if make is hw.GaussianHMM else SYMBOLS)
    before = list(map(np.array, arrays_of(model._state))) if fitted else None
    calls = [model.fit, model.partial_fit, model.update, *([model.score, model.predict, model.predict_proba] if fitted else [])]
    bad = good.copy()
    bad[3, 0] = np.inf
    for call in calls:
        for lengths, says in BAD_LENGTHS:
            refused(lambda call=call, lengths=lengths: call(good, lengths), says)
        refused(lambda call=call: call(bad), "inf", "whole numbers")
        refused(lambda call=call: call(good[:0]), "0 sample")
        refused(lambda call=call: call(good[None]), "dimension", "shape")
        refused(lambda call=call: call([["a", "b"]]), "number", "X")
        refused(lambda call=call: call(None), "X", "None")
        refused(lambda call=call: call(good.astype(str) + "x"), "number", "X")
    wide = np.hstack([good, good])
    if make is hw.CategoricalHMM:
        for wrong in (-1, 4, 1.5, 1e9):
            symbols = good.copy()
            symbols[2] = wrong
            for call in calls:
                refused(lambda call=call, symbols=symbols: call(symbols), "whole numbers from 0 to 3")
        for call in calls:
            refused(lambda call=call: call(wide), "one symbol")
    else:
        for call in calls:
            refused(lambda call=call: call(good[0]), "two dimensions")
            refused(lambda call=call: call(good[:, :0]), "0 feature")
        if fitted:
            for call in calls[1:]:
                refused(lambda call=call: call(wide), "features", "columns")
    refused(lambda: model.fit(good[:1]), "two rows", "n_samples")
    refused(lambda: model.fit(good, [1] * 10), "two rows")
    refused(lambda: model.partial_fit(good, [10], key="a"), "one of them")
    for key in (1.5, True, b"a", ["a"] * 9, {"a": 1}, [None, 1.5] * 5, [["a"]] * 10):
        refused(lambda key=key: model.partial_fit(good, key=key), "key")
    if fitted:
        for left, right in zip(arrays_of(model._state), before, strict=True):
            np.testing.assert_array_equal(left, right)
    else:
        assert not model._has_state()
        assert "_open" not in model.__dict__


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"algorithm": "viterbi"}, "decoder='viterbi'"), ({"algorithm": "map"}, "decoder='map'"),
        ({"algorithm": "magic"}, "must be one of"),
        ({"algorithm": "quasi-bayes"}, "cannot be learned"), ({"algorithm": "moment-matching"}, "cannot be learned"),
        ({"algorithm": "scvb0"}, "cannot be learned"), ({"algorithm": 3}, "algorithm"),
        ({"params": "x"}, "letters"), ({"init_params": "se"}, "letters"), ({"decoder": "best"}, "decoder"), ({"lag": 0}, "lag"),
        ({"n_components": 0}, "n_components"), ({"n_components": 2.5}, "n_components"), ({"n_iter": -1}, "n_iter"),
        ({"tol": -1.0}, "tol"),
        ({"startprob_prior": [1.0, 1.0, 1.0]}, "startprob_prior"), ({"transmat_prior": np.ones((3, 3))}, "transmat_prior"),
        ({"transmat_prior": [[1.0, -1.0], [1.0, 1.0]]}, "positive"), ({"startprob_prior": "a"}, "startprob_prior"),
        ({"startprob_prior": [np.nan, 1.0]}, "startprob_prior"), ({"startprob_prior": -1.0}, "startprob_prior"),
        ({"covariance_type": "round"}, "covariance_type"), ({"min_covar": -1.0}, "min_covar"), ({"warm_up": 0}, "warm_up"),
        ({"mean_prior": [0.0]}, "mean_prior"), ({"covariance_prior": np.eye(3)}, "covariance_prior"),
        ({"half_life": -1.0}, "half_life"),
        ({"params": "st", "algorithm": "online-em"}, "row by row"),
    ],
    ids=str,
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(options, says):
    options = {"n_components": 2, **options}
    for learn in ("fit", "partial_fit"):
        model = hw.GaussianHMM(**options)
        refused(lambda model=model, learn=learn: getattr(model, learn)(X), says)
        assert not model._has_state()


def test_emission_priors_of_the_wrong_shape_are_refused():
    for prior in (np.ones(3), np.ones((3, 4)), -1.0, "a", np.full((2, 4), np.nan)):
        refused(
            lambda prior=prior: hw.CategoricalHMM(2, n_features=4, emissionprob_prior=prior).fit(SYMBOLS), "emissionprob_prior"
        )


def test_batch_algorithms_do_not_stream():
    for word in ("em", "vb"):
        refused(lambda word=word: hw.GaussianHMM(2, algorithm=word).partial_fit(X), "needs all rows at once")
    assert hw.GaussianHMM(2, algorithm="vb", random_state=0).fit(X).transmat_.shape == (2, 2)


# Merging, missing rows, forgetting, single rows


def test_models_of_different_priors_or_held_values_are_not_merged():
    X, _ = a_stream(3000)
    free, prior = hw.GaussianHMM(2, random_state=0).partial_fit(X), hw.GaussianHMM(2, random_state=0, transmat_prior=9.0)
    with pytest.raises(ValueError, match="models must have one transmat_prior"):
        hw.merge([free, prior.partial_fit(X)])

    def held(stay, rows=3000):
        model = hw.GaussianHMM(2, random_state=0, params="smc", init_params="smc")
        model.transmat_ = [[stay, 1 - stay], [1 - stay, stay]]
        return model.partial_fit(X[:rows])

    with pytest.raises(ValueError, match="the same values of what params leaves out"):
        hw.merge([held(0.8), held(0.9)])
    with pytest.raises(ValueError, match="the same values of what params leaves out"):
        hw.merge([held(0.8, 100), held(0.9, 90)])
    np.testing.assert_allclose(hw.merge([held(0.8), held(0.8).partial_fit(X[:50])]).transmat_[0], [0.8, 0.2])


@pytest.mark.parametrize("rows", [60, 400], ids=["warm-up", "stream"])
@pytest.mark.parametrize("params", ["mc", "stc", "stm", "t", ""])
def test_models_of_other_rows_with_the_same_held_values_are_merged(params, rows):
    rng = np.random.default_rng(0)
    given = {"s": [0.7, 0.3], "t": [[0.9, 0.1], [0.2, 0.8]], "m": [[0.0], [5.0]], "c": [[1.0], [2.0]]}
    names = {"s": "startprob_", "t": "transmat_", "m": "means_", "c": "covars_"}

    def learned():
        model = hw.GaussianHMM(2, params=params, init_params=params, warm_up=100, random_state=0)
        for letter in set("stmc") - set(params):
            setattr(model, names[letter], given[letter])
        states = np.cumsum(rng.random(rows) > 0.85) % 2
        return model.partial_fit(rng.normal(size=(rows, 1)) + 5.0 * states[:, None])

    one, other = learned(), learned()
    for merged in (hw.merge([one, other]), hw.merge([other, one])):
        assert merged.n_samples_seen_ == 2 * rows
        for letter in set("stmc") - set(params):
            found = getattr(merged, names[letter])
            np.testing.assert_allclose(found[:, 0] if letter == "c" else found, given[letter], rtol=1e-9, atol=1e-12)


def test_a_stream_that_begins_with_missing_rows_waits_for_others():
    X, _ = a_stream(2000, width=1, apart=4.0)
    model = hw.GaussianHMM(2, random_state=0, warm_up=50).partial_fit(np.full((49, 1), np.nan))
    with pytest.raises(ValueError, match="every row is missing"):
        model.means_  # noqa: B018
    scores = model.update(X[:40])
    assert np.isnan(scores[:8]).all() and np.isfinite(scores[-5:]).all()
    assert model._runtime.warming_up
    np.testing.assert_allclose(np.sort(model.partial_fit(X[40:]).means_.ravel()), [0.0, 4.0], atol=0.2)
    assert model.n_samples_seen_ == 2049


def test_what_is_learned_cannot_change_on_the_way():
    X, _ = a_stream(500)
    model = hw.GaussianHMM(2, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="params cannot change"):
        model.set_params(params="mc").partial_fit(X)
    with pytest.raises(ValueError, match="whose bound is of them all"):
        hw.GaussianHMM(2, params="st", algorithm="vb").fit(X)


def test_frames_in_another_order_are_not_filtered():
    pd = pytest.importorskip("pandas")
    X, _ = a_stream(500)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = hw.GaussianHMM(2, random_state=0).partial_fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.filter(frame[["b", "a"]])
    missing = model.filter({"a": np.nan, "b": np.nan})
    np.testing.assert_allclose(missing, model.next_state_proba())


def test_a_short_half_life_forgets():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(4000, 1)), rng.normal(size=(400, 1)) + 3.0])
    assert abs(hw.GaussianHMM(1, random_state=0, half_life=50).partial_fit(rows).means_[0, 0] - 3.0) < 0.5


def test_symbols_are_drawn_as_whole_numbers_and_keys_are_told_as_given():
    symbols, _ = symbol_stream(600)
    model = hw.CategoricalHMM(2, n_features=4, random_state=0).partial_fit(symbols, key=np.repeat(["b", "a"], 300))
    assert model.sample(5)[0].dtype == np.int64
    assert model.open_sequences_ == ["b", "a"] and all(type(key) is str for key in model.open_sequences_)
    with pytest.raises(ValueError, match="open are: 'b', 'a'"):
        model.close("c")


def test_one_row_calls_do_not_settle_the_model(monkeypatch):
    X, _ = a_stream(3000)
    model = hw.GaussianHMM(2, random_state=0).partial_fit(X)
    monkeypatch.setattr(type(model._runtime), "read", lambda self: pytest.fail("settled"))
    model.learn_one(X[0]).score_one(X[1])
    model.filter(X[2])
    model.next_state_proba()


def test_copies_in_a_warm_up_learn_on_their_own():
    X, _ = a_stream(300)
    model = hw.GaussianHMM(2, random_state=0).partial_fit(X[:100])
    copied = copy.copy(model).partial_fit(X[100:120])
    assert (model.n_samples_seen_, copied.n_samples_seen_) == (100, 120)


def test_the_laws_of_rows_are_not_for_sequences():
    with pytest.raises(ValueError, match="rows that are independent"):
        check_laws(hw.GaussianHMM(2), a_stream(100)[0])


def test_scores_in_stretches_are_those_of_the_whole(monkeypatch):
    rows, model = a_stream(600, seed=4)[0], by_hand()
    rows[77] = np.nan
    lengths = [100, 1, 399, 100]
    wanted = model.score_steps(rows, lengths)
    monkeypatch.setattr("headwater.models.hidden_markov.STRETCH", 37)
    np.testing.assert_allclose(model.score_steps(rows, lengths), wanted, rtol=1e-13, atol=1e-13)
