"""How the health of a model is judged: by its components, and by the course of its stream."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.diagnostics.health import (
    ComponentChecks,
    Evidence,
    Finding,
    Health,
    component_phrase,
    count_phrase,
    format_amount,
    format_percent,
)
from headwater.diagnostics.health_clusters import cluster_findings
from headwater.diagnostics.history import History
from headwater.diagnostics.subject import ReadingView, RefinementRecord, Subject
from headwater.kernels.parallel import one_blas_thread
from headwater.models.mixture import Mixture

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


DEAD_ROWS = 1.0  # effective rows; with fewer, a component is as its prior or start was
DUPLICATE_NATS = 0.1  # symmetric divergence a row; as of means a third of a standard deviation apart
ACTION_SUPPORT = 0.25  # of the rows that are needed: the expected loss is then p / 2n = 2 nats for each new row
DOMINANT_WEIGHT = 0.99  # of one component, which leaves the others almost no rows
SINGLE_FINDINGS = 3  # of a kind that get a sentence each; more become one finding
SCORED_ROWS = 8192  # of the reservoir, at most
BRIEF_OPERATIONS = 1e8  # that a brief look at a model may take: about a tenth of a second


def judge_health(subject: Subject, evidence: Evidence, reading: ReadingView, brief: bool = False) -> Health:
    """Return the health of a model. `brief` leaves out checks that take long."""
    warming = subject.runtime.warming_up
    with one_blas_thread():
        found = [*component_findings(evidence, warming, brief), *evidence.known, *course_findings(subject, reading, brief)]
    ordered = sorted(found, key=lambda one: not one.action)
    return Health(subject.name, subject.runtime.rows, subject.unit, warming, tuple(ordered))


def component_findings(evidence: Evidence, warming: bool = False, brief: bool = False) -> list[Finding]:
    """Return what the components show: dead, duplicated, degenerate or badly supported ones."""
    rows = evidence.rows
    if not len(rows):
        return []
    alive = np.asarray(rows >= DEAD_ROWS)
    found = _dead_findings(evidence, alive)
    if evidence.checks is not None and not (brief and evidence.work > BRIEF_OPERATIONS):
        checks = evidence.checks()
        unsupported, starved = _starved_findings(evidence, checks, alive, warming)
        found += [*checks.degenerate_findings(alive), *_duplicate_findings(evidence, checks, alive & ~unsupported), *starved]
    return [*found, *_imbalance_findings(evidence, alive)]


def course_findings(subject: Subject, reading: ReadingView, brief: bool = False) -> list[Finding]:
    """Return what the course of learning shows: convergence, drift, forgetting, mixed clusters and the last refinement."""
    found = []
    if passes := subject.unconverged_passes:
        found.append(
            Finding("unconverged", (), unconverged_sentence(passes, subject.passes_setting), True, {"passes": float(passes)})
        )
    stream = sample_findings(subject, reading, brief)
    if stream is None:
        stream = [] if subject.history is None else history_findings(subject.history, subject.unit, subject.half_life)
    if reading.drift is not None:
        found += forgetting_findings(reading, subject.unit)
    clusters = cluster_findings(subject, reading, BRIEF_OPERATIONS if brief else np.inf)
    return [*found, *clusters, *stream, *refinement_findings(reading.refinement, subject.unit)]


def sample_findings(subject: Subject, reading: ReadingView, brief: bool = False) -> list[Finding] | None:
    """Return how late rows of the reservoir compare with older ones; None if they are too few, or it would take too long."""
    learner, rows = subject.learner, reading.reservoir_rows(SCORED_ROWS)
    if rows is None:
        return None
    model = reading.model if isinstance(learner.model, Mixture) else learner.model  # which may have grown
    if brief and 2.0 * len(rows) * model.n_parameters(learner.width) > BRIEF_OPERATIONS:
        return None
    batch = Batch(rows.batch.X)
    scores = model.log_likelihood(reading.parameters, batch, learner.n_threads)
    components = model.posterior(reading.parameters, batch, learner.n_threads).argmax(axis=1)
    return reservoir_findings(
        scores, rows.places, rows.batch.weights, reading.rows, subject.unit, subject.half_life, components
    )


def _dead_findings(evidence: Evidence, alive: NDArray[np.bool_]) -> list[Finding]:
    which = [int(k) for k in np.flatnonzero(~alive)]
    if not which or len(alive) == 1:
        return []
    total, most = float(np.maximum(evidence.rows, 0.0).sum()), float(max(evidence.rows[which].max(), 0.0))
    have, each, them = ("have", "each", "them") if len(which) > 1 else ("has", "it", "it")
    sentence = (
        f"{component_phrase(evidence.word, which)} {have} almost no weight: fewer than one of "
        f"{count_phrase(total, evidence.unit)} went to {each}{evidence.remedy.format(them) or '; fewer would do'}."
    )
    return [Finding("dead", tuple(which), sentence, False, {"most": most, "total": total})]


def _starved_findings(
    evidence: Evidence, checks: ComponentChecks, alive: NDArray[np.bool_], warming: bool
) -> tuple[NDArray[np.bool_], list[Finding]]:
    """Return which components have fewer rows than they need, and findings about them."""
    support = checks.support()
    if support is None:
        return np.zeros(len(alive), dtype=bool), []
    share = support.found / np.maximum(support.least * support.needed, 1e-300)
    unsupported = alive & (share < 1.0)
    which = [int(k) for k in np.flatnonzero(unsupported)]

    def finding(components: list[int], worst: int, subject: str) -> Finding:
        found, needed = float(support.found[worst]), float(support.needed[worst])
        severe = float(share[worst]) < ACTION_SUPPORT
        values = "mostly the prior, or chance" if severe else "partly chance"
        sentence = (
            f"{subject} was learned from {count_phrase(found, support.unit)}, {support.has.format(format_amount(needed))}: its "
            f"values are {values}. Fewer components or more data would help."
        )
        numbers = {"fed": found, "needs": float(support.least * needed)}
        return Finding("starved", tuple(components), sentence, severe and not warming, numbers)

    if len(which) <= SINGLE_FINDINGS:
        return unsupported, [finding([k], k, component_phrase(evidence.word, [k])) for k in which]
    worst = min(which, key=lambda k: float(share[k]))
    subject = f"{component_phrase(evidence.word, which)} have too little data. The worst of them, {evidence.word} {worst},"
    return unsupported, [finding(which, worst, subject)]


def unconverged_sentence(passes: int, setting: str) -> str:
    """Say that the last fit did not converge; `setting` is the name of the parameter that limits its passes."""
    return f"The last fit had not converged after {passes} passes: raise {setting}, or tol if this precision is enough."


def _duplicate_findings(evidence: Evidence, checks: ComponentChecks, looked_at: NDArray[np.bool_]) -> list[Finding]:
    which = np.flatnonzero(looked_at)
    divergences = checks.divergences() if len(which) > 1 else None
    if divergences is None:
        return []
    apart, doubt = (one[np.ix_(which, which)] for one in divergences)
    found = []
    for group in _connected_groups(apart <= DUPLICATE_NATS + doubt):
        components = [int(k) for k in which[group]]
        farthest = float(apart[np.ix_(group, group)].max())
        share = float(evidence.weights[components].sum())
        found.append(
            Finding(
                "duplicated", tuple(components),
                f"{component_phrase(evidence.word, components)} are nearly the same ({farthest:.2g} nats apart), with "
                f"{format_percent(share)} of the weight together: fewer components would do.",
                False, {"apart": farthest, "weight": share},
            )
        )  # fmt: skip
    return found


def _connected_groups(near: NDArray[np.bool_]) -> list[list[int]]:
    """Return the connected groups of more than one component, where `near` marks the edges."""
    left, groups = set(range(len(near))), []
    while left:
        group, edge = [], [min(left)]
        while edge:
            one = edge.pop()
            if one in left:
                left.remove(one)
                group.append(one)
                edge += [int(other) for other in np.flatnonzero(near[one] | near[:, one]) if int(other) in left]
        if len(group) > 1:
            groups.append(sorted(group))
    return groups


def _imbalance_findings(evidence: Evidence, alive: NDArray[np.bool_]) -> list[Finding]:
    weights = evidence.weights
    top, others = int(np.argmax(weights)), int(alive.sum()) - 1
    if others < 1 or weights[top] <= DOMINANT_WEIGHT:
        return []
    rest = f"the other {others} hardly count" if others > 1 else "the other hardly counts"
    advice = "use fewer components, or check whether some columns have far larger values than others"
    return [
        Finding(
            "lopsided", (top,),
            f"{component_phrase(evidence.word, [top])} has {format_percent(float(weights[top]))} of the weight: {rest}; "
            f"{advice}.",
            False, {"weight": float(weights[top])},
        )
    ]  # fmt: skip
