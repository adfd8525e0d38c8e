"""The page of paper 000: its recursions against the library, its data, its text for made-up figures, and a tiny run."""

import json
from dataclasses import replace

import numpy as np
import pytest
from page_checks import complete, results_with
from scipy.sparse import csr_array
from scipy.stats import dirichlet

pytest.importorskip("papers", reason="run from the root of the repository")

from pages.__main__ import main, measure
from pages.render import text, write
from papers import boem_data as data
from papers import boem_learners as learners
from papers import boem_printed as printed
from papers import boem_sets
from papers import boem_values as claims
from papers.boem import PAGE
from papers.boem_scale import banded, check_points, padded, settled

TINY = replace(
    PAGE.full, starts=2, documents=80, few=2, own=1, columns=60, passes=3, corpus_passes=3, check_points=3,
)  # fmt: skip


# The printed recursions


@pytest.mark.parametrize("case", [printed.SHORT, printed.LONG], ids=lambda case: case.name)
def test_the_library_does_what_the_recursions_say(case):
    found = printed.agreement(case)
    assert len(found["differences"]) >= 5
    for name, difference in found["differences"].items():
        assert difference < 1e-10, name
    assert (max(found["undefined"].values()) > 0.5) is (case is printed.LONG)


def test_the_recursions_are_the_counts_that_they_abbreviate():
    """Equations 7 and 8 agree with 9 to 12."""
    rng = np.random.default_rng(0)
    rows, start = rng.multinomial(20, np.full(5, 0.2), size=40).astype(float), data.uniform_start(3, 5, rng)
    alpha, beta = np.full(3, 2.0), 7.0 * start
    for x in rows:
        xi = printed.responsibilities(x, alpha / alpha.sum(), beta / beta.sum(axis=1, keepdims=True))
        alpha, beta = alpha + xi, beta + xi[:, None] * x
    ended = printed.bayesian(rows, start, 2.0, 7.0)
    np.testing.assert_allclose(ended.weights, alpha / alpha.sum(), rtol=1e-12)
    np.testing.assert_allclose(ended.probabilities, beta / beta.sum(axis=1, keepdims=True), rtol=1e-12)
    assert ended.undefined == 0.0


def test_the_first_row_leaves_all_clusters_the_same_by_equation_5():
    rng = np.random.default_rng(1)
    rows, start = 1.0 + rng.multinomial(30, np.full(6, 1 / 6), size=3), data.uniform_start(3, 6, rng)
    ended = printed.forgetting(rows, start, 0.7, 5000.0)
    np.testing.assert_allclose(ended.probabilities, np.broadcast_to(ended.probabilities[0], (3, 6)), rtol=1e-12)
    first = printed.responsibilities(rows[0], np.full(3, 1 / 3), start)
    np.testing.assert_allclose(ended.weights, first, rtol=1e-10)
    assert learners.first_steps(3)[learners.FACTOR.name] == 1.0


def test_a_mode_without_prior_keeps_a_start_that_got_nothing():
    start = np.array([[0.97, 0.01, 0.01, 0.01], [0.01, 0.97, 0.01, 0.01], [0.25, 0.25, 0.25, 0.25]])
    rows = np.array([[500.0, 1.0, 0.0, 0.0], [0.0, 400.0, 1.0, 0.0]])
    model = learners.bayesian(start, 1.0, mode=True).partial_fit(rows)
    np.testing.assert_allclose(model.probabilities_[2], start[2], rtol=1e-12)
    np.testing.assert_allclose(model.weights_, [0.5, 0.5, 0.0], atol=1e-12)


# The data


def test_documents_are_of_the_lengths_and_clusters_asked_for():
    truth = data.Truth.drawn(2, 30, 3, (0.8, 0.2))
    rows = truth.sample(4000, 2500.0, 1)
    lengths = rows.sum(axis=1)
    assert lengths.min() >= data.FEWEST_WORDS and lengths.max() > 10_000
    shares = rows.sum(axis=0) / rows.sum()
    np.testing.assert_allclose(shares, truth.weights @ truth.probabilities, atol=0.003)
    np.testing.assert_array_equal(rows, data.Truth.drawn(2, 30, 3, (0.8, 0.2)).sample(4000, 2500.0, 1))
    short = truth.sample(50, 3.0, 1, 30)
    assert short.sum(axis=1).min() >= 15
    gaps = truth.probabilities * np.log(truth.probabilities / truth.probabilities[::-1])
    np.testing.assert_allclose(truth.margin, data.MEAN_LENGTH * gaps.sum(axis=1).min())


def test_starts_are_the_same_for_all_and_sum_to_one():
    rows = data.Truth.drawn(3, 20, 0).sample(300, 50.0, 0)
    for kind in ("uniform", "documents"):
        few, more = data.starts(kind, 2, 3, rows), data.starts(kind, 4, 3, csr_array(rows))
        for one, other in zip(few, more, strict=False):
            np.testing.assert_allclose(one, other)
            np.testing.assert_allclose(one.sum(axis=1), 1.0)
        assert np.abs(more[0] - more[3]).max() > 0.001


def test_log_posteriors_are_those_of_the_library():
    rng = np.random.default_rng(0)
    truth = data.Truth.drawn(2, 12, 0)
    rows, start = truth.sample(60, 5.0, 0, 40), data.uniform_start(3, 12, rng)
    expected = dirichlet(np.ones(3)).logpdf(np.full(3, 1 / 3)) + sum(dirichlet(np.full(12, 4.0)).logpdf(one) for one in start)
    np.testing.assert_allclose(data.log_prior(start, 4.0), expected)
    model, seconds = learners.batch(start, 4.0, rows, 5)
    assert seconds > 0.0
    total = model.score(rows) + data.log_prior(model.probabilities_, 4.0) / len(rows)
    np.testing.assert_allclose(total, model.log_posterior(rows) / len(rows))
    constant = data.log_prior(np.ones((3, 12)), 4.0) / len(rows)
    np.testing.assert_allclose(padded(model.lower_bounds_, 5)[-1] + constant, total)
    np.testing.assert_allclose(data.score(rows, model.weights_, model.probabilities_), model.score(rows))
    np.testing.assert_allclose(data.score(csr_array(rows), truth.weights, truth.probabilities), truth.score(rows))


def test_the_corpus_is_shuffled(tmp_path):
    assert data.gutenberg_path(None) is None and data.gutenberg_path(tmp_path) is None
    path = write_corpus(tmp_path)
    assert data.gutenberg_path(tmp_path) == path
    rows = data.load_gutenberg(path, 50)
    assert rows.shape == (50, 30)
    first = rows[:, [0]].toarray().ravel()
    assert not (np.diff(first) >= 0).all()
    assert data.load_gutenberg(path, 1000).shape == (120, 30)


def write_corpus(directory):
    """Write 120 short documents of 30 terms, sorted."""
    rows = csr_array(np.sort(data.Truth.drawn(3, 30, 5).sample(120, 10.0, 5, 80), axis=0).astype(np.int32))
    (directory / "gutenberg_10k").mkdir()
    path = directory / data.GUTENBERG
    np.savez(path, data=rows.data, indices=rows.indices, indptr=rows.indptr, shape=np.array(rows.shape))
    return path


# Figures and text


def test_figures_are_summed_up():
    line = banded([10, 20, 30], [[0.0, 4.0, 4.0], [2.0, 4.0, 5.0], [4.0, 4.0, 6.0]])
    assert line["median"] == [2.0, 4.0, 5.0] and line["low"][0] < line["median"][0] < line["high"][0]
    assert (settled(line, 2.0), settled(line, 0.5), settled(line, 5.0)) == (20, 30, 10)
    np.testing.assert_array_equal(padded([1.0, 2.0], 4), [1.0, 2.0, 2.0, 2.0])
    points = check_points(10_000, 12)
    assert (points[0], points[-1], len(points)) == (20, 10_000, 12)
    assert check_points(15, 3) == [15]


def test_verdicts_follow_the_comparisons():
    base = np.linspace(0.0, 1.0, 10)
    assert claims.against(base + 0.1, base) == claims.BETTER and claims.against(base - 0.1, base) == claims.WORSE
    assert claims.against(base, base) == claims.NEITHER
    assert claims.better_in([claims.BETTER, claims.BETTER]) == "holds"
    assert claims.better_in([claims.BETTER, claims.WORSE]) == "holds in 1 of 2 comparisons"
    assert claims.better_in([claims.NEITHER]) == "does not hold"
    assert claims.better_in([claims.against(base[:3], base[:3] + 1.0)]) == "cannot be decided from so few starts"


def line_of(final, survivors, **more):
    """Return a line of eight starts that end near a value."""
    ends = [final + 0.01 * index for index in range(8)]
    made = {"documents": [20, 1000], "low": [final - 9.0, final], "median": [final - 8.0, final], "high": [final, final]}
    return {**made, "final": ends, "likelihood": ends, "survivors": [survivors] * 8, "seconds": [0.1, 0.2], **more}


def made_up(bayesian):
    """Return figures in which BOEM ends at the given value, SOEM at -600 and batch EM at -50."""
    lines = {line.name: line_of(bayesian, 4) for line in learners.BAYESIAN} | {
        line.name: line_of(-600.0, 1) for line in learners.SATO
    }
    first = [-300.0 + index for index in range(8)]
    lines[learners.BATCH] = line_of(-50.0, 4, first=first)
    lines[learners.OWN] = line_of(0.2, 5)
    one = {
        "spread": 50.0, "length": 5000, "fewest": 100, "survives": 0.01, "margin": 500.0, "clusters": 5, "columns": 1000,
        "documents": 1000, "starts": 8, "runs": 8, "judged": 100, "truth": -33000.0, "weights": [0.5, 0.5], "shortest": 4800.0,
        "longest": 5200.0, "passes": 15, "start": -2000.0, "lines": lines,
    }  # fmt: skip
    beta = {"betas": [0.001, 1.0], "starts": 8, "final": [[bayesian] * 8, [-400.0] * 8]}

    def pair(kind, value, final, clusters):
        trio = {name: line_of(value, clusters) for name in (learners.MEAN_BOEM, learners.MODE_BOEM)}
        trio[learners.MAP_EM] = line_of(final, 2, first=first)
        return {
            "kind": kind, "beta": 5.0, "starts": 8, "clusters": 6, "truth": [0.8, 0.2], "spread": 50.0, "mean_rows": 200,
            "survives": 0.01, "documents": 1000, "columns": 1000, "passes": 2, "points": [20, 1000], "alone": -3800.0,
            "typical": [[0.5, 0.8], [0.5, 0.2]], "length": 480.0, "lines": trio,
        }  # fmt: skip

    ends = dict.fromkeys(boem_sets.learners_of(boem_sets.LONG, PAGE.full), -600.0)
    ends |= {learners.LITERAL.name: bayesian, learners.BATCH: -50.0}
    figures = {
        "printed": {case.name: printed.agreement(case) for case in (printed.SHORT, printed.LONG)},
        "likelihood": {"variance": one, "deviation": one | {"spread": 2500.0}, "beta": beta},
        "shrinkage": {f"{kind}/{value}": pair(kind, bayesian, 0.0, 2 if kind == "documents" else 1) | {"beta": float(value)}
                      for kind in claims.KINDS for value in (1, 5, 20)},
        "gutenberg": {
            **{kind: pair(kind, 80.0 if bayesian > -100.0 else 0.0, 81.0, 10) for kind in claims.KINDS},
            "own": pair("own", 0.0, 0.0, 10) | {"lines": {learners.OWN: line_of(80.0, 10, whole=[1.5] * 8)}},
            "beta": beta,
        },
        "sets": {
            kind.name: {
                "kind": kind.name, "clusters": 5, "columns": 50, "length": kind.length, "documents": 400, "sets": 8,
                "starts": 2, "passes": 3, "margin": 2.0, "digits": ".1f",
                "final": {name: [value + 0.01 * index for index in range(8)] for name, value in ends.items()},
            }
            for kind in boem_sets.KINDS
        },
    }  # fmt: skip
    return results_with(PAGE, **figures)


def test_the_page_says_what_the_figures_say():
    told = complete(text(PAGE, made_up(-31.0)))
    assert "better log-likelihoods than SOEM** (figure 1, left): holds." in told
    assert "**BOEM does better than batch EM** (figure 1, right): holds." in told
    assert "the start decides everything" in told and "A reduced run" not in told
    assert "**There is nothing to tune, and setting beta is easy**: does not hold" in told
    assert "the right number of clusters is left** (figure 2), by BOEM and by batch MAP EM: holds in 4 of 6 cases" in told
    assert "**The higher beta, the fewer clusters**: does not hold" in told
    assert "better log-posteriors than batch MAP EM** (figure 2, right): does not hold" in told
    assert "**On the Gutenberg corpus BOEM and batch EM end alike** (figure 3): holds" in told
    assert "**BOEM gets there in a fraction of the time**: does not hold" in told
    assert "| 8, U(0, 1) | 5 | BOEM, mean | 1 (8) | 0 % | 0 % | -31.0 (-31.0 to -30.9) |" in told
    assert "- soft documents, BOEM, beta = 1 beside SOEM, (t + t0)^-kappa: better (higher in 8 of 8 sets);" in told
    worse = complete(text(PAGE, made_up(-420.0)))
    assert "batch EM: worse (higher in 0 of 8 sets)." in worse
    assert "**BOEM does better than batch EM** (figure 1, right): does not hold" in worse
    assert "**On the Gutenberg corpus BOEM and batch EM end alike** (figure 3): does not hold" in worse


@pytest.mark.slow
def test_rendering_needs_only_the_figures(tmp_path):
    replace(made_up(-31.0), path=tmp_path / "boem.json").write()
    assert main(["boem", "--render", "--out", str(tmp_path)]) == 0
    for name in ("boem_likelihood.png", "boem_shrinkage.png", "boem_gutenberg.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


# The command


@pytest.mark.slow
def test_a_tiny_run_of_every_part(tmp_path):
    write_corpus(tmp_path)
    results = PAGE.results(tmp_path, TINY)
    measure(PAGE, results, results.begin([*PAGE.parts]), TINY, tmp_path)
    write(PAGE, results, tmp_path)
    complete((tmp_path / "boem.md").read_text())
    stored = json.loads((tmp_path / "boem.json").read_text())
    assert stored["pending"] == stored["absent"] == [] and set(stored["figures"]) == set(PAGE.parts)


def test_without_the_corpus_its_part_is_skipped(tmp_path):
    only = replace(PAGE, parts={"gutenberg": PAGE.parts["gutenberg"]}, prepare=lambda: None)
    results = only.results(tmp_path, TINY)
    measure(only, results, results.begin([*only.parts]), TINY, tmp_path)
    assert results.absent == ["Gutenberg"] and results.figures["gutenberg"] == {} and not results.pending
