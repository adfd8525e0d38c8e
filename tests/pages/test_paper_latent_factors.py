"""The page of paper 001: swimmers, samplers against enumeration, formula 4, corpora, and a tiny run."""

from dataclasses import replace

import numpy as np
import pytest
from page_checks import complete, page_of
from scipy.sparse import csr_array

pytest.importorskip("papers", reason="run from the root of the repository")

from pages.__main__ import measure
from pages.page import data_directory
from pages.render import PICTURE, text, write
from papers import latent_factors as command
from papers import latent_factors_audio as audio
from papers import latent_factors_corpus as corpus
from papers import latent_factors_cost as cost
from papers import latent_factors_printed as printed
from papers import latent_factors_swimmer as swimmer
from papers import latent_factors_variance as variance
from papers.latent_factors_scale import coded, decoded

PAGE = command.PAGE
TINY = replace(
    PAGE.full, seeds=1, images=30, burn_in=3, kept=2, chains=4, draws=40, copies=40, steps=50, library_copies=2,
    library_rows=64, documents=80, topics=3, passes=2, sweeps=10, most_topics=50, tokens=400, frames=40,
)  # fmt: skip


# Swimmers


def test_swimmers_are_torsos_with_four_limbs():
    parts, clean = swimmer.body_parts(), swimmer.swimmers()
    assert parts.sum(axis=0).max() == 1.0 and parts.sum(axis=1).tolist() == [16.0] + [5.0] * 16
    assert clean.shape == (256, 1024) and {*clean.sum(axis=1)} == {36.0} and len(np.unique(clean, axis=0)) == 256
    rows = swimmer.images(4000, 0)
    np.testing.assert_allclose(rows.mean(), clean.mean() + swimmer.NOISE, rtol=0.01)
    np.testing.assert_array_equal(swimmer.images(5, 3), swimmer.images(5, 3))


@pytest.mark.skipif(data_directory() is None, reason="needs HEADWATER_DATA")
def test_swimmers_are_the_published_ones():
    assert swimmer.published(data_directory()) is not False
    assert swimmer.published(None) is None


def test_limbs_are_matched_in_any_order():
    order = np.random.default_rng(0).permutation(16)
    match = swimmer.matched(swimmer.body_parts()[1:][order] + 0.01)
    assert match.found == 16
    np.testing.assert_array_equal(order[match.components], match.limbs)
    assert swimmer.matched(np.random.default_rng(1).random((16, 1024))).found == 0
    np.testing.assert_allclose(decoded(coded(np.array([0.0, 1.0, 2.0]))), [0.0, 0.5, 1.0], atol=0.01)


# The sampler


def test_enumeration_deals_tokens_one_by_one():
    """Enumeration equals a sum over the topics of every token."""
    counts, topics, alpha = np.array([2.0, 1.0]), np.array([[0.7, 0.3], [0.2, 0.8]]), 0.5
    tokens, total, held = [0, 0, 1], 0.0, np.zeros(2)
    for code in range(8):
        z = [(code >> place) & 1 for place in range(3)]
        numbers = np.bincount(z, minlength=2)
        weight = np.prod([topics[k, w] for k, w in zip(z, tokens, strict=True)])
        weight *= np.prod([np.prod(alpha + np.arange(n)) for n in numbers])
        total, held = total + weight, held + weight * numbers
    np.testing.assert_allclose(printed.exact_tokens(counts, topics, alpha), held / total, rtol=1e-12)


def test_the_ratio_as_printed_is_wrong_and_the_right_one_is_not():
    exact = printed.exact_tokens(printed.COUNTS, printed.TOPICS, 2.0)
    for as_printed, with_prior, right in ((True, False, False), (False, False, False), (False, True, True)):
        found, rate = printed.metropolis(printed.COUNTS, printed.TOPICS, 2.0, 800, 60, as_printed, with_prior)
        assert bool(np.abs(found - exact).max() < 0.3) is right and 0.1 < rate < 0.95
    for sampler in ("metropolis", "gibbs"):
        found, _ = printed.library(sampler, printed.COUNTS, printed.TOPICS, 2.0, 400, 40)
        np.testing.assert_allclose(found, exact, atol=0.4)


# Formula 4


def test_formula_4_solves_the_equation_of_the_stationary_covariance():
    complete, observed = variance.mixture_information()
    assert np.linalg.eigvalsh(complete - observed).min() > -1e-12
    inverse = np.linalg.inv(complete)
    for number in (1, 3, None):
        found = variance.formula(complete, observed, number)
        noise = inverse @ (observed + (complete - observed) / number if number else observed) @ inverse
        drift = inverse @ observed
        np.testing.assert_allclose(drift @ found + found @ drift.T, noise, atol=1e-12)
        np.testing.assert_allclose(variance.at_hand(complete, observed, number, 20_000, 1000), found, rtol=0.1, atol=1e-3)
    weight = variance.weight_information()
    assert weight[0] > weight[1] > 0.0


def test_more_draws_mean_less_variance():
    few, exact = (variance.weight_variance(number, 1500, 400) for number in (1, None))
    assert few > 1.5 * exact


# Corpora and costs


def write_data(directory):
    """Write two small corpora, and some noise in place of music."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.2), size=3)
    for name in corpus.CORPORA:
        rows = csr_array(rng.multinomial(30, rng.dirichlet(np.full(3, 0.3), size=90) @ topics).astype(np.int32))
        (directory / name).mkdir()
        vocabulary = np.array([f"word{place}" for place in range(40)])
        parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape)}
        np.savez(directory / name / f"{name}.npz", vocab=vocabulary, **parts)
    powers = rng.gamma(0.5, size=(80, 4)) @ rng.gamma(0.5, size=(4, 12)) * rng.exponential(size=(80, 12))
    for one in audio.RECORDINGS.values():
        (directory / one.path).parent.mkdir()
        np.savez(directory / one.path, power=powers.astype(np.float32), sample_rate=np.array(22050))


def test_documents_are_shuffled_and_cut_once(tmp_path):
    write_data(tmp_path)
    path = corpus.corpus_path(tmp_path, "ap")
    assert corpus.corpus_path(None, "ap") is None and audio.audio_path(None, "ragtime") is None
    one, other = corpus.Corpus.read(path, 80), corpus.Corpus.read(path, 80)
    assert one.train.shape == (72, 40) and one.test.shape == (8, 40)
    assert (one.train != other.train).nnz == 0
    assert corpus.turns(10) == [1, 2, 4, 10] and corpus.turns(1) == [1]


def test_a_dense_draw_sums_what_the_topics_say():
    table, alpha, rows = cost.corpus(5, 600)
    assert rows.data.sum() == 600 and table.shape == (cost.VOCABULARY, 5)
    np.testing.assert_allclose(table.sum(axis=0), 1.0)
    entries = np.array([3, 3, 7], dtype=np.int32)
    seen = cost.dense_documents(np.array([0, 3]), entries, np.full((10, 5), 0.1), alpha, 1, np.array([0.5]))
    np.testing.assert_allclose(seen, 0.1 * (3 * alpha.sum() + 1 + 2))


# Figures, text and the command


def claims(**figures):
    """Return the table of claims for some figures; the other parts are not measured."""
    return page_of(PAGE, pending=["swimmer", "variance"], **figures).split("## What holds")[1]


def test_verdicts_follow_the_figures():
    def one(found, rate):
        return {"line": swimmer.METROPOLIS.name, "seeds": len(found), "found": found, "acceptance": [rate] * len(found)}

    name = f"{swimmer.METROPOLIS.name}/16"
    for found, rate, words in (
        ([16, 16], 0.42, ["| holds | 16.0 (16.0 to 16.0) of 16 over 2 seeds |", "accepted | holds |"]),
        ([16, 14], 0.42, ["holds in 1 of 2 seeds"]),
        ([14, 14], 0.8, ["the 16 limbs | does not hold |", "accepted | does not hold |"]),
    ):
        told = claims(swimmer={name: one(found, rate)})
        for word in words:
            assert word in told
    rows = [
        {"draws": n, "formula": v, "finite": v, "measured": v, "mixture_formula": v, "mixture_finite": v, "mixture_measured": v}
        for n, v in ((1, 2.0), (None, 1.0))
    ]
    told = claims(variance={"1": rows[0], "exact": rows[1]})
    assert "Formula 4 is the variance | holds" in told and "falls with the number of draws m | holds" in told
    rows[0]["measured"] = 0.5
    told = claims(variance={"1": rows[0], "exact": rows[1]})
    assert "holds roughly" in told and "falls with the number of draws m | does not hold" in told


@pytest.mark.slow
def test_a_tiny_run_of_every_part(tmp_path):
    write_data(tmp_path)
    results = PAGE.results(tmp_path, TINY)
    measure(PAGE, results, results.begin([*PAGE.parts]), TINY, tmp_path)
    write(PAGE, results, tmp_path)
    told = complete((tmp_path / "latent_factors.md").read_text())
    assert told == text(PAGE, PAGE.results(tmp_path, TINY))
    assert len(PICTURE.findall(told)) == 7 == len(PAGE.pictures)
    for name in PICTURE.findall(told):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert not results.pending and set(results.figures) == set(PAGE.parts)


def test_without_data_or_peers_their_parts_are_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "find_spec", lambda name: None if name == "tomotopy" else True)
    assert PAGE.absent(TINY, tmp_path) == [
        "20 Newsgroups",
        "Associated Press",
        "Vibe Ace",
        "Pistachio Ice Cream Ragtime",
        "tomotopy",
    ]
    assert [*command.make_topics(TINY, tmp_path)] == [] and [*command.make_audio(TINY, tmp_path)] == []
