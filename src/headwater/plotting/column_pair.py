"""The two columns of a scatter plot: components overlap least there, and none of them is a mere line."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import distinctive_columns
from headwater.plotting.shared import covariances_of, variances_of

if TYPE_CHECKING:
    from headwater.plotting.shared import Drawable

TRIED_COLUMNS = 8  # the most distinctive ones; all pairs of them are compared
TRIED_COMPONENTS = 40  # the heaviest ones
THIN_RATIO = 0.01  # standard deviation of a component over that of all rows; less is a line in a picture
THIN_SHARE = 0.1  # of the weight; if thin components weigh more, the column has collapsed
TINY = 1e-300  # in place of zero, in divisors and logarithms


def telling_pair(gaussians: Drawable) -> tuple[int, int]:
    """Return the pair of columns in which components overlap least; columns in which they have collapsed come last."""
    weights, means = np.asarray(gaussians.weights_, dtype=float), np.asarray(gaussians.means_, dtype=float)
    variances = variances_of(gaussians)
    order, _, spread = distinctive_columns(weights, means, variances, means.shape[1])
    thin = (weights / weights.sum()) @ (variances < (THIN_RATIO * spread) ** 2)
    usable = [int(at) for at in order if thin[at] <= THIN_SHARE]
    if len(usable) < 2:
        usable = [int(at) for at in np.argsort(thin, kind="stable")[:2]]
    apart = weights @ np.abs(means - weights @ means / weights.sum()) / spread
    best = sorted(usable, key=lambda at: (-float(apart[at]), at))[:TRIED_COLUMNS]
    heavy = np.argsort(-weights, kind="stable")[:TRIED_COMPONENTS]
    pairs = [(min(pair), max(pair)) for pair in combinations(best, 2)]
    return min(pairs, key=lambda pair: _overlap(gaussians, weights, means, pair, heavy))


def _overlap(gaussians: Drawable, weights: Array, means: Array, pair: tuple[int, int], heavy: NDArray[np.int64]) -> float:
    """How much components overlap in two columns: Bhattacharyya coefficients of all pairs of them, by weight."""
    shares, places, shapes = weights[heavy], means[heavy][:, pair], covariances_of(gaussians, pair)[heavy]
    units = np.sqrt(
        np.maximum(shares @ (np.diagonal(shapes, axis1=1, axis2=2) + (places - shares @ places / shares.sum()) ** 2), TINY)
    )
    places, shapes = places / units, shapes / units / units[:, None] + 1e-12 * np.eye(2)
    gap, middle = places[:, None] - places, 0.5 * (shapes[:, None] + shapes)
    sizes, joint = np.linalg.det(shapes), np.linalg.det(middle)
    along = np.einsum("abi,abij,abj->ab", gap, np.linalg.inv(middle), gap)
    logs = -0.125 * along - 0.5 * np.log(np.maximum(joint, TINY) / np.sqrt(np.maximum(np.outer(sizes, sizes), TINY)))
    shared = np.outer(shares, shares) * np.exp(np.minimum(logs, 0.0))
    return float(shared.sum() - np.trace(shared))
