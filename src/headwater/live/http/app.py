"""The interface: events in, answers out; the model, its health, metrics and a page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from headwater.live.events import Event
from headwater.live.http import limits
from headwater.live.http.limits import Guard, Limits, events_of, read_body
from headwater.live.http.metrics import CONTENT_TYPE, Metrics
from headwater.live.http.openapi import describe_interface
from headwater.live.http.request_source import Busy
from headwater.live.http.service import Service

PAGE_SECONDS = 1.0  # between two looks of the page
COURSE_SECONDS = 5  # between two looks at what changes slowly
PARSED_ON_LOOP_BYTES = 2**16  # of a body; larger ones are parsed on another thread
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
PAGE_FILES = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
LINES = limits.LINE_TYPES


class Json(Response):
    """A value as JSON, on which nothing else waits."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return the bytes of a value."""
        return json.dumps(content, ensure_ascii=False, allow_nan=False, default=str).encode(errors="replace")


def make_app(service: Service, token: str | None = None, asked: Limits = Limits()) -> Starlette:  # noqa: B008 - frozen
    """Return the application of a service; with a `token`, requests must have it."""
    from headwater import __version__

    metrics, pages = Metrics(service), _Pages(service, asked.pages)
    interface = describe_interface(__version__, service.engine.reader.columns, token is not None)

    async def read_events(request: Request) -> list[Event]:
        body = await read_body(request, (*limits.JSON_TYPES, *LINES), asked.body_bytes, asked.body_seconds)
        lines = request.headers["content-type"].split(";")[0].strip().lower() in LINES
        if len(body) > PARSED_ON_LOOP_BYTES:
            return await run_in_threadpool(events_of, body, lines, asked.rows)
        return events_of(body, lines, asked.rows)

    async def events(request: Request) -> Response:
        found = await read_events(request)
        if not service.ready:
            raise HTTPException(503, "the server does not take events now")
        answers = await asyncio.wait_for(service.requests.submit(found), asked.answer_seconds)
        return Json({"answers": answers})

    async def score(request: Request) -> Response:
        found = await read_events(request)
        return Json({"answers": await run_in_threadpool(service.engine.score, found)})

    async def model(request: Request) -> Response:
        wanted = request.query_params.get("raw_rows", "false")
        if wanted not in ("true", "false"):
            raise HTTPException(400, "raw_rows must be true or false")
        data = await run_in_threadpool(service.model_bytes, wanted == "true")
        return Response(data, media_type="application/octet-stream")

    async def merge(request: Request) -> Response:
        data = await read_body(request, limits.FILE_TYPES, asked.model_bytes, asked.body_seconds)
        try:
            return Json(await run_in_threadpool(service.merge, data))
        except ValueError as error:
            raise HTTPException(422, str(error)) from None

    async def health(request: Request) -> Response:
        failure = service.failure or service.engine.learner.failure
        return Json({"status": "ok"}) if failure is None else Json({"status": "failed", "error": str(failure)}, 503)

    async def ready(request: Request) -> Response:
        return Json({"status": "ready"}) if service.ready else Json({"status": "starting", "error": "not ready"}, 503)

    async def scrape(request: Request) -> Response:
        return Response(await run_in_threadpool(metrics.text), headers={"Content-Type": CONTENT_TYPE})

    async def description(request: Request) -> Response:
        return Json(interface)

    async def look(request: Request) -> Response:
        return StreamingResponse(pages.watch(request), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    taking: list[tuple[str, Callable[[Request], Awaitable[Response]], str]] = [
        ("/events", events, "POST"), ("/score", score, "POST"), ("/model", model, "GET"), ("/merge", merge, "POST"),
        ("/health", health, "GET"), ("/ready", ready, "GET"), ("/metrics", scrape, "GET"), ("/look", look, "GET"),
        ("/openapi.json", description, "GET"),
    ]  # fmt: skip
    routes = [Route(path, function, methods=[method]) for path, function, method in taking]
    routes += [Route(path, _file_sender(*found), methods=["GET"]) for path, found in PAGE_FILES.items()]
    handlers: dict[Any, Any] = {
        HTTPException: _say,
        Busy: _busy,
        TimeoutError: _busy,
        OSError: _unavailable,
    }
    return Starlette(routes=routes, middleware=[Middleware(Guard, token=token)], exception_handlers=handlers)


class _Pages:
    """Pages that are shown."""

    def __init__(self, service: Service, most: int) -> None:
        self._service, self._most, self._shown = service, most, 0

    async def watch(self, request: Request) -> AsyncIterator[bytes]:
        """Yield what a page shows, again and again."""
        if self._shown >= self._most:
            yield b'event: full\ndata: {"error": "too many pages are open"}\n\n'
            return
        self._shown += 1
        try:
            odd, looks = 0, 0
            while not await request.is_disconnected() and not self._service.pump.stopping.is_set():
                if looks % COURSE_SECONDS == 0:
                    yield _event("course", await run_in_threadpool(self._service.course))
                odd, new = self._service.traffic.odd_after(odd)
                now = await run_in_threadpool(self._service.now)
                yield _event("now", {**now, "new_odd": new})
                looks += 1
                await asyncio.sleep(PAGE_SECONDS)
        finally:
            self._shown -= 1


def _event(name: str, value: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + json.dumps(value, default=str).encode() + b"\n\n"


def _file_sender(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    data = Path(str(resources.files("headwater.live.http") / "page" / name)).read_bytes()

    async def send(request: Request) -> Response:
        return Response(data, media_type=kind, headers=PAGE_HEADERS)

    return send


async def _say(request: Request, error: HTTPException) -> Response:
    return Json({"error": str(error.detail)}, error.status_code, headers=error.headers)


async def _busy(request: Request, error: Exception) -> Response:
    return Json({"error": "too many events wait: send this again later"}, 429, headers={"Retry-After": "1"})


async def _unavailable(request: Request, error: OSError) -> Response:
    return Json({"error": f"the event could not be logged: {error.strerror or error}"}, 503)
