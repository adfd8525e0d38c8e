"""Starts of streams: labels, seeds of counts, and products on one thread."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_info

import headwater as hw
from headwater.core.batch import Batch, drop_zeros
from headwater.core.row_keys import order_labelled_first
from headwater.families.multinomial_geometry import Geometry
from headwater.kernels.parallel import one_blas_thread, run_tasks
from headwater.models.planes import plane_groups
from headwater.models.seeding import named_assignments, seed_assignments


def labelled(*labels):
    return Batch(np.zeros((len(labels), 1)), labels=np.array(labels))


def documents(n, n_components, rng, width=60, length=30):
    """Return rows of sources that have half of their words in common, and the source of each."""
    own = rng.dirichlet(np.full(width, 0.2), size=n_components)
    sources = rng.integers(n_components, size=n)
    return rng.multinomial(length, 0.5 * own[sources] + 0.5 * own.mean(axis=0)).astype(float), sources


# Which rows fit


def test_without_labels_the_order_stays():
    order = np.array([3, 0, 2, 1])
    assert order_labelled_first(Batch(np.zeros((4, 1))).labels, order, 2) is order


def test_labels_come_first_but_are_not_more_than_half_if_there_are_others():
    batch = labelled(0, -1, 1, -1, 2, -1, 0, -1)
    order = np.arange(8)
    assert order_labelled_first(batch.labels, order, 4).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert sorted(order_labelled_first(batch.labels, np.array([1, 3, 5, 7, 0, 2, 4, 6]), 4)[:4].tolist()) == [0, 1, 2, 3]
    assert order_labelled_first(batch.labels, order, 8).tolist() == list(range(8))


def test_few_labels_are_all_among_the_first():
    labels = np.full(1000, -1)
    labels[[700, 800, 990]] = [0, 1, 2]
    batch = Batch(np.zeros((1000, 1)), labels=labels)
    first = order_labelled_first(batch.labels, np.random.default_rng(0).permutation(1000), 100)
    assert {700, 800, 990} <= set(first[:100].tolist())
    assert sorted(first.tolist()) == list(range(1000))


def test_rows_without_a_label_are_not_missing_when_most_have_one():
    labels = np.zeros(1000, dtype=int)
    labels[-300:] = -1
    first = order_labelled_first(labels, np.arange(1000), 200)
    assert np.count_nonzero(labels[first[:200]] < 0) == 100
    assert np.count_nonzero(labels[order_labelled_first(labels, np.arange(1000), 900)[:900]] < 0) == 300


def test_named_components_speak_for_themselves_if_all_are_named():
    assert named_assignments(labelled(0, -1, 1), 3) is None
    assert named_assignments(Batch(np.zeros((3, 1))), 2) is None
    np.testing.assert_array_equal(named_assignments(labelled(1, -1, 0), 2), [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])


# Waiting for labels


def stream(model, rows, labels, size):
    for at in range(0, rows.shape[0], size):
        model.partial_fit(rows[at : at + size], labels=labels[at : at + size])
    return model


@pytest.mark.parametrize("size", [1, 37, 2500, 9000])
def test_the_warm_up_waits_until_every_component_is_named_however_the_stream_is_cut(size):
    rows, _ = documents(9000, 3, np.random.default_rng(0))
    labels = np.full(9000, -1)
    labels[[5, 1000]] = 0, 1
    labels[3100] = 2
    model = stream(hw.MultinomialMixture(3, random_state=0), rows[:3100], labels[:3100], size)
    assert model._runtime.warming_up
    model.partial_fit(rows[3100:3101], labels=labels[3100:3101])
    assert not model._runtime.warming_up
    assert model._state.base.progress.rows_seen == 3101


def test_the_warm_up_does_not_wait_forever_nor_without_labels_nor_if_told_how_long():
    rows, _ = documents(9000, 3, np.random.default_rng(0))
    labels = np.full(9000, -1)
    labels[5] = 0
    waited = hw.MultinomialMixture(3, random_state=0).partial_fit(rows, labels=labels)
    assert waited._state.base.progress.rows_seen == 8000
    assert hw.MultinomialMixture(3, random_state=0).partial_fit(rows)._state.base.progress.rows_seen == 2000
    told = hw.MultinomialMixture(3, random_state=0, warm_up=500).partial_fit(rows, labels=labels)
    assert told._state.base.progress.rows_seen == 500


def test_a_broken_warm_up_forgets_the_names_it_was_told(monkeypatch):
    rows, _ = documents(3000, 2, np.random.default_rng(0))
    model = hw.MultinomialMixture(2, random_state=0).partial_fit(rows[:10], labels=[0] + [-1] * 9)
    named = model._state.buffer.named
    monkeypatch.setattr(type(model._learner.model), "start", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(rows[10:], labels=[1] + [-1] * 2989)
    assert model._state.buffer.named == named == {0}
    assert model.n_samples_seen_ == 10


@pytest.mark.parametrize("how", ["fit", "stream"])
def test_a_few_labels_name_the_components(how):
    """Two labels for each of six sources, anywhere in 6000 rows, are enough to number the components."""
    rng = np.random.default_rng(3)
    rows, sources = documents(6000, 6, rng)
    labels = np.full(6000, -1)
    for source in range(6):
        known = rng.choice(np.flatnonzero(sources == source), 2, replace=False)
        labels[known] = source
    model = hw.MultinomialMixture(6, random_state=0)
    if how == "fit":
        model.fit(csr_array(rows), labels=labels)
    else:
        stream(model, csr_array(rows), labels, 500)
    assert (model.predict(rows) == sources).mean() > 0.95


# Seeds of counts


@pytest.mark.parametrize("sparse", [False, True])
def test_views_are_unit_vectors_at_hellinger_distance(sparse):
    rng = np.random.default_rng(1)
    rows, _ = documents(50, 3, rng, width=20)
    rows[7] = 0.0
    batch = Batch(drop_zeros(rows) if sparse else rows)
    plain, toned = Geometry.of(batch, 3).views(np.arange(50))
    lengths = np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    roots = np.sqrt(rows / lengths)
    np.testing.assert_allclose(plain @ plain.T, roots @ roots.T, atol=1e-12)  # columns without a count may be missing
    norms = np.ones(50)
    norms[7] = 0.0
    np.testing.assert_allclose(np.linalg.norm(toned, axis=1), norms, atol=1e-9)


def test_few_directions_keep_the_distances_between_sources():
    rng = np.random.default_rng(2)
    rows, sources = documents(600, 3, rng, width=500, length=200)
    view = Geometry.of(Batch(drop_zeros(rows)), 3).views(np.arange(600))[0]
    assert view.shape[1] < 60
    centres = np.stack([view[sources == source].mean(axis=0) for source in range(3)])
    nearest = np.argmin(((view[:, None] - centres) ** 2).sum(axis=2), axis=1)
    assert (nearest == sources).mean() > 0.99


def test_farthest_first_finds_a_rare_source_and_leaves_empty_rows_alone():
    """The third source has one row in a hundred: k-means++ may miss it, the farthest row does not."""
    rng = np.random.default_rng(4)
    rows = np.zeros((400, 3))
    kinds = np.repeat([0, 1, 2], [200, 196, 4])
    rows[np.arange(400), kinds] = 1.0
    rows += 0.01 * rng.random((400, 3))
    rows[:50] = 0.0
    found = seed_assignments("farthest-first", rows, Batch(rows), 3, rng, 3, 1)
    groups = [found[(kinds == kind) & (np.arange(400) >= 50)].argmax(axis=1) for kind in range(3)]
    assert all(len(set(group.tolist())) == 1 for group in groups)
    assert len({int(group[0]) for group in groups}) == 3


def test_farthest_first_keeps_away_from_labelled_centres_of_any_component():
    rng = np.random.default_rng(5)
    rows = np.eye(3)[np.repeat([0, 1, 2], 50)] + 0.01 * rng.random((150, 3))
    for named in range(3):
        labels = np.full(150, -1)
        labels[0] = named
        for _ in range(20):
            found = seed_assignments("farthest-first", rows, Batch(rows, labels=labels), 3, rng, 1, 1)
            assert len(np.unique(found.argmax(axis=1))) == 3


def test_given_probabilities_come_with_equal_weights():
    """The weights of a seed belong to its own components, which may have another order."""
    rng = np.random.default_rng(6)
    rows, _ = documents(300, 3, rng)
    given = rng.dirichlet(np.ones(60), size=3)
    model = hw.MultinomialMixture(3, algorithm="em", probabilities_init=given, max_iter=0).fit(rows)
    np.testing.assert_allclose(model.weights_, 1.0 / 3.0)
    np.testing.assert_allclose(model.probabilities_, given, atol=1e-12)


# Products on one thread


def threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_products_are_on_one_thread_and_the_number_comes_back():
    before = threads()
    with one_blas_thread():
        assert set(threads()) == {1}
        with one_blas_thread():
            assert set(threads()) == {1}
    assert threads() == before
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert threads() == before


def test_the_number_is_not_lost_between_threads():
    before = threads()

    def work(index):
        with one_blas_thread():
            sleep(0.001 * (index % 3))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(60)))
        assert set(pool.map(lambda _: tuple(threads()), range(12))) == {tuple(before)}
    assert threads() == before


def test_workers_multiply_on_one_thread_if_whoever_sent_them_said_so():
    with one_blas_thread():
        found = run_tasks(lambda _: (sleep(0.01), tuple(threads()))[1], range(8), 2)
    assert {number for one in found for number in one} == {1}


def test_a_worker_does_its_own_work_and_does_not_wait_for_the_pool():
    def outer(index):
        return sum(run_tasks(lambda task: task * index, range(4), 2))

    assert run_tasks(outer, range(6), 2) == [6 * index for index in range(6)]


def test_threads_do_not_change_a_bit_of_dense_counts():
    X = np.random.default_rng(0).poisson(2.0, size=(20_000, 300)).astype(float)
    one, two = (hw.MultinomialMixture(7, random_state=0, n_threads=n, warm_up=500, reservoir=0).partial_fit(X) for n in (1, 2))
    np.testing.assert_array_equal(one.probabilities_, two.probabilities_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_parts_that_forget_everything_do_not_wait_for_each_other():
    """A step of 1 has a separate path through the E-step, with more words than one thread reads out, on the pool."""
    X = (np.random.default_rng(0).random((64, 20_000)) < 0.5).astype(float)
    model = hw.MultinomialMixture(2, algorithm="boem", half_life=1e-3, parts=2, warm_up=4, n_threads=2, random_state=0)
    model.partial_fit(X[:4]).partial_fit(X)
    assert np.isfinite(model.score_samples(X[:3])).all()


def test_planes_through_rows_of_any_size_are_found():
    """A ridge of fixed size is lost beside rows of 1e9, some of which are equal."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = np.zeros((50, 4))
        rows[:, 0], rows[:25, 1:] = 1.0, 1e9 * rng.normal()
        groups, distance = plane_groups(rows, np.ones(50), np.full(50, -1), 2, rng, 3, False)
        assert set(groups) <= {0, 1} and np.isfinite(distance)
