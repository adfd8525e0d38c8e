"""Health checks of components that have a probability of each word, symbol or step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.health import ComponentChecks, Finding, Support, component_phrase, format_percent

SINGLE_WORD_PROBABILITY = 0.999  # of one word, which leaves the others almost nothing
COMMON_WORD_SHARE = 0.5  # of all words; a component that has only so common a word is no surprise
WORDS_PER_WORD = 2.0  # occurrences for each word that a component is spread over; with fewer, they are mostly chance
DIVERGENCE_Z = 3.0  # standard errors of a divergence that are taken for chance
LEAST_PROBABILITY = 1e-12  # of a word, inside logarithms


@dataclass(frozen=True)
class CountChecks:
    """Probabilities (K, V), the words (G, K) that each component has in each group of columns, and its rows (K,).

    `groups` (V,) are those of the columns; empty, if they are one. `over` is what columns are. `single` says whether a
    component that has only one word is worth a finding.
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
    def expected_counts(self) -> Array:
        """How often each component is expected to have each word (K, V), in all."""
        if not self.groups.size:
            return self.probabilities * self.words.T
        return self.probabilities * self.words.T[:, self.groups]

    def support(self) -> Support:
        """Words of each, and over how many it is spread: the exponential of their entropy."""
        taken = np.maximum(self.expected_counts, 0.0)
        shares = taken / np.maximum(taken.sum(axis=1, keepdims=True), 1e-300)
        spread = np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1))
        has = f"fewer than {WORDS_PER_WORD:g} for each of the {{}} {self.over} that it is spread over"
        return Support(self.words.sum(axis=0), self.unit, spread, has, WORDS_PER_WORD)

    def divergences(self) -> tuple[Array, Array]:
        """Symmetric divergences in a row of usual length; two samples of one component differ by what may be chance."""
        rows = np.maximum(self.rows, 1.0)
        logs, taken = np.log(np.maximum(self.probabilities, LEAST_PROBABILITY)), self.expected_counts
        crossed = (taken / rows[:, None]) @ logs.T
        own = np.diag(crossed)
        found = own[:, None] - crossed + (own - crossed.T)
        observed = np.minimum(taken, 1.0).sum(axis=1)  # words that a component has seen
        each = 1.0 / rows[:, None] + 1.0 / rows
        number = np.maximum(observed[:, None], observed)
        return np.maximum(found, 0.0), (number + DIVERGENCE_Z * np.sqrt(2.0 * number)) * each

    def degenerate_findings(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Components that have only one word, which is not that of most rows."""
        if not self.single or self.probabilities.shape[1] < 2:
            return []
        tops, words = self.probabilities.max(axis=1), self.probabilities.argmax(axis=1)
        taken = self.expected_counts.sum(axis=0)
        overall = taken / max(float(taken.sum()), 1e-300)
        which = np.flatnonzero(alive & (tops > SINGLE_WORD_PROBABILITY) & (overall[words] < COMMON_WORD_SHARE))
        found = []
        for k in map(int, which):
            name, share = self.names[words[k]], format_percent(float(tops[k]))
            sentence = (
                f"{component_phrase(self.word, [k])} has hardly any {self.over} but {name} ({share} of its {self.unit}): leave "
                f"it out if it says nothing, or use fewer components."
            )
            numbers = {"probability": float(tops[k]), "overall": float(overall[words[k]])}
            found.append(Finding("collapsed", (k,), sentence, False, numbers))
        return found


@dataclass(frozen=True)
class ChainChecks:
    """Checks of hidden states: those of their emissions, and their transitions (K, K)."""

    emissions: ComponentChecks
    transitions: Array
    rows: Array

    def support(self) -> Support | None:
        """The data behind the emissions."""
        return self.emissions.support()

    def divergences(self) -> tuple[Array, Array]:
        """Divergences of emissions and transitions together: states with equal emissions may pass to different states.

        Transitions to either of two states are added up, since both lead to the same state if the two are one.
        """
        apart = self.emissions.divergences()
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
        return found, doubt + (k + DIVERGENCE_Z * np.sqrt(2.0 * k)) * (each[:, None] + each)

    def degenerate_findings(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Findings about the emissions."""
        return self.emissions.degenerate_findings(alive)
