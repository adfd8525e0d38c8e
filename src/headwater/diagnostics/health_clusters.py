"""Whether a component holds two clusters: along the line between two groups of its rows, hardly any rows lie in the middle.

One half of the rows proposes the line, the other half judges it. A single Gaussian has most rows in the middle, a uniform cloud
as many as elsewhere, and overlapping clusters still many: only a valley is evidence.
"""

from __future__ import annotations

import numpy as np

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding, component_phrase, format_amount
from headwater.diagnostics.subject import ReadingView, Subject
from headwater.models.mixture import Mixture

ROW_LIMIT = 8192  # rows that are looked at
LEAST_ROWS = 20  # at either end of the line, and different values of a column; fewer are no evidence
LEAST_CLUSTER_SHARE = 0.05  # of the rows of the component; a few outliers are no cluster
HALF_WINDOW = 0.2  # of what is counted at the ends and in the middle, as a share of the line
VALLEY_RATIO = 0.5  # rows in the middle over those at the emptier end: means are then about 3.7 standard deviations apart
VALLEY_Z = 4.0  # standard errors of that difference
PURSUIT_ITERATIONS = 12  # of FastICA
PURSUIT_DIRECTIONS = 8  # of most variance, and as many of FastICA
SINGLE_FINDINGS = 3  # that get a sentence each; more become one
COLUMN_LIMIT = 64  # columns that are directions themselves
SPLIT_SHARES = np.linspace(0.05, 0.95, 19)  # of the sorted rows, at which a split is tried


def cluster_findings(subject: Subject, reading: ReadingView, work: float = np.inf) -> list[Finding]:
    """Return which clouds hold two clusters, by rows of the reservoir or of the warm-up; none if it takes more `work`."""
    learner, runtime = subject.learner, subject.runtime
    mixture = reading.model
    if not isinstance(mixture, Mixture) or not mixture.family.is_cloud:
        return []
    sample = reading.reservoir_rows(ROW_LIMIT)
    if sample is not None:
        rows = sample.batch.X
    elif runtime.waiting_rows:
        rows = runtime.waiting_batch().X[:ROW_LIMIT]
    else:
        return []
    if 2.0 * len(rows) * mixture.n_parameters(learner.width) > work:
        return []
    if isinstance(rows, GappedRows):  # valleys are looked for among complete rows
        rows = rows.complete(np.flatnonzero(rows.gaps == 0))
    if not len(rows):
        return []
    shares = mixture.posterior(reading.parameters, Batch(np.ascontiguousarray(rows)), learner.n_threads)
    owners, own = shares.argmax(axis=1), shares.max(axis=1) > 1.0 - shares.sum(axis=1)  # what is left is the background's
    found = []
    for k in range(mixture.n_components):
        valley = find_valley(rows[(owners == k) & own])
        if valley is not None:
            found.append(_mixed_finding(k, valley))
    return found if len(found) <= SINGLE_FINDINGS else [_join_findings(found)]


def find_valley(rows: Array) -> dict[str, float] | None:
    """Return the counts that show a valley between two clusters; None if there is none, or if the rows are too few."""
    if len(rows) < 8 * LEAST_ROWS:
        return None
    spread = rows.std(axis=0)
    # Of a few whole numbers every gap is empty.
    several = np.array([len(np.unique(column)) >= LEAST_ROWS for column in rows[:: max(1, len(rows) // 1000)].T])
    columns = np.flatnonzero(several & (spread > 1e-9 * (np.abs(rows.mean(axis=0)) + 1e-300)))
    if not len(columns):
        return None
    scaled = (rows[:, columns] - rows[:, columns].mean(axis=0)) / spread[columns]
    propose, judge = scaled[::2], scaled[1::2]
    directions = _directions(propose)
    lines = [(_best_split(np.sort(propose @ one)), at) for at, one in enumerate(directions.T)]
    (_, first, last), at = max(lines)
    if not last > first:
        return None
    places = (judge @ directions[:, at] - first) / (last - first)  # 0 and 1 are the middles of the two
    left, middle, right = (int(np.count_nonzero(np.abs(places - at) < HALF_WINDOW)) for at in (0.0, 0.5, 1.0))
    side = min(left, right)
    if side < max(LEAST_ROWS, LEAST_CLUSTER_SHARE * len(places)) or middle > VALLEY_RATIO * side:
        return None
    z = (side - middle) / np.sqrt(side + middle)
    return None if z < VALLEY_Z else {"middle": middle, "side": side, "z": float(z), "rows": len(places)}


def _directions(rows: Array) -> Array:
    """Directions (d, m) along which clusters may lie: columns, those of most variance, and those of extreme kurtosis."""
    width = rows.shape[1]
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    kept = values > 1e-9 * values[-1]
    roots = vectors[:, kept] / np.sqrt(values[kept])
    white = rows @ roots
    found = np.linalg.qr(np.random.default_rng(0).normal(size=(white.shape[1], white.shape[1])))[0][:, :PURSUIT_DIRECTIONS]
    for _ in range(PURSUIT_ITERATIONS):  # the fixed point of FastICA (Hyvärinen 1999), each direction by itself
        found = white.T @ (white @ found) ** 3 / len(white) - 3.0 * found
        found /= np.linalg.norm(found, axis=0) + 1e-300
    return np.hstack([np.eye(width)[:, :COLUMN_LIMIT], vectors[:, -PURSUIT_DIRECTIONS:], roots @ found])


def _best_split(places: Array) -> tuple[float, float, float]:
    """Return z of the best split of sorted places into two groups, and the medians of both groups."""
    n, best = len(places), (0.0, 0.0, 0.0)
    for split in np.unique((n * SPLIT_SHARES).astype(int)):
        first, last = float(places[split // 2]), float(places[(split + n) // 2])
        reach = HALF_WINDOW * (last - first)
        ends = np.array([first, 0.5 * (first + last), last])
        left, middle, right = np.searchsorted(places, ends + reach) - np.searchsorted(places, ends - reach)
        side = min(left, right)
        if side > LEAST_CLUSTER_SHARE * n:
            best = max(best, (float((side - middle) / np.sqrt(side + middle)), first, last))
    return best


def _mixed_finding(k: int, valley: dict[str, float]) -> Finding:
    sentence = (
        f"{component_phrase('component', [k])} holds two clusters: of {format_amount(valley['rows'])} rows looked at, "
        f"{format_amount(valley['middle'])} lie between them, and at least {format_amount(valley['side'])} at each of them "
        f"(z = {valley['z']:.1f}); one more component would separate them."
    )
    return Finding("mixed", (k,), sentence, True, {name: float(value) for name, value in valley.items()})


def _join_findings(found: list[Finding]) -> Finding:
    """Return one finding in place of many that are alike."""
    which = [k for one in found for k in one.components]
    clearest = max(found, key=lambda one: one.numbers["z"])
    sentence = (
        f"{component_phrase('component', which)} hold two clusters each, most clearly component {clearest.components[0]} "
        f"(z = {clearest.numbers['z']:.1f}): use more components, or let the data choose their number (auto)."
    )
    return Finding("mixed", tuple(which), sentence, True, clearest.numbers)
