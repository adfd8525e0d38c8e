"""Events from topics of MQTT: ``mqtt://host/topic``. A message is acknowledged when its event is logged and answered."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Sequence

import paho.mqtt.client as mqtt
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from headwater.live.backoff import Backoff
from headwater.live.broker_address import parse_address
from headwater.live.events import Answer, Event
from headwater.live.learner import Notice
from headwater.live.mqtt_client import MqttConnection
from headwater.live.sources.source import MOST_EVENTS, Source
from headwater.live.text_events import json_event

TOPIC_FIELD = "topic"  # of events that do not have it: where the message came from


class MqttTopic(Source):
    """Hands over messages, which are objects of JSON. What was acknowledged cannot be read again.

    The session outlives the connection: the broker keeps messages while the process is away.

    Parameters
    ----------
    text : str
        The address, whose path may have the wildcards + and #; the option ``client`` names the session.
    notice : callable
        Is told when the broker is away.
    """

    replays = False

    def __init__(self, text: str, notice: Notice) -> None:
        address = parse_address(text, ("client",))
        self.name, self._topic, self._backoff = address.name, address.stream, Backoff(address.name, notice)
        self._address = address
        self._connection: MqttConnection | None = None
        self._inbox: queue.Queue[mqtt.MQTTMessage] = queue.Queue(MOST_EVENTS)
        self._handed: deque[list[mqtt.MQTTMessage]] = deque()
        self._closed = False

    # On the thread of the connection

    def _subscribe(
        self, client: mqtt.Client, data: object, flags: mqtt.ConnectFlags, reason: ReasonCode, properties: Properties | None
    ) -> None:
        if reason.is_failure:
            self._open().note(reason)
            return
        client.subscribe(self._topic, options=SubscribeOptions(qos=1))

    def _check_subscription(
        self, client: mqtt.Client, data: object, mid: int, reasons: list[ReasonCode], properties: Properties | None
    ) -> None:
        for reason in reasons:
            if reason.is_failure:
                self._open().failure = f"{self.name} cannot be read: {reason}"
                return
        self._backoff.succeeded()

    def _take(self, client: mqtt.Client, data: object, message: mqtt.MQTTMessage) -> None:
        while not self._closed:  # while it waits, nothing is read from the connection
            try:
                self._inbox.put(message, timeout=0.2)
                return
            except queue.Full:
                continue

    # On the threads of the pump

    def fetch(self, seconds: float) -> Sequence[Event] | None:
        self._open().check()
        try:
            found = [self._inbox.get(timeout=seconds)]
        except queue.Empty:
            return ()
        while len(found) < MOST_EVENTS and not self._inbox.empty():
            found.append(self._inbox.get_nowait())
        self._handed.append(found)
        return [_event(message) for message in found]

    def answered(self, events: Sequence[Event], answers: Sequence[Answer]) -> None:
        for message in self._handed.popleft():
            if message.qos:
                self._open().client.ack(message.mid, message.qos)

    def lag(self) -> float | None:
        """Messages that have arrived and wait."""
        return float(self._inbox.qsize())

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> MqttConnection:
        """Return the connection, which the first call makes."""
        if self._connection is None:
            self._connection = MqttConnection(self._address, self._backoff, f"source {self.owner}")
            client = self._connection.client
            client.on_connect, client.on_subscribe, client.on_message = self._subscribe, self._check_subscription, self._take
            self._connection.open(kept=True)
        return self._connection


def _event(message: mqtt.MQTTMessage) -> Event:
    event = json_event(bytes(message.payload))
    if event.problem or TOPIC_FIELD in event.fields:
        return event
    return event._replace(fields={**event.fields, TOPIC_FIELD: message.topic})
