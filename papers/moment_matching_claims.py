"""What holds of paper 003's claims, in words made of the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from papers.moment_matching_learners import BATCH_EM, BATCHES, BMM, DMM, DMM_PARTS, ROWS, SHORT, Learner, line_name
from papers.moment_matching_results import Results, average, gap
from papers.wilcoxon import arrow

CLOSE = 0.01  # nats per row that count as none
LOSS = 0.05  # nats per row that count as overfitting


def listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def tested(sets: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sets with splits enough for the test to tell."""
    return [one for one in sets if len(one["learners"][BMM.name]["scores"]) >= 6]


def counted(sets: Sequence[dict[str, Any]], other: Learner) -> tuple[int, int, int]:
    """On how many sets oBMM is better than another learner, worse, or neither."""
    pairs = [[one["learners"][name]["scores"] for name in (other.name, BMM.name)] for one in tested(sets)]
    arrows = [arrow(*pair) for pair in pairs]
    return arrows.count("↓"), arrows.count("↑"), arrows.count("")


def word_for(better: int, total: int, worse: int) -> str:
    if better >= 0.75 * total:
        return "holds"
    return "holds more often than not" if better > worse else "does not hold"


def convergence_words(results: Results) -> str:
    gaps = [gap(one, BMM.name) for one in results.sets("figure1")]
    good = sum(value >= -CLOSE for value in gaps)
    word = "holds" if good == len(gaps) else f"holds on {good} of {len(gaps)} sets" if good else "does not hold"
    return (
        f"- **oBMM converges to the truth**: {word}, from the library's warm-up. The held-out score ends within {CLOSE:g} nats "
        f"per row of the truth's on {good} of {len(gaps)} generated sets; the mean gap is {np.mean(gaps):.4f}, the worst "
        f"{min(gaps):.4f}."
    )


def accuracy_words(results: Results) -> list[str]:
    lines = []
    kinds = {
        "small": "small sets, the library's warm-up",
        "short": f"small sets, warm-up of {SHORT} rows",
        "large": "large sets",
    }
    for other, meaning in ((ROWS, "the paper's online EM, row by row"), (BATCHES, "online EM in batches, averaged")):
        told, words = [], []
        for kind, name in kinds.items():
            sets = tested(results.tables(kind))
            if not sets:
                continue
            better, worse, neither = counted(sets, other)
            ahead = np.median([average(one, BMM.name) - average(one, other.name) for one in sets])
            words.append(word_for(better, len(sets), worse))
            told.append(
                f"{name}: {words[-1]} (better on {better}, worse on {worse}, neither on {neither}; median difference "
                f"{ahead:+.3f} nats per row)"
            )
        if words:
            word = words[0] if len(set(words)) == 1 else "depends on the sets and the start"
            lines.append(f"- **oBMM is more accurate than {meaning}**: {word}. {'; '.join(told)}.")
    return lines


def time_words(results: Results) -> str:
    sets = results.tables("large")
    told, words = [], []
    for other in (ROWS, BATCHES):
        mine, theirs = (np.array([average(one, name, "seconds") for one in sets]) for name in (BMM.name, other.name))
        faster = int(np.sum(mine < theirs))
        words.append(word_for(faster, len(sets), len(sets) - faster))
        told.append(
            f"{other.name} takes {np.median(theirs / mine):.2f} times as long (median), longer on {faster} of {len(sets)}"
        )
    return (
        f"- **oBMM takes less time than online EM**: {words[0]} against the paper's form, {words[1]} against batches. On the "
        f"large sets {'; '.join(told)}."
    )


def behind(sets: Sequence[dict[str, Any]]) -> list[float]:
    """How far the parts end below the one learner, on generated sets."""
    return [gap(one, BMM.name) - gap(one, DMM.name) for one in sets]


def apart_words(results: Results) -> list[str]:
    lines = []
    if sets := results.sets("figure1"):
        below = behind(sets)
        word = "holds" if max(below) <= CLOSE else "does not hold on every set"
        lines.append(
            f"- **oDMM is only slightly worse than oBMM**: {word} with a shared warm-up. On the generated sets the {DMM_PARTS} "
            f"parts end at most {max(below):.4f} nats per row below the one learner ({np.mean(below):.4f} on average; "
            f"{CLOSE:g} was allowed), on {sum(value <= CLOSE for value in below)} of {len(below)} within that."
        )
    if large := results.tables("large"):
        below = [average(one, BMM.name) - average(one, DMM.name) for one in large]
        speeds = [average(one, BMM.name, "seconds") / one["threaded_seconds"] for one in large]
        better, worse, neither = counted(large, DMM)
        lines.append(
            f"- The same on the large sets: at most {max(below):.4f} below (median {np.median(below):.4f}), within {CLOSE:g} "
            f"on {sum(value <= CLOSE for value in below)} of {len(below)}; by the signed-rank test worse on {better}, better "
            f"on {worse}, neither on {neither}. In {large[0]['threads']} threads oDMM runs {np.median(speeds):.2f} times as "
            "fast as oBMM in one, median; the paper had five machines."
        )
    return lines


def losses(results: Results) -> dict[str, dict[str, float]]:
    """What the largest number of components scores below the best number, by line and set."""
    found: dict[str, dict[str, float]] = {}
    for one in results.sets("overfitting"):
        for name, scores in one["lines"].items():
            means = np.mean(scores, axis=1)
            found.setdefault(name, {})[one["title"]] = float(means.max() - means[-1])
    return found


def overfitting_words(results: Results) -> str:
    found = losses(results)
    most = max(results.sets("overfitting")[0]["components"])
    worst = {name: max(by_set.values()) for name, by_set in found.items()}
    mine = {name: worst[name] for name in (line_name(BMM, "auto"), line_name(BMM, SHORT))}
    word = "holds" if max(mine.values()) <= LOSS else "holds in part" if min(mine.values()) <= LOSS else "does not hold"
    others = [f"{name} {value:.3f}" for name, value in worst.items() if name not in mine]
    rows = [f"{name} {value:.3f}" for name, value in mine.items()]
    milder = sum(max(found[name][one] for name in mine) < by_batch for one, by_batch in found[BATCH_EM.name].items())
    return (
        f"- **A large number of components does not overfit**: {word}. With {most} components the most that a set loses "
        f"from the best number is: {listed(rows)}; others: {listed(others)} nats per row. More than {LOSS:g} counts as "
        f"overfitting. oBMM loses less than batch EM on {milder} of {len(found[BATCH_EM.name])} sets, from either warm-up."
    )


def claims(results: Results) -> list[str]:
    lines = []
    if results.sets("figure1"):
        lines.append(convergence_words(results))
    lines += accuracy_words(results)
    if results.tables("large"):
        lines.append(time_words(results))
    lines += apart_words(results)
    if results.sets("overfitting"):
        lines.append(overfitting_words(results))
    if cases := [one for name, one in results.figures.get("printed", {}).items() if name != "random steps"]:
        broken = [value for one in cases if one["columns"] == 1 for value in one["broken_rows"]]
        lines.append(
            f"- **The update as printed** (equation 9, typing errors corrected) has an answer for every row in "
            f"{broken.count(0.0)} of {len(broken)} runs in one column."
        )
    return lines
