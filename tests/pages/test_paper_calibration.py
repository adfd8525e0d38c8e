"""Calibration: beliefs of one component are exact posteriors, and the simulations detect wrong beliefs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from page_checks import complete, page_of, results_with
from scipy.stats import beta, invgamma, norm
from scipy.stats import t as student

import papers.calibration as command
from pages.__main__ import main
from papers.calibration_gibbs import chains, nearest_order
from papers.calibration_pictures import QUANTITIES
from papers.calibration_ranks import (
    AMBIGUITY,
    BINS,
    PROBABILITIES,
    Observed,
    Way,
    by_ambiguity,
    draws,
    figures,
    intervals,
    matched,
    observe,
    placed,
    quantiles,
    summed_up,
)
from papers.calibration_subjects import Counts, Gaussians, Lines
from papers.calibration_values import NEAR
from papers.calibration_widening import observe_widened

PAGE = command.PAGE

# Algorithms that count each row as one; the others count it as less.
COUNTING = ("auto", "em", "boem", "vb", "online-vb", "quasi-bayes", "moment-matching")


def drawn_by(subject, seed=0):
    return draws(subject, [seed])[0]


def exact_quantiles(subject, rows):
    """Return posterior quantiles of one Gaussian, from the textbook."""
    n, total = len(rows), rows.sum(axis=0)
    kappa = subject.mean_precision + n
    mean = total / kappa
    scale = subject.dof * np.eye(subject.columns) + rows.T @ rows - kappa * np.outer(mean, mean)
    dof = subject.dof + n - (subject.columns - 1 if subject.full else 0)
    spread = np.sqrt(np.diag(scale) / (kappa * dof))
    at = PROBABILITIES[:, None]
    return student(dof, mean, spread).ppf(at), invgamma(0.5 * dof, scale=0.5 * np.diag(scale)).ppf(at)


# One component


@pytest.mark.parametrize("kind", ["full", "diag"])
@pytest.mark.parametrize("word", COUNTING)
def test_the_belief_about_one_gaussian_is_the_posterior(word, kind):
    subject = Gaussians(1, kind, n_rows=24, warm_up=10)
    drawn = drawn_by(subject)
    for way in {Way(word, word), Way(word, word, streamed=word not in ("em", "vb"))}:
        found = quantiles(way.learned(subject, drawn, 0))
        means, variances = exact_quantiles(subject, drawn.rows[0])
        np.testing.assert_allclose(found["means"][:, 0], means, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found["variances"][:, 0], variances, rtol=1e-8)


def test_the_belief_about_one_row_of_probabilities_is_the_posterior():
    subject = Counts(1, n_rows=12, warm_up=6, length=5)
    drawn = drawn_by(subject)
    found = quantiles(Way("boem", "boem").learned(subject, drawn, 0))["probabilities"][:, 0]
    counts = subject.spread + drawn.rows[0].sum(axis=0)
    np.testing.assert_allclose(found, beta(counts, counts.sum() - counts).ppf(PROBABILITIES[:, None]), rtol=1e-8)


def test_the_belief_about_one_regression_is_the_posterior():
    subject = Lines(1, n_rows=20, warm_up=20)
    drawn = drawn_by(subject)
    found = quantiles(Way("online-vb", "online-vb").learned(subject, drawn, 0))["coefficients"][:, 0]
    inputs, target = drawn.rows
    precision = inputs.T @ inputs + subject.coef_precision * np.eye(2)
    coef = np.linalg.solve(precision, inputs.T @ target)
    scale = subject.dof + target @ target - coef @ precision @ coef
    dof = subject.dof + len(target)
    spread = np.sqrt(np.diag(np.linalg.inv(precision)) * scale / dof)
    np.testing.assert_allclose(found, student(dof, coef, spread).ppf(PROBABILITIES[:, None]), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_intervals_of_one_gaussian_hold_as_often_as_they_say(kind):
    subject = Gaussians(1, kind, n_rows=15, warm_up=8)
    found = figures(observe(subject, Way("online-vb", "online-vb"), draws(subject, range(400))))
    for one in found.values():
        assert abs(one["0.5"][0] - 0.5) < 4.0 * one["0.5"][1] and abs(one["0.9"][0] - 0.9) < 4.0 * one["0.9"][1]
        assert one["p"] > 1e-4 and 0.9 < one["stretch"] < 1.1


# The simulations


@pytest.mark.parametrize("subject", [Gaussians(2, n_rows=4000), Gaussians(2, "diag", n_rows=4000)], ids=["full", "diag"])
def test_rows_come_from_the_parameters(subject):
    drawn = drawn_by(subject)
    (rows,), truth = drawn.rows, drawn.truth
    weights = truth["weights"][:, 0]
    centre = weights @ truth["means"]
    np.testing.assert_allclose(rows.mean(axis=0), centre, atol=0.5)
    expected = weights @ (truth["variances"] + (truth["means"] - centre) ** 2)
    np.testing.assert_allclose(rows.var(axis=0), expected, rtol=0.05)


def test_parameters_come_from_the_prior():
    many = drawn_by(Gaussians(4000, mean_precision=0.5, n_rows=1))
    variances, means = (many.truth[name][:, 0] for name in ("variances", "means"))
    # A variance under this prior is inverse Gamma, a mean Student's t, both of one column.
    assert abs(np.mean(variances < invgamma(4.5, scale=5.0).ppf(0.5)) - 0.5) < 0.04
    assert abs(np.mean(means < student(9.0, 0.0, np.sqrt(10.0 / (0.5 * 9.0))).ppf(0.9)) - 0.9) < 0.025


def ranked(width, n=4000):
    """Return standard normal truths under normal beliefs of another width."""
    truth = np.random.default_rng(0).standard_normal((n, 1, 1))
    return summed_up(*placed(truth, norm(0.0, width).ppf(PROBABILITIES)[:, None, None, None]))


def test_a_right_belief_is_told_from_narrow_and_wide_ones():
    right, narrow, wide = ranked(1.0), ranked(0.5), ranked(2.0)
    assert abs(right["0.9"][0] - 0.9) < 0.02 and abs(right["0.5"][0] - 0.5) < 0.03 and right["p"] > 0.001
    assert right["stretch"] == pytest.approx(1.0, abs=0.05) and right["deviation"] < 0.03
    assert narrow["0.9"][0] == pytest.approx(2.0 * norm.cdf(0.5 * norm.ppf(0.95)) - 1.0, abs=0.02)
    assert narrow["stretch"] == pytest.approx(2.0, rel=0.05) and narrow["p"] < 1e-6
    assert wide["stretch"] == pytest.approx(0.5, rel=0.05) and wide["0.9"][0] > 0.98


def test_ranks_count_the_quantiles_below():
    among = PROBABILITIES[:, None, None]
    ranks, far = placed(np.array([[0.01], [0.52], [0.97]]), np.tile(among, (1, 3, 1)))
    assert ranks.ravel().tolist() == [0, 10, BINS - 1]
    np.testing.assert_allclose(far.ravel(), [0.49 / 0.45, 0.02 / 0.45, 0.47 / 0.45])


def test_components_are_matched_to_the_true_ones():
    drawn = drawn_by(Gaussians(3))
    turned = [2, 0, 1]
    covariances = np.linalg.inv(drawn.start["precisions_init"])
    model = SimpleNamespace(means_=drawn.truth["means"][turned], covariances_=covariances[turned])
    assert matched(drawn, model).tolist() == [1, 2, 0]
    assert nearest_order(drawn.truth["means"][None], covariances[None], model).tolist() == [turned]


def test_ambiguous_components_are_told_apart():
    ranks = np.full((2, 2, 1), 10)
    ranks[:, 1] = 0
    far = np.where(ranks == 10, 0.5, 3.0)
    found = by_ambiguity([Observed({"means": ranks}, {"means": far}, np.array([[0.0, 0.2], [0.0, 0.2]]))])
    assert found["0"]["means"]["0.9"][0] == 1.0 and found["0"]["means"]["stretch"] == 0.5
    assert found["0.15"]["means"]["0.9"][0] == 0.0 and found["0.15"]["means"]["stretch"] == 3.0
    assert found["0.3"] == {} and len(found) == len(AMBIGUITY) - 1


def test_gibbs_sampling_of_one_component_draws_from_the_posterior():
    subject = Gaussians(1, n_rows=20)
    drawn = drawn_by(subject)
    sampled = chains(subject, [drawn] * 400, 10)
    means, variances = exact_quantiles(subject, drawn.rows[0])
    for found, exact in (
        (sampled["means"].reshape(-1, 2), means),
        (np.diagonal(sampled["covariances"].reshape(-1, 2, 2), axis1=1, axis2=2), variances),
    ):
        shares = (found[:, None] < exact).mean(axis=0)
        np.testing.assert_allclose(shares, np.tile(PROBABILITIES[:, None], 2), atol=0.05)


def test_widened_intervals_are_no_narrower():
    subject = Gaussians(2, n_rows=60, warm_up=30, mean_precision=0.5)
    plain, wider = observe_widened(subject, Way("vb", "vb"), draws(subject, [0, 1]))
    for name in QUANTITIES:
        found = [figures(one)[name] for one in (plain, wider)]
        assert found[1]["0.9"][0] >= found[0]["0.9"][0] and found[1]["stretch"] <= found[0]["stretch"]


def test_intervals_of_a_mixture_are_those_of_its_description():
    subject = Counts(2, n_rows=30, warm_up=30, columns=3)
    model = Way("auto", "auto", streamed=True).learned(subject, drawn_by(subject), 0)
    found = intervals(model, 0.8)
    told = model.describe(level=0.8).components[0]
    assert found["weights"][told.index, 0].tolist() == [told.low, told.high]
    for value in told.values:
        assert found["probabilities"][told.index, int(value.name[1:])].tolist() == [value.low, value.high]


def test_every_algorithm_is_calibrated():
    names = [way.name for way in command.ways(Gaussians())]
    assert {"auto", "auto (stream)", "boem", "vb", "online-vb", "quasi-bayes", "moment-matching"} <= {*names}
    assert len(names) == len({*names})
    assert "moment-matching" not in [way.name for way in command.ways(Counts())]


# The page


def made_up(share, stretch):
    one = {"simulations": 100, "parameters": 6, "0.5": [share - 0.4, 0.02], "0.9": [share, 0.01], "deviation": 0.1, "p": 0.5}
    one |= {"histogram": [1 / BINS] * BINS, "stretch": stretch}
    far = {"vb": dict.fromkeys(QUANTITIES, one | {"0.9": [0.9, 0.01]}), "auto": dict.fromkeys(QUANTITIES, one)}
    cells = {f"{low:g}": dict.fromkeys(QUANTITIES, one) for low in AMBIGUITY[:-1]}
    gaussian = {"regimes": dict.fromkeys(command.REGIMES, far), "ambiguity": dict.fromkeys(far, cells)}
    both = {"full": far, "diag": far}
    return {
        "one": both, "gaussian": {"full": gaussian, "diag": gaussian}, "starts": {"near": far},
        "widened": {NEAR: {"auto": far["auto"], "auto, widened": far["vb"]}},
        "exact": {"near": {"exact posterior": far["vb"], "vb": far["auto"]}}, "others": {"RegressionMixture": far},
    }  # fmt: skip


def test_the_page_says_what_the_figures_say():
    text = complete(page_of(PAGE, **made_up(0.7, 1.83)))
    assert (
        "- **auto**: a 90 % interval of a mean contains the truth 70 % of the time where components are far apart, and 70 % "
        "where they overlap: widen it by 1.8 there (of a weight 70 %: widen it by 1.8; of a variance 70 %: widen it by 1.8)."
        in text
    )
    assert "| 70 % (x 1.83) |" in text and "| 70 ± 1.0 | 1.83 |" in text and "| 0.100 (0.500) |" in text
    assert "Not right: auto and vb." in text and "do not contain the truth as often as they say" in text
    assert "(100 fits): auto 70 % → 90 %, 70 % → 90 %, 70 % → 90 %." in text
    better = page_of(PAGE, **made_up(0.9, 1.0))
    assert "wide enough" in better and "Right, within 3 standard errors: vb and auto." in better and "Not right" not in better
    assert "Its intervals contain the truth as often as they say" in better


@pytest.mark.slow
def test_rendering_needs_only_the_figures(tmp_path):
    replace(results_with(PAGE, **made_up(0.7, 1.83)), path=tmp_path / "calibration.json").write()
    assert main(["calibration", "--render", "--out", str(tmp_path)]) == 0
    for name in PAGE.pictures:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_quick_run(tmp_path):
    assert main(["calibration", "--quick", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "calibration.md").read_text()
    assert "A reduced run" in text and "Not measured" not in text and "nan" not in text
