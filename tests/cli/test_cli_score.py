import csv
import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pandas as pd
import pytest

import headwater as hw
from headwater.cli import main
from headwater.cli.support import score_reference
from headwater.cli.support.contenders import Contest, Split, legal_algorithms, run_algorithm
from headwater.cli.support.model_arguments import ModelSettings
from headwater.cli.support.options import ReadOptions
from headwater.estimators.open_sequences import Follower

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 2)) + 6.0 * RNG.integers(2, size=(300, 1))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("score")
    lines = [f'{one:.6f},{other:.6f},"row, {number}"' for number, (one, other) in enumerate(ROWS)]
    (place / "a.csv").write_text("\n".join(["a,b,name", *lines]) + "\n")
    lines[7] = ',1.0,"row, 7"'
    (place / "gaps.csv").write_text("\n".join(["a,b,name", *lines]) + "\n")
    common = ["fit", "gaussian", str(place / "a.csv"), "--exclude", "name", "-k", "2", "--json"]
    assert main([*common, "-o", str(place / "m.hw")]) == 0
    assert main([*common, "--set", "warm_up=100", "-o", str(place / "late.hw")]) == 0
    return place


@pytest.fixture
def scores(place, monkeypatch, capsys):
    monkeypatch.chdir(place)

    def run(*arguments, data="a.csv", model="m.hw", note=""):
        capsys.readouterr()
        assert main(["score", model, data, *arguments]) == 0
        out, err = capsys.readouterr()
        assert note is ANY or err == note
        return out

    return run


def read(text):
    rows = list(csv.DictReader(text.splitlines()))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_scores_are_those_of_python(scores, place):
    found, model = read(scores("--probabilities")), hw.load(place / "m.hw")
    stream = next(iter(hw.stream(place / "a.csv", like=model)))
    np.testing.assert_array_equal(np.array(found["score"], float), model.score_samples(stream))
    np.testing.assert_array_equal(np.array([found["p0"], found["p1"]], float).T, model.predict_proba(stream))
    assert [*map(int, found["cluster"])] == model.predict(stream).tolist()
    assert [*map(int, found["row"])] == list(range(300))


def test_a_rate_is_a_share_of_the_data(scores):
    found = read(scores("--rate", "0.1", "--rank", "--against", "data"))
    odd, score, rank = np.array(found["odd"]) == "true", np.array(found["score"], float), np.array(found["rank"], float)
    assert odd.sum() == 30 and score[odd].max() < score[~odd].min()
    np.testing.assert_allclose(rank, np.argsort(np.argsort(score)) / 300)


def test_a_rate_is_that_of_rows_that_were_learned_if_they_are_known(scores, place, capsys):
    model = hw.load(place / "late.hw")
    asked = json.loads(scores("--rate", "0.1", "-o", "s.parquet", "--json", model="late.hw"))
    assert asked["against"] == "learned" and asked["threshold"] == model.threshold(0.1) and asked["rows"] == 300
    model = hw.GaussianMixture(1, algorithm="online-vb", random_state=0).partial_fit(np.tile(ROWS, (10, 1)))
    model.save("swept.hw")  # has kept no scores
    assert main(["score", "swept.hw", "a.csv", "--rate", "0.1", "--against", "learned", "--exclude", "name"]) == 1
    assert "use --against data" in capsys.readouterr().err


def test_odd_rows_are_those_of_python(scores, place):
    model, rows = hw.load(place / "late.hw"), pd.DataFrame(ROWS, columns=["a", "b"])
    for options, asked in ((("--rate", "0.05"), {"rate": 0.05}), (("--fdr", "0.3"), {"fdr": 0.3})):
        found = read(scores(*options, model="late.hw", note=ANY))
        np.testing.assert_allclose(np.array(found["anomaly_score"], float), model.anomaly_score(rows), rtol=1e-4)
        np.testing.assert_allclose(np.array(found["pvalue"], float), model.anomaly_pvalue(rows), atol=0.02)
        assert np.mean((np.array(found["odd"]) == "true") == model.decide(rows, **asked)) > 0.98
    assert main(["score", "late.hw", "a.csv", "--fdr", "0.1", "--rate", "0.1"]) == 2
    assert main(["score", "late.hw", "-", "--fdr", "0.1"]) == 2


def test_a_rate_of_nothing_and_one_that_is_too_fine(scores, place, capsys):
    assert set(read(scores("--rate", "0", model="late.hw"))["odd"]) == {"false"}
    assert main(["score", "late.hw", "a.csv", "--rate", "0.000001", "-o", "s.csv", "-q"]) == 0
    assert "note: --rate 1e-06 is finer than the " in capsys.readouterr().err


def test_sequences_are_odd_by_the_score_of_a_symbol(tmp_path, capsys):
    sequences = [*np.random.default_rng(0).integers(0, 2, size=(50, 9)), [0, 2]]
    model = hw.MarkovMixture(1, n_symbols=3, random_state=0).fit(sequences)
    model.save(tmp_path / "m.hw")
    (tmp_path / "a.seq").write_text("0 1 1 0 1 0 0 0 1 1 0 1 0 0 1\n0 2\n0 1\n")
    assert main(["score", str(tmp_path / "m.hw"), str(tmp_path / "a.seq"), "--rate", "0.4", "--rank", "--against", "data"]) == 0
    found = read(capsys.readouterr().out)
    score, each = np.array(found["score"], float), np.array(found["score_per_symbol"], float)
    np.testing.assert_allclose(each, score / [15, 2, 2])
    assert found["symbols"] == ["15", "2", "2"] and np.argmin(score) == 0
    assert found["odd"] == ["false", "true", "false"] and np.argmin(np.array(found["rank"], float)) == 1


def test_what_has_no_words_has_no_rank():
    found = score_reference.Reference(np.array([-2.0, -1.0]), np.ones(2), "data").ranks(np.array([-1.5, np.nan]))
    np.testing.assert_array_equal(found, [0.5, np.nan])


def test_only_odd_rows_with_what_names_them(scores):
    found = read(scores("--threshold", "-6", "--only-odd", "--keep", "name"))
    assert 0 < len(found["row"]) < 100 and found["name"] == [f"row, {row}" for row in found["row"]]
    assert set(found["odd"]) == {"true"} and max(map(float, found["score"])) < -6.0


def test_kept_columns_follow_rows_that_are_left_out(scores):
    said = "headwater: note: 1 row was left out, since it lacks a value.\n"
    found = read(scores("--keep", "name", "--missing", "drop", data="gaps.csv", note=said))
    assert len(found["row"]) == 299 and "row, 7" not in found["name"] and found["name"][7] == "row, 8"


@pytest.mark.parametrize("chunk_rows", ["1", "2", "64"])
def test_a_row_that_lacks_a_value_has_a_line_without_a_score(chunk_rows, scores, place):
    """A model that was learned without such rows cannot score them; they have a line all the same."""
    assert (
        main(["fit", "gaussian", "gaps.csv", "--exclude", "name", "--missing", "drop", "-k", "2", "-o", "gaps.hw", "-q"]) == 0
    )
    said = "headwater: note: 1 of 300 rows has no score, since it lacks a value.\n"
    ask = {"data": "gaps.csv", "model": "gaps.hw", "note": said}
    found = read(scores("--threshold", "-6", "--probabilities", "--rank", "--keep", "name", "--chunk-rows", chunk_rows, **ask))
    assert found["row"] == [str(row) for row in range(300)] and found["name"] == [f"row, {row}" for row in range(300)]
    for column in ("score", "cluster", "odd", "rank", "p0", "p1"):
        assert [row for row, value in enumerate(found[column]) if value == ""] == [7]
    said_of_all = json.loads(scores("-o", "s.jsonl", "--json", **ask))
    assert said_of_all["rows"] == 300 and said_of_all["rows_without_score"] == 1 and said_of_all["rows_left_out"] == 0
    scored = [json.loads(line)["score"] for line in (place / "s.jsonl").read_text().splitlines()]
    assert scored[7] is None and said_of_all["mean_score"] == pytest.approx(np.mean(scored[:7] + scored[8:]))
    odd = read(scores("--threshold", "0", "--only-odd", **ask))
    assert len(odd["row"]) == 299 and "7" not in odd["row"]


@pytest.mark.slow
@pytest.mark.parametrize("chunk_rows", [["--chunk-rows", "1"], []])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_events_are_answered_as_they_come(kind, chunk_rows, place, monkeypatch):
    """One line in, one line out, before the next line is written."""
    monkeypatch.setenv("PYTHONPATH", str(Path(hw.__file__).parent.parent))
    command = [sys.executable, "-m", "headwater", "score", str(place / "m.hw"), "-", "--output-format", "jsonl", *chunk_rows]
    lines = ["0.5,1\n", "7,3.5\n", "0.5,1\n"] if kind == "csv" else ['{"a": 0.5, "b": 1}\n', '{"b": 3.5, "a": 7}\n'] * 2
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("a,b\n" if kind == "csv" else "")
        answers = []
        for line in lines:
            process.stdin.write(line)
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.stdout.read() == "" and process.wait(60) == 0
    assert [answer["row"] for answer in answers] == list(range(len(lines))) and answers[0]["score"] == answers[2]["score"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_what_is_written_can_be_read(ending, scores, place):
    wanted = np.array(read(scores())["score"], float)
    assert scores("-o", f"s.{ending}", "--chunk-rows", "64") == ""
    if ending == "jsonl":
        found = np.array([json.loads(line)["score"] for line in (place / "s.jsonl").read_text().splitlines()])
    else:
        found = np.concatenate([chunk.X[:, 0] for chunk in hw.stream(place / f"s.{ending}", columns=["score"])])
    np.testing.assert_array_equal(found, wanted)
    assert not list(place.glob(".*.part"))


def test_json_alone_goes_to_standard_output(scores):
    lines = [json.loads(line) for line in scores("--json").splitlines()]
    assert len(lines) == 300 and set(lines[0]) == {"row", "score", "cluster"}


@pytest.mark.parametrize("ending", ["parquet", "csv", "npy", "npz"])
def test_data_is_converted(ending, place, tmp_path, capsys):
    path = tmp_path / f"b.{ending}"
    capsys.readouterr()
    assert main(["convert", str(place / "a.csv"), "--exclude", "name", "-o", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 300
    found = np.load(path)["X"] if ending == "npz" else next(iter(hw.stream(path))).X
    np.testing.assert_array_equal(found, next(iter(hw.stream(place / "a.csv", exclude=["name"]))).X)


def test_sequences_and_snapshots_are_converted(tmp_path, capsys):
    (tmp_path / "a.seq").write_text("home news home\npay\n")
    assert main(["convert", str(tmp_path / "a.seq"), "--chunk-rows", "1"]) == 0
    assert read(capsys.readouterr().out) == {"sequence": ["0", "0", "0", "1"], "symbol": ["home", "news", "home", "pay"]}
    np.save(tmp_path / "a.npy", np.array([[1.0 + 2.0j], [3.0 - 1.0j]]))
    assert main(["convert", str(tmp_path / "a.npy")]) == 0
    assert read(capsys.readouterr().out) == {"x0_real": ["1", "3"], "x0_imag": ["2", "-1"]}


# Parts


def test_a_sample_of_many_scores_is_even(monkeypatch):
    monkeypatch.setattr(score_reference, "SAMPLE_SIZE", 500)
    scores = np.random.default_rng(0).permutation(20_000).astype(float)
    found = score_reference.sample_scores(np.array_split(scores, 37), "data")
    assert len(found.scores) == 500 and len(set(found.scores)) == 500
    for rate in (0.1, 0.5, 0.9):  # standard errors of a share of 500
        assert abs(found.threshold(rate) / 20_000 - rate) < 4.0 * np.sqrt(rate * (1.0 - rate) / 500)
    assert found.ranks(np.array([-1.0, 1e9])).tolist() == [0.0, 1.0]


def test_a_follower_goes_on_where_a_sequence_was_cut():
    model = hw.GaussianHMM(2, random_state=0).fit(ROWS)
    keys = np.arange(300) % 3
    follower = Follower(model)
    parts = [follower.follow(ROWS[at : at + 70], key=keys[at : at + 70]) for at in range(0, 300, 70)]
    scores = np.concatenate([part[0] for part in parts])
    for key in range(3):
        np.testing.assert_allclose(scores[keys == key], model.score_steps(ROWS[keys == key]))
    scores, states = Follower(model).follow(ROWS, lengths=[100, 200])
    np.testing.assert_allclose(scores, model.score_steps(ROWS, [100, 200]))
    np.testing.assert_allclose(states.sum(axis=1), 1.0)


@pytest.mark.parametrize("given", [{}, {"key": "key"}])
def test_what_is_held_out_is_not_learned(given):
    import pandas as pd

    table = pd.DataFrame(ROWS, columns=["a", "b"]).assign(key=np.arange(300) // 3)
    stream = hw.stream(table[["a", "b", *given.values()]], chunk_rows=64, **given)
    split = Split(hw.GaussianMixture(), stream, chained=False)
    learned, held = (np.concatenate([chunk.X for chunk in part()]) for part in (split.training_chunks, split.held_out_chunks))
    assert len(learned) + len(held) == 300 and 10 <= len(held) <= 60
    assert not {tuple(row) for row in learned} & {tuple(row) for row in held}


def test_the_last_part_of_one_sequence_is_held_out():
    split = Split(hw.GaussianHMM(), hw.stream(ROWS, chunk_rows=64), chained=True)
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in split.held_out_chunks()]), ROWS[270:])


def test_legal_algorithms_are_asked_for():
    assert "moment-matching" in legal_algorithms(hw.GaussianMixture(2))
    assert "moment-matching" not in legal_algorithms(hw.GaussianMixture(2, covariance_type="tied"))
    assert set(legal_algorithms(hw.LatentDirichletAllocation(2))) == {"auto", "boem", "simulated-em", "online-vb", "scvb0"}
    with pytest.raises(ValueError, match="covariance_type"):
        legal_algorithms(hw.GaussianMixture(2, covariance_type="odd"))


def test_a_contender_is_scored_on_what_it_has_not_seen(place):
    reading = ReadOptions(exclude="name")
    found = run_algorithm(Contest("gaussian", ModelSettings(k="2"), (str(place / "a.csv"),), reading), "em")
    X, out = next(iter(hw.stream(place / "a.csv", exclude=["name"]))).X, np.arange(300) % 10 == 9
    wanted = hw.GaussianMixture(2, algorithm="em", random_state=0).fit(X[~out]).score(X[out])
    assert found["score"] == pytest.approx(wanted, abs=1e-12)
    assert found["rows"] == 270 and found["held_out"] == 30 and found["error"] is None and found["memory"] >= 0


@pytest.mark.slow
def test_algorithms_are_compared(place, tmp_path, capsys):
    asked = ["compare", "gaussian", str(place / "a.csv"), "--exclude", "name", "-k", "2", "--json"]
    capsys.readouterr()
    assert main([*asked, "--picture", str(tmp_path / "c.png")]) == 0
    out, err = capsys.readouterr()
    results = json.loads(out)["results"]
    assert {one["algorithm"] for one in results} == set(legal_algorithms(hw.GaussianMixture(2))) and err == ""
    assert all(one["error"] is None and one["rows"] == 270 and one["held_out"] == 30 for one in results)
    scores = [one["score"] for one in results]
    assert scores == sorted(scores, reverse=True) and all(one["memory"] >= 0 for one in results)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_rows_that_are_left_out_are_said_by_every_command(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    reading = ["gaps.csv", "--exclude", "name", "--missing", "drop", "--json"]
    assert main(["fit", "gaussian", *reading, "-k", "2", "-o", "dropped.hw"]) == 0
    commands = [
        ["fit", "gaussian", *reading, "-k", "2"],
        ["fit", "gaussian", *reading, "-k", "2", "--passes", "2"],
        ["convert", *reading, "-o", "c.csv"],
        ["convert", *reading, "-o", "c.npy"],
        ["report", "dropped.hw", "gaps.csv", "-o", "r.html", "--json"],
        ["score", "m.hw", "gaps.csv", "--missing", "drop", "--json", "-o", "s.csv"],
    ]
    for command in commands:
        capsys.readouterr()
        assert main(command) == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["rows_left_out"] == 1 and "note: 1 row was left out, since it lacks a value.\n" in err
    assert (
        run_algorithm(
            Contest("gaussian", ModelSettings(k="2"), ("gaps.csv",), ReadOptions(exclude="name", missing="drop")), "em"
        )["rows_left_out"]
        == 1
    )


@pytest.mark.parametrize("name", ["row", "score", "cluster", "odd", "rank", "p0"])
def test_kept_columns_do_not_take_the_place_of_answers(name, place, tmp_path, capsys):
    data, output = tmp_path / "d.csv", tmp_path / "out.csv"
    data.write_text(f"a,b,{name}\n1,2,x\n")
    asked = ["--threshold", "-5", "--probabilities", "--keep", name, "-o", str(output)]
    if name == "rank":
        asked = ["--rank", "--against", "data", *asked]
    assert main(["score", str(place / "m.hw"), str(data), *asked]) == 2 and not output.exists()
    assert f"--keep {name} has a name that score gives to its own columns" in capsys.readouterr().err


def test_kept_columns_may_have_the_names_of_answers_that_are_not_asked_for(place, tmp_path, capsys):
    (tmp_path / "d.csv").write_text("a,b,odd,rank\n1,2,x,y\n")
    assert main(["score", str(place / "m.hw"), str(tmp_path / "d.csv"), "--keep", "odd,rank"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "row,odd,rank,score,cluster"


def test_rows_that_are_drawn_keep_their_columns(tmp_path, capsys):
    names = ["component", "state"]
    lines = [",".join(names), *(f"{one:.6f},{other:.6f}" for one, other in ROWS)]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    drawn = []
    for number in (0, 1):
        asked = ["--columns", "component,state"] if number == 0 else ["--columns", "component", "--target", "state"]
        model, kind = str(tmp_path / f"{number}.hw"), ("gaussian", "regression")[number]
        assert main(["fit", kind, str(tmp_path / "d.csv"), "-k", "2", "-q", "-o", model, *asked]) == 0
        capsys.readouterr()
        assert main(["sample", model, *([str(tmp_path / "d.csv")] if number else [])]) == 0
        drawn.append(read(capsys.readouterr().out))
    assert [*drawn[0]] == ["component", "state", "component_"] and set(drawn[0]["component_"]) <= {"0", "1"}
    assert not set(drawn[0]["component"]) <= {"0", "1"}
    assert [*drawn[1]] == ["component", "target", "component_"]
    np.testing.assert_allclose(np.array(drawn[1]["component"], float), ROWS[:, 0], atol=1e-6)


def test_a_word_that_is_called_like_the_target_is_converted_beside_it(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("body,y\ny y z,5\nz,6\n")
    assert main(["convert", str(tmp_path / "d.csv"), "--text", "body", "--target", "y"]) == 0
    assert read(capsys.readouterr().out) == {"y": ["2", "0"], "z": ["1", "1"], "y_": ["5", "6"]}
