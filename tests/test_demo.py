import io
import subprocess
import sys
from typing import get_args

import matplotlib
import numpy as np
import pytest
from rich.console import Console

from headwater import demo
from headwater.cli import main
from headwater.cli.demo import Stories
from headwater.demo import odd_rows
from headwater.demo.contenders import Result
from headwater.demo.display import components_table, match_components, ratio_words
from headwater.demo.truth import COMPONENTS, Truth, make_stream

matplotlib.use("Agg")


def test_quick_demo_tells_what_it_found_and_leaves_a_picture(tmp_path, capsys):
    picture = tmp_path / "pictures" / "demo.png"
    assert demo.main(["--quick", "--rows", "2000", "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    told = capsys.readouterr().out
    for words in ("2,000 rows", "Kernels ready", "held-out score", "Farthest from the truth", "scikit-learn", "headwater took"):
        assert words in told
    assert "\x1b" not in told
    assert max(map(len, told.replace(str(picture), "").splitlines())) <= 130


TOLD = {
    "odd-rows": ("3,000 rows", "of the 24 wrong ones", "flow is", "temperature is", "standard deviations above"),
    "topics": ("400 short texts", "After 200 texts, 29 words are known", "After 400 texts, 39 words", "rose most"),
    "regimes": ("600 days", "The first 300 days", "calm:", "lasts", "of the days.", "forecast for tomorrow"),
}


def test_every_story_is_told_by_the_command_line_too():
    assert ["mixture", *TOLD] == list(demo.STORIES) == list(get_args(Stories))


@pytest.mark.parametrize("story", TOLD)
def test_a_story_has_plain_sentences_and_a_picture(story, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    least = str(demo.STORIES[story].least_rows)
    assert main(["demo", story, "--quick", "--rows", least]) == 0
    told = capsys.readouterr().out
    joined = " ".join(told.split())
    for words in (*TOLD[story], f"Picture: headwater-{story}.png"):
        assert words in joined
    assert "nan" not in joined.split() and "\x1b" not in told
    assert [path.name for path in tmp_path.iterdir()] == [f"headwater-{story}.png"]
    assert (tmp_path / f"headwater-{story}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("story", TOLD)
@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_size_and_seed_of_a_story_works(story, seed, tmp_path, capsys):
    least = demo.STORIES[story].least_rows
    assert demo.main([story, "--rows", str(least + 37), "--seed", str(seed), "--picture", str(tmp_path / "p.png")]) == 0
    with pytest.raises(SystemExit):
        demo.main([story, "--rows", str(least - 1)])
    assert f"--rows must be at least {least}, got {least - 1}" in capsys.readouterr().err


def test_odd_rows_are_found_with_their_reasons():
    told = io.StringIO()
    odd_rows.tell(Console(file=told, width=200), 6000, 0)
    assert "24 of the 24 wrong ones" in told.getvalue()
    blocked, stuck = told.getvalue().split("for example:")[1:]
    assert blocked.split()[0] == "flow" and stuck.split()[0] == "temperature"


def test_an_unknown_story_is_refused(capsys):
    assert main(["demo", "weather"]) == 2
    assert "weather" in capsys.readouterr().err


def test_without_matplotlib_one_sentence_stands_for_the_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert demo.main(["odd-rows", "--rows", "3000", "--picture", str(tmp_path / "demo.png")]) == 0
    assert "No picture was drawn: that needs matplotlib (pip install 'headwater[plot]')." in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_the_stream_is_the_same_every_time_and_never_longer_than_asked():
    truth = Truth.draw(3)
    first, again = ([*make_stream(truth, 2500, 3)] for _ in range(2))
    assert [len(chunk) for chunk in first] == [1000, 1000, 500]
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first[0], first[1])


def test_the_score_of_the_truth_is_that_of_its_density():
    from scipy.stats import multivariate_normal

    truth = Truth.draw(1)
    rows = truth.rows(50, np.random.default_rng(0))
    densities = [
        weight * multivariate_normal(mean, covariance).pdf(rows)
        for weight, mean, covariance in zip(truth.weights_, truth.means_, truth.covariances_, strict=True)
    ]
    assert truth.score(rows) == pytest.approx(np.log(np.sum(densities, axis=0)).mean())


def test_components_are_matched_to_the_truth_whatever_their_order():
    truth = Truth.draw(2)
    order = np.random.default_rng(0).permutation(COMPONENTS)
    found = Result(truth.weights_[order], truth.means_[order], truth.covariances_[order], 1.0, 0.0, 1)
    np.testing.assert_array_equal(order[match_components(truth, found)], np.arange(COMPONENTS))
    assert "a weight by 0.0000, a mean by 0.000 standard deviations" in components_table(truth, found)[1]


def test_ratios_are_true_whichever_way_they_point():
    assert ratio_words(2.0, 8.0, "the time") == "1/4 of the time"
    assert ratio_words(8.0, 2.0, "the time") == "4 times the time"


def test_too_few_rows_are_refused(capsys):
    with pytest.raises(SystemExit):
        demo.main(["--rows", "10"])
    assert "--rows must be at least 1000, got 10" in capsys.readouterr().err


def test_importing_the_demo_imports_neither_scikit_learn_nor_matplotlib():
    code = "import sys, headwater.demo; sys.exit('sklearn' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_contenders_run_apart_and_measure_their_own_memory(tmp_path):
    command = [sys.executable, "-m", "headwater.demo", "--rows", "50000", "--picture", str(tmp_path / "demo.png")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (tmp_path / "demo.png").exists()
    assert "not measured" not in told
    assert "of the memory" in told
