"""The parameters at the end of passes over all rows, as a policy whose record they are: reported until the next fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.core.policy import Policy
from headwater.core.state import Stream, Summary

if TYPE_CHECKING:
    from headwater.core.plan import Plan

FIT_RESULT = "fit_result"


class FitResult(Policy):
    """Drops the result of the passes when the stream continues."""

    name = FIT_RESULT

    def after_fold(self, plan: Plan, before: Stream, stream: Stream, summary: Summary) -> Stream:
        return stream.without(FIT_RESULT)

    def widen(self, plan: Plan, stream: Stream) -> Stream:
        return stream.without(FIT_RESULT)
