"""The page of paper 004: its data, its text for made-up figures, and a tiny run."""

import numpy as np
import pytest
from page_checks import complete, page_of
from scipy.stats import multivariate_normal

pytest.importorskip("papers", reason="run from the root of the repository")

from pages.__main__ import main
from papers import variational_methods as code
from papers import variational_values as values
from papers.variational import PAGE, outcomes


def test_data_are_as_the_page_says():
    data = code.Settings().data(3)
    gaps = np.linalg.norm(data.means_[:, None] - data.means_, axis=2)[np.triu_indices(code.CLUSTERS, 1)]
    assert gaps.min() >= 3.5 and data.weights_.min() >= code.LEAST_WEIGHT and len(data.rows) == code.ROWS
    joint = [w * multivariate_normal(m, c).pdf(data.held_out) for w, m, c in zip(
        data.weights_, data.means_, data.covariances_, strict=True
    )]  # fmt: skip
    assert data.truth_score == pytest.approx(np.log(np.sum(joint, axis=0)).mean())
    ordered = code.Settings(sort=True).data(3)
    assert (np.diff(ordered.rows[:, 0]) >= 0.0).all() and np.array_equal(
        np.sort(data.rows, axis=0), np.sort(ordered.rows, axis=0)
    )


def test_a_method_is_judged_by_its_active_components_and_its_density():
    (found,) = outcomes({"cold": code.COLD}, code.Settings(), 0).values()
    data = code.Settings().data(0)
    model = code.COLD.learn(data, code.Settings().prior(data))
    assert found[0] == (model.weights_ > code.ACTIVE_WEIGHT).sum()
    assert found[1] == pytest.approx(model.score(data.held_out) - data.truth_score)


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([[5, -0.01]] * 10, "the claim holds"),
        ([[5, -0.01]] * 6 + [[6, -0.01]] * 4, "the claim holds more often than not"),
        ([[4, -0.01], [6, -0.01]], "the claim holds on average only"),
        ([[5, -0.2]] * 10, "the number is about right, the components are not"),
        ([[14, -0.01]] * 10, "the claim does not hold"),
    ],
)
def test_verdicts_follow_the_outcomes(pairs, verdict):
    assert values.outcome(pairs)["verdict"] == verdict


def made_up(warmed):
    names = [method.name for method in code.METHODS]
    methods = {f"{seed}": {name: [5, -0.01] if name != code.COLD.name else [14, -0.02] for name in names} for seed in range(4)}
    for one in methods.values():
        one[code.WEAK.name], one[code.WARMED.name] = [3, -0.5], [warmed, -0.01]
    worths = {f"{seed}": {"1": [12, -0.02], "0.1": [5 + seed % 2, -0.3]} for seed in range(4)}
    streams = {method.name: [5, -0.01] if method is code.WARMED else [7, -0.01] for method in code.STREAMS}
    return {"methods": methods, "worths": worths, "others": {"prior scale 0.2": {"sets": [streams] * 3}}}


def test_the_page_says_what_the_figures_say():
    text = complete(page_of(PAGE, **made_up(5)))
    assert f"| {code.COLD.name} | 14.00 | 0 % | 0 % | 100 % | -0.020 | -0.020 |" in text
    assert "The start decides" in text and "a good density, in which several components share a cluster." in text
    assert "from 5.50 to 12.00 on average. Seeds of weight 0.1 come closest to 5, and are right on average at best" in text
    assert f"- {code.WARMED.name}: the claim holds in all of these." in text
    assert f"- {code.COLD.name}: the claim holds in none of these; the best is 0 % exact, with prior scale 0.2." in text
    assert "The warm-up makes little difference" in page_of(PAGE, **made_up(7))


@pytest.mark.slow
def test_a_quick_run(tmp_path):
    assert main(["variational", "--quick", "--out", str(tmp_path)]) == 0
    text = complete((tmp_path / "variational.md").read_text())
    assert all(f"| {method.name} |" in text for method in code.METHODS)
    assert (tmp_path / "variational.png").read_bytes().startswith(b"\x89PNG")
