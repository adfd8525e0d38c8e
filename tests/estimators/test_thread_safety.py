"""One model on several threads: each row is learned once, and readers see the model before a call or after it."""

import copy
import pickle
import threading

import joblib
import numpy as np
import pytest
from every_model import KINDS, learned, stream_of
from sklearn.base import clone

import headwater as hw
from headwater.estimators.calls import lock_of

THREADS, CALLS, ROWS = 4, 50, 8


def together(*works):
    """Run functions on threads that start together, and raise the first exception."""
    ready, errors = threading.Barrier(len(works)), []

    def run(work):
        try:
            ready.wait(30)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def calls(model, chunks, name="partial_fit"):
    return lambda: [getattr(model, name)(**chunk) for chunk in chunks]


@pytest.mark.covering("kind")
@pytest.mark.parametrize("name", ["partial_fit", "update"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_learned_once(kind, name):
    model, chunks = KINDS[kind][0](), stream_of(kind, (ROWS,) * CALLS)
    together(*(calls(model, chunks, name) for _ in range(THREADS)))
    assert model.n_samples_seen_ == THREADS * CALLS * ROWS
    assert model._read().stream.progress.rows_seen == THREADS * CALLS * ROWS


# One of each way that a call goes: batches, row by row, shards, tables, two arrays, chains, draws, columns.
OFTEN = ("gaussian", "sweeping", "parts", "multinomial", "regression", "chain", "topics", "mixed")


@pytest.mark.parametrize("kind", [kind if kind in OFTEN else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS])
def test_readers_see_whole_chunks_and_no_exceptions(kind, tmp_path):
    model, chunks = KINDS[kind][0](), stream_of(kind, (ROWS,) * CALLS)
    model.partial_fit(**chunks[0])
    seen, done = [], threading.Event()

    def learn():
        try:
            calls(model, chunks[1:])()
        finally:
            done.set()

    def read():
        while not done.is_set():
            seen.append(model.n_samples_seen_)
            scores = model.score_samples(*_asked(model, chunks[0]))
            assert np.isfinite(scores[0] if isinstance(scores, tuple) else scores).all()
            assert model.health_.rows % ROWS == 0 and repr(model)

    def copied():
        while not done.is_set():
            for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
                assert other.n_samples_seen_ % ROWS == 0
                other.partial_fit(**chunks[0])
            model.save(tmp_path / "model")
            assert hw.load(tmp_path / "model").n_samples_seen_ % ROWS == 0

    together(learn, read, copied)
    assert all(rows % ROWS == 0 for rows in seen) and seen == sorted(seen)
    assert model.n_samples_seen_ == CALLS * ROWS


def _asked(model, chunk):
    """Return the parts of a chunk that `score_samples` takes."""
    if chunk.y is not None:
        return chunk["X"], chunk.y
    return (chunk.X, chunk.lengths) if chunk.lengths is not None else (chunk["X"],)


@pytest.mark.parametrize("kind", KINDS)
def test_readers_do_not_wait_for_a_learner(kind):
    model, chunk = learned(kind), stream_of(kind, (ROWS,))[0]
    answers = []
    with lock_of(model):  # as if a call were learning
        reader = threading.Thread(target=lambda: answers.append((model.n_samples_seen_, repr(model), model.describe())))
        reader.start()
        reader.join(30)
        writer = threading.Thread(target=lambda: model.partial_fit(**chunk))
        writer.start()
        assert len(answers) == 1 and answers[0][0] == 500
    writer.join(30)
    assert model.n_samples_seen_ == 500 + ROWS


@pytest.mark.parametrize("kind", KINDS)
def test_a_lock_is_no_part_of_a_model(kind, tmp_path):
    model, chunk = learned(kind), stream_of(kind, (ROWS,))[0]
    model.save(tmp_path / "model")
    with lock_of(model):
        others = [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), hw.load(tmp_path / "model")]
        joblib.dump(model, tmp_path / "joblib")
        others.append(joblib.load(tmp_path / "joblib"))
        assert not clone(model)._has_state()
        before = set(vars(model))
        found = []
        worker = threading.Thread(target=lambda: found.extend(one.partial_fit(**chunk) for one in others))
        worker.start()
        worker.join(60)
        assert [one.n_samples_seen_ for one in found] == [500 + ROWS] * len(others)
    assert set(vars(model)) == before and model.n_samples_seen_ == 500
    assert joblib.hash(model) == joblib.hash(model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_chunk_leaves_every_attribute_as_it_was(kind):
    model = learned(kind)
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(np.full((3, 17), -np.inf))
    assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)


@pytest.mark.parametrize(
    "model",
    [
        hw.GaussianMixture("auto", warm_up=60, random_state=0),
        hw.LatentDirichletAllocation("auto", warm_up=60, random_state=0),
    ],
    ids=["growth", "race"],
)
def test_numbers_of_components_are_found_on_several_threads(model):
    kind = "gaussian" if isinstance(model, hw.GaussianMixture) else "topics"
    model, chunks = clone(model), stream_of(kind, (ROWS,) * 20)
    model.partial_fit(**chunks[0])
    stop = threading.Event()

    def learn():
        calls(model, chunks)()

    def learn_last():
        try:
            learn()
        finally:
            stop.set()

    def read():
        while not stop.is_set():
            assert np.isfinite(model.score_samples(chunks[0]["X"])).all()

    together(learn, learn_last, read)
    assert model.n_samples_seen_ == 41 * ROWS


def test_single_rows_and_sequences():
    model, rows = hw.GaussianHMM(2, warm_up=60, random_state=0), stream_of("chain", (200,))[0].X

    def one(key):
        return lambda: ([model.learn_one(row, key=key) for row in rows[:100]], model.close(key))

    together(*(one(key) for key in range(THREADS)))
    assert model.n_samples_seen_ == 100 * THREADS and model.open_sequences_ == []
    mixture = hw.GaussianMixture(2, warm_up=60, random_state=0)
    together(*(lambda: [mixture.learn_one(row) for row in rows] for _ in range(THREADS)))
    assert mixture.n_samples_seen_ == 200 * THREADS


def test_a_monitor_counts_every_row():
    model, chunks = KINDS["gaussian"][0](), stream_of("gaussian", (ROWS,) * CALLS)
    monitor = hw.Monitor(model)
    together(*(lambda: [monitor.learn(chunk) for chunk in chunks] for _ in range(THREADS)))
    assert model.n_samples_seen_ == THREADS * CALLS * ROWS
    assert model.history_ is monitor.history
    assert (np.diff(model.history_.rows) > 0).all() and model.history_.rows[-1] <= model.n_samples_seen_


def test_parameters_are_set_between_two_calls():
    model, chunks = KINDS["gaussian"][0](), stream_of("gaussian", (ROWS,) * CALLS)
    together(calls(model, chunks), lambda: [model.set_params(tol=0.1 / n) for n in range(1, 100)])
    assert model.n_samples_seen_ == CALLS * ROWS and model.tol == 0.1 / 99


def test_models_are_merged_while_they_learn():
    models = [clone(KINDS["gaussian"][0]()).set_params(random_state=seed) for seed in range(2)]
    chunks = stream_of("gaussian", (ROWS,) * CALLS)
    for model in models:
        model.partial_fit(**stream_of("gaussian", (100,))[0])
    merged = []
    together(*(calls(model, chunks) for model in models), lambda: merged.extend(hw.merge(models) for _ in range(5)))
    assert all(one.n_samples_seen_ % ROWS == 200 % ROWS for one in merged)
    assert hw.merge(models).n_samples_seen_ == 2 * (100 + CALLS * ROWS)
