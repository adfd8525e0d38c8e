"""LatentDirichletAllocation: recovery, layouts and chunks, sizes, merging and copies."""

import copy
import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from naive import topics as naive
from scipy import sparse
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning
from topic_models import (
    METROPOLIS,
    SPARSE,
    TOPICS,
    K,
    V,
    X,
    assert_close,
    assert_same,
    assert_sound,
    content,
    docs,
    every,
    lda,
    one_sentence,
    order_of,
    small,
)

import headwater as hw
from headwater.core.simulated_algorithms import AutoSimulatedEM

# Recovery


@pytest.mark.covering("algorithm")
@every
@pytest.mark.parametrize("seed", [0, 1])
def test_topics_are_recovered_from_a_stream(algorithm, seed):
    model = lda(algorithm, doc_topic_prior=0.4, topic_word_prior=0.1, warm_up="auto", random_state=seed)
    for chunk in range(8):
        model.partial_fit(docs(500, seed=chunk))
    assert order_of(model)[1] < 0.08
    new = docs(500, seed=99)
    best = hw.completion_perplexity(TOPICS, new, 0.4)
    assert hw.completion_perplexity(model, new) < 1.01 * best
    bound = lda(doc_topic_prior=0.4).partial_fit(X).perplexity(new)
    assert model.perplexity(new) < bound * 1.01


@pytest.mark.parametrize("algorithm", ["auto", "simulated-em", "online-vb"])
def test_a_topic_that_dominates_hides_no_others(algorithm):
    rows = docs(3000, alpha=[0.1, 0.1, 1.0], length=100)
    model = lda(algorithm, topic_word_prior=0.1, warm_up="auto").partial_fit(rows)
    new = docs(300, seed=5, alpha=[0.1, 0.1, 1.0], length=100)
    assert order_of(model)[1] < 0.3
    assert hw.completion_perplexity(model, new) < 1.015 * hw.completion_perplexity(TOPICS, new, [0.1, 0.1, 1.0])


@pytest.mark.parametrize("seed", [0, 1])
def test_an_uneven_prior_is_learned(seed):
    truth = np.array([0.1, 0.1, 1.0])
    options = {"doc_topic_prior": "learn", "topic_word_prior": 0.1, "warm_up": "auto", "random_state": seed}
    model = lda(**options).partial_fit(docs(6000, alpha=truth, length=100))
    found = model.doc_topic_prior_[order_of(model)[0]]
    assert (found > 0.45 * truth).all() and (found < 1.6 * truth).all()
    assert model._read().parameters.proportions.tolist() == model.doc_topic_prior_.tolist()


def test_a_prior_that_is_not_learned_is_the_one_given():
    for given, wanted in ((None, [1 / 3] * 3), (0.7, [0.7] * 3), ([0.1, 0.2, 3.0], [0.1, 0.2, 3.0])):
        np.testing.assert_allclose(lda(doc_topic_prior=given).partial_fit(X).doc_topic_prior_, wanted)
    assert lda().partial_fit(X).topic_word_prior_ == pytest.approx(1 / 3)
    assert lda(topic_word_prior=0.05).partial_fit(X).topic_word_prior_ == 0.05


def test_drift_is_followed_with_a_half_life():
    other = TOPICS[:, np.arange(V).reshape(K, 4)[:, ::-1].ravel()]
    options = {"doc_topic_prior": 0.4, "topic_word_prior": 0.1}
    errors = {}
    for half_life in (None, 300.0):
        model = small(half_life=half_life, **options).partial_fit(docs(3000)).partial_fit(docs(1500, seed=1, topics=other))
        errors[half_life] = order_of(model, other)[1]
    assert errors[300.0] < 0.12 and errors[None] > 0.18


def test_components_are_pseudo_counts():
    model = lda("simulated-em", topic_word_prior=0.2).partial_fit(X)
    components = model.components_
    np.testing.assert_allclose(components / components.sum(axis=1, keepdims=True), model.topics_, rtol=1e-9)
    assert components.min() >= 0.2
    assert components.sum() == pytest.approx(400 * 40 + K * V * 0.2, rel=1e-6)


@pytest.mark.parametrize("algorithm", ["auto", "online-vb", "scvb0", "boem"])
def test_new_words_are_learned_under_a_small_prior(algorithm):
    model = small(algorithm, topic_word_prior=1e-3).partial_fit(np.pad(X, ((0, 0), (0, 1))))
    for seed in range(4):
        model.partial_fit(np.hstack([docs(300, seed=seed), np.full((300, 1), 20.0)]))
    assert model.topics_[:, -1].mean() > 0.15


# Layouts and cuts


@every
def test_every_layout_gives_the_same_bits(algorithm):
    frame = pd.DataFrame(X, columns=[f"w{v}" for v in range(V)])
    layouts = [X, SPARSE, sparse.csc_array(X), frame, sparse.coo_matrix(X), X.astype(int), np.asfortranarray(X)]
    wanted = small(algorithm).partial_fit(X)
    for rows in layouts[1:]:
        model = small(algorithm).partial_fit(rows)
        assert content(model)[0] == content(wanted)[0]
        np.testing.assert_array_equal(model.transform(rows), wanted.transform(X))
        np.testing.assert_array_equal(model.score_samples(rows), wanted.score_samples(X))


def test_zeros_that_are_written_down_change_nothing():
    rows = sparse.csr_array(X)
    rows.data[::3] = 0.0
    dense = rows.toarray()
    assert rows.nnz > np.count_nonzero(dense)
    one, other = (small().partial_fit(part) for part in (rows, dense))
    assert_close(one, other)
    np.testing.assert_array_equal(one.transform(rows), one.transform(dense))


@pytest.mark.covering("algorithm")
@every
@pytest.mark.parametrize("options", [{}, {"half_life": 60.0}, {"parts": 2}, {"doc_topic_prior": "learn"}])
def test_the_cut_changes_nothing(algorithm, options):
    whole = small(algorithm, **options).partial_fit(X)
    for size in (1, 37) if algorithm is not METROPOLIS else (37,):
        model = small(algorithm, **options)
        for begin in range(0, 400, size):
            model.partial_fit(X[begin : begin + size])
        assert_close(model, whole)


def test_the_number_of_threads_changes_nothing():
    rows = docs(3000, length=80)
    models = [lda(n_threads=n, warm_up=500).partial_fit(rows) for n in (1, 2)]
    assert_same(*models)
    np.testing.assert_array_equal(*(model.transform(rows) for model in models))
    np.testing.assert_array_equal(*(model.score_samples(rows) for model in models))


def test_one_row_at_a_time():
    one, other = small(), small()
    for row in X[:150]:
        one.learn_one(row)
    other.partial_fit(X[:150])
    assert_close(one, other)
    quick = one.transform_one(X[0])
    assert quick.shape == (K,) and quick.sum() == pytest.approx(1.0)
    assert np.isfinite(one.score_one(X[0]))
    names = pd.DataFrame(X, columns=list("abcdefghijkl"))
    named = small().partial_fit(names[:200])
    np.testing.assert_array_equal(named.transform_one({"a": 3, "f": 1}), named.transform_one([3, 0, 0, 0, 0, 1] + [0] * 6))
    with pytest.raises(ValueError, match="does not know") as caught:
        named.learn_one({"a": 1, "zebra": 2})
    one_sentence(caught)


def test_weights():
    weights = np.random.default_rng(1).uniform(0.0, 3.0, 400)
    model = small("scvb0").partial_fit(X, sample_weight=weights)
    assert_sound(model, X)
    kept = np.arange(400) % 3 > 0
    assert_close(small("scvb0").partial_fit(X, sample_weight=kept.astype(float)), small("scvb0").partial_fit(X[kept]))
    for scale in (1e-9, 1e9):
        assert_sound(small().partial_fit(X, sample_weight=np.full(400, scale)), X)


@every
def test_updates_score_before_they_learn(algorithm):
    model = small(algorithm)
    scores = np.concatenate([model.update(X[:123]), model.update(X[123:])])
    assert np.isnan(scores[:8]).all() and np.isfinite(scores[8:]).all()
    assert_close(model, small(algorithm).partial_fit(X))
    assert scores[-100:].mean() > -40.0 * np.log(V)


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("seen", [60, 175])
@every
def test_a_stream_that_is_stored_and_loaded_is_never_stopped(algorithm, seen):
    model = small(algorithm).partial_fit(X[:seen])
    loaded = pickle.loads(pickle.dumps(model))
    for begin in range(seen, 400, 45):
        model.partial_fit(X[begin : begin + 45])
        loaded = pickle.loads(pickle.dumps(loaded)).partial_fit(X[begin : begin + 45])
    assert_same(model, loaded)
    np.testing.assert_array_equal(model.transform(X), loaded.transform(X))


# fit


def test_passes_of_fit():
    model = lda(doc_topic_prior=0.4, warm_up="auto", max_iter=40).fit(X)
    assert model.converged_ and 2 < model.n_iter_ <= 40
    assert len(model.lower_bounds_) == model.n_iter_ and model.lower_bound_ == model.lower_bounds_[-1]
    assert (np.array(model.lower_bounds_) < 0.0).all()
    assert model.n_samples_seen_ == 400
    assert order_of(model)[1] < 0.1
    short = lda(max_iter=2, tol=0.0).fit(X)
    assert short.n_iter_ == 2 and not short.converged_
    model.partial_fit(X)
    assert model.n_samples_seen_ == 800 and not hasattr(model, "n_iter_")


def test_more_passes_are_better_and_the_rows_count_once():
    topics = np.random.default_rng(3).dirichlet(np.full(200, 0.05), size=10)
    rows, new = docs(600, topics=topics, alpha=0.2), docs(300, seed=9, topics=topics, alpha=0.2)
    few, many = (lda(k=10, max_iter=n, tol=0.0, doc_topic_prior=0.2, warm_up=100).fit(rows) for n in (1, 15))
    assert hw.completion_perplexity(many, new) < 0.95 * hw.completion_perplexity(few, new)
    assert many.components_.sum() == pytest.approx(600 * 40 + 200, rel=1e-3)


@pytest.mark.parametrize("n", [20, 60, 150])
def test_fit_of_few_documents_is_as_good_as_that_of_scikit_learn(n):
    rows, new = docs(n, length=60), docs(300, seed=9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = lda(doc_topic_prior=0.4, topic_word_prior=0.1, warm_up="auto", max_iter=50).fit(rows)
    theirs = decomposition.LatentDirichletAllocation(K, doc_topic_prior=0.4, topic_word_prior=0.1, random_state=0, max_iter=50)
    theirs.fit(rows)
    assert all(bound < 0.0 for bound in ours.lower_bounds_)
    assert hw.completion_perplexity(ours, new) < 1.03 * hw.completion_perplexity(theirs, new)


@pytest.mark.parametrize("algorithm", ["simulated-em", "online-vb", "scvb0", "boem"])
def test_fit_of_few_documents_scores_them_by_its_own_e_step(algorithm):
    model = lda(algorithm, warm_up="auto").fit(X[:50])
    longer = lda(algorithm, warm_up=10).fit(X[:50])
    assert model.n_iter_ == 1
    assert model.lower_bound_ == pytest.approx(longer.lower_bound_, rel=0.15)


@pytest.mark.parametrize("parts", [1, 2])
def test_fit_gives_the_same_bits_on_any_threads(parts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, two, again = (lda(n_threads=n, parts=parts).fit(X) for n in (1, 2, 2))
        other = lda(random_state=1, parts=parts).fit(X)
    assert_same(one, two)
    assert_same(two, again)
    assert content(one) != content(other)
    assert_sound(one, X)


def test_fit_goes_on_with_warm_start():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = lda(warm_start=True, max_iter=2, tol=0.0, doc_topic_prior=0.4).fit(X)
        first = lda(max_iter=1, doc_topic_prior=0.4).fit(X).lower_bound_
        model.fit(X)
    assert model.lower_bound_ > first  # the model has made three passes before its last
    assert model.n_samples_seen_ == 800


# Sizes


@pytest.mark.parametrize("algorithm", ["auto", "online-vb", "scvb0", "boem"])
def test_documents_of_no_words_and_of_very_many(algorithm):
    rows = X.copy()
    rows[[0, 5, 399]] = 0.0
    rows[7] = 100_000 * TOPICS[0]
    rows[300] = np.random.default_rng(2).multinomial(100_000, TOPICS[1])
    model = small(algorithm, doc_topic_prior=[0.5, 0.3, 0.2]).partial_fit(rows)
    assert_sound(model, rows)
    np.testing.assert_allclose(model.transform(np.zeros((2, V))), [[0.5, 0.3, 0.2]] * 2)
    np.testing.assert_allclose(model.score_samples(np.zeros((2, V))), 0.0, atol=1e-12)
    assert model.perplexity(np.zeros((2, V))) == 1.0
    assert_sound(small(algorithm).partial_fit(np.zeros((150, V))).partial_fit(X), rows)


WIDE, MANY = 100_000, 10


@pytest.mark.parametrize("algorithm", ["auto", "online-vb", "scvb0", "boem"])
def test_a_chunk_costs_its_words_and_not_the_vocabulary(algorithm):
    rng = np.random.default_rng(3)
    heads = [rng.integers(0, WIDE, size=(200, 5)) for _ in range(5)]
    chunks = [sparse.csr_array((np.ones(1000), (np.repeat(np.arange(200), 5), head.ravel())), (200, WIDE)) for head in heads]
    model = lda(algorithm, MANY, warm_up=1).partial_fit(sparse.csr_array(np.ones((1, WIDE))))
    model.partial_fit(chunks[0])
    tracemalloc.start()
    try:
        for chunk in chunks[1:]:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            model.partial_fit(chunk)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < 0.3 * WIDE * MANY * 8
    finally:
        tracemalloc.stop()


@pytest.mark.covering()
@pytest.mark.parametrize("algorithm", ["auto", "online-vb", "scvb0", "boem"])
@pytest.mark.parametrize(
    ("k", "rows"),
    [
        (1, X[:60]),
        (3, X[:60, :1]),
        (1, X[:60, :1]),
        (3, X[:1]),
        (3, np.repeat(X[:1], 60, axis=0)),
        (3, np.zeros((60, 3))),
        (3, np.eye(V)[np.arange(60) % V]),
        (50, X[:60]),
        (3, X[:60] * 1e-6),
        (2, np.array([[1e30, 0.0, 3.0], [0.0, 1e30, 1.0]] * 2)),
    ],
    ids=[
        "one topic",
        "one word",
        "one of each",
        "one document",
        "equal",
        "zeros",
        "one word each",
        "many topics",
        "tiny",
        "huge",
    ],
)
def test_odd_rows_leave_a_sound_model(algorithm, k, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in (lda(algorithm, k, warm_up=15).fit(rows), lda(algorithm, k, warm_up=4).partial_fit(rows[:1])):
            assert_sound(model, rows[:4])
    assert_sound(model.partial_fit(rows[1:]) if len(rows) > 1 else model, rows[:4])


@pytest.mark.covering("name", "value")
@every
@pytest.mark.parametrize("name", ["doc_topic_prior", "topic_word_prior"])
@pytest.mark.parametrize("value", [1e-8, 1e8])
def test_weak_and_strong_priors(algorithm, name, value):
    model = small(algorithm, **{name: value}).partial_fit(X)
    assert_sound(model, X[:20])
    if value == 1e8 and name == "doc_topic_prior":
        np.testing.assert_allclose(model.transform(X[:20]), 1 / 3, atol=1e-4)
    if value == 1e8 and name == "topic_word_prior":
        np.testing.assert_allclose(model.topics_, 1 / V, atol=1e-4)


# Merging, copies, parts


@pytest.mark.parametrize("algorithm", ["auto", "simulated-em", "online-vb", "scvb0"])
def test_branches_merge(algorithm):
    base = small(algorithm, doc_topic_prior=0.4, topic_word_prior=0.1).partial_fit(docs(1500))
    parts = [base.branch().partial_fit(docs(500, seed=seed)) for seed in (1, 2, 3)]
    merged = hw.merge(parts)
    assert merged.n_samples_seen_ == 3000
    assert order_of(merged)[1] < 0.1
    assert_close(merged, hw.merge([parts[2], hw.merge(parts[:2])]))
    mean = np.mean([order_of(part)[1] for part in parts])
    assert order_of(merged)[1] < mean + 0.02


def test_strangers_merge_by_what_they_are_alike_in():
    options = {"doc_topic_prior": 0.4, "topic_word_prior": 0.1, "warm_up": "auto"}
    one, other = (lda("online-vb", random_state=seed, **options).partial_fit(docs(3000, seed=seed)) for seed in (0, 1))
    merged = hw.merge([one, other])
    assert merged.n_samples_seen_ == 6000
    assert order_of(merged)[1] < 0.08
    with pytest.raises(ValueError, match="doc_topic_prior"):
        hw.merge([one, lda("online-vb", doc_topic_prior=0.3, topic_word_prior=0.1).partial_fit(X)])


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_learn_the_same_topics(parts):
    model = lda(parts=parts, doc_topic_prior=0.4, topic_word_prior=0.1, warm_up="auto").partial_fit(docs(6000))
    assert model.n_samples_seen_ == 6000
    assert order_of(model)[1] < 0.08


def test_a_copy_shares_nothing_that_changes():
    model = small().partial_fit(X[:160])
    copied, kept, answers = copy.copy(model), content(model), model.transform(X)
    model.partial_fit(X[160:])
    assert content(copied) == kept
    np.testing.assert_array_equal(copied.transform(X), answers)


@pytest.mark.covering
@pytest.mark.parametrize("seen", [60, 250], ids=["in warm-up", "in a batch"])
@pytest.mark.parametrize("parts", [1, 2])
def test_fit_goes_on_from_a_stream(seen, parts):
    model = lda(warm_start=True, max_iter=3, parts=parts, algorithm=AutoSimulatedEM(batch_size=64)).partial_fit(X[:seen])
    model.fit(X)
    assert model.n_samples_seen_ == 400 + seen
    assert model.components_.sum() == pytest.approx(40.0 * (400 + seen) + V, rel=0.02)
    assert all(bound < 0.0 for bound in model.lower_bounds_)


def test_parts_draw_by_themselves():
    model = lda(parts=2, algorithm=hw.SimulatedEM(batch_size=64)).partial_fit(X)
    model.partial_fit(np.tile(X[0], (32, 1)))
    one, two = (np.asarray(part.unfolded.summary.statistics.table) for part in model._state.unfolded.streams)
    assert not np.array_equal(one, two)


# Bayesian online EM


def test_counts_of_a_document_are_added_to_the_beliefs_of_the_topics():
    """The recursion of Bayesian online EM, with expected counts by enumeration in the place of draws."""
    topics, alpha, beta = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]]), np.array([0.5, 0.8]), 0.3
    start, copies = 50.0, 3000
    model = hw.LatentDirichletAllocation(
        2, algorithm=hw.BayesianOnlineEM(batch_size=copies), doc_topic_prior=alpha, topic_word_prior=beta,
        components_init=topics, start_weight=start, warm_up=0, random_state=0,
    )  # fmt: skip
    words = np.array([0, 1, 2, 2])
    counts = np.bincount(words, minlength=3).astype(float)
    model.partial_fit(np.tile(counts, (copies, 1)))
    belief = beta + start * len(words) * (alpha / alpha.sum())[:, None] * topics
    now = belief / belief.sum(axis=1, keepdims=True)
    probabilities, _ = naive.posterior(words, now.T, alpha)
    expected, _, _ = naive.expected(words, probabilities, now.T, alpha)
    np.testing.assert_allclose(model.components_, belief + copies * expected.T, rtol=0.03)


def test_documents_count_alike_whenever_they_come():
    """Of one topic nothing is drawn: the belief is prior and counts, in any order and in batches of any size."""
    prior = 0.7
    for size in (1, 7, 400):
        model = lda(hw.BayesianOnlineEM(batch_size=size), k=1, topic_word_prior=prior).partial_fit(X)
        np.testing.assert_allclose(model.components_[0], prior + X.sum(axis=0), rtol=1e-9)
        mode = lda(hw.BayesianOnlineEM(estimate="mode", batch_size=size), k=1, topic_word_prior=prior).partial_fit(X)
        np.testing.assert_allclose(mode.topics_, model.topics_, rtol=1e-9)
