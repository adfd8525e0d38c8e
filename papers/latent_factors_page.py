"""The page about paper 001's experiments: its tables and sections, made of the figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pages.words import listed, row
from papers import latent_factors_audio as audio
from papers import latent_factors_corpus as corpus
from papers import latent_factors_pictures as pictures
from papers import latent_factors_swimmer as swimmer
from papers.latent_factors_claims import by_corpus, claims, header, in_order, limbs, span
from papers.latent_factors_results import FULL, NAME, Figures, Results, Scale


def image(words: str, name: str) -> list[str]:
    return [f"![{words}]({NAME}_{name}.png)", ""]


# Section 4.4


def limb_sets(results: Results) -> list[Figures]:
    return [one for k in (16, 20) for line in swimmer.LINES if (one := limbs(results, line, k))]


def growth_of(results: Results) -> Figures | None:
    one = limbs(results, swimmer.METROPOLIS, 16)
    return one["growth"] if one else None


def component_sets(results: Results) -> list[Figures]:
    return [one for line, k in swimmer.SHOWN if (one := limbs(results, line, k))]


def swimmer_section(results: Results) -> list[str]:
    samples, growth, sets = results.one("swimmer", "samples"), growth_of(results), limb_sets(results)
    lines: list[str] = []
    if samples:
        same = {True: ", pixel for pixel the published ones", False: ", which differ from the published ones", None: ""}
        lines += [
            *image("Noisy swimmers", "samples"),
            "Figure 2: images to learn from. Each is a Poisson draw about one of the 256 "
            f"swimmers{same[samples['published']]}, with noise of intensity {samples['noise']:g} in each of the "
            f"{samples['pixels']:,} pixels: {samples['shortest']:.0f} to {samples['longest']:.0f} counts, "
            f"{samples['mean']:.0f} on average.",
            "",
        ]
    if sets:
        lines += [
            *image("Components as images", "components"),
            f"Figure 3: components of the first seed after {sets[0]['images']:,} images, in the order of the limbs that they "
            "were matched with (the assignment with the largest sum of correlations). Above each its correlation; from "
            f"{swimmer.FOUND:g} on a limb is recovered. In the paper all 16 are.",
            "",
        ]
    if growth:
        counts = listed([f"{found} after {stage:,}" for found, stage in zip(growth["found"], growth["times"], strict=True)])
        lines += [
            *image("A component over time", "growth"),
            f"Figure 4: a component of {swimmer.METROPOLIS.name} along the stream, with its correlation. Limbs recovered: "
            f"{counts}.",
            "",
        ]
    if sets:
        lines += [
            *header("learner", "K", "limbs recovered, of 16", "mean correlation", "accepted", "CPU s", "seeds"),
            *[limb_row(one) for one in sets],
            "",
            "Limbs and seconds: mean (lowest to highest) over the seeds, each with images of its own. Components without a "
            "limb hold noise and torso; a limb that is missing shares a component with another.",
            "",
            *[f"- {line.name}: {line.meaning}." for line in swimmer.LINES],
            "",
            f"Where nothing else is said, alpha = {swimmer.ALPHA:g} and beta = {swimmer.BETA:g}.{prior_words(results)}",
        ]
    return lines


def prior_words(results: Results) -> str:
    """What the default prior costs here, if it does."""
    own, room = limbs(results, swimmer.OWN, 16), limbs(results, swimmer.ROOM, 16)
    if not own or not room or np.mean(own["found"]) >= np.mean(room["found"]):
        return ""
    return (
        " The default alpha, 1/K, says that an image has few components. These have at least four limbs each, and it has to "
        "be told."
    )


def limb_row(one: Figures) -> str:
    accepted = span(one["acceptance"], ".2f") if one["acceptance"] else "-"
    return row(
        one["line"], str(one["components"]), span(one["found"]), f"{np.mean(one['correlation']):.2f}", accepted,
        span(one["seconds"]), str(one["seeds"]),
    )  # fmt: skip


# Section 4.2


def ratio_section(results: Results) -> list[str]:
    sets = in_order(results, "ratio")
    if not sets:
        return []
    first = sets[0]
    lines = [
        f"A document of {first['tokens']:.0f} tokens of {first['words']} words, and {first['topics']} topics that are known: "
        f"what is expected of the topics' tokens is known exactly. The largest error of {first['chains']} chains of "
        f"{first['draws']:,} draws, kappa = {first['kappa']:g}, the first quarter thrown away; in brackets the share "
        "accepted:",
        "",
        *header("sampler", *[f"alpha = {one['alpha']:g}" for one in sets]),
    ]
    for name in first["errors"]:
        cells = []
        for one in sets:
            share = one["acceptance"][name]
            cells.append(f"{one['errors'][name]:.2f}" + ("" if share is None else f" ({share:.2f})"))
        lines.append(row(name, *cells))
    return [
        *lines,
        "",
        "As printed, both products in the ratio of the proposal densities are of H to the power kappa H, and cancel; one is "
        "of H to the power kappa H*, the other of H* to the power kappa H. And the probability of acceptance has no p(H), "
        f"which is right for alpha = 1 alone. `papers/{NAME}_printed.py` has the three versions. Where alpha is small the "
        "right one is slow: most of the mass is at the edges of the simplex, where its proposals hardly go. Gibbs has no "
        "such trouble.",
    ]


# Proposition 1


def variance_section(results: Results) -> list[str]:
    sets = in_order(results, "variance")
    if not sets:
        return []
    first = sets[0]
    lines = [
        *image("Variances by the number of draws", "variance"),
        f"Left: the weight ({first['weight']:g}) of one of two known normal distributions, {first['apart']:g} standard "
        f"deviations apart, of which {100 * first['missing']:.0f} % of the information is missing; {first['copies']:,} "
        f"copies of {first['steps']:,} rows, steps (n + {first['offset']:,})^-{first['decay']:g}. Right: all "
        f"{first['parameters']} parameters of a mixture of two multinomials ({first['words']} words a row), by "
        "`MultinomialMixture` with `SimulatedEM(rao_blackwell=False, n_samples=m)`; the sum of the variances over "
        f"{first['library_copies']} copies of {first['library_rows']:,} rows in batches of {first['batch']}, steps (t + "
        f"{first['batch_offset']})^-{first['decay']:g}. Both start at the truth. Variances are over gamma_n:",
        "",
        *header(
            "m", "weight, formula 4", "after these steps", "measured", "mixture, formula 4", "after these steps", "measured"
        ),
    ]
    for one in sets:
        cells = [one[key] for key in ("formula", "finite", "measured", "mixture_formula", "mixture_finite", "mixture_measured")]
        lines.append(row(str(one["draws"] or "exact"), *[f"{cell:.3f}" for cell in cells]))
    return [
        *lines,
        "",
        "Formula 4 is a limit. After these steps: the same recursion, made linear, from the truth; steps were larger "
        "before, and where much is missing their noise is forgotten slowly.",
    ]


# Topics


def topics_section(results: Results) -> list[str]:
    corpora = by_corpus(results)
    if not corpora:
        return []
    lines = image("Perplexity against seconds", "topics")
    for name, title in corpus.CORPORA.items():
        if title not in corpora:
            continue
        sets, alone = corpora[title], results.one("topics", f"{name}/one topic")
        first = next(iter(sets.values()))
        lines += [
            f"### {title}",
            "",
            f"{first['documents']:,} documents to learn from ({first['tokens']:,.0f} tokens, {first['words']:,} words), "
            f"{first['held_out']:,} held out, {first['topics']} topics, the order shuffled once."
            + (f" One topic for all: {alone['perplexity']:,.0f}." if alone else ""),
            "",
            *header("learner", "passes", "CPU s", "perplexity", "at first (passes)", "CPU s", "sum of the prior"),
        ]
        for line, one in sets.items():
            cells = (f"{one['stages'][-1]}", f"{one['seconds'][-1]:.1f}", f"{one['perplexities'][-1]:,.0f}")
            begun = f"{one['perplexities'][0]:,.0f} ({one['stages'][0]})"
            lines.append(row(line, *cells, begun, f"{one['seconds'][0]:.1f}", f"{one['prior_sum']:.2f}"))
        if top := sets.get(corpus.LEARNED.name, {}).get("top"):
            lines += [
                "",
                f"Topics of {corpus.LEARNED.name} that documents hold most of:",
                "",
                *[f"- {', '.join(words)}" for words in top],
            ]  # fmt: skip
        lines.append("")
    return [
        *lines,
        "`hw.completion_perplexity`: the words of each held-out document are dealt to two halves; the proportions are found "
        "from one, at the topics and the prior of each learner, and the other is foretold. Seconds are of training alone, "
        "one thread. Passes of tomotopy are sweeps.",
        "",
        *[f"- {line.name}: {line.meaning}." for line in corpus.LINES],
    ]


# Cost


def cost_section(results: Results) -> list[str]:
    sets = in_order(results, "cost")
    if not sets:
        return []
    first, last = sets[0], sets[-1]
    return [
        *image("Nanoseconds a draw", "cost"),
        f"The topic of a token given those of the others, in nanoseconds of CPU: {first['documents']} documents of "
        f"{first['length']} words, drawn from as many topics over {first['vocabulary']:,} words, whose prior sums to "
        f"{first['total_prior']:g}. Of the library once the kernel alone, and once the whole E-step, which reads the topics "
        "out of the statistics and folds the draws; beside a sampler that looks at every topic, compiled in the same way.",
        "",
        *header("topics", "kernel", "E-step", "every topic looked at"),
        *[row(f"{one['topics']:,}", f"{one['kernel']:.0f}", f"{one['step']:.0f}", f"{one['dense']:,.0f}") for one in sets],
        "",
        f"From {first['topics']} to {last['topics']:,} topics, {last['topics'] / first['topics']:.0f} times as many, a draw "
        f"of the kernel takes {last['kernel'] / first['kernel']:.1f} times as long, one that looks at every topic "
        f"{last['dense'] / first['dense']:.0f} times. What grows is the preparing of the words, shared by all documents of a "
        "batch, and the memory that topics are read from.",
    ]


# Music


def audio_section(results: Results) -> list[str]:
    sets = {one["line"]: one for one in in_order(results, "audio")}
    if not sets:
        return []
    lines: list[str] = []
    if one := sets.get(audio.FIT):
        lines += [
            *image("Spectra, and power over time", "audio"),
            f"The first {one['seconds_long']:.0f} seconds of {audio.RECORDING} (Kevin MacLeod, CC BY 3.0; vibraphone, piano "
            f"and bass): {one['frames']:,} frames of {one['bins']} bins to learn from, {one['held_out']} held out at random; "
            f"pictures are of all. {one['components']} components by `hw.ItakuraSaitoNMF`, {one['passes']} passes; powers by "
            f"`separate`. {one['floor']:g} of the mean power is added to all.",
            "",
        ]
    lines += [
        *header("learner", "components", "divergence, held out", "learned from", "CPU s"),
        *[
            row(name, str(one["components"]), f"{one['divergence']:.3f}", f"{one['learned']:.3f}", f"{one['seconds']:.2f}")
            for name, one in sets.items()
        ],
        "",
        "Mean Itakura-Saito divergence of a bin at the likeliest weights: the lower, the better, and about 0.58 for spectra "
        "that are true and known.",
    ]
    if one := sets.get(audio.FIT):
        lines += ["", *header("component", "centre, Hz", "share of the power", "frames above a tenth of its loudest")]
        for place, (centre, share, busy) in enumerate(zip(one["centres"], one["shares"], one["busy"], strict=True), 1):
            lines.append(row(str(place), f"{centre:.0f}", f"{100 * share:.1f} %", f"{100 * busy:.0f} %"))
    return lines


CHOSEN = (
    f"alpha = {swimmer.ALPHA:g} and beta = {swimmer.BETA:g} for the swimmers, and the start, which is the library's (of one "
    "image for the learners that go row by row). The paper tells none of these.",
    f"A limb is recovered by a component that correlates with it by more than {swimmer.FOUND:g}, in the assignment with the "
    "largest sum.",
    "The steps n^-0.6: the paper says between n^-0.5 and n^-1.",
    "The denominator of the M-step, printed as a sum of S + beta / n over v with the second term outside, is that sum with "
    "both inside.",
    "Batches of ten for online VB and SCVB0, and the steps that they have by default.",
    "The corpora, 50 topics, and all of the music: the paper has no experiments with text or sound.",
)


def page(results: Results) -> str:
    sections = {
        "Swimmers": swimmer_section(results),
        "The acceptance probability as printed": ratio_section(results),
        "Proposition 1: how many draws": variance_section(results),
        "Topics of text": topics_section(results),
        "What a draw costs": cost_section(results),
        "Spectra of music": audio_section(results),
    }
    reduced = Scale(**results.scale) != FULL  # type: ignore[arg-type]
    lines = [
        "# Simulated online EM: latent factors from a stream",
        "",
        f"<!-- Written by python -m papers.{NAME}: change the command, not this page. -->",
        "",
        "Paper 001 learns models whose E-step cannot be computed: the latent variables of each row are drawn, and the "
        "statistics of the draws are folded as in online EM. Here are its experiment, its proposition and its formulas "
        f"again, and what it names but does not try, topics of text and spectra of sound, by `python -m papers.{NAME}`, "
        "which also wrote this page; all numbers are that run's. What holds of its claims is at the end.",
        *(["", "**A reduced run, to try the command: its figures mean little.**"] if reduced else []),
        *(["", f"**Not complete yet**: {listed(results.pending)}."] if results.pending else []),
        *(["", f"**Not at hand, so left out**: {listed(results.absent)}."] if results.absent else []),
    ]
    for title, section in sections.items():
        lines += ["", f"## {title}", "", *(section or ["Not measured."])]
    lines += ["", "## What holds", "", *(claims(results) or ["Not measured."]), "", "Chosen by us:", ""]
    return "\n".join([*lines, *[f"- {words}" for words in CHOSEN]]) + "\n"


def render(results: Results, out: Path) -> None:
    """Write the page and the pictures of the figures there are."""
    (out / f"{NAME}.md").write_text(page(results), encoding="utf-8")

    def path(name: str) -> Path:
        return out / f"{NAME}_{name}.png"

    if one := results.one("swimmer", "samples"):
        pictures.draw_samples(path("samples"), one)
    if sets := component_sets(results):
        pictures.draw_components(path("components"), sets)
    if one := growth_of(results):
        pictures.draw_growth(path("growth"), one)
    if sets := in_order(results, "variance"):
        pictures.draw_variance(path("variance"), sets)
    if corpora := by_corpus(results):
        pictures.draw_topics(path("topics"), corpora)
    if sets := in_order(results, "cost"):
        pictures.draw_cost(path("cost"), sets)
    if one := results.one("audio", audio.FIT):
        pictures.draw_audio(path("audio"), one)
