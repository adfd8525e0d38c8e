"""Events from a topic of Kafka: ``kafka://host/topic``, each partition of which can be read again from any offset."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headwater.core.validation import one_line
from headwater.live.backoff import Backoff
from headwater.live.broker_address import parse_address
from headwater.live.events import Event
from headwater.live.kafka_client import LASTING, kafka_settings
from headwater.live.learner import Notice
from headwater.live.sources.source import MOST_EVENTS, Source
from headwater.live.text_events import json_event

LOOK_SECONDS = 30.0  # between two looks for new partitions
ASK_SECONDS = 5.0  # that a broker has to answer
OPTIONS = ("from", "settings")


class KafkaTopic(Source):
    """Hands over the messages of all partitions of a topic, which are objects of JSON.

    Parameters
    ----------
    text : str
        The address; options are ``from`` (begin, end), ``settings`` (a file), and settings of librdkafka.
    notice : callable
        Is told when the brokers are away, and when messages were deleted before they were read.
    """

    def __init__(self, text: str, notice: Notice) -> None:
        address = parse_address(text, OPTIONS, free=".")
        self.name, self._topic, self._from_end = address.name, address.stream, address.from_end
        self._notice, self._backoff = notice, Backoff(self.name, notice)
        settings = {
            "group.id": "headwater",  # never used: positions are ours
            "enable.auto.commit": False,
            "auto.offset.reset": "error",  # which is said, before it goes on at the beginning
            "enable.partition.eof": False,
        }
        self._consumer = Consumer(settings | kafka_settings(address, self._backoff))
        self._next: dict[int, int] = {}  # offset of the next message, by partition
        self._assigned: set[int] = set()
        self._looked = 0.0
        self._closed = False

    def seek(self, places: Mapping[str, object]) -> None:
        for part, place in places.items():
            if not part.isdecimal() or type(place) is not int or place < 0:
                raise ValueError(f"the position in {self.name} must be an offset, got {one_line(place, 60)}")
            self._next[int(part)] = place

    def fetch(self, seconds: float) -> Sequence[Event] | None:
        if not self._assigned or time.monotonic() - self._looked > LOOK_SECONDS:
            if not self._backoff.wait(seconds):
                return ()
            try:
                self._look()
            except KafkaException as error:
                self._refuse(error.args[0])
                self._backoff.failed(error.args[0].str())
                return ()
        first = self._consumer.poll(seconds)
        if first is None:
            return ()
        found = [first, *self._consumer.consume(MOST_EVENTS - 1, 0.0)]
        events = [event for event in map(self._event, found) if event is not None]
        if events:
            self._backoff.succeeded()
        return events

    def _look(self) -> None:
        """Assign partitions that are new."""
        told = self._consumer.list_topics(self._topic, timeout=ASK_SECONDS).topics[self._topic]
        if told.error is not None:
            raise KafkaException(told.error)
        new = sorted(set(told.partitions) - self._assigned)
        begun = bool(self._assigned or self._next)  # partitions that were added since are read from their beginning
        for partition in new:
            if partition not in self._next:
                low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=ASK_SECONDS)
                self._next[partition] = high if self._from_end and not begun else low
        if new:
            self._consumer.incremental_assign([TopicPartition(self._topic, one, self._next[one]) for one in new])
            self._assigned.update(new)
        self._looked = time.monotonic()

    def _event(self, message: Message) -> Event | None:
        if (error := message.error()) is not None:
            self._recover(message, error)
            return None
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None and offset is not None
        self._next[partition] = offset + 1
        place = (str(partition), offset + 1)
        if value is None:
            return Event({}, place, "the message has no value", "")
        return json_event(value, place)

    def _recover(self, message: Message, error: KafkaError) -> None:
        """Go on after an error, which may be that the messages at a position are there no more."""
        self._refuse(error)
        partition = message.partition()
        if error.code() != KafkaError._AUTO_OFFSET_RESET or partition is None:
            self._backoff.failed(error.str())
            return
        low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=ASK_SECONDS)
        before = self._next[partition]
        if before > high:
            raise ValueError(
                f"partition {partition} of {self.name} ends at {high:,}, and was read until {before:,} before: it is another "
                f"topic now; begin anew with another folder (--state)"
            )
        reason = f"messages {before:,} to {low:,} of partition {partition} were deleted before they were read"
        self._notice("gap", name=self.name, reason=reason)
        self._next[partition] = low
        self._consumer.seek(TopicPartition(self._topic, partition, low))

    def _refuse(self, error: KafkaError) -> None:
        if error.fatal() or error.code() in LASTING:
            raise ValueError(f"{self.name} cannot be read: {error.str()}")

    def lag(self) -> float | None:
        """Messages that were not yet read, as far as the brokers have told."""
        if not self._assigned or self._closed:
            return None
        total = 0
        for partition in sorted(self._assigned):
            try:
                _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
            except (KafkaException, RuntimeError):
                return None
            total += max(high - self._next[partition], 0)
        return float(total)

    def close(self) -> None:
        self._closed = True
        self._consumer.close()
