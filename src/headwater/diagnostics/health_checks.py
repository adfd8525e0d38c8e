"""How the health of a model is judged: by what it says of its components, and by how its stream went."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.state import Batch
from headwater.diagnostics.health import Finding, Health
from headwater.diagnostics.health_clusters import cluster_findings
from headwater.diagnostics.health_stream import contest_findings, forgetting_findings, history_findings, reservoir_findings
from headwater.diagnostics.health_vitals import Signs, Vitals, amount, counted, named, percent
from headwater.kernels.parallel import one_blas_thread

DEAD = 1.0  # rows, fewer than which leave a component as it was before them
SAME = 0.1  # nats a row: means a third of a standard deviation apart, or the like
FAMISHED = 0.25  # of the rows that it takes: an expected loss of p / 2n = 2 nats for each new row of the component
HEAVY = 0.99  # weight of a component that leaves the others next to nothing
EACH = 3  # findings of a kind that are told one by one
MOST_KEPT = 8192  # rows of a reservoir that are scored
BRIEF_WORK = 1e8  # operations that a glance at a model may take: a tenth of a second


def health_of(model: Any, brief: bool = False) -> Health:
    """Return the health of a model that has a state; `brief` leaves out what takes long."""
    runtime, vitals = model._runtime, model._vitals()
    warming = runtime.warming_up
    with one_blas_thread():
        found = [*component_findings(vitals, warming, brief), *course_findings(model, brief)]
    ordered = sorted(found, key=lambda one: not one.action)
    return Health(type(model).__name__, runtime.rows, model._unit, warming, tuple(ordered))


def component_findings(vitals: Vitals, warming: bool = False, brief: bool = False) -> list[Finding]:
    """Return what is found by looking at the components."""
    rows = vitals.rows
    if not len(rows):
        return []
    alive = np.asarray(rows >= DEAD)
    found = _dead(vitals, alive)
    if vitals.signs is not None and not (brief and vitals.work > BRIEF_WORK):
        signs = vitals.signs()
        hungry, starved = _starved(vitals, signs, alive, warming)
        found += [*signs.worn(alive), *_duplicated(vitals, signs, alive & ~hungry), *starved]
    return [*found, *_lopsided(vitals, alive)]


def course_findings(model: Any, brief: bool = False) -> list[Finding]:
    """Return what is found by looking at how the model was learned."""
    found = []
    unfinished = getattr(model, "converged_", True) is False and model.n_iter_ > 0 and not model._learner.algorithm.again
    if unfinished:
        passes = int(model.n_iter_)
        found.append(
            Finding(
                "unconverged", (), f"The last fit had not converged after {passes} passes.", True, {"passes": float(passes)}
            )
        )  # fmt: skip
    forgets, unit, history = getattr(model, "half_life", None), model._unit, getattr(model, "history_", None)
    kept = kept_findings(model, brief)
    if kept is None:
        kept = [] if history is None else history_findings(history, unit, forgets)
    reading = model._read()
    if reading.drift is not None:
        found += forgetting_findings(reading, unit)
    clusters = cluster_findings(model, BRIEF_WORK if brief else np.inf)
    return [*found, *clusters, *kept, *contest_findings(reading.refinement, unit)]


def kept_findings(model: Any, brief: bool = False) -> list[Finding] | None:
    """Return how the last rows of a stream compare with older ones; None if too few are kept, or it would take too long."""
    reading, learner = model._read(), model._learner
    parameters, rows = reading.parameters, reading.reservoir_rows(MOST_KEPT)
    if rows is None:
        return None
    if brief and 2.0 * len(rows) * learner.model.n_parameters(learner.width) > BRIEF_WORK:
        return None
    batch = Batch(rows.batch.X)
    scores = learner.model.log_likelihood(parameters, batch, learner.n_threads)
    components = learner.model.posterior(parameters, batch, learner.n_threads).argmax(axis=1)
    forgets = getattr(model, "half_life", None)
    return reservoir_findings(scores, rows.places, rows.batch.weights, reading.rows, model._unit, forgets, components)


def _dead(vitals: Vitals, alive: NDArray[np.bool_]) -> list[Finding]:
    which = [int(k) for k in np.flatnonzero(~alive)]
    if not which or len(alive) == 1:
        return []
    total, most = float(np.maximum(vitals.rows, 0.0).sum()), float(max(vitals.rows[which].max(), 0.0))
    have, each, them = ("have", "each", "them") if len(which) > 1 else ("has", "it", "it")
    return [
        Finding(
            "dead", tuple(which),
            f"{named(vitals.word, which)} {have} almost no weight: less than one of {counted(total, vitals.unit)} "
            f"went to {each}{vitals.remedy.format(them)}.",
            False, {"most": most, "total": total},
        )
    ]  # fmt: skip


def _starved(vitals: Vitals, signs: Signs, alive: NDArray[np.bool_], warming: bool) -> tuple[NDArray[np.bool_], list[Finding]]:
    """Which components are fed by less than it takes, and sentences about them."""
    food = signs.food()
    if food is None:
        return np.zeros(len(alive), dtype=bool), []
    share = food.fed / np.maximum(food.least * food.needs, 1e-300)
    hungry = alive & (share < 1.0)
    which = [int(k) for k in np.flatnonzero(hungry)]

    def made(components: list[int], worst: int, before: str, after: str) -> Finding:
        fed, needs = float(food.fed[worst]), float(food.needs[worst])
        famished = float(share[worst]) < FAMISHED
        says = "mostly the prior, or chance" if famished else "in part chance"
        sentence = f"{before} is fed by {counted(fed, food.unit)}, {food.has.format(amount(needs))}{after} {says}."
        numbers = {"fed": fed, "needs": float(food.least * needs)}
        return Finding("starved", tuple(components), sentence, famished and not warming, numbers)

    if len(which) <= EACH:
        return hungry, [made([k], k, named(vitals.word, [k]), ": what it says is") for k in which]
    worst = min(which, key=lambda k: float(share[k]))
    before = f"{named(vitals.word, which)} are fed by too little; the worst of them, {vitals.word} {worst},"
    return hungry, [made(which, worst, before, ", so what it says is")]


def _duplicated(vitals: Vitals, signs: Signs, looked_at: NDArray[np.bool_]) -> list[Finding]:
    which = np.flatnonzero(looked_at)
    divergences = signs.apart() if len(which) > 1 else None
    if divergences is None:
        return []
    apart, doubt = (one[np.ix_(which, which)] for one in divergences)
    found = []
    for group in _groups(apart <= SAME + doubt):
        components = [int(k) for k in which[group]]
        farthest = float(apart[np.ix_(group, group)].max())
        share = float(vitals.weights[components].sum())
        found.append(
            Finding(
                "duplicated", tuple(components),
                f"{named(vitals.word, components)} are nearly one and the same ({farthest:.2g} nats apart), with "
                f"{percent(share)} of the weight together: one of them would do.",
                False, {"apart": farthest, "weight": share},
            )
        )  # fmt: skip
    return found


def _groups(near: NDArray[np.bool_]) -> list[list[int]]:
    """Those that hang together by pairs that are near, each group of more than one."""
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


def _lopsided(vitals: Vitals, alive: NDArray[np.bool_]) -> list[Finding]:
    weights = vitals.weights
    top, others = int(np.argmax(weights)), int(alive.sum()) - 1
    if others < 1 or weights[top] <= HEAVY:
        return []
    rest = f"the other {others} hardly count" if others > 1 else "the other hardly counts"
    return [
        Finding(
            "lopsided", (top,),
            f"{named(vitals.word, [top])} has {percent(float(weights[top]))} of the weight: {rest}.",
            False, {"weight": float(weights[top])},
        )
    ]  # fmt: skip
