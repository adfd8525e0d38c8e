"""Health can be read at any moment. It finds defects, and finds nothing in a sound model."""

import json
import math
import pickle

import numpy as np
import pytest
from every_model import KINDS, learned, stream_of
from sklearn.exceptions import NotFittedError

import headwater as hw
from headwater.cli import main
from headwater.core.records import fingerprint
from headwater.core.state import WarmUp
from headwater.diagnostics.health import Evidence, brief_lines, component_phrase
from headwater.diagnostics.health_checks import BRIEF_OPERATIONS
from headwater.registry import MODELS

ROWS = np.random.default_rng(0).normal(size=(600, 2))


def kinds(health):
    return [one.kind for one in health.findings]


# Every model, at every moment


def test_every_kind_is_looked_at():
    assert {type(make()).__name__ for make, _ in KINDS.values()} == {entry.name for entry in MODELS.values()}


@pytest.mark.parametrize("kind", KINDS)
def test_health_can_be_read_at_every_moment_and_changes_nothing(kind):
    model = KINDS[kind][0]()
    with pytest.raises(NotFittedError):
        _ = model.health_
    assert not hasattr(model, "health_")
    for chunk in stream_of(kind, (9, 30, 100, 70)):  # the warm-up is over after 60
        model.partial_fit(**chunk)
        state, digest = model._state, fingerprint(model._state, size=16)
        health = model.health_
        assert model._state is state and fingerprint(state, size=16) == digest
        assert health == model.health_ and health.rows == model.n_samples_seen_
        assert health.warming == isinstance(state, WarmUp) == ("warming up" in str(health))
        assert health.ok == (not any(one.action for one in health.findings))
        json.dumps(health.to_dict(), allow_nan=False)
        for one in health.findings:
            assert one.sentence[0].isupper() and one.sentence.endswith(".")
            assert (one.sentence in health._repr_html_()) == (one in health.shown)
            assert all(0 <= k < model.n_components_ for k in one.components) if one.components else True
        assert repr(model) and model._repr_html_inner()
        assert {one.sentence for one in health.shown} <= set(model.describe().notes)
    model.fit(**stream_of(kind, (150,))[0])
    assert model.health_.rows == 150 and pickle.loads(pickle.dumps(model.health_)) == model.health_


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_what_there_is_are_well(kind):
    model = learned(kind)
    if kind == "lasting chain":  # stays last twenty rows, and six are allowed
        assert [one.kind for one in model.health_.actions] == ["cut"]
        return
    assert model.health_.ok and not model.health_.of_kind("dead") and not model.health_.of_kind("starved")
    assert "!" not in repr(model)


def test_what_grows_has_health():
    model = hw.GaussianMixture("auto", warm_up=60, random_state=0)
    for chunk in np.array_split(ROWS, 6):
        assert model.partial_fit(chunk).health_.model == "GaussianMixture"


def test_states_that_were_set_by_hand_have_learned_nothing():
    model = hw.CategoricalHMM(2)
    model.startprob_, model.transmat_ = [0.5, 0.5], np.full((2, 2), 0.5)
    model.emissionprob_ = [[0.9, 0.1], [0.2, 0.8]]
    with pytest.raises(NotFittedError, match="nothing that could be judged"):
        _ = model.health_


# How it is printed


def test_what_a_person_reads():
    rows = ROWS.copy()
    rows[::5] = 0.0
    model = hw.GaussianMixture(2, algorithm="em", random_state=0).fit(rows)
    (finding,) = model.health_.findings
    assert finding.kind == "collapsed" and finding.action and len(finding.components) == 1
    assert str(finding).startswith(
        f"Component {finding.components[0]} has collapsed: it has a standard deviation of 0.001 in x"
    )
    assert finding.numbers["floor"] == 1e-6
    assert str(model.health_).splitlines() == [
        "GaussianMixture after 600 rows: 1 finding that needs action.", f"! {finding.sentence}"
    ]  # fmt: skip
    assert repr(model).splitlines()[-1] == f"  ! {finding.sentence}"
    assert f"<strong>{finding.sentence}</strong>" in model._repr_html_inner()
    assert "<strong>Needs action:</strong>" in model.health_._repr_html_()


def test_verdicts():
    one, urgent = hw.Finding("dead", (1,), "One."), hw.Finding("collapsed", (), "Two.", True)
    said = {
        (): "nothing is wrong",
        (one,): "1 finding, which needs no action",
        (one, one): "2 findings, none of which needs action",
        (urgent,): "1 finding that needs action",
        (urgent, urgent): "2 findings that need action",
        (urgent, one): "2 findings, of which 1 needs action",
    }
    for findings, verdict in said.items():
        assert hw.Health("M", 1, findings=findings).verdict == verdict
    assert hw.Health("M", 1).headline == "M after 1 row: nothing is wrong." and hw.Health("M", 1).ok
    assert brief_lines(hw.Health("M", 1, findings=(urgent,) * 5 + (one,))) == (["Two."] * 3, "3 more findings in health_")
    assert brief_lines(hw.Health("M", 1, findings=(one,))) == ([], "1 finding in health_")
    assert hw.Finding("drift", (), "x.", False, {"z": math.inf}).to_dict()["numbers"] == {"z": None}
    assert (
        component_phrase("state", list(range(9))) == "States 0, 1, 2, 3, 4, 5 and 3 more"
        and component_phrase("topic", [4]) == "Topic 4"
    )


def test_inspect_tells_health(tmp_path, capsys):
    rows = ROWS.copy()
    rows[::5] = 0.0
    model = hw.GaussianMixture(2, algorithm="em", random_state=0).fit(rows)
    model.save(tmp_path / "a.hw")
    assert main(["inspect", str(tmp_path / "a.hw")]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("Health: 1 finding that needs action.")
    assert lines[at + 1] == f"  ! {model.health_.findings[0].sentence}" and "\n".join(lines).count("collapsed") == 1
    assert main(["inspect", str(tmp_path / "a.hw"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["health"] == model.health_.to_dict()


def test_pages_tell_health(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.append(rng.normal(size=(200, 4)), [[60.0] * 4] * 2, axis=0)
    model = hw.GaussianMixture(2, random_state=0).fit(rows)
    hw.report(model, None, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    (starved,) = model.health_.of_kind("starved")
    assert page.count(starved.sentence) == 1 and f'<li class="urgent"><b>Needs action.</b> {starved.sentence}' in page
    assert page.index('id="health"') < page.index(starved.sentence)


# Cost


def test_a_glance_leaves_out_what_takes_long(monkeypatch):
    model = learned("gaussian")

    def refuse():
        raise AssertionError

    evidence = Evidence(np.array([5.0, 0.0]), checks=refuse, work=2.0 * BRIEF_OPERATIONS)
    monkeypatch.setattr(type(model._describer), "evidence", lambda _: evidence)
    brief = model._describer.judge_health(brief=True)
    assert [one.kind for one in brief.problems] == ["dead"] and "1 finding in health_" in repr(model)
    with pytest.raises(AssertionError):
        _ = model.health_


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_advice_to_make_more_passes_names_the_parameter_of_the_model():
    X = np.random.default_rng(0).normal(size=(200, 2))
    chain = hw.GaussianHMM(2, algorithm="em", n_iter=2, tol=0.0, random_state=0).fit(X)
    mixture = hw.GaussianMixture(2, algorithm="em", max_iter=2, tol=0.0, random_state=0).fit(X)
    assert "raise n_iter, or tol" in str(chain.health_) and "raise max_iter, or tol" in str(mixture.health_)
