"""A server of a live model on a free port of this machine, for tests."""

import queue
import threading
from contextlib import contextmanager

import httpx

from headwater.live.engine import Engine, EngineSettings
from headwater.live.http.limits import Limits
from headwater.live.http.server import ServerSettings, serve
from headwater.live.http.service import Service
from headwater.live.outlets import Outlets
from headwater.live.scorer import Decision


@contextmanager
def server(model, folder=None, token=None, limits=Limits(), **settings):  # noqa: B008 - frozen
    """Yield a client and the service."""
    chosen = EngineSettings(**{"learns": folder is not None, "folder": folder, "decision": Decision(rate=0.01), **settings})
    service = Service(Engine(model, chosen), [], Outlets(), lambda kind, **parts: None)
    said, stop = queue.Queue(), threading.Event()

    def notice(kind, **parts):
        said.put(parts["address"])

    def run():
        try:
            serve(service, ServerSettings(port=0, token=token, limits=limits), notice, stop.is_set)
        except BaseException as error:
            said.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    address = said.get(timeout=30.0)
    if isinstance(address, BaseException):
        raise address
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=30.0) as client:
            while client.get("/ready").status_code != 200:
                pass
            yield client, service
    finally:
        stop.set()
        thread.join()
