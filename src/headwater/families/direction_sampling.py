"""Draws of von Mises-Fisher directions: the angle to the mean direction by rejection (Wood 1994), the rest uniformly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array


def sample_directions(natural: Array, components: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Draw a unit row for each listed component, whose concentration times mean direction is `natural` (K, d)."""
    width, lengths = natural.shape[1], np.linalg.norm(natural, axis=1)
    concentration = lengths[components]
    if width == 1:
        right = rng.random(len(components)) < 1.0 / (1.0 + np.exp(-2.0 * np.minimum(natural[components, 0], 300.0)))
        return np.where(right, 1.0, -1.0)[:, None]
    cosines = _sample_cosines(width, concentration, rng)
    across = rng.normal(size=(len(components), width - 1))
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    rows = np.column_stack([cosines, np.sqrt(np.maximum(1.0 - cosines**2, 0.0))[:, None] * across])
    return _turn(rows, natural / np.maximum(lengths, 1e-300)[:, None], components)


def _sample_cosines(width: int, concentration: Array, rng: np.random.Generator) -> Array:
    """Cosine of the angle to the mean direction: Beta draws that are accepted at a rate of more than two thirds."""
    edge = width - 1.0
    b = edge / (2.0 * concentration + np.hypot(2.0 * concentration, edge))
    x = (1.0 - b) / (1.0 + b)
    c = concentration * x + edge * np.log(4.0 * b / (1.0 + b) ** 2)  # 1 - x^2 without cancellation
    cosines, waiting = np.empty(len(concentration)), np.arange(len(concentration))
    while waiting.size:
        draws = rng.beta(0.5 * edge, 0.5 * edge, size=len(waiting))
        at_b, at_x = b[waiting], x[waiting]
        found = (1.0 - (1.0 + at_b) * draws) / (1.0 - (1.0 - at_b) * draws)
        gain = concentration[waiting] * found + edge * np.log1p(-at_x * found) - c[waiting]
        good = gain >= np.log(rng.uniform(1e-300, 1.0, size=len(waiting)))
        cosines[waiting[good]] = found[good]
        waiting = waiting[~good]
    return cosines


def _turn(rows: Array, directions: Array, components: NDArray[np.int64]) -> Array:
    """Reflect rows so that the first axis becomes each row's direction. A direction of zeros changes nothing."""
    mirrors = -directions
    mirrors[:, 0] += 1.0
    norms = np.einsum("kd,kd->k", mirrors, mirrors)
    known = (norms > 1e-30) & (np.abs(directions).max(axis=1) > 0.0)
    scale = np.where(known, 2.0 / np.maximum(norms, 1e-300), 0.0)
    mirror = mirrors[components]
    along = np.einsum("nd,nd->n", rows, mirror) * scale[components]
    return np.asarray(rows - along[:, None] * mirror)
