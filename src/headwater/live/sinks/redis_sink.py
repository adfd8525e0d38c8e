"""Answers as entries of a stream of Redis: ``redis://host/stream``."""

from __future__ import annotations

from collections.abc import Sequence

import redis

from headwater.live.backoff import Backoff
from headwater.live.broker_address import parse_address
from headwater.live.events import Answer
from headwater.live.learner import Notice
from headwater.live.redis_client import open_redis, refuse_unless_away
from headwater.live.sinks.line_sink import json_line
from headwater.live.sinks.sink import Sink, Undelivered

FIELD = "json"


class RedisSink(Sink):
    """Adds an entry for each answer, with one field, ``json``.

    Parameters
    ----------
    text : str
        The address; options are ``db`` and ``maxlen``, about how many entries the stream keeps.
    notice : callable
        Is told when the server is away.
    """

    def __init__(self, text: str, notice: Notice) -> None:
        address = parse_address(text, ("db", "maxlen"))
        length = address.options.get("maxlen")
        if length is not None and not length.isdecimal():
            raise ValueError(f"maxlen must be a number, got {length!r}")
        self._name, self._stream, self._length = address.name, address.stream, None if length is None else int(length)
        self._client, self._backoff = open_redis(address), Backoff(address.name, notice)

    def write(self, answers: Sequence[Answer]) -> None:
        while True:
            try:
                with self._client.pipeline(transaction=True) as pipe:
                    for answer in answers:
                        pipe.xadd(self._stream, {FIELD: json_line(answer).rstrip()}, maxlen=self._length)
                    pipe.execute()
            except redis.RedisError as error:
                refuse_unless_away(self._name, error)
                self._backoff.failed(error)
                if not self._backoff.wait_until(self.stopping):
                    raise Undelivered from error
                continue
            self._backoff.succeeded()
            return

    def close(self) -> None:
        self._client.close()
