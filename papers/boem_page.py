"""The page about paper 000's experiments: its tables and sections, made of the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from papers import boem_pictures as pictures
from papers.boem_claims import FOUND, beta_range, by_kind, claims, exactly, found, likelihoods, percent, spread_name
from papers.boem_learners import BATCH, MAP_EM, MEANINGS, OWN
from papers.boem_results import BAND, FULL, NAME, SHRINK_BETA, Figures, Results, Scale
from papers.moment_matching_claims import SIGNIFICANT, listed
from papers.moment_matching_page import header, row


def spread(values: Sequence[float]) -> str:
    """Mean, lowest and highest."""
    return f"{np.mean(values):.1f} ({np.min(values):.1f} to {np.max(values):.1f})"


def counted(values: Sequence[int]) -> str:
    """How many starts have left each number of clusters."""
    numbers, times = np.unique(values, return_counts=True)
    return ", ".join(f"{number} ({often})" for number, often in zip(numbers, times, strict=True))


# Section 6.1.1


def likelihood_table(one: Figures) -> list[str]:
    lines = header(
        "learner",
        "log-likelihood, mean (lowest to highest)",
        "median",
        f"within {FOUND:g} nat",
        "clusters left (starts)",
        "CPU s",
    )
    for name, line in one["lines"].items():
        label = name
        if name == BATCH:
            label = f"{BATCH}, {one['passes']} passes"
            lines.append(row(f"{BATCH}, 1 pass", spread(line["first"]), f"{np.median(line['first']):.1f}", "", "", ""))
        cells = (f"{np.median(line['final']):.1f}", percent(found(line)), counted(line["survivors"]))
        lines.append(row(label, spread(line["final"]), *cells, f"{np.median(line['seconds']):.2f}"))
    return lines


def likelihood_section(results: Results) -> list[str]:
    sets = likelihoods(results)
    if not sets:
        return []
    first = sets[0]
    lines = [
        f"![Log-likelihood along the stream, and beside batch EM]({NAME}_likelihood.png)",
        "",
        f"Lines: the median over the starts. Bands: from {BAND[0]} to {BAND[-1]} % of them. Dotted: the generating mixture, "
        "at 0.",
        "",
        f"{first['documents']:,} documents in {first['columns']:,} columns, of {first['clusters']} clusters with weights "
        f"{listed([f'{weight:.3f}' for weight in first['weights']])}. Every learner has the same {first['starts']} starts: "
        "probabilities that are U(0, 1) and normalised, and equal weights. The lengths are normal with a mean of "
        f'{first["length"]:,} and, in the paper, a "variance of 2500", and documents of fewer than {first["fewest"]} words are '
        f"drawn again. With a standard deviation of {first['spread']:g} there would be none, so that 2500 may have been the "
        "standard deviation: both are made. Log-likelihoods are in nats per document, minus the generating mixture's; along "
        f"the way they are of {first['judged']:,} documents, in the tables of all. Clusters are left if they have a weight of "
        f"more than {first['survives']:g}.",
    ]
    for one in sets:
        lines += [
            "",
            f"### Lengths of {spread_name(one)}: {one['shortest']:,.0f} to {one['longest']:,.0f} words",
            "",
            *likelihood_table(one),
            "",
            f"The start before any document: {one['start']:.0f}. The generating mixture: {one['truth']:,.1f}. {OWN} was run "
            f"{one['runs']} times, with other random numbers.",
        ]
    lines += [
        "",
        f"A document of the mean length speaks for its own cluster by {first['margin']:.0f} nats at least, so that every "
        "document goes to one cluster as a whole. A start that weighs much, as with beta = 1 or under SOEM's small steps, "
        "takes in documents of several clusters before it has moved, and few clusters get everything. One that weighs next "
        "to nothing turns into the first document that it gets, which leaves the other clusters free for others.",
    ]
    return lines


def beta_section(results: Results) -> list[str]:
    columns: dict[str, Figures] = {}
    if one := results.one("likelihood", "beta"):
        columns[f"generated documents, {one['starts']} U(0, 1) starts, from the generating mixture"] = one
    if one := results.one("gutenberg", "beta"):
        columns[f"the corpus, {one['starts']} starts made of documents, from one cluster for all"] = one
    if not columns:
        return []
    lines = [
        "Where BOEM's means end, by beta: log-likelihood in nats per document, mean over the starts (lowest to highest).",
        "",
        *header("beta", *columns),
    ]
    for index, beta in enumerate(next(iter(columns.values()))["betas"]):
        lines.append(row(f"{beta:g}", *[spread(one["final"][index]) for one in columns.values()]))
    return [*lines, "", f"Best by the mean: {listed([f'{beta_range(one)[1]:g}' for one in columns.values()])}."]


# Section 6.1.2


def shrinkage_section(results: Results) -> list[str]:
    sets = [*results.figures.get("shrinkage", {}).values()]
    if not sets:
        return []
    first = sets[0]
    number = len(first["truth"])
    lines = [
        f"![Weights of typical runs, and log-posteriors]({NAME}_shrinkage.png)",
        "",
        f"Left: the weights along the run that ends at the median of BOEM's means, beta = {SHRINK_BETA:g}; dotted, the true "
        "ones. Right: log-posteriors in nats per document, minus that of the generating mixture with "
        f"{first['clusters'] - number} empty clusters at the prior's mode; bands, and the documents scored along the way, as "
        "above.",
        "",
        f"{first['documents']:,} documents of {number} clusters with weights "
        f"{listed([f'{weight:g}' for weight in first['truth']])}, lengths of standard deviation {first['spread']:g}, "
        f"{first['clusters']} clusters to learn, alpha = 1. The paper's starts are U(0, 1); when documents are the starts, "
        f"half of each cluster is a random document, half the mean of the first {first['mean_rows']}. In BOEM's means the "
        "start weighs beta words a column; in its modes, and in batch MAP EM, the prior adds beta - 1. A cluster is left if "
        f"it has a weight of more than {first['survives']:g}.",
        "",
        *header(
            "starts", "beta", "learner", "clusters left (starts)", f"exactly {number}", f"log-likelihood within {FOUND:g} nat",
            "log-posterior, mean (lowest to highest)",
        ),
    ]  # fmt: skip
    for one in sets:
        kind = f"{one['starts']}, {'U(0, 1)' if one['kind'] == 'uniform' else 'documents'}"
        for name, line in one["lines"].items():
            label = f"{MAP_EM}, {one['passes']} passes" if name == MAP_EM else name
            shares = (percent(exactly(line, number)), percent(found(line, "likelihood")))
            lines.append(row(kind, f"{one['beta']:g}", label, counted(line["survivors"]), *shares, spread(line["final"])))
    return [
        *lines,
        "",
        "A cluster that gets nothing stays where it started in BOEM's means, which costs log-posterior, and goes to the "
        "prior's mode in batch MAP EM. More clusters than there are, sharing one, cost next to nothing.",
    ]


# Section 6.2


def gutenberg_section(results: Results) -> list[str]:
    sets = by_kind(results, "gutenberg")
    if not sets:
        return []
    first = next(iter(sets.values()))
    lines = [
        f"![Log-posterior on the Gutenberg corpus, against time and against documents]({NAME}_gutenberg.png)",
        "",
        f"{first['documents']:,} documents of {first['columns']:,} terms, median length {first['length']:.0f}: blocks of "
        "books from Project Gutenberg, in random order. The paper had as many documents and terms, but its own, which are "
        f"not published. It does not say how many clusters it learned, nor with which prior: here {first['clusters']} "
        f"clusters, alpha = 1 and beta = {first['beta']:g}, which it calls Laplace smoothing. Log-posteriors are in nats per "
        f"document, minus that of all documents in one cluster and the others at the prior's mode ({first['alone']:,.1f}). "
        "CPU time is of one thread, without evaluation.",
        "",
        *header(
            "starts", "learner", "log-posterior, mean (lowest to highest)", "median after one pass", "clusters left (starts)",
            "CPU s a pass", "CPU s",
        ),
    ]  # fmt: skip
    for kind, one in sets.items():
        for name, line in one["lines"].items():
            passes = len(line["seconds"]) if name == MAP_EM else 1
            label = f"{MAP_EM}, {passes} passes" if name == MAP_EM else name
            after = line["median"][0] if name == MAP_EM else np.median(line["final"])
            cells = (spread(line["final"]), f"{after:.1f}", counted(line["survivors"]))
            spent = line["seconds"][-1]
            lines.append(row(f"{one['starts']}, {kind}", label, *cells, f"{spent / passes:.3f}", f"{spent:.2f}"))
    if own := results.one("gutenberg", "own"):
        line = own["lines"][OWN]
        cells = (spread(line["final"]), f"{np.median(line['final']):.1f}", counted(line["survivors"]))
        spent = float(np.median(line["whole"]))
        lines += [
            row(f"{own['starts']}, the library's", OWN, *cells, f"{spent:.3f}", f"{spent:.2f}"),
            "",
            f'{OWN} is `MultinomialMixture({own["clusters"]}, algorithm=hw.BayesianOnlineEM("mode"), '
            f"probability_concentration_prior={own['beta']:g})` here; its seconds include the seeking of the start.",
        ]
    return lines


# The recursions


def printed_section(results: Results) -> list[str]:
    sets = [*results.figures.get("printed", {}).values()]
    if not sets:
        return []
    names = [*dict.fromkeys(name for one in sets for name in one["differences"])]
    largest = max(value for one in sets for value in one["differences"].values())
    lines = [
        "The library adds counts; the paper prints recursions. `papers/boem_printed.py` has the recursions, row by row: (9) "
        "to (12) for BOEM (where (12) divides 0 by 0, the cluster stays as it is), (6) for SOEM, and the sums (4) and (5). "
        f"The largest difference between them in any weight or probability at the end is {largest:.1g}:",
        "",
        *header("recursion", *[f"{one['name']}, {one['documents']} x {one['columns']:,}" for one in sets]),
    ]
    for name in names:
        cells = [one["differences"].get(name) for one in sets]
        lines.append(row(name, *["-" if cell is None else f"{cell:.1g}" for cell in cells]))
    told = [f"{percent(value)} ({name}, {one['name']})" for one in sets for name, value in one["undefined"].items()]
    return [
        *lines,
        "",
        f"Divisions of 0 by 0 in (12): {listed(told)}. Equations 4 and 5 are compared over {sets[0]['few']} documents only: "
        "since eta_1 = 1, the first leaves all clusters the same but for their weights, and rounding is all that sets them "
        "apart later.",
        "",
        "Corrected on the way: the normaliser of SOEM's phi, printed as a sum of phi itself, is the sum of the statistics. A "
        "random start is not the mean of the symmetric prior that the recursions begin with; it is taken as the mean of a "
        "prior with the same beta_0. Modes have alpha_0 - n_c and beta_0 - n_a in the learning rates in place of alpha_0 and "
        "beta_0.",
    ]


# All of it


def page(results: Results) -> str:
    sections = {
        "Figure 1: log-likelihood": likelihood_section(results),
        "What beta decides": beta_section(results),
        "Figure 2: shrinkage": shrinkage_section(results),
        "Figure 3: the Gutenberg corpus": gutenberg_section(results),
        "The recursions as printed": printed_section(results),
    }
    reduced = Scale(**results.scale) != FULL  # type: ignore[arg-type]
    lines = [
        "# Bayesian online EM: clusters of documents in one pass",
        "",
        f"<!-- Written by python -m papers.{NAME}: change the command, not this page. -->",
        "",
        "Paper 000 learns mixtures of multinomials in one pass. Every document adds its shares to the Dirichlet posteriors "
        "of weights and clusters, whose means are the next parameters, so that the learning rates follow from the prior "
        f"(BOEM). Here are its experiments again, by `python -m papers.{NAME}`, which also wrote this page; all numbers are "
        "that run's. The paper gives none of its own, only pictures.",
        "",
        *(["**A reduced run, to try the command: its figures mean little.**", ""] if reduced else []),
        *([f"**Not complete yet**: {listed(results.pending)}.", ""] if results.pending else []),
        *([f"**Not in the directory of data sets, so left out**: {listed(results.absent)}.", ""] if results.absent else []),
        "## What holds",
        "",
        *claims(results),
        "",
        f"Better and worse are by Wilcoxon's signed-rank test over the starts, p < {SIGNIFICANT:g}.",
        "",
        "## The learners",
        "",
        *[f"- {name}: {meaning}." for name, meaning in MEANINGS.items()],
        "",
        "The paper does not tie kappa and t0 to a formula: hence three readings of SOEM.",
    ]
    for title, section in sections.items():
        lines += ["", f"## {title}", "", *(section or ["Not measured."])]
    return "\n".join(lines) + "\n"


def render(results: Results, out: Path) -> None:
    """Write the page and the pictures of the figures there are."""
    (out / f"{NAME}.md").write_text(page(results), encoding="utf-8")
    if sets := likelihoods(results):
        pictures.draw_likelihood(out / f"{NAME}_likelihood.png", sets)
    if shrunk := by_kind(results, "shrinkage", f"/{SHRINK_BETA:g}"):
        pictures.draw_shrinkage(out / f"{NAME}_shrinkage.png", shrunk)
    if corpus := by_kind(results, "gutenberg"):
        pictures.draw_gutenberg(out / f"{NAME}_gutenberg.png", corpus, results.one("gutenberg", "own"))
