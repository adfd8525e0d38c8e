"""MarkovMixture by its public methods, compared with chains that are evaluated symbol by symbol."""

import numpy as np
import pandas as pd
import pytest
from naive import multinomial as naive
from scipy import special
from sequence_models import (
    ONLINE,
    SEQUENCES,
    K,
    S,
    assert_close,
    assert_sound,
    chain_joint,
    content,
    error_to_truth,
    fitted,
    mixture,
    refusal,
    walks,
)
from sklearn.exceptions import NotFittedError

import headwater as hw
from headwater.estimators.sequences import check_sequences, transition_counts

# Probabilities


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
    # Symbols 2 and 3 never come: maximum likelihood has no rows for them, and gives them equal probabilities.
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
    # The other prior keeps its default, which serves modes and means.
    for algorithm in ("em", "soem", "boem"):
        model = fitted(mixture(algorithm, 1, startprob_prior=2.0))
        _, steps = naive.chain_counts(SEQUENCES, S)
        matrix = 0.1 + steps.sum(axis=0)
        tolerance = 0.05 if algorithm == "soem" else 1e-9
        np.testing.assert_allclose(model.transmat_[0], matrix / matrix.sum(axis=1, keepdims=True), atol=tolerance)


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_planted_chains_are_found(algorithm, way):
    sequences, kinds = walks(1500, seed=1, longest=25)
    model = getattr(mixture(algorithm, warm_up=500), way)(sequences)
    assert error_to_truth(model) < 0.07
    long = [place for place, sequence in enumerate(sequences) if len(sequence) > 15]
    agreed = np.mean(model.predict([sequences[place] for place in long]) == kinds[long])
    assert max(agreed, 1.0 - agreed) > 0.97


# Formats of sequences


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


# Errors

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
