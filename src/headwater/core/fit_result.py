"""What passes over all rows ended with, as a policy whose record are these parameters: reported until the next fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.core.policy import Policy
from headwater.core.state import Stream, Summary

if TYPE_CHECKING:
    from headwater.core.plan import Plan

FIT_RESULT = "fit_result"


class FitResult(Policy):
    """Forgets the end of the passes when a stream goes on."""

    name = FIT_RESULT

    def after_fold(self, plan: Plan, before: Stream, stream: Stream, summary: Summary) -> Stream:
        return stream.without(FIT_RESULT)

    def widen(self, plan: Plan, stream: Stream) -> Stream:
        return stream.without(FIT_RESULT)
