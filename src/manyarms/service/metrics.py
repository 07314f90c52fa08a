"""Figures for Prometheus, at /metrics: requests as they come, the store and the learner when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from manyarms import __version__

Status = Callable[[], dict[str, Any]]
"""What `live.status` says."""

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
"""Counted by name; a caller may make up others, without end."""
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """What is counted for each request, and what is read off the live store."""

    def __init__(self, status: Status, replica: str | None = None) -> None:
        """replica: a label of every figure, where several processes answer at one address and each has figures of its own."""
        self._replica = replica
        self._registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter("manyarms_requests", "Requests answered", labels, registry=self._registry)
        self._seconds = Histogram(
            "manyarms_request_seconds", "How long answers took", ("route",), buckets=BUCKETS, registry=self._registry
        )
        self._registry.register(_OfStatus(status))
        self._kept: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered."""
        known = (route, method if method in METHODS else "other", status)
        if (found := self._kept.get(known)) is None:
            labels = *known[:2], str(status)
            found = self._kept[known] = self._requests.labels(*labels), self._seconds.labels(route)
        found[0].inc()
        found[1].observe(seconds)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self if self._replica else self._registry)

    def collect(self) -> Iterator[Metric]:
        """Every figure, with the label of this replica."""
        for found in self._registry.collect():
            found.samples = [
                sample._replace(labels={**sample.labels, "replica": str(self._replica)}) for sample in found.samples
            ]
            yield found


class _OfStatus(Collector):
    """What `status` says, in numbers."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """Nothing: the store is not asked before somebody asks for figures."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Asked for, with every reading."""
        status = self._status()
        yield _gauge("manyarms_info", "The release of manyarms", 1.0, version=__version__)
        yield _gauge("manyarms_version", "Chunks of the log folded into what decides here", status["version"])
        yield _gauge("manyarms_store_up", "Whether the store can be read", float(status["waiting"] is not None))
        if status["waiting"] is not None:
            yield _gauge("manyarms_waiting", "Entries of the log that are not folded yet", status["waiting"])
        yield _gauge("manyarms_is_learner", "Whether this process learns for all", float(status["learner"]))
        yield _gauge("manyarms_alarms", "Alarms of the monitors", len(status["alarms"]))
        yield _gauge("manyarms_failures", "What fails behind the decisions", len(status["failures"]))
        for name in ("learned", "replaced", "settled", "rows_refused", "operations_refused"):
            found = CounterMetricFamily(f"manyarms_{name}", f"The store's count of: {name.replace('_', ' ')}")
            found.add_metric([], float(status[name]))
            yield found


def _gauge(name: str, about: str, value: float, **labels: str) -> Metric:
    found = GaugeMetricFamily(name, about, labels=list(labels))
    found.add_metric(list(labels.values()), float(value))
    return found


__all__ = ["MEDIA_TYPE", "Metrics"]
