"""Paper 003's experiments made again: Bayesian moment matching beside online EM, on generated and on real rows.

``python -m pages moment_matching`` measures them and writes docs/papers/moment_matching.md. Data sets that are not there are
left out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pages.page import Measures, Page
from pages.results import Figures
from papers import moment_matching_learners as learners
from papers import moment_matching_printed as printed
from papers import moment_matching_values as values
from papers.moment_matching_data import LARGE, MISSING, SMALL, Source, Split, Truth, fewest_values
from papers.moment_matching_learners import (
    BMM,
    DMM,
    DMM_PARTS,
    FIGURE_LEARNERS,
    OVERFITTING_LINES,
    SHORT,
    TABLE_LEARNERS,
    Choice,
    WarmUp,
    choose,
    compile_kernels,
    learned,
    line_name,
    warm_up_rows,
)
from papers.moment_matching_pictures import FLOOR, PICTURES
from papers.wilcoxon import SIGNIFICANT

CLOCK = "CPU"  # what seconds are of, but where threads run
# (components, columns, distance of the two closest means) of figure 1
FIGURE_1 = (
    (2, 3, 4.0), (2, 10, 1.5), (3, 4, 2.5), (3, 8, 1.5), (4, 5, 4.0), (4, 10, 2.5), (5, 7, 2.5), (6, 3, 2.5), (6, 10, 4.0),
)  # fmt: skip
OVERFITTING = ("banknote", "abalone", "ccpp", "kin8nm")


# How much is done


@dataclass(frozen=True)
class Scale:
    learn: int = 170_000
    held_out: int = 30_000
    figure_sets: int = len(FIGURE_1)
    check_points: int = 16
    components: tuple[int, ...] = (2, 3, 4, 6, 8, 10)
    splits: int = 7
    at_most: int | None = None
    small: tuple[str, ...] = tuple(source.name for source in SMALL)
    large: tuple[str, ...] = tuple(source.name for source in LARGE)
    many: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 10, 14, 20, 30)
    overfitting: tuple[str, ...] = OVERFITTING
    overfitting_splits: int = 3
    printed_cases: tuple[printed.Case, ...] = printed.CASES
    printed_sets: int = 8
    printed_rows: int = 20_000
    random_steps: int = 200_000


QUICK = Scale(
    learn=3000, held_out=1000, figure_sets=2, check_points=4, components=(2, 3), splits=2, at_most=1500,
    small=("banknote", "plastic"), large=("magic04", "generated_50"), many=(1, 4), overfitting=("banknote",),
    overfitting_splits=1, printed_cases=(printed.CASES[0], printed.CASES[8], printed.CASES[14]), printed_sets=2,
    printed_rows=300, random_steps=2000,
)  # fmt: skip


# Figure 1


def check_points(rows: int, number: int) -> list[int]:
    """Numbers of rows, evenly spaced on a log scale, that end with all."""
    return sorted({round(point) for point in np.geomspace(min(200, rows), rows, number)})


def figure_set(index: int, scale: Scale) -> Figures:
    components, columns, apart = FIGURE_1[index]
    truth = Truth.drawn(components, columns, apart, index)
    drawn = truth.sample(scale.learn + scale.held_out, index)
    learn, judge = drawn[: scale.learn], drawn[scale.learn :]
    points = check_points(scale.learn, scale.check_points)
    lines: dict[str, Any] = {}
    warm_up = 0
    for learner in FIGURE_LEARNERS:
        model, at, seconds, scores = learner.make(components, index), 0, 0.0, []
        for point in points:
            seconds += learned(model, learn[at:point])[1]
            scores.append(float(model.score(judge)))
            at = point
        if learner is BMM:
            warm_up = warm_up_rows(model)
        lines[learner.name] = {"scores": scores, "seconds": seconds}
    return {
        "components": components, "columns": columns, "apart": apart, "truth": truth.score(judge),
        "parameters": truth.parameters, "warm_up": warm_up, "rows": points, "learners": lines,
        "clock": CLOCK,
    }  # fmt: skip


def make_figure1(scale: Scale, directory: Path | None) -> Measures:
    for index in range(scale.figure_sets):
        yield f"{index + 1}", partial(figure_set, index, scale)


# Tables 1 to 3


def table_set(source: Source, scale: Scale, directory: Path | None, warm_up: WarmUp) -> Figures:
    rows, truth = source.load(directory, scale.at_most), source.truth()
    components = scale.components if source.components is None else (source.components,)
    found: dict[str, Figures] = {learner.name: {"scores": [], "seconds": []} for learner in TABLE_LEARNERS}
    choices: dict[str, Choice] = {}
    threads = min(DMM_PARTS, os.cpu_count() or 1)
    result: dict[str, Any] = {
        "title": source.title, "rows": len(rows), "columns": rows.shape[1], "paper": source.paper, "note": source.note,
        "generated": truth is not None, "values": len(rows) if truth else fewest_values(rows), "truth": [], "threads": threads,
        "learners": found, "clock": CLOCK,
    }  # fmt: skip
    for seed in range(min(source.splits, scale.splits)):
        split = Split.drawn(rows, seed)
        if truth is not None:
            result["truth"].append(split.truth_score(truth))
        for learner in TABLE_LEARNERS:
            if learner.name not in choices:
                choices[learner.name] = choose(learner, split, components, warm_up)
                found[learner.name] |= vars(choices[learner.name])
            choice = choices[learner.name]
            model, seconds = learned(learner.make(choice.components, seed, warm_up, choice.alpha), split.learn)
            found[learner.name]["scores"].append(float(model.score(split.judge)))
            found[learner.name]["seconds"].append(seconds)
            if learner is BMM and seed == 0:
                result["warm_up"] = min(1.0, warm_up_rows(model) / len(split.learn))
            if learner is DMM and seed == 0:
                for name, one, number in (("alone", BMM, 1), ("threaded", DMM, threads)):
                    model = one.make(choices[one.name].components, seed, warm_up, choice.alpha, number)
                    result[f"{name}_seconds"] = learned(model, split.learn, time.perf_counter)[1]
    return result


def make_tables(scale: Scale, directory: Path | None) -> Measures:
    kinds: tuple[tuple[str, Sequence[Source], Sequence[str], WarmUp], ...] = (
        ("small", SMALL, scale.small, "auto"),
        ("short", SMALL, scale.small, SHORT),
        ("large", LARGE, scale.large, "auto"),
    )
    for kind, sources, wanted, warm_up in kinds:
        for source in sources:
            if source.name in wanted and source.available(directory):
                yield f"{kind}/{source.name}", partial(table_set, source, scale, directory, warm_up)


# More components than there are


def overfitting_set(source: Source, scale: Scale, directory: Path | None) -> Figures:
    rows = source.load(directory)
    splits = [Split.drawn(rows, seed, learn_at_most=1000, judge_at_most=3000) for seed in range(scale.overfitting_splits)]
    lines: dict[str, list[list[float]]] = {line_name(*line): [] for line in OVERFITTING_LINES}
    for components in scale.many:
        for learner, warm_up in OVERFITTING_LINES:
            scores = []
            for seed, split in enumerate(splits):
                model, _ = learned(learner.make(components, seed, warm_up, 0.8), split.learn)
                scores.append(float(model.score(split.judge)))
            lines[line_name(learner, warm_up)].append(scores)
    return {
        "title": source.title, "learn": len(splits[0].learn), "judge": len(splits[0].judge), "columns": rows.shape[1],
        "components": list(scale.many), "lines": lines,
    }  # fmt: skip


def make_overfitting(scale: Scale, directory: Path | None) -> Measures:
    for source in (*SMALL, *LARGE):
        if source.name in scale.overfitting and source.available(directory):
            yield source.name, partial(overfitting_set, source, scale, directory)


# The printed update


def make_printed(scale: Scale, directory: Path | None) -> Measures:
    def random_steps() -> Figures:
        shares = {f"{offset:g}": printed.random_steps(offset, scale.random_steps) for offset in printed.OFFSETS}
        return {"steps": scale.random_steps, "share": shares}

    yield "random steps", random_steps
    rows, held_out = scale.printed_rows, max(300, scale.printed_rows // 2)
    for case in scale.printed_cases:
        yield case.name, partial(printed.streamed, case, scale.printed_sets, rows, held_out, BMM.make)


def absent(scale: Scale, directory: Path | None) -> list[str]:
    wanted = {*scale.small, *scale.large, *scale.overfitting}
    missing = (source.title for source in (*SMALL, *LARGE) if source.name in wanted and not source.available(directory))
    return [*dict.fromkeys(missing)]


PAGE = Page(
    name="moment_matching", room="papers", full=Scale(), quick=QUICK, minutes=25,
    seeds="the number of the set or of the split",
    parts={"printed": make_printed, "figure1": make_figure1, "overfitting": make_overfitting, "tables": make_tables},
    values=values.VALUES,
    names={
        "code": learners, "values": values, "update": printed, "MISSING": MISSING, "FLOOR": FLOOR, "SIGNIFICANT": SIGNIFICANT,
        "learners": (*FIGURE_LEARNERS, learners.BATCH_EM),
    },
    pictures=PICTURES, absent=absent, prepare=compile_kernels, silent=(ConvergenceWarning,),
)  # fmt: skip
