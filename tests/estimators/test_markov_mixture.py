"""MarkovMixture through its public face: chains are evaluated symbol by symbol, and that is what the counts must give."""

import copy
import pickle
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from naive import multinomial as naive
from scipy import special
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import headwater as hw
from headwater.core.state import arrays_of
from headwater.estimators.sequences import check_sequences, transition_counts

S, K = 4, 2
ONLINE = ("auto", "boem", "soem", "online-em", "online-vb", "quasi-bayes")
ADDING = ("auto", "boem", "online-vb", "quasi-bayes")
START = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]])
STEPS = np.array([np.full((S, S), 0.1) + 0.6 * np.eye(S), np.full((S, S), 0.1) + 0.6 * np.roll(np.eye(S), 1, axis=1)])


@cache
def walks(n, seed=0, longest=30):
    """Sequences of two planted chains, of any length from none on, and the chains they came from."""
    rng = np.random.default_rng(seed)
    kinds, sequences = rng.integers(K, size=n), []
    for kind in kinds:
        sequence = []
        for place in range(rng.integers(0, longest + 1)):
            sequence.append(int(rng.choice(S, p=STEPS[kind][sequence[-1]] if place else START[kind])))
        sequences.append(sequence)
    return sequences, kinds


SEQUENCES, KINDS = walks(250)


def mixture(algorithm="auto", k=K, **options):
    return hw.MarkovMixture(k, algorithm=algorithm, **{"random_state": 0, "warm_up": 60, "n_symbols": S, **options})


def fitted(model, sequences=SEQUENCES, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(sequences, **options)


def content(model):
    return [array.tobytes() for array in arrays_of(model._state)]


def assert_sound(model, sequences=SEQUENCES):
    np.testing.assert_allclose(model.startprob_.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(model.transmat_.sum(axis=2), 1.0, rtol=1e-9)
    assert model.startprob_.shape == (model.n_components, model.n_symbols_)
    assert model.transmat_.shape == (model.n_components, model.n_symbols_, model.n_symbols_)
    assert np.isfinite(model.score_samples(sequences)).all()
    assert np.isfinite(model.predictive_score_samples(sequences)).all()
    np.testing.assert_allclose(model.predict_proba(sequences).sum(axis=1), 1.0)
    assert repr(model)


def assert_close(one, other, rtol=1e-8):
    assert one.n_samples_seen_ == other.n_samples_seen_
    for name in ("weights_", "startprob_", "transmat_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-12)


def error_to_truth(model):
    gaps = np.abs(model.transmat_[:, None] - STEPS).max(axis=(2, 3))
    return gaps[linear_sum_assignment(gaps)].max()


# Probabilities


def chain_joint(model, sequences):
    """(n, K) joint log-probabilities, symbol by symbol."""
    out, weights = np.empty((len(sequences), model.n_components)), np.log(model.weights_)
    for k, (start, steps) in enumerate(zip(model.startprob_, model.transmat_, strict=True)):
        for i, sequence in enumerate(sequences):
            out[i, k] = weights[k] + naive.chain_log_probability(start, steps, sequence)
    return out


@pytest.mark.parametrize("algorithm", ["em", "vb", *ONLINE])
def test_scores_are_those_of_the_chains(algorithm):
    model, some = fitted(mixture(algorithm)), SEQUENCES[:60]
    assert_sound(model)
    resp, scores = naive.responsibilities(chain_joint(model, some))
    np.testing.assert_allclose(model.score_samples(some), scores, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.predict_proba(some), resp, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(model.predict(some), model.predict_proba(some).argmax(axis=1))
    assert model.score(some) == pytest.approx(scores.mean())


@pytest.mark.parametrize("algorithm", ["boem", "online-em"])
def test_predictive_scores_follow_the_chain_rule_of_polyas_urns(algorithm):
    model = mixture(algorithm, startprob_prior=0.3, transmat_prior=0.7) if algorithm == "boem" else mixture(algorithm)
    model.partial_fit(SEQUENCES)
    prior, statistics, count = model._proper_belief()
    belief = np.broadcast_to(prior.components.beta, (S + S * S, K)) + count * np.asarray(statistics.table)
    alpha = model.weight_concentration_
    wanted = []
    for sequence in SEQUENCES[:40]:
        joint = [
            np.log(alpha[k] / alpha.sum()) + naive.chain_predictive(belief[:S, k], belief[S:, k].reshape(S, S), sequence)
            for k in range(K)
        ]
        wanted.append(special.logsumexp(joint))
    np.testing.assert_allclose(model.predictive_score_samples(SEQUENCES[:40]), wanted, rtol=1e-9, atol=1e-9)


def test_the_belief_is_the_prior_and_the_counts():
    model = mixture("boem", 1, startprob_prior=0.3, transmat_prior=0.7).partial_fit(SEQUENCES)
    first, steps = naive.chain_counts(SEQUENCES, S)
    start = 0.3 + first.sum(axis=0)
    matrix = 0.7 + steps.sum(axis=0)
    np.testing.assert_allclose(model.startprob_[0], start / start.sum(), rtol=1e-10)
    np.testing.assert_allclose(model.transmat_[0], matrix / matrix.sum(axis=1, keepdims=True), rtol=1e-10)


@pytest.mark.parametrize("prior", [None, 1.0, 1.5])
def test_the_rows_of_a_transition_matrix_sum_to_one_where_no_step_was_seen(prior):
    # Symbols 2 and 3 never come: maximum likelihood has nothing to go by, and takes them as equal.
    model = fitted(
        mixture("em", startprob_prior=prior, transmat_prior=prior), [[0, 1, 0, 1], [1, 0, 1], [0, 0, 0, 1], [1, 1, 0]] * 5
    )
    assert_sound(model, [[0, 1], [2, 3], []])
    np.testing.assert_allclose(model.transmat_[:, 2:], 1 / S)


def test_counts_of_first_symbols_and_steps():
    sequences = [[1, 2, 2, 2], [], [0], [2, 0, 1, 0, 1]]
    rows = transition_counts(*check_sequences(sequences, None), 3)
    dense = np.zeros(rows.shape)
    for i in range(len(rows)):
        held = slice(rows.indptr[i], rows.indptr[i + 1])
        assert (np.diff(rows.indices[held]) > 0).all()
        dense[i, rows.indices[held]] = rows.data[held]
    first, steps = naive.chain_counts(sequences, 3)
    np.testing.assert_array_equal(dense, np.hstack([first, steps.reshape(4, 9)]))


def test_passes_never_lose():
    for algorithm, prior in (("em", None), ("em", 1.0), ("em", 1.5), ("vb", None)):
        model = fitted(mixture(algorithm, 3, startprob_prior=prior, transmat_prior=prior, max_iter=30, tol=0.0))
        assert np.diff(model.lower_bounds_).min() > -1e-9
        assert_sound(model)


def test_one_prior_may_be_given_alone():
    # The other keeps its default, which is as good for modes as for means.
    for algorithm in ("em", "soem", "boem"):
        model = fitted(mixture(algorithm, 1, startprob_prior=2.0))
        _, steps = naive.chain_counts(SEQUENCES, S)
        matrix = 0.1 + steps.sum(axis=0)
        tolerance = 0.05 if algorithm == "soem" else 1e-9
        np.testing.assert_allclose(model.transmat_[0], matrix / matrix.sum(axis=1, keepdims=True), atol=tolerance)


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_planted_chains_are_found(algorithm, way):
    sequences, kinds = walks(1500, seed=1, longest=25)
    model = getattr(mixture(algorithm, warm_up=500), way)(sequences)
    assert error_to_truth(model) < 0.07
    long = [place for place, sequence in enumerate(sequences) if len(sequence) > 15]
    agreed = np.mean(model.predict([sequences[place] for place in long]) == kinds[long])
    assert max(agreed, 1.0 - agreed) > 0.97


# What sequences come as


def test_lists_matrices_and_lengths_are_one():
    rng = np.random.default_rng(2)
    matrix = rng.integers(S, size=(80, 6))
    lengths = np.full(80, 6)
    wanted = mixture().partial_fit([list(row) for row in matrix])
    for X, options in (
        (matrix, {}),
        (tuple(tuple(row) for row in matrix), {}),
        ([np.array(row) for row in matrix], {}),
        ([row.astype(float) for row in matrix], {}),
        ([row[:, None] for row in matrix], {}),
        ([pd.Series(row) for row in matrix], {}),
        (matrix.astype(np.uint8), {}),
        (matrix.astype(float), {}),
        (pd.DataFrame(matrix).rename(columns=str), {}),
        (matrix.ravel(), {"lengths": lengths}),
        (matrix.ravel().tolist(), {"lengths": lengths.tolist()}),
        (matrix.reshape(-1, 1), {"lengths": lengths}),
    ):
        found = mixture().partial_fit(X, **options)
        assert_close(found, wanted)
        np.testing.assert_array_equal(found.predict(X, *options.values()), wanted.predict(matrix))
        np.testing.assert_allclose(found.score_samples(X, *options.values()), wanted.score_samples(matrix))
        np.testing.assert_allclose(
            found.predictive_score_samples(X, *options.values()), wanted.predictive_score_samples(matrix)
        )
        np.testing.assert_allclose(found.predict_proba(X, *options.values()), wanted.predict_proba(matrix))
        assert found.score(X, **options) == pytest.approx(wanted.score(matrix))


def test_criteria_take_lengths_too():
    model, some = fitted(mixture("em")), SEQUENCES[:50]
    symbols, lengths = np.concatenate(some).astype(int), [len(sequence) for sequence in some]
    free = K - 1 + K * (S - 1) * (S + 1)
    total = model.score_samples(some).sum()
    for name, wanted in (("bic", -2.0 * total + free * np.log(50)), ("aic", -2.0 * total + 2.0 * free)):
        assert getattr(model, name)(some) == pytest.approx(wanted)
        assert getattr(model, name)(symbols, lengths) == pytest.approx(wanted)
    assert model.log_posterior(symbols, lengths) == pytest.approx(model.log_posterior(some))


def test_one_sequence_alone():
    model = mixture(warm_up=1).partial_fit([0, 1, 2, 3])
    assert model.n_samples_seen_ == 1
    np.testing.assert_allclose(model.score_samples(np.array([0, 1])), model.score_samples([[0, 1]]))


@pytest.mark.parametrize("algorithm", ["em", *ONLINE])
def test_empty_sequences_say_nothing_but_that_they_were(algorithm):
    some = [[], [0, 1, 2], [], [3, 3, 3], [], []] * 15
    model = fitted(mixture(algorithm))
    assert model.score_samples([[]])[0] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(model.predict_proba([[], []]), [model.weights_] * 2, rtol=1e-9)
    assert_sound(fitted(mixture(algorithm), some))
    assert_sound(fitted(mixture(algorithm), [[]] * 70))
    by_lengths = fitted(mixture(algorithm), np.concatenate(some).astype(int), lengths=[len(one) for one in some])
    assert_close(by_lengths, fitted(mixture(algorithm), some))


def test_the_number_of_symbols_is_that_of_the_first_sequences():
    model = hw.MarkovMixture(1, warm_up=2).partial_fit([[0, 2, 1], [1]])
    assert model.n_symbols_ == 3 and model.n_features_in_ == 12
    assert hw.MarkovMixture(1, n_symbols=7).partial_fit([[0]]).n_symbols_ == 7
    assert model.fit([[0, 5]]).n_symbols_ == 6


def test_a_chain_of_one_symbol():
    model = fitted(mixture(n_symbols=1), [[0, 0, 0], [0]] * 20)
    np.testing.assert_allclose(model.transmat_, 1.0)
    np.testing.assert_allclose(model.score_samples([[0, 0]]), 0.0, atol=1e-12)


# Refusals


def refusal(call, *arguments, **options):
    with pytest.raises((ValueError, TypeError)) as caught:
        call(*arguments, **options)
    sentence = str(caught.value)
    assert sentence.strip() and "\n" not in sentence
    return sentence


BAD = {
    "a symbol too many": ([[0, 1], [0, 4]], {}, ["symbol 4", "0 to 3", "n_symbols"]),
    "negative": ([[0, 1], [0, -1]], {}, ["sequence 1 of X", "-1"]),
    "fraction": ([[0, 0.5]], {}, ["sequence 0 of X", "whole"]),
    "nan": ([[0, np.nan]], {}, ["sequence 0 of X", "NaN"]),
    "infinite": ([[0, np.inf]], {}, ["sequence 0 of X", "infinity"]),
    "text": (["ab", "ba"], {}, ["X", "numbers"]),
    "symbols that are text": ([["a", "b"]], {}, ["sequence 0 of X", "numbers"]),
    "complex": ([[0, 1j]], {}, ["sequence 0 of X", "omplex"]),
    "huge": ([[0, 2**40]], {}, ["sequence 0 of X"]),
    "unsigned and huge": (np.array([2**63], dtype=np.uint64), {}, ["X"]),
    "no sequence": ([], {}, ["X", "0 sequence"]),
    "no row": (np.empty((0, 3)), {}, ["X", "0 sequence"]),
    "three dimensions": (np.zeros((2, 2, 2)), {}, ["X", "dimension"]),
    "a number": (3, {}, ["X"]),
    "nothing": (None, {}, ["X"]),
    "a mixed list": ([0, [1, 2]], {}, ["X"]),
    "a list mixed the other way": ([[1, 2], 0], {}, ["X"]),
    "a nested sequence": ([[[0, 1], [1, 0]]], {}, ["sequence 0 of X", "dimension"]),
    "lengths that do not add up": ([0, 1, 2], {"lengths": [2, 2]}, ["lengths", "3 symbols", "4"]),
    "no lengths": ([0, 1], {"lengths": []}, ["lengths"]),
    "negative lengths": ([0, 1], {"lengths": [3, -1]}, ["lengths"]),
    "lengths of text": ([0, 1], {"lengths": ["2"]}, ["lengths"]),
    "fractional lengths": ([0, 1], {"lengths": [1.5, 0.5]}, ["lengths"]),
    "a length that is a number": ([0, 1], {"lengths": 2}, ["lengths"]),
    "lists with lengths": ([[0, 1], [1, 0, 2]], {"lengths": [2, 3]}, ["X"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_sequences_are_refused_and_change_nothing(case):
    X, options, words = BAD[case]
    model = mixture("boem").partial_fit(SEQUENCES)
    before = content(model)
    calls = [model.partial_fit, model.fit, model.update, model.warm_start_from, model.score_samples, model.predict]
    for call in calls:
        sentence = refusal(call, X, **options)
        for word in words:
            assert word in sentence, sentence
    unchanged = content(model) == before
    assert unchanged and model.n_samples_seen_ == 250


def test_the_number_of_symbols_cannot_change():
    model = mixture("boem").partial_fit(SEQUENCES)
    before = content(model)
    for size in (3, 5, None):
        assert "n_symbols cannot change" in refusal(model.set_params(n_symbols=size).partial_fit, [[0, 1]])
    unchanged = content(model) == before
    assert unchanged
    assert model.set_params(n_symbols=S).partial_fit([[0, 1]]).n_samples_seen_ == 251
    assert fitted(model.set_params(n_symbols=5)).n_symbols_ == 5
    assert "symbol 4" in refusal(mixture("em", warm_start=True).fit(SEQUENCES).fit, [[0, 4]] * 5)


@pytest.mark.parametrize(
    "options",
    [{"n_symbols": 0}, {"n_symbols": 2.5}, {"n_symbols": 50_000}, {"startprob_prior": 0.0}, {"transmat_prior": -1.0},
     {"transmat_prior": "flat"}, {"transmat_prior": 0.5, "algorithm": "em"}, {"algorithm": "moment-matching"}],
)  # fmt: skip
def test_bad_settings_are_refused_in_one_sentence(options):
    refusal(mixture(**options).partial_fit if "algorithm" not in options else mixture(**options).fit, SEQUENCES)


def test_everything_asks_to_be_fitted_first():
    model = mixture()
    for call in (model.score_samples, model.predict, model.predict_proba, model.predictive_score_samples, model.score):
        with pytest.raises(NotFittedError):
            call(SEQUENCES)
    for call in (model.score_one, model.predict_one):
        with pytest.raises(NotFittedError):
            call([0, 1])
    with pytest.raises(NotFittedError):
        model.sample()


# Streams


@pytest.mark.parametrize("algorithm", [*ONLINE, hw.OnlineEM(batch_size=1), hw.OnlineVB(batch_size=20)])
@pytest.mark.parametrize("parts", [1, 3])
def test_the_cut_changes_nothing_and_storing_neither(algorithm, parts):
    whole = mixture(algorithm, parts=parts).partial_fit(SEQUENCES)
    cut, stored = mixture(algorithm, parts=parts), mixture(algorithm, parts=parts)
    for at in range(0, 250, 37):
        cut.partial_fit(SEQUENCES[at : at + 37])
        stored = pickle.loads(pickle.dumps(stored)).partial_fit(SEQUENCES[at : at + 37])
    assert_close(cut, whole, 1e-6)
    same = content(cut) == content(stored)
    assert same


@pytest.mark.parametrize("algorithm", ONLINE)
def test_one_sequence_at_a_time(algorithm):
    one, many = mixture(algorithm), mixture(algorithm).partial_fit(SEQUENCES[:120])
    for sequence in SEQUENCES[:120]:
        one.learn_one(sequence)
    assert_close(one, many, 1e-6)
    if algorithm in ("boem", "soem", "online-vb", "quasi-bayes"):  # which refresh with every row
        for sequence in ([0, 1, 2], [], np.array([3, 3])):
            assert one.score_one(sequence) == pytest.approx(many.score_samples([sequence])[0], rel=1e-6, abs=1e-9)
    assert one.predict_one([0] * 20) == many.predict([[0] * 20])[0]
    before = content(one)
    for call in (one.learn_one, one.score_one, one.predict_one):
        for bad in ([0, 4], [0, -1], ["a"], [[0, 1], [1, 0]], [0.5]):
            refusal(call, bad)
    unchanged = content(one) == before
    assert unchanged


def test_updates_score_before_they_learn():
    model, plain = mixture("boem"), mixture("boem")
    model.partial_fit(SEQUENCES[:100])
    plain.partial_fit(SEQUENCES[:100])
    wanted = []
    for sequence in SEQUENCES[100:]:
        wanted.append(plain.score_samples([sequence])[0])
        plain.partial_fit([sequence])
    np.testing.assert_allclose(model.update(SEQUENCES[100:]), wanted, rtol=1e-7, atol=1e-9)
    assert_close(model, plain, 1e-7)


def test_updates_take_weights_lengths_and_labels():
    model = mixture("boem").partial_fit(SEQUENCES)
    weights = np.array([1.0, 0.0, 2.0])
    scores = copy.deepcopy(model).update([0, 1, 2, 2, 3, 0], weights, lengths=[2, 1, 3], labels=[0, -1, 1])
    assert np.isfinite(scores).all()
    joint = chain_joint(model, [[0, 1], [2], [2, 3, 0]])
    assert scores[0] == pytest.approx(joint[0, 0], rel=1e-9)
    assert scores[1] == pytest.approx(special.logsumexp(joint[1]), rel=1e-9)


@pytest.mark.parametrize("algorithm", ["em", *ADDING])
def test_sequences_that_are_all_labelled_are_counted(algorithm):
    model = mixture(algorithm)
    model = fitted(model, labels=KINDS) if algorithm == "em" else model.partial_fit(SEQUENCES, labels=KINDS)
    first, steps = naive.chain_counts(SEQUENCES, S)
    for k in range(K):
        start, matrix = 0.1 + first[k == KINDS].sum(axis=0), 0.1 + steps[k == KINDS].sum(axis=0)
        np.testing.assert_allclose(model.startprob_[k], start / start.sum(), rtol=1e-9)
        np.testing.assert_allclose(model.transmat_[k], matrix / matrix.sum(axis=1, keepdims=True), rtol=1e-9)


def test_some_labels_name_the_chains():
    labels = np.where(np.arange(250) < 40, 1 - KINDS, -1)
    model = mixture().fit(SEQUENCES, labels=labels)
    np.testing.assert_allclose(model.transmat_[::-1], STEPS, atol=0.15)


@pytest.mark.parametrize("algorithm", ADDING)
def test_merging_branches_adds_their_counts(algorithm):
    base = mixture(algorithm, reservoir=0).partial_fit(SEQUENCES[:100])
    parts = [base.branch().partial_fit(SEQUENCES[100 + part :: 3]) for part in range(3)]
    merged = hw.merge(parts)

    def counts(model):
        _, statistics, count = model._proper_belief()
        return count * np.asarray(statistics.table)

    wanted = counts(base) + sum(counts(part) - counts(base) for part in parts)
    np.testing.assert_allclose(counts(merged), wanted, rtol=1e-8, atol=1e-8)
    assert merged.n_samples_seen_ == 250
    assert_sound(merged.partial_fit(SEQUENCES))


def test_models_that_learned_apart_are_matched():
    sequences, kinds = walks(800, seed=3)
    one = mixture().partial_fit(sequences[:400], labels=np.where(np.arange(400) < 50, kinds[:400], -1))
    other = mixture(random_state=1).partial_fit(sequences[400:], labels=np.where(np.arange(400) < 50, 1 - kinds[400:], -1))
    merged = hw.merge([one, other])
    np.testing.assert_array_equal(merged.merge_report_.matches[0].components, [1, 0])
    assert error_to_truth(merged) < 0.1
    wide = hw.MarkovMixture(K, n_symbols=S + 1, random_state=0, warm_up=60).partial_fit(sequences[:100])
    assert "width" in refusal(hw.merge, [one, wide])


def test_a_pruned_model_goes_on():
    model = mixture("boem", 4).partial_fit(SEQUENCES)
    pruned = model.prune(min_weight=float(np.sort(model.weights_)[2]))
    assert pruned.n_components == 2 and pruned.n_symbols_ == S
    assert_sound(pruned.partial_fit(SEQUENCES))


# Samples


def test_samples_follow_the_chains():
    model = fitted(mixture("em"))
    sequences, kinds = model.sample(3000, length=12)
    assert len(sequences) == len(kinds) == 3000 and (np.diff(kinds) >= 0).all()
    assert all(len(sequence) == 12 for sequence in sequences)
    first, steps = naive.chain_counts(sequences, S)
    for k in range(K):
        own = kinds == k
        assert own.mean() == pytest.approx(model.weights_[k], abs=0.04)
        np.testing.assert_allclose(first[own].mean(axis=0), model.startprob_[k], atol=0.05)
        matrix = steps[own].sum(axis=0)
        np.testing.assert_allclose(matrix / matrix.sum(axis=1, keepdims=True), model.transmat_[k], atol=0.05)
    again, _ = model.sample(3000, length=12)
    np.testing.assert_array_equal(np.array(again), np.array(sequences))


def test_lengths_of_samples():
    model = fitted(mixture("em"))
    mean = np.mean([len(sequence) for sequence in SEQUENCES])
    assert len(model.sample()[0][0]) == pytest.approx(mean, abs=0.51)
    lengths = np.arange(20)
    assert [len(one) for one in model.sample(20, length=lengths)[0]] == lengths.tolist()
    assert [len(one) for one in model.sample(3, length=0)[0]] == [0, 0, 0]
    for length in (-1, 2.5, [1, 2], "long", True):
        assert "length must be a whole number" in refusal(model.sample, 3, length=length)
    for number in (0, -1, 1.5):
        refusal(model.sample, number)


def test_sequences_come_in_the_forms_people_have():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    sequences = [[0, 1, 2], [3], [2, 2]]
    model = mixture(warm_up=1).partial_fit(sequences)
    wanted = model.score_samples(sequences)
    views = pandas.DataFrame({"user": [0, 0, 0, 1, 2, 2], "page": [0, 1, 2, 3, 2, 2]})
    ragged = np.empty(3, dtype=object)
    ragged[:] = sequences
    for form in (
        views.groupby("user")["page"].apply(list), polars.Series(sequences), ragged, tuple(map(tuple, sequences)),
        (np.array(one) for one in sequences),
    ):  # fmt: skip
        np.testing.assert_array_equal(model.score_samples(form), wanted)


def test_lengths_in_the_place_of_y_are_not_passed_over():
    model = mixture(warm_up=1).partial_fit([[0, 1, 2], [3]])
    for method in (model.fit, model.partial_fit, model.score, model.fit_predict):
        with pytest.raises(ValueError, match="pass lengths="):
            method([0, 1, 2, 3], [3, 1])


def test_the_belief_is_visible():
    model = mixture(algorithm="boem", warm_up=1).partial_fit([[0, 1, 2], [3]])
    np.testing.assert_allclose(model.startprob_concentration_.sum(), 2.0 + 0.1 * model.startprob_.size)
    np.testing.assert_allclose(model.transmat_concentration_.sum(), 2.0 + 0.1 * model.transmat_.size)
    steps = model.transmat_concentration_
    np.testing.assert_allclose(steps / steps.sum(axis=2, keepdims=True), model.transmat_)
