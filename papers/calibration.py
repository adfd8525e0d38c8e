"""Are beliefs right? Simulation-based calibration of every algorithm, and the coverage of its credible intervals.

Run it with ``python -m papers.calibration``; it writes docs/papers/calibration.md, the pictures beside it and the figures
behind both (calibration.json). A run that was broken off goes on where it ended; ``--only`` makes parts again, ``--fresh`` all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import headwater as hw
from headwater.cli.support.contenders import legal_algorithms
from papers.calibration_gibbs import observe_exact
from papers.calibration_mending import observe_mended
from papers.calibration_page import render, sentences
from papers.calibration_ranks import Way, by_ambiguity, draws, figures, observe
from papers.calibration_results import FULL, NAME, PARTS, Figures, Results, Scale
from papers.calibration_subjects import Counts, Gaussians, Lines, Subject

OUT = Path(__file__).resolve().parents[1] / "docs" / "papers"
QUICK = Scale.of(6)
KINDS = ("full", "diag")
FEW, MANY = {"n_rows": 150, "warm_up": 50}, {"n_rows": 1500, "warm_up": 150}
APART, OVERLAPPING = 0.01, 0.1  # rows that the prior mean is worth
REGIMES = {
    "separated, few rows": Gaussians(mean_precision=APART, **FEW),  # type: ignore[arg-type]
    "separated, many rows": Gaussians(mean_precision=APART, **MANY),  # type: ignore[arg-type]
    "overlapping, few rows": Gaussians(mean_precision=OVERLAPPING, **FEW),  # type: ignore[arg-type]
    "overlapping, many rows": Gaussians(mean_precision=OVERLAPPING, **MANY),  # type: ignore[arg-type]
}
OTHERS: dict[str, Subject] = {
    "MultinomialMixture, 40 counts a row": Counts(length=40),
    "MultinomialMixture, 8 counts a row": Counts(length=8),
    "RegressionMixture": Lines(),
}
TIGHT = ("tol", 1e-7), ("max_iter", 3000)
OWN = (("warm_up", "auto"),)
Measures = Iterator[tuple[str, Callable[[], Figures]]]


def ways(subject: Subject) -> list[Way]:
    """Every algorithm that a model can be learned by, as `fit` uses it; what "auto" does to a stream is another."""
    words = legal_algorithms(subject.estimator(subject.components))
    streamed = Way("auto (stream)", "auto", streamed=True)
    return [way for word in words for way in (Way(word, word), *([streamed] if word == "auto" else []))]


def start_ways() -> list[Way]:
    """The same algorithms from better and worse starts.

    A stream is not begun at the truth: it would stay nearer to it than its rows allow.
    """
    return [
        Way("auto, warm-up of its own", "auto", settings=OWN),
        Way("auto (stream), warm-up of its own", "auto", streamed=True, settings=OWN),
        Way("vb, tol=1e-3", "vb"),
        Way("vb, tol=1e-7", "vb", settings=TIGHT),
        Way("vb, tol=1e-7, from the truth", "vb", settings=TIGHT, from_truth=True),
        *(
            Way(f"{word}, warm-up of {rows} rows", word, settings=(("warm_up", rows),))
            for word in ("online-vb", "moment-matching")
            for rows in (30, 150, 750)
        ),
        Way("moment-matching by kl, warm-up of 150 rows", hw.MomentMatching("kl", "kl")),
    ]


# What is measured


def measured(subject: Subject, of: Sequence[Way], simulations: int) -> Figures:
    drawn = draws(subject, range(simulations))
    return {way.name: figures(observe(subject, way, drawn)) for way in of}


def make_one(scale: Scale) -> Measures:
    for kind in KINDS:
        subject = Gaussians(1, kind, n_rows=30, warm_up=10)
        yield kind, partial(measured, subject, ways(subject), scale.one)


def gaussian_set(kind: str, simulations: int) -> Figures:
    seen: dict[str, list[Any]] = {}
    found: Figures = {}
    for name, regime in REGIMES.items():
        subject = replace(regime, covariance_type=kind)
        drawn = draws(subject, range(simulations))
        found[name] = {}
        for way in ways(subject):
            observed = observe(subject, way, drawn)
            found[name][way.name] = figures(observed)
            seen.setdefault(way.name, []).append(observed)
    return {"regimes": found, "ambiguity": {way: by_ambiguity(many) for way, many in seen.items()}}


def make_gaussian(scale: Scale) -> Measures:
    for kind in KINDS:
        yield kind, partial(gaussian_set, kind, scale.gaussian)


def make_starts(scale: Scale) -> Measures:
    yield "overlapping, many rows", partial(measured, REGIMES["overlapping, many rows"], start_ways(), scale.gaussian)


def make_exact(scale: Scale) -> Measures:
    def compared() -> Figures:
        subject, named = REGIMES["overlapping, few rows"], Way("vb", "vb")
        drawn = draws(subject, range(scale.gaussian))
        exact = observe_exact(subject, named, drawn, scale.sweeps)
        return {"exact posterior": figures(exact), "vb": figures(observe(subject, named, drawn))}

    yield "overlapping, few rows", compared


def mended_set(subject: Gaussians, simulations: int) -> Figures:
    drawn, found = draws(subject, range(simulations)), {}
    for way in (
        Way("auto", "auto", settings=OWN),
        Way("vb, tol=1e-7", "vb", settings=TIGHT),
        Way("vb, tol=1e-7, from the truth", "vb", settings=TIGHT, from_truth=True),
    ):
        plain, mended = observe_mended(subject, way, drawn)
        found |= {way.name: figures(plain), f"{way.name}, widened": figures(mended)}
    return found


def make_mended(scale: Scale) -> Measures:
    for name in ("separated, few rows", "overlapping, few rows", "overlapping, many rows"):
        yield name, partial(mended_set, REGIMES[name], scale.gaussian)


def make_others(scale: Scale) -> Measures:
    for name, subject in OTHERS.items():
        yield name, partial(measured, subject, ways(subject), scale.others)


MAKERS = {
    "one": make_one, "gaussian": make_gaussian, "starts": make_starts, "exact": make_exact, "mended": make_mended,
    "others": make_others,
}  # fmt: skip


# The command


def run(results: Results, parts: Sequence[str]) -> None:
    scale = Scale(**results.scale)  # type: ignore[arg-type]
    with threadpool_limits(1):
        for part in parts:
            kept = results.figures.setdefault(part, {})
            for name, measure in MAKERS[part](scale):
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
    parser.add_argument("--quick", action="store_true", help="few simulations, for a test of the command")
    parser.add_argument("--only", choices=PARTS, action="append", help="make this part only (may be given again)")
    parser.add_argument("--fresh", action="store_true", help="do not go on with a run that was broken off")
    parser.add_argument("--render", action="store_true", help="write page and pictures again from the figures there are")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write (default: docs/papers)")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    scale: Any = asdict(QUICK if options.quick else FULL)
    results: Any = Results.read(options.out / f"{NAME}.json", scale)
    if options.render:
        if not results.figures:
            parser.error(f"there are no figures to render in {options.out}")
    else:
        if results.scale != scale:
            parser.error(f"{options.out} holds the figures of a run of another size: give another --out")
        run(results, results.begin(options.only or (), options.fresh))
    render(results, options.out)
    print("\n".join(sentences(results)))
    print(f"\nWrote {NAME}.md, its pictures and its figures to {options.out} in {time.perf_counter() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
