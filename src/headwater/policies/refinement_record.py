"""Settings of searches, what a stream records of them, and when it is searched next: at places that depend on rows alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.core.plan import Plan
from headwater.core.state import Stream
from headwater.core.statistics import Array
from headwater.policies.names import DRIFT, REFINEMENT

LEAST_ROWS = 2000  # that propose, and that judge
PROPOSING_TIMES, JUDGING_TIMES = 5, 10  # proposing and judging rows, as multiples of the rows that estimate all parameters
PASSES_EACH = 8  # of every contender
START_PASSES = 100  # that a new start costs
ACCEPT_Z = 2.5  # standard errors by which a contender must be better
LEAST_PASS_GAIN = 1e-5  # nats a row; a pass that gains less is the last
LEAST_CLIMB_GAIN = 1e-6  # the same of a climb for a long stream: where much is missing, small gains add up
OPTIMISM_NATS = 2.0  # nats a row, per parameter and row, by which fitted rows score higher than new ones
MANY_PARAMETERS = 5000  # from which on passes are dear: to a reader, too


LEAST_EXPECTED = -1e230  # nats a row, of a stream that began without rows
SURPRISE_NATS = 0.02  # a row, by which new rows score less than reservoir rows did
SURPRISE_Z = 5.0  # and standard errors
START_LOOKS = 100.0  # extra E-steps for each of the first rows, twice as many as the warm-up has
STREAM_LOOKS = 0.15  # and for each later row
ALARM_LOOKS = 200.0  # extra E-steps for each row of a warm-up, if new rows are unlike those before


@dataclass(frozen=True)
class Refinement:
    """The record of the searches of a stream.

    Attributes
    ----------
    rows : int
        Rows seen when the reference was found, by the warm-up or by a search.
    next : int
        Rows at which the next search is due.
    expected, deviation : float
        The least that new rows should score at the reference, from reservoir rows, and the standard deviation of these.
    score, weight : float
        Sum of the scores of the rows since then, and their weight.
    spent : float
        E-steps over reservoir rows so far.
    moves : int
        Moves that were made.
    doubt : bool
        Whether rows were a surprise, or a climb did not converge, and no new start was tried since.
    content : bool
        Whether a search on a full reservoir found nothing better: another one would not, either.
    contested : int
        Rows seen at the last search; 0 if there was none.
    gain, z : float
        What its best contender gained on rows that judge, in nats a row, and that in standard errors.
    chosen : str
        What was kept: "stream", "climb", "move" or "restart".
    """

    rows: int = 0
    next: int = 0
    expected: float = 0.0
    deviation: float = 0.0
    score: float = 0.0
    weight: float = 0.0
    spent: float = 0.0
    moves: int = 0
    doubt: bool = False
    content: bool = False
    contested: int = 0
    gain: float = 0.0
    z: float = 0.0
    chosen: str = "stream"

    @property
    def surprise(self) -> float:
        """Nats a row by which rows since then score less than expected, if that is more than chance; or 0."""
        if self.weight <= 0.0:
            return 0.0
        drop = self.expected - self.score / self.weight
        return drop if drop > max(SURPRISE_NATS, SURPRISE_Z * self.deviation / self.weight**0.5) else 0.0

    def begin_at(self, rows: int, scores: Array, weights: Array, parameters: int) -> Refinement:
        """Return the record at a new reference, which was fitted to these reservoir rows: others should score less."""
        if not len(scores):  # then nothing is expected
            return replace(self, rows=rows, expected=LEAST_EXPECTED, deviation=0.0, score=0.0, weight=0.0)
        mean = float(weights @ scores / weights.sum())
        deviation = float(weights @ (scores - mean) ** 2 / weights.sum()) ** 0.5
        expected = mean - OPTIMISM_NATS * parameters / max(rows, 1) - 3.0 * deviation / len(scores) ** 0.5
        return replace(self, rows=rows, expected=expected, deviation=deviation, score=0.0, weight=0.0)

    def after(self, score: float, weight: float) -> Refinement:
        """Return the same after more scored rows."""
        return replace(self, score=self.score + score, weight=self.weight + weight)

    def allowance(self, rows: int, warm_up: int) -> float:
        """E-steps over reservoir rows that are allowed now, so that searches never cost more than a part of the stream.

        After a surprise, a search may cost as much as the warm-up did.
        """
        left = START_LOOKS * min(rows, 2 * warm_up) + STREAM_LOOKS * rows - self.spent
        return max(left, ALARM_LOOKS * warm_up) if self.surprise else left


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
