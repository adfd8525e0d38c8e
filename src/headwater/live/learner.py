"""The learner: one thread that owns the model, learns groups in their order, and saves model and positions in one file.

Events are learned in blocks of a fixed number, counted from the first event of the stream, so the model after n events is a
function of these events alone: not of the groups in which they came, nor of the time.
"""

from __future__ import annotations

import base64
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from headwater.checkpoints import Checkpoint, Position
from headwater.core.values import AnyArray
from headwater.live.event_log import EventLog, objects
from headwater.live.event_reader import EventReader
from headwater.live.events import Group, Places
from headwater.live.scorer import Decision, Scorer
from headwater.live.seen_ids import LATEST_IDS, SeenIds
from headwater.monitors import Monitor

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

BLOCK_EVENTS = 64  # learned at a time: a call costs about 0.3 ms whatever its rows
LAG_EVENTS = 2**10  # that may wait for the learner, so that a source that catches up is scored by a model that has learned
QUEUE_EVENTS = 2**15  # ... where somebody waits for answers, while it searches or saves
SNAPSHOT_SECONDS = 10.0

Notice = Callable[..., None]  # takes the kind of what happened, and its parts by name


class Learner:
    """Learns groups on a thread of its own.

    Parameters
    ----------
    model : estimator
        The model to begin with.
    reader, decision
        How rows are made, and what is odd.
    checkpoint : Checkpoint, optional
        Where model and positions are saved.
    log : EventLog, optional
        The log of what cannot be read again, of which old segments are removed.
    learns : bool
        Whether events are learned; if not, positions alone move on.
    """

    def __init__(
        self,
        model: StreamingEstimator,
        reader: EventReader,
        decision: Decision,
        checkpoint: Checkpoint | None = None,
        log: EventLog | None = None,
        learns: bool = True,
        snapshot_seconds: float = SNAPSHOT_SECONDS,
        notice: Notice = lambda kind, **parts: None,
    ) -> None:
        self.reader, self.decision, self.checkpoint, self.log, self.learns = reader, decision, checkpoint, log, learns
        self.snapshot_seconds, self.notice = snapshot_seconds, notice
        self.events = 0  # taken by the learner
        self.positions: dict[str, Places] = {}
        self.logged = 0
        self.ids = SeenIds(LATEST_IDS)
        self.waiting: AnyArray = reader.empty()
        self.refused = 0  # events that could not be learned
        self.saved_at = time.monotonic()
        self.snapshot_took = 0.0
        self.failure: BaseException | None = None
        self._logged_before = 0  # at the snapshot before the last: its file may have to be read
        self._saved: object = None
        self._monitor = Monitor(model, timed=False)
        self._queue: deque[Group] = deque()
        self._queued = 0
        self._changed = threading.Condition()
        self._state = "runs"  # then "stops", after which nothing is taken; or "ends", after which the rest is learned
        self._thread: threading.Thread | None = None
        self.scorer = Scorer(model, reader, decision, learns)

    # From other threads

    @property
    def model(self) -> StreamingEstimator:
        """The model; only its own thread may change it."""
        return self._monitor.model

    @property
    def backlog(self) -> int:
        """Events that wait to be learned."""
        return self._queued

    def start(self) -> None:
        """Begin to learn."""
        self._thread = threading.Thread(target=self._run, name="learner", daemon=True)
        self._thread.start()

    def submit(self, group: Group, most: int = QUEUE_EVENTS) -> None:
        """Hand a group over, and return when no more than so many events wait to be learned."""
        with self._changed:
            self._queue.append(group)
            self._queued += len(group)
            self._changed.notify_all()
            while self._queued >= most and self.failure is None:
                self._changed.wait(0.5)
            self.check()

    def check(self) -> None:
        """Raise what the thread failed with."""
        if self.failure is not None:
            raise RuntimeError(f"the learner has failed: {self.failure}") from self.failure

    def close(self, ended: bool) -> None:
        """Learn what was handed over, and save; if the stream has `ended`, learn the rest that fills no block, too."""
        with self._changed:
            self._state = "ends" if ended else "stops"
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        self.check()

    # On the thread

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    if not self._queue and self._state == "runs":
                        self._changed.wait(min(1.0, self.snapshot_seconds))
                    group = self._queue.popleft() if self._queue else None
                if group is not None:
                    self.learn(group)
                    with self._changed:
                        self._queued -= len(group)
                        self._changed.notify_all()
                elif self._state != "runs":
                    break
                if time.monotonic() - self.saved_at >= self.snapshot_seconds:
                    self.save()
            if self._state == "ends":
                self._learn_rest()
            self.save()
        except BaseException as error:  # the other threads raise it
            self.failure = error
            with self._changed:
                self._changed.notify_all()

    def learn(self, group: Group) -> None:
        """Take a group: learn all blocks that are full, and note the positions after it."""
        for digest in group.ids:
            if digest is not None:
                self.ids.add(digest)
        if group.merged is not None:
            self._merge(group.merged)
        self.events += len(group)
        if self.learns and len(group):
            waiting = np.concatenate([self.waiting, group.values]) if len(self.waiting) else group.values
            full = len(waiting) - len(waiting) % BLOCK_EVENTS
            for begin in range(0, full, BLOCK_EVENTS):
                self._learn_block(waiting[begin : begin + BLOCK_EVENTS])
            self.waiting = waiting[full:].copy()
            if full:
                self._publish()
        for source, places in group.places.items():
            self.positions.setdefault(source, {}).update(places)
        self.logged = max(self.logged, group.logged)

    def _learn_rest(self) -> None:
        if self.learns and len(self.waiting):
            self._learn_block(self.waiting)
            self.waiting = self.reader.empty()
            self._publish()

    def _learn_block(self, values: AnyArray) -> None:
        try:
            self._monitor.learn(self.reader.rows(values))
        except ValueError as error:
            if len(values) == 1:
                self.refused += 1
                self.notice("refused", reason=str(error))
                return
            for place in range(len(values)):  # which of them it is depends on them alone
                self._learn_block(values[place : place + 1])

    def _merge(self, data: bytes) -> None:
        """Add what another model has learned."""
        from headwater.estimators.merge import merge
        from headwater.estimators.model_file import from_bytes

        try:
            merged = merge([self.model, from_bytes(data)])
        except ValueError as error:
            self.notice("merge_refused", reason=str(error))
            return
        self._monitor = Monitor(merged, self._monitor.history, timed=False)
        merged.history_ = self._monitor.history
        self._publish()
        self.notice("merged", rows=merged.n_samples_seen_)

    def _publish(self) -> None:
        self.scorer = Scorer(self.model, self.reader, self.decision, self.learns)

    # Snapshots

    def save(self) -> None:
        """Write model and positions to one file, if anything has changed; remove what no snapshot needs any more."""
        began = time.monotonic()
        changed = self._change()
        if self.checkpoint is not None and changed != self._saved:
            self.checkpoint.write(self.model, Position(rows=self.events), self._state_beside())
            self._saved = changed
            if self.log is not None:
                self.log.remove_until(self._logged_before)
                self._logged_before = self.logged
            self.snapshot_took = time.monotonic() - began
            self.notice("snapshot", events=self.events, seconds=round(self.snapshot_took, 3))
        self.saved_at = time.monotonic()

    def _change(self) -> object:
        """What differs if there is anything to save."""
        return self.events, self.logged, repr(self.positions), len(self.waiting), self.model.__dict__.get("_runtime")

    def _state_beside(self) -> Mapping[str, object]:
        numbers = self.reader.numbers
        values = base64.b64encode(self.waiting.tobytes()).decode() if numbers else self.waiting.tolist()
        return {
            "positions": self.positions,
            "logged": self.logged,
            "ids": self.ids.to_text(),
            "waiting": values,
            "refused": self.refused,
        }

    def restore(self, model: StreamingEstimator, position: Position, more: Mapping[str, object]) -> None:
        """Go on from a snapshot."""
        try:
            positions, logged, waiting = more["positions"], more["logged"], more["waiting"]
            if not isinstance(positions, dict) or not all(isinstance(one, dict) for one in positions.values()):
                raise ValueError("positions must be by source")
            if type(logged) is not int:
                raise ValueError("logged must be a number")
            width = len(self.reader.columns)
            if self.reader.numbers:
                self.waiting = np.frombuffer(base64.b64decode(str(waiting), validate=True)).reshape(-1, width).copy()
            elif isinstance(waiting, list):
                self.waiting = objects(waiting, width)
            self.ids = SeenIds.from_text(more["ids"])
        except (KeyError, ValueError, TypeError) as error:
            raise ValueError(f"the snapshot does not say where its stream is: {error}") from error
        self.positions, self.logged, self.events = positions, logged, position.rows
        self._logged_before = logged
        refused = more.get("refused")
        self.refused = refused if type(refused) is int else 0
        self._monitor = Monitor(model, timed=False)
        self._saved = self._change()
        self._publish()
