"""Both samplers of topics, against enumeration and against the model."""

import numpy as np
import pytest
from naive import topics as naive
from scipy import stats
from topic_cases import Documents, topics_of

from headwater.kernels.topics import (
    log_dirichlet_step,
)


def repeated(words, topics, alpha, times, **options):
    return Documents(np.tile(naive.counts_of(words, len(topics)), (times, 1)), topics, alpha, **options)


def deviations(run, words, topics, alpha, wanted, groups=40, times=100):
    """Return the deviations, in standard errors, of statistic, proportions and tables over many copies of a document."""
    found = []
    for key in range(groups):
        documents = run(repeated(words, topics, alpha, times), key)
        parts = (documents.target / times, documents.proportions.mean(axis=0), documents.tables / times)
        found.append(np.concatenate([part.ravel() for part in parts]))
    wanted = np.concatenate([part.ravel() for part in wanted])
    errors = np.std(found, axis=0, ddof=1) / np.sqrt(groups)
    return np.abs(np.mean(found, axis=0) - wanted) / np.maximum(errors, 1e-9)


DOCUMENTS = [
    ([0, 1, 2], [0.7, 1.3]),
    ([0, 0, 1, 2, 2, 2], [1.0, 1.0]),
    ([0, 0, 0, 1], [0.05, 5.0]),
    ([3, 1, 1, 0], [0.05, 0.4, 5.0]),
    ([2, 2, 2, 2, 2], [5.0, 0.3, 1.0]),
    ([4], [0.5, 0.05, 2.0]),
]


def exactly(words, topics, alpha):
    alpha = np.asarray(alpha)
    return naive.expected(words, naive.posterior(words, topics, alpha)[0], topics, alpha)


# Gibbs


@pytest.mark.parametrize(("words", "alpha"), DOCUMENTS)
def test_conditionals_are_ratios_of_the_joint(words, alpha):
    topics, alpha = topics_of(5, len(alpha)), np.array(alpha)
    for chosen in naive.assignments(len(alpha), len(words))[::3]:
        for i in range(len(words)):
            others = [np.r_[chosen[:i], k, chosen[i + 1 :]] for k in range(len(alpha))]
            joint = np.exp([naive.log_joint(words, other, topics, alpha) for other in others])
            np.testing.assert_allclose(naive.conditional(words, chosen, i, topics, alpha), joint / joint.sum())


@pytest.mark.covering
@pytest.mark.parametrize("rao_blackwell", [True, False])
@pytest.mark.parametrize(("words", "alpha"), DOCUMENTS)
def test_gibbs_agrees_with_enumeration(words, alpha, rao_blackwell):
    topics = topics_of(5, len(alpha))

    def run(documents, key):
        return documents.gibbs(150, 10, rao_blackwell, key)

    assert deviations(run, words, topics, alpha, exactly(words, topics, alpha)).max() < 5.0


@pytest.mark.parametrize("wrong", [1.3, "reversed"])
def test_a_wrong_prior_would_be_seen(wrong):
    words, alpha = [3, 1, 1, 0], np.array([0.05, 0.4, 5.0])
    topics, other = topics_of(5, 3), alpha[::-1].copy() if wrong == "reversed" else alpha * wrong

    def run(documents, key):
        documents.alpha = other
        return documents.gibbs(150, 10, True, key)

    assert deviations(run, words, topics, alpha, exactly(words, topics, alpha)).max() > 20.0


@pytest.mark.parametrize("sweeps", [1, 2])
@pytest.mark.parametrize(("words", "alpha"), DOCUMENTS)
def test_one_sweep_draws_each_token_given_the_others(words, alpha, sweeps):
    words, topics, alpha = sorted(words), topics_of(5, len(alpha)), np.array(alpha)
    wanted = naive.expected(words, naive.swept(words, topics, alpha, sweeps), topics, alpha)

    def run(documents, key):
        return documents.gibbs(sweeps - 1, 1, False, key)

    assert deviations(run, words, topics, alpha, wanted, times=300).max() < 5.0


def test_tokens_of_fractional_counts_weigh_less_than_one():
    counts, alpha, topics = np.array([0.5, 0.0, 2.4, 1.0]), np.array([0.4, 1.1]), topics_of(4, 2)
    words, weights = [0, 2, 2, 2, 3], [0.5, 0.8, 0.8, 0.8, 1.0]
    for sweeps in (1, 3):
        wanted = naive.expected(words, naive.swept(words, topics, alpha, sweeps, weights), topics, alpha, weights)
        found = []
        for key in range(40):
            documents = Documents(np.tile(counts, (300, 1)), topics, alpha).gibbs(sweeps - 1, 1, False, key)
            parts = (documents.target / 300, documents.proportions.mean(axis=0), documents.tables / 300)
            found.append(np.concatenate([part.ravel() for part in parts]))
        errors = np.std(found, axis=0, ddof=1) / np.sqrt(40)
        wanted = np.concatenate([part.ravel() for part in wanted])
        assert (np.abs(np.mean(found, axis=0) - wanted) < 5.0 * errors + 1e-9).all()


def test_the_score_is_that_of_each_token_given_the_others():
    # Of one token it is exact; of two, each given the other's topic.
    topics, alpha = topics_of(5, 3), np.array([0.3, 1.0, 2.0])
    document = repeated([2], topics, alpha, 10).gibbs()
    assert document.score == pytest.approx(10 * np.log(topics[2] @ alpha / alpha.sum()))
    words = [1, 3]
    after = naive.swept(words, topics, alpha, 30)
    wanted = 0.0
    for probability, chosen in zip(after, naive.assignments(3, 2), strict=True):
        for i in range(2):
            held = np.eye(3)[chosen[1 - i]]
            wanted += probability * np.log(topics[words[i]] @ (held + alpha) / (1.0 + alpha.sum()))
    scores = [repeated(words, topics, alpha, 200).gibbs(30, 1, key=key).score / 200 for key in range(40)]
    assert abs(np.mean(scores) - wanted) < 5.0 * np.std(scores, ddof=1) / np.sqrt(40)


def test_draws_of_a_thousand_topics():
    rng = np.random.default_rng(1)
    k, n = 1000, 20_000
    topics, alpha = rng.gamma(0.5, size=(2, k)), rng.gamma(0.3, size=k)
    topics /= topics.sum(axis=0)
    documents = Documents(np.tile([1.0, 0.0], (n, 1)), topics, alpha).gibbs(0, 1, False)
    wanted = n * topics[0] * alpha / (topics[0] @ alpha)
    many = wanted > 5.0
    found, wanted = (np.append(part[many], part[~many].sum()) for part in (documents.target[0], wanted))
    assert found.sum() == pytest.approx(n)
    assert stats.chisquare(found, wanted * found.sum() / wanted.sum()).pvalue > 1e-3
    exact = Documents([1.0, 0.0], topics, alpha).gibbs(0, 1, True)
    np.testing.assert_allclose(exact.target[0], topics[0] * alpha / (topics[0] @ alpha), rtol=1e-12, atol=0.0)


# Metropolis-Hastings


@pytest.mark.parametrize("alpha", [[1.0, 1.0], [0.05, 5.0, 0.7], [3.0, 0.2, 1.0, 1.0]])
def test_the_step_of_proposals_and_prior(alpha):
    rng, alpha = np.random.default_rng(2), np.array(alpha)
    for kappa in (0.5, 10.0, 300.0):
        current, proposed = rng.dirichlet(np.ones(len(alpha)), 2)
        found = log_dirichlet_step(kappa, current, np.log(current), proposed, np.log(proposed), alpha)
        assert found == pytest.approx(naive.log_step(kappa, current, proposed, alpha), rel=1e-9, abs=1e-9)
        assert found != pytest.approx(naive.printed_step(kappa, current, proposed, alpha), rel=1e-2)


SMOOTH = [([0, 1, 2], [0.7, 1.3]), ([0, 0, 1, 2, 2, 2], [1.0, 1.0]), ([3, 1, 1, 0], [1.0, 0.5, 5.0]), ([4], [0.5, 2.0, 3.0])]


@pytest.mark.covering
@pytest.mark.parametrize("rao_blackwell", [True, False])
@pytest.mark.parametrize(("words", "alpha"), SMOOTH)
def test_metropolis_agrees_with_enumeration(words, alpha, rao_blackwell):
    topics = topics_of(5, len(alpha))

    def run(documents, key):
        return documents.metropolis(200, 20, rao_blackwell, 4.0, key)

    wanted = exactly(words, topics, alpha)
    found = deviations(run, words, topics, alpha, wanted)
    assert found.max() < 5.0


def test_a_wrong_prior_of_metropolis_would_be_seen():
    words, alpha, topics = [3, 1, 1, 0], np.array([1.0, 0.5, 5.0]), topics_of(5, 3)

    def run(documents, key):
        documents.alpha = np.ones(3)
        return documents.metropolis(200, 20, True, 4.0, key)

    assert deviations(run, words, topics, alpha, exactly(words, topics, alpha)).max() > 20.0


@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_what_the_paper_prints_draws_from_something_else(alpha):
    words, alpha, topics = [0, 0, 0, 1, 2], np.array([alpha, 1.0]), topics_of(3, 2)
    counts, wanted = naive.counts_of(words, 3), exactly(words, topics, alpha)[0].sum(axis=0)
    rng = np.random.default_rng(3)
    right = naive.metropolis(counts, topics, alpha, 5.0, naive.log_step, 1500, rng)
    printed = naive.metropolis(counts, topics, alpha, 5.0, naive.printed_step, 1500, rng)
    assert np.abs(right - wanted).max() < 0.12
    assert np.abs(printed - wanted).max() > 0.2
    kernel = repeated(words, topics, alpha, 300).metropolis(300, 30, True, 5.0).target.sum(axis=0) / 300
    assert np.abs(kernel - wanted).max() < 0.06


def test_the_accepted_share_and_the_score_of_metropolis():
    topics, alpha = np.full((3, 2), 1.0 / 3.0), np.ones(2)
    flat = Documents([[3.0, 1.0, 0.0]], topics, alpha).metropolis(0, 400, kappa=1e-9)
    assert flat.accepted[0] == pytest.approx(1.0)  # proposals from the posterior itself
    assert flat.score == pytest.approx(4.0 * np.log(1.0 / 3.0))
    sharp = Documents(np.full((5, 3), 200.0), topics_of(3, 2), alpha).metropolis(0, 400, kappa=1e-9)
    assert 0.0 <= sharp.accepted[0] / 5 < 0.6


# Both samplers: simulate words and topics in turns, and compare with the prior


def turns(run, alpha, used, n=2000, length=8, rounds=6, v=4):
    """Return tokens of the first topic in each document, after topics and words were drawn in turns."""
    rng, topics, alpha = np.random.default_rng(4), topics_of(v, len(alpha), seed=5), np.array(alpha)
    held = np.array([rng.multinomial(length, share) for share in rng.dirichlet(alpha, n)])
    for turn in range(rounds):
        counts = sum(rng.multinomial(held[:, k], topics[:, k]) for k in range(len(alpha)))
        documents = Documents(counts, topics, used, apart=True)
        found = run(documents, turn).target.reshape(n, v, len(alpha))
        np.testing.assert_allclose(found.sum(axis=2), counts)
        held = np.round(found.sum(axis=1)).astype(int)
    wanted = n * stats.betabinom(length, alpha[0], alpha[1:].sum()).pmf(np.arange(length + 1))
    return stats.chisquare(np.bincount(held[:, 0], minlength=length + 1), wanted).pvalue


@pytest.mark.parametrize("alpha", [[0.3, 0.8], [2.0, 0.5, 1.0]])
def test_gibbs_keeps_the_joint_distribution(alpha):
    def run(documents, key):
        return documents.gibbs(60, 1, False, key)

    assert turns(run, alpha, alpha) > 1e-3
    assert turns(run, alpha, np.multiply(alpha, [1.3] + [1.0] * (len(alpha) - 1))) < 1e-6


@pytest.mark.parametrize("alpha", [[0.7, 0.8], [2.0, 0.5, 1.0]])
def test_metropolis_keeps_the_joint_distribution(alpha):
    def run(documents, key):
        return documents.metropolis(80, 1, False, 4.0, key)

    assert turns(run, alpha, alpha) > 1e-3
    assert turns(run, alpha, np.multiply(alpha, [1.3] + [1.0] * (len(alpha) - 1))) < 1e-6
