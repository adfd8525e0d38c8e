"""Are beliefs right? Simulation-based calibration of every algorithm, and the coverage of its credible intervals.

``python -m pages calibration`` measures it and writes docs/papers/calibration.md. All data are generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.cli.support.contenders import legal_algorithms
from pages.page import Measures, Page
from pages.results import Figures
from papers import calibration_values as values
from papers.calibration_gibbs import observe_exact
from papers.calibration_pictures import PICTURES, QUANTITIES
from papers.calibration_ranks import Way, by_ambiguity, draws, figures, observe
from papers.calibration_subjects import Counts, Gaussians, Lines, Subject
from papers.calibration_widening import observe_widened

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
WIDENED_SETS = (("overlapping, many rows", "full"), ("overlapping, many rows", "diag"), ("overlapping, few rows", "full"))
WIDENED_WAYS = (
    Way("auto", "auto", settings=OWN),
    Way("auto (stream)", "auto", streamed=True),
    Way("vb, tol=1e-7, from the truth", "vb", settings=TIGHT, from_truth=True),
    Way("online-vb", "online-vb", streamed=True),
    Way("moment-matching", "moment-matching", streamed=True),
)


@dataclass(frozen=True)
class Scale:
    """Simulations of one component, of Gaussian regimes, of other models; and sweeps of Gibbs sampling."""

    one: int = 150
    gaussian: int = 100
    others: int = 80
    sweeps: int = 600


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


def make_one(scale: Scale, data: Path | None) -> Measures:
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


def make_gaussian(scale: Scale, data: Path | None) -> Measures:
    for kind in KINDS:
        yield kind, partial(gaussian_set, kind, scale.gaussian)


def make_starts(scale: Scale, data: Path | None) -> Measures:
    yield "overlapping, many rows", partial(measured, REGIMES["overlapping, many rows"], start_ways(), scale.gaussian)


def make_exact(scale: Scale, data: Path | None) -> Measures:
    def compared() -> Figures:
        subject, named = REGIMES["overlapping, few rows"], Way("vb", "vb")
        drawn = draws(subject, range(scale.gaussian))
        exact = observe_exact(subject, named, drawn, scale.sweeps)
        return {"exact posterior": figures(exact), "vb": figures(observe(subject, named, drawn))}

    yield "overlapping, few rows", compared


def widened_set(subject: Gaussians, simulations: int) -> Figures:
    drawn, found = draws(subject, range(simulations)), {}
    for way in WIDENED_WAYS:
        plain, wider = observe_widened(subject, way, drawn)
        found |= {way.name: figures(plain), f"{way.name}, widened": figures(wider)}
    return found


def make_widened(scale: Scale, data: Path | None) -> Measures:
    for name, kind in WIDENED_SETS:
        subject = replace(REGIMES[name], covariance_type=kind)
        yield f"{name}, {kind} covariance", partial(widened_set, subject, scale.gaussian)


def make_others(scale: Scale, data: Path | None) -> Measures:
    for name, subject in OTHERS.items():
        yield name, partial(measured, subject, ways(subject), scale.others)


PAGE = Page(
    name="calibration", room="papers", full=Scale(), quick=Scale(6, 6, 6, 120), minutes=8,
    seeds="0 to the number of simulations",
    parts={
        "one": make_one, "exact": make_exact, "starts": make_starts, "widened": make_widened, "others": make_others,
        "gaussian": make_gaussian,
    },
    values=values.VALUES, filters=values.FILTERS, pictures=PICTURES,
    names={"code": values, "QUANTITIES": QUANTITIES, "APART": APART, "OVERLAPPING": OVERLAPPING},
)  # fmt: skip
