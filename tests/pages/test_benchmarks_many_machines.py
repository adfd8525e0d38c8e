"""The benchmarks of many machines: their judge, their files and pages, and each run once with few rows."""

import json

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="run from the root of the repository")

from benchmarks import (
    many_machines,
    many_machines_data,
    many_machines_page,
    many_machines_peers,
    page,
    parts_and_rounds,
    parts_and_rounds_page,
)
from benchmarks import parts_and_rounds_data as drawn
from benchmarks.data import make_truth
from benchmarks.density import log_density, mean_score, mixture_of

MACHINE = {"cpu": "a CPU", "cores": 2, "memory_gb": 8.0, "load_average": 0.0, "date": "2026-01-01", "headwater": "0"}
FIT = {"covariance": "full", "rows": 100, "passes": 1, "per_pass": None, "score": -3.25}


def figures(**others):
    fits = [
        {"name": "headwater, 1 worker", "seconds": 2.0, "workers": 1, "report": "what one moved", **FIT},
        {"name": "headwater, 2 workers", "seconds": 1.0, "workers": 2, "report": "what two moved", **FIT},
    ]
    pairs = [{"line": "one pass, full", "one": 2.0, "two": 1.0, "ratio": 2.0, "of_medians": 1.9}]
    return {
        "quick": False, "machine": MACHINE, "rows": 100, "files": 2, "components": 3, "width": 4, "bytes": 1000, "held_out": 10,
        "truth": -3.0, "fits": fits, "pairs": pairs, "spark": False, "dask_ml": "dask-ml says nothing.", **others,
    }  # fmt: skip


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


def test_files_are_written_once_and_hold_all_rows(tmp_path):
    first = many_machines_data.written(1000, 5, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in first.paths}
    again = many_machines_data.written(1000, 5, tmp_path)
    assert len(before) == many_machines_data.FILES
    assert {path: path.stat().st_mtime_ns for path in again.paths} == before
    assert np.array_equal(first.held_out, again.held_out)
    X = many_machines_peers.in_memory(again, None)
    assert X.shape == (1000, many_machines_data.WIDTH)
    assert np.array_equal(many_machines_peers.in_memory(again, 130), X[:130])
    # Files differ, and none of their rows is held out.
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
    text = page.text(many_machines_page.PAGE, figures())
    assert "| one pass, full | 2.00 | 1.00 | 2.00 | 1.90 |" in text
    assert "| headwater, 2 workers | full | 0.0001 | 1 | 1.0 |  | -3.2500 | 0.2500 |" in text
    assert "Spark was left out" in text
    assert "dask-ml says nothing." in text
    assert "what two moved" in text
    assert "what one moved" not in text
    assert "Spark was left out" not in page.text(many_machines_page.PAGE, figures(spark=True))


def test_losses_are_shown_beside_those_of_streams():
    def entry(number, order, way, rounds, loss):
        return {"kind": "Gaussians", "set": number, "order": order, "way": way, "rounds": rounds, "loss": loss}

    found = [entry(0, "shuffled", "another stream", None, 0.001), entry(0, "sorted", "one stream", None, 0.7)]
    found += [entry(number, "shuffled", 4, 1, loss) for number, loss in enumerate((0.01, 0.03))]
    given = {"rounds": [1, "auto"], "parts": [4], "found": found}
    lines = parts_and_rounds_page.losses("Gaussians", given)
    assert lines[2:] == [
        "| shuffled | another stream | 0.0010 |  |",
        "| shuffled | 4 parts | 0.0200 (0.0300) |  |",
        "| sorted | one stream | 0.7000 |  |",
        "| sorted | 4 parts |  |  |",
    ]


def test_tables_are_put_into_other_pages():
    section = page.Section("speed", "Speed", "", ["| a |", "|---|"])
    other = "<!-- table: other -->\nkept\n<!-- end of table: other -->\n"
    before = f"Text.\n<!-- table: speed -->\nold\n<!-- end of table: speed -->\n{other}"
    after = page.filled(before, [section])
    assert "old" not in after
    assert "<!-- table: speed -->\n\n| a |\n|---|\n\n<!-- end of table: speed -->" in after
    assert other in after
    assert page.filled(after, [section]) == after


def test_a_quick_run_does_not_replace_results(tmp_path):
    with pytest.raises(SystemExit, match="a quick run is no result"):
        many_machines.main(["--quick"])
    with pytest.raises(SystemExit, match="no figures to render"):
        many_machines.main(["--render", "--out", str(tmp_path)])
    page.write(tmp_path, many_machines_page.PAGE, figures())
    written = (tmp_path / "many_machines.md").read_text()
    (tmp_path / "many_machines.md").unlink()
    many_machines.main(["--render", "--out", str(tmp_path)])
    assert (tmp_path / "many_machines.md").read_text() == written


def test_passes_are_told_apart_by_two_fits():
    short, long = {"seconds": 10.0, "passes": 2}, {"seconds": 26.0, "passes": 10}
    assert many_machines_peers._difference(long, short) == 2.0
    assert many_machines_peers._difference(short, None) is None
    assert "was not asked" in many_machines_peers.dask_ml_says(None)


@pytest.mark.slow
def test_one_worker_and_two_run(tmp_path):
    pytest.importorskip("distributed")
    options = ["--quick", "--rows", "32000", "--out", str(tmp_path), "--folder", str(tmp_path), "--sklearn-threads", "1"]
    many_machines.main(options)
    found = json.loads((tmp_path / "many_machines.json").read_text())
    assert len(found["pairs"]) == 4
    scores = {(entry["name"], entry["covariance"]): entry["score"] for entry in found["fits"]}
    assert scores["headwater, 1 worker", "full"] == scores["headwater, 2 workers", "full"]
    assert scores["headwater, 2 workers", "full"] > found["truth"] - 0.1


@pytest.mark.slow
def test_parts_and_rounds_run(tmp_path):
    pytest.importorskip("distributed")
    parts_and_rounds.main(["--quick", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "parts_and_rounds.json").read_text())
    assert {entry["kind"] for entry in found["found"]} == {kind.name for kind in drawn.KINDS}
    assert {(entry["way"], entry["rounds"]) for entry in found["found"]} >= {(4, 1), (4, 4), (4, "auto"), (1, 1)}
