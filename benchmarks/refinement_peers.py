"""Peers of `refinement`, which are the same for every order of the rows: restarts of scikit-learn, and the reference.

Ten restarts of one random state are what scikit-learn makes with `n_init=10`, and the first five of them with `n_init=5`. The
reference is the best of the ten by its likelihood of the rows learned, each polished by passes of batch EM far beyond the stop
of scikit-learn: all by some passes, the better ones by more, and the best until a pass gains next to nothing. It takes minutes,
so that it is kept in a file for each set; the seconds of a fit are not, since a ratio wants both sides in one run.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Peer

from benchmarks.data import Array
from benchmarks.density import mean_score, mixture_of
from headwater import GaussianMixture

RESTARTS = 10
INITS = (1, 5, 10)
MAX_ITER = 200
REG_COVAR = 1e-6

# Restarts that are polished, the limit of passes for each, and the gain of a pass at which it stops.
POLISH = ((RESTARTS, 50, 1e-5), (3, 150, 1e-5), (1, 800, 1e-6))


@dataclass(frozen=True)
class Restart:
    """One restart of scikit-learn: CPU seconds, its own bound, and its score on the rows to judge by."""

    seconds: float
    bound: float
    score: float
    passes: int


@dataclass(frozen=True)
class Peers:
    """The peers of a set: the rows they learned, the restarts, and the score of the reference."""

    fingerprint: str
    restarts: tuple[Restart, ...]
    reference: float
    reference_seconds: float
    reference_learned: float = math.nan  # on the rows learned

    def score(self, n_init: int) -> float:
        """The score of the restart that scikit-learn chooses from so many."""
        return max(self.restarts[:n_init], key=lambda restart: restart.bound).score

    def learned(self, n_init: int) -> float:
        """Its score on the rows learned: its own bound, which is less than a pass behind."""
        return max(restart.bound for restart in self.restarts[:n_init])

    def seconds(self, n_init: int) -> float:
        return sum(restart.seconds for restart in self.restarts[:n_init])


def folder() -> Path:
    """Where peers are kept: the folder that HEADWATER_BENCHMARK_CACHE names, or one beside this file."""
    named = os.environ.get("HEADWATER_BENCHMARK_CACHE", "")
    return Path(named) if named else Path(__file__).with_name("cache")


@dataclass(frozen=True)
class Task:
    """What peers are found for: rows to learn and to judge by, the number of components, and the floor of variances."""

    name: str
    n_components: int
    rows: Array
    held_out: Array
    reg_covar: float = REG_COVAR
    restarts: int = RESTARTS

    @property
    def fingerprint(self) -> str:
        """Return a digest of all that the peers depend on."""
        settings = (
            self.n_components, self.rows.shape, self.held_out.shape, self.restarts, MAX_ITER, self.reg_covar, POLISH
        )  # fmt: skip
        return sha256(repr(settings).encode() + self.rows.tobytes() + self.held_out.tobytes()).hexdigest()[:16]


def peers_of(task: Task, cache: Path | None) -> Peers:
    """Return the peers that are kept for this task, or find and keep them; without a cache, find them."""
    if cache is None:
        return find(task)
    path = cache / f"{task.name}.json"
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["fingerprint"] == task.fingerprint:
            return retimed(Peers(**{**kept, "restarts": tuple(Restart(**each) for each in kept["restarts"])}), task)
    found = find(task)
    cache.mkdir(parents=True, exist_ok=True)
    partly = path.with_suffix(f".{os.getpid()}")
    partly.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    partly.replace(path)
    return found


def find(task: Task) -> Peers:
    """Run all restarts of scikit-learn, and polish them."""
    state, models, made = np.random.RandomState(0), [], []
    for _ in range(task.restarts):
        model, seconds = restarted(task, state)
        made.append(Restart(seconds, float(model.lower_bound_), judged(model, task.held_out), int(model.n_iter_)))
        models.append(model)
    begin = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = polished(models, task)
    seconds = process_time() - begin
    return Peers(task.fingerprint, tuple(made), judged(best, task.held_out), seconds, judged(best, task.rows))


def restarted(task: Task, state: np.random.RandomState) -> tuple[Any, float]:
    """The next fit of scikit-learn, and its CPU seconds."""
    model = Peer(task.n_components, max_iter=MAX_ITER, reg_covar=task.reg_covar, random_state=state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = process_time()
        model.fit(task.rows)
        return model, process_time() - begin


def retimed(peers: Peers, task: Task) -> Peers:
    """Peers that were kept, with the seconds they would take now: the first fit is made again, beside ours."""
    _, seconds = restarted(task, np.random.RandomState(0))
    faster = seconds / peers.restarts[0].seconds
    return replace(peers, restarts=tuple(replace(each, seconds=faster * each.seconds) for each in peers.restarts))


def judged(model: Any, rows: Array) -> float:
    """Return nats per row, by the same scorer for all."""
    return mean_score(mixture_of(model.weights_, model.means_, model.covariances_), rows)


def polished(models: Sequence[Any], task: Task) -> Any:
    """The best of these models when all have been polished, the better ones longer."""
    for most, passes, tol in POLISH:
        models = [polish(model, task, passes, tol) for model in models[:most]]
        models = sorted(models, key=lambda model: -model.lower_bound_)
    return models[0]


def polish(model: Any, task: Task, passes: int, tol: float) -> GaussianMixture:
    return GaussianMixture(
        task.n_components, algorithm="em", weights_init=model.weights_, means_init=model.means_,
        precisions_init=model.precisions_, reg_covar=task.reg_covar, max_iter=passes, tol=tol, n_threads=1,
    ).fit(task.rows)  # fmt: skip
