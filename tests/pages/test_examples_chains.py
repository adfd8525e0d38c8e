"""The examples of chains: their figures on simulated data, their pages, and quick runs."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from page_checks import complete

pytest.importorskip("examples", reason="run from the root of the repository")

from examples import chorales, chorales_values, letters, letters_values, regimes, regimes_values
from pages.__main__ import main
from pages.page import find

DIRECTORY = os.environ.get("HEADWATER_DATA", "")
EXAMPLES = {"regimes": regimes, "letters": letters, "chorales": chorales}


def drawn_returns(months=300):
    """Return returns of calm years, with a turbulent year in every five."""
    rng = np.random.default_rng(0)
    turbulent = np.arange(months) % 60 >= 48
    return rng.normal(np.where(turbulent, -0.015, 0.01), np.where(turbulent, 0.08, 0.03)), turbulent


def drawn_text(letters_wanted=14_000):
    """Return words of two to six letters, with vowels after consonants."""
    rng = np.random.default_rng(1)
    words = []
    for size in rng.integers(1, 4, size=letters_wanted // 5):
        words.append("".join(rng.choice([*"bcdfghjklmnpqrstvwxyz"]) + rng.choice([*"aeiou"]) for _ in range(size)))
    return "A title page\n\nChapter 1\n\n" + ", ".join(words) + "!\n"


def drawn_chorales(number=24):
    """Return chorales in C or in G with three chords, and four rows for every quarter note."""
    rng, pieces = np.random.default_rng(2), []
    triads = np.array([[72, 67, 64, 48], [74, 71, 67, 43], [72, 69, 65, 53]])
    for at in range(number):
        rows = triads[rng.integers(3, size=30)] + (7 if at % 2 else 0)
        pieces.append(np.repeat(rows, 4, axis=0))
    pieces[0][:4] = -1
    return pieces


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    made = tmp_path_factory.mktemp("data")
    for name in ("sp500_monthly", "english_text", "jsb_chorales"):
        (made / name).mkdir()
    returns, _ = drawn_returns()
    dates = [f"{1950 + at // 12}-{at % 12 + 1:02d}-28" for at in range(len(returns))]
    lines = [f"{date},{100 * np.exp(total)},{one}" for date, total, one in zip(dates, np.cumsum(returns), returns, strict=True)]
    with gzip.open(made / regimes.FILE, "wt") as file:
        file.write("\n".join(["date,Close,logret", *lines]) + "\n")
    with gzip.open(made / letters.FILE, "wt", encoding="utf-8") as file:
        file.write(drawn_text())
    pieces = drawn_chorales()
    np.savez(
        made / chorales.FILE, pitches=np.concatenate(pieces).astype(np.int8), lengths=np.array([len(one) for one in pieces]),
        split=np.array((["train"] * 4 + ["valid", "test"]) * 4),
    )  # fmt: skip
    return made


# Returns


def test_months_are_read_in_percent(directory):
    months = regimes.Months.load(directory / regimes.FILE, 100)
    assert len(months) == 100 and months.dates[13] == "1951-02-28"
    np.testing.assert_allclose(months.returns[:, 0], 100.0 * drawn_returns()[0][:100])


def test_regimes_are_where_they_were_put():
    returns, turbulent = drawn_returns()
    model = regimes.fitted(2, 100.0 * returns[:, None], 0)
    found = regimes.regimes_of(model)
    assert found[0]["deviation"] < 4.0 < 6.0 < found[1]["deviation"]
    state = int(np.argmax(model.covars_[:, 0, 0]))
    probability = model.predict_proba(100.0 * returns[:, None])[:, state]
    assert ((probability > 0.5) == turbulent).mean() > 0.85


def test_spells_are_long_enough():
    assert regimes.spells(np.array([0.9, 0.9, 0.9, 0.1, 0.8, 0.8, 0.2, 0.6, 0.7, 0.8])) == [(0, 2), (7, 9)]


def test_one_gaussian_knows_the_months_before():
    X = 100.0 * drawn_returns()[0][:, None]
    scores, at = regimes.one_gaussian(X), regimes.WAIT + 7
    mean, deviation = X[:at].mean(), X[:at].std()
    wanted = -0.5 * np.log(2.0 * np.pi) - np.log(deviation) - 0.5 * ((X[at, 0] - mean) / deviation) ** 2
    assert np.isnan(scores[: regimes.WAIT]).all()
    np.testing.assert_allclose(scores[at], wanted, rtol=1e-9)


def test_a_stream_is_scored_before_it_is_learned():
    X = 100.0 * drawn_returns()[0][:, None]
    scores, turbulent = regimes.streamed(2, X, *regimes.SHOWN)
    assert (
        np.isfinite(scores[regimes.WAIT :]).all()
        and ((turbulent[regimes.WAIT :] >= 0.0) & (turbulent[regimes.WAIT :] <= 1.0)).all()
    )
    changed = X.copy()
    changed[-1] = 1000.0
    np.testing.assert_array_equal(regimes.streamed(2, changed, *regimes.SHOWN)[0][:-1], scores[:-1])


# Letters


def test_all_that_is_no_letter_is_a_space(directory):
    symbols = letters.load(directory / letters.FILE, 200)
    text = "".join(letters_values.SYMBOLS[at] for at in symbols[:, 0])
    assert text.startswith("chapter ") and len(text) == 200 and "  " not in text


def test_two_states_are_vowels_and_consonants(directory):
    X = letters.load(directory / letters.FILE)
    model = letters.fitted(2, X, 0)
    found = letters.sides(model.transmat_, model.emissionprob_, X)
    assert found["right_letters"] > 0.97 and len(found["vowel_state"]) == 27
    wrong = letters.sides(model.transmat_, model.emissionprob_[::-1], X)
    assert 0.0 <= wrong["right_letters"] <= 1.0


def test_state_given_the_letter_is_bayes():
    transitions, emissions = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.2, 0.8], [0.6, 0.4]])
    found = letters.state_of_letter(transitions, emissions)
    np.testing.assert_allclose(found[0], [0.75 * 0.2 / 0.3, 0.25 * 0.6 / 0.3])


# Chorales


def test_chords_are_pitch_classes_and_have_names(directory):
    found = chorales.Chorales.load(directory / chorales.FILE)
    assert {name: len(part.lengths) for name, part in found.parts.items()} == {"train": 16, "valid": 4, "test": 4}
    assert (found.parts["train"].lengths == 30).all() and len(found.parts["test"].symbols) == 120
    assert {chorales_values.chord_name(chord) for chord in found.chords} == {"C", "G", "F", "D", "rest"}
    assert chorales_values.chord_name((2, 6, 9, 0)) == "D7" and chorales_values.chord_name((0,)) == "C alone"
    assert chorales_values.chord_name((0, 1, 2)) == "C-C#-D"


def test_rare_chords_are_one_symbol():
    part = chorales.part_of([[(0,), (1,), (5,)], [(1,)]], {(0,): 0, (1,): 1})
    assert part.symbols[:, 0].tolist() == [0, 1, 2, 1] and part.lengths.tolist() == [3, 1]


# The text of the pages


def test_states_are_compared_with_hmmlearn():
    runs = {"fit": {"learned": [-2.8, -2.7], "seconds": [1.0, 3.0]}, "hmmlearn": {"learned": [-2.9, -2.8], "seconds": [8.0]}}
    runs |= {name: {"learned": [-2.85], "seconds": [4.0]} for name in ("blocks", "steps")}
    found = letters_values.beside("2", runs)
    np.testing.assert_allclose([found["fit"], found["stream"], found["fit_time"], found["stream_time"]], [0.1, -0.05, 4.0, 2.0])


def test_fits_that_end_at_the_best_are_counted():
    run = {"at_once": {"fit": [-2.8, -2.8002, -2.9], "hmmlearn": [-2.85, -2.86], "mixture": [-3.0]}}
    found = regimes_values.beside("2", run, 100)
    assert found["close"] == [2, 1]
    np.testing.assert_allclose([found["ahead"], found["order"]], [0.05, 20.0])


def test_times_without_months_are_left_out():
    dates, turbulent = ["1962-04-30", "1962-05-31", "1970-01-31"], np.array([0.9, 0.7, 0.1])
    assert regimes_values.in_times(turbulent, dates, regimes_values.EVENTS) == "1962 slide (1962-04 to 1962-06) 0.80"


# The commands


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EXAMPLES])
def test_a_quick_run_on_stand_ins(name, directory, tmp_path):
    assert main([name, "--quick", "--data", str(directory), "--out", str(tmp_path)]) == 0
    complete((tmp_path / f"{name}.md").read_text())
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["newsgroups", "msnbc", *EXAMPLES])
def test_a_data_set_that_is_absent_is_said_in_a_sentence(name, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("HEADWATER_DATA", raising=False)
    for options in (["--out", str(tmp_path)], ["--data", str(tmp_path), "--out", str(tmp_path)]):
        with pytest.raises(SystemExit):
            main([name, *options])
        assert f"must name a directory of data sets that has {find(name).needs[0]}" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


@pytest.mark.data
@pytest.mark.skipif(not DIRECTORY or not Path(DIRECTORY).is_dir(), reason="HEADWATER_DATA names no directory")
@pytest.mark.parametrize("name", [*EXAMPLES])
def test_a_small_part_of_the_real_data(name, tmp_path):
    if not (Path(DIRECTORY) / EXAMPLES[name].FILE).is_file():
        pytest.skip(f"HEADWATER_DATA has no {EXAMPLES[name].FILE}")
    assert main([name, "--quick", "--data", DIRECTORY, "--out", str(tmp_path)]) == 0
    complete((tmp_path / f"{name}.md").read_text())
