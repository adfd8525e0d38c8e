"""Whether a component holds two clusters: along the line between two groups of its rows, hardly any lie in the middle.

Half of the rows say where the line is, the other half judge. A single Gaussian has most rows in the middle, a uniform cloud as
many as anywhere else, and clusters that overlap still many: only a valley is evidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.core.state import Batch
from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding
from headwater.diagnostics.health_vitals import amount, named
from headwater.families.gaussian import Gaussian
from headwater.models.mixture import Mixture

MOST_ROWS = 8192  # that are looked at
FEWEST = 20  # rows at either end of the line, and different values of a column: fewer tell nothing
SIDE = 0.05  # share of its rows that a cluster has: a few that lie far off are none
WINDOW = 0.2  # half of what is counted at the ends and in the middle, as a part of the line
VALLEY = 0.5  # rows in the middle, as a part of those at the emptier end: means about 3.7 standard deviations apart
DOUBT = 4.0  # standard errors of that difference
ROUNDS = 12  # of the pursuit of directions
PURSUED = 8  # directions of a kind
MOST_COLUMNS = 64  # that are looked at one by one
SPLITS = np.linspace(0.05, 0.95, 19)


def cluster_findings(model: Any, work: float = np.inf) -> list[Finding]:
    """Return which Gaussians hold two clusters, by rows that are kept or wait; none if that takes more than so much work."""
    reading, learner, runtime = model._read(), model._learner, model._runtime
    mixture = model._model if isinstance(learner.model, Mixture) else None
    if mixture is None or not isinstance(mixture.family, Gaussian):
        return []
    sample = reading.reservoir_rows(MOST_ROWS)
    if sample is not None:
        rows = sample.batch.X
    elif runtime.waiting_rows:
        rows = runtime.waiting_batch().X[:MOST_ROWS]
    else:
        return []
    if 2.0 * len(rows) * mixture.n_parameters(learner.width) > work:
        return []
    owners = mixture.posterior(reading.parameters, Batch(np.ascontiguousarray(rows)), learner.n_threads).argmax(axis=1)
    found = []
    for k in range(mixture.n_components):
        valley = two_clusters(rows[owners == k])
        if valley is not None:
            found.append(_told(k, valley))
    return found


def two_clusters(rows: Array) -> dict[str, float] | None:
    """Return the numbers by which rows are clearly two clusters; None if they are not, or if that cannot be told."""
    if len(rows) < 8 * FEWEST:
        return None
    spread = rows.std(axis=0)
    # Of a few whole numbers every gap is empty.
    several = np.array([len(np.unique(column)) >= FEWEST for column in rows[:: max(1, len(rows) // 1000)].T])
    columns = np.flatnonzero(several & (spread > 1e-9 * (np.abs(rows.mean(axis=0)) + 1e-300)))
    if not len(columns):
        return None
    scaled = (rows[:, columns] - rows[:, columns].mean(axis=0)) / spread[columns]
    propose, judge = scaled[::2], scaled[1::2]
    directions = _directions(propose)
    lines = [(_valley(np.sort(propose @ one)), at) for at, one in enumerate(directions.T)]
    (_, first, last), at = max(lines)
    if not last > first:
        return None
    places = (judge @ directions[:, at] - first) / (last - first)  # 0 and 1 are the middles of the two
    left, middle, right = (int(np.count_nonzero(np.abs(places - at) < WINDOW)) for at in (0.0, 0.5, 1.0))
    side = min(left, right)
    if side < max(FEWEST, SIDE * len(places)) or middle > VALLEY * side:
        return None
    z = (side - middle) / np.sqrt(side + middle)
    return None if z < DOUBT else {"middle": middle, "side": side, "z": float(z), "rows": len(places)}


def _directions(rows: Array) -> Array:
    """Directions (d, m) along which clusters may lie: columns, those of most variance, and those of extreme kurtosis."""
    width = rows.shape[1]
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    kept = values > 1e-9 * values[-1]
    roots = vectors[:, kept] / np.sqrt(values[kept])
    white = rows @ roots
    found = np.linalg.qr(np.random.default_rng(0).normal(size=(white.shape[1], white.shape[1])))[0][:, :PURSUED]
    for _ in range(ROUNDS):  # the fixed point of FastICA (Hyvärinen 1999), each direction by itself
        found = white.T @ (white @ found) ** 3 / len(white) - 3.0 * found
        found /= np.linalg.norm(found, axis=0) + 1e-300
    return np.hstack([np.eye(width)[:, :MOST_COLUMNS], vectors[:, -PURSUED:], roots @ found])


def _valley(places: Array) -> tuple[float, float, float]:
    """How sure it is that sorted places are two groups, and the middles of these, where they are told apart best."""
    n, best = len(places), (0.0, 0.0, 0.0)
    for split in np.unique((n * SPLITS).astype(int)):
        first, last = float(places[split // 2]), float(places[(split + n) // 2])
        reach = WINDOW * (last - first)
        ends = np.array([first, 0.5 * (first + last), last])
        left, middle, right = np.searchsorted(places, ends + reach) - np.searchsorted(places, ends - reach)
        side = min(left, right)
        if side > SIDE * n:
            best = max(best, (float((side - middle) / np.sqrt(side + middle)), first, last))
    return best


def _told(k: int, valley: dict[str, float]) -> Finding:
    sentence = (
        f"{named('component', [k])} holds two clusters: between them lie {amount(valley['middle'])} of "
        f"{amount(valley['rows'])} rows that were looked at, and {amount(valley['side'])} at either of them, or more "
        f"(z = {valley['z']:.1f}); one more component would tell them apart."
    )
    return Finding("mixed", (k,), sentence, True, {name: float(value) for name, value in valley.items()})
