"""headwater.distributed.fit: the result of `fit`, whoever does the work, in whatever order, and whatever goes wrong."""

import re

import numpy as np
import pytest
from cluster_models import EXACT, KINDS, ONE_PASS, SIZES, assert_same, at_hand, delayed_at_random, model_of, on_cluster
from distributed import Client
from every_model import stream_of
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.checkpoints import Checkpoint
from headwater.distributed import tasks
from headwater.estimators.saving import to_bytes

RESULTS = ("n_iter_", "converged_", "n_samples_seen_", "n_features_in_")


@pytest.fixture(scope="module")
def clusters():
    """Clients of clusters with so many workers, in this process."""
    opened = {}

    def of(workers):
        if workers not in opened:
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


def assert_equal_to_rounding(one, other, rtol=1e-6):
    for name in RESULTS:
        assert getattr(one, name) == getattr(other, name), name
    np.testing.assert_allclose(one.lower_bounds_, other.lower_bounds_, rtol=1e-9)
    for name in one._answers:
        wanted = np.asarray(getattr(other, name))
        np.testing.assert_allclose(getattr(one, name), wanted, rtol=rtol, atol=rtol * np.abs(wanted).max(), err_msg=name)


# Exact passes


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize(("kind", "word"), EXACT)
def test_exact_passes_are_those_of_fit(clusters, kind, word):
    data, given = on_cluster(kind)
    found = fit(clusters, model_of(kind, word, max_iter=5), data, **given)
    wanted = model_of(kind, word, max_iter=5).fit(**at_hand(kind))
    assert_equal_to_rounding(found, wanted)


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


@pytest.mark.parametrize("kind", KINDS)
def test_one_pass_does_not_depend_on_the_workers(clusters, kind, monkeypatch):
    assert_the_workers_do_not_matter(clusters, monkeypatch, kind, KINDS[kind][0]().algorithm, [7])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "word"), ONE_PASS)
def test_one_pass_does_not_depend_on_the_workers_by_any_algorithm(clusters, kind, word, monkeypatch):
    assert_the_workers_do_not_matter(clusters, monkeypatch, kind, word, [2, 7])


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
SHORT = "a stream and passes"


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize("way", [way if way == SHORT else pytest.param(way, marks=pytest.mark.slow) for way in WAYS])
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
    sound, kept = bad.read_bytes(), tmp_path / "kept.hw"

    def vanish(step):
        if step.stage == "passing" and step.round == 3:
            bad.unlink(missing_ok=True)

    def make():
        return model_of("gaussian", "em", init_params="random", tol=1e-12)

    with pytest.raises(hw.distributed.UnreadError, match=re.escape(str(bad))) as error:
        fit(clusters, make(), str(tmp_path / "part*"), watch=vanish, checkpoint=kept, passes=4)
    assert error.value.model.n_samples_seen_ == sum(SIZES[:5])  # the model of the pass before
    bad.write_bytes(sound)
    with pytest.warns(ConvergenceWarning):
        found = fit(clusters, make(), str(tmp_path / "part*"), checkpoint=kept, passes=4)
    with pytest.warns(ConvergenceWarning):
        assert_same(found, fit(clusters, make(), str(tmp_path / "part*"), passes=4))
