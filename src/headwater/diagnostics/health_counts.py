"""Signs of components that have a probability of each word, symbol or step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding
from headwater.diagnostics.health_vitals import Food, Signs, named, percent

ALONE = 0.999  # probability of a word that leaves the others next to nothing
COMMON = 0.5  # share of all words with which it is no wonder that a component has no other
LEAST = 2.0  # words for each that a component is spread over: with fewer, which they are is mostly chance
DOUBT = 3.0  # standard errors of a divergence that may be chance
TINY = 1e-12


@dataclass(frozen=True)
class CountSigns:
    """Probabilities (K, V), the words (G, K) that each component was fed in each group of columns, and in how many rows (K,).

    `groups` (V,) are those of the columns; empty, if they are one. `over` is what columns are. `single` says whether a
    component that has but one word is worth a finding.
    """

    probabilities: Array
    words: Array
    rows: Array
    names: Sequence[str]
    groups: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    word: str = "component"
    unit: str = "words"
    over: str = "words"
    single: bool = True

    @property
    def taken(self) -> Array:
        """How often each component is expected to have each word (K, V), in all."""
        if not self.groups.size:
            return self.probabilities * self.words.T
        return self.probabilities * self.words.T[:, self.groups]

    def food(self) -> Food:
        """Words of each, and over how many it is spread: the exponential of their entropy."""
        taken = np.maximum(self.taken, 0.0)
        shares = taken / np.maximum(taken.sum(axis=1, keepdims=True), 1e-300)
        spread = np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1))
        has = f"fewer than {LEAST:g} for each of the {{}} {self.over} that it is spread over"
        return Food(self.words.sum(axis=0), self.unit, spread, has, LEAST)

    def apart(self) -> tuple[Array, Array]:
        """Symmetric divergences in a row of usual length; two samples of one component differ by what may be chance."""
        rows = np.maximum(self.rows, 1.0)
        logs, taken = np.log(np.maximum(self.probabilities, TINY)), self.taken
        crossed = (taken / rows[:, None]) @ logs.T
        own = np.diag(crossed)
        found = own[:, None] - crossed + (own - crossed.T)
        told = np.minimum(taken, 1.0).sum(axis=1)  # words that a component can say something about
        each = 1.0 / rows[:, None] + 1.0 / rows
        number = np.maximum(told[:, None], told)
        return np.maximum(found, 0.0), (number + DOUBT * np.sqrt(2.0 * number)) * each

    def worn(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Components that have but one word, which is not that of most rows."""
        if not self.single or self.probabilities.shape[1] < 2:
            return []
        tops, words = self.probabilities.max(axis=1), self.probabilities.argmax(axis=1)
        taken = self.taken.sum(axis=0)
        overall = taken / max(float(taken.sum()), 1e-300)
        which = np.flatnonzero(alive & (tops > ALONE) & (overall[words] < COMMON))
        return [
            Finding(
                "collapsed", (int(k),),
                f"{named(self.word, [int(k)])} has next to nothing but {self.names[words[k]]} ({percent(float(tops[k]))} of "
                f"its {self.unit}).",
                False, {"probability": float(tops[k]), "overall": float(overall[words[k]])},
            )
            for k in which
        ]  # fmt: skip


@dataclass(frozen=True)
class ChainSigns:
    """Signs of hidden states: those of what they emit, and where they pass to (K, K)."""

    emissions: Signs
    transitions: Array
    rows: Array

    def food(self) -> Food | None:
        """That of the emissions."""
        return self.emissions.food()

    def apart(self) -> tuple[Array, Array]:
        """Divergences of emissions and passages together: states that look the same may do different things.

        Passages to one of the two are as good as passages to the other, if the two are one.
        """
        apart = self.emissions.apart()
        assert apart is not None
        found, doubt = apart[0].copy(), apart[1]
        chances = np.maximum(self.transitions, 1e-9)
        k = len(chances)
        for a in range(k):
            for b in np.flatnonzero(found[a] < np.inf).tolist():
                others = np.setdiff1d(np.arange(k), (a, b))
                p, q = (np.append(chances[one, others], chances[one, a] + chances[one, b] * (a != b)) for one in (a, b))
                found[a, b] += ((p - q) * np.log(p / q)).sum()
        each = 1.0 / np.maximum(self.rows, 1.0)
        return found, doubt + (k + DOUBT * np.sqrt(2.0 * k)) * (each[:, None] + each)

    def worn(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """What is wrong with the emissions."""
        return self.emissions.worn(alive)
