"""Ray workers: the conformance suite on a Ray started here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fsr.errors import UsageError
from fsr.workers.protocol import Workers
from tests.conformance.workers import WorkersConformance, one

ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves its own sockets to the collector
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.xdist_group("ray"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[Workers]:
    from fsr.workers.ray import ray_workers

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSR_TEST_API_KEY", "hidden")
        patch.setenv("PYTHONPATH", ".")  # actors import the tests' task functions
        with ray_workers("local", 2, 1) as workers:
            yield workers


class TestRayWorkers(WorkersConformance):
    @pytest.fixture
    def workers(self, pool: Workers) -> Workers:
        one(pool, "device", "where", None, fresh=True)
        return pool

    def test_process_ids_are_told(self, workers: Workers) -> None:
        assert len(workers.pids("compile")) == 2


def test_an_address_without_a_cluster_is_told(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsr.workers import ray as module

    def refuse(**_: object) -> None:
        raise ConnectionError("nobody there")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(UsageError, match="no Ray cluster answers"):
        module.RayBackend("127.0.0.1:1", 0)
