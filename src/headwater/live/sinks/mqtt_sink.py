"""Answers as messages of a topic of MQTT: ``mqtt://host/topic``."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import paho.mqtt.client as mqtt
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from headwater.live.backoff import Backoff
from headwater.live.broker_address import parse_address
from headwater.live.events import Answer
from headwater.live.learner import Notice
from headwater.live.mqtt_client import MqttConnection
from headwater.live.sinks.line_sink import json_line
from headwater.live.sinks.sink import Sink, Undelivered

LOOK_SECONDS = 0.2  # between two looks whether to stop
GRACE_SECONDS = 3.0  # in which a process that is to stop still waits


class MqttSink(Sink):
    """Publishes a message for each answer, and waits until the broker has confirmed it.

    Parameters
    ----------
    text : str
        The address; the option ``client`` names the session.
    notice : callable
        Is told when the broker is away.
    """

    def __init__(self, text: str, notice: Notice) -> None:
        address = parse_address(text, ("client",))
        if "+" in address.stream or "#" in address.stream:
            raise ValueError(f"answers go to one topic, without wildcards: {address.name}")
        self._topic, self._backoff = address.stream, Backoff(address.name, notice)
        self._connection = MqttConnection(address, self._backoff, "sink")
        self._connection.client.on_connect = self._note
        self._connection.client.on_publish = self._count
        self._sent = self._confirmed = 0
        self._changed = threading.Condition()
        self._open = False

    def _note(
        self, client: mqtt.Client, data: object, flags: mqtt.ConnectFlags, reason: ReasonCode, properties: Properties | None
    ) -> None:
        if reason.is_failure:
            self._connection.note(reason)
        else:
            self._backoff.succeeded()

    def _count(self, client: mqtt.Client, data: object, mid: int, reason: ReasonCode, properties: Properties | None) -> None:
        if reason.is_failure:
            self._connection.failure = f"{self._connection.name} does not take answers: {reason}"
        with self._changed:
            self._confirmed += 1
            self._changed.notify_all()

    def write(self, answers: Sequence[Answer]) -> None:
        if not self._open:
            self._open = True
            self._connection.open(kept=False)
        for answer in answers:  # what cannot be sent now waits in the client
            self._connection.client.publish(self._topic, json_line(answer).rstrip(), qos=1)
            self._sent += 1

    def flush(self) -> None:
        stop_at: float | None = None
        while True:
            with self._changed:
                done = self._changed.wait_for(lambda: self._confirmed >= self._sent, LOOK_SECONDS)
            self._connection.check()
            if done:
                return
            if self.stopping():
                stop_at = stop_at or time.monotonic() + GRACE_SECONDS
                if time.monotonic() > stop_at:
                    raise Undelivered

    def close(self) -> None:
        if self._open:
            self._connection.close()
