"""Online EM for hidden Markov models, by the library: three states, normal rows or symbols, as the stream grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

import headwater as hw
from headwater.core.statistics import Array
from headwater.kernels._jit import kernel
from pages.results import Figures
from papers.online_em_scale import Scale

TRANSITIONS = np.array([[0.9, 0.07, 0.03], [0.05, 0.85, 0.1], [0.1, 0.1, 0.8]])
MEANS, DEVIATIONS = np.array([-2.0, 0.0, 2.5]), np.array([1.0, 0.8, 1.2])
SYMBOLS = np.array([[0.6, 0.2, 0.1, 0.05, 0.05], [0.05, 0.15, 0.6, 0.15, 0.05], [0.05, 0.05, 0.1, 0.3, 0.5]])
GAUSSIAN, CATEGORICAL = "normal rows", "symbols"
CASES = (GAUSSIAN, CATEGORICAL)
DECAYS = (0.6, 0.8, 1.0)
WAIT = 50
STUCK = 0.1  # an error of a transition probability that is no noise


@kernel
def states_of(transitions, uniforms):
    states, at = np.empty(uniforms.size, dtype=np.int64), 0
    for t in range(uniforms.size):
        total, after = 0.0, transitions.shape[0] - 1
        for k in range(transitions.shape[0]):
            total += transitions[at, k]
            if uniforms[t] < total:
                after = k
                break
        at = after
        states[t] = at
    return states


def drawn(case: str, rows: int, seed: int) -> Array:
    """One long sequence."""
    rng = np.random.default_rng(np.random.SeedSequence((2, 12, seed)))
    states = states_of(TRANSITIONS, rng.random(rows))
    if case == GAUSSIAN:
        return rng.normal(MEANS[states], DEVIATIONS[states])[:, None]
    uniform = rng.random(rows)
    return np.asarray((uniform[:, None] > np.cumsum(SYMBOLS, axis=1)[states]).sum(axis=1)[:, None])


def start(case: str, seed: int) -> dict[str, Any]:
    """Where all learners begin: nearly even passages, and means or probabilities that are drawn."""
    rng = np.random.default_rng(np.random.SeedSequence((2, 13, seed)))
    transitions = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    first = {"startprob_": np.full(3, 1.0 / 3.0), "transmat_": transitions}
    if case == GAUSSIAN:
        return first | {"means_": np.sort(rng.normal(0.0, 2.0, size=3))[:, None], "covars_": np.full((3, 1), 2.0)}
    return first | {"emissionprob_": rng.dirichlet(np.full(SYMBOLS.shape[1], 2.0), size=3)}


@dataclass(frozen=True)
class Line:
    """A learner; `given` says that it begins at `start`, not where it finds a start itself."""

    name: str
    algorithm: Callable[[], Any]
    given: bool = True


def steps_name(decay: float) -> str:
    return "1/n" if decay == 1.0 else f"n^-{decay:g}"


def row_by_row(decay: float, average: bool) -> Line:
    name = f"{steps_name(decay)}{', averaged' if average else ''}"
    return Line(name, lambda: hw.OnlineEM(decay=decay, offset=0.0, batch_size=1, average=average, average_exponent=1.0))


BLOCKS = Line("blocks of 1000, averaged", lambda: hw.OnlineEM(decay=0.6, batch_size=1000, average_exponent=1.0))
OWN = Line("headwater's defaults", lambda: "auto", given=False)
LINES = (*(row_by_row(decay, average) for decay in DECAYS for average in (False, True)), BLOCKS, OWN)


def learner(case: str, line: Line, seed: int) -> Any:
    settings: dict[str, Any] = {"algorithm": line.algorithm(), "n_threads": 1, "random_state": seed}
    if line.given:
        settings |= {"warm_up": WAIT, "init_params": ""}
    symbols = {"n_features": SYMBOLS.shape[1]}
    model: Any = hw.GaussianHMM(3, **settings) if case == GAUSSIAN else hw.CategoricalHMM(3, **symbols, **settings)
    for name, value in start(case, seed).items() if line.given else ():
        setattr(model, name, value)
    return model


def errors(case: str, model: Any) -> tuple[float, float]:
    """Largest error of a passage's probability, and of the emissions, in the best order of the states."""
    best = (np.inf, np.inf)
    for order in map(list, permutations(range(3))):
        moved = float(np.abs(model.transmat_[np.ix_(order, order)] - TRANSITIONS).max())
        if case == GAUSSIAN:
            said = float(np.abs(model.means_[order, 0] - MEANS).max())
        else:
            said = float(np.abs(model.emissionprob_[order] - SYMBOLS).max())
        best = min(best, (moved, said), key=sum)
    return best


def chains_set(case: str, line: Line, scale: Scale) -> Figures:
    """Errors as the sequence grows, over some sequences, each from a start of its own."""
    copies = max(1, scale.few // 4)
    marks = np.unique(np.geomspace(1000, 10 * scale.rows, scale.marks // 2 + 1).round().astype(int))
    found = []
    for copy in range(copies):
        rows, model, path = drawn(case, int(marks[-1]), copy), learner(case, line, copy), []
        for chunk in np.split(rows, marks[:-1]):
            path.append(errors(case, model.partial_fit(chunk)))
        found.append(path)
    passages, emissions = np.moveaxis(np.array(found), -1, 0)
    return {
        "case": case, "line": line.name, "copies": copies, "rows": marks.tolist(), "passages": passages.tolist(),
        "emissions": emissions.tolist(), "stuck": int((passages[:, -1] > STUCK).sum()),
    }  # fmt: skip
