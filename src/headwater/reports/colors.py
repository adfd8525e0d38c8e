"""Colours of components on a page: those that meet in a strip of weights, a row of cards or a figure differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from headwater.core.statistics import Array
from headwater.plotting.shared import PALETTE

BESIDE = 4  # components, by weight, that may stand beside or above one another in rows of cards
NEAREST = 3  # components in a figure whose ellipses may touch
LEAST_DISTANCE = 0.1  # of two colours in OKLab; about what the eye tells apart in small areas
# Linear sRGB to cone responses, and their cube roots to lightness and two opponent colours (Ottosson 2020).
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def page_palette() -> list[str]:
    """The palette of all pictures, then the same lighter, then darker, as hexadecimal numbers."""
    strong = np.array([[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in PALETTE], dtype=float)
    shades = np.concatenate([strong, 0.5 * strong + 127.5, 0.55 * strong])
    return ["#" + "".join(f"{round(part):02x}" for part in shade) for shade in shades]


def color_components(weights: Sequence[float], stacked: Sequence[int] = (), places: Array | None = None) -> list[str]:
    """Return a colour for each component: the next of the palette that none of its neighbours has or resembles.

    Neighbours are close to each other by weight, follow each other in a stack (`stacked`), or lie close in a figure (`places`
    of shape (n_components, 2), NaN for those that are not drawn).
    """
    palette = page_palette()
    apart = _distances(palette)
    meet, near = _neighbours(weights, stacked), _nearest(len(weights), places)
    chosen: dict[int, int] = {}
    for k in range(len(weights)):
        taken = {chosen[other] for other in meet[k] if other in chosen}
        seen = sorted(taken | {chosen[other] for other in near[k] if other in chosen})
        free = [(k + step) % len(palette) for step in range(len(palette)) if (k + step) % len(palette) not in taken]
        distances = [float(apart[color, seen].min(initial=np.inf)) for color in free]
        clear = next((at for at, distance in enumerate(distances) if distance >= LEAST_DISTANCE), int(np.argmax(distances)))
        chosen[k] = free[clear]
    return [palette[chosen[k]] for k in range(len(weights))]


def _neighbours(weights: Sequence[float], stacked: Sequence[int]) -> list[set[int]]:
    """Components that meet each other; at most ten, so that the palette always has another colour."""
    found: list[set[int]] = [set() for _ in weights]
    order = [int(k) for k in np.argsort(-np.asarray(weights), kind="stable")]
    for step in range(1, BESIDE + 1):
        _join(found, zip(order, order[step:], strict=False))
    _join(found, pairwise(stacked))
    return found


def _join(found: list[set[int]], pairs: Iterable[tuple[int, int]]) -> None:
    for one, other in pairs:
        found[one].add(other)
        found[other].add(one)


def _nearest(number: int, places: Array | None) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(number)]
    drawn = [] if places is None else [k for k in range(number) if np.isfinite(places[k]).all()]
    for k in drawn:
        far = [float(((places[other] - places[k]) ** 2).sum()) for other in drawn]  # type: ignore[index]
        _join(found, ((k, drawn[at]) for at in np.argsort(far, kind="stable")[: NEAREST + 1] if drawn[at] != k))
    return found


def _distances(palette: Sequence[str]) -> Array:
    """How different colours look (n, n): their distances in OKLab."""
    codes = np.array([[int(one[at : at + 2], 16) / 255.0 for at in (1, 3, 5)] for one in palette])
    linear = np.where(codes <= 0.04045, codes / 12.92, ((codes + 0.055) / 1.055) ** 2.4)
    lab = np.cbrt(linear @ TO_CONES.T) @ TO_OKLAB.T
    return np.asarray(np.linalg.norm(lab[:, None] - lab, axis=2))
