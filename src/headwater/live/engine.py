"""The engine: scores events at once, and hands each on to the learner exactly once.

It works in two steps, so that what is delivered, logged and saved is in order. `take` reads events, drops doubles, logs what
cannot be read again, and answers. When the answers are where they belong, `commit` lets the learner have the events. A process
that ends in between finds them again, in the log or in their source, and answers them once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.checkpoints import Checkpoint
from headwater.core.values import AnyArray
from headwater.live.event_log import EventLog
from headwater.live.event_reader import EventReader
from headwater.live.events import Answer, Event, Group, Places
from headwater.live.folder_lock import FolderLock
from headwater.live.learner import BLOCK_EVENTS, LAG_EVENTS, QUEUE_EVENTS, SNAPSHOT_SECONDS, Learner, Notice
from headwater.live.scorer import Decision, Scorer
from headwater.live.seen_ids import SeenIds, digest_of
from headwater.policies.online_testing import Series

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

RAW_CHARACTERS = 1000  # of an event that was refused, which its answer shows


@dataclass(frozen=True)
class EngineSettings:
    """What an engine does with its events.

    `identity` says what the stream is, in the types of JSON: a folder of another one is refused. `id_field` names the field by
    which doubles are known; `kept_fields` are passed on to the answers.
    """

    learns: bool = False
    decision: Decision = Decision()
    folder: Path | None = None
    identity: Mapping[str, object] = field(default_factory=dict)
    id_field: str | None = None
    kept_fields: Sequence[str] = ()
    snapshot_seconds: float = SNAPSHOT_SECONDS


@dataclass(frozen=True, eq=False)
class Taken:
    """Events that were answered, in their order, and what the learner is to have of them."""

    answers: list[Answer]
    group: Group


@dataclass
class Counts:
    """What came so far, since the process began."""

    events: int = 0
    odd: int = 0
    refused: int = 0
    doubles: int = 0


class Engine:
    """A model that learns and answers. All but `score` is called by one thread.

    Parameters
    ----------
    model : estimator
        The model to begin with; if there is a snapshot in the folder, that of the snapshot goes on.
    settings : EngineSettings
        What to do with events.
    notice : callable, optional
        Is told what happens: its kind, and its parts by name.
    """

    def __init__(
        self, model: StreamingEstimator, settings: EngineSettings, notice: Notice = lambda kind, **parts: None
    ) -> None:
        self.settings, self.notice, self.counts = settings, notice, Counts()
        self.reader = EventReader(model)
        self._shown = (*((settings.id_field,) if settings.id_field else ()), *settings.kept_fields)
        self.log: EventLog | None = None
        self._lock: FolderLock | None = None
        checkpoint = None
        if settings.folder is not None:
            self._lock = FolderLock(settings.folder)
            identity = {
                "columns": list(self.reader.columns),
                "block": BLOCK_EVENTS,
                "learns": settings.learns,
                "id": settings.id_field,
                **settings.identity,
            }
            checkpoint = Checkpoint(settings.folder / "snapshot.hw", identity, keep_last=True)
            if settings.learns:
                self.log = EventLog(settings.folder)
                if self.log.removed_bytes:
                    notice("log_cut", bytes=self.log.removed_bytes)
        found = None if checkpoint is None else checkpoint.resume()
        if settings.learns and found is None:
            model = model.branch()  # so that what was learned beside other streams with the same beginning can be merged
        self.learner = Learner(
            model,
            self.reader,
            settings.decision,
            checkpoint,
            self.log,
            settings.learns,
            settings.snapshot_seconds,
            notice,
        )
        if found is not None and checkpoint is not None:
            if checkpoint.fallback:
                notice("fallback", reason=checkpoint.fallback)
            self.learner.restore(*found, checkpoint.more)
            notice("resumed", events=self.learner.events)
        if self.log is not None and self.log.last < self.learner.logged:
            raise ValueError(
                f"{settings.folder} lacks events that its snapshot has learned: its files do not belong together; name another "
                f"folder by --state"
            )
        self._tests = Series.begin(settings.decision.fdr or 0.0)  # begins anew with each process
        self.ids: SeenIds = self.learner.ids.copy()
        self.events = self.learner.events

    @property
    def scorer(self) -> Scorer:
        """The model as of its last fold."""
        return self.learner.scorer

    def places(self, source: str) -> Places:
        """How far a source was read, by its parts; empty if it was not."""
        return self.learner.positions.get(source, {})

    def start(self) -> Iterator[Taken]:
        """Begin to learn; yield what was logged and may not have been answered. Each is to be committed."""
        self.learner.start()
        if self.log is None:
            return
        for group in self.log.read(self.learner.logged):
            for digest in group.ids:
                if digest is not None:
                    self.ids.add(digest)
            found = self.scorer.answers(group.values, self.scorer.scores(group.values), self._test) if len(group) else []
            given = group.given or [{}] * len(found)
            learned = [{"event": None, **one, **answer, "learned": True} for one, answer in zip(given, found, strict=True)]
            yield Taken(self._number(learned), group)

    def commit(self, taken: Taken, waits: bool = True) -> None:
        """Let the learner have events that are answered; if it `waits`, until the model has learned most of them."""
        self.learner.submit(taken.group, LAG_EVENTS if waits else QUEUE_EVENTS)

    def close(self, ended: bool = False) -> None:
        """Learn what was committed, and save. If the streams have `ended`, the last events are learned, too."""
        try:
            self.learner.close(ended)
        finally:
            if self.log is not None:
                self.log.close()
            if self._lock is not None:
                self._lock.release()

    # Events

    def score(self, events: Sequence[Event]) -> list[Answer]:
        """Return answers for events that are not learned, nor kept. Any thread may ask."""
        values, kept, problems = self.reader.read(events)
        values, scores, kept = self._scores(values, kept, problems)
        scored = dict(zip(kept, self.scorer.answers(values, scores), strict=True))
        return [
            self._refusal(event, problems[place]) if place in problems else {**self._given(event), **scored[place]}
            for place, event in enumerate(events)
        ]

    def take(self, events: Sequence[Event], source: str, replays: bool = True) -> Taken:
        """Answer events of a source, and say what of them is to be learned; if it cannot be read again, they are logged."""
        values, kept, problems = self.reader.read(events)
        values, scores, kept = self._scores(values, kept, problems)
        digests = [self._digest(events[place]) for place in kept]
        fresh = [digest is None or self.ids.add(digest) for digest in digests]
        new = np.flatnonzero(fresh)
        try:
            given = [self._given(events[place]) for place in kept]
            group = self._group(
                events, Group(values[new], [digests[at] for at in new], given=[given[at] for at in new]), source, replays
            )
        except OSError:  # such as a full disk: who sends the events again must find them unknown
            for at in new:
                if (digest := digests[at]) is not None:
                    self.ids.discard(digest)
            raise
        found = self.scorer.answers(values, scores, lambda pvalues: self._test(np.where(fresh, pvalues, np.nan)))
        answered = dict(zip(kept, zip(given, found, strict=True), strict=True))
        new_places = {kept[at] for at in new}
        self._number([answered[place][1] for place in kept if place in new_places])
        answers: list[Answer] = []
        for place, event in enumerate(events):
            if place in problems:
                answers.append(self._refusal(event, problems[place]))
                continue
            fields, one = answered[place]
            answer = {
                "event": one.get("event"),
                **fields,
                **one,
                "learned": self.settings.learns and place in new_places,
            }
            if place not in new_places:
                answer["double"] = True
            answers.append(answer)
        self.counts.refused += len(problems)
        self.counts.doubles += len(kept) - len(new)
        return Taken(answers, group)

    def take_model(self, data: bytes) -> Taken:
        """Let a model file be merged, at this place of the stream; one that came before is not merged again."""
        digest = digest_of(data.hex())
        if not self.ids.add(digest):
            return Taken([{"merged": False, "double": True}], Group(self.reader.empty(), []))
        group = Group(self.reader.empty(), [digest], merged=data)
        return Taken([{"merged": True}], replace(group, logged=self._write(group)))

    def _group(self, events: Sequence[Event], group: Group, source: str, replays: bool) -> Group:
        """Return a group with the places after it; if it cannot be read again, it is logged."""
        places = dict(event.place for event in events if event.place is not None)
        return replace(group, places={source: places} if places else {}, logged=0 if replays else self._write(group))

    def _write(self, group: Group) -> int:
        """Log a group, and return the number of its last event; 0 if there is nothing to log."""
        if self.log is None or not (len(group) or group.merged):
            return 0
        return self.log.write(group)

    def _scores(
        self, values: AnyArray, kept: list[int], problems: dict[int, str]
    ) -> tuple[AnyArray, NDArray[np.float64], list[int]]:
        """Return the scores of values, without those that the model refuses."""
        if not len(values):
            return values, np.empty(0), kept
        try:
            return values, self.scorer.scores(values), kept
        except ValueError as error:
            if len(values) == 1:
                problems[kept[0]] = str(error)
                return values[:0], np.empty(0), []
        parts = [self._scores(values[at : at + 1], [place], problems) for at, place in enumerate(kept)]
        return (
            np.concatenate([part[0] for part in parts]),
            np.concatenate([part[1] for part in parts]),
            [place for part in parts for place in part[2]],
        )

    def _number(self, answers: list[Answer]) -> list[Answer]:
        """Give events their numbers in the stream."""
        for answer in answers:
            self.events += 1
            answer["event"] = self.events
            self.counts.odd += answer.get("odd") is True
        self.counts.events += len(answers)
        return answers

    def _test(self, pvalues: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the next events of the stream are odd, at a false discovery rate; NaN is none of them."""
        self._tests, odd = self._tests.take(pvalues)
        return odd

    def _digest(self, event: Event) -> bytes | None:
        name = self.settings.id_field
        value = event.fields.get(name) if name is not None else None
        return digest_of(value) if isinstance(value, str | int) and value != "" else None

    def _given(self, event: Event) -> Answer:
        """The fields of an event that its answer has, too."""
        fields = event.fields
        return {name: fields[name] for name in self._shown if name in fields}

    def _refusal(self, event: Event, problem: str) -> Answer:
        raw = event.raw or str(dict(event.fields))
        return {**self._given(event), "error": problem, "raw": raw[:RAW_CHARACTERS]}
