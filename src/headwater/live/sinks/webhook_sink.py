"""Answers by HTTP: ``webhook:https://host/path`` gets a POST with ``{"answers": [...]}``."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from urllib.parse import urlsplit

from headwater.live.backoff import Backoff
from headwater.live.events import Answer
from headwater.live.learner import Notice
from headwater.live.sinks.sink import Sink, Undelivered

PREFIX = "webhook:"
TOKEN_VARIABLE = "HEADWATER_WEBHOOK_TOKEN"
ANSWER_SECONDS = 10.0  # that the receiver has
MOST_ANSWERS = 500  # of a request
LATER = (408, 425, 429)  # statuses that may be others later, as all from 500


class WebhookSink(Sink):
    """Sends answers, and again until they are taken. What the receiver refuses for good is said in the journal, and left.

    Parameters
    ----------
    text : str
        The address.
    notice : callable
        Is told when the receiver is away, and when it refuses answers.
    """

    def __init__(self, text: str, notice: Notice) -> None:
        self._address = text[len(PREFIX) :]
        parts = urlsplit(self._address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"a webhook must be webhook:https://HOST/PATH, got {PREFIX}{parts.scheme}://{parts.hostname or ''}"
            )
        self._name = f"{PREFIX}{parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # the path may be secret
        self._notice, self._backoff = notice, Backoff(self._name, notice)
        self._headers = {"Content-Type": "application/json", "User-Agent": "headwater"}
        if token := os.environ.get(TOKEN_VARIABLE):
            self._headers["Authorization"] = f"Bearer {token}"
        self._open = urllib.request.build_opener(_NoRedirect).open

    def write(self, answers: Sequence[Answer]) -> None:
        for begin in range(0, len(answers), MOST_ANSWERS):
            part = list(answers[begin : begin + MOST_ANSWERS])
            body = json.dumps({"answers": part}, default=str, allow_nan=False).encode()
            while not self._sent(body, len(part)):
                if not self._backoff.wait_until(self.stopping):
                    raise Undelivered

    def _sent(self, body: bytes, number: int) -> bool:
        """Send a request; return whether that is done, if not as wished."""
        request = urllib.request.Request(self._address, body, self._headers, method="POST")
        try:
            with self._open(request, timeout=ANSWER_SECONDS) as answer:
                answer.read(2**16)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code >= 500 or error.code in LATER:
                self._backoff.failed(f"status {error.code}")
                return False
            self._notice("rejected", name=self._name, status=error.code, answers=number)
        except (OSError, HTTPException) as error:
            self._backoff.failed(error)
            return False
        self._backoff.succeeded()
        return True


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Answers, and a token, go to the named receiver alone."""

    def redirect_request(self, *parts: object) -> None:
        return None
