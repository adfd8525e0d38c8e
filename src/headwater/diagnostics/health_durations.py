"""Health of the durations of states: whether stays are cut by the longest duration."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding, component_phrase, format_percent


def cut_findings(states: Sequence[int], durations: Array) -> list[Finding]:
    """Return that these states have stays which would be longer than their laws (K, D) can say."""
    if not states:
        return []
    longest, several = durations.shape[1], len(states) > 1
    most = float(durations[list(states), -1].max())
    sentence = (
        f"{component_phrase('state', states)} {'have' if several else 'has'} stays that are cut: {'up to ' if several else ''}"
        f"{format_percent(most)} of them last {longest:,} rows, and none may last longer; raise max_duration."
    )
    return [Finding("cut", tuple(states), sentence, True, {"share": most, "longest": float(longest)})]
