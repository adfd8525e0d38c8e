"""Fits on a cluster that go wrong: clients that die, parts that cannot be read, workers that do not answer."""

import asyncio
import re

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pytest
from cluster_fits import (
    Died,
    assert_equal_to_rounding,
    files,
    fit,
    learned_before,
    short,
    small,
    write_parquet,
)
from cluster_models import SIZES, assert_same, at_hand, model_of, on_cluster
from dask.delayed import delayed
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from every_model import stream_of
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.distributed import dask_engine, tasks, versions
from headwater.distributed.clusters import explain_lost_connection
from headwater.estimators.model_file import to_bytes

# A client that dies


def assert_goes_on(clusters, mortal, path, make, data, writes, **given):
    """Check that the result is the same, however often the client dies."""
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
    fit(clusters, make(), data, checkpoint=path / "last.hw", **given)  # there are no more rounds
    return whole


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
    # The file is still broken: the same error, and nothing is learned twice.
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
    """Return a request that fails on one worker, as if it had died."""
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
    monkeypatch.setattr(hw.distributed.clusters, "ANSWER_WAIT", 0.2)
    ask = versions.ask_workers
    monkeypatch.setattr(versions, "ask_workers", lambda client, _: ask(client, question))
    assert_same(fit(clusters, model_of("gaussian", "auto"), small()), wanted)


def test_what_is_forgotten_in_the_end_does_not_matter(clusters, monkeypatch):
    monkeypatch.setattr(hw.distributed.clusters, "ANSWER_WAIT", 0.2)
    for question in (fails, is_stuck):
        monkeypatch.setattr(tasks, "forget_model", question)
        assert fit(clusters, model_of("gaussian", "auto"), small()).n_samples_seen_ == 80


def test_workers_must_have_the_version_that_is_here(clusters, monkeypatch):
    here = hw.__version__
    with monkeypatch.context() as patch, pytest.raises(hw.distributed.ClusterError, match=f"{here}, as here, .* have 0.0.1"):
        patch.setattr(versions, "ask_workers", lambda client, question: {"a": here, "b": "0.0.1", "c": OSError("gone")})
        fit(clusters, model_of("gaussian", "auto"), small())
    for word in ("auto", "em"):  # tasks check workers that join later
        with (
            monkeypatch.context() as patch,
            pytest.raises(hw.distributed.ClusterError, match=f"0.0.2, as the client, .* {here}"),
        ):
            patch.setattr(dask_engine, "version", lambda: "0.0.2")
            fit(clusters, model_of("gaussian", word), small())
    missing = ModuleNotFoundError("No module named 'headwater'")
    with monkeypatch.context() as patch, pytest.raises(hw.distributed.ClusterError, match="workers cannot import headwater"):
        patch.setattr(versions, "ask_workers", lambda client, question: {"a": missing})
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
    with pytest.raises(hw.distributed.ClusterError, match=sentence), explain_lost_connection():
        raise FutureCancelledError("key", reason)


def test_data_that_was_lost_with_a_worker_is_told(clusters):
    client = clusters(2)
    futures = client.scatter([chunk.X for chunk in stream_of("gaussian", (40, 40))])
    blocks = [dask.array.from_delayed(delayed(one), (40, 3), float) for one in futures]
    data = dask.array.concatenate(blocks)
    client.cancel(futures)
    with pytest.raises(hw.distributed.ClusterError, match="put it there again"):
        fit(clusters, model_of("gaussian", "auto"), data)
