"""How the health of a model is judged: by its components, and by the course of its stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.diagnostics.health import Finding, Health
from headwater.diagnostics.health_clusters import cluster_findings
from headwater.diagnostics.health_evidence import (
    ComponentChecks,
    Evidence,
    component_phrase,
    count_phrase,
    format_amount,
    format_percent,
)
from headwater.diagnostics.health_stream import forgetting_findings, history_findings, refinement_findings, reservoir_findings
from headwater.diagnostics.subject import ReadingView, Subject
from headwater.kernels.parallel import one_blas_thread
from headwater.models.mixture import Mixture

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
