"""What hidden semi-Markov models say of themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.health import Evidence, Finding
from headwater.diagnostics.health_durations import cut_findings
from headwater.estimators.describers.family_chains import FamilyChainDescriber
from headwater.estimators.describers.family_mixture import MOMENT_ROWS, FamilyChecks
from headwater.estimators.reading import Folded
from headwater.models.durations import find_cut


class SemiMarkovDescriber(FamilyChainDescriber):
    """States with durations of their own."""

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        family, width = self.model._inner, self.model._learner.width
        each = family.n_parameters(width) / self.model.n_components_

        def checks(rows: Array) -> FamilyChecks:
            return FamilyChecks(family, self.model._emissions, rows, each)

        evidence = self.model._chain_evidence(checks, each * MOMENT_ROWS)
        return replace(evidence, known=(*evidence.known, *self._cut_findings(evidence.rows)))

    def _cut_findings(self, rows: Array) -> list[Finding]:
        """Return that stays are cut, of states that have enough rows to say so."""
        durations = self.model.durations_
        known = find_cut(durations) & (rows >= durations.shape[1])
        return cut_findings([int(k) for k in np.flatnonzero(known)], durations)

    def summary(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a line about the model, and a small table; no state follows itself, so that need not be said."""
        line, heads, lines = super().summary()
        at = heads.index("stays")
        return line, heads[:at] + heads[at + 1 :], [cells[:at] + cells[at + 1 :] for cells in lines]

    def shares_of(self, folded: Folded) -> Array:
        """Return the shares of the components by what was folded."""
        return self.model._pool_states(super().shares_of(folded))

    def columns(self, states: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        word, heads, lines = super().columns(states)
        lasting = self.model.expected_durations_[states]
        return (
            f"durations and {word}",
            ["rows", *heads],
            [[f"{rows:.1f}", *line] for rows, line in zip(lasting, lines, strict=True)],
        )
