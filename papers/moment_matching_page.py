"""The page about paper 003's experiments: its tables and sections, made of the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers import moment_matching_pictures as pictures
from papers import moment_matching_printed as printed
from papers.moment_matching_claims import CLOSE, behind, claims, listed, losses, overfitting_words
from papers.moment_matching_data import MISSING
from papers.moment_matching_learners import (
    ALPHAS,
    BATCH_EM,
    BMM,
    FIGURE_LEARNERS,
    ROWS,
    SHORT,
    TABLE_LEARNERS,
    WIDE,
    Learner,
)
from papers.moment_matching_results import Results, average, gap
from papers.wilcoxon import SIGNIFICANT, arrow

NAME = "moment_matching"
FEW_VALUES = 30
# The paper's tables 1 to 3
PAPER = ("paper: oEM", "paper: oBMM", "paper: oDMM")
PAPER_1 = {
    "ABALONE": (-2.65, -1.82), "BANKNOTE": (-9.74, -9.65), "AIRFOIL": (-15.86, -16.53), "ARABIC": (-15.83, -14.99),
    "TRANSFUSION": (-13.26, -13.09), "CCPP": (-16.53, -16.51), "COMP. ACTIVITY": (-132.04, -118.82),
    "KINEMATICS": (-10.37, -10.32), "NORTHRIDGE": (-18.31, -17.97), "PLASTIC": (-9.4694, -9.01),
}  # fmt: skip
PAPER_2 = {
    "HETEROGENEITY": (-176.2, -174.3, -180.7), "MAGIC 04": (-33.4, -32.1, -35.4), "YEAR MSD": (-513.7, -506.5, -513.8),
    "MINIBOONE": (-58.1, -54.7, -60.3),
}  # fmt: skip
PAPER_3 = {
    "HETEROGENEITY": (77.3, 81.7, 17.5), "MAGIC 04": (7.3, 6.8, 1.4), "YEAR MSD": (336.5, 108.2, 21.2),
    "MINIBOONE": (48.6, 12.1, 2.3),
}  # fmt: skip


# Tables


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def header(*names: str) -> list[str]:
    return [row(*names), "|---" * len(names) + "|"]


def score_cell(one: dict[str, Any], learner: Learner) -> str:
    """Mean score, arrow against oBMM, number of components; bold if no other learner of streams is better."""
    found = one["learners"][learner.name]
    mean = f"{average(one, learner.name):.3f}"
    streams = [other.name for other in TABLE_LEARNERS if other is not BATCH_EM]
    if learner is not BATCH_EM and mean == f"{max(average(one, name) for name in streams):.3f}":
        mean = f"**{mean}**"
    sign = arrow(found["scores"], one["learners"][BMM.name]["scores"])
    alpha = f", {found['alpha']:g}" if learner is ROWS else ""
    return f"{mean}{' ' * bool(sign)}{sign} ({found['components']}{alpha})"


def set_name(one: dict[str, Any]) -> str:
    star = "\\*" if one["values"] <= FEW_VALUES else ""
    return f"{one['title']}{star}, {one['rows']:,} x {one['columns']}"


def score_table(sets: Sequence[dict[str, Any]], paper: Mapping[str, tuple[float, ...]]) -> list[str]:
    names = [learner.name for learner in TABLE_LEARNERS]
    width = max(map(len, paper.values()))
    truth = any(one["truth"] for one in sets)
    lines = header("data set", "splits", *names, *(("truth",) if truth else ()), *PAPER[:width])
    for one in sets:
        printed_there = paper.get(one["paper"]) if not one["generated"] else None
        cells = [f"{number:g}" for number in printed_there] if printed_there else ["-"] * width
        if truth:
            cells.insert(0, f"{np.mean(one['truth']):.3f}" if one["truth"] else "-")
        scores = [score_cell(one, learner) for learner in TABLE_LEARNERS]
        lines.append(row(set_name(one), str(len(one["learners"][BMM.name]["scores"])), *scores, *cells))
    return lines


def time_table(sets: Sequence[dict[str, Any]]) -> list[str]:
    names = [learner.name for learner in TABLE_LEARNERS]
    lines = header("data set", *names, f"oDMM, {sets[0]['threads']} threads", *PAPER)
    for one in sets:
        times = [average(one, name, "seconds") for name in names]
        cells = [f"{seconds:.2f}" for seconds in (*times, one["threaded_seconds"])]
        paper = [f"{seconds:g}" for seconds in PAPER_3.get(one["paper"], ())] or ["-"] * len(PAPER)
        lines.append(row(set_name(one), *cells, *paper))
    return lines


# Sections


def figure1_section(results: Results) -> list[str]:
    sets = results.sets("figure1")
    if not sets:
        return []
    names = [learner.name for learner in FIGURE_LEARNERS]
    below = behind(sets)
    inside = sum(value <= CLOSE for value in below)
    lines = [
        f"![What is missing to the truth as rows arrive]({NAME}.png)",
        "",
        f"Shortfall of the held-out score to the truth's, in nats per row, as rows arrive; both axes are logarithmic, and what "
        f"is below {pictures.FLOOR:g} (or above the truth) is drawn there. Grey: the warm-up.",
        "",
        f"{len(sets)} mixtures, standard deviations of 0.5 to 1.5 along turned axes, {sets[0]['rows'][-1]:,} rows to learn "
        "from; the number of components is given. Gaps at the end, score minus the truth's; the limit is what maximum "
        "likelihood loses on average, parameters / (2 rows):",
        "",
        *header("components", "columns", "closest means", *names, "limit", "oBMM - oDMM"),
    ]
    for one, difference in zip(sets, below, strict=True):
        gaps = [f"{gap(one, name):.4f}" for name in names]
        limit = one["parameters"] / (2.0 * one["rows"][-1])
        first = (f"{one['components']}", f"{one['columns']}", f"{one['apart']:g}")
        lines.append(row(*first, *gaps, f"{-limit:.4f}", f"{difference:.4f}"))
    means = [f"{np.mean([gap(one, name) for one in sets]):.4f}" for name in names]
    lines.append(row("mean", "", "", *means, "", f"{np.mean(below):.4f}"))
    times = [f"{np.mean([average(one, name, 'seconds') for one in sets]):.2f}" for name in names]
    lines.append(row("seconds, mean", "", "", *times, "", ""))
    word = "This holds" if inside == len(sets) else "This does not hold on every set"
    lines += [
        "",
        f"oDMM is wanted within {CLOSE:g} nats per row of oBMM on every set. {word}: it is on {inside} of {len(sets)}, and at "
        f"most {max(below):.4f} below. Row by row, online EM has steps (n + 3)^-0.6 here.",
    ]
    return lines


def tables_section(results: Results) -> list[str]:
    small, short, large = (results.tables(kind) for kind in ("small", "short", "large"))
    if not small + short + large:
        return []
    lines = [
        "Mean log-density of the held-out rows, in nats, over random splits (9/10 to learn from, 1/10 to judge by; the "
        "paper does not give its own). In brackets the number of components, 2 to 10, chosen for each learner on a fifth of "
        "the first split's rows to learn from, and for online EM row by row alpha, of "
        f"{', '.join(f'{alpha:g}' for alpha in ALPHAS)} (the largest where it makes no difference, as when all rows are in "
        "the warm-up); the paper chose on its test rows. Arrows: significantly better (↑) or "
        f"worse (↓) than oBMM by Wilcoxon's signed-rank test over the splits, p < {SIGNIFICANT:g}; fewer than 6 splits can "
        "never be significant. Bold: the best of those that stream.",
        "",
        "**Rows are z-scores** by the mean and standard deviation of the rows to learn from. The paper does not say how it "
        "scaled its rows, so its likelihoods are printed for their order only: the levels cannot be compared.",
        "",
        f"\\* A column has at most {FEW_VALUES} different values. A component that settles on one of them has no upper limit "
        "to its density, so that these scores say how far each learner goes there more than how well it learns.",
        "",
        "The library's online EM reads the mode under its default, weak prior; batch EM is maximum likelihood, with 1e-6 "
        "on the diagonal.",
        "",
    ]
    notes = dict.fromkeys(f"- {one['title']}: {one['note']}." for one in (*small, *large) if one["note"])
    lines += [*notes, f"- {MISSING}"]
    lines += [f"- Not in the directory of data sets, so left out: {listed(results.absent)}."] if results.absent else []
    if small:
        shares = [one["warm_up"] for one in small]
        whole = sum(share >= 1.0 for share in shares)
        lines += [
            "", "### Table 1, the library's warm-up", "",
            *score_table(small, PAPER_1), "",
            f"The warm-up takes all rows of {whole} of these {len(small)} sets, and {100 * np.median(shares):.0f} % of them in "
            "the median: what is compared here is mostly one and the same start.",
        ]  # fmt: skip
    if short:
        lines += [
            "", f"### Table 1, warm-up of {SHORT} rows", "",
            f"The same with `warm_up={SHORT}`, so that the learners have to show what they make of a stream.", "",
            *score_table(short, PAPER_1),
        ]  # fmt: skip
    if large:
        lines += [
            "", "### Table 2", "",
            "The sets of the paper's sizes are generated mixtures (their numbers of components are given to the learners), "
            "since the sets themselves could not be had. On large sets, settings are chosen on at most 20,000 rows, fewer in "
            f"many columns, and in more than {WIDE} columns of every second number of components only.", "",
            *score_table(large, PAPER_2), "",
            "### Table 3", "",
            "Seconds to learn, mean over the splits, warm-up included, in one thread; oDMM also in as many threads as it has "
            "parts or the machine has cores, first split only. The paper's are on its machines, oDMM's on five of them; those "
            "beside a generated set are for a set of the same size.", "",
            *time_table(large),
        ]  # fmt: skip
    return lines


def overfitting_section(results: Results) -> list[str]:
    sets = results.sets("overfitting")
    if not sets:
        return []
    found = losses(results)
    lines = [
        f"![Held-out score by number of components]({NAME}_overfitting.png)",
        "",
        "Section 4.1 says that M can be taken too large without overfitting, since the learning is Bayesian. Up to "
        f"{sets[0]['components'][-1]} components on at most {max(one['learn'] for one in sets):,} rows, "
        f"splits: {len(next(iter(sets[0]['lines'].values()))[0])}; alpha is 0.8 row by row. The picture has the mean score of "
        "the rows held out. The library's own warm-up is longer than these streams, so that its lines show the start and "
        f"little else; with a warm-up of {SHORT} rows the rest is streamed. What the most components lose "
        "from the best number, and the best number:",
        "",
        *header("learner", *[f"{one['title']}, {one['learn']:,} x {one['columns']}" for one in sets]),
    ]
    for name, by_set in found.items():
        best = [one["components"][int(np.argmax(np.mean(one["lines"][name], axis=1)))] for one in sets]
        lines.append(row(name, *[f"{by_set[one['title']]:.3f} ({number})" for one, number in zip(sets, best, strict=True)]))
    return [*lines, "", overfitting_words(results).removeprefix("- ")]


def page(results: Results) -> str:
    update = results.figures.get("printed")
    sections = {
        "Figure 1: as rows arrive": figure1_section(results),
        "Tables 1 to 3": tables_section(results),
        "Too many components": overfitting_section(results),
        "The printed update": printed.section(update) if update else [],
    }
    lines = [
        "# Bayesian moment matching: streams of a Gaussian mixture",
        "",
        f"<!-- Written by python -m papers.{NAME}: change the command, not this page. -->",
        "",
        "Paper 003 learns Gaussian mixtures in one pass: the posterior after each row, a mixture, is replaced by one product "
        "of a Dirichlet and Normal-Wisharts with the same moments (oBMM); parts that learned apart are multiplied (oDMM). Here "
        f"are its experiments again, by `python -m papers.{NAME}`, which also wrote this page; all numbers but the "
        "paper's own are that run's.",
        "",
        *(["**A quick run, to try the command: its figures mean nothing.**", ""] if results.scale == "quick" else []),
        *([f"**Not complete yet**: {listed(results.pending)}.", ""] if results.pending else []),
        "## What holds",
        "",
        *claims(results),
        "",
        "A claim about accuracy holds where oBMM is significantly better on at least three quarters of the sets, more often "
        "than not where it is better on more than it is worse on; sets with too few splits for the test are not counted.",
        "",
        "## The learners and where they start",
        "",
        *[f"- {learner.name}: {learner.meaning}." for learner in (*FIGURE_LEARNERS, BATCH_EM)],
        "",
        "The paper does not say how its components are started, and a start decides much. All learners of streams share the "
        "library's warm-up here: the first rows (ten for each parameter, at least 2000, at most 8 MB) are kept, seeds are "
        "fitted to some of them and judged on others, the best goes on with all, and these rows are then counted once "
        "([architecture](../architecture.md)). The n of online EM's steps counts them, too. Where it says "
        f"warm-up of {SHORT} rows, that many are kept instead.",
    ]
    for title, section in sections.items():
        lines += ["", f"## {title}", "", *(section or ["Not measured."])]
    return "\n".join(lines) + "\n"


def render(results: Results, out: Path) -> None:
    """Write the page and the pictures of the figures there are."""
    (out / f"{NAME}.md").write_text(page(results), encoding="utf-8")
    if sets := results.sets("figure1"):
        pictures.draw_figure1(out / f"{NAME}.png", sets)
    if sets := results.sets("overfitting"):
        pictures.draw_overfitting(out / f"{NAME}_overfitting.png", sets)
