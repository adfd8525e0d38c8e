"""The benchmarks of many machines: their scores, files and pages, and one run of each with few rows."""

import json
import tempfile

import numpy as np
import pytest
from page_checks import complete, page_of

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from benchmarks import many_machines, many_machines_data, many_machines_peers, parts_and_rounds, parts_and_rounds_values
from benchmarks import parts_and_rounds_data as drawn
from benchmarks.data import make_truth
from benchmarks.density import log_density, mean_score, mixture_of
from pages.__main__ import main

FIT = {"covariance": "full", "rows": 100, "passes": 1, "per_pass": None, "score": -3.25}


def figures(ratio=2.0):
    fits = [
        {"name": "headwater, 1 worker", "seconds": 2.0, "workers": 1, "report": "what one moved", **FIT},
        {"name": "headwater, 2 workers", "seconds": 1.0, "workers": 2, "report": "what two moved", **FIT},
    ]
    pair = {"line": "one pass, full", "one": 2.0, "two": 1.0, "ratio": ratio, "of_medians": 1.9}
    files = {"rows": 100, "files": 2, "components": 3, "width": 4, "bytes": 1000, "held_out": 10, "truth": -3.0}
    return {"files": files, "one pass/full": {"fits": fits, "pair": pair}}


def test_the_judge_knows_the_density_of_a_mixture():
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(0)
    truth = make_truth(3, 2, rng)
    rows = truth.sample(50, rng)
    parts = zip(truth.weights, truth.means, truth.covariances, strict=True)
    wanted = np.log(sum(weight * multivariate_normal(mean, cov).pdf(rows) for weight, mean, cov in parts))
    assert np.allclose(log_density(truth, rows), wanted, rtol=1e-12)
    variances = np.diagonal(truth.covariances, axis1=1, axis2=2)
    alone = mixture_of(truth.weights, truth.means, variances)
    assert np.array_equal(alone.covariances[1], np.diag(variances[1]))
    assert mean_score(truth, rows) == pytest.approx(wanted.mean(), rel=1e-12)


def test_files_are_written_once_and_hold_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first = many_machines_data.written(1000, 5)
    assert first.folder.parent == tmp_path
    before = {path: path.stat().st_mtime_ns for path in first.paths}
    again = many_machines_data.written(1000, 5)
    assert len(before) == many_machines_data.FILES
    assert {path: path.stat().st_mtime_ns for path in again.paths} == before
    assert np.array_equal(first.held_out, again.held_out)
    X = many_machines_peers.in_memory(again, None)
    assert X.shape == (1000, many_machines_data.WIDTH)
    assert np.array_equal(many_machines_peers.in_memory(again, 130), X[:130])
    # Files differ, and none has a held-out row.
    assert len({row.tobytes() for row in np.concatenate([X, again.held_out])}) == len(X) + len(again.held_out)


def test_sorted_rows_come_component_after_component():
    truth = make_truth(3, 2, np.random.default_rng(0), sep=100.0)
    rows = truth.sample(300, np.random.default_rng(1), shuffled=False)
    nearest = np.square(rows[:, None] - truth.means).sum(axis=2).argmin(axis=1)
    assert (np.diff(nearest) >= 0).all()
    assert set(nearest) == {0, 1, 2}


@pytest.mark.parametrize("kind", drawn.KINDS, ids=lambda kind: kind.name)
def test_a_data_set_suits_its_model(kind):
    found = kind.draw(640, np.random.default_rng(0))
    assert found.rows.shape == (640, found.held_out.shape[1])
    assert len(found.held_out) == 64


def test_the_page_has_what_was_measured():
    text = complete(page_of(many_machines.PAGE, workers=figures()))
    assert "| one pass, full | 2.00 | 1.00 | 2.00 | 1.90 |" in text and "reached by one pass, full." in text
    assert "| headwater, 2 workers | full | 0.0001 | 1 | 1.0 |  | -3.2500 | 0.2500 |" in text
    assert "what two moved" in text and "what one moved" not in text and "Spark 4" not in text
    assert "<!-- table: many-machines-workers -->\n\n|" in text
    peers = {"spark": {"local[2]": {"fits": [{"name": "Spark 4.3.0, local[2]", "seconds": 9.0, **FIT}]}}}
    text = page_of(many_machines.PAGE, workers=figures(1.5), dask_ml={"dask-ml": {"said": "dask-ml says nothing."}}, **peers)
    assert "| Spark 4.3.0, local[2] | full |" in text and "dask-ml says nothing." in text and "reached by none." in text


def test_peers_without_an_interpreter_are_absent(monkeypatch):
    for name in (many_machines.SPARK, many_machines.DASK_ML):
        monkeypatch.delenv(name, raising=False)
    assert many_machines.PAGE.absent(many_machines.PAGE.full, None) == [
        "Spark (HEADWATER_SPARK_PYTHON)", "dask-ml (HEADWATER_DASK_ML_PYTHON)",
    ]  # fmt: skip
    assert not [*many_machines.measure_spark(many_machines.PAGE.full, None)]


def test_losses_are_shown_beside_those_of_streams():
    streams = [["shuffled", "another stream", None, 0.001], ["sorted", "one stream", None, 0.7]]
    sets = {
        f"Gaussians/{number}": {
            "kind": "Gaussians", "rows": 100, "per": "row",
            "losses": [*streams, ["shuffled", 4, 1, loss], ["shuffled", 4, "auto", loss], ["sorted", 4, "auto", 0.0]],
        }
        for number, loss in enumerate((0.01, 0.03))
    }  # fmt: skip
    lines = parts_and_rounds_values.loss_table([*sets.values()]).splitlines()
    assert lines[0] == "| rows |  | rounds: 1 | rounds: auto |"
    assert lines[2:] == [
        "| shuffled | another stream | 0.0010 (0.0010) |  |",
        "| shuffled | 4 parts | 0.0200 (0.0300) | 0.0200 (0.0300) |",
        "| sorted | one stream | 0.7000 (0.7000) |  |",
        "| sorted | 4 parts |  | 0.0000 (0.0000) |",
    ]
    text = complete(page_of(parts_and_rounds.PAGE, losses=sets))
    assert "2 data sets of 100 rows; nats a row." in text and "<!-- table: parts-and-rounds-gaussians -->" in text


def test_two_fits_give_the_seconds_of_a_pass():
    short, long = {"seconds": 10.0, "passes": 2}, {"seconds": 26.0, "passes": 10}
    assert many_machines_peers._difference(long, short) == 2.0
    assert many_machines_peers._difference(short, None) is None


@pytest.mark.slow
def test_one_worker_and_two_run(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    settings = ["--set", "rows=32000", "--set", "sklearn_threads=1"]
    assert main(["many_machines", "--quick", "--out", str(tmp_path), *settings]) == 0
    found = json.loads((tmp_path / "many_machines.json").read_text())["figures"]
    assert len([one for one in found["workers"].values() if "pair" in one]) == 4
    scores = {fit["name"]: fit["score"] for fit in found["workers"]["one pass/full"]["fits"]}
    assert scores["headwater, 1 worker"] == scores["headwater, 2 workers"] > found["workers"]["files"]["truth"] - 0.1


@pytest.mark.slow
def test_parts_and_rounds_run(tmp_path):
    pytest.importorskip("distributed")
    assert main(["parts_and_rounds", "--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "parts_and_rounds.json").read_text())["figures"]["losses"]
    assert {one["kind"] for one in found.values()} == {kind.name for kind in drawn.KINDS}
    for one in found.values():
        assert {(way, rounds) for _, way, rounds, _ in one["losses"]} >= {(4, 1), (4, 4), (4, "auto"), (1, 1)}
