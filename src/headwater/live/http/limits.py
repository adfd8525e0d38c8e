"""What a request may ask for: its size, its rows, its time, who may send it."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.live.events import Event
from headwater.live.text_events import json_event

JSON_TYPES = ("application/json",)
LINE_TYPES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")
FILE_TYPES = ("application/octet-stream",)
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
OPEN_PATHS = ("/", "/page.js", "/page.css", "/health", "/ready", "/openapi.json")  # of which nothing is secret


@dataclass(frozen=True)
class Limits:
    """What one client may take."""

    body_bytes: int = 2**22
    model_bytes: int = 2**28  # of a model that is to be merged
    rows: int = 10_000  # of a request
    body_seconds: float = 30.0  # until a body has arrived
    header_seconds: float = 10.0  # until a header has
    answer_seconds: float = 30.0
    connections: int = 256
    pages: int = 16  # that are shown at a time
    header_bytes: int = 2**15


class Guard:
    """Refuses requests without the token, and without one those that do not name this machine as their host.

    A page of the web may send requests to an address that it calls its own and that leads here; its host is then another.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value for name, value in scope["headers"] if name in (b"authorization", b"host")}
        if self._token is None:
            host = headers.get(b"host", b"").decode("latin-1")
            name = host[: host.index("]") + 1].strip("[]") if host.startswith("[") and "]" in host else host.split(":")[0]
            if name.lower() not in LOCAL_HOSTS:
                await _refuse(send, 421, "this server answers requests to this machine alone: start it with a token for others")
                return
        elif scope["path"] not in OPEN_PATHS:
            given = headers.get(b"authorization", b"")
            kind, _, token = given.partition(b" ")
            if kind.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
                await _refuse(
                    send, 401, "the header Authorization must be Bearer and the token", {b"www-authenticate": b"Bearer"}
                )
                return
        await self._app(scope, receive, send)


async def _refuse(send: Send, status: int, sentence: str, headers: Mapping[bytes, bytes] | None = None) -> None:
    body = json.dumps({"error": sentence}).encode()
    found = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *(headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": found})
    await send({"type": "http.response.body", "body": body})


async def read_body(request: Request, types: tuple[str, ...], most: int, seconds: float) -> bytes:
    """Return the body of a request, or refuse it. Other types are refused since pages of other sites may send those."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind not in types:
        raise HTTPException(415, f"the content type must be {' or '.join(types)}")
    if int(request.headers.get("content-length", "0")) > most:
        raise HTTPException(413, f"the body must have at most {most:,} bytes")
    found = bytearray()

    async def read() -> None:
        async for part in request.stream():
            found.extend(part)
            if len(found) > most:
                raise HTTPException(413, f"the body must have at most {most:,} bytes")

    try:
        await asyncio.wait_for(read(), seconds)
    except TimeoutError:
        raise HTTPException(408, f"the body must arrive within {seconds:g} seconds") from None
    except ClientDisconnect:
        raise HTTPException(400, "the client has gone") from None
    return bytes(found)


def events_of(body: bytes, lines: bool, most: int) -> list[Event]:
    """Return the events of a body: of JSON an object with `rows`; or objects, one a line."""
    if lines:
        found = [json_event(line) for line in body.split(b"\n") if line.strip()]
    else:
        try:
            told = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"the body cannot be read as JSON: {error}") from None
        rows = told.get("rows") if isinstance(told, dict) else None
        if not isinstance(rows, list):
            raise HTTPException(422, 'the body must be an object such as {"rows": [{"x": 1.0}]}')
        found = [
            Event(row) if isinstance(row, dict) else Event({}, None, "an event must be a JSON object", str(row)[:200])
            for row in rows
        ]
    if not found:
        raise HTTPException(422, "the body has no rows")
    if len(found) > most:
        raise HTTPException(413, f"a request may have at most {most:,} rows, and this one has {len(found):,}")
    return found
