"""The page of clusters that appear late: its data, its figures, and a tiny run."""

import numpy as np
import pytest
from page_checks import complete, page_of

pytest.importorskip("papers", reason="run from the root of the repository")

from pages.__main__ import main
from papers import late_clusters as code


def test_late_clusters_are_not_among_the_early_rows():
    scale = code.Scale(1, 400, 800)
    rows, held_out, truth = code.stream_of(0, scale)
    centres = code.centres_of(np.random.default_rng(np.random.SeedSequence((3, 0))))
    nearest = np.linalg.norm(rows[:, None] - centres, axis=2).argmin(axis=1)
    early, late = (np.bincount(part, minlength=code.ALL) for part in (nearest[:400], nearest[400:]))
    assert early[: code.EARLY].min() > 60 and early[code.EARLY :].max() < 40 and late.min() > 60
    assert len(held_out) == len(truth) and np.isfinite(truth).all()


def test_an_outcome_counts_components_and_compares_with_the_truth():
    before, after, gap = code.outcome("boem", 0, code.Scale(1, 2000, 6000))
    assert before == code.EARLY and after == code.ALL and -0.05 < gap < 0.01


def test_the_page_says_what_the_figures_say():
    one = {"auto": [3, 6, -0.01], "boem": [3, 5, -0.2]}
    text = complete(page_of(code.PAGE, found={"0": one, "1": one | {"boem": [2, 6, -0.1]}}))
    assert "| auto | 2 of 2 | 2 of 2 | 2 x 6 | -0.0100 ± 0.0000 |" in text
    assert "| boem | 1 of 2 | 1 of 2 | 1 x 5, 1 x 6 | -0.1500 ± 0.0707 |" in text


@pytest.mark.slow
def test_a_quick_run(tmp_path):
    assert main(["late_clusters", "--quick", "--out", str(tmp_path)]) == 0
    assert "Not measured" not in (tmp_path / "late_clusters.md").read_text()
