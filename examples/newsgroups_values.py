"""Values and picture of the page about newsgroups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing
from pages.results import Figures, Results, by_seed
from pages.words import fine_percent, listed, median

STREAM, FIRST, STARTED = "one pass", "one pass, labelled first", "labelled as start, then one pass"
FIT, NB, KMEANS = "`fit`, many passes", "naive Bayes (scikit-learn)", "mini-batch k-means, tf-idf (scikit-learn)"
LATE = 0.02  # of accuracy that a renaming of components must bring to be mentioned
COLORS = {STREAM: "#1b6ca8", FIRST: "#e07b39", STARTED: "#4a9d5f", FIT: "#9467a8", NB: "#222222", KMEANS: "#c43c4d"}


def runs(results: Results) -> dict[str, dict[str, dict[str, list[Any]]]]:
    """Outcomes by percentage of labels and learner, seed by seed; without labels, accuracy is that of the best matching."""
    found = by_seed(results.of("learners", "labels/"), "percentage")
    for one in found.get("0", {}).values():
        one["accuracy"] = one["matched"]
    return found


def compared(mine: float, theirs: float) -> str:
    """A difference of accuracies in words."""
    points = 100 * (mine - theirs)
    if abs(points) < 0.05:
        return "level with"
    return f"{abs(points):.1f} points {'above' if points >= 0.0 else 'below'}"


def learners(results: Results) -> dict[str, Any]:
    found = runs(results)
    accuracy = {part: {name: median(one["accuracy"]) for name, one in kept.items()} for part, kept in found.items()}
    corpus = results.figures["learners"]["corpus"]
    some = [f"{one['labelled']:,} ({one['percentage']} %)" for one in results.of("learners", "labels/")
            if 0 < one["percentage"] < 100]  # fmt: skip
    return {
        **corpus, "lines": [(part, name, one) for part, kept in found.items() for name, one in kept.items()],
        "labelled": f": {listed(some)} of {corpus['documents']:,} documents" if some else "",
        "components": results.figures["learners"]["components"]["components"], "none": without(accuracy.get("0")),
        "some": [partly(part, accuracy[part], kept) for part, kept in found.items() if part not in ("0", "100")],
        "all": wholly(accuracy.get("100")),
    }  # fmt: skip


def without(accuracy: dict[str, float] | None) -> Figures | None:
    if accuracy is None:
        return None
    mine, passes, theirs = (accuracy[name] for name in (STREAM, FIT, KMEANS))
    return {"share": fine_percent(mine), "kmeans": compared(mine, theirs), "fit": compared(mine, passes)}


def partly(percentage: str, accuracy: dict[str, float], kept: dict[str, dict[str, list[Any]]]) -> Figures:
    best = max((STREAM, FIRST, STARTED, FIT), key=lambda name: accuracy[name])
    late = median(kept[STREAM]["matched"]) - accuracy[STREAM]
    return {
        "percentage": percentage, "best": best, "share": fine_percent(accuracy[best]),
        "bayes": compared(accuracy[best], accuracy[NB]), "mixed": compared(accuracy[STREAM], accuracy[FIRST]),
        "late": f"{100 * late:.1f}" if late > LATE else "",
    }  # fmt: skip


def wholly(accuracy: dict[str, float] | None) -> Figures | None:
    return accuracy and {"bayes": compared(accuracy[STREAM], accuracy[NB]), "share": fine_percent(accuracy[STREAM])}


def draw(path: Path, results: Results) -> None:
    """Accuracy by the share of labels; hollow where it is that of the best matching."""
    found = runs(results)
    percentages = [*found]
    with drawing(path, 4.6, 8.5, 110) as figure:
        axes = figure.subplots()
        for place, (name, color) in enumerate(COLORS.items()):
            at = [index for index, one in enumerate(percentages) if name in found[one]]
            for key, hollow in (("accuracy", False), ("matched", True)):
                chosen = [index for index in at if (hollow and name in (STREAM, FIT)) or hollow == (percentages[index] == "0")]
                values = [found[percentages[index]][name][key] for index in chosen]
                low, mid, high = (np.array([one(run) for run in values]) for one in (min, median, max))
                aside = np.array(chosen) + 0.04 * (place - 2.5)
                axes.errorbar(
                    aside, mid, [mid - low, high - mid], color=color, marker="o", ms=5, capsize=2, elinewidth=1.0,
                    lw=0.0 if hollow else 1.6, mfc="white" if hollow else color, alpha=0.6 if hollow else 1.0,
                )  # fmt: skip
            axes.plot([], [], color=color, marker="o", label=name.replace("`", ""))
        axes.plot([], [], "o", color="0.5", mfc="white", label="components matched to groups")
        axes.set_xticks(range(len(percentages)), [f"{one} %" for one in percentages])
        axes.set_ylim(0.0, 1.0)
        axes.grid(axis="y", color="0.92")
        axes.set_axisbelow(True)
        axes.set_xlabel("documents with a label")
        axes.set_ylabel("accuracy on test documents")
        axes.legend(loc="lower right")
