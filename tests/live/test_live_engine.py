"""The engine: what it learns is a function of the events alone, each once."""

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from live.live_models import COLUMNS, events, learned_model, rows

import headwater as hw
from headwater.live.engine import Engine, EngineSettings
from headwater.live.event_log import EventLog
from headwater.live.event_reader import EventReader
from headwater.live.events import Event, Group
from headwater.live.learner import BLOCK_EVENTS
from headwater.live.scorer import Decision
from headwater.live.seen_ids import SeenIds, digest_of


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / "m.hw"
    learned_model().save(path)
    return path


def engine_in(folder, model_file, **settings):
    settings = {"learns": True, "folder": folder, "id_field": "id", "snapshot_seconds": 3600.0, **settings}
    return Engine(hw.load(model_file), EngineSettings(**settings))


def run(engine, batches, replays=False, ended=True):
    for taken in engine.start():
        engine.commit(taken)
    answers = []
    for batch in batches:
        taken = engine.take([Event(one) for one in batch], "s", replays)
        engine.commit(taken)
        answers += taken.answers
    engine.close(ended)
    return answers


def cut(found, sizes):
    at = 0
    while at < len(found):
        size = sizes.pop(0) if sizes else 100
        yield found[at : at + size]
        at += size


def test_the_model_is_that_of_a_monitor_on_blocks(tmp_path, model_file):
    found = events(500)
    engine = engine_in(tmp_path, model_file)
    run(engine, cut(found, [1, 70, 3, 200]))
    wanted = hw.load(model_file).branch()
    X = np.array([[one[name] for name in COLUMNS] for one in found])
    monitor = hw.Monitor(wanted, timed=False)
    for begin in range(0, 500, BLOCK_EVENTS):
        monitor.learn(pd.DataFrame(X[begin : begin + BLOCK_EVENTS], columns=COLUMNS))
    np.testing.assert_array_equal(engine.learner.model.means_, wanted.means_)
    assert engine.learner.model.n_samples_seen_ == wanted.n_samples_seen_ == 2500


def test_the_cut_of_the_stream_and_snapshots_change_no_bit(tmp_path, model_file):
    found = events(700)
    one = engine_in(tmp_path / "one", model_file)
    run(one, [found])
    other = engine_in(tmp_path / "other", model_file, snapshot_seconds=0.0)
    run(other, cut(found, [1, 2, 3, 150, 90, 1, 1]))
    assert (tmp_path / "one" / "snapshot.hw").read_bytes() == (tmp_path / "other" / "snapshot.hw").read_bytes()


def test_stops_in_between_change_no_bit(tmp_path, model_file):
    found = events(500)
    run(engine_in(tmp_path / "one", model_file), [found])
    for part in (found[:130], found[130:131], found[131:350]):
        run(engine_in(tmp_path / "other", model_file), [part], ended=False)
    run(engine_in(tmp_path / "other", model_file), [found[350:]])
    assert (tmp_path / "one" / "snapshot.hw").read_bytes() == (tmp_path / "other" / "snapshot.hw").read_bytes()


def test_an_event_that_comes_twice_is_learned_once(tmp_path, model_file):
    found = events(200)
    engine = engine_in(tmp_path, model_file)
    answers = run(engine, [found[:100], found[:100], found[100:]])
    assert engine.learner.model.n_samples_seen_ == 2200
    assert [one.get("double", False) for one in answers] == [False] * 100 + [True] * 100 + [False] * 100
    assert engine.counts.doubles == 100
    again = engine_in(tmp_path, model_file)  # which knows them after a restart, too
    assert all(one["double"] for one in run(again, [found]))
    assert again.learner.model.n_samples_seen_ == 2200


def test_events_are_answered_again_if_they_were_logged_and_not_saved(tmp_path, model_file):
    found = events(150)
    engine = engine_in(tmp_path, model_file)
    engine.learner.start()
    first = engine.take([Event(one) for one in found], "s", replays=False)
    engine._lock.release()  # the process ends here
    other = engine_in(tmp_path, model_file)
    again = list(other.start())
    assert [one["id"] for one in again[0].answers] == [one["id"] for one in found]
    assert [one["score"] for one in again[0].answers] == [one["score"] for one in first.answers]
    assert [one["event"] for one in again[0].answers] == list(range(1, 151))
    for taken in again:
        other.commit(taken)
    other.close(ended=True)
    assert other.learner.model.n_samples_seen_ == 2150


def test_events_that_could_not_be_logged_are_not_in_the_log(tmp_path, model_file, monkeypatch):
    engine = engine_in(tmp_path, model_file, id_field=None)
    engine.learner.start()
    events_of = [Event(one) for one in events(5)]
    engine.commit(engine.take(events_of, "s", replays=False))

    def full():
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(engine.log, "sync", full)
        engine.take(events_of, "s", replays=False)
    engine.commit(engine.take(events_of, "s", replays=False))
    assert [one.logged for one in engine.log.read(0)] == [5, 10]
    engine.close(ended=True)
    assert engine.learner.model.n_samples_seen_ == 2010


def test_a_frozen_model_scores_and_learns_nothing(model_file):
    engine = engine_in(None, model_file, learns=False, decision=Decision(threshold=-20.0))
    answers = run(engine, [[*events(10), {"id": 11, "a": 90.0, "b": 0.0, "c": 0.0}]])
    wanted = hw.load(model_file)
    X = np.vstack([[[one[name] for name in COLUMNS] for one in events(10)], [[90.0, 0.0, 0.0]]])
    np.testing.assert_allclose([one["score"] for one in answers], scores_of(wanted, X))
    assert [one["odd"] for one in answers] == [False] * 10 + [True]
    assert answers[-1]["reasons"][0]["column"] == "a" and not answers[-1]["learned"]
    assert engine.learner.model.n_samples_seen_ == 2000


def scores_of(model, X):
    return model.score_samples(pd.DataFrame(X, columns=COLUMNS))


@pytest.mark.parametrize(("fields", "said"), [
    ({"a": "x", "b": 1, "c": 1}, "field 'a' must be a number, got 'x'"),
    ({"a": [1], "b": 1, "c": 1}, "field 'a' must be a number, got \\[1\\]"),
    ({"a": 1e300, "b": 1, "c": 1}, "rescale"),
    ({"a": float("inf"), "b": 1, "c": 1}, "must be a number, got inf"),
    ({"d": 1}, "none of the fields 'a', 'b', 'c' is there"),
])  # fmt: skip
def test_a_bad_event_is_answered_with_a_sentence_and_the_others_go_on(tmp_path, model_file, fields, said):
    engine = engine_in(tmp_path, model_file)
    answers = run(engine, [[*events(3), fields, *events(3, first=3)]])
    with pytest.raises(ValueError, match=said):
        raise ValueError(answers[3]["error"])
    assert [one.get("learned") for one in answers] == [True] * 3 + [None] + [True] * 3
    assert engine.learner.model.n_samples_seen_ == 2006 and engine.counts.refused == 1


def test_missing_fields_are_gaps_and_further_ones_are_ignored(tmp_path, model_file):
    engine = engine_in(tmp_path, model_file, learns=False)
    one, other = run(engine, [[{"a": 0.0, "b": 0.0, "zzz": "?"}, {"a": 0.0, "b": None, "c": ""}]])
    assert "error" not in other
    assert one["score"] == pytest.approx(scores_of(hw.load(model_file), [[0.0, 0.0, np.nan]])[0])


def test_a_damaged_snapshot_gives_way_to_the_one_before(tmp_path, model_file):
    found, said = events(400), []
    run(engine_in(tmp_path, model_file), [found[:200]], ended=False)
    run(engine_in(tmp_path, model_file), [found[200:300]], ended=False)
    (tmp_path / "snapshot.hw").write_bytes((tmp_path / "snapshot.hw").read_bytes()[:-100])
    engine = Engine(
        hw.load(model_file),
        EngineSettings(learns=True, folder=tmp_path, id_field="id"),
        lambda kind, **parts: said.append(kind),
    )
    run(engine, [found[300:]])
    assert "fallback" in said and (tmp_path / "snapshot.damaged.hw").exists()
    run(engine_in(tmp_path / "calm", model_file), [found])
    wanted, learned = hw.load(tmp_path / "calm" / "snapshot.hw"), hw.load(tmp_path / "snapshot.hw")
    assert learned.n_samples_seen_ == 2400
    np.testing.assert_array_equal(learned.means_, wanted.means_)


def test_another_stream_is_refused(tmp_path, model_file):
    run(engine_in(tmp_path, model_file, identity={"model": "a"}), [events(70)])
    with pytest.raises(ValueError, match='model was "a", and now it is "b"'):
        engine_in(tmp_path, model_file, identity={"model": "b"})


def test_a_folder_belongs_to_one_process(tmp_path, model_file):
    engine = engine_in(tmp_path, model_file)
    with pytest.raises(ValueError, match="is in use by another process"):
        engine_in(tmp_path, model_file)
    run(engine, [])
    run(engine_in(tmp_path, model_file), [])


def test_models_that_take_no_rows_of_columns_are_refused():
    hmm = hw.GaussianHMM(2, random_state=0).fit(rows(200))
    with pytest.raises(ValueError, match="takes sequences"):
        EventReader(hmm)
    with pytest.raises(ValueError, match="too few: learn more"):
        EventReader(hw.GaussianMixture(2).partial_fit(rows(10)))


def test_a_table_of_words_and_numbers_is_scored_and_learned(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{color},{value:.4f}" for color, value in zip(rng.choice(["red", "blue"], 3000), rng.normal(size=3000), strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["color,value", *lines]) + "\n")
    model = hw.MixedMixture(1, random_state=0)
    hw.Monitor(model, timed=False).learn(hw.stream(tmp_path / "t.csv", categories="keep"))
    model.save(tmp_path / "t.hw")
    engine = Engine(hw.load(tmp_path / "t.hw"), EngineSettings(learns=True, folder=tmp_path / "s"))
    still = Engine(hw.load(tmp_path / "t.hw"), EngineSettings())
    found = [{"color": "red", "value": 0.5}, {"color": "green", "value": 1.0}, {"value": "-1"}, {"color": 3, "value": "x"}]
    answers = run(engine, [found] + [[{"color": "blue", "value": 0.1 * place}] for place in range(70)])
    assert [("error" in one) for one in answers[:4]] == [False, False, False, True]
    wanted = model.score_samples(hw.stream(pa.table({"color": ["red"], "value": [0.5]}), like=model))
    assert still.score([Event(found[0])])[0]["score"] == pytest.approx(wanted[0])
    assert hw.load(tmp_path / "s" / "snapshot.hw").n_samples_seen_ == 3073


def test_a_source_that_catches_up_is_scored_by_a_model_that_has_learned(tmp_path, model_file, monkeypatch):
    from headwater.live.learner import LAG_EVENTS, Learner

    learn = Learner.learn
    monkeypatch.setattr(Learner, "learn", lambda self, group: (time.sleep(0.02), learn(self, group)))
    engine = engine_in(tmp_path, model_file)
    backlogs = []
    list(engine.start())
    for batch in cut(events(6000), [300] * 20):
        engine.commit(engine.take([Event(one) for one in batch], "s"))
        backlogs.append(engine.learner.backlog)
    engine.close(ended=True)
    assert 0 < max(backlogs) < LAG_EVENTS


def test_events_are_odd_at_the_rate_that_the_model_decides_by(model_file):
    engine = engine_in(None, model_file, learns=False, decision=Decision(rate=0.05))
    found = events(2000, seed=5)
    taken = engine.take([Event(one) for one in found], "s")
    X = pd.DataFrame(found)[list(COLUMNS)]
    wanted = hw.load(model_file)
    np.testing.assert_allclose([one["anomaly_score"] for one in taken.answers], wanted.anomaly_score(X))
    np.testing.assert_allclose([one["pvalue"] for one in taken.answers], wanted.anomaly_pvalue(X), atol=0.02)  # who breaks ties
    odd = np.array([one["odd"] for one in taken.answers])
    assert np.mean(odd != wanted.decide(X, rate=0.05)) < 0.002 and 0.03 < odd.mean() < 0.07


def test_of_the_events_that_are_called_odd_few_are_usual(model_file):
    engine = engine_in(None, model_file, learns=False, decision=Decision(fdr=0.1))
    found = events(3000, seed=6)
    for place in range(0, 3000, 100):
        found[place]["a"] = 60.0
    answers = run(engine, cut([*found, *found[:5]], [7, 500, 1]))
    odd = np.array([one["odd"] for one in answers[:3000]])
    assert odd[::100].all() and 30 <= odd.sum() <= 35
    table = [one["odd"] for one in engine.score([Event(one) for one in found[:50]])]
    assert table[0] and sum(table) <= 3
    for decision in ({"fdr": 2.0}, {"fdr": 0.1, "rate": 0.1}):
        with pytest.raises(ValueError, match=r"fdr"):
            Decision(**decision)


def test_a_batch_of_bad_events_alone_is_answered(model_file):
    engine = engine_in(None, model_file, learns=False, decision=Decision(rate=0.01))
    assert ["error" in one for one in run(engine, [[{"a": "x"}], events(1)])] == [True, False]
    assert "error" in engine.score([Event({"a": "x"})])[0]


# The log


def logged(folder):
    return [(one.logged, one.values.tolist()) for one in EventLog(folder).read(0)]


def test_a_log_reads_what_was_written_and_drops_what_is_cut_short(tmp_path):
    log = EventLog(tmp_path)
    for place in range(3):
        log.append(Group(np.full((2, 3), float(place)), [None, digest_of(place)]))
    log.sync()
    log.close()
    (path,) = tmp_path.glob("events-*.log")
    whole, data = logged(tmp_path), path.read_bytes()
    assert [last for last, _ in whole] == [2, 4, 6]
    assert [one.ids for one in EventLog(tmp_path).read(4)] == [[None, digest_of(2)]]
    record = len(data) // 3
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        assert logged(tmp_path) == whole[: size // record]
    path.write_bytes(data[: record + 20] + b"?" + data[record + 21 :])
    with pytest.raises(ValueError, match="is damaged at byte"):
        EventLog(tmp_path)


def test_old_segments_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("headwater.live.event_log.SEGMENT_BYTES", 100)
    log = EventLog(tmp_path)
    for place in range(5):
        log.append(Group(np.full((1, 3), float(place)), [None]))
    assert len(list(tmp_path.glob("events-*.log"))) == 5
    log.remove_until(3)
    assert [one.logged for one in log.read(0)] == [4, 5]
    log.close()


def test_ids_survive_as_text():
    seen = SeenIds(3, [digest_of(one) for one in "abc"])
    again = SeenIds.from_text(seen.to_text(), 3)
    assert all(digest_of(one) in again for one in "abc") and again.to_text() == seen.to_text()
    for bad in (3, "AAA", "AAAA"):
        with pytest.raises(ValueError):
            SeenIds.from_text(bad)


def test_config_and_options(tmp_path, model_file, capsys):
    from headwater.cli import main

    (tmp_path / "new.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events(100)))
    config = tmp_path / "live.toml"
    config.write_text(
        f'source = ["{tmp_path / "new.jsonl"}"]\nmodel = "{model_file}"\nrate = 0.01\nsink = ["{tmp_path / "o.csv"}"]\n'
    )
    assert main(["watch", "--config", str(config), "-q"]) == 0
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 101
    config.write_text("rat = 0.01\n")
    assert main(["watch", "--config", str(config)]) == 1
    assert "has the option 'rat', which there is not" in capsys.readouterr().err
    assert main(["watch", str(tmp_path / "new.jsonl")]) == 2
    assert main(["watch", str(tmp_path / "new.jsonl"), "-m", str(model_file), "--alarm", "-"]) == 2
    for sink in ("new.jsonl", "other.jsonl"):
        assert main(["watch", str(tmp_path), "-m", str(model_file), "--alarm", str(tmp_path / sink), "--rate", "0.1"]) == 1
        assert "would be read as events" in capsys.readouterr().err
    assert main(["watch", "redis://h/s", "-m", str(model_file), "--sink", "redis://h/s?maxlen=9"]) == 1
    assert main(["watch", str(tmp_path / "none"), "-m", str(model_file)]) == 1
    assert not Path(f"{model_file}.live").exists()
