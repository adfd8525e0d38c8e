"""Sets, orders, peers and tables of the benchmark of refinement; the values of its figures are not tested."""

import json
import math

import numpy as np
import pytest
from page_checks import complete, page_of

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from sklearn.mixture import GaussianMixture as Peer

from benchmarks import refinement, refinement_cost, refinement_lines, refinement_peers, refinement_real
from benchmarks.refinement_contenders import CONTENDERS, contender, streamed
from benchmarks.refinement_data import LONGEST, ORDERS, SEPARATIONS, SMALL, arranged, draw, shape_of, truth_of
from benchmarks.refinement_peers import Task, peers_of
from benchmarks.refinement_summary import summaries
from benchmarks.timing import one_thread
from pages.__main__ import main


def entry(number, loss, **more):
    peers = [{"n_init": n, "loss": 0.01 / n, "learned_loss": 0.02, "seconds": 2.0 * n} for n in (1, 5, 10)]
    runs = [
        {"order": order, "contender": one.name, "loss": loss, "learned_loss": 0.03, "learning": 0.5, "reading": 0.5}
        for order in ORDERS for one in CONTENDERS
    ]  # fmt: skip
    about = {"set": number, "text": "", "n_components": 3, "width": 2, "small": True, "elongated": False}
    return {**about, "rows": 100, "peers": peers, "runs": runs, **more}


COST = {
    "rows": 1000, "n_components": 10, "width": 10, "warm_up_rows": 10,
    "runs": [
        {"contender": "plain stream", "warm_up": [1.0, 2.0], "stream": [2.0, 1.5], "reading": [0.0, 0.5]},
        {"contender": "default", "warm_up": [1.0, 2.0], "stream": [2.0, 2.5], "reading": [0.2, 0.1]},
    ],
}  # fmt: skip


def test_sets_have_all_shapes():
    shapes = [shape_of(number, np.random.default_rng([7, number])) for number in range(refinement.SETS)]
    assert {shape.separation for shape in shapes} == set(SEPARATIONS)
    assert sum(shape.small for shape in shapes) >= refinement.SETS / 2
    assert 0 < sum(shape.elongated for shape in shapes) < refinement.SETS / 2
    assert (min(shape.n_components for shape in shapes), max(shape.n_components for shape in shapes)) == (3, 16)
    widths = [shape.width for shape in shapes]
    assert min(widths) == 2
    assert 25 <= max(widths) <= 30


@pytest.mark.parametrize("number", [0, 13])
def test_a_set_is_drawn_as_it_is_said(number):
    drawn = draw(7, number, 30_000, 100)
    again = draw(7, number, 30_000, 100)
    assert np.array_equal(drawn.rows, again.rows)
    assert np.array_equal(drawn.held_out, again.held_out)
    shares = np.bincount(drawn.labels, minlength=drawn.shape.n_components) / 30_000
    assert np.abs(shares - drawn.truth.weights).max() < 0.02
    assert drawn.truth.weights.sum() == pytest.approx(1.0)
    assert (drawn.truth.weights.min() == pytest.approx(SMALL)) == drawn.shape.small
    largest = int(np.argmax(shares))
    own = drawn.rows[drawn.labels == largest]
    assert np.abs(own.mean(axis=0) - drawn.truth.means[largest]).max() < 0.2
    ratios = np.linalg.cond(drawn.truth.covariances)
    assert np.allclose(ratios, LONGEST) == drawn.shape.elongated


def test_means_lie_apart_as_it_is_said():
    rng = np.random.default_rng(0)
    for number, (name, distance) in enumerate(SEPARATIONS.items()):
        squares = []
        for _ in range(60):
            shape = shape_of(number, rng)
            assert shape.separation == name
            means = truth_of(shape, rng).means
            squares.append(np.square(means[:, None] - means).sum(axis=2)[np.triu_indices(len(means), 1)].mean())
        assert np.sqrt(np.mean(squares)) == pytest.approx(distance, rel=0.15)


def test_orders_are_what_they_are_called():
    drawn = draw(7, 1, 4000, 10)
    n_components, places = drawn.shape.n_components, {}
    for name, order in ORDERS.items():
        places[name] = order(drawn, np.random.default_rng(3))
        assert np.array_equal(np.sort(places[name]), np.arange(4000))
    labels = {name: drawn.labels[places[name]] for name in ORDERS}
    assert np.count_nonzero(np.diff(labels["by cluster"])) == n_components - 1
    early = labels["half missing"][:1000]
    assert 1 <= len(np.unique(early)) <= n_components // 2
    assert len(np.unique(labels["half missing"][1200:])) == n_components
    assert np.all(np.diff(arranged(drawn, "by coordinate", 0)[:, 0]) >= 0.0)
    thirds = [np.bincount(part, minlength=n_components) / len(part) for part in np.array_split(labels["drifting"], 3)]
    mixed = [np.bincount(part, minlength=n_components) / len(part) for part in np.array_split(labels["shuffled"], 3)]
    assert np.ptp(thirds, axis=0).max() > 4 * np.ptp(mixed, axis=0).max()


@pytest.fixture(scope="module")
def task():
    drawn = draw(7, 3, 600, 300)
    return Task("tiny", 3, drawn.rows, drawn.held_out, restarts=3)


@pytest.fixture(scope="module")
def peers(task):
    with one_thread():
        return refinement_peers.find(task)


def test_restarts_are_those_of_scikit_learn(task, peers):
    with one_thread():
        made = Peer(3, n_init=3, max_iter=refinement_peers.MAX_ITER, random_state=np.random.RandomState(0)).fit(task.rows)
    assert max(each.bound for each in peers.restarts) == pytest.approx(made.lower_bound_)
    assert peers.score(3) == pytest.approx(float(made.score(task.held_out)))
    assert peers.score(1) == peers.restarts[0].score
    assert peers.learned(3) == pytest.approx(made.lower_bound_)
    assert peers.reference_learned >= peers.learned(3)
    assert peers.seconds(3) == pytest.approx(sum(each.seconds for each in peers.restarts))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_reference_is_better_on_the_rows_learned(task):
    with one_thread():
        start = Peer(3, random_state=0).fit(task.rows)
        best = refinement_peers.polished([start], task)
    assert best.score(task.rows) >= start.score(task.rows)


def test_peers_are_kept_for_the_rows_they_were_found_on(task, peers, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(refinement_peers, "find", lambda task: asked.append(task) or peers)
    monkeypatch.setattr(refinement_peers, "restarted", lambda task, state: (None, 2.0 * peers.restarts[0].seconds))
    assert peers_of(task, tmp_path) == peers
    again = peers_of(task, tmp_path)
    assert len(asked) == 1
    assert again.seconds(3) == pytest.approx(2.0 * peers.seconds(3))  # a slower minute
    assert [each.bound for each in again.restarts] == [each.bound for each in peers.restarts]
    assert again.reference == peers.reference
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.json"]
    other = Task("tiny", 3, task.rows + 1.0, task.held_out, restarts=3)
    assert other.fingerprint != task.fingerprint
    peers_of(other, tmp_path)
    peers_of(task, None)
    assert len(asked) == 3


def test_a_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_BENCHMARK_CACHE", str(tmp_path))
    assert refinement_peers.folder() == tmp_path
    monkeypatch.delenv("HEADWATER_BENCHMARK_CACHE")
    assert refinement_peers.folder().parent.name == "benchmarks"


def test_contenders_are_written_in_a_line():
    one = contender("em:algorithm=online-em,reg_covar=1e-4,unheard_of=3")
    assert (one.name, one.parameters) == ("em", {"algorithm": "online-em", "reg_covar": 1e-4, "unheard_of": 3})
    model = one.model(2, 5)
    assert (model.algorithm, model.reg_covar, model.random_state) == ("online-em", 1e-4, 5)
    assert contender("default").parameters == {}


def test_a_stream_is_judged_on_other_rows(task):
    run = streamed(contender("default").model(3, 0, warm_up=200), task.rows, task.held_out, judge_learned=True)
    model = contender("default").model(3, 0, warm_up=200).partial_fit(task.rows)
    assert run.score == pytest.approx(float(model.score(task.held_out)))
    assert run.learned == pytest.approx(float(model.score(task.rows)))
    assert run.seconds == run.learning + run.reading > 0.0


def test_losses_are_summed_up():
    found = summaries([entry(0, 0.001), entry(1, 0.004), entry(2, -0.002), entry(3, 0.041)])
    each = found["by cluster", "default"]
    assert (each.sets, each.mean, each.worst, each.close) == (4, pytest.approx(0.011), 0.041, 0.5)
    assert each.mean_without_gains == pytest.approx(0.0115)
    assert each.ninetieth == pytest.approx(0.7 * 0.041 + 0.3 * 0.004)
    assert (each.seconds, each.one_fit, each.ratio) == (4.0, 8.0, 0.5)
    assert found["all rows", "scikit-learn n_init=5"].ratio == 5.0


def test_only_the_default_has_to_reach_something():
    lines = {line.name: line for line in refinement_lines.set_lines([entry(0, 0.004), entry(1, 0.0)])}
    assert lines["mean loss, shuffled, default"].met is True
    assert lines["sets within 0.002, shuffled, default"].met is False
    assert lines["worst loss, shuffled, default"].met is True
    assert (lines["time, shuffled, default"].ratio, lines["time, shuffled, default"].met) == (2.0, True)
    assert lines["mean loss, by cluster, default"].target.bound == 0.01
    assert all(line.target is None for name, line in lines.items() if "plain" in name)
    long = refinement_lines.cost_line(COST)
    assert (long.ours, long.peer, long.met) == (2.2, 2.0, True)
    assert "extra cost +10%" in long.note


def test_a_real_set_that_is_absent_is_said_to_be(tmp_path):
    page = refinement.PAGE
    assert page.absent(page.full, tmp_path) == page.absent(page.full, None) == [real.name for real in refinement.REALS]
    assert not [*page.parts["real"](page.full, tmp_path)]
    found = {real.name: refinement_real.real_set(refinement.Plan(), real, 1, tmp_path) for real in refinement.REALS}
    assert [*found.values()] == [None] * 6
    lines = list(refinement_lines.real_lines(found))
    assert all(math.isnan(line.ours) and "HEADWATER_DATA" in line.note for line in lines)
    (line,) = refinement_lines.real_lines({"abalone": entry("abalone", 0.02, runs=[entry(0, 0.02)["runs"][1]])})
    assert (line.name, line.ours) == ("mean loss, abalone, shuffled, default", 0.02)


def test_real_rows_are_read_and_parted(tmp_path):
    rows = np.random.default_rng(0).normal(3.0, 5.0, size=(50, 2))
    (tmp_path / "a").mkdir()
    np.savez(tmp_path / "a" / "a.npz", X=rows)
    header = "x,kind,y"
    text = "\n".join([header, *(f"{x!r},g,{y!r}" for x, y in rows.tolist())])
    (tmp_path / "a" / "a.csv").write_text(text)
    for real in (refinement_real.Real("a", "a.npz", 2), refinement_real.Real("a", "a.csv", 2, ("kind",))):
        assert np.array_equal(real.read(real.path(tmp_path)), rows)
    learned, held_out = refinement_real.parted(rows)
    assert (len(learned), len(held_out)) == (40, 10)
    assert np.allclose(learned.std(axis=0), 1.0)
    assert np.allclose(held_out[1] - held_out[0], (rows[9] - rows[4]) / np.delete(rows, np.s_[4::5], axis=0).std(axis=0))


def test_the_page_has_what_was_measured():
    sets, real = {"0": entry(0, 0.004), "1": entry(1, 0.0)}, {"abalone": entry("abalone", 0.02)}
    text = complete(page_of(refinement.PAGE, sets=sets, real=real, cost={"long stream": COST}))
    assert "| default, one pass | 0.0020 | 0.0020 | 0.0036 | 0.0040 | 50% | 0.50 |" in text
    assert "| scikit-learn n_init=10 | 0.0010 | 0.0010 | 0.0010 | 0.0010 | 100% | 10.00 |" in text
    assert "| by cluster | plain stream | 0.0020 |" in text
    assert "| abalone: 100 rows, K3 d2 | scikit-learn n_init=1, all rows | 0.0100 | 0.0200 | 1.00 |" in text
    assert "| default | 1.000 | 2.000 | 0.100 | 2.200 |" in text
    assert "takes +10 % against" in text
    assert page_of(refinement.PAGE, sets=sets).count("Not measured.") == 2


def test_a_run_of_some_sets_and_contenders(monkeypatch, tmp_path):
    plans = []
    monkeypatch.setattr(refinement, "compared", lambda plan, number: plans.append(plan) or entry(number, 0.0))
    settings = [f"--set={one}" for one in ("sets=2", "first=3", "orders=('shuffled',)", "contenders=('small:reservoir=9',)")]
    assert main(["refinement", "--quick", "--only", "sets", "--out", str(tmp_path), *settings]) == 0
    assert [*json.loads((tmp_path / "refinement.json").read_text())["figures"]["sets"]] == ["3", "4"]
    assert plans[0].orders == ("shuffled",) and plans[0].cache is None
    assert [(one.name, dict(one.parameters)) for one in plans[0].contenders] == [("small", {"reservoir": 9})]


def test_contenders_take_turns_on_a_long_stream(monkeypatch):
    turns = []
    monkeypatch.setattr(
        refinement_cost, "spent", lambda one, rows, seed: turns.append((one.name, seed)) or refinement_cost.Spent(1.0, 2.0, 0.5)
    )
    found = refinement_cost.cost(0, 100, 2)
    assert turns == [(one.name, repeat) for repeat in range(2) for one in CONTENDERS]
    assert refinement_cost.extra(found) == 0.0
