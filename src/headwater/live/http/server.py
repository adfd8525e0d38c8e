"""The server: uvicorn, with time limits for headers, which ends with its service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from headwater.live.http.app import make_app
from headwater.live.http.limits import LOCAL_HOSTS, Limits
from headwater.live.http.service import Service
from headwater.live.learner import Notice

KEEP_ALIVE_SECONDS = 20  # that a connection without a request stays open
GRACE_SECONDS = 5  # that requests have to end when the server stops


@dataclass(frozen=True)
class ServerSettings:
    """Where a server listens, who may ask it, and what for."""

    host: str = "127.0.0.1"
    port: int = 8400
    token: str | None = None
    certificate: str | None = None
    key: str | None = None
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.host not in LOCAL_HOSTS and not self.token:
            raise ValueError(
                f"a server on {self.host} can be reached from other machines, so it needs a token: --token-file, or "
                f"HEADWATER_TOKEN in the environment"
            )
        if (self.certificate is None) != (self.key is None):
            raise ValueError("TLS needs both a certificate and its key")


class _Server(uvicorn.Server):
    """Ends when it is asked to; signals are handled by who runs it."""

    def __init__(self, config: uvicorn.Config, requested: Callable[[], bool], started: Callable[[int], None]) -> None:
        super().__init__(config)
        self._requested, self._told, self._say = requested, False, started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Look whether to end, ten times a second."""
        if not self._told and self.servers:
            self._told = True
            self._say(self.servers[0].sockets[0].getsockname()[1])
        if self._requested():
            self.should_exit = True
        return await super().on_tick(counter)


def serve(service: Service, settings: ServerSettings, notice: Notice, requested: Callable[[], bool] = lambda: False) -> None:
    """Serve until it is `requested` to end, or the service has ended; then let the service save."""
    config = uvicorn.Config(
        make_app(service, settings.token, settings.limits),
        host=settings.host,
        port=settings.port,
        http=_limited_protocol(settings.limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=settings.limits.connections,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=settings.limits.header_bytes,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )
    scheme = "https" if settings.certificate else "http"

    def started(port: int) -> None:
        notice("serving", address=f"{scheme}://{settings.host}:{port}/")

    server = _Server(config, lambda: requested() or service.ended, started)
    service.start()
    try:
        server.run()
    finally:
        service.stop()


def _limited_protocol(limits: Limits) -> type[H11Protocol]:
    """Return the protocol with a limit for the time that a client may take to send a header."""

    class LimitedProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            """Start the clock when a header begins, and stop it when it is complete."""
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                if self._timer is None:
                    self._timer = self.loop.call_later(limits.header_seconds, self.transport.close)
            else:
                self._stop_waiting()

        def _stop_waiting(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return LimitedProtocol
