"""What Prometheus is told, read from the service when it asks."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fsrd.service.service import Service


class ServiceCollector(Collector):
    """The service's figures."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Called for every scrape."""
        status = self._service.status()
        jobs = GaugeMetricFamily("fsr_jobs", "Jobs by state.", labels=["state"])
        for state, count in status["jobs"].items():
            jobs.add_metric([state], count)
        yield jobs
        busy = GaugeMetricFamily("fsr_slot_busy", "Whether a device has a run.", labels=["device", "hardware"])
        for slot in status["slots"]:
            busy.add_metric([slot["device"], slot["hardware"]], slot["job"] is not None)
        yield busy
        yield GaugeMetricFamily("fsr_kernels", "Kernels that are watched.", status["kernels"])
        yield GaugeMetricFamily("fsr_paused", "Whether its owner paused the service.", status["paused"])
        yield CounterMetricFamily("fsr_file_events", "File events that could concern a kernel.", status["events"])
        yield GaugeMetricFamily("fsr_spent_today_seconds", "What runs took today.", status["spent_today_s"])
        yield GaugeMetricFamily("fsr_healthy", "Whether all parts of the service work.", not self._service.health())
        yield GaugeMetricFamily("fsr_resident_bytes", "Memory of the service.", psutil.Process().memory_info().rss)


def metrics(service: Service) -> bytes:
    """In the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(ServiceCollector(service))
    return generate_latest(registry)
