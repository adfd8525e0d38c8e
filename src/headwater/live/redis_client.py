"""Connections to Redis, of source and sink."""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headwater.live.broker_address import BrokerAddress

PORT = 6379
ANSWER_SECONDS = 5.0


def open_redis(address: BrokerAddress) -> redis.Redis:
    """Return a client; it connects when it is used."""
    host, port = address.host_and_port(PORT)
    number = address.options.get("db", "0")
    if not number.isdecimal():
        raise ValueError(f"db must be a number, got {number!r}")
    return redis.Redis(
        host,
        port,
        db=int(number),
        username=address.user,
        password=address.password,
        ssl=address.scheme == "rediss",
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 0),  # waiting is ours
    )


def refuse_unless_away(name: str, error: Exception) -> None:
    """Raise a sentence if the server at `name` answered with an error that trying again does not mend."""
    if not _is_away(error):
        raise ValueError(f"{name}: the server says: {' '.join(str(error).split())[:200]}") from error


def _is_away(error: Exception) -> bool:
    """Whether a server cannot be reached now, and the same may succeed later; wrong passwords and types of keys stay wrong."""
    if isinstance(error, redis.AuthenticationError | redis.exceptions.AuthorizationError):
        return False
    away = (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError, redis.exceptions.TryAgainError)
    return isinstance(error, away) or str(error).startswith(("LOADING", "MASTERDOWN", "OOM"))
