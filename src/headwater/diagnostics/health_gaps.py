"""Health checks of rows with gaps: how much was missing, and where more of a component is missing than known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding, component_phrase
from headwater.families.components import ComponentStatistics
from headwater.families.family import Family
from headwater.families.gaussian_records import GappedStatistics, GaussianStatistics

LEAST_KNOWN = 0.5  # of the information about a column; with less, estimates converge slowly, and rest on the other columns
LEAST_SHARE = 1e-9  # of the values of a column; less is rounding
LEAST_ROWS = 1.0  # effective rows; of fewer, nothing is said
NAMED = 3  # columns in one sentence
SINGLE_FINDINGS = 3  # components that get a sentence each; more share one


def gap_findings(statistics: GaussianStatistics, count: float, names: Sequence[str], word: str = "component") -> list[Finding]:
    """Return how much was missing, and which columns of which components (or states) are known by less than half."""
    if not isinstance(statistics, GappedStatistics):
        return []
    return _findings(Seen(statistics.count, statistics.observed, statistics.known), count, names, word)


def table_gap_findings(family: Family, statistics: ComponentStatistics, count: float, names: Sequence[str]) -> list[Finding]:
    """Return the same of columns that are independent, and of tables of such columns; nothing if no value was missing."""
    whole = np.repeat(np.maximum(statistics.count, 0.0)[:, None], len(names), axis=1)
    observed = np.minimum(family.observed_rows(statistics, whole), whole)
    if (observed >= whole * (1.0 - LEAST_SHARE)).all():
        return []
    return _findings(Seen(statistics.count, observed, observed), count, names, "component")


@dataclass(frozen=True)
class Seen:
    """Means per row: rows (K,) of components, those (K, d) that have a column, and what is known of it in all."""

    count: Array
    observed: Array
    known: Array


def _findings(seen: Seen, count: float, names: Sequence[str], word: str) -> list[Finding]:
    rows = count * np.maximum(seen.count, 0.0)
    total = max(float(rows.sum()), 1e-300)
    shares = np.clip(1.0 - count * seen.observed.sum(axis=0) / total, 0.0, 1.0)
    most = int(np.argmax(shares))
    whole = float(shares.mean())
    sentence = f"{whole:.1%} of the values were missing, most of them in {names[most]} ({shares[most]:.0%})."
    found = [Finding("gaps", (), sentence, False, {"missing": whole, "most": float(shares[most])})]
    if shares[most] < LEAST_SHARE:  # what is known less well was measured with errors
        found = []
    known = count * seen.known / np.maximum(rows, 1e-300)[:, None]
    lost = (known < LEAST_KNOWN) & (rows >= LEAST_ROWS)[:, None]
    components = [int(k) for k in np.flatnonzero(lost.any(axis=1))]
    for group in [[k] for k in components] if len(components) <= SINGLE_FINDINGS else [components]:
        least = np.where(lost[group], known[group], np.inf).min(axis=0)
        columns = [int(j) for j in np.argsort(least) if np.isfinite(least[j])]
        told = ", ".join(names[j] for j in columns[:NAMED]) + (", ..." if len(columns) > NAMED else "")
        missing = 1.0 - float(max(least[columns[0]], 0.0))
        sentence = (
            f"{component_phrase(word, group)} {'lack' if len(group) > 1 else 'lacks'} more than half of what could be "
            f"known of {told} (up to {missing:.0%}): values there rest on few rows and on the other columns."
        )
        found.append(Finding("unseen", tuple(group), sentence, True, {"missing": missing}))
    return found
