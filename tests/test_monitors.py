"""Descriptions and monitors: every model can be described, and monitoring changes no model."""

import json
import math
import re

import numpy as np
import pytest
from every_model import KINDS, learned, stream_of

import headwater as hw
from headwater.core.chunk import Chunk
from headwater.core.records import arrays_of
from headwater.diagnostics import history as histories
from headwater.diagnostics import history_file
from headwater.diagnostics.history import History

every_kind = pytest.mark.parametrize("kind", KINDS)


def content(model):
    return [array.tobytes() for array in arrays_of(model._state)]


def without_seconds(history):
    found = history.to_dict()
    return {**found, "seconds": 0.0, "points": {**found["points"], "seconds": None}}


def watched(kind, **options):
    monitor = hw.Monitor(KINDS[kind][0]())
    for chunk in stream_of(kind, **options):
        monitor.learn(chunk)
    return monitor


@every_kind
def test_a_description_is_json_and_reading_it_changes_nothing(kind):
    model = learned(kind)
    before = content(model)
    found = model.describe()
    assert content(model) == before
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
    assert found.title.startswith(type(model).__name__) and "500" in found.title
    assert found.components or found.facts
    weights = [component.weight for component in found.components]
    assert weights == sorted(weights, reverse=True)
    assert not weights or sum(weights) + getattr(model, "background_weight_", 0.0) == pytest.approx(1.0)
    for component in found.components:
        for value in component.values:
            assert value.low is None or (value.low <= value.value * (1 + 1e-12) and value.value <= value.high * (1 + 1e-12))


@every_kind
def test_watching_changes_no_bit(kind):
    assert content(watched(kind).model) == content(learned(kind))


@every_kind
def test_a_history_that_was_stored_goes_on_as_if_never_stopped(kind):
    chunks, whole = stream_of(kind), watched(kind)
    first = hw.Monitor(KINDS[kind][0]())
    for chunk in chunks[:2]:
        first.learn(chunk)
    stored = History.from_dict(json.loads(json.dumps(first.history.to_dict(), allow_nan=False)))
    second = hw.Monitor(first.model, stored)
    for chunk in chunks[2:]:
        second.learn(chunk)
    assert without_seconds(second.history) == without_seconds(whole.history)
    assert second.model.history_ is second.history
    assert math.isfinite(second.history.last_score)
    assert second.history.seconds > first.history.seconds > 0.0


def test_scores_are_those_of_update():
    chunks = [chunk.X for chunk in stream_of("gaussian", sizes=(100, 156, 64))]
    plain, monitor = KINDS["gaussian"][0](), hw.Monitor(KINDS["gaussian"][0]())
    scores = np.concatenate([plain.update(chunk) for chunk in chunks])
    for chunk in chunks:
        monitor.learn(chunk)
    scores[:60] = np.nan  # the warm-up
    found = monitor.history
    np.testing.assert_array_equal(found.rows, [64, 128, 192, 256, 320])
    np.testing.assert_allclose(found.scores, np.nanmean(scores.reshape(5, 64), axis=1))
    np.testing.assert_array_equal(np.isnan(found.weights[:, 0]), [False, True, True, False, False])
    np.testing.assert_allclose(found.weights[3:].sum(axis=1), 1.0)
    assert found.threshold(0.1) == pytest.approx(np.quantile(scores[60:], 0.1, method="weibull"))
    assert (found.late_scored, found.late_score) == (192, pytest.approx(scores[128:].mean()))


def test_a_history_is_bounded_and_the_cut_does_not_matter(monkeypatch):
    monkeypatch.setattr(histories, "POINT_LIMIT", 8)
    monkeypatch.setattr(histories, "FIRST_WINDOW_SCORES", 32)
    monkeypatch.setattr(histories, "EXACT_SCORES", 8)
    for module in (histories, history_file):
        monkeypatch.setattr(module, "COMPRESSION_SCORES", 16)
    found = [watched("gaussian", sizes=sizes).history for sizes in ((150,) * 10, (1500,))]
    assert len(found[0].points) <= 8
    np.testing.assert_array_equal(found[0].rows, found[1].rows)
    for history in found:
        assert 8 < len(history.before.scores) < 60 < history.before.scored
        assert History.from_dict(history.to_dict()).to_dict() == history.to_dict()
        assert history.threshold(0.001) <= history.threshold(0.02) <= history.threshold(0.3) <= history.threshold(0.9)


def test_new_scores_are_merged_as_sorting_all_would():
    rng = np.random.default_rng(0)
    scores, rows, new = (
        np.sort(rng.integers(0, 9, 40) / 2.0),
        rng.integers(1, 9, 40) / 1.0,
        np.sort(rng.integers(0, 9, 30) / 2.0),
    )
    everything, counts = np.append(scores, new), np.append(rows, np.ones(30))
    order = np.argsort(everything, kind="stable")
    for found, wanted in zip(histories._merge_sorted(scores, rows, new), (everything[order], counts[order]), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_scores_are_put_together_in_the_same_way_in_any_cut():
    scores = np.random.default_rng(0).normal(size=30_000)
    found = []
    for size in (30_000, 700):
        history = History()
        for start in range(0, 30_000, size):
            part = scores[start : start + size]
            history = history.after(part, start, start + len(part))
        found.append(history)
    np.testing.assert_array_equal(found[0].usual, found[1].usual)
    assert found[0].late_scored == found[1].late_scored >= 15_000
    assert found[0].late_score == pytest.approx(found[1].late_score)
    assert repr(found[0]) == "History(30,000 rows, 30,000 scored, 234 points)"


def test_rows_that_were_next_to_impossible_are_told_apart():
    scores = np.random.default_rng(0).normal(-5.0, 1.0, 3000)
    usual = History().after(scores, 0, 3000)
    assert usual.late_parts[3] == 0.0 and np.isnan(usual.late_parts[2])
    assert usual.late_parts[0] == pytest.approx(usual.usual[0] @ usual.usual[1] / usual.usual[1].sum())
    scores[2000:2300] -= 1e13
    found = History().after(scores, 0, 3000)
    score, rows, impossible, lost = found.late_parts
    assert score == pytest.approx(-5.0, abs=0.2) and lost == pytest.approx(300.0, abs=3.0)
    assert rows + lost == found.usual[1].sum() and impossible == pytest.approx(-1e13, rel=1e-6)
    assert found.late_score < -1e12
    assert np.isnan(History().late_parts[0]) and History().late_parts[1::2] == (0.0, 0.0)


def test_a_score_that_a_few_rows_spoil_is_explained(tmp_path, capsys):
    from headwater.cli import main

    rng = np.random.default_rng(0)
    table = rng.normal(size=(6000, 2))
    table[:4000, 1] = 0.0  # a column that has one value for long
    np.savetxt(tmp_path / "d.csv", table, delimiter=",", header="a,b", comments="")
    assert main(["fit", "mixed", str(tmp_path / "d.csv"), "-k", "2", "-o", str(tmp_path / "m.hw"), "-q"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "next to impossible, as where a column that has had one value takes others" in said
    assert main(["inspect", str(tmp_path / "m.hw"), "--json"]) == 0
    held = json.loads(capsys.readouterr().out)["held_out"]
    assert held["usual_score"] > -20.0 > held["impossible_score"] and held["impossible_rows"] + held["usual_rows"] > 1000


def test_a_threshold_is_a_quantile_of_late_scores():
    rng, history, scores = np.random.default_rng(0), History(), []
    for _ in range(100):
        scores.append(rng.normal(size=3000))
        history = history.after(scores[-1], history.seen, history.seen + 3000)
    late = history.before.scored + history.now.scored
    assert 150_000 <= late <= 300_000 and len(history.usual[0]) < 6000
    kept = np.sort(np.concatenate(scores)[-late:])
    np.testing.assert_array_equal(history.usual[0][:128], kept[:128])
    for rate in (0.0001, 0.001, 0.01, 0.1, 0.5):
        share = np.searchsorted(kept, history.threshold(rate)) / late
        assert abs(share - rate) < rate / 128 + 1.0 / late  # a score represents no more rows than these
    assert history.threshold(1e-9) == kept[0]
    assert (history.threshold(0), history.threshold(1)) == (-math.inf, math.inf)
    assert math.isnan(History().threshold(0.1))
    for wrong in (1.5, True, math.nan):
        with pytest.raises(ValueError, match="rate must lie between 0 and 1, got"):
            history.threshold(wrong)


@pytest.mark.parametrize("kind", ["markov", "multinomial", "topics"])
def test_thresholds_of_what_has_a_length_are_scores_of_a_part(kind):
    history, size = watched(kind).history, {"markov": 8, "multinomial": 20, "topics": 20}[kind]
    scores, rows = history.usual
    assert len(scores) == history.all_scored > 0
    totals = np.nansum([point.score * point.scored for point in history.points if point.scored]) + history.total
    assert scores @ rows * size == pytest.approx(totals)


def test_a_refused_chunk_leaves_model_and_history():
    monitor = watched("gaussian")
    before, history = content(monitor.model), monitor.history
    wrong = stream_of("gaussian")[0].X
    wrong[70, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        monitor.learn(wrong)
    assert content(monitor.model) == before
    assert monitor.history is history is monitor.model.history_
    with pytest.raises(TypeError, match="got 'weights'"):
        monitor.learn(wrong, weights=[1.0])
    with pytest.raises(TypeError, match="must be a headwater model, got list"):
        hw.Monitor([])


def test_a_fit_forgets_the_history_and_companions_are_passed_on():
    monitor = watched("gaussian")
    rows = stream_of("gaussian")[1]
    before = monitor.model.n_samples_seen_
    monitor.learn(Chunk(rows.X, rows.columns), sample_weight=np.where(np.arange(70) < 10, 0.0, 1.0), y=np.zeros(70))
    assert monitor.model.n_samples_seen_ == before + 60
    monitor.learn(Chunk(rows.X, rows.columns, labels=np.full(70, -1)))
    assert not hasattr(monitor.model.fit(Chunk(rows.X, rows.columns)), "history_")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda found: found.update(format=1), "format must be 2"),
        (lambda found: found.pop("every"), "'every'"),
        (lambda found: found.update(every=0), "every must be a whole number of at least 1"),
        (lambda found: found["points"]["rows"].append(3), "one length"),
        (lambda found: found["points"]["rows"].__setitem__(1, 1), "must rise"),
        (lambda found: found["points"]["score"].__setitem__(1, math.inf), "score must be a finite number, got inf"),
        (lambda found: found["points"]["weights"].__setitem__(-1, [0.5]), "2 weights or none"),
        (lambda found: found["windows"][1]["rows"].pop(), "window of"),
        (lambda found: found["windows"][1].update(scored=10**7), "window of"),
        (lambda found: found.update(windows=[]), "values to unpack"),
    ],
)
def test_a_damaged_history_is_refused(change, sentence):
    found = watched("gaussian").history.to_dict()
    change(found)
    with pytest.raises(ValueError, match=sentence):
        History.from_dict(found)
    with pytest.raises(ValueError, match="must be a mapping"):
        History.from_dict(None)


def test_wide_models_stay_short():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 50))
    X[:150, 37] += 40.0
    means = [X[:150].mean(axis=0), X[150:].mean(axis=0)]
    found = hw.GaussianMixture(2, covariance_type="diag", means_init=means, random_state=0).fit(X).describe(values=3)
    assert [len(component.values) for component in found.components] == [3, 3]
    assert "x37" in [value.name for value in found.components[0].values]
    assert found.values_left_out == 47
    many = hw.GaussianMixture(12, covariance_type="spherical", random_state=0, max_iter=0).fit(X[:, :2]).describe(components=5)
    assert (len(many.components), many.left_out) == (5, 7)
    assert sum(component.weight for component in many.components) + many.weight_left_out == pytest.approx(1.0)


def test_notes_say_what_a_reader_should_know():
    model = hw.GaussianMixture(2, random_state=0).partial_fit(stream_of("gaussian")[0].X)
    notes = " ".join(model.describe().notes)
    assert "warm-up is not over (100 of about 2,000 rows)" in notes
    assert "holds 100 raw rows, and so does its file" in notes
    rows = np.random.default_rng(0).normal(size=(2100, 1))
    waits = hw.GaussianMixture(2, random_state=0).partial_fit(rows, labels=np.where(np.arange(2100) < 9, 0, -1)).describe()
    assert "warm-up is not over (2,100 rows so far, since labels have named only some of the components)" in waits.notes[0]
    one = hw.GaussianMixture(1, random_state=0).partial_fit(rows[:1]).describe()
    assert "holds 1 raw row, and so does its file" in " ".join(one.notes)
    parts = [learned("gaussian").branch().partial_fit(stream_of("gaussian", seed=at)[0]) for at in (1, 2)]
    assert "2 models merged" in " ".join(hw.merge(parts).describe().notes)
    empty = hw.GaussianMixture(2, weights_init=[1.0, 0.0], means_init=[[0.0], [1e6]], random_state=0, max_iter=0)
    assert any("Component 1 has almost no weight" in note for note in empty.fit(np.arange(20.0)[:, None]).describe().notes)


def test_chains_are_told_by_the_steps_in_which_they_differ():
    rng = np.random.default_rng(0)
    sequences = []
    for at in range(200):  # all begin with 0; even sequences stay, odd ones go round
        sequences.append(np.cumsum(np.append(0, rng.random(12) < (0.1 if at % 2 else 0.9))) % 3)
    found = hw.MarkovMixture(2, random_state=0, warm_up=200).partial_fit(sequences).describe(values=4)
    told = [{value.name: value for value in component.values} for component in found.components]
    stays = next(one for one in told if "0 → 0" in one)
    goes = next(one for one in told if "0 → 1" in one)
    assert {"0 → 0", "1 → 1", "2 → 2"} <= stays.keys() and {"0 → 1", "1 → 2", "2 → 0"} <= goes.keys()
    for value in (stays["0 → 0"], goes["1 → 2"]):
        assert 0.85 < value.low < value.value < value.high < 0.95 and value.standing > 0.3
    assert found.values_left_out == 3 + 9 - 4


@pytest.mark.parametrize(("name", "value"), [("values", 0), ("components", 1.5), ("level", 1.0)])
def test_limits_are_checked(name, value):
    with pytest.raises(ValueError, match=f"{name} must .* got {value}"):
        learned("gaussian").describe(**{name: value})


def test_names_of_symbols_come_from_the_stream():
    found = learned("markov").describe()
    assert set(found.matrices[0].names) == {"home", "shop", "pay"}
    words = {word for value in found.components[0].values for word in re.split(" → |starts with ", value.name) if word}
    assert words == {"home", "shop", "pay"}


def test_the_number_of_components_may_change_on_the_way():
    history = History().after(np.full(128, -1.0), 0, 128).with_weights(np.array([0.5, 0.5]), 128.0, 1.0)
    history = history.after(np.full(64, -1.0), 128, 192).with_weights(np.array([0.2, 0.3, 0.5]), 192.0, 1.0)
    assert history.components == (0, 1, 2)
    np.testing.assert_array_equal(np.isnan(history.weights).any(axis=1), [True, True, False])
    history = history.after(np.full(64, -1.0), 192, 256).with_weights(np.array([1.0]), 256.0, 1.0)
    assert history.components == (0,)
    many = history.after(np.full(64, -1.0), 256, 320).with_weights(np.full(100, 0.01), 320.0, 1.0)
    assert len(many.components) == histories.WEIGHT_LIMIT
    more = many.after(np.full(64, -1.0), 320, 384).with_weights(np.full(100, 0.01), 384.0, 1.0)
    assert [len(point.weights) for point in more.points[-2:]] == [histories.WEIGHT_LIMIT] * 2


def test_a_growth_can_be_watched():
    plain, monitor = (hw.GaussianMixture("auto", warm_up=60, random_state=0) for _ in range(2))
    monitor = hw.Monitor(monitor)
    for chunk in stream_of("gaussian", (100,) * 6):
        plain.partial_fit(**chunk)
        monitor.learn(chunk)
    assert content(monitor.model) == content(plain)
    assert monitor.model.describe().to_dict() == plain.describe().to_dict()
    assert math.isfinite(monitor.history.last_score)


TOPICS = np.random.default_rng(9).dirichlet(np.full(50, 0.1), size=2)


def topic_chunks(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.multinomial(30, rng.dirichlet([0.3, 0.3], size=size) @ TOPICS).astype(float) for size in sizes]


@pytest.mark.parametrize("kind", ["topics", "spectra"])
def test_a_stream_of_factors_has_enough_scores_for_a_threshold(kind):
    monitor, scored = hw.Monitor(KINDS[kind][0]()), []
    for chunk in stream_of(kind, (100, 400, 3000, 3000)):
        monitor.learn(chunk)
        scored.append(monitor.history.all_scored)
    # None in the warm-up; then an eighth of the stream so far, until there are enough.
    assert scored[0] == 0 and scored[1] == pytest.approx(500 / 8, abs=1) and scored[2] == pytest.approx(3500 / 8, abs=1)
    assert 512 <= scored[3] <= 512 + 3000 / 32
    history, model = monitor.history, monitor.model
    new = stream_of(kind, (2000,), seed=5)[0]
    ranked = model.score_samples(new["X"])
    sizes = model._describer.row_sizes(new["X"])
    ranked = ranked if sizes is None else ranked / sizes
    assert 0.001 < np.mean(ranked < history.threshold(0.01)) < 0.03


def test_a_long_stream_of_factors_is_scored_here_and_there():
    monitor = hw.Monitor(KINDS["topics"][0]())
    for chunk in stream_of("topics", (500, *[500] * 39)):
        before = monitor.history.all_scored
        monitor.learn(chunk)
    assert 500 // 32 <= monitor.history.all_scored - before <= 500 // 32 + 1
    assert monitor.history.all_scored < 512 + 20_000 / 32 + 40


def test_the_perplexity_of_a_stream_is_that_of_its_words():
    model = hw.LatentDirichletAllocation(2, warm_up=100, random_state=0)
    monitor, total, words = hw.Monitor(model), 0.0, 0.0
    chunks = topic_chunks((100, 200, 64, 128))
    chunks[2][:, :] = np.round(chunks[2] / 3.0)  # shorter ones, which weigh less
    for chunk in chunks:
        scores = np.empty(0) if not model._has_state() else model.score_samples(chunk)
        monitor.learn(chunk)
        if len(scores):
            total, words = total + scores.sum(), words + chunk.sum()
    history = monitor.history
    assert history.late_perplexity == pytest.approx(math.exp(-total / words), rel=0.1)
    assert 1.0 < history.late_perplexity < 50.0
    assert History.from_dict(json.loads(json.dumps(history.to_dict()))).late_perplexity == history.late_perplexity
    old = history.to_dict()
    del old["size"], old["points"]["size"]  # as in older files
    assert math.isnan(History.from_dict(old).late_perplexity)
    assert History.from_dict(old).late_score == history.late_score
    assert math.isnan(watched("gaussian").history.late_perplexity)


def test_the_size_of_points_that_are_joined_adds_up(monkeypatch):
    scores, sizes = np.full(6400, -6.0), np.full(6400, 2.0)
    whole = History().after(scores, 0, 6400, sizes=sizes)
    monkeypatch.setattr(histories, "POINT_LIMIT", 8)
    few = History().after(scores, 0, 6400, sizes=sizes)
    assert len(few.points) <= 8 < len(whole.points)
    assert few.late_perplexity == pytest.approx(math.exp(3.0)) == whole.late_perplexity
    assert math.isnan(whole.after(scores, 6400, 12800).late_perplexity)  # these were not counted
