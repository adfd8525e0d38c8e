"""Paper 000's comparison over many generated sets, each with a mixture of its own: its long documents, and soft ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import headwater as hw
from headwater.core.statistics import Array
from pages.page import Measures
from pages.results import Figures, Results
from papers import boem_data as data
from papers.boem_data import MEAN_LENGTH, Truth
from papers.boem_learners import BATCH, HARMONIC, LITERAL, OWN, POWER, VANISHING, batch, bayesian, harmonic, own, power
from papers.boem_scale import Scale
from papers.wilcoxon import arrow

FIRST_SEED = 100  # none of these sets is on the rest of the page
AUTO = 'headwater, "auto"'


@dataclass(frozen=True)
class Kind:
    """Documents of a mean length and its standard deviation, in so many columns at most."""

    name: str
    clusters: int
    columns: int
    length: int
    spread: float


LONG = Kind("long", 5, 1000, MEAN_LENGTH, 50.0)
SOFT = Kind("soft", 2, 6, 6, 1.0)  # an overlap in which no document is sure of its cluster
KINDS = (LONG, SOFT)


def learners_of(kind: Kind, scale: Scale) -> dict[str, Callable[[Array, Any, int], Any]]:
    """Ways to learn rows from a start; the last two seek their own, by a seed."""
    return {
        LITERAL.name: lambda start, rows, seed: bayesian(start, 1.0).partial_fit(rows),
        VANISHING.name: lambda start, rows, seed: VANISHING.make(start).partial_fit(rows),
        POWER.name: lambda start, rows, seed: power(start, kind.length).partial_fit(rows),
        HARMONIC.name: lambda start, rows, seed: harmonic(start, kind.length).partial_fit(rows),
        BATCH: lambda start, rows, seed: batch(start, 1.0, rows, scale.passes)[0],
        OWN: lambda start, rows, seed: own(kind.clusters, seed).partial_fit(rows),
        AUTO: lambda start, rows, seed: hw.MultinomialMixture(kind.clusters, random_state=seed, n_threads=1).partial_fit(rows),
    }


def sets_set(kind: Kind, scale: Scale) -> Figures:
    """Log-likelihood per document minus the generating mixture's, by learner: for each set its mean over the starts."""
    columns = min(kind.columns, scale.columns)
    makers = learners_of(kind, scale)
    final: dict[str, list[float]] = {name: [] for name in makers}
    margins = []
    for number in range(scale.own):
        truth = Truth.drawn(kind.clusters, columns, FIRST_SEED + number)
        rows = truth.sample(scale.set_documents, kind.spread, FIRST_SEED + number, kind.length)
        counts, best = csr_array(rows), truth.score(rows)
        margins.append(truth.margin * kind.length / MEAN_LENGTH)
        begun = data.starts("uniform", scale.set_starts, kind.clusters, rows)
        for name, make in makers.items():
            ends = [float(make(start, counts, seed).score(rows)) - best for seed, start in enumerate(begun)]
            final[name].append(float(np.mean(ends)))
    return {
        "kind": kind.name, "clusters": kind.clusters, "columns": columns, "length": kind.length, "spread": kind.spread,
        "documents": scale.set_documents, "sets": scale.own, "starts": scale.set_starts, "passes": scale.passes,
        "margin": float(np.median(margins)), "digits": ".1f" if kind is LONG else ".4f", "final": final,
    }  # fmt: skip


def measure_sets(scale: Scale, directory: Path | None) -> Measures:
    for kind in KINDS:
        yield kind.name, partial(sets_set, kind, scale)


# What the page says


def deviation(values: Sequence[float]) -> float:
    """Standard deviation over the sets."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def compared(final: dict[str, list[float]], name: str, other: str) -> str:
    """How one learner ends beside another, set by set."""
    words = {"↑": "better", "↓": "worse", "": "no different"}[arrow(final[name], final[other])]
    return f"{words} (higher in {int(np.sum(np.greater(final[name], final[other])))} of {len(final[name])} sets)"


def over_sets(results: Results) -> dict[str, Any]:
    """The tables, and what they say of the paper's comparison."""
    found = [one for kind in KINDS if (one := results.one("sets", kind.name))]
    said = []
    for one in found:
        for name in (LITERAL.name, VANISHING.name, AUTO):
            rivals = [f"{other}: {compared(one['final'], name, other)}" for other in (POWER.name, HARMONIC.name, BATCH)]
            said.append(f"{one['kind']} documents, {name} beside " + "; ".join(rivals))
    return {"sets": found, "said": said}
