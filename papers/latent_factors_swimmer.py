"""Section 4.4 of paper 001: swimmers, the learners of their limbs, and how many limbs were found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

import headwater as hw
from headwater.core.algorithm import Algorithm
from headwater.core.statistics import Array
from pages.results import Figures
from papers.latent_factors_scale import Scale, coded

SIDE = 32
NOISE = 0.2  # intensity of the paper's noise, in every pixel
FOUND = 0.7  # correlation with a limb from which on it counts as recovered
KAPPA, DECAY = 300.0, 0.6
NUMBERS = (16, 20)  # of components
ALPHA = BETA = 1.0  # which the paper does not tell
SMALL_BATCH = 10
TIMES = (1, 10, 100, 300, 1000, 3000, 10_000)
SAMPLES = 10
PUBLISHED = "swimmer/swimmer.npz"

# A limb begins beside an end of the shoulders or hips and has five pixels, in one of four directions.
JOINTS = {(10, 16): (-1, 1), (10, 14): (-1, -1), (21, 16): (1, 1), (21, 14): (1, -1)}


def body_parts() -> Array:
    """The torso and the 16 limbs (17, 1024), pixel for pixel those of the published swimmers."""
    parts = np.zeros((17, SIDE, SIDE))
    parts[0, 10:22, 15] = parts[0, 10, 14:17] = parts[0, 21, 14:17] = 1.0
    number = 1
    for (row, column), (away, aside) in JOINTS.items():
        for down, right in ((away, 0), (away, aside), (0, aside), (-away, aside)):
            for step in range(1, 6):
                parts[number, row + step * down, column + step * right] = 1.0
            number += 1
    return parts.reshape(17, -1)


def swimmers() -> Array:
    """The 256 clean images, in base-4 order of the positions of the limbs."""
    parts, number = body_parts(), np.arange(256)
    positions = [number // 4**limb % 4 for limb in range(4)]
    return np.asarray(parts[0] + sum(parts[1 + 4 * limb + position] for limb, position in enumerate(positions)))


def images(number: int, seed: int) -> Array:
    """Poisson counts with the mean of a random swimmer and of the noise."""
    rng = np.random.default_rng(np.random.SeedSequence((44, seed)))
    clean = swimmers()
    return rng.poisson(clean[rng.integers(len(clean), size=number)] + NOISE).astype(float)


def published(directory: Path | None) -> bool | None:
    """Whether the swimmers made here are the published ones; None if those are not available."""
    path = directory / PUBLISHED if directory else None
    if path is None or not path.is_file():
        return None
    with np.load(path) as stored:
        return bool(np.array_equal(stored["clean"], swimmers()) and np.array_equal(stored["parts"], body_parts()))


# Limbs


@dataclass(frozen=True)
class Matched:
    """Components assigned to limbs, and the correlation of each pair."""

    components: Array
    limbs: Array
    correlations: Array

    @property
    def found(self) -> int:
        return int(np.sum(self.correlations > FOUND))


def matched(topics: Array) -> Matched:
    """The assignment of components to limbs with the largest sum of correlations."""
    limbs = body_parts()[1:]
    table = np.corrcoef(topics, limbs)[: len(topics), len(topics) :]
    rows, columns = linear_sum_assignment(-np.nan_to_num(table))
    order = np.argsort(columns)
    return Matched(rows[order], columns[order], table[rows, columns][order])


# Learners


@dataclass(frozen=True)
class Line:
    """A way to learn the images; `passes` of None is one pass of the stream."""

    name: str
    meaning: str
    algorithm: str | Algorithm
    alpha: Any = ALPHA
    beta: float | None = BETA
    warm_up: Any = "auto"
    passes: int | None = None

    def make(self, components: int, seed: int) -> Any:
        return hw.LatentDirichletAllocation(
            components, doc_topic_prior=self.alpha, topic_word_prior=self.beta, algorithm=self.algorithm,
            warm_up=self.warm_up, random_state=seed, n_threads=1, max_iter=self.passes or 1,
        )  # fmt: skip


BY_ROW = hw.SimulatedEM(decay=DECAY, offset=0.0, batch_size=1, average=False)
METROPOLIS = Line(
    "Metropolis, row by row",
    "the paper's, but for the ratio (see below): proposals Dirichlet(300 H + 1), 400 draws thrown away and 100 averaged for "
    "each image, folded with n^-0.6",
    replace(BY_ROW, sampler="metropolis", kappa=KAPPA),
    warm_up=1,
)
GIBBS = Line(
    "Gibbs, row by row", "the same with collapsed Gibbs sampling, 10 sweeps thrown away, 5 averaged", BY_ROW, warm_up=1
)
SMALL = Line("Gibbs, batches of 10", "folds of ten images, averaged as by default", hw.SimulatedEM(batch_size=SMALL_BATCH))
VARIATIONAL = Line("online VB, batches of 10", "Hoffman, Blei and Bach's algorithm", hw.OnlineVB(SMALL_BATCH, 0.7, 10.0))
COLLAPSED = Line("SCVB0, batches of 10", "Foulds et al.'s algorithm", hw.CollapsedVB(batch_size=SMALL_BATCH))
OWN = Line("headwater's defaults", "`LatentDirichletAllocation(K)`, `partial_fit`: alpha and beta are 1/K", "auto", None, None)
LEARNED = Line("headwater's defaults, learned prior", 'the same with `doc_topic_prior="learn"`', "auto", "learn", None)
ROOM = Line("headwater's defaults, alpha = 1", "the same with `doc_topic_prior=1.0`", "auto", beta=None)
FITTED = Line("headwater's defaults, alpha = 1, fit", "the same by `fit`, at most 10 passes", "auto", beta=None, passes=10)
LINES = (METROPOLIS, GIBBS, SMALL, VARIATIONAL, COLLAPSED, OWN, LEARNED, ROOM, FITTED)


SHOWN = ((METROPOLIS, 16), (GIBBS, 16), (GIBBS, 20))  # in figure 3


def at_scale(line: Line, scale: Scale) -> Line:
    if line is not METROPOLIS:
        return line
    assert isinstance(line.algorithm, hw.SimulatedEM)
    return replace(line, algorithm=replace(line.algorithm, burn_in=scale.burn_in, n_samples=scale.kept))


def learned(line: Line, components: int, seed: int, rows: Array, stops: Sequence[int] = ()) -> tuple[Any, float, list[Array]]:
    """The model, seconds of CPU, and the components at these numbers of images and at the end."""
    model, spent, at, seen = line.make(components, seed), 0.0, 0, []
    for stop in stops or (len(rows),):
        began = time.process_time()
        model = model.fit(rows) if line.passes else model.partial_fit(rows[at:stop])
        spent += time.process_time() - began
        seen.append(model.topics_)
        at = stop
    return model, spent, seen


def limbs_set(line: Line, components: int, scale: Scale) -> Figures:
    """How many limbs are recovered, over the seeds; every seed has images of its own."""
    result: Figures = {"line": line.name, "components": components, "images": scale.images, "seeds": scale.seeds}
    kept: dict[str, list[float]] = {"found": [], "correlation": [], "seconds": [], "acceptance": []}
    for seed in range(scale.seeds):
        first = seed == 0
        stops = times_of(scale.images) if first and line is METROPOLIS else ()
        model, seconds, seen = learned(at_scale(line, scale), components, seed, images(scale.images, seed), stops)
        match = matched(model.topics_)
        kept["found"].append(match.found)
        kept["correlation"].append(float(match.correlations.mean()))
        kept["seconds"].append(seconds)
        if line is LEARNED:
            result.setdefault("priors", []).append(float(model.doc_topic_prior_.mean()))
        if line is METROPOLIS:
            kept["acceptance"].append(model.acceptance_rate_)
        if first and (line, components) in SHOWN:
            result |= picture_of(model, match)
        if stops:
            result["growth"] = growth_of(seen, stops)
    return result | kept


def picture_of(model: Any, match: Matched) -> Figures:
    """The components as images, those of limbs first, in the order of the limbs."""
    topics = model.topics_
    rest = [k for k in np.argsort(-model.components_.sum(axis=1)) if k not in match.components]
    order = [*match.components, *rest]
    return {"pictures": [coded(topics[k]) for k in order], "correlations": match.correlations.tolist()}


def samples_set(scale: Scale, directory: Path | None) -> Figures:
    """Figure 2, and the lengths of the images."""
    rows = images(scale.images, 0)
    lengths = rows.sum(axis=1)
    return {
        "pictures": [coded(row) for row in rows[:SAMPLES]], "shortest": float(lengths.min()), "longest": float(lengths.max()),
        "mean": float(lengths.mean()), "noise": NOISE, "pixels": SIDE**2, "published": published(directory),
    }  # fmt: skip


def times_of(number: int) -> Sequence[int]:
    return [time for time in TIMES if time < number] + [number]


def growth_of(seen: Sequence[Array], stops: Sequence[int]) -> Figures:
    """Figure 4: the component that ends most like a limb, along the stream."""
    match = matched(seen[-1])
    best = int(np.argmax(match.correlations))
    component, limb = int(match.components[best]), body_parts()[1 + int(match.limbs[best])]
    return {
        "times": [*stops], "pictures": [coded(topics[component]) for topics in seen],
        "correlations": [float(np.corrcoef(topics[component], limb)[0, 1]) for topics in seen],
        "found": [matched(topics).found for topics in seen],
    }  # fmt: skip
