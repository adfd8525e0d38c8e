"""headwater.distributed.fit: the result of `fit`, whoever does the work, in whatever order, and whatever goes wrong."""

import asyncio
import re
import warnings
from functools import wraps

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pandas
import pytest
from cluster_models import EXACT, KINDS, ONE_PASS, SIZES, assert_same, at_hand, delayed_at_random, model_of, on_cluster
from dask.delayed import delayed
from distributed import Client
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from every_model import stream_of
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.checkpoints import Checkpoint
from headwater.distributed import task_graph, tasks, versions
from headwater.distributed.clusters import connection_needed
from headwater.distributed.messages import Message
from headwater.distributed.parts import Part, sample
from headwater.distributed.read_options import way_of
from headwater.estimators.model_file import read, save, to_bytes
from headwater.io.files import container

SLOW = pytest.mark.slow
RESULTS = ("n_iter_", "converged_", "n_samples_seen_", "n_features_in_")

# Many workers in one process must not keep it busy with looking after themselves.
QUIET = {
    "distributed.admin.system-monitor.interval": "1h",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.host-cpu": False,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1h",
}


@pytest.fixture(scope="module")
def clusters():
    """Clients of clusters with so many workers, in this process."""
    opened = {}

    def of(workers):
        if workers not in opened:
            with dask.config.set(QUIET):
                opened[workers] = Client(
                    processes=False,
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=":0",
                    worker_dashboard_address=None,
                    set_as_default=False,
                )
        return opened[workers]

    yield of
    for client in opened.values():
        client.close()
        client.cluster.close()


def fit(clusters, model, data, workers=2, **given):
    return hw.distributed.fit(model, data, client=clusters(workers), **given)


def short(table, some):
    """The rows of a table, of which only some are tried by default."""
    return [row if row in some else pytest.param(*([row] if isinstance(row, str) else row), marks=SLOW) for row in table]


def assert_equal_to_rounding(one, other, rtol=1e-6):
    for name in RESULTS:
        assert getattr(one, name) == getattr(other, name), name
    np.testing.assert_allclose(one.lower_bounds_, other.lower_bounds_, rtol=1e-9)
    for name in one._answers:
        wanted = np.asarray(getattr(other, name))
        np.testing.assert_allclose(getattr(one, name), wanted, rtol=rtol, atol=rtol * np.abs(wanted).max(), err_msg=name)


# Exact passes


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize(("kind", "word"), short(EXACT, [("gaussian", "em"), ("markov", "vb"), ("symbols", "em")]))
def test_exact_passes_are_those_of_fit(clusters, kind, word):
    data, given = on_cluster(kind)
    found = fit(clusters, model_of(kind, word, max_iter=5), data, **given)
    wanted = model_of(kind, word, max_iter=5).fit(**at_hand(kind))
    assert_equal_to_rounding(found, wanted)


@pytest.mark.parametrize("word", ["em", "auto"])
def test_passes_that_are_auto_go_on_until_they_converge(clusters, word):
    data, given = on_cluster("gaussian")
    found = fit(clusters, model_of("gaussian", word, max_iter=1, tol=1e-7), data, passes="auto", **given)
    assert found.converged_ and found.n_iter_ > found.max_iter == 1


def test_exact_passes_take_weights(clusters):
    rows = np.concatenate([chunk.X for chunk in stream_of("gaussian", SIZES)])
    weights = np.random.default_rng(1).integers(0, 3, size=len(rows)).astype(float)
    cuts = (SIZES, (3,))
    data, weighed = dask.array.from_array(rows, chunks=cuts), dask.array.from_array(weights, chunks=100)  # is cut like the rows
    given = {"init_params": "random", "max_iter": 4}
    with pytest.warns(ConvergenceWarning):
        found = fit(clusters, model_of("gaussian", "em", **given), data, sample_weight=weighed)
    with pytest.warns(ConvergenceWarning):
        assert_equal_to_rounding(found, model_of("gaussian", "em", **given).fit(rows, sample_weight=weights))
    with pytest.raises(ValueError, match="sample_weight must have a value for each of the"):
        fit(clusters, model_of("gaussian", "em"), data, sample_weight=weighed[:-1])


def table(rows, number=5, **columns):
    """A dataframe of Dask, with columns beside the rows."""
    frame = pandas.DataFrame({**dict(zip("abc", rows.T, strict=False)), **columns})
    return dask.dataframe.from_pandas(frame, npartitions=number, sort=False)


@pytest.mark.parametrize("word", ["em", "vb"])
def test_exact_passes_take_labels_and_weights_of_a_table(clusters, word):
    rows = np.concatenate([chunk.X for chunk in stream_of("gaussian", SIZES)])
    labels = np.where(np.arange(len(rows)) % 9 == 0, (rows[:, 2] < 30.0).astype(int), -1)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=len(rows))
    frame = table(rows, label=labels, weight=weights)
    found = fit(clusters, model_of("gaussian", word), frame, label="label", weight="weight")
    wanted = model_of("gaussian", word).fit(rows, labels=labels, sample_weight=weights)
    assert list(found.feature_names_in_) == list("abc")
    assert_equal_to_rounding(found, wanted)


@pytest.mark.parametrize("word", ["em", "vb"])
def test_exact_passes_take_sequences_by_their_key(clusters, tmp_path, word):
    chunks = stream_of("chain", (50, 40, 60, 30))
    lengths = []
    for at, (chunk, share) in enumerate(zip(chunks, (20, 40, 25, 17), strict=True)):
        size = len(chunk.X)
        names = np.where(np.arange(size) < share, f"{at}-first", f"{at}-second")
        lengths += [share, size - share] if share < size else [size]
        frame = pandas.DataFrame({"a": chunk.X[:, 0], "b": chunk.X[:, 1], "name": names})
        frame.to_parquet(tmp_path / f"part{at}.parquet")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Best performing initialization did not converge")
        found = fit(clusters, model_of("chain", word, max_iter=4), str(tmp_path / "*.parquet"), key="name")
        wanted = model_of("chain", word, max_iter=4).fit(np.concatenate([chunk.X for chunk in chunks]), lengths=lengths)
    assert_equal_to_rounding(found, wanted)


@pytest.mark.parametrize("word", ["em", hw.OnlineEM(batch_size=40)], ids=["em", "online-em"])
def test_what_was_set_beforehand_reaches_the_workers(clusters, word):
    def make():
        model = model_of("chain", word, init_params="mc", params="mc", **({"max_iter": 2} if word == "em" else {}))
        model.startprob_, model.transmat_ = [0.25, 0.75], [[0.9, 0.1], [0.2, 0.8]]
        return model

    data, _ = on_cluster("chain")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Best performing initialization did not converge")
        found = fit(clusters, make(), data)
        np.testing.assert_allclose(found.transmat_, [[0.9, 0.1], [0.2, 0.8]])
        if word == "em":
            assert_equal_to_rounding(found, make().fit(**at_hand("chain")))


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize(
    "word",
    ["em", pytest.param("vb", marks=pytest.mark.slow), "auto", hw.OnlineEM(batch_size=40)],
    ids=["em", "vb", "auto", "online-em"],
)
@pytest.mark.parametrize("kind", ["chain", pytest.param("symbols", marks=pytest.mark.slow)])
def test_what_is_impossible_beforehand_is_so_for_all_workers(clusters, kind, word):
    start, steps = np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.0, 1.0]])
    exact = word in ("em", "vb")

    def make():
        model = model_of(kind, word, init_params="mc" if kind == "chain" else "e", **({"max_iter": 2} if exact else {}))
        model.startprob_, model.transmat_ = start, steps
        return model

    def check(found, wanted):
        assert (found.startprob_[start == 0.0] == 0.0).all()
        assert (found.transmat_[steps == 0.0] == 0.0).all()
        if exact:
            assert_equal_to_rounding(found, wanted.fit(**at_hand(kind)))

    data, _ = on_cluster(kind)
    found, wanted = make(), make()
    check(fit(clusters, found, data), wanted)
    check(fit(clusters, found.set_params(init_params=""), data), wanted.set_params(init_params=""))  # which goes on


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_the_best_of_several_starts_is_that_of_fit(clusters):
    data, _ = on_cluster("gaussian")
    given = {"n_components": 3, "n_init": 3, "init_params": "random", "max_iter": 2}
    found = fit(clusters, model_of("gaussian", "em", **given), data)
    assert_equal_to_rounding(found, model_of("gaussian", "em", **given).fit(**at_hand("gaussian")))


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_passes_go_on_where_a_model_is(clusters):
    data, _ = on_cluster("gaussian")

    def make():
        model = model_of("gaussian", "em", n_components=3, init_params="random", max_iter=3, warm_start=True, tol=1e-12)
        return model.fit(**at_hand("gaussian"))

    found = fit(clusters, make(), data)
    wanted = make().fit(**at_hand("gaussian"))
    np.testing.assert_allclose(found.means_, wanted.means_, rtol=1e-6)
    np.testing.assert_allclose(found.lower_bounds_, wanted.lower_bounds_, rtol=1e-9)


# One pass


def assert_the_workers_do_not_matter(clusters, monkeypatch, kind, word, numbers):
    data, given = on_cluster(kind)
    first = fit(clusters, model_of(kind, word), data, 1, **given)
    assert first.distributed_report_.parts == len(SIZES)
    assert sum(one.rows for one in first.distributed_report_.rounds) == first.n_samples_seen_
    for name in ("learn", "added"):
        monkeypatch.setattr(tasks, name, delayed_at_random(getattr(tasks, name)))
    for workers in numbers:
        assert_same(fit(clusters, model_of(kind, word), data, workers, **given), first)


@pytest.mark.parametrize("kind", short(KINDS, ["gaussian", "topics", "chain", "regression"]))
def test_one_pass_does_not_depend_on_the_workers(clusters, kind, monkeypatch):
    assert_the_workers_do_not_matter(clusters, monkeypatch, kind, KINDS[kind][0]().algorithm, [7])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "word"), ONE_PASS)
def test_one_pass_does_not_depend_on_the_workers_by_any_algorithm(clusters, kind, word, monkeypatch):
    assert_the_workers_do_not_matter(clusters, monkeypatch, kind, word, [2, 7])


@pytest.mark.slow
def test_sixty_four_workers_find_what_one_does(clusters, monkeypatch):
    sizes = SIZES * 15
    data, _ = on_cluster("gaussian", sizes)
    first = fit(clusters, model_of("gaussian", "auto"), data, 1)
    exact = fit(clusters, model_of("gaussian", "em"), data, 1)
    for name in ("learn", "added", "summarize"):
        monkeypatch.setattr(tasks, name, delayed_at_random(getattr(tasks, name)))
    assert_same(fit(clusters, model_of("gaussian", "auto"), data, 64), first)
    assert_same(fit(clusters, model_of("gaussian", "em"), data, 64), exact)


@pytest.mark.parametrize("word", short(["em", "auto"], ["auto"]))
def test_exact_passes_do_not_depend_on_the_workers(clusters, monkeypatch, word):
    data, _ = on_cluster("gaussian")
    given = {"passes": 3} if word == "auto" else {}
    first = fit(clusters, model_of("gaussian", word, tol=0.05), data, 1, **given)
    for name in ("summarize", "added"):
        monkeypatch.setattr(tasks, name, delayed_at_random(getattr(tasks, name)))
    assert_same(fit(clusters, model_of("gaussian", word, tol=0.05), data, 7, **given), first)


def test_rounds_are_as_many_as_were_asked_for(clusters):
    data, _ = on_cluster("gaussian")
    for rounds, wanted in ((1, 1), (3, 3), (100, len(SIZES))):
        report = fit(clusters, model_of("gaussian", "auto"), data, rounds=rounds).distributed_report_
        assert len(report.rounds) == wanted
        assert sum(one.parts for one in report.rounds) == len(SIZES)
        assert sum(one.rows for one in report.rounds) == sum(SIZES)


def test_a_model_goes_on_from_what_it_knows(clusters):
    data, _ = on_cluster("gaussian")
    model = learned_before()
    again = fit(clusters, model, data, go_on=True)
    assert again is model
    assert model.n_samples_seen_ == 300 + sum(SIZES)
    assert_same(fit(clusters, learned_before(), data, 7, go_on=True), model)
    assert fit(clusters, learned_before(), data).n_samples_seen_ == sum(SIZES)


def test_messages_are_bytes_of_model_files(clusters, monkeypatch):
    seen = []

    def noted(function):
        @wraps(function)
        def note(*given):
            found = function(*given)
            seen.extend([*given, found])
            return found

        return note

    for name in ("sampled", "started", "learn", "added", "begun", "summarize"):
        monkeypatch.setattr(tasks, name, noted(getattr(tasks, name)))
    data, _ = on_cluster("gaussian", SIZES[:3])
    fit(clusters, model_of("gaussian", "auto"), data)
    fit(clusters, model_of("gaussian", "em"), data)
    models = [one for one in seen if isinstance(one, bytes)]
    assert models
    for one in [*models, *(message.data for message in seen if isinstance(message, Message) and message.data)]:
        container.from_bytes(one)  # or it is refused
    kinds = {type(one) for one in seen}
    assert not [kind for kind in kinds if issubclass(kind, BaseEstimator) or "State" in kind.__name__]


# A client that dies


class Died(BaseException):
    """The end of a process, for the test's purposes."""


@pytest.fixture
def mortal(monkeypatch):
    """Let the client die right after it has written its checkpoint so many times; None lets it live."""
    write = Checkpoint.write
    left = [None]

    def written(*given, **named):
        write(*given, **named)
        if left[0] is not None:
            left[0] -= 1
            if left[0] == 0:
                raise Died

    monkeypatch.setattr(Checkpoint, "write", written)
    return left


def assert_goes_on(clusters, mortal, path, make, data, writes, **given):
    """However often the client dies, what comes out in the end is the same."""
    mortal[0] = None
    whole = fit(clusters, make(), data, checkpoint=path / "whole.hw", **given)
    for death in range(1, writes + 1):
        kept, model = path / f"{death}.hw", make()
        before = to_bytes(model) if model._has_state() else None
        mortal[0] = death
        with pytest.raises(Died):
            fit(clusters, model, data, checkpoint=kept, **given)
        assert (to_bytes(model) if model._has_state() else None) == before
        mortal[0] = None
        assert_same(fit(clusters, make(), data, checkpoint=kept, **given), whole)
    mortal[0] = writes + 1
    fit(clusters, make(), data, checkpoint=path / "last.hw", **given)  # there are no more than that
    return whole


def learned_before(kind="gaussian", word="auto"):
    return model_of(kind, word).partial_fit(stream_of(kind, (300,), seed=5)[0].X)


WAYS = {
    "rounds": (lambda: model_of("gaussian", "auto"), {"rounds": 3}, 4),
    "a stream that goes on": (learned_before, {"rounds": 2, "go_on": True}, 3),
    "passes": (lambda: model_of("gaussian", "em", init_params="random", tol=1e-12), {"passes": 4}, 5),
    "passes that converge": (lambda: model_of("gaussian", "vb", tol=1e-3), {}, None),
    "several starts": (lambda: model_of("gaussian", "em", n_init=3, init_params="random", max_iter=3, tol=1e-12), {}, 7),
    "a stream and passes": (lambda: model_of("gaussian", "auto", tol=1e-12), {"rounds": 2, "passes": 2}, 4),
    "two streams": (lambda: model_of("gaussian", "online-em"), {"rounds": 2, "passes": 2}, 5),
}


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize("way", short(WAYS, ["a stream and passes"]))
def test_a_client_that_dies_goes_on_from_its_checkpoint(clusters, mortal, tmp_path, way):
    make, given, writes = WAYS[way]
    data, _ = on_cluster("gaussian", SIZES[:4])
    if writes is None:
        writes = make().fit(**at_hand("gaussian", SIZES[:4])).n_iter_ + 1
    assert_goes_on(clusters, mortal, tmp_path, make, data, writes, **given)


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)], ids=["none", "generator"])
def test_a_checkpoint_keeps_the_seed_that_was_drawn(clusters, mortal, tmp_path, random_state):
    data, _ = on_cluster("gaussian", SIZES[:5])
    model = model_of("gaussian", "auto").set_params(random_state=random_state)
    mortal[0] = 2
    with pytest.raises(Died):
        fit(clusters, model, data, checkpoint=tmp_path / "kept.hw", rounds=4)
    mortal[0] = None
    fit(clusters, model, data, checkpoint=tmp_path / "kept.hw", rounds=4)
    assert model.n_samples_seen_ == sum(SIZES[:5])  # every part once
    assert model.random_state is random_state


def test_another_run_does_not_go_on_from_a_checkpoint(clusters, tmp_path):
    data, _ = on_cluster("gaussian", SIZES[:2])
    kept = tmp_path / "kept.hw"
    done = fit(clusters, model_of("gaussian", "auto"), data, checkpoint=kept)
    assert_same(fit(clusters, model_of("gaussian", "auto"), data, checkpoint=kept), done)
    with pytest.raises(ValueError, match="belongs to another run, of which rounds was"):
        fit(clusters, model_of("gaussian", "auto"), data, checkpoint=kept, rounds=2)
    with pytest.raises(ValueError, match="belongs to another run, of which n_components was"):
        fit(clusters, model_of("gaussian", "auto", n_components=3), data, checkpoint=kept)
    with pytest.raises(ValueError, match="belongs to another run, of which data was"):
        fit(clusters, model_of("gaussian", "auto"), on_cluster("gaussian", SIZES[:2], seed=1)[0], checkpoint=kept)


# Parts that cannot be read


def write_parquet(path, rows):
    import pyarrow as pa
    from pyarrow.parquet import write_table

    write_table(pa.table({name: rows[:, at] for at, name in enumerate("abc")}), path)


def write_csv(path, rows):
    path.write_text("a,b,c\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def with_text(path):
    lines = path.read_text().splitlines()
    lines[len(lines) // 2] = "1.0,what,2.0"
    path.write_text("\n".join(lines))


def without_a_column(path):
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line.rpartition(",")[0] for line in lines))


DAMAGES = {"truncated": (write_parquet, truncated), "text": (write_csv, with_text), "narrow": (write_csv, without_a_column)}


def files(folder, write, number=5):
    """Files of a stream, and the one in the middle."""
    paths = [folder / f"part{at}.{write.__name__[6:]}" for at in range(number)]
    for path, chunk in zip(paths, stream_of("gaussian", SIZES[:number]), strict=True):
        write(path, chunk.X)
    return paths, paths[number // 2]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_learned(clusters, tmp_path, damage):
    write, spoil = DAMAGES[damage]
    paths, bad = files(tmp_path, write)
    sound = bad.read_bytes()
    spoil(bad)
    model, kept = model_of("gaussian", "auto"), tmp_path / "kept.hw"
    with pytest.raises(hw.distributed.UnreadError, match=re.escape(str(bad))) as error:
        fit(clusters, model, str(tmp_path / "part*"), checkpoint=kept, rounds=2)
    assert not model._has_state()
    assert len(error.value.unread) == 1
    others = sum(SIZES[: len(paths)]) - SIZES[2]
    assert error.value.model.n_samples_seen_ == others
    with pytest.warns(UserWarning, match=re.escape(str(bad))):
        fit(clusters, model, str(tmp_path / "part*"), unreadable="leave out", rounds=2)
    assert model.n_samples_seen_ == others
    assert bad.name in str(model.distributed_report_)
    # Still broken: the sentence again, and nothing is learned twice.
    with pytest.raises(hw.distributed.UnreadError, match=re.escape(str(bad))) as error:
        fit(clusters, model_of("gaussian", "auto"), str(tmp_path / "part*"), checkpoint=kept, rounds=2)
    assert error.value.model.n_samples_seen_ == others
    bad.write_bytes(sound)
    fit(clusters, model, str(tmp_path / "part*"), checkpoint=kept, rounds=2)
    assert model.n_samples_seen_ == others + SIZES[2]
    assert [one.parts for one in model.distributed_report_.rounds][-1] == 1


def test_exact_passes_end_at_a_file_that_cannot_be_read(clusters, tmp_path):
    _, bad = files(tmp_path, write_csv)
    sound = bad.read_bytes()
    with_text(bad)
    model, pattern = model_of("gaussian", "em"), str(tmp_path / "part*")
    with pytest.raises(hw.distributed.UnreadError, match=re.escape(str(bad))):
        fit(clusters, model, pattern)
    assert not model._has_state()
    with pytest.warns(UserWarning, match=re.escape(str(bad))):
        fit(clusters, model, pattern, unreadable="leave out")
    assert model.n_samples_seen_ == sum(SIZES[:5]) - SIZES[2]
    bad.write_bytes(sound)
    rows = np.concatenate([chunk.X for chunk in stream_of("gaussian", SIZES[:5])])
    assert_equal_to_rounding(fit(clusters, model, pattern), model_of("gaussian", "em").fit(rows))


def test_a_file_that_vanishes_after_it_was_seen(clusters, tmp_path):
    paths, bad = files(tmp_path, write_parquet)

    def vanish(step):
        if step.stage == "learning":
            bad.unlink(missing_ok=True)

    model = model_of("gaussian", "auto")
    with pytest.raises(hw.distributed.UnreadError, match=re.escape(str(bad))) as error:
        fit(clusters, model, str(tmp_path / "part*"), watch=vanish)
    assert error.value.model.n_samples_seen_ == sum(SIZES[: len(paths)]) - SIZES[2]


def test_a_file_that_vanishes_between_exact_passes(clusters, tmp_path):
    _, bad = files(tmp_path, write_parquet)
    away, kept = tmp_path / "away", tmp_path / "kept.hw"

    def vanish(step):
        if step.stage == "passing" and step.round == 3 and bad.exists():
            bad.rename(away)

    def make():
        return model_of("gaussian", "em", init_params="random", tol=1e-12)

    with pytest.raises(hw.distributed.UnreadError, match=re.escape(str(bad))) as error:
        fit(clusters, make(), str(tmp_path / "part*"), watch=vanish, checkpoint=kept, passes=4)
    assert error.value.model.n_samples_seen_ == sum(SIZES[:5])  # the model of the pass before
    away.rename(bad)
    with pytest.warns(ConvergenceWarning):
        found = fit(clusters, make(), str(tmp_path / "part*"), checkpoint=kept, passes=4)
    with pytest.warns(ConvergenceWarning):
        assert_same(found, fit(clusters, make(), str(tmp_path / "part*"), passes=4))


# Workers that do not answer


def fails_once():
    """A question that one worker fails to answer, as when it dies."""
    left = [True]

    def question():
        if left and left.pop():
            raise CommClosedError("in <TCP (closed) Scheduler Broadcast>: Stream is closed")
        return hw.__version__

    return question


def fails():
    raise CommClosedError("in <TCP (closed) Scheduler Broadcast>: Stream is closed")


async def is_stuck():
    await asyncio.sleep(3600.0)


@pytest.mark.parametrize("question", [fails_once(), fails, is_stuck], ids=["one", "none", "stuck"])
def test_workers_that_do_not_answer_are_left_out(clusters, monkeypatch, question):
    wanted = fit(clusters, model_of("gaussian", "auto"), small())
    monkeypatch.setattr(hw.distributed.clusters, "ANSWER", 0.2)
    ask = versions.answers
    monkeypatch.setattr(versions, "answers", lambda client, _: ask(client, question))
    assert_same(fit(clusters, model_of("gaussian", "auto"), small()), wanted)


def test_what_is_forgotten_in_the_end_does_not_matter(clusters, monkeypatch):
    monkeypatch.setattr(hw.distributed.clusters, "ANSWER", 0.2)
    for question in (fails, is_stuck):
        monkeypatch.setattr(tasks, "forget", question)
        assert fit(clusters, model_of("gaussian", "auto"), small()).n_samples_seen_ == 80


def test_workers_must_have_the_version_that_is_here(clusters, monkeypatch):
    here = hw.__version__
    with monkeypatch.context() as patch, pytest.raises(hw.distributed.ClusterError, match=f"{here}, as here, .* have 0.0.1"):
        patch.setattr(versions, "answers", lambda client, question: {"a": here, "b": "0.0.1", "c": OSError("gone")})
        fit(clusters, model_of("gaussian", "auto"), small())
    for word in ("auto", "em"):  # of workers that joined later, it is the tasks that say so
        with (
            monkeypatch.context() as patch,
            pytest.raises(hw.distributed.ClusterError, match=f"0.0.2, as the client, .* {here}"),
        ):
            patch.setattr(task_graph, "version", lambda: "0.0.2")
            fit(clusters, model_of("gaussian", word), small())
    missing = ModuleNotFoundError("No module named 'headwater'")
    with monkeypatch.context() as patch, pytest.raises(hw.distributed.ClusterError, match="workers cannot import headwater"):
        patch.setattr(versions, "answers", lambda client, question: {"a": missing})
        fit(clusters, model_of("gaussian", "auto"), small())


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("scheduler-connection-lost", "the scheduler was lost: run this again"),
        ("scheduler-restart", "the scheduler was restarted: run this again"),
        ("lost dependencies", "was lost with one of them: put it there again"),
        ("already forgotten", "was lost with one of them: put it there again"),
        (None, "tasks were cancelled .unknown.: run this again"),
    ],
)
def test_why_a_scheduler_gives_up_is_told(reason, sentence):
    with pytest.raises(hw.distributed.ClusterError, match=sentence), connection_needed():
        raise FutureCancelledError("key", reason)


def test_data_that_was_lost_with_a_worker_is_told(clusters):
    client = clusters(2)
    futures = client.scatter([chunk.X for chunk in stream_of("gaussian", (40, 40))])
    blocks = [dask.array.from_delayed(delayed(one), (40, 3), float) for one in futures]
    data = dask.array.concatenate(blocks)
    client.cancel(futures)
    with pytest.raises(hw.distributed.ClusterError, match="put it there again"):
        fit(clusters, model_of("gaussian", "auto"), data)


# What makes no sense


def small(chunks=((40, 40), (3,))):
    return dask.array.from_array(np.concatenate([chunk.X for chunk in stream_of("gaussian", (40, 40))]), chunks=chunks)


def spoilt(change, number=1):
    """An array of three partitions, one of which was changed."""
    parts = [chunk.X for chunk in stream_of("gaussian", (40, 30, 50))]
    parts[number] = change(parts[number])
    blocks = [dask.array.from_delayed(delayed(part), (np.nan, 3), float) for part in parts]
    return dask.array.concatenate(blocks, allow_unknown_chunksizes=True)


def with_nan(rows):
    rows = rows.copy()
    rows[3, 1] = np.nan
    return rows


NONSENSE = {
    "an array at hand": (lambda: np.zeros((9, 2)), {}, TypeError, "data must be names of files or a collection of Dask"),
    "no files": (lambda: [], {}, ValueError, "data must name at least one file, got none"),
    "a pattern of nothing": (lambda: "nowhere/*.parquet", {}, FileNotFoundError, "nowhere.* matches no file"),
    "an empty array": (lambda: dask.array.zeros((0, 3)), {}, ValueError, "the data has no rows"),
    "one row": (lambda: small()[:1], {}, ValueError, "at least 2 rows, one for each component, got 1"),
    "text": (
        lambda: table(np.zeros((40, 2)), word=np.array(["one", "two"] * 20)),
        {}, ValueError, "word",
    ),
    "no such column": (lambda: table(np.zeros((40, 2))), {"weight": "mass"}, ValueError, "mass"),
    "no such option": (lambda: table(np.zeros((40, 2))), {"wieght": "a"}, TypeError, "wieght"),
    "options of an array": (small, {"columns": ["a"]}, ValueError, "columns is for files, dataframes and bags"),
    "numbers in a bag": (lambda: dask.bag.from_sequence([1, 2, 3]), {}, TypeError, "must hold texts, .*, got 1"),
    "weights at hand": (small, {"sample_weight": np.ones(80)}, ValueError, "sample_weight must be a dask array"),
    "a target for nobody": (small, {"y": small()[:, 0]}, ValueError, "GaussianMixture does not learn from y"),
    "rounds": (small, {"rounds": 0}, ValueError, "rounds must be a whole number of at least 1 or 'auto', got 0"),
    "passes": (small, {"passes": 0}, ValueError, "passes must be a whole number of at least 1 or 'auto', got 0"),
    "part_rows": (small, {"part_rows": True}, ValueError, "part_rows must be a whole number of at least 1, got True"),
    "unreadable": (small, {"unreadable": "ignore"}, ValueError, "unreadable must be 'refuse' or 'leave out', got 'ignore'"),
    "open": (small, {"vocabulary": "open"}, ValueError, "vocabulary='open' follows the order of one stream"),
    "shuffle": (small, {"shuffle": 100}, ValueError, "shuffle mixes the rows of one stream"),
}  # fmt: skip


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_refused_in_a_sentence(clusters, case):
    make, given, error, sentence = NONSENSE[case]
    model = learned_before()
    before = to_bytes(model)
    with pytest.raises(error, match=sentence):
        fit(clusters, model, make(), **given)
    assert to_bytes(model) == before


def test_a_model_and_a_client_must_be_such(clusters):
    with pytest.raises(TypeError, match="model must be a headwater model, got str"):
        fit(clusters, "gaussian", small())
    with pytest.raises(TypeError, match="client must be a client or a cluster of Dask, or the address of one, got int"):
        hw.distributed.fit(hw.GaussianMixture(2), small(), client=3)
    with pytest.raises(ValueError, match="a cluster must be 'local'"):
        hw.distributed.fit(hw.GaussianMixture(2), small(), client="here")
    with pytest.raises(ValueError, match="half_life forgets in the order of one stream"):
        fit(clusters, hw.GaussianMixture(2, half_life=9.0), small())


def test_files_may_be_empty(clusters, tmp_path):
    files(tmp_path, write_parquet, 3)
    write_parquet(tmp_path / "part-1.parquet", np.empty((0, 3)))
    write_parquet(tmp_path / "part9.parquet", np.empty((0, 3)))
    assert fit(clusters, model_of("gaussian", "auto"), str(tmp_path / "part*")).n_samples_seen_ == sum(SIZES[:3])


def test_partitions_may_be_empty(clusters):
    parts = [chunk.X for chunk in stream_of("gaussian", (40, 30, 50))]
    data = dask.array.concatenate([dask.array.zeros((0, 3)), small(), dask.array.zeros((0, 3)), small()])
    assert fit(clusters, model_of("gaussian", "auto"), data).n_samples_seen_ == 160
    frames = [pandas.DataFrame(rows, columns=list("abc")) for rows in (parts[0][:0], parts[0], parts[1][:0], parts[2])]
    frame = dask.dataframe.from_delayed([delayed(one) for one in frames], meta=frames[0])
    assert fit(clusters, model_of("gaussian", "auto"), frame).n_samples_seen_ == 90
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Best performing initialization did not converge")
        assert fit(clusters, model_of("gaussian", "em"), frame).n_samples_seen_ == 90


@pytest.mark.parametrize(
    ("change", "sentence"),
    [(with_nan, "NaN"), (lambda rows: rows[:, :2], "2 features|2 columns"), (lambda rows: rows[:, 0], "two dimensions")],
    ids=["NaN", "narrow", "flat"],
)
@pytest.mark.parametrize("number", [1, 2])
def test_a_partition_that_makes_no_sense_is_named(clusters, change, sentence, number):
    for word in ("auto", "em"):
        with pytest.raises(hw.distributed.UnreadError, match=sentence) as error:
            fit(clusters, model_of("gaussian", word), spoilt(change, number))
        assert f"partition {number} of the array" in str(error.value)
        assert len(error.value.unread) == 1
        if word == "auto":
            assert error.value.model.n_samples_seen_ == 120 - (40, 30, 50)[number]


MADE_UP = (
    lambda more: more.pop("key"),
    lambda more: more.update(key=-5),
    lambda more: more.update(key=10**49),
    lambda more: more.update(unread=[[10**9, "a", "b"]]),
    lambda more: more.update(unread=[[1]]),
    lambda more: more.update(trace=None),
    lambda more: more.update(runs=10**9),
    lambda more: more.update(again={"x": 2**60}),
    lambda more: more.update(report={}),
    lambda more: more.update(converged="yes"),
)


def test_a_checkpoint_that_was_made_up_is_refused_in_a_sentence(clusters, mortal, tmp_path):
    kept, data = tmp_path / "kept.hw", small()
    mortal[0] = 1
    with pytest.raises(Died):
        fit(clusters, model_of("gaussian", "auto"), data, checkpoint=kept, rounds=2)
    mortal[0] = None
    sound = kept.read_bytes()
    for change in MADE_UP:
        kept.write_bytes(sound)
        model, extra = read(kept)
        change(extra["checkpoint"]["more"])
        save(model, kept, extra=extra)
        with pytest.raises(ValueError, match="is damaged: it does not say what the run had done"):
            fit(clusters, model_of("gaussian", "auto"), data, checkpoint=kept, rounds=2)


def test_no_passes_are_those_of_fit(clusters):
    data, given = on_cluster("gaussian")
    model = model_of("gaussian", "em", max_iter=0)
    assert_equal_to_rounding(
        fit(clusters, model, data, **given), model_of("gaussian", "em", max_iter=0).fit(**at_hand("gaussian"))
    )


def test_what_users_have_set_stays(clusters):
    model = model_of("gaussian", "auto")
    model.note = "mine"
    assert fit(clusters, model, small()).note == "mine"


def test_rows_of_a_sample_come_once(tmp_path):
    rows = np.arange(9000.0).reshape(3000, 3)
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    part = Part(0, str(path), str(path), 0, 3000)
    way = way_of("files", hw.stream(str(path)), {})
    for wanted in (100, 1000, 2900, 9000):
        found = sample(hw.GaussianMixture(2), part, None, way, wanted, 8, 0)
        assert len(np.unique(found.X[:, 0])) == len(found) >= min(wanted, 3000)


def test_a_partition_whose_rows_do_not_count_is_no_fault(clusters):
    rows = np.concatenate([chunk.X for chunk in stream_of("gaussian", SIZES)])
    weights = np.ones(len(rows))
    weights[: SIZES[0]] = 0.0
    cut = dask.array.from_array(rows, chunks=(SIZES, (3,))), dask.array.from_array(weights, chunks=(SIZES,))
    found = fit(clusters, model_of("gaussian", "em", max_iter=0), cut[0], sample_weight=cut[1])
    assert_equal_to_rounding(found, model_of("gaussian", "em", max_iter=0).fit(rows, sample_weight=weights))
    assert fit(clusters, model_of("gaussian", "auto"), cut[0], sample_weight=cut[1]).n_samples_seen_ == len(rows) - SIZES[0]


def test_exact_passes_know_where_sequences_of_parts_begin(clusters):
    """States overlap, and all rows are in the sample: if sequences of two parts were taken for one, this would be seen."""
    rng = np.random.default_rng(0)
    sizes = (160, 90, 120)
    rows = rng.normal(size=(sum(sizes), 2)) + 1.5 * (np.arange(sum(sizes)) // 7 % 2)[:, None]
    given = {"algorithm": "em", "n_iter": 3, "tol": 0.0, "random_state": 0}
    found = fit(clusters, hw.GaussianHMM(2, **given), dask.array.from_array(rows, chunks=(sizes, 2)))
    wanted = hw.GaussianHMM(2, **given).fit(rows, lengths=sizes)
    np.testing.assert_allclose(found.lower_bounds_, wanted.lower_bounds_, rtol=1e-12)


@pytest.mark.parametrize("word", ["em", "vb"])
def test_a_warm_start_goes_on_as_fit_does(clusters, word):
    data, given = on_cluster("gaussian")
    models = [model_of("gaussian", word, warm_start=True, max_iter=2, tol=1e-12, init_params="random") for _ in range(2)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Best performing initialization did not converge")
        for _ in range(2):
            fit(clusters, models[0], data, **given)
            models[1].fit(**at_hand("gaussian"))
    assert_equal_to_rounding(*models)
