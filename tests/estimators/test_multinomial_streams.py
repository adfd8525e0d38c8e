"""Streams of MultinomialMixture: the cost of a chunk, interrupted calls, copies, files, and unusual rows."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from count_models import (
    ONLINE,
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
    error_to,
    given,
    mixture,
    unconverged,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import estimator_checks

import headwater as hw
from headwater.checks import EXPECTED_FAILURES, SPARSE_FAILURES, check_estimator
from headwater.core import steps
from headwater.core.records import arrays_of
from headwater.core.statistics import LARGEST_COUNT
from headwater.estimators import model_file
from headwater.families import multinomial as family_file

# Costs


WIDE = 100_000


@pytest.fixture(scope="module")
def wide_rows():
    """Return chunks of short documents over a large vocabulary, and a chunk with every word."""
    rng = np.random.default_rng(10)
    heads = [rng.integers(0, WIDE, size=(300, 5)) for _ in range(6)]
    chunks = [sparse.csr_array((np.ones(1500), (np.repeat(np.arange(300), 5), head.ravel())), (300, WIDE)) for head in heads]
    return sparse.csr_array(np.ones((1, WIDE))), chunks


# With so many components "auto" keeps no reservoir.
@pytest.mark.parametrize(
    ("algorithm", "many"), [pytest.param("auto", 100, marks=pytest.mark.slow), ("boem", 20), ("online-em", 20)]
)
def test_a_batch_costs_its_words_and_not_the_vocabulary(algorithm, many, wide_rows):
    everything, chunks = wide_rows
    start = np.full((many, WIDE), 1.0 / WIDE)
    model = mixture(algorithm, many, probabilities_init=start, weights_init=np.full(many, 1 / many), warm_up=1)
    model.partial_fit(everything)
    table, dense = WIDE * many * 8, 300 * WIDE * 8
    model.partial_fit(chunks[0])
    tracemalloc.start()
    try:
        for chunk in chunks[1:]:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            model.partial_fit(chunk)
            _, peak = tracemalloc.get_traced_memory()
            # The words of a chunk, of an unfinished batch and of the version before, but no whole table.
            assert peak - before < 0.3 * table < dense
    finally:
        tracemalloc.stop()


def test_a_start_costs_its_words_and_not_the_vocabulary():
    rng = np.random.default_rng(11)
    width, k = 50_000, 40
    rows = sparse.csr_array((np.ones(1000), (np.repeat(np.arange(200), 5), rng.integers(0, width, 1000))), (200, width))
    model = mixture("auto", k, warm_up=150)
    tracemalloc.start()
    try:
        model.partial_fit(rows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.7 * width * k * 8


@pytest.mark.parametrize("algorithm", ["auto", "boem", "online-em"])
def test_one_row_costs_its_words_and_not_the_table(algorithm):
    width, k = 20_000, 50
    start = np.full((k, width), 1.0 / width)
    model = mixture(algorithm, k, probabilities_init=start, weights_init=np.full(k, 1 / k), warm_up=1)
    row = np.zeros(width)
    row[::1000] = 1.0
    model.partial_fit(sparse.csr_array(np.ones((1, width))))
    model.learn_one(row).learn_one(row)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        model.learn_one(row)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 0.3 * width * k * 8


def test_a_model_that_is_kept_does_not_grow_with_the_stream():
    model = mixture("boem").partial_fit(SPARSE)
    kept = copy.copy(model)
    sizes = []
    for _ in range(5):
        model.partial_fit(SPARSE)
        sizes.append(len(pickle.dumps(model)))
    assert max(sizes) - min(sizes) < 100
    assert kept.n_samples_seen_ == 400


# Interrupted calls, copies, files


class Broken(Exception):
    pass


def breaking(monkeypatch, name, calls):
    """Return a kernel that raises at its n-th call."""
    real, left = getattr(family_file, name), [calls]

    def kernel(*arguments):
        left[0] -= 1
        if left[0] == 0:
            real(*arguments)  # what it writes is written
            raise Broken
        return real(*arguments)

    monkeypatch.setattr(family_file, name, kernel)


@pytest.mark.parametrize(
    ("algorithm", "kernel", "calls"),
    [
        (hw.Auto(batch_size=40), "estep_sparse", 3),
        (hw.OnlineEM(batch_size=40), "estep_sparse", 3),
        (hw.OnlineEM(batch_size=40), "group_sums", 3),
        (hw.QuasiBayes(batch_size=40), "estep_polya", 3),
        ("boem", "sweep_sparse", 3),
        (hw.OnlineEM(batch_size=1), "sweep_sparse", 3),
    ],
)
@pytest.mark.parametrize("parts", [1, 2])
def test_a_chunk_that_is_broken_off_leaves_the_model_as_it_was(algorithm, kernel, calls, parts, monkeypatch):
    monkeypatch.setattr(steps, "SWEEP_ROWS", 40)
    model, wanted = (mixture(algorithm, parts=parts, n_threads=1).partial_fit(SPARSE[:215]) for _ in range(2))
    before, probabilities = content(model), model.probabilities_
    with monkeypatch.context() as patched:
        breaking(patched, kernel, calls)
        with pytest.raises(Broken):
            model.partial_fit(SPARSE[215:])
    unchanged = content(model) == before
    assert unchanged and model.n_samples_seen_ == 215
    np.testing.assert_array_equal(model.probabilities_, probabilities)
    assert_same(model.partial_fit(SPARSE[215:]), wanted.partial_fit(SPARSE[215:]))


@pytest.mark.parametrize("kernel", ["estep_sparse", "group_sums"])
def test_a_warm_up_that_is_broken_off_leaves_the_model_as_it_was(kernel, monkeypatch):
    model = mixture().partial_fit(SPARSE[:60])
    with monkeypatch.context() as patched:
        breaking(patched, kernel, 3)
        with pytest.raises(Broken):
            model.partial_fit(SPARSE[60:])
    assert model.n_samples_seen_ == 60
    assert_same(copy.deepcopy(model).partial_fit(SPARSE[60:]), mixture().partial_fit(SPARSE[:60]).partial_fit(SPARSE[60:]))
    # The rows of the interrupted chunk are not kept either.
    assert_same(model, mixture().partial_fit(SPARSE[:60]))


STREAMS = [*ONLINE, hw.OnlineEM(batch_size=1), hw.OnlineEM(batch_size=30), hw.OnlineVB(batch_size=30)]


@pytest.mark.parametrize("algorithm", STREAMS)
@pytest.mark.parametrize("half_life", [None, 50.0])
def test_a_copy_shares_nothing_that_changes(algorithm, half_life):
    model = mixture(algorithm, half_life=half_life).partial_fit(SPARSE[:160])
    kept, copied = content(model), copy.copy(model)
    answers = model.probabilities_, model.score_samples(X)
    for at in range(160, 400, 48):
        model.partial_fit(SPARSE[at : at + 48])
    unchanged = content(copied) == kept
    assert unchanged
    np.testing.assert_array_equal(copied.probabilities_, answers[0])
    np.testing.assert_array_equal(copied.score_samples(X), answers[1])
    now = content(model)
    copied.partial_fit(SPARSE[:300])
    unchanged = content(model) == now
    assert unchanged


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("algorithm", STREAMS)
@pytest.mark.parametrize(("seen", "half_life"), [(60, None), (175, None), (175, 50.0)])
def test_a_stream_that_is_stored_and_loaded_is_never_stopped(algorithm, seen, half_life):
    model = mixture(algorithm, half_life=half_life).partial_fit(SPARSE[:seen])
    loaded = pickle.loads(pickle.dumps(model))
    for at in range(seen, 400, 45):
        model.partial_fit(SPARSE[at : at + 45])
        loaded = pickle.loads(pickle.dumps(loaded)).partial_fit(SPARSE[at : at + 45])
    assert_same(model, loaded)
    np.testing.assert_array_equal(model.score_samples(X), loaded.score_samples(X))


@pytest.mark.parametrize("algorithm", STREAMS)
def test_reading_changes_nothing_and_neither_does_the_cut(algorithm):
    quiet, read = mixture(algorithm).partial_fit(SPARSE), mixture(algorithm)
    for at in range(0, 400, 33):
        read.partial_fit(SPARSE[at : at + 33])
        before = content(read)
        assert_sound(read, X[:5])
        read.score_one(X[0])
        unchanged = content(read) == before
        assert unchanged
    assert_close(read, quiet, 1e-7)


def test_the_callers_rows_are_neither_changed_nor_kept():
    rows, model, wanted = SPARSE.copy(), mixture("boem", warm_up=300), mixture("boem", warm_up=300).partial_fit(SPARSE[:200])
    model.partial_fit(rows[:200])
    for array, kept in zip((rows.data, rows.indices, rows.indptr), (SPARSE.data, SPARSE.indices, SPARSE.indptr), strict=True):
        np.testing.assert_array_equal(array, kept)
    rows.data[:] = 7.0
    assert_same(model.partial_fit(SPARSE[200:]), wanted.partial_fit(SPARSE[200:]))


@pytest.mark.parametrize("shape", [(V,), (1, V), (K, V)])
def test_a_prior_that_the_caller_changes_later_is_not_changed(shape):
    prior = np.full(shape, 2.0)
    k = shape[0] if len(shape) == 2 else K
    model, wanted = (mixture("boem", k, probability_concentration_prior=one).partial_fit(X) for one in (prior, prior.copy()))
    prior[...] = 1e4
    np.testing.assert_array_equal(model.probabilities_, wanted.probabilities_)
    np.testing.assert_allclose(model.partial_fit(X).probabilities_, wanted.partial_fit(X).probabilities_)


@pytest.mark.parametrize("k", [1, K])
def test_a_start_that_the_caller_changes_later_is_not_changed(k):
    start = given(k=k)
    wanted = start["probabilities_init"].copy()
    model = mixture("em", k, max_iter=0, **start).fit(SPARSE[:3])
    start["probabilities_init"][...] = 0.5
    np.testing.assert_allclose(model.probabilities_, wanted)


# Edges


@pytest.mark.covering()
@pytest.mark.parametrize("algorithm", ["em", "vb", *ONLINE])
@pytest.mark.parametrize(
    ("k", "rows"),
    [
        (1, X[:50]),
        (3, X[:50, :1]),
        (3, np.repeat(X[:1], 50, axis=0)),
        (6, np.repeat(X[:3], 10, axis=0)),
        (3, np.eye(V)[np.arange(50) % V]),
        (3, np.zeros((20, 4))),
        (3, np.vstack([np.zeros((10, V)), X[:20]])),
        (2, np.full((10, 3), 1e6)),
        (2, X[:20] * 1e-6),
        (2, np.full((6, 2), LARGEST_COUNT)),
        (3, np.repeat(np.eye(300)[:1] + np.eye(300)[7:8], 120, axis=0)),
        (3, np.zeros((120, 300))),
        (3, np.eye(300)[np.arange(120) % 300]),
    ],
    ids=["one component", "one column", "equal rows", "more components than rows", "one word", "zeros", "some zeros", "large",
         "small", "largest", "equal and wide", "zeros and wide", "one word and wide"],
)  # fmt: skip
def test_odd_rows_leave_a_sound_model(algorithm, k, rows):
    with unconverged():
        assert_sound(mixture(algorithm, k, warm_up=15).fit(sparse.csr_array(rows)), rows)
    if algorithm in ONLINE:
        assert_sound(mixture(algorithm, k, warm_up=4).partial_fit(rows[:1]).partial_fit(rows[1:]), rows)


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("warm_up", [1, 2, "auto"])
def test_a_stream_of_single_rows(algorithm, warm_up):
    model = mixture(algorithm, 4, warm_up=warm_up)
    for row in range(6):
        model.partial_fit(SPARSE[[row]])
        assert_sound(model, X[:3])


@pytest.mark.parametrize("prior", [1e-3, 1e3])
@pytest.mark.parametrize("algorithm", ["auto", "boem", "online-vb", "quasi-bayes", "vb"])
def test_weak_and_strong_priors(algorithm, prior):
    model = mixture(algorithm, probability_concentration_prior=prior).fit(SPARSE)
    assert_sound(model, X)
    if prior == 1e3:
        np.testing.assert_allclose(model.probabilities_, 1 / V, atol=0.25)


@pytest.mark.parametrize("prior", [1e-3, 1e3])
@pytest.mark.parametrize("algorithm", ["auto", "em"])
def test_weak_and_strong_priors_of_the_weights(algorithm, prior):
    options = {"weight_concentration_prior": prior}
    if algorithm == "em" and prior < 1.0:
        with pytest.raises(ValueError, match="weight_concentration_prior"):
            mixture(algorithm, **options).fit(X)
        return
    model = mixture(algorithm, **options).fit(SPARSE)
    assert_sound(model, X)
    if prior == 1e3:
        np.testing.assert_allclose(model.weights_, 1 / K, atol=0.05)


def test_fewer_rows_than_components_are_refused_by_fit_and_taken_by_streams():
    with pytest.raises(ValueError, match="n_samples >= n_components"):
        mixture(k=5).fit(X[:3])
    assert_sound(mixture(k=5).partial_fit(X[:3]), X[:5])


@pytest.mark.parametrize("method", ["auto", "kmeans", "farthest-first", "k-means++", "random", "random_from_data"])
def test_every_start(method):
    for rows in (X, SPARSE):
        model = mixture(init_params=method, warm_up="auto").fit(rows)
        assert_sound(model, X)
    assert error_to(mixture(init_params=method, n_init=5).fit(docs(2000, length=60)[0])) < 0.05


def test_settings_may_change_between_chunks():
    model = mixture("boem").partial_fit(X[:150])
    changes = (
        {"half_life": 50.0},
        {"algorithm": "online-em"},
        {"parts": 2},
        {"algorithm": "auto"},
        {"parts": 1},
        {"half_life": None},
    )
    for options in changes:
        model.set_params(**options).partial_fit(SPARSE[150:200])
        assert_sound(model, X)
    assert model.n_samples_seen_ == 450
    with pytest.raises(ValueError, match="n_components cannot change"):
        model.set_params(n_components=4).partial_fit(X)
    with pytest.raises(ValueError, match="probability_concentration_prior cannot change"):
        model.set_params(n_components=K, probability_concentration_prior=2.0).partial_fit(X)
    model.set_params(probability_concentration_prior=None).partial_fit(X)
    assert_sound(model, X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"probability_concentration_prior": 0.0}, "probability_concentration_prior"),
        ({"probability_concentration_prior": -1.0}, "probability_concentration_prior"),
        ({"probability_concentration_prior": np.ones(V + 1)}, "probability_concentration_prior"),
        ({"probability_concentration_prior": np.ones((V, K))}, "probability_concentration_prior"),
        ({"probability_concentration_prior": np.full(V, np.nan)}, "probability_concentration_prior"),
        ({"probability_concentration_prior": [0.0] * V}, "probability_concentration_prior must be positive"),
        ({"probability_concentration_prior": 0.5, "algorithm": "em"}, "at least 1"),
        ({"probability_concentration_prior": 0.5, "algorithm": "soem"}, "at least 1"),
        ({"probabilities_init": np.ones((K, V))}, "sum to 1"),
        ({"probabilities_init": -TOPICS}, "not negative"),
        ({"probabilities_init": TOPICS[:2]}, "shape"),
        ({"weights_init": [0.5, 0.5]}, "shape"),
        ({"weights_init": [0.5, 0.6, 0.7]}, "normalized"),
        ({"algorithm": "moment-matching"}, "cannot be learned by"),
        ({"init_params": "best"}, "init_params"),
        ({"k": 0}, "n_components"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(options, words):
    with pytest.raises(ValueError, match=words) as caught:
        mixture(**options).fit(X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("k", [1, 2])
def test_the_checks_of_scikit_learn(k):
    # With one component the start is not random; only the check that takes a mixture for a classifier may fail.
    expected = {**SPARSE_FAILURES, **(EXPECTED_FAILURES if k > 1 else {})}
    model = hw.MultinomialMixture(k)
    results = estimator_checks.check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(results) > 40
    assert [(result["check_name"], str(result["exception"])) for result in results if result["status"] == "failed"] == []


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_laws_and_the_checks_together():
    check_estimator(hw.MultinomialMixture())


@pytest.mark.parametrize("model", [hw.MultinomialMixture(3, random_state=0), hw.GaussianMixture(3, random_state=0)])
def test_pruning_nothing_changes_nothing(model):
    rows = np.random.default_rng(0).poisson(3.0, size=(60, 4)).astype(float)
    fitted = clone(model).fit(rows)
    np.testing.assert_allclose(fitted.prune(0.0).weights_, fitted.weights_, rtol=1e-12)
    np.testing.assert_allclose(fitted.prune(0.0).score_samples(rows), fitted.score_samples(rows), rtol=1e-12)
    some = fitted.prune(float(np.sort(fitted.weights_)[1]))
    assert some.n_components == 2
    kept = fitted.weights_[fitted.weights_ >= np.sort(fitted.weights_)[1]]
    np.testing.assert_allclose(some.weights_, kept / kept.sum(), rtol=1e-9)


def test_a_wide_dense_row_waits_as_what_is_in_it():
    model = hw.MultinomialMixture(2, random_state=0)
    row = np.zeros(5000)
    row[[3, 77]] = 2.0, 1.0
    model.learn_one(row)
    model.partial_fit(np.tile(row, (20, 1)))
    assert sum(array.nbytes for array in arrays_of(model._state.buffer)) < 5000


@pytest.mark.parametrize("weight", [1.0, 1e30])
@pytest.mark.parametrize("algorithm", ["quasi-bayes", "online-vb", "boem", "online-em", "auto", "em", "vb"])
def test_huge_counts_of_heavy_rows_are_learned(algorithm, weight):
    """The belief is that of other rows with the same total counts, and the file can be loaded."""
    X = np.repeat([[8.0, 1.0, 1.0], [1.0, 1.0, 8.0]], 100, axis=0)[np.random.default_rng(0).permutation(200)]
    for size in (1e32, 1e39):
        model = hw.MultinomialMixture(2, algorithm=algorithm, warm_up=60, random_state=0)
        learn = model.fit if algorithm in ("em", "vb") else model.partial_fit
        learn(X * size, sample_weight=np.full(200, weight))
        again = model_file.from_bytes(model_file.to_bytes(model))
        assert np.isfinite(again.score_samples(X * size)).all()
        order = np.argsort(again.probabilities_[:, 0])
        assert again.probabilities_[order] == pytest.approx(np.array([[0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]), abs=1e-6)
        assert again.weights_ == pytest.approx(0.5, abs=0.05)
