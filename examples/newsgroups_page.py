"""The section about newsgroups: its tables, its words and its picture, made of the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from examples.tables import drawing, listed, middle, percent, spread, table

TITLE = "Newsgroups: a mixture of multinomials"
STREAM, FIRST, STARTED = "one pass", "one pass, labelled first", "labelled as start, then one pass"
FIT, NB, KMEANS = "`fit`, many passes", "naive Bayes (scikit-learn)", "mini-batch k-means, tf-idf (scikit-learn)"
LATE = 0.02  # of accuracy that a renaming of components may bring, and nothing is said of it
COLORS = {STREAM: "#1b6ca8", FIRST: "#e07b39", STARTED: "#4a9d5f", FIT: "#9467a8", NB: "#222222", KMEANS: "#c43c4d"}


def values(figures: dict[str, Any], percentage: str, name: str, key: str) -> list[float]:
    """What the runs of one learner gave, seed by seed; without labels, accuracy is that of the best matching."""
    if key == "accuracy" and percentage == "0":
        key = "matched"
    return [one[key] for one in figures["runs"][percentage][name]]


def accuracy(figures: dict[str, Any], percentage: str, name: str) -> float:
    """The median accuracy."""
    return middle(values(figures, percentage, name, "accuracy"))


def section(figures: dict[str, Any]) -> list[str]:
    """The lines of the section."""
    told = [f"{number:,} ({percentage} %)" for percentage, number in figures["told"].items() if percentage not in ("0", "100")]
    alphas = listed([f"{alpha:g}" for alpha in figures["alphas"]])
    return [
        f"{figures['documents']:,} documents from {figures['groups']} newsgroups to learn from ({figures['tokens']:,} words, "
        f"{figures['words']:,} different), and {figures['judged']:,} later ones to judge by. A mixture of "
        f"{figures['groups']} multinomials learns them in one pass, {figures['chunk']} at a time in a random order, while the "
        "groups of none, some or all of them are told.",
        "",
        "```python",
        f"model = hw.MultinomialMixture({figures['groups']})",
        "for counts, groups in chunks:  # sparse counts; the group of each document, -1 where it is not told",
        "    model.partial_fit(counts, labels=groups)",
        "model.predict(counts)  # the component of each document: its group, where groups were told",
        "```",
        "",
        "![Accuracy by the share of documents whose group is told](newsgroups.png)",
        "",
        f"Median and range over the seeds ({figures['seeds']}), which decide the order, the labelled documents and the start. "
        "Hollow: accuracy after the best one-to-one matching of components to groups.",
        "",
        "- **Labels**: the same share of each group, drawn at random"
        + (f": {listed(told)} of {figures['documents']:,} documents." if told else "."),
        f"- **{STREAM}**: labelled and other documents come mixed, as drawn. **{FIRST}**: the same stream, labelled documents "
        f"at its beginning. **{STARTED}**: `warm_start_from(labelled, labels=...)`, then `partial_fit` of the others. "
        f"**{FIT}**: all documents at hand. All with the library's defaults.",
        f"- **{NB}**: `MultinomialNB` on the labelled documents only, alpha chosen from {alphas} by {figures['folds']} folds "
        f"of them. **{KMEANS}**: `MiniBatchKMeans(n_init={figures['kmeans_starts']})` on tf-idf (sublinear, unit length).",
        "- **Accuracy**: on the later documents; without labels, that of the best one-to-one matching of clusters to groups, "
        "which is also given for the others. NMI and ARI: normalised mutual information and adjusted Rand index with the "
        "groups. Score: log-probability per word of the later documents, in nats.",
        "",
        *outcomes_table(figures),
        "",
        *words(figures),
        "",
        "### What the components are",
        "",
        "One pass without labels, seed 0. Documents: how many of the later ones are in the component; the group that most of "
        "them are of, and their share. Matched: the group in the one-to-one matching, if it is another one. Words: those that "
        "tell the component from the others best, by p log(p / p in all components).",
        "",
        *table(
            ("commonest group", "share", "documents", "weight", "words", "matched"),
            [
                (
                    one["group"], percent(one["share"]), f"{one['documents']}", f"{one['weight']:.3f}",
                    ", ".join(one["words"]), "" if one["matched"] == one["group"] else one["matched"],
                )
                for one in figures["components"]
            ],
        ),
    ]  # fmt: skip


def outcomes_table(figures: dict[str, Any]) -> list[str]:
    """All learners by the share of labels."""
    lines = []
    for percentage, runs in figures["runs"].items():
        for name, ones in runs.items():
            cells = [spread(values(figures, percentage, name, key), 3) for key in ("accuracy", "matched", "nmi", "ari")]
            score = "" if ones[0]["score"] is None else spread(values(figures, percentage, name, "score"), 3)
            lines.append(
                [f"{percentage} %", name, *cells, score, f"{middle(values(figures, percentage, name, 'seconds')):.2f}"]
            )
    return table(("labels", "learner", "accuracy", "if matched", "NMI", "ARI", "score", "seconds"), lines)


def compared(mine: float, theirs: float) -> str:
    """A difference of accuracies in words."""
    points = 100 * (mine - theirs)
    if abs(points) < 0.05:
        return "level with"
    return f"{abs(points):.1f} points {'above' if points >= 0.0 else 'below'}"


def words(figures: dict[str, Any]) -> list[str]:
    """What the table says."""
    lines = []
    if "0" in figures["runs"]:
        mine, passes, theirs = (accuracy(figures, "0", name) for name in (STREAM, FIT, KMEANS))
        lines.append(
            f"- Without labels one pass has {percent(mine)} of the later documents in the right group, "
            f"{compared(mine, theirs)} k-means and {compared(mine, passes)} `fit`."
        )
    for percentage in figures["runs"]:
        if percentage in ("0", "100"):
            continue
        found = {name: accuracy(figures, percentage, name) for name in (STREAM, FIRST, STARTED, FIT)}
        best, theirs = max(found, key=lambda name: found[name]), accuracy(figures, percentage, NB)
        line = (
            f'- With {percentage} % of the labels the best is "{best}", {percent(found[best])}: {compared(found[best], theirs)}'
            f" naive Bayes, which cannot use the other documents. Labels that come mixed in the stream end "
            f"{compared(found[STREAM], found[FIRST])} those that come first"
        )
        late = middle(values(figures, percentage, STREAM, "matched")) - found[STREAM]
        if late > LATE:
            line += (
                f". With its components renamed after the fact, that stream would have {100 * late:.1f} points more: the start "
                "is found on the first documents, and a group without labels among these may have another component when its "
                "labels come"
            )
        lines.append(line + ".")
    if "100" in figures["runs"]:
        mine, theirs = accuracy(figures, "100", STREAM), accuracy(figures, "100", NB)
        lines.append(
            f"- With all labels nothing is left to cluster: the mixture, its prior as it comes, is {compared(mine, theirs)} "
            f"naive Bayes with its alpha chosen ({percent(mine)})."
        )
    return lines  # fmt: skip


def draw(path: Path, figures: dict[str, Any]) -> None:
    """Accuracy by the share of labels; hollow where it is that of the best matching."""
    percentages = [*figures["runs"]]
    with drawing(path, 8.5, 4.6) as figure:
        axes = figure.subplots()
        for place, (name, color) in enumerate(COLORS.items()):
            at = [index for index, one in enumerate(percentages) if name in figures["runs"][one]]
            for key, hollow in (("accuracy", False), ("matched", True)):
                chosen = [index for index in at if (hollow and name in (STREAM, FIT)) or hollow == (percentages[index] == "0")]
                runs = [values(figures, percentages[index], name, key) for index in chosen]
                low, mid, high = (np.array([one(run) for run in runs]) for one in (min, middle, max))
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
        axes.set_xlabel("documents whose group is told")
        axes.set_ylabel("accuracy on later documents")
        axes.legend(loc="lower right")
