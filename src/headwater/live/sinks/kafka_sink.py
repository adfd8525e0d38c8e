"""Answers as messages of a topic of Kafka: ``kafka://host/topic``."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, Message, Producer

from headwater.live.backoff import Backoff
from headwater.live.broker_address import parse_address
from headwater.live.events import Answer
from headwater.live.kafka_client import kafka_settings
from headwater.live.learner import Notice
from headwater.live.sinks.line_sink import json_line
from headwater.live.sinks.sink import Sink, Undelivered

WAIT_SECONDS = 0.2  # between two looks whether to stop


class KafkaSink(Sink):
    """Sends a message for each answer, and waits until all replicas have it.

    Parameters
    ----------
    text : str
        The address; options are ``settings`` (a file), and settings of librdkafka.
    notice : callable
        Is told when the brokers are away.
    """

    def __init__(self, text: str, notice: Notice) -> None:
        address = parse_address(text, ("settings",), free=".")
        self._name, self._topic, self._backoff = address.name, address.stream, Backoff(address.name, notice)
        settings = {"enable.idempotence": True, "linger.ms": 1, "message.timeout.ms": 0}  # tried without an end
        self._producer = Producer(settings | kafka_settings(address, self._backoff))
        self._problem: KafkaError | None = None

    def write(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            data = json_line(answer).rstrip()
            while True:
                try:
                    self._producer.produce(self._topic, data, on_delivery=self._note)
                    break
                except BufferError:
                    self._wait()

    def flush(self) -> None:
        while len(self._producer):
            self._wait()
        if self._problem is not None:
            raise OSError(f"{self._name} does not take answers: {self._problem.str()}")
        self._backoff.succeeded()

    def _wait(self) -> None:
        if self._producer.flush(WAIT_SECONDS) and self.stopping():
            raise Undelivered

    def _note(self, error: KafkaError | None, message: Message) -> None:
        self._problem = error or self._problem
