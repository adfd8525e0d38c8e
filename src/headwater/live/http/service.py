"""The service: an engine and its pump on a thread, and what the server asks of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from headwater.live.engine import Engine
from headwater.live.events import Answer
from headwater.live.http.request_source import Busy, RequestSource
from headwater.live.learner import Notice
from headwater.live.outlets import Outlets
from headwater.live.pump import Pump
from headwater.live.sources.source import Source
from headwater.live.traffic import Traffic

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

HEALTH_SECONDS = 30.0  # for which findings about the model are shown before they are made anew
HISTORY_POINTS = 120  # of the history that the page shows
SHOWN_COMPONENTS = 12


class Service:
    """A live model that a server asks.

    Parameters
    ----------
    engine : Engine
        The engine, not yet started.
    sources : sequence of Source
        Further sources, beside requests.
    outlets : Outlets
        Where answers go, beside those to requests.
    notice : callable
        Is told what happens.
    """

    def __init__(self, engine: Engine, sources: Sequence[Source], outlets: Outlets, notice: Notice) -> None:
        self.engine, self.requests = engine, RequestSource()
        self.traffic = Traffic(engine.scorer)
        self.pump = Pump(engine, [self.requests, *sources], outlets, notice, self.traffic)
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)
        self._health: tuple[float, list[dict[str, object]]] = (-HEALTH_SECONDS, [])

    def start(self) -> None:
        """Begin to take events."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what is in line, save, and end."""
        self.pump.stop()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            self.pump.run()
        except BaseException as error:  # the thread that serves raises it
            self.failure = error

    @property
    def ready(self) -> bool:
        """Whether events are taken."""
        return self._thread.is_alive() and self.pump.started.is_set() and self.engine.learner.failure is None

    @property
    def ended(self) -> bool:
        """Whether the pump has ended, by itself or by a failure."""
        return self._thread.ident is not None and not self._thread.is_alive()

    @property
    def drift_alarms(self) -> int:
        """Alarms of the monitor of drift so far."""
        drift = self.engine.scorer.model._read().drift
        return 0 if drift is None else int(drift.alarms)

    # Models

    def model_bytes(self, raw_rows: bool) -> bytes:
        """Return the file of the model as it is now."""
        from headwater.estimators.model_file import pack
        from headwater.io.files.container import to_bytes

        return to_bytes(*pack(copy(self.engine.learner.model), raw_rows))

    def merge(self, data: bytes) -> Answer:
        """Let the file of another model be merged, after the events that are in line; a ValueError if that cannot be."""
        from headwater.estimators.merge import merge
        from headwater.estimators.model_file import from_bytes

        if not self.engine.settings.learns:
            raise ValueError("this model does not learn: start the server with --learn")
        merge([copy(self.engine.learner.model), from_bytes(data)])  # which is thrown away, and fails here if it fails
        done = threading.Event()
        found: list[Answer] = []

        def work() -> None:
            taken = self.engine.take_model(data)
            self.engine.commit(taken)
            found.extend(taken.answers)
            done.set()

        if not self.pump.do(work) or not done.wait(30.0):
            raise Busy
        return found[0]

    # What the page shows

    def now(self) -> dict[str, object]:
        """Return what changes from second to second."""
        engine, learner, traffic = self.engine, self.engine.learner, self.traffic
        return {
            "model": type(learner.model).__name__,
            "columns": list(engine.reader.columns),
            "learns": engine.settings.learns,
            "events": engine.events,
            "rows": learner.model._runtime.rows,
            "odd": engine.counts.odd,
            "refused": engine.counts.refused,
            "doubles": engine.counts.doubles,
            "backlog": learner.backlog,
            "lags": {source.name: source.lag() for source in self.pump.sources},
            "rates": traffic.rates(120),
            "snapshot_age": time.monotonic() - learner.saved_at if engine.settings.folder is not None else None,
            "threshold": engine.scorer.threshold,
            "score_bounds": traffic.score_bounds.tolist(),
            "score_counts": traffic.score_counts.tolist(),
            "drift_alarms": self.drift_alarms,
            "refusals": [{"error": one["error"], "raw": str(one["raw"])[:200]} for one in list(traffic.refused)[-5:]],
        }

    def course(self) -> dict[str, object]:
        """Return how the model came to be what it is: scores and weights over time, and its health."""
        model = self.engine.scorer.model
        moment, findings = self._health
        if time.monotonic() - moment >= HEALTH_SECONDS:
            findings = _findings(model)
            self._health = (time.monotonic(), findings)
        history = getattr(model, "history_", None)
        points = [] if history is None else history.points[-HISTORY_POINTS:]
        return {
            "health": findings,
            "points": [
                {
                    "rows": point.rows,
                    "score": point.score if np.isfinite(point.score) else None,
                    "weights": list(point.weights[:SHOWN_COMPONENTS]),
                }
                for point in points
            ],
        }


def _findings(model: StreamingEstimator) -> list[dict[str, object]]:
    return [{"action": one.action, "text": one.sentence} for one in model.health_.findings]
