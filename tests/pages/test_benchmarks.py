"""Every benchmark runs once, with sizes so small that the figures mean nothing."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from benchmarks import __main__ as command
from benchmarks import chain_data, chains, converge, files, large_file, memory, passes, report, startup
from benchmarks.data import PRECISIONS, make_truth
from benchmarks.line import Line, at_least, at_most, rates, times
from benchmarks.registry import TOPICS, find, run
from benchmarks.scale import FULL, QUICK, Scale
from benchmarks.timing import Timing, interleave

TINY = Scale("tiny", divide=10_000, repeats=1, seeds=1)
NEW_PROCESSES = {"startup", "memory", "files"}


@pytest.fixture
def small_cases(monkeypatch):
    """Leave out the wide cases, which take seconds with any number of rows."""
    narrow = {case.covariance_type: replace(case, n_components=3, width=4) for case in passes.CASES}
    monkeypatch.setattr(passes, "CASES", tuple(narrow.values()))
    monkeypatch.setattr(converge, "CASES", (replace(converge.CASES[0], width=3),))


SHORT = ("spectra", "scoring", "small_fit")  # the others take seconds, even where rows are few


@pytest.mark.parametrize(
    "name",
    [name if name in SHORT else pytest.param(name, marks=pytest.mark.slow) for name in TOPICS if name not in NEW_PROCESSES],
)
@pytest.mark.usefixtures("small_cases")
def test_benchmark_yields_lines(name):
    lines = list(run(name, TINY))
    assert lines
    assert len({line.name for line in lines}) == len(lines)
    for line in lines:
        assert line.unit
        # Losses may be negative, and no set need be close.
        assert line.unit in ("nat/row", "%") or math.isnan(line.ours) or line.ours > 0.0
        json.dumps(report.without_nan(line.to_json()), allow_nan=False)


def test_every_topic_is_registered():
    assert [find(name).__name__ for name in TOPICS] == list(TOPICS)
    with pytest.raises(ValueError, match="'pases' is no benchmark: choose from passes"):
        find("pases")


@pytest.mark.slow
def test_memory_is_that_of_a_new_process():
    ballast = np.ones(2**26)  # 512 MB that must not count as memory of the child
    peaks = memory.streamed("gaussian", 2_000)
    assert 10.0 < peaks.before <= peaks.after < ballast.nbytes / 2**20


def test_cold_copy_has_no_compiled_kernels():
    found = startup.first_fit("import headwater, pathlib; print(*pathlib.Path(headwater.__file__).parent.rglob('*.nbi'))")
    assert found.output.strip() == ""
    assert found.seconds > 0.0


def test_contenders_take_turns():
    calls = []
    timings = interleave({name: lambda repeat, name=name: calls.append((name, repeat)) for name in "AB"}, 2)
    assert calls == [("A", 0), ("B", 0), ("A", 1), ("B", 1)]
    assert 0.0 <= timings["A"].best <= timings["A"].median


def test_lines_say_how_many_times_better():
    fast, slow = Timing(1.0, 2.0), Timing(4.0, 5.0)
    line = times("fit", fast, slow, unit="ms", target=at_least(4))
    assert (line.ours, line.peer, line.ratio, line.median_ratio, line.met) == (1e3, 4e3, 4.0, 2.5, True)
    line = rates("pass", fast, slow, rows=2_000_000, target=at_least(4.1))
    assert (line.ours, line.peer, line.ratio, line.met) == (2.0, 0.5, 4.0, False)
    assert times("call", fast, target=at_most(1)).met
    assert times("call", fast).met is None
    assert not rates("noise", Timing(-1.0, 1.0), slow, rows=1, target=at_least(1)).met


def test_a_miss_counts_as_zero():
    peers = [converge.Run(10.0, -1.0, 20, 10)] * 3
    ours = [converge.Run(1.0, -1.0), converge.Run(1.0, -1.0021), converge.Run(2.0, -1.0019)]
    line = converge.judge("contender", ours, peers)
    assert line.details["ratios"] == [10.0, 0.0, 5.0]
    assert line.ratio == 5.0
    assert "misses 1 of 3; worst a miss" in line.note


def test_a_chain_is_drawn_as_it_is_said():
    rng = np.random.default_rng(0)
    chain = chain_data.make_chain(3, 4, rng, symbols=True)
    states = chain.states(60_000, rng)
    steps = np.zeros((3, 3))
    np.add.at(steps, (states[:-1], states[1:]), 1.0)
    assert np.abs(steps / steps.sum(axis=1, keepdims=True) - chain.transitions).max() < 0.02
    assert np.diag(chain.transitions).min() >= chain_data.STAYS
    X = chain.sample(60_000, np.random.default_rng(1))
    states = chain.states(60_000, np.random.default_rng(1))
    for state in range(3):
        found = np.bincount(X[states == state, 0].astype(int), minlength=4) / (states == state).sum()
        assert np.abs(found - chain.emissions[state]).max() < 0.02


def test_a_curve_says_when_it_was_good_enough():
    curve = chains.Curve([1.0, 2.0, 3.0], [-3.0, -2.0, -1.5])
    assert curve.until(-2.0) == 2.0
    assert math.isnan(curve.until(-1.0))


def test_the_peer_is_watched_pass_by_pass():
    rng = np.random.default_rng(2)
    X = chain_data.SYMBOLS.draw(2, rng).sample(2000, rng)
    watch = chain_data.watched(chain_data.SYMBOLS, chain_data.SYMBOLS.peer(2, n_iter=4, tol=-np.inf, random_state=0), X)
    assert len(watch.spent) == len(watch.parameters) == 4
    assert watch.spent == sorted(watch.spent)
    scores = [chain_data.SYMBOLS.log_likelihood(one, X) for one in watch.parameters]
    assert scores == sorted(scores)


@pytest.mark.parametrize("width", [2, 10])
def test_truth_has_the_stated_spread(width):
    rng = np.random.default_rng(0)
    truth = make_truth(2000, width, rng, sep=0.8)
    assert truth.means.std() == pytest.approx(0.8, rel=0.03)
    assert np.abs(truth.covariances.mean(axis=0) - np.eye(width)).max() < 0.06
    assert {kind: make(truth.covariances).ndim for kind, make in PRECISIONS.items()} == {
        "full": 3, "tied": 2, "diag": 2, "spherical": 1,
    }  # fmt: skip


def test_sample_keeps_weights_and_moments():
    rng = np.random.default_rng(1)
    truth = make_truth(3, 2, rng)
    rows = truth.sample(100_000, rng)
    assert np.abs(rows.mean(axis=0) - truth.weights @ truth.means).max() < 0.02
    half = rows[:50_000].mean(axis=0) - rows[50_000:].mean(axis=0)
    assert np.abs(half).max() < 0.03  # shuffled: no half is of one component


def test_command_prints_a_table_and_writes_json(monkeypatch, capsys, tmp_path):
    line = Line("a line", 2.0, 8.0, "s", 4.0, at_least(3), "a note", 3.5, {"noise": math.nan})
    monkeypatch.setattr(command, "run", lambda name, scale: iter([line]))
    command.main(["passes", "--quick", "--seed", "7", "--json", str(tmp_path / "results.json")])
    printed = capsys.readouterr().out
    assert "a line" in printed
    assert "4.00x" in printed
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["scale"] == {
        "name": "quick", "divide": QUICK.divide, "repeats": QUICK.repeats, "seeds": QUICK.seeds, "first_seed": 7,
    }  # fmt: skip
    assert {"cpu", "cores", "date", "threads", "numba", "scikit-learn", "headwater"} <= found["machine"].keys()
    (entry,) = found["benchmarks"]["passes"]["lines"]
    assert (entry["ratio"], entry["target"], entry["met"], entry["details"]) == (4.0, ">= 3x", None, {"noise": None})


def test_only_the_full_scale_is_judged():
    line = Line("a line", 2.0, 8.0, "s", 4.0, at_least(3))
    judged, not_judged = (report.document({"a": [line]}, {"a": 1.0}, {}, scale) for scale in (FULL, QUICK))
    assert judged["benchmarks"]["a"]["lines"][0]["met"] is True
    assert not_judged["benchmarks"]["a"]["lines"][0]["met"] is None
    assert "yes" in report.cells(line, FULL)[7]
    assert report.cells(line, QUICK)[7] == ""


@pytest.mark.slow
def test_a_long_file_needs_no_more_memory_than_a_short_one(tmp_path):
    lines = list(run("files", replace(TINY, divide=10)))
    assert [line.name[:7] for line in lines] == ["CSV to ", "Parquet", "peak me"]
    assert all(line.ours > 0.0 for line in lines)
    block = tmp_path / "block.csv"
    files.write_csv(np.random.default_rng(0).normal(size=(50_000, 10)), block)
    peaks = []
    for size in (2**25, 2**28):
        assert large_file.appended(block, tmp_path / "long.csv", size) >= size
        peaks.append(large_file.streamed(tmp_path / "long.csv"))
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < large_file.MOST
