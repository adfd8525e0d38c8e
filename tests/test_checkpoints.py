import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headwater as hw
from headwater.checkpoints import Checkpoint, Position
from headwater.cli import main
from headwater.monitors import Monitor

SERVER = Path(__file__).parent / "kill_server.py"


def rows(number, width=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(number, width)) + 6.0 * rng.integers(2, size=(number, 1))


def killed_again_and_again(common, folder, every, rounds, seed=0):
    """Learn undisturbed and with many kills, compare the results, and return the kills and those after a checkpoint."""
    asked = {"common": common, "folder": str(folder), "every": every, "rounds": rounds, "seed": seed}
    done = subprocess.run([sys.executable, str(SERVER), json.dumps(asked)], stdout=subprocess.PIPE, text=True, check=True)
    kills, got_on, codes, same = json.loads(done.stdout)
    assert not any(codes) and same
    return kills, got_on


def test_a_checkpoint_is_resumed_where_it_was_written(tmp_path):
    data = rows(600)
    model = hw.GaussianMixture(2, random_state=0, warm_up=100).partial_fit(data[:300])
    checkpoint = Checkpoint(tmp_path / "c", {"data": "a"}, every_rows=100)
    assert checkpoint.resume() is None
    assert checkpoint.due(Position(0, 100)) and not checkpoint.due(Position(0, 99))
    checkpoint.write(model, Position(0, 300))
    assert not checkpoint.due(Position(0, 399)) and checkpoint.due(Position(1, 100))
    found, position = Checkpoint(tmp_path / "c", {"data": "a"}).resume()
    assert position == Position(0, 300)
    np.testing.assert_array_equal(found.partial_fit(data[300:]).means_, model.partial_fit(data[300:]).means_)


def test_checkpoints_of_others_are_refused(tmp_path):
    model = hw.GaussianMixture(1, random_state=0).partial_fit(rows(50))
    Checkpoint(tmp_path / "c", {"data": "a", "k": 1}).write(model, Position(0, 50))
    with pytest.raises(ValueError, match='another run, of which data was "a", and now it is "b"'):
        Checkpoint(tmp_path / "c", {"data": "b", "k": 1}).resume()
    Checkpoint(tmp_path / "c", {"reading": {"key": None, "chunk_rows": 9}}).write(model, Position(0, 50))
    with pytest.raises(ValueError, match="of which chunk_rows was 9, and now it is 7"):
        Checkpoint(tmp_path / "c", {"reading": {"key": None, "chunk_rows": 7}}).resume()
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="is a model file and no checkpoint"):
        Checkpoint(tmp_path / "m", {}).resume()


def test_what_a_finished_run_replaces_is_not_compared(tmp_path):
    model = hw.GaussianMixture(1, random_state=0).partial_fit(rows(50))
    Checkpoint(tmp_path / "c", {"start": 1}).write(model, Position(1, 0, complete=True))
    assert Checkpoint(tmp_path / "c", {"start": 2}, replaced=["start"]).resume() is not None
    Checkpoint(tmp_path / "c", {"start": 1}).write(model, Position(0, 50))
    with pytest.raises(ValueError, match="start was 1, and now it is 2"):
        Checkpoint(tmp_path / "c", {"start": 2}, replaced=["start"]).resume()


def test_what_a_killed_run_left_half_written_is_removed(tmp_path):
    (tmp_path / ".c.0123.part").write_bytes(b"half")
    (tmp_path / ".other.0123.part").write_bytes(b"half")
    assert Checkpoint(tmp_path / "c", {}).resume() is None
    assert [path.name for path in tmp_path.iterdir()] == [".other.0123.part"]


def test_the_same_command_does_not_learn_twice(tmp_path, capsys):
    np.save(tmp_path / "a.npy", rows(500))
    np.save(tmp_path / "b.npy", rows(300, seed=1))
    model, data = str(tmp_path / "m.hw"), str(tmp_path / "b.npy")
    assert main(["fit", "gaussian", str(tmp_path / "a.npy"), "-k", "2", "-o", model]) == 0
    again = ["fit", model, data, "-o", model, "--checkpoint", str(tmp_path / "c")]
    for _ in range(2):
        assert main(again) == 0
        assert hw.load(model).n_samples_seen_ == 800
    assert "learned before" in capsys.readouterr().err
    other = ["fit", model, str(tmp_path / "a.npy"), "-o", model, "--checkpoint", str(tmp_path / "c")]
    assert main(other) == 1
    said = capsys.readouterr().err
    assert "b.npy was learned by the checkpoint" in said and "not among the data now" in said and said.count("\n") == 1


def test_checkpoints_need_a_stream_that_can_be_read_again(tmp_path, capsys):
    np.save(tmp_path / "a.npy", rows(100))
    common = ["fit", "gaussian", str(tmp_path / "a.npy"), "--checkpoint", str(tmp_path / "c")]
    assert main([*common, "--algorithm", "em"]) == 2
    assert main([*common, "--passes", "auto"]) == 2
    assert capsys.readouterr().err.count("--checkpoint needs a stream") == 2
    assert not (tmp_path / "c").exists()


class Stopped(BaseException):
    """Stands for the end of a process."""


def test_stopped_after_any_checkpoint_it_ends_with_the_same_bits(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", rows(1000))
    common = ["fit", "gaussian", str(tmp_path / "a.npy"), "-k", "2", "--chunk-rows", "128", "--set", "warm_up=300", "-q"]
    assert main([*common, "-o", str(tmp_path / "calm.hw")]) == 0
    write, moments = Checkpoint.write, []

    def write_and_stop(checkpoint, model, *given):
        write(checkpoint, model, *given)
        moments.append(model.n_samples_seen_)
        raise Stopped

    monkeypatch.setattr(Checkpoint, "write", write_and_stop)
    command = [*common, "-o", str(tmp_path / "m.hw"), "--checkpoint", str(tmp_path / "c"), "--checkpoint-rows", "128"]
    for _ in range(8):
        with pytest.raises(Stopped):
            main(command)
    assert moments == [*range(128, 1000, 128), 1000]
    assert main(command) == 0
    assert (tmp_path / "m.hw").read_bytes() == (tmp_path / "calm.hw").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_instant_it_ends_with_the_same_bits(tmp_path):
    np.save(tmp_path / "a.npy", rows(2500))
    common = ["fit", "gaussian", str(tmp_path / "a.npy"), "-k", "2", "--chunk-rows", "128", "--set", "warm_up=300", "-q"]
    kills, got_on = killed_again_and_again(common, tmp_path, "128", rounds=2)
    assert kills >= got_on >= 1


CASES = {
    "gaussian, moment matching": (["gaussian", "-k", "3", "--algorithm", "moment-matching"], None),
    "gaussian, two passes": (["gaussian", "-k", "3", "--algorithm", "online-em", "--passes", "2"], None),
    "gaussian, auto": (["gaussian", "-k", "auto", "--set", "warm_up=2000"], None),
    "gaussian, shuffled": (["gaussian", "-k", "3", "--shuffle", "1000"], None),
    "multinomial": (["multinomial", "-k", "3"], np.abs),
    "lda": (["lda", "-k", "3", "--set", "warm_up=300"], lambda X: np.abs(X).round()),
    "hmm": (["hmm", "-k", "2"], None),
    "hmm, keys": (["hmm", "-k", "2", "--key", "x0"], lambda X: np.column_stack([np.arange(len(X)) % 7, X])),
    "regression": (["regression", "-k", "2", "--target", "x1"], None),
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", CASES)
def test_every_kind_survives_many_kills(name, tmp_path):
    words, change = CASES[name]
    data = rows(20_000, 3)
    np.save(tmp_path / "a.npy", data if change is None else change(data))
    common = ["fit", words[0], str(tmp_path / "a.npy"), *words[1:], "--chunk-rows", "512", "-q"]
    kills, got_on = killed_again_and_again(common, tmp_path, "512", rounds=10, seed=1)
    print(f"{name}: {kills} kills, {got_on} of them after a new checkpoint")
    assert kills >= got_on >= 10


# Checkpoints on the command line


def days(folder, *names):
    for place, name in enumerate(names):
        rows = np.random.default_rng(place).normal(size=(700, 2)) + 5.0 * (np.arange(700) % 2)[:, None]
        (folder / name).write_text("a,b\n" + "".join(f"{one:.5f},{other:.5f}\n" for one, other in rows))


def fit_days(folder, capsys, *more, code=0):
    capsys.readouterr()
    command = ["fit", "gaussian", str(folder / "*.csv"), "-k", "2", "--set", "warm_up=200", "--chunk-rows", "100", "--json"]
    assert main([*command, "--checkpoint", str(folder / "c.ckpt"), *more]) == code
    return capsys.readouterr()


def test_a_new_file_is_learned_as_what_follows(tmp_path, capsys):
    days(tmp_path, "b.csv", "d.csv", "a.csv")
    third = (tmp_path / "a.csv").read_text()
    (tmp_path / "a.csv").unlink()
    first = json.loads(fit_days(tmp_path, capsys).out)
    (tmp_path / "a.csv").write_text(third)  # though its name comes first
    said = fit_days(tmp_path, capsys, "-o", str(tmp_path / "m.hw"), code=1)
    assert "of which output was null" in said.err
    said = fit_days(tmp_path, capsys)
    assert "note: continuing with 1 new file." in said.err and first["rows"] == 1400
    learned = json.loads(said.out)
    whole = [str(tmp_path / name) for name in ("b.csv", "d.csv", "a.csv")]
    assert main(["fit", "gaussian", *whole, "-k", "2", "--set", "warm_up=200", "--chunk-rows", "100", "--json"]) == 0
    wanted = json.loads(capsys.readouterr().out)
    assert learned["rows"] == wanted["rows"] == 2100 and learned["components"] == wanted["components"]
    assert "all of this was learned before" in fit_days(tmp_path, capsys).err


def test_a_file_that_has_changed_is_refused_by_its_name(tmp_path, capsys):
    days(tmp_path, "a.csv", "b.csv")
    fit_days(tmp_path, capsys)
    (tmp_path / "a.csv").touch()
    assert "all of this was learned before" in fit_days(tmp_path, capsys).err  # the same values
    text = (tmp_path / "b.csv").read_text()
    (tmp_path / "b.csv").write_text(text + "1,2\n")
    size = len(text)
    assert fit_days(tmp_path, capsys, code=1).err == (
        f"headwater: {tmp_path / 'b.csv'} has changed since the checkpoint {tmp_path / 'c.ckpt'} learned it, {size:,} bytes "
        f"then and {size + 4:,} now: remove the checkpoint to begin anew, or choose another name for one.\n"
    )
    (tmp_path / "b.csv").unlink()
    assert f"{tmp_path / 'b.csv'} was learned by the checkpoint" in fit_days(tmp_path, capsys, code=1).err


@pytest.mark.parametrize("new", [False, True])
def test_ctrl_c_writes_the_checkpoint_and_the_same_command_goes_on(new, tmp_path, capsys, monkeypatch):
    days(tmp_path, "a.csv", "b.csv")
    learn, chunks = Monitor.learn, []

    def interrupted(self, chunk):
        chunks.append(chunk.start)
        if len(chunks) == 5:
            signal.raise_signal(signal.SIGINT)
        return learn(self, chunk)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # the process that started the tests may ignore it
    with monkeypatch.context() as patch:
        patch.setattr(Monitor, "learn", interrupted)
        said = fit_days(tmp_path, capsys, code=130)
    assert chunks == [0, 100, 200, 300, 400]
    assert said.err == (
        f"headwater: note: {tmp_path / 'c.ckpt'} is written, from which the same command continues.\nheadwater: interrupted.\n"
    )
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if new:
        days(tmp_path, "a.csv", "b.csv", "c.csv")
    rows = json.loads(fit_days(tmp_path, capsys).out)
    names = ["a.csv", "b.csv", *(["c.csv"] if new else [])]
    whole = [str(tmp_path / name) for name in names]
    assert main(["fit", "gaussian", *whole, "-k", "2", "--set", "warm_up=200", "--chunk-rows", "100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["components"] == rows["components"]


def test_a_checkpoint_with_other_records_of_files_is_refused(tmp_path):
    from headwater.cli.support.continued_data import match_stages

    days(tmp_path, "a.csv")
    for stages in (None, [[]], [["a"]], [[["a", 1]]], 3):
        with pytest.raises(ValueError, match="it does not say what was read"):
            match_stages(hw.stream(tmp_path / "a.csv"), stages, tmp_path / "c")
