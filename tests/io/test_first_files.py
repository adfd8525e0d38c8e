"""Model files of the first release: they load, give the same answers, and go on learning."""

import json
from pathlib import Path

import every_model
import numpy as np
import pytest
from sklearn.base import clone

import headwater as hw

FILES = Path(__file__).parents[1] / "data" / "first_files"
LATER = {
    "events",
    "flags",
    "categories",
    "mixed",
    "directions",
    "bayesian",
    "student",
    "background",
    "counted chain",
    "flagged chain",
    "switching",
    "autoregressive",
    "mixed chain",
    "grouped chain",
    "lasting chain",
}  # not in the first release
STARTED_ANEW = {"topics-warm-up", "topics-race", "spectra-warm-up"}  # rows that wait, for a start that is another one today
ANSWERS = json.loads((FILES / "answers.json").read_text())


def scores(model, kind, chunk):
    """Scores of the first rows of a chunk."""
    if hasattr(model, "score_steps"):
        found = model.score_steps(chunk.X)
    elif kind == "markov":
        found = model.score_samples(chunk.X, lengths=chunk.lengths)
    elif kind == "regression":
        found = model.score_samples(chunk.X, chunk.y)
    else:
        found = model.score_samples(chunk.X)
    return np.asarray(found)[:6]


def answers_of(model, names):
    """The first numbers of fitted attributes."""
    return {name: np.asarray(getattr(model, name)).ravel()[:4] for name in names}


def test_there_is_a_file_of_every_kind():
    assert {one["kind"] for one in ANSWERS.values()} == set(every_model.KINDS) - LATER
    assert {file.stem for file in FILES.glob("*.hw")} == set(ANSWERS)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", ANSWERS)
def test_a_file_of_the_first_release(name, tmp_path):
    expected = ANSWERS[name]
    kind = expected["kind"]
    chunks = first, _, last = every_model.stream_of(kind, sizes=(30, 70, 50), seed=3)
    model = hw.load(FILES / f"{name}.hw")
    assert model.n_samples_seen_ == expected["rows"]
    if name in STARTED_ANEW:
        today = clone(model)
        for chunk in chunks if expected["rows"] == 150 else chunks[:1]:
            today.partial_fit(**chunk)
        expected = {**expected, "scores": scores(today, kind, first), "answers": answers_of(today, expected["answers"])}
    # In the warm-up a start is searched for when the model is read, and its end depends on rounding.
    tolerance = 1e-4 if name.endswith("warm-up") else 1e-9
    np.testing.assert_allclose(scores(model, kind, first), expected["scores"], rtol=tolerance, atol=tolerance)
    for answer, values in answers_of(model, expected["answers"]).items():
        np.testing.assert_allclose(values, expected["answers"][answer], rtol=tolerance, atol=tolerance)
    model.save(tmp_path / "again.hw")
    again = hw.load(tmp_path / "again.hw")
    for one in (model, again):
        assert one.partial_fit(**last).n_samples_seen_ == expected["rows_after"]
    np.testing.assert_array_equal(scores(model, kind, last), scores(again, kind, last))
