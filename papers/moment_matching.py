"""Paper 003's experiments made again: Bayesian moment matching beside online EM, on generated and on real rows.

Run it with ``python -m papers.moment_matching``; it writes docs/papers/moment_matching.md, the pictures beside it and the
figures behind both (moment_matching.json). The directory of data sets is named by HEADWATER_DATA or ``--data``; sets that
are not there are skipped. A run that was broken off goes on where it ended; ``--only`` makes parts again.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from papers import moment_matching_printed as printed
from papers.moment_matching_claims import claims
from papers.moment_matching_data import LARGE, SMALL, Source, Split, Truth, data_directory, fewest_values
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
from papers.moment_matching_page import NAME, render
from papers.moment_matching_results import PARTS, Results

OUT = Path(__file__).resolve().parents[1] / "docs" / "papers"
# (components, columns, distance of the two closest means) of figure 1
FIGURE_1 = (
    (2, 3, 4.0), (2, 10, 1.5), (3, 4, 2.5), (3, 8, 1.5), (4, 5, 4.0), (4, 10, 2.5), (5, 7, 2.5), (6, 3, 2.5), (6, 10, 4.0),
)  # fmt: skip
OVERFITTING = ("banknote", "abalone", "ccpp", "kin8nm")
Measures = Iterator[tuple[str, Callable[[], Any]]]  # the sets of a part, and what measures each


# How much is done


@dataclass(frozen=True)
class Scale:
    name: str
    learn: int = 170_000
    held_out: int = 30_000
    figure_sets: int = len(FIGURE_1)
    check_points: int = 16
    components: tuple[int, ...] = tuple(range(2, 11))
    splits: int = 10
    at_most: int | None = None
    small: tuple[str, ...] = tuple(source.name for source in SMALL)
    large: tuple[str, ...] = tuple(source.name for source in LARGE)
    many: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 10, 14, 20, 30)
    overfitting: tuple[str, ...] = OVERFITTING
    overfitting_splits: int = 5
    printed_cases: tuple[printed.Case, ...] = printed.CASES
    printed_sets: int = 12
    printed_rows: int = 20_000
    random_steps: int = 200_000


FULL = Scale("full")
QUICK = Scale(
    "quick", learn=3000, held_out=1000, figure_sets=2, check_points=4, components=(2, 3), splits=2, at_most=1500,
    small=("banknote", "plastic"), large=("magic04", "generated_50"), many=(1, 4), overfitting=("banknote",),
    overfitting_splits=1, printed_cases=(printed.CASES[0], printed.CASES[8], printed.CASES[14]), printed_sets=2,
    printed_rows=300, random_steps=2000,
)  # fmt: skip
SCALES = {scale.name: scale for scale in (FULL, QUICK)}


# Figure 1


def check_points(rows: int, number: int) -> list[int]:
    """Numbers of rows, evenly spaced on a log scale, that end with all."""
    return sorted({round(point) for point in np.geomspace(min(200, rows), rows, number)})


def figure_set(index: int, scale: Scale) -> dict[str, Any]:
    components, columns, apart = FIGURE_1[index]
    truth = Truth.drawn(components, columns, apart, index)
    drawn = truth.sample(scale.learn + scale.held_out, index)
    learn, judge = drawn[: scale.learn], drawn[scale.learn :]
    points = check_points(scale.learn, scale.check_points)
    learners: dict[str, Any] = {}
    warm_up = 0
    for learner in FIGURE_LEARNERS:
        model, at, seconds, scores = learner.make(components, index), 0, 0.0, []
        for point in points:
            seconds += learned(model, learn[at:point])[1]
            scores.append(float(model.score(judge)))
            at = point
        if learner is BMM:
            warm_up = warm_up_rows(model)
        learners[learner.name] = {"scores": scores, "seconds": seconds}
    return {
        "components": components, "columns": columns, "apart": apart, "truth": truth.score(judge),
        "parameters": truth.parameters, "warm_up": warm_up, "rows": points, "learners": learners,
    }  # fmt: skip


def make_figure1(scale: Scale, directory: Path | None) -> Measures:
    for index in range(scale.figure_sets):
        yield f"{index + 1}", partial(figure_set, index, scale)


# Tables 1 to 3


def table_set(source: Source, scale: Scale, directory: Path | None, warm_up: WarmUp) -> dict[str, Any]:
    rows, truth = source.load(directory, scale.at_most), source.truth()
    components = scale.components if source.components is None else (source.components,)
    found: dict[str, dict[str, Any]] = {learner.name: {"scores": [], "seconds": []} for learner in TABLE_LEARNERS}
    choices: dict[str, Choice] = {}
    threads = min(DMM_PARTS, os.cpu_count() or 1)
    result: dict[str, Any] = {
        "title": source.title, "rows": len(rows), "columns": rows.shape[1], "paper": source.paper, "note": source.note,
        "generated": truth is not None, "values": len(rows) if truth else fewest_values(rows), "truth": [], "threads": threads,
        "learners": found,
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
                model = learner.make(choice.components, seed, warm_up, choice.alpha, threads)
                result["threaded_seconds"] = learned(model, split.learn)[1]
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


def overfitting_set(source: Source, scale: Scale, directory: Path | None) -> dict[str, Any]:
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
    def random_steps() -> dict[str, Any]:
        shares = {f"{offset:g}": printed.random_steps(offset, scale.random_steps) for offset in printed.OFFSETS}
        return {"steps": scale.random_steps, "share": shares}

    yield "random steps", random_steps
    rows, held_out = scale.printed_rows, max(300, scale.printed_rows // 2)
    for case in scale.printed_cases:
        yield case.name, partial(printed.streamed, case, scale.printed_sets, rows, held_out, BMM.make)


MAKERS = {"figure1": make_figure1, "tables": make_tables, "overfitting": make_overfitting, "printed": make_printed}


# The command


def run(results: Results, parts: Sequence[str], directory: Path | None) -> None:
    scale = SCALES[results.scale]
    wanted = {*scale.small, *scale.large, *scale.overfitting}
    missing = (source.title for source in (*SMALL, *LARGE) if source.name in wanted and not source.available(directory))
    results.absent = list(dict.fromkeys(missing))
    with threadpool_limits(1):
        compile_kernels()
        for part in parts:
            kept = results.figures.setdefault(part, {})
            for name, measure in MAKERS[part](scale, directory):
                if name in kept:
                    continue
                began = time.perf_counter()
                kept[name] = measure()
                print(f"{part}: {name}, {time.perf_counter() - began:.1f} s", flush=True)
                results.write()
            results.pending.remove(part)
            results.write()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m papers.{NAME}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and small sets, for a test of the command")
    parser.add_argument("--only", choices=PARTS, action="append", help="make this part only (may be given again)")
    parser.add_argument("--fresh", action="store_true", help="do not go on with a run that was broken off")
    parser.add_argument("--render", action="store_true", help="write page and pictures again from the figures there are")
    parser.add_argument("--data", type=Path, default=data_directory(), help="directory of data sets (default: HEADWATER_DATA)")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write (default: docs/papers)")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    scale = (QUICK if options.quick else FULL).name
    results = Results.read(options.out / f"{NAME}.json", scale)
    if options.render:
        if not results.figures:
            parser.error(f"there are no figures to render in {options.out}")
    else:
        if results.scale != scale:
            parser.error(f"{options.out} holds the figures of a {results.scale} run: give another --out")
        run(results, results.begin(options.only or (), options.fresh), options.data)
    render(results, options.out)
    print("\n".join(claims(results)))
    print(f"\nWrote {NAME}.md, its pictures and its figures to {options.out} in {time.perf_counter() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
