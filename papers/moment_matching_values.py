"""What the page about paper 003 says of its figures: verdicts, and tables that take more than a look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headwater.core.statistics import Array
from pages.results import Figures, Results
from pages.words import listed, table
from papers.moment_matching_learners import (
    BATCH_EM,
    BATCHES,
    BMM,
    DMM,
    FIGURE_LEARNERS,
    ROWS,
    SHORT,
    TABLE_LEARNERS,
    Learner,
    line_name,
)
from papers.wilcoxon import arrow

CLOSE = 0.01  # nats per row that count as none
LOSS = 0.05  # nats per row that count as overfitting
FEWEST_SPLITS = 6  # with which the signed-rank test can decide anything
FEW_VALUES = 30  # of a column, which may have a density without limit
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


def gap(one: Figures, name: str) -> float:
    """A learner's last score on a generated set minus the truth's."""
    return float(one["learners"][name]["scores"][-1] - one["truth"])


def average(one: Figures, name: str, key: str = "scores") -> float:
    """A learner's mean over the splits of a set."""
    return float(np.mean(one["learners"][name][key]))


# Figure 1


def figure1(results: Results) -> dict[str, Any]:
    sets, names = results.of("figure1"), [learner.name for learner in FIGURE_LEARNERS]
    gaps = [gap(one, BMM.name) for one in sets]
    below = [gap(one, BMM.name) - gap(one, DMM.name) for one in sets]
    good = sum(value >= -CLOSE for value in gaps)
    return {
        "sets": sets, "names": names, "gaps": gaps, "good": good, "below": below,
        "inside": sum(value <= CLOSE for value in below), "clock": sets[0]["clock"],
        "means": {name: np.mean([gap(one, name) for one in sets]) for name in names},
        "seconds": {name: np.mean([average(one, name, "seconds") for one in sets]) for name in names},
        "converges": "holds" if good == len(gaps) else f"holds on {good} of {len(gaps)} sets" if good else "does not hold",
        "slightly": "holds" if max(below) <= CLOSE else "does not hold on every set",
    }  # fmt: skip


# Tables 1 to 3


def tested(sets: Sequence[Figures]) -> list[Figures]:
    """The sets with splits enough for the test."""
    return [one for one in sets if len(one["learners"][BMM.name]["scores"]) >= FEWEST_SPLITS]


def counted(sets: Sequence[Figures], other: Learner) -> tuple[int, int, int]:
    """On how many sets oBMM is better than another learner, worse, or neither."""
    pairs = [[one["learners"][name]["scores"] for name in (other.name, BMM.name)] for one in tested(sets)]
    arrows = [arrow(*pair) for pair in pairs]
    return arrows.count("↓"), arrows.count("↑"), arrows.count("")


def verdict(better: int, total: int, worse: int) -> str:
    if better >= 0.75 * total:
        return "holds"
    return "holds more often than not" if better > worse else "does not hold"


def tables(results: Results) -> dict[str, Any]:
    small, short, large = (results.of("tables", f"{kind}/") for kind in ("small", "short", "large"))
    kinds = {
        "small sets, the library's warm-up": small, f"small sets, warm-up of {SHORT} rows": short, "large sets": large,
    }  # fmt: skip
    others = ((ROWS, "the paper's online EM, row by row"), (BATCHES, "online EM in batches, averaged"))
    shares = [one["warm_up"] for one in small]
    return {
        "accuracy": [one for other, meaning in others if (one := accuracy(kinds, other, meaning))],
        "time": times(large) if large else None, "parts": parts(large) if large else None,
        "notes": [*dict.fromkeys(f"{one['title']}: {one['note']}." for one in (*small, *large) if one["note"])],
        "small": small and {
            "table": score_table(small, PAPER_1), "whole": sum(share >= 1.0 for share in shares), "number": len(small),
            "share": np.median(shares),
        },
        "short": short and score_table(short, PAPER_1),
        "large": large and {
            "table": score_table(large, PAPER_2), "times": time_table(large), "clock": large[0]["clock"],
        },
    }  # fmt: skip


def accuracy(kinds: Mapping[str, Sequence[Figures]], other: Learner, meaning: str) -> dict[str, str] | None:
    """Whether oBMM is more accurate than another learner, by kind of set; None where no set can be tested."""
    words, verdicts = [], []
    for name, sets in kinds.items():
        if some := tested(sets):
            better, worse, neither = counted(some, other)
            ahead = np.median([average(one, BMM.name) - average(one, other.name) for one in some])
            verdicts.append(verdict(better, len(some), worse))
            words.append(
                f"{name}: {verdicts[-1]} (better on {better}, worse on {worse}, neither on {neither}; median difference "
                f"{ahead:+.3f} nats per row)"
            )
    if not verdicts:
        return None
    all_of_them = verdicts[0] if len(set(verdicts)) == 1 else "depends on the sets and the start"
    return {"other": meaning, "verdict": all_of_them, "words": "; ".join(words)}


def times(large: Sequence[Figures]) -> dict[str, Any]:
    words, verdicts = [], []
    for other in (ROWS, BATCHES):
        mine, theirs = (np.array([average(one, name, "seconds") for one in large]) for name in (BMM.name, other.name))
        faster = int(np.sum(mine < theirs))
        verdicts.append(verdict(faster, len(large), len(large) - faster))
        ratio = np.median(theirs / mine)
        words.append(f"{other.name} takes {ratio:.2f} times as long (median), longer on {faster} of {len(large)}")
    return {"verdicts": verdicts, "words": "; ".join(words)}


def parts(large: Sequence[Figures]) -> dict[str, Any]:
    below = [average(one, BMM.name) - average(one, DMM.name) for one in large]
    return {
        "below": below, "inside": sum(value <= CLOSE for value in below), "counts": counted(large, DMM),
        "threads": large[0]["threads"], "speeds": [one["alone_seconds"] / one["threaded_seconds"] for one in large],
    }  # fmt: skip


def score_cell(one: Figures, learner: Learner) -> str:
    """Mean score, arrow against oBMM, number of components; bold if no other learner of streams is better."""
    found = one["learners"][learner.name]
    mean = f"{average(one, learner.name):.3f}"
    streams = [other.name for other in TABLE_LEARNERS if other is not BATCH_EM]
    if learner is not BATCH_EM and mean == f"{max(average(one, name) for name in streams):.3f}":
        mean = f"**{mean}**"
    sign = arrow(found["scores"], one["learners"][BMM.name]["scores"])
    alpha = f", {found['alpha']:g}" if learner is ROWS else ""
    return f"{mean}{' ' * bool(sign)}{sign} ({found['components']}{alpha})"


def set_name(one: Figures) -> str:
    star = "\\*" if one["values"] <= FEW_VALUES else ""
    return f"{one['title']}{star}, {one['rows']:,} x {one['columns']}"


def score_table(sets: Sequence[Figures], paper: Mapping[str, tuple[float, ...]]) -> str:
    names, width = [learner.name for learner in TABLE_LEARNERS], max(map(len, paper.values()))
    truth, lines = any(one["truth"] for one in sets), []
    for one in sets:
        there = paper.get(one["paper"]) if not one["generated"] else None
        cells = [f"{number:g}" for number in there] if there else ["-"] * width
        if truth:
            cells.insert(0, f"{np.mean(one['truth']):.3f}" if one["truth"] else "-")
        scores = [score_cell(one, learner) for learner in TABLE_LEARNERS]
        lines.append([set_name(one), str(len(one["learners"][BMM.name]["scores"])), *scores, *cells])
    return table(["data set", "splits", *names, *(["truth"] if truth else []), *PAPER[:width]], lines)


def time_table(sets: Sequence[Figures]) -> str:
    names, lines = [learner.name for learner in TABLE_LEARNERS], []
    for one in sets:
        seconds = [*[average(one, name, "seconds") for name in names], one["threaded_seconds"]]
        paper = [f"{there:g}" for there in PAPER_3.get(one["paper"], ())] or ["-"] * len(PAPER)
        lines.append([set_name(one), *[f"{second:.2f}" for second in seconds], *paper])
    return table(["data set", *names, f"oDMM, {sets[0]['threads']} threads", *PAPER], lines)


# More components than there are


def overfitting(results: Results) -> dict[str, Any]:
    """The loss of the largest number of components from the best number, and that number, by line and set."""
    sets, lines = results.of("overfitting"), {}
    for name in sets[0]["lines"]:
        means = [np.mean(one["lines"][name], axis=1) for one in sets]
        lines[name] = [
            (float(mean.max() - mean[-1]), one["components"][int(np.argmax(mean))])
            for one, mean in zip(sets, means, strict=True)
        ]
    mine = (line_name(BMM, "auto"), line_name(BMM, SHORT))
    worst = {name: max(loss for loss, _ in cells) for name, cells in lines.items()}
    losses = [worst[name] for name in mine]
    word = "holds" if max(losses) <= LOSS else "holds in part" if min(losses) <= LOSS else "does not hold"
    by_batch = lines[BATCH_EM.name]
    milder = sum(max(lines[name][at][0] for name in mine) < loss for at, (loss, _) in enumerate(by_batch))
    most = max(sets[0]["components"])
    words = (
        f"**A large number of components does not overfit**: {word}. With {most} components the largest loss of a set from "
        f"the best number is: {listed([f'{name} {worst[name]:.3f}' for name in mine])}; others: "
        f"{listed([f'{name} {loss:.3f}' for name, loss in worst.items() if name not in mine])} nats per row. More than "
        f"{LOSS:g} counts as overfitting. oBMM loses less than batch EM on {milder} of {len(by_batch)} sets, from either "
        "warm-up."
    )
    return {
        "sets": sets, "lines": lines, "most": most, "rows": max(one["learn"] for one in sets), "words": words,
        "splits": len(next(iter(sets[0]["lines"].values()))[0]),
    }  # fmt: skip


# The printed update


def numbers(values: Sequence[float | None]) -> Array:
    """Numbers of which some may be missing."""
    return np.array(values, dtype=float)


def mean_of(values: Array) -> str:
    known = values[np.isfinite(values)]
    return f"{known.mean():.4f}" if known.size else "-"


def printed(results: Results) -> dict[str, Any]:
    steps = results.one("printed", "random steps")
    cases = [one for name, one in results.figures["printed"].items() if name != "random steps"]
    return {
        "steps": steps, "cases": [case_line(one) for one in cases], "verdict": printed_verdict(cases),
        "shares": ", ".join(f"{share:.1%} at offset {at}".replace("%", " %") for at, share in steps["share"].items())
        if steps else "",
        "one_column": [value for one in cases if one["columns"] == 1 for value in one["broken_rows"]],
    }  # fmt: skip


def case_line(one: Figures) -> dict[str, Any]:
    """How often the equations had no answer, and the gaps."""
    broken, gaps = numbers(one["broken_rows"]), numbers(one["gaps"])
    survived, first = broken == 0.0, one["first_broken"]
    form = "one" if one["columns"] == 1 else f"{one['columns']}, (3) as printed" if one["printed"] else f"{one['columns']}"
    return {
        **one, "form": form, "survived": int(survived.sum()), "runs": len(broken), "broken": broken.mean(),
        "first": f"{np.median(first):.0f}" if first else "-", "gap": mean_of(gaps[survived]), "substituted": mean_of(gaps),
        "library": mean_of(numbers(one["library_gaps"])),
    }  # fmt: skip


def printed_verdict(cases: Sequence[Figures]) -> str:
    """Whether the printed update can be used, and what it costs where it can."""
    lines = []
    for columns, as_printed, name in (
        (1, False, "One column"),
        (3, False, "Several columns"),
        (3, True, "Equation 3 as printed"),
    ):
        of = [one for one in cases if (one["columns"] > 1) == (columns > 1) and one["printed"] == as_printed]
        if not of:
            continue
        broken, gaps, library = (
            np.concatenate([numbers(one[key]) for one in of]) for key in ("broken_rows", "gaps", "library_gaps")
        )
        whole = (broken == 0.0) & np.isfinite(gaps)
        words = f"**{name}**: {int((broken == 0.0).sum())} of {len(broken)} runs survive"
        if whole.any():
            behind = float(np.mean(library[whole] - gaps[whole]))
            words += f", and there the printed update scores {abs(behind):.4f} nats per row "
            words += "below the library's" if behind > 0.0 else "above the library's"
        lost = int((~np.isfinite(gaps)).sum())
        words += f"; {lost} end in no density at all." if lost else "."
        lines.append(words + units_words(of))
    return " ".join(lines)


def units_words(cases: Sequence[Figures]) -> str:
    """What a change of units does to the scores, if it was tried: it should do nothing."""
    gaps = {(one["warm_up"], one["units"]): one for one in cases if one["offset"] == 0.0}
    pairs = [(gaps[warm_up, 1.0], one) for (warm_up, units), one in gaps.items() if units != 1.0 and (warm_up, 1.0) in gaps]
    if not pairs:
        return ""
    changes = [
        max(float(np.nanmax(np.abs(numbers(one[key]) - numbers(other[key])))) for one, other in pairs)
        for key in ("gaps", "library_gaps")
    ]
    return f" Other units for a column change its score by up to {changes[0]:.4f}, the library's by {changes[1]:.4f}."


VALUES = {"figure1": figure1, "tables": tables, "overfitting": overfitting, "printed": printed}
