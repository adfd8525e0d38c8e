"""Connections to a broker of MQTT, of source and sink."""

from __future__ import annotations

import hashlib
import socket
import threading

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from headwater.live.backoff import FIRST_SECONDS, LONGEST_SECONDS, Backoff
from headwater.live.broker_address import BrokerAddress

PORT, TLS_PORT = 1883, 8883
KEEP_ALIVE_SECONDS = 30
CLOSE_SECONDS = 5.0  # that the end of a connection may take
SESSION_SECONDS = 7 * 24 * 3600  # for which the broker keeps messages of a client that is away
LASTING = (
    "Session taken over", "Not authorized", "Bad user name or password", "Bad authentication method", "Banned",
    "Client identifier not valid", "Unsupported protocol version",
)  # fmt: skip


class MqttConnection:
    """A client that connects on a thread of its own, again and again.

    Parameters
    ----------
    address : BrokerAddress
        The broker.
    backoff : Backoff
        Is told when the broker is away.
    role : str
        What the client is for: makes its name, by which the broker knows its session.
    """

    def __init__(self, address: BrokerAddress, backoff: Backoff, role: str) -> None:
        self.name, self.failure, self._backoff = address.name, "", backoff
        seen = hashlib.blake2b(f"{socket.gethostname()} {address.name} {role}".encode(), digest_size=8).hexdigest()
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            address.options.get("client", f"headwater-{seen}"),
            protocol=mqtt.MQTTv5,
            manual_ack=True,
        )
        if address.user is not None:
            self.client.username_pw_set(address.user, address.password)
        if address.scheme == "mqtts":
            self.client.tls_set()
        self.client.reconnect_delay_set(max(1, round(FIRST_SECONDS)), round(LONGEST_SECONDS))
        self.client.on_connect_fail = lambda client, data: backoff.failed("the broker cannot be reached")
        self.client.on_disconnect = self._note_end
        self._host, self._port = address.host_and_port(TLS_PORT if address.scheme == "mqtts" else PORT)

    def open(self, kept: bool) -> None:
        """Begin to connect, with a session that is `kept` while the client is away."""
        asked = Properties(PacketTypes.CONNECT)
        asked.SessionExpiryInterval = SESSION_SECONDS if kept else 0
        self.client.connect_async(self._host, self._port, KEEP_ALIVE_SECONDS, clean_start=not kept, properties=asked)
        self.client.loop_start()

    def note(self, reason: ReasonCode) -> None:
        """Note why the broker refused something."""
        if str(reason) in LASTING:
            self.failure = f"{self.name}: the broker says: {reason}"
            if str(reason) == "Session taken over":
                self.failure += "; another process has the same name: give each its own by ?client=NAME"
        else:
            self._backoff.failed(reason)

    def check(self) -> None:
        """Raise what will not get better by waiting."""
        if self.failure:
            raise ValueError(self.failure)

    def _note_end(
        self, client: mqtt.Client, data: object, flags: mqtt.DisconnectFlags, reason: ReasonCode, properties: Properties | None
    ) -> None:
        if reason.is_failure:
            self.note(reason)

    def close(self) -> None:
        """End; the broker keeps the session."""
        self.client.disconnect()
        ending = threading.Thread(target=self.client.loop_stop, daemon=True)  # which may wait between two attempts
        ending.start()
        ending.join(CLOSE_SECONDS)
