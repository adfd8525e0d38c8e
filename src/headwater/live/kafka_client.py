"""Settings of Kafka clients, of source and sink, and errors that stay."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import KafkaError

from headwater.live.backoff import Backoff
from headwater.live.broker_address import BrokerAddress

PORT = 9092
LASTING = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._FATAL,
)


def kafka_settings(address: BrokerAddress, backoff: Backoff) -> dict[str, object]:
    """Return what every client is told: brokers, user, and settings of librdkafka from the address or a file of them."""
    hosts = [host if ":" in host else f"{host}:{PORT}" for host in address.hosts.split(",")]
    found: dict[str, object] = {"bootstrap.servers": ",".join(hosts), "client.id": "headwater"}
    if address.user is not None:
        found |= {"sasl.username": address.user, "sasl.password": address.password or "", "sasl.mechanism": "PLAIN"}
        found["security.protocol"] = "SASL_SSL"
    if (file := address.options.get("settings")) is not None:
        found |= read_settings(Path(file))
    found |= {name: value for name, value in address.options.items() if "." in name}
    return found | {"error_cb": lambda error: backoff.failed(error.str()), "log_level": 0}


def read_settings(path: Path) -> dict[str, str]:
    """Return the settings of a file with a line such as ``sasl.password=secret`` for each."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, sign, value = text.partition("=")
        if not sign:
            raise ValueError(f"{path}, line {number}: a setting must be NAME=VALUE")
        found[name.strip()] = value.strip()
    return found
