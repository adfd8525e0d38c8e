"""Contenders of `refinement`: streams of ours, fed chunk after chunk, timed while they learn and when they are first read."""

from __future__ import annotations

import math
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from time import process_time
from typing import Any

from benchmarks.data import Array
from benchmarks.refinement_peers import judged
from headwater import GaussianMixture

CHUNK = 10_000


@dataclass(frozen=True)
class Contender:
    """A name, and parameters that differ from the defaults."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def model(self, n_components: int, seed: int, **more: Any) -> GaussianMixture:
        """Return an unfitted model; parameters that the estimator does not have are left out."""
        known = signature(GaussianMixture).parameters
        given = {name: value for name, value in self.parameters.items() if name in known}
        return GaussianMixture(n_components, random_state=seed, n_threads=1, **given, **more)


CONTENDERS = (Contender("plain stream", {"reservoir": 0}), Contender("default"))


@dataclass(frozen=True)
class Run:
    """CPU seconds of learning and of the first reading, and the scores on rows held out and, if asked for, on those learned."""

    learning: float
    reading: float
    score: float
    learned: float = math.nan

    @property
    def seconds(self) -> float:
        return self.learning + self.reading


def contender(text: str) -> Contender:
    """A contender from a command line: NAME, or NAME:PARAMETER=VALUE,PARAMETER=VALUE."""
    name, _, rest = text.partition(":")
    parameters = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        try:
            parameters[key] = literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[key] = value
    return Contender(name, parameters)


def learned(model: GaussianMixture, rows: Array) -> GaussianMixture:
    for at in range(0, len(rows), CHUNK):
        model.partial_fit(rows[at : at + CHUNK])
    return model


def streamed(model: GaussianMixture, rows: Array, held_out: Array, judge_learned: bool = False) -> Run:
    begin = process_time()
    learned(model, rows)
    middle = process_time()
    _ = model.weights_  # work that is deferred to the first reading
    end = process_time()
    return Run(middle - begin, end - middle, judged(model, held_out), judged(model, rows) if judge_learned else math.nan)


def compile_kernels(contenders: tuple[Contender, ...], rows: Array) -> None:
    """Let each contender learn a few rows, with a short warm-up, so that there is a stream after it."""
    for one in contenders:
        _ = learned(one.model(2, 0, warm_up=1000), rows[:12_000]).weights_
