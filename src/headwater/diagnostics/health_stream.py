"""What the course of a stream shows: drift, the effect of the order of rows, forgetting, and the last refinement."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding
from headwater.diagnostics.health_evidence import component_phrase, format_amount
from headwater.diagnostics.history import History
from headwater.diagnostics.subject import ReadingView, RefinementRecord

RECENT_SHARE = 0.1  # of a stream: its last rows
DRIFT_Z = 4.0  # standard errors by which recent rows must differ
LEAST_GAP = 0.1  # of the standard deviation of scores; a smaller difference is not reported
LEAST_POINTS = (4, 8)  # of a history: recent ones, and those before
LEAST_GAIN = 1e-6  # nats a row; less is no gain
LEAST_ROWS = 30  # of the sample, among the recent rows and among the others
LEAST_COMPONENT_ROWS = 10  # of one component, among the recent rows and among the others


def _normal_z(t: float, degrees: float) -> float:
    """Return the normal z that is as improbable as this t."""
    chance = float(stdtr(degrees, -abs(t)))
    z = abs(float(ndtri(chance))) if chance > 0.0 else abs(t)
    return math.copysign(min(z, abs(t)), t)


def _moments(scores: Array, weights: Array) -> tuple[float, float, float]:
    """Mean, variance, and the number of rows that they are worth."""
    total = float(weights.sum())
    mean = float(weights @ scores) / total
    size = total**2 / float(weights @ weights)
    return mean, float(weights @ (scores - mean) ** 2) / total * size / max(size - 1.0, 1e-9), size


def history_findings(history: History, unit: str, forgets: float | str | None = None) -> list[Finding]:
    """Return whether the last tenth of a stream scored worse than what came before, each row before it was learned.

    The first half is left out, in which the model had yet to learn. `forgets` is the half-life, if there is one.
    """
    points = [point for point in history.points if point.scored and point.rows > history.seen // 2]
    late = [point for point in points if point.rows > (1.0 - RECENT_SHARE) * history.seen]
    early = points[: len(points) - len(late)]
    if len(late) < LEAST_POINTS[0] or len(early) < LEAST_POINTS[1]:
        return []
    (recent, sizes), (old, old_sizes) = (
        (np.array([one.score for one in some]), np.array([float(one.scored) for one in some])) for some in (late, early)
    )
    if not (np.isfinite(recent).all() and np.isfinite(old).all()):
        return []
    gap = float(np.average(recent, weights=sizes) - np.average(old, weights=old_sizes))
    if np.median(recent) > np.quantile(old, 0.25):  # a few rows that are odd are no drift
        return []
    # Recent points vary as those before do, unless there is drift; neighbours, of so many rows each, differ by chance alone.
    spread = math.sqrt(_moments(old, old_sizes)[1] * (1.0 / len(recent) + 1.0 / len(old)))
    row = math.sqrt(0.5 * float(np.mean(np.diff(old) ** 2)) * float(old_sizes.mean()))
    z = _normal_z(gap / max(spread, 1e-300), len(old) - 1.0)
    return _drift_findings(gap, z, row, int(sizes.sum()), unit, forgets)


def reservoir_findings(
    scores: Array,
    places: Array,
    weights: Array | None,
    seen: int,
    unit: str = "rows",
    forgets: float | str | None = None,
    groups: NDArray[np.int64] | None = None,
) -> list[Finding] | None:
    """Return how rows of the last tenth of a stream compare with older ones, of those that are kept; None if they are too few.

    Lower scores are drift; higher ones say that the model has followed what came last, so that the order of rows matters.

    Parameters
    ----------
    scores : ndarray of shape (n_kept,)
        Scores of reservoir rows, by the model as it is.
    places : ndarray of shape (n_kept,)
        Where each was in the stream, from 0.
    weights : ndarray of shape (n_kept,), optional
        How much each counts.
    seen : int
        Rows of the stream so far.
    unit : str, default="rows"
        What a row is.
    forgets : float or str, optional
        The half-life; then it is meant that what came last is followed.
    groups : ndarray of shape (n_kept,), optional
        The component of each row. Rows are compared with those of their component: that the last ones come from another, as
        in a file that is sorted, is neither drift nor a fault.
    """
    weights = np.ones(len(scores)) if weights is None or not len(weights) else np.asarray(weights, dtype=float)
    owners = np.zeros(len(scores), dtype=np.int64) if groups is None else np.asarray(groups)
    kept = np.isfinite(scores) & (weights > 0.0)
    late = kept & (places >= (1.0 - RECENT_SHARE) * seen)
    early = kept & ~late
    if min(int(late.sum()), int(early.sum())) < LEAST_ROWS:
        return None
    found = []  # of each component: how much the late ones weigh, the gap, its variance, and that of rows
    for group in np.unique(owners[late]):
        new, old = late & (owners == group), early & (owners == group)
        if min(int(new.sum()), int(old.sum())) >= LEAST_COMPONENT_ROWS:
            (one, spread, size), (other, spreads, sizes) = (_moments(scores[some], weights[some]) for some in (new, old))
            found.append((int(new.sum()), float(weights[new].sum()), one - other, spread / size + spreads / sizes, spreads))
    looked_at = sum(one[0] for one in found)
    if looked_at < LEAST_ROWS:
        return []
    shares, gaps, variances, rows = np.array([one[1:] for one in found]).T
    shares = shares / shares.sum()
    gap, row = float(shares @ gaps), math.sqrt(float(shares @ rows))
    error = math.sqrt(float(shares**2 @ variances))
    z = gap / error if error > 0.0 else math.copysign(math.inf, gap) if gap else 0.0
    if z > DRIFT_Z and gap > max(LEAST_GAP * row, LEAST_GAIN) and forgets is None:
        return [
            Finding(
                "order", (),
                f"The last tenth of the stream scores {gap:.2g} nats a {unit[:-1]} higher than what came before (z = {z:.1f}): "
                f"the model fits the last {unit} best, so it depends on their order; shuffle them.",
                True, {"gap": gap, "z": z, "rows": float(looked_at)},
            )
        ]  # fmt: skip
    return _drift_findings(gap, z, row, looked_at, unit, forgets, sorted_rows=groups is None)


def _drift_findings(
    gap: float, z: float, row: float, rows: int, unit: str, forgets: float | str | None, sorted_rows: bool = True
) -> list[Finding]:
    if z > -DRIFT_Z or -gap < max(LEAST_GAP * row, LEAST_GAIN):
        return []
    if forgets is None and not sorted_rows:
        remedy = "the stream drifts; set half_life to forget old rows"
    elif forgets is None:
        remedy = "if the stream drifts, set half_life to forget old rows; if it is sorted, shuffle it"
    elif isinstance(forgets, str):
        remedy = "the stream drifts, and old rows are being forgotten; nothing need be done"
    else:
        remedy = "the stream drifts faster than half_life follows; lower it"
    return [
        Finding(
            "drift", (),
            f"The last tenth of the stream ({rows:,} {unit} of it were looked at) scores {-gap:.2g} nats a {unit[:-1]} lower "
            f"than what came before (z = {z:.1f}): {remedy}.",
            not isinstance(forgets, str), {"gap": gap, "z": z, "rows": float(rows)},
        )
    ]  # fmt: skip


def forgetting_findings(reading: ReadingView, unit: str = "rows") -> list[Finding]:
    """Return which components have changed by the drift monitor, and their half-lives."""
    half_lives, weights = reading.half_lives()
    assert reading.drift is not None
    which = [int(k) for k in np.flatnonzero(np.isfinite(half_lives))]
    if not which and not weights:
        return []
    last, alarms = reading.drift.last, reading.drift.alarms
    numbers = {"last": float(last), "alarms": float(alarms)}
    if not which:
        sentence = f"The weights have changed (last seen after {last:,} {unit}), and old weights are being forgotten."
        return [Finding("forgetting", (), sentence, False, numbers)]
    shortest, longest = float(half_lives[which].min()), float(half_lives[which].max())
    have, they = ("have", "they forget") if len(which) > 1 else ("has", "it forgets")
    low, high = format_amount(shortest), format_amount(longest)
    span = low if low == high else f"{low} to {high}"
    sentence = (
        f"{component_phrase('component', which)} {have} changed (last seen after {last:,} {unit}), so {they} older {unit}, "
        f"now with a half-life of {span} {unit}."
    )
    return [Finding("forgetting", tuple(which), sentence, False, {**numbers, "shortest": shortest, "longest": longest})]


def refinement_findings(refinement: RefinementRecord | None, unit: str = "rows") -> list[Finding]:
    """Return how the last refinement went: the model against the best candidate. Nothing need be done about it."""
    if refinement is None or refinement.contested <= 0:
        return []
    rows = int(refinement.contested)
    gain, z, moves = float(refinement.gain), float(refinement.z), int(refinement.moves)
    by = f"{gain:.2g} nats a {unit[:-1]}" + (f" (z = {z:.1f})" if math.isfinite(z) else "")
    gained = f"which gained {by}" if gain > LEAST_GAIN else "which is as good"
    better = f"the best candidate was {by} better, which may be chance" if gain > LEAST_GAIN else "no candidate was better"
    outcome = {
        "stream": f"{better}, so the model was kept",
        "climb": f"rows were unlike those before, so components were fitted to a sample of all rows, {gained}",
        "move": f"components were split and others merged, {gained}",
        "restart": f"a new start was taken, {gained}",
    }.get(refinement.chosen, f"{refinement.chosen} was taken, {gained}")
    changes = f"{moves or 'no'} change{'s' * (moves != 1)} so far"
    sentence = f"At the last refinement, after {rows:,} {unit}, {outcome}; {changes}."
    numbers = {"rows": float(rows), "gain": gain, "z": z, "moves": float(moves)}
    return [Finding("refinement", (), sentence, False, numbers)]
