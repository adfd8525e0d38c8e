"""What the page about paper 001 says of its figures, and what holds of the paper's claims."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from pages.results import Figures, Results
from pages.words import listed, mean_and_range
from papers import latent_factors_audio as audio
from papers import latent_factors_corpus as corpus
from papers import latent_factors_printed as printed
from papers import latent_factors_swimmer as swimmer

PAPER_ACCEPTANCE, NEAR = 0.4, 0.1
EXACT = 0.2  # tokens of a topic within which a sampler counts as right
MIXES = 0.5  # alpha from which on Metropolis mixes well enough to judge by
AGREES = 0.2  # relative difference of a measured variance from formula 4
SIMILAR = 3.0  # ratio of the seconds of a pass that are called similar
Claim = tuple[str, str, str]


def limbs(results: Results, line: swimmer.Line, components: int) -> Figures | None:
    name = f"{line.name}/{components}"
    return results.one("limbs", name) or results.one("swimmer", name)


def line_of(results: Results, name: str, line: corpus.Line) -> Figures | None:
    return results.one("beliefs" if line is corpus.BELIEFS else "topics", f"{name}/{line.name}")


def by_corpus(results: Results) -> dict[str, dict[str, Figures]]:
    """Figures by the title of a corpus and the name of a learner."""
    found: dict[str, dict[str, Figures]] = {}
    for name, title in corpus.CORPORA.items():
        lines = {line.name: one for line in corpus.LINES if (one := line_of(results, name, line))}
        if lines:
            found[title] = lines
    return found


# Swimmers


def swimmers(results: Results) -> dict[str, Any]:
    samples = results.figures["swimmer"]["samples"]
    sets = [one for k in swimmer.NUMBERS for line in swimmer.LINES if (one := limbs(results, line, k))]
    growth = results.figures["swimmer"][f"{swimmer.METROPOLIS.name}/16"]["growth"]
    own, room, learned = trio = [limbs(results, line, 16) for line in (swimmer.OWN, swimmer.ROOM, swimmer.LEARNED)]
    same = {True: ", pixel for pixel the published ones", False: ", which differ from the published ones", None: ""}
    return {
        "samples": samples, "published": same[samples["published"]], "sets": sets,
        "growth": listed([f"{found} after {at:,}" for found, at in zip(growth["found"], growth["times"], strict=True)]),
        "prior_costs": all(trio) and np.mean(own["found"]) < np.mean(room["found"]), "learned": learned,
        "helps": all(trio) and np.mean(own["found"]) < np.mean(learned["found"]),
    }  # fmt: skip


def recovery(results: Results) -> list[Claim]:
    one = limbs(results, swimmer.METROPOLIS, 16)
    if not one:
        return []
    made = []
    words = [f"{mean_and_range(one['found'])} of 16 over {one['seeds']} seeds"]
    more = limbs(results, swimmer.METROPOLIS, 20)
    if more:
        words.append(f"with 20 components {mean_and_range(more['found'])}")
    other, extra = limbs(results, swimmer.GIBBS, 16), limbs(results, swimmer.GIBBS, 20)
    if other and extra:
        words.append(f"by Gibbs {mean_and_range(other['found'])} and {mean_and_range(extra['found'])}")
    best = min(one["found"])
    verdict = "holds" if best == 16 else f"holds in {sum(n == 16 for n in one['found'])} of {one['seeds']} seeds"
    verdict = "does not hold" if max(one["found"]) < 16 else verdict
    made.append(("After 10,000 images the 16 components are the 16 limbs", verdict, "; ".join(words)))
    rate = float(np.mean(one["acceptance"]))
    word = "holds" if abs(rate - PAPER_ACCEPTANCE) < NEAR else "does not hold"
    made.append((f"About {PAPER_ACCEPTANCE:g} of the proposals are accepted", word, mean_and_range(one["acceptance"], ".2f")))
    samples = results.one("swimmer", "samples")
    if samples:
        inside = samples["shortest"] >= 200 and samples["longest"] <= 300
        lengths = f"{samples['shortest']:.0f} to {samples['longest']:.0f}, mean {samples['mean']:.0f}"
        made.append(("Images have 200 to 300 counts", "holds" if inside else "nearly holds", lengths))
    return made


# The sampler, and formula 4


def ratio_claims(results: Results) -> list[Claim]:
    sets = results.of("ratio")
    if not sets:
        return []

    def errors(name: str) -> str:
        return listed([f"{one['errors'][name]:.2f}" for one in sets])

    judged = [one for one in sets if one["alpha"] >= MIXES]
    right = max(one["errors"][printed.PRINTED] for one in judged) < EXACT
    alphas = listed([f"{one['alpha']:g}" for one in sets])
    words = f"error of {errors(printed.PRINTED)} tokens of {sets[0]['tokens']:.0f}, alpha {alphas}"
    without = max(one["errors"][printed.NO_PRIOR] for one in judged if one["alpha"] != 1.0) < EXACT
    return [
        ("The ratio of proposal densities, as printed", "holds" if right else "does not hold", words),
        (
            "The acceptance probability, which leaves the prior of H out",
            "holds" if without else "holds for alpha = 1 alone",
            f"right exponents, error {errors(printed.NO_PRIOR)}; with the prior {errors(printed.RIGHT)}",
        ),
    ]


def proposition(results: Results) -> list[Claim]:
    sets = results.of("variance")
    if len(sets) < 2:
        return []
    made = []
    gaps = [one["measured"] / one["finite"] - 1.0 for one in sets]
    wide = [one["mixture_measured"] / one["mixture_finite"] - 1.0 for one in sets]
    agrees = max(map(abs, gaps + wide)) < AGREES
    made.append((
        "Formula 4 is the variance", "holds" if agrees else "holds roughly",
        f"measured over what it says after these steps, 1 draw to exact: "
        f"{listed([f'{100 * gap:+.0f} %' for gap in gaps])}; a whole mixture by the "
        f"library: {listed([f'{100 * gap:+.0f} %' for gap in wide])}",
    ))  # fmt: skip
    measured = [one["measured"] for one in sets]
    falls = all(after < before for before, after in pairwise(measured))
    made.append((
        "The variance falls with the number of draws m", "holds" if falls else "does not hold",
        listed([f"{one['measured']:.3f} (m = {one['draws']})" if one["draws"] else f"{one['measured']:.3f} (exact)"
                for one in sets]),
    ))  # fmt: skip
    return made


# Topics


def variational(results: Results) -> list[Claim]:
    made: list[Claim] = []
    for title, lines in by_corpus(results).items():
        own = lines.get(corpus.FIXED.name)
        rivals = [
            lines[line.name]
            for line in (corpus.VARIATIONAL, corpus.COLLAPSED, corpus.GENSIM, corpus.ONLINE, corpus.BATCH)
            if line.name in lines
        ]  # fmt: skip
        if not own or not rivals:
            continue
        best = min(rivals, key=lambda one: min(one["perplexities"]))
        mine = own["perplexities"][-1]
        holds = mine < min(best["perplexities"])
        made.append((
            f"Variational methods are biased, simulated EM is not ({title})", "supported" if holds else "not supported",
            f"perplexity {mine:,.0f} at the end of simulated EM, {min(best['perplexities']):,.0f} at the best moment of the "
            f"best variational learner, {best['line']}",
        ))  # fmt: skip
        passes = {one["line"]: one["seconds"][0] / one["stages"][0] for one in (own, *rivals)}
        slowest, fastest = max(passes.values()), min(passes.values())
        if corpus.METROPOLIS.name in lines:
            one = lines[corpus.METROPOLIS.name]
            passes[one["line"]] = one["seconds"][0] / one["stages"][0]
        made.append((
            f"Both kinds of learner cost about as much ({title})",
            "holds" if slowest < SIMILAR * fastest else "depends on who wrote it",
            f"seconds of the first pass: {listed([f'{value:.1f} ({name})' for name, value in passes.items()])}",
        ))  # fmt: skip
    return made


def topics(results: Results) -> dict[str, Any]:
    names = {title: name for name, title in corpus.CORPORA.items()}
    made = []
    for title, lines in by_corpus(results).items():
        alone = results.figures["topics"][f"{names[title]}/one topic"]["perplexity"]
        top = lines.get(corpus.LEARNED.name, {}).get("top")
        made.append({"title": title, "lines": lines, "first": next(iter(lines.values())), "alone": alone, "top": top})
    return {"corpora": made}


def audio_of(results: Results) -> dict[str, Any]:
    """The picture, the lines of each recording, and what is said of them."""
    recordings = []
    for name in audio.RECORDINGS:
        lines = {line: one for line in audio.LEARNERS if (one := results.one("audio", f"{name}/{line}"))}
        if lines:
            own, peer, once = (lines[line] for line in (audio.FIT, audio.PEER, audio.STREAM))
            mean, other = np.mean(own["divergence"]), np.mean(peer["divergence"])
            recordings.append({
                "title": audio.RECORDINGS[name].title, "lines": lines, "first": own,
                "beside": f"{mean:.3f} beside {other:.3f}, {'no worse' if mean <= other else 'worse'}",
                "no_worse": mean <= np.mean(once["divergence"]),
            })  # fmt: skip
    return {"fit": results.figures["audio"][audio.SHOWN], "recordings": recordings}


def ratio(results: Results) -> dict[str, Any]:
    sets = results.of("ratio")
    slow = [f"{one['alpha']:g}" for one in sets if one["errors"][printed.RIGHT] > EXACT > one["errors"][printed.GIBBS]]
    return {"sets": sets, "first": sets[0], "slow": listed(slow)}


def in_sets(part: str) -> Callable[[Results], dict[str, Any]]:
    """The sets of a part, the first and the last."""

    def read(results: Results) -> dict[str, Any]:
        sets = results.of(part)
        return {"sets": sets, "first": sets[0], "last": sets[-1]}

    return read


def claims(results: Results) -> list[Claim]:
    """Claims of the paper with verdicts."""
    return [*recovery(results), *ratio_claims(results), *proposition(results), *variational(results)]


VALUES = {
    "swimmer": swimmers, "ratio": ratio, "variance": in_sets("variance"), "topics": topics, "cost": in_sets("cost"),
    "audio": audio_of, "claims": claims,
}  # fmt: skip
