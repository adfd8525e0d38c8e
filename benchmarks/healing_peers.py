"""Peers of `healing`, which are the same for every order of the rows: restarts of scikit-learn, and the reference.

Ten restarts of one random state are what scikit-learn makes with `n_init=10`, and the first five of them with `n_init=5`. The
reference is the best of the ten by its likelihood of the rows learned, each polished by passes of batch EM far beyond the stop
of scikit-learn: all by some passes, the better ones by more, and the best until a pass gains next to nothing. It takes minutes,
so that it is kept in a file for each set.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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

# Restarts that are polished, the passes each gets at most, and the gain of a pass with which it is content.
POLISH = ((RESTARTS, 100, 1e-5), (5, 300, 1e-6), (2, 1000, 1e-6))


@dataclass(frozen=True)
class Restart:
    """One restart of scikit-learn: CPU seconds, its own bound, and its score on the rows to judge by."""

    seconds: float
    bound: float
    score: float
    passes: int


@dataclass(frozen=True)
class Peers:
    """What a set is judged against: the rows it was found on, the restarts, and the score of the reference."""

    fingerprint: str
    restarts: tuple[Restart, ...]
    reference: float
    reference_seconds: float

    def score(self, n_init: int) -> float:
        """The score of the restart that scikit-learn chooses from so many."""
        return max(self.restarts[:n_init], key=lambda restart: restart.bound).score

    def seconds(self, n_init: int) -> float:
        return sum(restart.seconds for restart in self.restarts[:n_init])


def folder() -> Path:
    """Where peers are kept: HEADWATER_BENCHMARK_CACHE, or a folder beside this file."""
    named = os.environ.get("HEADWATER_BENCHMARK_CACHE", "")
    return Path(named) if named else Path(__file__).with_name("cache")


def peers_of(name: str, n_components: int, rows: Array, held_out: Array, cache: Path, restarts: int = RESTARTS) -> Peers:
    """Return the peers that are kept under this name, if they are of these rows, or find and keep them."""
    path = cache / f"{name}.json"
    mark = fingerprint(n_components, rows, held_out, restarts)
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["fingerprint"] == mark:
            return Peers(**{**kept, "restarts": tuple(Restart(**each) for each in kept["restarts"])})
    found = find(mark, n_components, rows, held_out, restarts)
    cache.mkdir(parents=True, exist_ok=True)
    partly = path.with_suffix(f".{os.getpid()}")
    partly.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    partly.replace(path)
    return found


def fingerprint(n_components: int, rows: Array, held_out: Array, restarts: int) -> str:
    """A name of all that the peers depend on."""
    settings = repr((n_components, rows.shape, held_out.shape, restarts, MAX_ITER, REG_COVAR, POLISH))
    return sha256(settings.encode() + rows.tobytes() + held_out.tobytes()).hexdigest()[:16]


def find(mark: str, n_components: int, rows: Array, held_out: Array, restarts: int) -> Peers:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        state, models, made = np.random.RandomState(0), [], []
        for _ in range(restarts):
            begin = process_time()
            model = Peer(n_components, max_iter=MAX_ITER, reg_covar=REG_COVAR, random_state=state).fit(rows)
            seconds = process_time() - begin
            made.append(Restart(seconds, float(model.lower_bound_), judged(model, held_out), int(model.n_iter_)))
            models.append(model)
        begin = process_time()
        best = polished(models, rows)
        return Peers(mark, tuple(made), judged(best, held_out), process_time() - begin)


def judged(model: Any, rows: Array) -> float:
    """Nats a row, by one judge for all."""
    return mean_score(mixture_of(model.weights_, model.means_, model.covariances_), rows)


def polished(models: Sequence[Any], rows: Array) -> Any:
    """The best of these models when all have been polished, the better ones longer."""
    for most, passes, tol in POLISH:
        models = [polish(model, rows, passes, tol) for model in models[:most]]
        models = sorted(models, key=lambda model: -model.lower_bound_)
    return models[0]


def polish(model: Any, rows: Array, passes: int, tol: float) -> GaussianMixture:
    return GaussianMixture(
        len(model.weights_), algorithm="em", weights_init=model.weights_, means_init=model.means_,
        precisions_init=model.precisions_, reg_covar=REG_COVAR, max_iter=passes, tol=tol, n_threads=1,
    ).fit(rows)  # fmt: skip
