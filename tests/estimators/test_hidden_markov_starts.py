"""Starts of hidden Markov models: from parameters that were set by hand or learned, and from a search for the others."""

import copy
import pickle

import numpy as np
import pytest
from chain_models import a_stream
from left_right_chains import (
    ALGORITHMS,
    COVARS,
    FIRST,
    GIVEN,
    LEFT_RIGHT,
    LENGTHS,
    MIDDLES,
    NAMES,
    ROWS,
    STATES,
    STREAMS,
    SYMBOLS,
    chain,
    every_kind,
    left_right,
    one_way,
    set_by_hand,
)
from sklearn.base import clone

import headwater as hw
from headwater.core import batch_fit
from headwater.core.climb import climb
from headwater.models import chain_start


def assert_left_right(model):
    assert (model.startprob_[FIRST == 0.0] == 0.0).all()
    assert (model.transmat_[LEFT_RIGHT == 0.0] == 0.0).all()
    assert np.isfinite(model.transmat_).all()
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)


# Probabilities of 0 stay 0


@pytest.mark.covering
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@every_kind
def test_what_is_set_to_zero_stays_zero_in_a_fit(kind, algorithm):
    model, rows = left_right(kind, algorithm=algorithm)
    model.fit(rows, lengths=LENGTHS)
    assert_left_right(model)
    again = model.set_params(init_params="").fit(rows, lengths=LENGTHS)
    assert_left_right(again)


@pytest.mark.covering
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


@pytest.mark.covering
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
    model.fit(rows, lengths=[900] * 6)  # a sample of whole sequences; pieces of them would begin anywhere
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


# A start has the given parameters, and others that are searched for


def values_of(model, letters):
    return {NAMES[letter]: getattr(model, NAMES[letter]) for letter in letters}


@pytest.mark.covering("given")
@pytest.mark.parametrize("given", ["s", "t", "st", "m", "c", "mc", "smc", "stc", "stmc", "e", "se", "ste"])
@every_kind
def test_a_start_is_what_is_given_and_what_is_found(kind, given):
    letters = "ste" if kind == "symbols" else "stmc"
    if not set(given) <= set(letters):
        return
    found = "".join(letter for letter in letters if letter not in given)
    for n_iter, params in ((0, letters), (1, "")):  # no pass, and a search after which nothing is learned
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
    """With several seeds each has its own components where components are not learned."""
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


@pytest.mark.covering("kind", "given")
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


# A fit continues


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


@pytest.mark.covering
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


@pytest.mark.covering("kind")
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


@pytest.mark.covering
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
    with pytest.raises(ValueError, match="same first states and transitions"):
        hw.merge([one.partial_fit(rows), other.partial_fit(rows)])
    early = [left_right("diag")[0].partial_fit(rows[:50]), chain("diag")[0].partial_fit(rows[:60])]
    with pytest.raises(ValueError, match="same first states and transitions"):
        hw.merge(early)


def test_a_file_that_allows_no_passage_is_refused():
    from headwater.estimators.model_file import pack, unpack

    model, rows = left_right("diag")
    header, arrays = pack(model.fit(rows, lengths=LENGTHS))
    name = next(name for name in arrays if name.endswith("prior/steps"))
    assert unpack(header, arrays, {}).n_components == 3
    arrays[name] = np.zeros((3, 3))
    with pytest.raises(ValueError, match="not a valid prior"):
        unpack(header, arrays, {})
