"""What Prometheus scrapes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from headwater.live.traffic import LATENCY_BOUNDS

if TYPE_CHECKING:
    from headwater.live.http.service import Service

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Reads a service when it is scraped."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        found: bytes = generate_latest(self._registry)
        return found

    def describe(self) -> list[Metric]:
        """Return nothing: all metrics are known when they are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        service = self._service
        engine, learner, traffic = service.engine, service.engine.learner, service.traffic
        for name, value, about in (
            ("events", engine.counts.events, "Events that were answered"),
            ("odd_events", engine.counts.odd, "Events that are odd"),
            ("refused_events", engine.counts.refused, "Events that could not be read"),
            ("double_events", engine.counts.doubles, "Events that came again"),
        ):
            yield CounterMetricFamily(f"headwater_{name}", about, value=value)
        for name, gauge, about in (
            ("model_rows", learner.model._runtime.rows, "Rows that the model has learned"),
            ("backlog_events", learner.backlog, "Events that wait to be learned"),
            ("snapshot_age_seconds", time.monotonic() - learner.saved_at, "Seconds since the state was saved"),
            ("snapshot_duration_seconds", learner.snapshot_took, "Seconds that the last snapshot took"),
            ("log_bytes", 0 if engine.log is None else engine.log.n_bytes, "Size of the log of events"),
            ("drift_alarms", service.drift_alarms, "Alarms of the monitor of drift"),
            ("ready", float(service.ready), "Whether events are taken"),
        ):
            yield GaugeMetricFamily(f"headwater_{name}", about, value=float(gauge))
        lag = GaugeMetricFamily("headwater_source_lag", "Events or bytes that wait to be read", labels=["source"])
        for source in service.pump.sources:
            if (waiting := source.lag()) is not None:
                lag.add_metric([source.name], waiting)
        yield lag
        for name, bounds, counts, total, about in (
            ("score", traffic.score_bounds, traffic.score_counts, traffic.score_total, "Scores of events"),
            (
                "answer_seconds",
                LATENCY_BOUNDS,
                traffic.latency_counts,
                traffic.latency_total,
                "Seconds until a group is answered",
            ),
        ):
            cumulative = np.cumsum(counts)
            names = [*(f"{bound:g}" for bound in bounds), "+Inf"]
            yield HistogramMetricFamily(
                f"headwater_{name}", about, buckets=[*zip(names, cumulative.tolist(), strict=True)], sum_value=total
            )
