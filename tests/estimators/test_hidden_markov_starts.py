"""Where hidden Markov models start: from what is set by hand or was learned, and from what is found beside it."""

import copy
import logging
import pickle

import numpy as np
import pytest
import sklearn
from chain_models import a_stream
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import headwater as hw
from headwater.core import batch_fit
from headwater.models import chain_start
from headwater.models.start import climb

KINDS = ("full", "tied", "diag", "spherical")
STREAMS = ("auto", "online-em", "soem", "boem", "online-vb")
ALGORITHMS = (*STREAMS, "em", "vb")
LENGTHS = [60, 40, 50, 90]
FIRST = np.array([1.0, 0.0, 0.0])
LEFT_RIGHT = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
MIDDLES = np.array([[4.0, 0.0], [-4.0, 0.0], [0.0, 4.0]])
TABLE = np.array([[0.85, 0.05, 0.05, 0.05], [0.05, 0.85, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85]])


def one_way(lengths=LENGTHS, seed=0):
    """Rows and symbols of sequences that go through three states, each for a third of it, and never back."""
    rng = np.random.default_rng(seed)
    states = np.concatenate([np.minimum(np.arange(size) * 3 // size, 2) for size in lengths])
    symbols = (rng.random(len(states))[:, None] > np.cumsum(TABLE, axis=1)[states]).sum(axis=1)[:, None]
    return rng.normal(size=(len(states), 2)) + MIDDLES[states], symbols, states


ROWS, SYMBOLS, STATES = one_way()


def chain(kind, **options):
    """A model of this kind of covariance, or of symbols, and rows for it."""
    options = {"random_state": 0, "warm_up": 150, **options}
    if kind == "symbols":
        return hw.CategoricalHMM(options.pop("n_components", 3), n_features=4, **options), SYMBOLS
    return hw.GaussianHMM(options.pop("n_components", 3), kind, **options), ROWS


def left_right(kind, init_params=None, **options):
    """The same, with a chain that goes from left to right set by hand."""
    model, rows = chain(kind, init_params=init_params or ("e" if kind == "symbols" else "mc"), **options)
    model.startprob_, model.transmat_ = FIRST, LEFT_RIGHT
    return model, rows


def assert_left_right(model):
    assert (model.startprob_[FIRST == 0.0] == 0.0).all()
    assert (model.transmat_[LEFT_RIGHT == 0.0] == 0.0).all()
    assert np.isfinite(model.transmat_).all()
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)


every_kind = pytest.mark.parametrize("kind", [*KINDS, "symbols"])


# What is impossible stays impossible


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@every_kind
def test_what_is_set_to_zero_stays_zero_in_a_fit(kind, algorithm):
    model, rows = left_right(kind, algorithm=algorithm)
    model.fit(rows, lengths=LENGTHS)
    assert_left_right(model)
    again = model.set_params(init_params="").fit(rows, lengths=LENGTHS)
    assert_left_right(again)


@pytest.mark.parametrize("algorithm", STREAMS)
@every_kind
def test_what_is_set_to_zero_stays_zero_in_a_stream(kind, algorithm):
    model, rows = left_right(kind, algorithm=algorithm)
    begins = np.cumsum(LENGTHS) - LENGTHS
    for begin, size in zip(begins, LENGTHS, strict=True):
        for half in np.array_split(rows[begin : begin + size], 2):
            model.partial_fit(half)  # in the warm-up, and after it
            assert_left_right(model)
        model.close()
    assert_left_right(pickle.loads(pickle.dumps(model)))


@pytest.mark.parametrize(("seed", "algorithm"), [(0, "auto"), (1, "auto"), (2, "auto"), (0, "online-vb"), (0, "em")])
@every_kind
def test_states_come_in_the_order_of_a_given_chain(kind, seed, algorithm):
    model, rows = left_right(kind, random_state=seed, algorithm=algorithm)
    model.fit(rows, lengths=LENGTHS)
    assert np.mean(model.predict(rows, LENGTHS) == STATES) > 0.9
    assert_left_right(model)
    model = left_right(kind, random_state=seed)[0].partial_fit(rows, lengths=LENGTHS)
    assert np.mean(model.predict(rows, LENGTHS) == STATES) > 0.9


def test_one_long_sequence_that_never_comes_back_is_learned_whole():
    rows, _, states = one_way([900, 900, 900, 900, 900, 900])
    model, _ = left_right("diag", warm_up=200)
    model.fit(rows, lengths=[900] * 6)  # a sample of whole sequences, of which stretches would begin anywhere
    assert np.mean(model.predict(rows, [900] * 6) == states) > 0.98
    assert_left_right(model)


def test_an_impossible_passage_outlives_priors_and_forgetting():
    model, rows = left_right("diag", transmat_prior=5.0, startprob_prior=3.0, half_life=50.0)
    assert_left_right(model.partial_fit(rows, lengths=LENGTHS))
    model, _ = left_right("diag", transmat_prior=5.0, startprob_prior=3.0)
    assert_left_right(model.fit(rows, lengths=LENGTHS))
    assert np.diff(model.lower_bounds_).min() > -1e-9


@pytest.mark.parametrize("algorithm", ["em", "vb"])
def test_passes_over_a_chain_with_zeros_never_lose(algorithm):
    model, rows = left_right("full", algorithm=algorithm, n_iter=20, tol=0.0)
    model.fit(rows, lengths=LENGTHS)
    assert np.isfinite(model.lower_bounds_).all()
    assert np.diff(model.lower_bounds_).min() > -1e-9


@pytest.mark.parametrize("readout", ["mode", "mean", "expect_log"])
def test_rows_that_are_swept_read_zeros_as_batches_do(readout):
    from headwater.kernels.chain_sweep import read_start, read_transitions
    from headwater.kernels.mixture import READOUTS
    from headwater.models.chain_records import shares_of

    rng = np.random.default_rng(0)
    prior, shift = np.where(LEFT_RIGHT > 0.0, 0.7, 0.0), np.where(LEFT_RIGHT > 0.0, 0.2, 0.0)
    totals = np.concatenate([rng.random(3), rng.random(9)])
    start, transitions = np.empty(3), np.empty((3, 3))
    read_start(READOUTS[readout], prior[1], shift[1], totals, start)
    read_transitions(READOUTS[readout], prior, shift, totals, transitions)
    np.testing.assert_allclose(start, shares_of(readout, prior[1], shift[1], totals[:3]), rtol=1e-12)
    np.testing.assert_allclose(transitions, shares_of(readout, prior, shift, totals[3:].reshape(3, 3)), rtol=1e-12)
    assert (transitions[LEFT_RIGHT == 0.0] == 0.0).all()


# A start is what is given, and what is found beside it


GIVEN = {
    "startprob_": np.array([0.2, 0.5, 0.3]), "transmat_": np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]),
    "means_": MIDDLES + 0.5, "emissionprob_": TABLE,
}  # fmt: skip
COVARS = {
    "full": np.tile(2.0 * np.eye(2), (3, 1, 1)),
    "tied": 2.0 * np.eye(2),
    "diag": np.full((3, 2), 2.0),
    "spherical": [2.0] * 3,
}
NAMES = {"s": "startprob_", "t": "transmat_", "m": "means_", "c": "covars_", "e": "emissionprob_"}


def set_by_hand(model, letters):
    for letter in letters:
        name = NAMES[letter]
        setattr(model, name, COVARS[model.covariance_type] if letter == "c" else GIVEN[name])
    return model


def values_of(model, letters):
    return {NAMES[letter]: getattr(model, NAMES[letter]) for letter in letters}


@pytest.mark.parametrize("given", ["s", "t", "st", "m", "c", "mc", "smc", "stc", "stmc", "e", "se", "ste"])
@every_kind
def test_a_start_is_what_is_given_and_what_is_found(kind, given):
    letters = "ste" if kind == "symbols" else "stmc"
    if not set(given) <= set(letters):
        return
    found = "".join(letter for letter in letters if letter not in given)
    for n_iter, params in ((0, letters), (1, "")):  # no pass at all, and a search of which nothing is learned afterwards
        model, rows = chain(kind, init_params=found, n_iter=n_iter, params=params)
        all_set, _ = chain(kind, init_params=found, n_iter=n_iter, params=params)
        set_by_hand(model, given)
        set_by_hand(all_set, letters)
        wanted = values_of(all_set, given)
        for one in (model.fit(rows, lengths=LENGTHS), all_set.fit(rows, lengths=LENGTHS)):
            for name, value in wanted.items():
                np.testing.assert_allclose(getattr(one, name), value, rtol=1e-12, atol=1e-15, err_msg=name)
        for name in map(NAMES.get, found):
            assert not np.allclose(getattr(all_set, name), getattr(set_by_hand(clone(model), letters), name)), name
            np.testing.assert_array_equal(getattr(model, name), getattr(all_set, name))


@every_kind
def test_what_follows_from_given_components_is_found_in_their_order(kind):
    for letters in ("st", "stc") if kind != "symbols" else ("st",):
        model, rows = chain(kind, init_params=letters)
        set_by_hand(model, "e" if kind == "symbols" else "m" if "c" in letters else "mc")
        model.fit(rows, lengths=LENGTHS)
        assert np.mean(model.predict(rows, LENGTHS) == STATES) > 0.85
        assert model.startprob_.argmax() == 0


def test_what_is_left_out_and_not_set_is_found():
    model, rows = chain("diag", init_params="", n_iter=3)
    wanted = chain("diag", n_iter=3)[0].fit(rows, lengths=LENGTHS)
    np.testing.assert_array_equal(model.fit(rows, lengths=LENGTHS).means_, wanted.means_)
    model, rows = chain("diag", init_params="mc", n_iter=0)
    model.transmat_ = GIVEN["transmat_"]
    np.testing.assert_allclose(model.fit(rows).transmat_, GIVEN["transmat_"], rtol=1e-12)


def test_seeds_hold_what_is_not_learned_each_its_own(monkeypatch):
    """Of several seeds each has components of its own, where components are not to be learned."""
    climbs = []

    def watched(model, name, prior, parameters, *rest, **options):
        np.testing.assert_array_equal(prior.fixed.emissions.means, parameters.emissions.means)
        end = climb(model, name, prior, parameters, *rest, **options)
        np.testing.assert_allclose(end.parameters.emissions.means, parameters.emissions.means, rtol=1e-12)
        climbs.append(end.parameters.emissions.means)
        return end

    monkeypatch.setattr(chain_start, "climb", watched)
    hw.GaussianHMM(3, params="st", random_state=1).fit(a_stream(400, seed=3, n_states=3)[0])
    assert len({means.tobytes() for means in climbs}) > 3


@pytest.mark.parametrize("algorithm", ["auto", "em", "vb"])
@pytest.mark.parametrize("given", ["s", "t", "st", "m", "stc", "stmc", "e", "se", "ste"])
@every_kind
def test_passes_begin_with_what_is_given(kind, given, algorithm, monkeypatch):
    letters = "ste" if kind == "symbols" else "stmc"
    if not set(given) <= set(letters):
        return
    begun = []

    def watched(model, name, prior, parameters, *rest, **options):
        begun.append(parameters)
        return climb(model, name, prior, parameters, *rest, **options)

    monkeypatch.setattr(batch_fit, "climb", watched)
    found = "".join(letter for letter in letters if letter not in given)
    model, rows = chain(kind, init_params=found, n_iter=2, algorithm=algorithm)
    set_by_hand(model, given).fit(rows, lengths=LENGTHS)
    family, (start,) = model._model.family, begun
    seen = {"s": start.start, "t": start.transitions}
    if kind == "symbols":
        seen["e"] = family.probabilities(start.emissions)
    else:
        seen |= {"m": family.means(start.emissions), "c": family.covariances(start.emissions)}
    for letter in given:
        wanted = COVARS[kind] if letter == "c" else GIVEN[NAMES[letter]]
        np.testing.assert_allclose(seen[letter], wanted, rtol=1e-12, atol=1e-15, err_msg=letter)


@every_kind
def test_units_of_columns_do_not_matter_for_a_given_chain(kind):
    if kind == "symbols":
        return
    units = np.array([1000.0, 0.01])
    for found in ("mc", "c", "m"):
        models = []
        for scale in (np.ones(2), units):
            model = hw.GaussianHMM(3, kind, random_state=0, scale_columns=True, init_params=found)
            model.startprob_, model.transmat_ = FIRST, LEFT_RIGHT
            if "m" not in found:
                model.means_ = MIDDLES * scale
            if "c" not in found and kind == "diag":
                model.covars_ = np.ones((3, 2)) * scale**2
            models.append(model.fit(ROWS * scale, lengths=LENGTHS))
        np.testing.assert_allclose(models[1].means_ / units, models[0].means_, rtol=1e-5, atol=1e-6)
        again = models[1].set_params(init_params="", n_iter=1)
        before = again.score(ROWS * units, LENGTHS)
        assert again.fit(ROWS * units, lengths=LENGTHS).score(ROWS * units, LENGTHS) > before - 1e-3


# A fit goes on


def peer_of(kind):
    from hmmlearn import hmm

    if kind == "symbols":
        return hmm.CategoricalHMM(3, init_params="", n_iter=1, tol=-np.inf, n_features=4), SYMBOLS
    return hmm.GaussianHMM(3, kind, init_params="", n_iter=1, tol=-np.inf, covars_prior=0.0), ROWS


@every_kind
def test_fits_of_one_pass_go_on_as_hmmlearns(kind):
    letters = "ste" if kind == "symbols" else "stmc"
    options = {"emissionprob_prior": 1.0} if kind == "symbols" else {"min_covar": 0.0}
    model, rows = chain(kind, init_params="", n_iter=1, tol=0.0, **options)
    peer, _ = peer_of(kind)
    scores = []
    for one in (set_by_hand(model, letters), set_by_hand(peer, letters)):
        for _ in range(5):
            scores.append(one.fit(rows, lengths=LENGTHS).score(rows, LENGTHS))
            if kind == "spherical" and one is peer:
                one._covars_ = one._covars_.reshape(3, -1)[:, 0]  # which has another shape there after a fit
    np.testing.assert_allclose(scores[:5], scores[5:], rtol=1e-9)
    assert np.diff(scores[:5]).min() > 0.0
    at_once = set_by_hand(chain(kind, init_params="", n_iter=5, tol=0.0, **options)[0], letters).fit(rows, lengths=LENGTHS)
    assert at_once.score(rows, LENGTHS) == pytest.approx(scores[4], rel=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@every_kind
def test_a_second_fit_does_not_fall_back(kind, algorithm):
    model, rows = chain(kind, algorithm=algorithm, n_iter=30)
    first = model.fit(rows, lengths=LENGTHS)
    before, means = first.score(rows, LENGTHS), values_of(first, "e" if kind == "symbols" else "m")
    again = first.set_params(init_params="", n_iter=1).fit(rows, lengths=LENGTHS)
    assert again.score(rows, LENGTHS) > before - 2.0  # an online algorithm has but one pass
    for name, value in means.items():
        np.testing.assert_allclose(getattr(again, name), value, atol=0.2)


def test_a_fit_goes_on_with_what_init_params_leaves_out_alone():
    model, rows = chain("diag")
    steps = model.fit(rows, lengths=LENGTHS).transmat_
    model.set_params(init_params="smc", n_iter=0).fit(rows)
    np.testing.assert_allclose(model.transmat_, steps, rtol=1e-12)
    model.set_params(n_components=2)
    with pytest.raises(ValueError, match="transmat_ must have shape"):
        model.fit(rows)
    np.testing.assert_allclose(model.transmat_, steps, rtol=1e-12)  # it is as it was
    model.set_params(n_components=3, covariance_type="tied", init_params="st")
    with pytest.raises(ValueError, match="add 'c' to init_params"):
        model.fit(rows)
    model.set_params(covariance_type="diag", init_params="")
    with pytest.raises(ValueError, match=r"means_ must have shape \(3, 1\)"):
        model.fit(rows[:, :1])


def test_symbols_of_a_fit_that_goes_on_are_those_it_knows():
    model, rows = chain("symbols", init_params="")
    model.fit(rows, lengths=LENGTHS)
    with pytest.raises(ValueError, match="from 0 to 3"):
        model.fit([[4], [0], [1]])
    model.set_params(init_params="ste", n_features=None).fit(np.vstack([rows, [[6]]]))
    assert model.n_features == 7


@pytest.mark.slow
def test_a_race_begins_anew_whatever_init_params_says():
    rows = a_stream(200)[0]
    models = [hw.GaussianHMM("auto", random_state=0, init_params=letters) for letters in ("", "stmc")]
    wanted, found = (model.fit(rows).transmat_ for model in models)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(models[0].fit(rows).transmat_, wanted)


# Files, merges, copies


@pytest.mark.parametrize("rows_first", [100, 200])
@every_kind
def test_a_given_start_survives_files_and_copies(kind, rows_first, tmp_path):
    whole, rows = left_right(kind)
    saved, _ = left_right(kind)
    whole.partial_fit(rows)
    saved.partial_fit(rows[:rows_first])
    saved.save(tmp_path / "model.hw")
    for other in (hw.load(tmp_path / "model.hw"), copy.copy(saved), pickle.loads(pickle.dumps(saved))):
        other.partial_fit(rows[rows_first:])
        assert_left_right(other)
        np.testing.assert_array_equal(other.transmat_, whole.transmat_)
        again = other.set_params(init_params="", n_iter=0).fit(rows)
        np.testing.assert_allclose(again.transmat_, whole.transmat_, rtol=1e-12)
        assert_left_right(again)


@pytest.mark.parametrize("algorithm", STREAMS)
@every_kind
def test_merged_chains_keep_their_zeros(kind, algorithm):
    base, rows = left_right(kind, algorithm=algorithm)
    base.warm_start_from(rows, LENGTHS, weight=0.1)
    some = LENGTHS[0] + LENGTHS[1]
    parts = [
        base.branch().partial_fit(rows[:some], lengths=LENGTHS[:2]),
        base.branch().partial_fit(rows[some:], lengths=LENGTHS[2:]),
    ]
    merged = hw.merge(parts)
    assert_left_right(merged)
    assert np.mean(merged.predict(rows, LENGTHS) == STATES) > 0.85
    others = one_way(seed=1)[1 if kind == "symbols" else 0]
    apart = [left_right(kind, algorithm=algorithm)[0].partial_fit(some, lengths=LENGTHS) for some in (rows, others)]
    assert_left_right(hw.merge(apart))


def test_chains_with_other_zeros_are_not_merged():
    one, rows = left_right("diag")
    other, _ = chain("diag")
    with pytest.raises(ValueError, match="same first states and passages"):
        hw.merge([one.partial_fit(rows), other.partial_fit(rows)])
    early = [left_right("diag")[0].partial_fit(rows[:50]), chain("diag")[0].partial_fit(rows[:60])]
    with pytest.raises(ValueError, match="same first states and passages"):
        hw.merge(early)


def test_a_file_that_allows_no_passage_is_refused():
    from headwater.estimators.model_file import packed, unpacked

    model, rows = left_right("diag")
    header, arrays = packed(model.fit(rows, lengths=LENGTHS))
    name = next(name for name in arrays if name.endswith("prior/steps"))
    assert unpacked(header, arrays, {}).n_components == 3
    arrays[name] = np.zeros((3, 3))
    with pytest.raises(ValueError, match="no prior"):
        unpacked(header, arrays, {})


# What comes next


def following(model, rows, lengths=None):
    states = model.predict_proba(rows, lengths)[-1]
    return states @ model.transmat_


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@every_kind
def test_after_a_fit_what_comes_next_follows_its_last_sequence(kind, algorithm, tmp_path):
    model, rows = chain(kind, algorithm=algorithm)
    model.fit(rows, lengths=LENGTHS)
    wanted = following(model, rows, LENGTHS)
    assert np.abs(wanted - model.startprob_).max() > 0.05
    model.save(tmp_path / "model.hw")
    for one in (model, hw.load(tmp_path / "model.hw"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(one.next_state_proba(), wanted, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(model.next_state_proba(X=rows[-LENGTHS[-1] :]), wanted, rtol=1e-9, atol=1e-14)
    other = rows[: LENGTHS[0] // 3]
    np.testing.assert_allclose(model.next_state_proba(X=other), following(model, other), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(model.next_state_proba("new"), model._position()[0].start, rtol=1e-9)
    for options in ({}, {"X": other}):
        states, found = model.next_state_proba(**options), model.next_distribution(**options)
        if kind == "symbols":
            np.testing.assert_allclose(found, states @ model.emissionprob_, rtol=1e-12)
        else:
            np.testing.assert_allclose(found[0], states @ model.means_, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(found[1], found[1].T)
    with pytest.raises(ValueError, match="give one of them"):
        model.next_state_proba("new", X=other)
    with pytest.raises(ValueError, match=r"X|symbol|column"):
        model.next_distribution(X=np.ones((3, 5)))


def test_what_comes_next_is_of_the_stream_once_it_goes_on():
    model, rows = chain("diag")
    model.fit(rows)
    np.testing.assert_allclose(model.branch().next_state_proba(), model.startprob_)  # whose sequences are closed
    model.partial_fit(rows[:30])
    states = model.filter(rows[:30], key="new")[-1]
    np.testing.assert_allclose(model.next_state_proba(), states @ model._position()[0].transitions, rtol=1e-9)
    model.close()
    np.testing.assert_allclose(model.next_state_proba(), model._position()[0].start)


@pytest.mark.parametrize("end", [[0.4, 0.4, 0.4], [0.5, 0.5], [1.5, -0.5, 0.0]])
def test_a_file_with_a_wrong_end_of_a_sequence_is_refused(end, tmp_path):
    model, rows = chain("diag")
    model.fit(rows)._end = np.array(end)
    model.save(tmp_path / "model.hw")
    with pytest.raises(ValueError, match=r"no probabilities|number of states"):
        hw.load(tmp_path / "model.hw")


def test_what_comes_next_can_be_asked_of_a_chain_set_by_hand():
    model = set_by_hand(hw.GaussianHMM(3), "stmc")
    np.testing.assert_array_equal(model.next_state_proba(), GIVEN["startprob_"])
    np.testing.assert_allclose(model.next_state_proba(X=ROWS[:7]), following(model, ROWS[:7]), rtol=1e-12)
    np.testing.assert_allclose(model.next_distribution(X=ROWS[:1])[0], following(model, ROWS[:1]) @ model.means_, rtol=1e-12)


# hmmlearn's and scikit-learn's ways


@every_kind
def test_a_parameter_that_is_overwritten_is_told_of(kind, caplog):
    model, rows = chain(kind)
    model.startprob_ = FIRST
    with caplog.at_level(logging.WARNING, "headwater"):
        model.fit(rows)
    assert "'startprob_' attribute is set, it will be overwritten" in caplog.text
    caplog.clear()
    model.fit(rows)
    assert not caplog.records
    for learn in (
        lambda model: model.partial_fit(rows),
        lambda model: model.warm_start_from(rows),
        lambda model: model.learn_one(rows[0]),
    ):
        caplog.clear()
        model, _ = chain(kind)
        learn(set_by_hand(model, "t"))
        assert ["transmat_" in record.getMessage() for record in caplog.records] == [True]
    caplog.clear()
    left_right(kind)[0].fit(rows)
    assert not caplog.records


@every_kind
def test_implementations_are_one_and_the_same(kind):
    fits = [chain(kind, implementation=word)[0].fit(chain(kind)[1]) for word in ("log", "scaling")]
    np.testing.assert_array_equal(fits[0].transmat_, fits[1].transmat_)
    with pytest.raises(ValueError, match="implementation"):
        chain(kind, implementation="fast")[0].fit(chain(kind)[1])


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 1, 1, 1), (3, 2), (3, 2, 2)])
def test_variances_of_spheres_are_taken_in_hmmlearns_shapes(shape):
    model = hw.GaussianHMM(3, "spherical")
    variances = np.array([1.0, 2.0, 3.0])
    model.means_ = MIDDLES
    model.covars_ = (
        variances[:, None, None] * np.eye(2)
        if shape == (3, 2, 2)
        else np.broadcast_to(variances.reshape(3, *[1] * (len(shape) - 1)), shape)
    )
    np.testing.assert_array_equal(model.covars_, variances[:, None, None] * np.eye(2))


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("spherical", np.array([[1.0, 2.0]] * 3), "same in all columns"), ("spherical", np.ones((2, 2)), "shape"),
        ("spherical", np.tile(np.diag([1.0, 2.0]), (3, 1, 1)), "multiples of the identity"),
        ("diag", np.tile([[1.0, 0.5], [0.5, 1.0]], (3, 1, 1)), "diagonal"), ("diag", np.ones(3), "shape"),
        ("tied", np.arange(1.0, 4.0)[:, None, None] * np.eye(2), "same for all states"), ("full", np.ones((3, 2)), "shape"),
        ("spherical", [-1.0, 1.0, 1.0], "positive"), ("round", np.ones(3), "covariance_type"),
    ],
)  # fmt: skip
def test_covariances_of_another_kind_are_refused(kind, value, says):
    model = hw.GaussianHMM(3, kind)
    with pytest.raises(ValueError, match=says):
        model.covars_ = value


def test_covariances_have_a_matrix_for_each_state():
    for kind in KINDS:
        model = set_by_hand(hw.GaussianHMM(3, kind), "mc")
        np.testing.assert_array_equal(model.covars_, np.tile(2.0 * np.eye(2), (3, 1, 1)))
        again = hw.GaussianHMM(3, kind, init_params="stm", n_iter=0)
        again.covars_ = model.covars_
        np.testing.assert_allclose(again.fit(ROWS).covars_, model.covars_, rtol=1e-12)


def test_the_number_of_features_is_told():
    model = hw.GaussianHMM(3)
    assert not hasattr(model, "n_features")
    model.n_features = 2
    assert model.n_features == 2
    with pytest.raises(ValueError, match="n_features"):
        model.fit(ROWS[:, :1])
    assert model.fit(ROWS).n_features == 2
    assert set_by_hand(hw.GaussianHMM(3), "m").n_features == 2
    with pytest.raises(AttributeError, match="n_features"):
        model.n_features = 3
    with pytest.raises(ValueError, match="n_features"):
        hw.GaussianHMM(3).n_features = 0
    spheres = hw.GaussianHMM(3, "spherical")
    spheres.covars_, spheres.n_features = np.ones(3), 4
    assert spheres.covars_.shape == (3, 4, 4)


def test_the_number_of_symbols_is_told_and_the_parameter_stays(tmp_path):
    model = hw.CategoricalHMM(3, random_state=0)
    assert model.n_features is None
    for _ in range(2):
        model.partial_fit(SYMBOLS)
    assert model.n_features == 4
    assert model.get_params()["n_features"] is None
    assert clone(model).n_features is None
    assert hw.CategoricalHMM(3, n_features=6, random_state=0).fit(SYMBOLS).n_features == 6
    assert set_by_hand(hw.CategoricalHMM(3), "e").n_features == 4
    model.save(tmp_path / "model.hw")
    again = hw.load(tmp_path / "model.hw")
    assert (again.n_features, again.get_params()["n_features"]) == (4, None)
    assert repr(model) == repr(again)
    assert model.set_params(n_features=5).fit(SYMBOLS).n_features == 5


def pipeline(model):
    return Pipeline([("scale", StandardScaler()), ("hmm", model)])


def test_lengths_go_through_a_pipeline():
    scaled = StandardScaler().fit_transform(ROWS)
    wanted = hw.GaussianHMM(3, random_state=0).fit(scaled, lengths=LENGTHS)
    found = pipeline(hw.GaussianHMM(3, random_state=0)).fit(ROWS, hmm__lengths=LENGTHS)
    np.testing.assert_array_equal(found[-1].means_, wanted.means_)
    np.testing.assert_array_equal(found.predict(ROWS, lengths=LENGTHS), wanted.predict(scaled, LENGTHS))
    assert found.score(ROWS) == wanted.score(scaled)
    assert pipeline(hw.GaussianHMM(3, random_state=0)).fit(ROWS).score(ROWS) < 0.0


@pytest.mark.parametrize("kind", ["diag", "symbols"])
def test_lengths_are_routed_as_metadata(kind, tmp_path):
    model, rows = chain(kind)
    scaled = rows if kind == "symbols" else StandardScaler().fit_transform(rows)
    wanted = clone(model).fit(scaled, lengths=LENGTHS)
    with sklearn.config_context(enable_metadata_routing=True):
        for method in ("fit", "score", "predict", "predict_proba", "partial_fit"):
            getattr(model, f"set_{method}_request")(lengths=True)
        steps = [("hmm", model)] if kind == "symbols" else [("scale", StandardScaler()), ("hmm", model)]
        found = clone(Pipeline(steps)).fit(rows, lengths=LENGTHS)
        np.testing.assert_array_equal(found[-1].transmat_, wanted.transmat_)
        assert found.score(rows, lengths=LENGTHS) == wanted.score(scaled, LENGTHS)
        np.testing.assert_array_equal(found.predict(rows, lengths=LENGTHS), wanted.predict(scaled, LENGTHS))
        np.testing.assert_array_equal(found.predict_proba(rows, lengths=LENGTHS), wanted.predict_proba(scaled, LENGTHS))
    found[-1].save(tmp_path / "model.hw")
    assert hw.load(tmp_path / "model.hw").score(scaled, LENGTHS) == wanted.score(scaled, LENGTHS)


def test_the_target_of_a_stream_is_not_taken_for_lengths():
    frame = pytest.importorskip("pandas").DataFrame({"a": ROWS[:3, 0], "b": ROWS[:3, 1], "y": [1.0, 1.0, 1.0]})
    model = hw.GaussianHMM(2, random_state=0)
    with pytest.raises(ValueError, match=r"comes with y, which GaussianHMM\.fit does not take"):
        model.fit(hw.stream(frame, target="y"))
    model.fit(ROWS)
    assert model.score(hw.stream(frame, target="y")) == pytest.approx(model.score(ROWS[:3]))


def test_lengths_may_come_second_or_by_name_but_once():
    model = hw.GaussianHMM(3, random_state=0).fit(ROWS, LENGTHS)
    by_name = hw.GaussianHMM(3, random_state=0).fit(ROWS, lengths=LENGTHS)
    np.testing.assert_array_equal(model.means_, by_name.means_)
    assert model.score(ROWS, LENGTHS) == model.score(ROWS, lengths=LENGTHS) == model.score(ROWS, None, LENGTHS)
    for ask in (model.fit, model.score):
        with pytest.raises(ValueError, match="twice"):
            ask(ROWS, LENGTHS, LENGTHS)


@pytest.mark.parametrize("make", [hw.GaussianHMM, hw.CategoricalHMM])
def test_what_a_model_has_can_be_listed_whatever_its_number_of_states(make):
    model = make("auto", warm_up=20, random_state=0)
    assert "partial_fit" in dir(model)
    model.partial_fit(np.random.default_rng(0).integers(3, size=(60, 1)))
    assert "transmat_" in dir(model)


@pytest.mark.parametrize("number", ["auto", "two", None, 2.5])
def test_parameters_are_set_by_hand_for_a_number_of_states(number):
    with pytest.raises(ValueError, match=r"^n_components must be a number where parameters are set by hand, got .*[o5e]"):
        hw.GaussianHMM(number).startprob_ = [0.5, 0.5]


@pytest.mark.parametrize("make", [hw.GaussianHMM, hw.CategoricalHMM])
def test_negative_probabilities_are_called_so(make):
    with pytest.raises(ValueError, match=r"^startprob_ must hold probabilities, which are not negative, got -1$"):
        make(3).startprob_ = [-1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=r"^transmat_ must hold probabilities that sum to 1, got sums \[1\.5, 1\.0\]$"):
        make(2).transmat_ = [[1.0, 0.5], [0.5, 0.5]]


def test_lengths_and_keys_that_make_no_sense_are_refused_in_one_line():
    rows = np.zeros((200, 1))
    with pytest.raises(ValueError, match=r"^lengths must be whole numbers of at least 1, got array") as caught:
        hw.GaussianHMM(2).fit(rows, np.zeros(200, dtype=int))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^key must be a string or a whole number") as caught:
        hw.GaussianHMM(2).fit(rows).next_state_proba(np.zeros((3, 3)))
    assert "\n" not in str(caught.value)
