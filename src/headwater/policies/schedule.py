"""When a stream is searched next: at places that depend on rows alone."""

from __future__ import annotations

from dataclasses import replace

from headwater.core.plan import Plan
from headwater.core.state import Stream
from headwater.policies.names import DRIFT, REFINEMENT

LATER = 2.0  # times the rows seen to wait for after a search; after the warm-up, as many as it had
MUCH_LATER = 7.0  # the same after a search that found nothing better


def schedule_search(plan: Plan, stream: Stream) -> Stream:
    """Return the stream with the rows of its next search: thrice those seen, or a half-life later; at a batch's end."""
    record, drift = stream.records[REFINEMENT], stream.records.get(DRIFT)
    seen, first = stream.rows or plan.warm_up_rows, stream.base.progress.rows_seen
    if drift is not None and drift.last:  # count rows since the last alarm
        seen = max(seen - drift.last, plan.warm_up_rows)
    times = MUCH_LATER if record.content else LATER if record.contested else 1.0
    batch_rows = plan.batch_rows(stream.model)
    ahead = max(int(times * seen), batch_rows)
    if plan.half_life is not None:
        ahead = min(ahead, max(int(plan.half_life), batch_rows))
    batches = -(-(stream.rows + ahead - first) // batch_rows)
    return stream.with_record(REFINEMENT, replace(record, next=first + batches * batch_rows))
