"""The policies of a mixture's stream, in the order in which they are called."""

from __future__ import annotations

from headwater.core.policy import Policy
from headwater.policies.decision_policy import DecisionPolicy
from headwater.policies.drift_monitor import DriftPolicy
from headwater.policies.identity import IdentityPolicy
from headwater.policies.mark_policy import MarkPolicy
from headwater.policies.reservoir_policy import ReservoirPolicy
from headwater.policies.search_policy import SearchPolicy
from headwater.policies.typicality import ScorePolicy


def mixture_policies(reservoir: int | None, adapts: bool, sized: bool = False) -> tuple[Policy, ...]:
    """Return the policies of a mixture with a reservoir of `rows` rows (None: the default size), with drift if it `adapts`.

    Drift comes before searches: an alarm brings the next one forward. `sized` rows have anomaly scores by the word.
    """
    searching = ReservoirPolicy(reservoir, always=adapts), DriftPolicy(adapts), SearchPolicy(), IdentityPolicy()
    return *searching, *oddity_policies(sized)


def oddity_policies(sized: bool = False) -> tuple[Policy, ...]:
    """Return the policies of p-values, decisions and marks, which every mixture and every chain has."""
    return ScorePolicy(sized), DecisionPolicy(), MarkPolicy()
