"""Paper 004's example made again: 3000 points from 5 clusters, learned by variational Bayes with 20 components.

``python -m pages variational`` measures it and writes docs/papers/variational.md. All data are generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pages.page import Measures, Page
from pages.results import Figures
from papers import variational_methods as code
from papers import variational_values as values
from papers.variational_methods import METHODS, OTHERS, PANELS, STREAMS, WORTHS, Method, Settings, active_components


@dataclass(frozen=True)
class Scale:
    """Data sets: seed of the first, how many, and how many for each of the other settings."""

    first: int = 100
    sets: int = 20
    other_sets: int = 10


def outcomes(methods: dict[str, Method], settings: Settings, seed: int) -> Figures:
    """Active components and held-out gap to the truth of each method on one data set."""
    data, found = settings.data(seed), {}
    for name, method in methods.items():
        model = method.learn(data, settings.prior(data))
        found[name] = [len(active_components(model)), float(model.score(data.held_out)) - data.truth_score]
    return found


def named(methods: Sequence[Method]) -> dict[str, Method]:
    return {method.name: method for method in methods}


def measure_methods(scale: Scale, data: Path | None) -> Measures:
    for seed in range(scale.first, scale.first + scale.sets):
        yield f"{seed}", partial(outcomes, named(METHODS), Settings(), seed)


def measure_worths(scale: Scale, data: Path | None) -> Measures:
    by_worth = {f"{worth:g}": code.without_warm_up(worth) for worth in WORTHS}
    for seed in range(scale.first, scale.first + scale.sets):
        yield f"{seed}", partial(outcomes, by_worth, Settings(), seed)


def measure_others(scale: Scale, data: Path | None) -> Measures:
    seeds = range(scale.first, scale.first + scale.other_sets)
    for name, settings in OTHERS.items():
        yield name, lambda settings=settings: {"sets": [outcomes(named(STREAMS), settings, seed) for seed in seeds]}


def measure_panels(scale: Scale, data: Path | None) -> Measures:
    for method in PANELS:
        yield method.name, partial(panel, method, Settings(), scale.first)


def panel(method: Method, settings: Settings, seed: int) -> Figures:
    """What a panel of the picture shows: the parameters of one model."""
    data = settings.data(seed)
    model = method.learn(data, settings.prior(data))
    return {name: getattr(model, f"{name}_").tolist() for name in ("weights", "means", "covariances")}


PAGE = Page(
    name="variational", room="papers", full=Scale(), quick=Scale(sets=2, other_sets=1), minutes=3,
    seeds="100 to 119; 100 to 109 for other settings",
    parts={"panels": measure_panels, "methods": measure_methods, "worths": measure_worths, "others": measure_others},
    values=values.VALUES, names={"code": code, "values": values, "chosen": Settings()}, pictures={"variational": values.draw},
)  # fmt: skip
