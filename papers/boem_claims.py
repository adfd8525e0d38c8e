"""What holds of paper 000's claims, in words made of the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from papers import boem_learners as learners
from papers.boem_learners import BATCH, BAYESIAN, LITERAL, MAP_EM, MEAN_BOEM, MODE_BOEM, OWN, SATO, VANISHING
from papers.boem_results import SHRINK_BETA, Figures, Results, mean, settled
from papers.moment_matching_claims import arrow, listed

FOUND = 1.0  # nats per document within which the generating mixture counts as found
SETTLED = 5.0  # nats per document within which a line has settled
FEW_THOUSAND = 5000
SIMILAR = 5.0  # nats per document between results that are called alike
FEWER = 0.5  # clusters on average that count as fewer
MOST_STARTS = 0.9
FRACTION = 0.5  # of the time
FEWEST_STARTS = 6  # with which the signed-rank test can tell anything
BETTER, WORSE, NEITHER, UNTOLD = "better", "worse", "no different", "not to be told apart by so few starts"
KINDS = {"uniform": "U(0, 1) starts", "documents": "documents as starts"}


# Words


def against(one: Sequence[float], other: Sequence[float]) -> str:
    """How values of the same starts compare, by the signed-rank test."""
    if len(one) < FEWEST_STARTS:
        return UNTOLD
    return {"↑": BETTER, "↓": WORSE, "": NEITHER}[arrow(one, other)]


def together(words: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(words))


def verdict(holding: Sequence[bool], of_what: str) -> str:
    """In how many of the cases a claim holds."""
    count, total = sum(holding), len(holding)
    return "holds" if count == total else f"holds in {count} of {total} {of_what}" if count else "does not hold"


def better_in(words: Sequence[str]) -> str:
    """The verdict on a claim that something is better, by how the comparisons came out."""
    return (
        "cannot be told from so few starts" if UNTOLD in words else verdict([word == BETTER for word in words], "comparisons")
    )


def found(line: Figures, key: str = "final") -> float:
    """Share of the starts that ended at the generating mixture."""
    return float(np.mean(np.array(line[key]) >= -FOUND))


def exactly(line: Figures, number: int) -> float:
    return float(np.mean(np.array(line["survivors"]) == number))


def percent(value: float) -> str:
    return f"{100.0 * value:.0f} %"


def spread_name(one: Figures) -> str:
    return f"standard deviation {one['spread']:g}"


def likelihoods(results: Results) -> list[Figures]:
    return [one for name in ("variance", "deviation") if (one := results.one("likelihood", name))]


def by_kind(results: Results, part: str, suffix: str = "") -> dict[str, Figures]:
    """The sets of a part by kind of start, in words."""
    return {words: one for kind, words in KINDS.items() if (one := results.one(part, f"{kind}{suffix}"))}


def means_by_spread(sets: Sequence[Figures], groups: dict[str, Sequence[learners.Line]]) -> str:
    told = []
    for one in sets:
        ends = {name: listed([f"{mean(one['lines'][line.name]):.0f}" for line in lines]) for name, lines in groups.items()}
        told.append(f"{', '.join(f'{name} {end}' for name, end in ends.items())} (lengths of {spread_name(one)})")
    return "; ".join(told)


# Section 6.1.1


def sato_words(sets: Sequence[Figures]) -> str:
    compared: dict[str, list[str]] = {}
    for mine in BAYESIAN:
        pairs = [(one["lines"][mine.name], one["lines"][other.name]) for one in sets for other in SATO]
        compared[mine.name] = [against(line["final"], other["final"]) for line, other in pairs]
    told = [f"{name} in {words.count(BETTER)} of {len(words)}" for name, words in compared.items()]
    return (
        "- **BOEM ends at significantly better log-likelihoods than SOEM** (figure 1, left): "
        f"{better_in([*chain(*compared.values())])}. It is better, over the readings of SOEM's rate and of the lengths, as "
        f"{listed(told)}. Nats per document from the generating mixture, means over the starts, in the order of the readings "
        f"below: {means_by_spread(sets, {'BOEM': BAYESIAN, 'SOEM': SATO})}."
    )


def rate_words(one: Figures) -> list[str]:
    ends = {line.name: settled(one["lines"][line.name], SETTLED) for line in (*BAYESIAN, *SATO)}
    kept = [f"{np.median(one['lines'][line.name]['survivors']):g} ({line.name})" for line in SATO]
    soon = verdict([end <= FEW_THOUSAND for end in ends.values()], "lines")
    first = learners.first_steps(one["clusters"])
    slower = [name for name, step in first.items() if step > first["BOEM"]]
    word = "holds" if len(slower) == len(SATO) else f"holds for {listed(slower)} only" if slower else "does not hold"
    return [
        f"- **Both settle after a few thousand documents**: {soon}. From this many on, the median over the starts stays within "
        f"{SETTLED:g} nats of its end: {listed([f'{end:,} ({name})' for name, end in ends.items()])}. Clusters left "
        f"when SOEM has ended, in the median: {listed(kept)}.",
        f"- **BOEM's learning rate starts out slower than SOEM's**: {word}. First steps of the weights: "
        f"{listed([f'{step:.2g} ({name})' for name, step in first.items()])}.",
    ]


def prior_words(sets: Sequence[Figures]) -> str:
    words = [against(one["lines"][LITERAL.name]["final"], one["lines"][VANISHING.name]["final"]) for one in sets]
    word = "cannot be told" if UNTOLD in words else "holds" if {*words} == {NEITHER} else "does not hold"
    return (
        f"- **alpha = beta = 1 eliminates the prior**: {word} for the algorithm as printed. Equations 7 to 12 are posterior "
        f"means, in which it makes the start worth {sets[0]['columns']:,} words; it is true of modes. Beside beta -> 0 it is "
        f"{together(words)}, nats per document: {means_by_spread(sets, {line.name: [line] for line in BAYESIAN})}."
    )


def batch_words(sets: Sequence[Figures]) -> str:
    def compared(key: str) -> tuple[str, list[str]]:
        words = {
            mine.name: [against(one["lines"][mine.name]["final"], one["lines"][BATCH][key]) for one in sets]
            for mine in BAYESIAN
        }
        told = [f"{name} is {together(each)}" for name, each in words.items()]
        return listed(told), [*chain(*words.values())]

    early, first = compared("first")
    late, last = compared("final")
    shares = []
    for one in sets:
        parts = [f"{percent(found(one['lines'][name]))} ({name})" for name in (*[line.name for line in BAYESIAN], BATCH)]
        shares.append(f"{listed(parts)}, lengths of {spread_name(one)}")
    return (
        "- **BOEM does better than batch EM** (figure 1, right): "
        f"{better_in(first + last)}. After as many documents, one pass: {early}. "
        f"After {sets[0]['passes']} passes of batch EM: {late}. The generating mixture is found by: {'; '.join(shares)}."
    )


def start_words(sets: Sequence[Figures]) -> str:
    shares = [found(one["lines"][OWN]) for one in sets]
    told = [
        f"{mean(one['lines'][OWN]):+.2f} nats, the generating mixture found in {percent(part)} of {one['runs']} runs, lengths "
        f"of {spread_name(one)}"
        for one, part in zip(sets, shares, strict=True)
    ]
    return (
        f"- What is not in the paper: the start decides {'everything' if min(shares) == 1.0 else 'much'}. The same recursion "
        f"from the start that the library seeks on the first documents ends at {'; '.join(told)}."
    )


def beta_range(one: Figures) -> tuple[dict[float, float], float, float]:
    """Means by beta, the best beta and the worst."""
    means = {beta: float(np.mean(final)) for beta, final in zip(one["betas"], one["final"], strict=True)}
    return means, max(means, key=means.__getitem__), min(means, key=means.__getitem__)


def beta_words(results: Results) -> list[str]:
    told, bests, gaps = [], [], []
    for part, where in (
        ("likelihood", "generated documents, U(0, 1) starts"),
        ("gutenberg", "the corpus, documents as starts"),
    ):
        if one := results.one(part, "beta"):
            means, best, worst = beta_range(one)
            bests.append(best)
            gaps.append(means[best] - means[worst])
            told.append(f"{where}: the best is {best:g}, the worst {worst:g}, {gaps[-1]:.0f} nats per document apart")
    if not told:
        return []
    word = "does not hold" if max(gaps) > SIMILAR else "holds"
    ending = " What is best for the one is not for the other." if len({*bests}) > 1 else ""
    return [f"- **There is nothing to tune, and setting beta is easy**: {word}. BOEM's means on {'; on '.join(told)}.{ending}"]


# Section 6.1.2


def number_words(results: Results) -> list[str]:
    told, holds = [], []
    for words, one in by_kind(results, "shrinkage", f"/{SHRINK_BETA:g}").items():
        number = len(one["truth"])
        parts = []
        for name, line in one["lines"].items():
            holds.append(exactly(line, number) >= MOST_STARTS)
            right = percent(found(line, "likelihood"))
            parts.append(f"{name} {percent(exactly(line, number))} (the generating mixture's likelihood in {right})")
        told.append(f"{listed(parts)}, {words}")
    if not told:
        return []
    return [
        f"- **With beta = {SHRINK_BETA:g} the right number of clusters is left** (figure 2), by BOEM and by batch MAP EM: "
        f"{verdict(holds, 'cases')} (from at least {percent(MOST_STARTS)} of the starts). Exactly {number} clusters: "
        f"{'; '.join(told)}."
    ]


def fewer_words(results: Results) -> list[str]:
    told, holds, betas = [], [], ""
    for kind, words in KINDS.items():
        sets = [one for name, one in results.figures.get("shrinkage", {}).items() if name.startswith(f"{kind}/")]
        for name in sets[0]["lines"] if len(sets) > 1 else ():
            numbers = [mean(one["lines"][name], "survivors") for one in sets]
            holds.append(numbers[0] - numbers[-1] >= FEWER)
            told.append(f"{', '.join(f'{number:.1f}' for number in numbers)} ({name}, {words})")
            betas = listed([f"{one['beta']:g}" for one in sets])
    if not told:
        return []
    return [
        f"- **The higher beta, the fewer clusters**: {verdict(holds, 'cases')} (at least {FEWER:g} fewer on average). "
        f"Clusters left with beta = {betas}: {'; '.join(told)}."
    ]


def outperforms_words(results: Results) -> list[str]:
    told, words = [], []
    for kind, one in by_kind(results, "shrinkage", f"/{SHRINK_BETA:g}").items():
        other = one["lines"][MAP_EM]
        for name in (MEAN_BOEM, MODE_BOEM):
            line = one["lines"][name]
            words.append(against(line["final"], other["final"]))
            told.append(f"{name} is {words[-1]}, {mean(line):.2f} and {mean(other):.2f}, {kind}")
    if not told:
        return []
    return [
        f"- **BOEM reaches better log-posteriors than batch MAP EM** (figure 2, right): "
        f"{better_in(words)}. Nats per document from the generating mixture's: "
        f"{'; '.join(told)}."
    ]


# Section 6.2


def passed(values: Sequence[float], line: Figures) -> int | None:
    """The pass of batch EM, from 0, whose median is at least where another line ends in the median; None if there is none."""
    reached = np.flatnonzero(np.array(line["median"]) >= np.median(values))
    return int(reached[0]) if reached.size else None


def corpus_words(results: Results) -> list[str]:
    similar, told, faster, times, ratios = [], [], [], [], []
    for kind, one in by_kind(results, "gutenberg").items():
        other = one["lines"][MAP_EM]
        for name in (MEAN_BOEM, MODE_BOEM):
            line = one["lines"][name]
            similar.append(mean(line) >= mean(other) - SIMILAR)
            told.append(
                f"{mean(line):.1f} and {mean(other):.1f} with {mean(line, 'survivors'):.1f} and "
                f"{mean(other, 'survivors'):.1f} clusters left ({name}, {kind})"
            )
            spent, at = line["seconds"][-1], passed(line["final"], other)
            faster.append(similar[-1] and (at is None or spent <= FRACTION * other["seconds"][at]))
            when = "never does" if at is None else f"does after {other['seconds'][at]:.2f} s, pass {at + 1}"
            times.append(f"{spent:.2f} s for what batch MAP EM {when} ({name}, {kind})")
            ratios.append(spent / other["seconds"][0])
    if not told:
        return []
    return [
        f"- **On the Gutenberg corpus BOEM and batch EM end alike** (figure 3): {verdict(similar, 'cases')} (BOEM at most "
        f"{SIMILAR:g} nats per document below). Log-posteriors, nats per document above one cluster for all: "
        f"{'; '.join(told)}.",
        f"- **BOEM gets there in a fraction of the time**: {verdict(faster, 'cases')} (an end that is alike, in at most "
        f"{FRACTION:g} of the seconds). CPU time: {'; '.join(times)}. A pass of BOEM takes {np.median(ratios):.1f} times as "
        "long here as one of batch EM, which takes the logarithm of a probability once a pass and not once a word.",
        *own_words(results),
    ]


def own_words(results: Results) -> list[str]:
    own, uniform = results.one("gutenberg", "own"), results.one("gutenberg", "uniform")
    if own is None or uniform is None:
        return []
    line, other = own["lines"][OWN], uniform["lines"][MAP_EM]
    at = passed(line["final"], other)
    when = "in none of them" if at is None else f"after {at + 1} ({other['seconds'][at]:.2f} s)"
    return [
        f"- What is not in the paper: from the library's start BOEM ends {mean(line):.1f} nats per document above one "
        f"cluster, after {np.median(line['whole']):.2f} s with the seeking of the start. Batch MAP EM from U(0, 1) starts "
        f"ends at {mean(other):.1f} after {uniform['passes']} passes ({other['seconds'][-1]:.2f} s), and is as far {when}."
    ]


def proof_words(results: Results) -> list[str]:
    one = results.one("printed", "documents as in the paper")
    if one is None:
        return []
    undefined = one["undefined"][LITERAL.name]
    return [
        f"- **h_c > epsilon, a condition of the convergence proof**: {'does not hold' if undefined else 'holds'}. On "
        f"documents like the paper's {percent(undefined)} of the divisions in equation 12 are of 0 by 0. Nor does the proof "
        "hold as printed: its fixed point is the expectation of x_a xi_c / h_c, which is x_a over the document's length, the "
        "same for all clusters; and the sign of its differential equation is reversed."
    ]


def claims(results: Results) -> list[str]:
    sets = likelihoods(results)
    lines = [sato_words(sets), *rate_words(sets[0]), prior_words(sets), batch_words(sets), start_words(sets)] if sets else []
    makers: tuple[Callable[[Results], list[str]], ...] = (
        beta_words, number_words, fewer_words, outperforms_words, corpus_words, proof_words,
    )  # fmt: skip
    return lines + [line for make in makers for line in make(results)]
