"""Streams of MarkovMixture, and samples."""

import copy
import pickle

import numpy as np
import pytest
from naive import multinomial as naive
from scipy import special
from sequence_models import (
    KINDS,
    ONLINE,
    SEQUENCES,
    STEPS,
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

import headwater as hw

ADDING = ("auto", "boem", "online-vb", "quasi-bayes")

# Streams


@pytest.mark.covering("algorithm")
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
