"""Findings of health about streams: drift, order, refinements, fits that did not converge."""

import numpy as np
import pytest

import headwater as hw
from headwater.core.batch import Batch
from headwater.diagnostics.health import brief_lines
from headwater.diagnostics.health_checks import history_findings, refinement_findings, reservoir_findings
from headwater.diagnostics.history import History, Point
from headwater.policies.refinement_record import Refinement
from headwater.policies.reservoir import Reservoir, add_rows

ROWS = np.random.default_rng(0).normal(size=(600, 2))


def kinds(health):
    return [one.kind for one in health.findings]


def history(scores, size=64):
    points = tuple(Point(size * (at + 1), float(score), size) for at, score in enumerate(scores))
    return History(points, seen=size * len(scores))


def test_drift_of_a_history():
    rng = np.random.default_rng(0)
    scores = rng.normal(-3.0, 1.0 / 8.0, size=100)  # rows of a point vary by 1
    assert not history_findings(history(scores), "rows")
    late = scores - 0.5 * (np.arange(100) >= 90)
    (found,) = history_findings(history(late), "rows")
    assert found.kind == "drift" and found.action and found.numbers["gap"] == pytest.approx(-0.5, abs=0.1)
    assert "nats a row lower than what came before" in found.sentence and "set half_life to forget" in found.sentence
    (told,) = history_findings(history(late), "rows", "auto")
    assert not told.action and "being forgotten" in told.sentence
    assert "faster than half_life follows" in history_findings(history(late), "rows", 100.0)[0].sentence
    assert not history_findings(history(scores + 0.5 * (np.arange(100) >= 90)), "rows")  # a better score is no drift
    assert not history_findings(history(scores - 0.05 * (np.arange(100) >= 90)), "rows")  # too small a change for a finding
    odd = scores.copy()
    odd[95] = -500.0
    assert not history_findings(history(odd), "rows")
    assert not history_findings(history(late[-10:]), "rows")
    assert not history_findings(history(np.sort(scores)), "rows")  # a model that learns


def test_a_monitor_finds_drift():
    rng = np.random.default_rng(0)
    monitor = hw.Monitor(hw.GaussianMixture(1, warm_up=100, random_state=0))
    for _ in range(18):
        monitor.learn(rng.normal(size=(300, 1)))
    assert not monitor.model.health_.findings
    for _ in range(2):
        monitor.learn(4.0 * rng.normal(size=(300, 1)))
    assert kinds(monitor.model.health_) == ["drift"] and "drift" in repr(monitor.model)


def test_drift_and_order_of_kept_rows():
    rng = np.random.default_rng(0)
    places = rng.permutation(10_000)[:2000]
    scores = rng.normal(-3.0, 1.0, size=2000)
    late = places >= 9000
    assert reservoir_findings(scores, places, None, 10_000) == []
    (drift,) = reservoir_findings(scores - 1.0 * late, places, None, 10_000)
    (order,) = reservoir_findings(scores + 1.0 * late, places, np.ones(2000), 10_000, "documents")
    assert (drift.kind, order.kind) == ("drift", "order") and drift.action and order.action
    assert "nats a document higher" in order.sentence and order.numbers["rows"] == late.sum()
    assert not reservoir_findings(scores + 1.0 * late, places, None, 10_000, forgets=100.0)  # as intended
    assert reservoir_findings(scores - 1.0 * late, places, np.where(late, 0.0, 1.0), 10_000) is None  # none of them counts
    assert reservoir_findings(scores[:50], places[:50], None, 10_000) is None
    # A file that is sorted: the last rows are of a component of their own, whose rows always score less.
    assert reservoir_findings(scores - 1.0 * late, places, None, 10_000, groups=late.astype(int)) == []
    groups = np.where(places % 3 == 0, 1, 2)
    (drift,) = reservoir_findings(scores - 1.0 * late - 5.0 * groups, places, None, 10_000, groups=groups)
    assert drift.kind == "drift" and drift.numbers["gap"] == pytest.approx(-1.0, abs=0.25) and "sorted" not in drift.sentence


def test_false_alarms_are_rare():
    rng = np.random.default_rng(0)
    for _ in range(300):
        scores = rng.standard_t(4, size=400)
        assert not reservoir_findings(scores, np.arange(400), None, 400)
        assert not history_findings(history(rng.normal(size=60)), "rows")


def test_kept_rows_of_a_model_are_compared():

    rng = np.random.default_rng(0)
    rows = np.where(np.arange(4000)[:, None] < 3600, rng.normal(size=(4000, 1)), 6.0 + rng.normal(size=(4000, 1)))
    model = hw.GaussianMixture(1, warm_up=100, random_state=0).partial_fit(rows)
    model._runtime = model._runtime.with_state(
        model._state.with_record("reservoir", add_rows(Reservoir(0, 1000, 2**20), Batch(rows), 0))
    )
    assert kinds(model.health_) == ["drift"]
    mixed = rng.permutation(rows)
    model._runtime = model._runtime.with_state(
        model._state.with_record("reservoir", add_rows(Reservoir(0, 1000, 2**20), Batch(mixed), 0))
    )
    assert not model.health_.findings


def test_refinements():
    def told(chosen, gain=0.02, moves=3):
        (found,) = refinement_findings(Refinement(contested=8192, gain=gain, z=3.14, chosen=chosen, moves=moves), "rows")
        assert found.kind == "refinement" and not found.action and "after 8,192 rows" in found.sentence
        return found.sentence

    assert "the best candidate was 0.02 nats a row (z = 3.1) better, which may be chance, so the model was kept" in told(
        "stream"
    )
    assert "no candidate was better" in told("stream", 0.0) and told("stream", 0.0, 0).endswith("; no changes so far.")
    assert "split and others merged, which gained 0.02 nats a row (z = 3.1); 1 change so far." in told("move", moves=1)
    assert "a new start was taken, which gained" in told("restart") and "is as good" in told("restart", 1e-17)
    assert refinement_findings(None) == [] and refinement_findings(Refinement()) == []
    health = hw.Health("M", 1, findings=tuple(refinement_findings(Refinement(contested=5))))
    assert health.verdict == "nothing is wrong" and brief_lines(health) == ([], "")


def test_how_the_last_refinement_went_is_known_and_not_printed():
    rows = np.random.default_rng(0).permutation(np.append(ROWS, ROWS + 9.0, axis=0))
    model = hw.GaussianMixture(2, warm_up=100, random_state=0).partial_fit(rows)
    assert kinds(model.health_) == ["refinement"] and model.health_.ok and "health_" not in repr(model)
    assert "refinement" not in str(model.health_) and "<li>" not in model.health_._repr_html_()
    assert model.health_.to_dict()["findings"][0]["kind"] == "refinement"
    assert not hw.GaussianMixture(2, warm_up=100, random_state=0, reservoir=0).partial_fit(rows).health_.findings


def test_fits_that_were_broken_off():
    with pytest.warns(Warning, match="did not converge"):
        model = hw.GaussianMixture(3, random_state=0, max_iter=1, tol=0.0, algorithm="em").fit(ROWS)
    assert "unconverged" in kinds(model.health_) and not model.health_.ok
    assert sum("not converged" in note for note in model.describe().notes) == 1
