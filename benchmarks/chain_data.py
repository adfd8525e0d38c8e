"""Chains to learn from, models of both libraries with the same parameters, and the course of hmmlearn's fits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Array
from benchmarks.timing import Timing
from headwater import CategoricalHMM, GaussianHMM

STAYS = 0.7  # the rest of a row of the transitions is Dirichlet(1)


@dataclass(frozen=True)
class Chain:
    """Parameters of a chain: emissions are probabilities (K, V), or means (K, d) with rows of variance 1."""

    start: Array
    transitions: Array
    emissions: Array
    symbols: bool

    def states(self, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw the states: the successor of every state at every step, followed step by step."""
        ends = np.cumsum(self.transitions, axis=1)[:, :-1]
        goes = (rng.uniform(size=rows)[:, None, None] > ends).sum(axis=2).tolist()
        state, path = int(rng.choice(len(self.start), p=self.start)), np.empty(rows, dtype=np.int64)
        for at, go in enumerate(goes):
            path[at] = state
            state = go[state]
        return path

    def sample(self, rows: int, rng: np.random.Generator) -> Array:
        states = self.states(rows, rng)
        if not self.symbols:
            return self.emissions[states] + rng.standard_normal((rows, self.emissions.shape[1]))
        ends = np.cumsum(self.emissions, axis=1)[:, :-1]
        return (rng.uniform(size=rows)[:, None] > ends[states]).sum(axis=1)[:, None].astype(float)

    def start_from(self, off: float = 0.0) -> dict[str, Any]:
        """Return parameters for either library, moved from the truth by a share of the way to equal states."""
        mixed = (1.0 - off) * self.emissions + off * self.emissions.mean(axis=0)
        given = {"startprob_": self.start, "transmat_": (1.0 - off) * self.transitions + off / len(self.start)}
        return given | ({"emissionprob_": mixed} if self.symbols else {"means_": mixed, "covars_": np.ones_like(mixed)})


def make_chain(n_states: int, width: int, rng: np.random.Generator, symbols: bool) -> Chain:
    """Draw a chain that stays where it is with 0.7 and more; symbols are Dirichlet(0.7), means N(0, 2² I)."""
    transitions = (1.0 - STAYS) * rng.dirichlet(np.ones(n_states), size=n_states) + STAYS * np.eye(n_states)
    emissions = rng.dirichlet(np.full(width, 0.7), size=n_states) if symbols else 2.0 * rng.standard_normal((n_states, width))
    return Chain(np.full(n_states, 1.0 / n_states), transitions, emissions, symbols)


@dataclass(frozen=True)
class Family:
    """One kind of rows: its name, its width, and the models of both libraries."""

    name: str
    width: int
    symbols: bool

    def draw(self, n_states: int, rng: np.random.Generator) -> Chain:
        return make_chain(n_states, self.width, rng, self.symbols)

    def ours(self, n_states: int, **options: Any) -> Any:
        if self.symbols:
            return CategoricalHMM(n_states, n_features=self.width, n_threads=1, **options)
        return GaussianHMM(n_states, n_threads=1, **options)

    def peer(self, n_states: int, **options: Any) -> Any:
        """Return hmmlearn's model, without its messages about fits that stop early."""
        from hmmlearn import hmm

        logging.getLogger("hmmlearn").setLevel(logging.ERROR)
        return hmm.CategoricalHMM(n_states, **options) if self.symbols else hmm.GaussianHMM(n_states, **options)

    def rows(self, X: Array) -> Any:
        """Return rows in the form that hmmlearn expects."""
        return X.astype(np.int64) if self.symbols else X

    def parameters(self, model: Any) -> dict[str, Array]:
        names = ("emissionprob_",) if self.symbols else ("means_", "covars_")
        return {name: np.array(getattr(model, name)) for name in ("startprob_", "transmat_", *names)}

    def log_likelihood(self, parameters: dict[str, Array], X: Array) -> float:
        """Return nats per row, by the same evaluator for all."""
        return float(given(self.ours(len(parameters["startprob_"])), parameters).score(X) / len(X))


SYMBOLS = Family("categorical, 10 symbols", 10, True)
GAUSSIAN, GAUSSIAN3 = Family("Gaussian d1", 1, False), Family("Gaussian d3 diag", 3, False)


def given(model: Any, parameters: dict[str, Array]) -> Any:
    """The model with parameters set by hand."""
    for name, value in parameters.items():
        setattr(model, name, value)
    return model


@dataclass
class Watch:
    """Replaces hmmlearn's monitor: records CPU seconds and parameters of every pass, with the stopping rule of hmmlearn."""

    family: Family
    model: Any
    inner: Any
    begun: float = field(default_factory=process_time)
    spent: list[float] = field(default_factory=list)
    parameters: list[dict[str, Array]] = field(default_factory=list)

    def _reset(self) -> None:
        self.inner._reset()

    def report(self, log_prob: float) -> None:
        """Called at the end of a pass, with the likelihood it began with; parameters are those it ended with."""
        now = process_time()
        self.inner.report(log_prob)
        self.spent.append(now - self.begun)
        self.parameters.append(self.family.parameters(self.model))
        self.begun += process_time() - now

    @property
    def converged(self) -> bool:
        return self.inner.converged


def watched(family: Family, model: Any, X: Array) -> Watch:
    """Fit hmmlearn's model from its own start, and return the record of its passes."""
    watch = model.monitor_ = Watch(family, model, model.monitor_)
    watch.begun = process_time()
    model.fit(family.rows(X))
    return watch


# CPU time


def turns(contenders: dict[Any, Callable[[], Any]], repeats: int) -> dict[Any, list[float]]:
    """Return CPU seconds of A B A B ...; a busy machine affects them less than the wall clock."""
    seconds: dict[Any, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, work in contenders.items():
            begin = process_time()
            work()
            seconds[name].append(process_time() - begin)
    return seconds


def per_pass(fits: dict[Any, Callable[[int], Any]], repeats: int, passes: int = 4) -> dict[Any, Timing]:
    """CPU seconds of one pass: a fit of several less a fit of one, so that checks and the start cancel."""
    both = {(name, n): partial(fit, n) for name, fit in fits.items() for n in (1, 1 + passes)}
    seconds = turns(both, repeats)
    found = {}
    for name in fits:
        short, long = (Timing.of(seconds[name, n]) for n in (1, 1 + passes))
        found[name] = Timing((long.best - short.best) / passes, (long.median - short.median) / passes)
    return found
