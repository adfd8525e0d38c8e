"""What the page about paper 000 says of its figures: verdicts, and numbers that take more than a look."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from pages.results import Figures, Results
from pages.words import listed, percent
from papers import boem_learners as learners
from papers.boem_learners import BATCH, BAYESIAN, LITERAL, MAP_EM, MEAN_BOEM, MODE_BOEM, OWN, SATO, VANISHING
from papers.boem_scale import SHRINK_BETA, mean, settled
from papers.boem_sets import over_sets
from papers.wilcoxon import arrow

FOUND = 1.0  # nats per document within which the generating mixture counts as found
SETTLED = 5.0  # nats per document within which a line has settled
FEW_THOUSAND = 5000
SIMILAR = 5.0  # nats per document between results that are called alike
FEWER = 0.5  # clusters on average that count as fewer
MOST_STARTS = 0.9
FRACTION = 0.5  # of the time
FEWEST_STARTS = 6  # with which the signed-rank test can decide anything
BETTER, WORSE, NEITHER, UNDECIDED = "better", "worse", "no different", "not to be distinguished by so few starts"
KINDS = {"uniform": "U(0, 1) starts", "documents": "documents as starts"}


# Words


def against(one: Sequence[float], other: Sequence[float]) -> str:
    """How values of the same starts compare, by the signed-rank test."""
    if len(one) < FEWEST_STARTS:
        return UNDECIDED
    return {"↑": BETTER, "↓": WORSE, "": NEITHER}[arrow(one, other)]


def together(words: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(words))


def verdict(holding: Sequence[bool], of_what: str) -> str:
    """In how many of the cases a claim holds."""
    count, total = sum(holding), len(holding)
    return "holds" if count == total else f"holds in {count} of {total} {of_what}" if count else "does not hold"


def better_in(words: Sequence[str]) -> str:
    """The verdict on a claim that something is better, by how the comparisons came out."""
    if UNDECIDED in words:
        return "cannot be decided from so few starts"
    return verdict([word == BETTER for word in words], "comparisons")


def found(line: Figures, key: str = "final") -> float:
    """Share of the starts that ended at the generating mixture."""
    return float(np.mean(np.array(line[key]) >= -FOUND))


def exactly(line: Figures, number: int) -> float:
    return float(np.mean(np.array(line["survivors"]) == number))


def spread(values: Sequence[float]) -> str:
    """Mean, lowest and highest."""
    return f"{np.mean(values):.1f} ({np.min(values):.1f} to {np.max(values):.1f})"


def counted(values: Sequence[int]) -> str:
    """How many starts have left each number of clusters."""
    numbers, times = np.unique(values, return_counts=True)
    return ", ".join(f"{number} ({often})" for number, often in zip(numbers, times, strict=True))


def spread_name(one: Figures) -> str:
    return f"standard deviation {one['spread']:g}"


def likelihoods(results: Results) -> list[Figures]:
    return [one for name in ("variance", "deviation") if (one := results.one("likelihood", name))]


def by_kind(results: Results, part: str, suffix: str = "") -> dict[str, Figures]:
    """The sets of a part by kind of start, in words."""
    return {words: one for kind, words in KINDS.items() if (one := results.one(part, f"{kind}{suffix}"))}


def means_by_spread(sets: Sequence[Figures], groups: dict[str, Sequence[learners.Line]]) -> str:
    made = []
    for one in sets:
        ends = {name: listed([f"{mean(one['lines'][line.name]):.0f}" for line in lines]) for name, lines in groups.items()}
        made.append(f"{', '.join(f'{name} {end}' for name, end in ends.items())} (lengths of {spread_name(one)})")
    return "; ".join(made)


# Section 6.1.1


def likelihood(results: Results) -> dict[str, Any]:
    sets = likelihoods(results)
    return {
        "sets": sets, "first": sets[0], "sato": against_sato(sets), "rates": rates(sets[0]), "prior": prior(sets),
        "batch": against_batch(sets), "start": start(sets),
    }  # fmt: skip


def against_sato(sets: Sequence[Figures]) -> dict[str, str]:
    compared: dict[str, list[str]] = {}
    for mine in BAYESIAN:
        pairs = [(one["lines"][mine.name], one["lines"][other.name]) for one in sets for other in SATO]
        compared[mine.name] = [against(line["final"], other["final"]) for line, other in pairs]
    return {
        "verdict": better_in([*chain(*compared.values())]),
        "counts": listed([f"{name} in {words.count(BETTER)} of {len(words)}" for name, words in compared.items()]),
        "means": means_by_spread(sets, {"BOEM": BAYESIAN, "SOEM": SATO}),
    }


def rates(one: Figures) -> dict[str, str]:
    ends = {line.name: settled(one["lines"][line.name], SETTLED) for line in (*BAYESIAN, *SATO)}
    first = learners.first_steps(one["clusters"])
    slower = [name for name, step in first.items() if step > first["BOEM"]]
    return {
        "soon": verdict([end <= FEW_THOUSAND for end in ends.values()], "lines"),
        "ends": listed([f"{end:,} ({name})" for name, end in ends.items()]),
        "kept": listed([f"{np.median(one['lines'][line.name]['survivors']):g} ({line.name})" for line in SATO]),
        "slower": "holds" if len(slower) == len(SATO) else f"holds for {listed(slower)} only" if slower else "does not hold",
        "first": listed([f"{step:.2g} ({name})" for name, step in first.items()]),
    }


def prior(sets: Sequence[Figures]) -> dict[str, str]:
    words = [against(one["lines"][LITERAL.name]["final"], one["lines"][VANISHING.name]["final"]) for one in sets]
    return {
        "verdict": "cannot be decided" if UNDECIDED in words else "holds" if {*words} == {NEITHER} else "does not hold",
        "compared": together(words),
        "means": means_by_spread(sets, {line.name: [line] for line in BAYESIAN}),
    }


def against_batch(sets: Sequence[Figures]) -> dict[str, str]:
    def compared(key: str) -> tuple[str, list[str]]:
        words = {
            mine.name: [against(one["lines"][mine.name]["final"], one["lines"][BATCH][key]) for one in sets]
            for mine in BAYESIAN
        }
        return listed([f"{name} is {together(each)}" for name, each in words.items()]), [*chain(*words.values())]

    (early, first), (late, last) = compared("first"), compared("final")
    shares = []
    for one in sets:
        parts = [f"{percent(found(one['lines'][name]))} ({name})" for name in (*[line.name for line in BAYESIAN], BATCH)]
        shares.append(f"{listed(parts)}, lengths of {spread_name(one)}")
    return {"verdict": better_in(first + last), "early": early, "late": late, "shares": "; ".join(shares)}


def start(sets: Sequence[Figures]) -> dict[str, str]:
    shares = [found(one["lines"][OWN]) for one in sets]
    ends = [
        f"{mean(one['lines'][OWN]):+.2f} nats, the generating mixture found in {percent(part)} of {one['runs']} runs, lengths "
        f"of {spread_name(one)}"
        for one, part in zip(sets, shares, strict=True)
    ]
    return {"decides": "everything" if min(shares) == 1.0 else "much", "ends": "; ".join(ends)}


def beta_range(one: Figures) -> tuple[dict[float, float], float, float]:
    """Means by beta, the best beta and the worst."""
    means = {beta: float(np.mean(final)) for beta, final in zip(one["betas"], one["final"], strict=True)}
    return means, max(means, key=means.__getitem__), min(means, key=means.__getitem__)


def beta(results: Results) -> dict[str, Any] | None:
    """What beta decides, on generated documents and on the corpus; None where neither was measured."""
    heads, sets, ranges = [], [], []
    for part, head, where in (
        ("likelihood", "generated documents, {} U(0, 1) starts, from the generating mixture",
         "generated documents, U(0, 1) starts"),
        ("gutenberg", "the corpus, {} starts made of documents, from one cluster for all", "the corpus, documents as starts"),
    ):  # fmt: skip
        if one := results.one(part, "beta"):
            means, best, worst = beta_range(one)
            heads.append(head.format(one["starts"]))
            sets.append(one)
            ranges.append((where, best, worst, means[best] - means[worst]))
    if not sets:
        return None
    bests = [best for _, best, _, _ in ranges]
    return {
        "heads": heads, "sets": sets, "betas": sets[0]["betas"], "best": listed([f"{best:g}" for best in bests]),
        "verdict": "does not hold" if max(gap for *_, gap in ranges) > SIMILAR else "holds", "differ": len({*bests}) > 1,
        "ranges": "; on ".join(f"{where}: the best is {best:g}, the worst {worst:g}, {gap:.0f} nats per document apart"
                               for where, best, worst, gap in ranges),
    }  # fmt: skip


# Section 6.1.2


def shrinkage(results: Results) -> dict[str, Any]:
    sets = results.of("shrinkage")
    first = sets[0]
    return {
        "sets": sets, "first": first, "number": len(first["truth"]), "right": right_number(results), "fewer": fewer(results),
        "outperforms": outperforms(results),
    }  # fmt: skip


def right_number(results: Results) -> dict[str, str]:
    shown, holds = [], []
    for words, one in by_kind(results, "shrinkage", f"/{SHRINK_BETA:g}").items():
        number, parts = len(one["truth"]), []
        for name, line in one["lines"].items():
            holds.append(exactly(line, number) >= MOST_STARTS)
            right = percent(found(line, "likelihood"))
            parts.append(f"{name} {percent(exactly(line, number))} (the generating mixture's likelihood in {right})")
        shown.append(f"{listed(parts)}, {words}")
    return {"verdict": verdict(holds, "cases"), "shares": "; ".join(shown)}


def fewer(results: Results) -> dict[str, str]:
    shown, holds, betas = [], [], ""
    for kind, words in KINDS.items():
        sets = results.of("shrinkage", f"{kind}/")
        for name in sets[0]["lines"]:
            numbers = [mean(one["lines"][name], "survivors") for one in sets]
            holds.append(numbers[0] - numbers[-1] >= FEWER)
            shown.append(f"{', '.join(f'{number:.1f}' for number in numbers)} ({name}, {words})")
            betas = listed([f"{one['beta']:g}" for one in sets])
    return {"verdict": verdict(holds, "cases"), "betas": betas, "numbers": "; ".join(shown)}


def outperforms(results: Results) -> dict[str, str]:
    shown, words = [], []
    for kind, one in by_kind(results, "shrinkage", f"/{SHRINK_BETA:g}").items():
        other = one["lines"][MAP_EM]
        for name in (MEAN_BOEM, MODE_BOEM):
            line = one["lines"][name]
            words.append(against(line["final"], other["final"]))
            shown.append(f"{name} is {words[-1]}, {mean(line):.2f} and {mean(other):.2f}, {kind}")
    return {"verdict": better_in(words), "compared": "; ".join(shown)}


# Section 6.2


def passed(values: Sequence[float], line: Figures) -> int | None:
    """The pass of batch EM, from 0, whose median is at least where another line ends in the median; None if there is none."""
    reached = np.flatnonzero(np.array(line["median"]) >= np.median(values))
    return int(reached[0]) if reached.size else None


def gutenberg(results: Results) -> dict[str, Any]:
    similar, shown, faster, times, ratios, lines = [], [], [], [], [], []
    sets = by_kind(results, "gutenberg")
    for kind, one in sets.items():
        other = one["lines"][MAP_EM]
        for name, line in one["lines"].items():
            passes = len(line["seconds"]) if name == MAP_EM else 1
            lines.append({
                "starts": f"{one['starts']}, {kind}", "label": f"{MAP_EM}, {passes} passes" if name == MAP_EM else name,
                "line": line, "after": line["median"][0] if name == MAP_EM else np.median(line["final"]), "passes": passes,
                "spent": line["seconds"][-1],
            })  # fmt: skip
        for name in (MEAN_BOEM, MODE_BOEM):
            line = one["lines"][name]
            similar.append(mean(line) >= mean(other) - SIMILAR)
            shown.append(
                f"{mean(line):.1f} and {mean(other):.1f} with {mean(line, 'survivors'):.1f} and "
                f"{mean(other, 'survivors'):.1f} clusters left ({name}, {kind})"
            )
            spent, at = line["seconds"][-1], passed(line["final"], other)
            faster.append(similar[-1] and (at is None or spent <= FRACTION * other["seconds"][at]))
            when = "never does" if at is None else f"does after {other['seconds'][at]:.2f} s, pass {at + 1}"
            times.append(f"{spent:.2f} s for what batch MAP EM {when} ({name}, {kind})")
            ratios.append(spent / other["seconds"][0])
    own = own_start(results)
    return {
        "first": next(iter(sets.values())), "lines": lines + own["lines"], "own": own,
        "alike": verdict(similar, "cases"), "ends": "; ".join(shown), "faster": verdict(faster, "cases"),
        "times": "; ".join(times), "ratio": np.median(ratios),
    }  # fmt: skip


def own_start(results: Results) -> dict[str, Any]:
    """BOEM from the start that the library seeks, beside batch MAP EM."""
    own, uniform = results.figures["gutenberg"]["own"], results.figures["gutenberg"]["uniform"]
    line, other = own["lines"][OWN], uniform["lines"][MAP_EM]
    spent, at = float(np.median(line["whole"])), passed(line["final"], other)
    shown = {
        "starts": f"{own['starts']}, the library's", "label": OWN, "line": line, "after": np.median(line["final"]), "passes": 1,
        "spent": spent,
    }  # fmt: skip
    return {
        "set": own, "lines": [shown], "mean": mean(line), "seconds": spent, "other": mean(other), "passes": uniform["passes"],
        "other_seconds": other["seconds"][-1],
        "when": "in none of them" if at is None else f"after {at + 1} ({other['seconds'][at]:.2f} s)",
    }  # fmt: skip


# The recursions


def recursions(results: Results) -> dict[str, Any]:
    sets = results.of("printed")
    undefined = results.figures["printed"]["documents as in the paper"]["undefined"][LITERAL.name]
    shown = [f"{percent(value)} ({name}, {one['name']})" for one in sets for name, value in one["undefined"].items()]
    return {
        "sets": sets, "names": [*dict.fromkeys(name for one in sets for name in one["differences"])],
        "largest": max(value for one in sets for value in one["differences"].values()), "divisions": listed(shown),
        "undefined": undefined, "proof": "does not hold" if undefined else "holds",
    }  # fmt: skip


VALUES = {
    "likelihood": likelihood,
    "beta": beta,
    "shrinkage": shrinkage,
    "gutenberg": gutenberg,
    "printed": recursions,
    "sets": over_sets,
}
