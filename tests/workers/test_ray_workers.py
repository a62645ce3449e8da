"""Ray workers: the conformance suite on a Ray started here."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from fsr.errors import MissingToolError, UsageError
from fsr.workers.cluster import ClusterName
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


AUTO = ClusterName("auto")
GPUS = ("GPU-a0", "GPU-b0", "GPU-c0")  # Ray shares out names; that nothing answers to them it never asks


@pytest.fixture(scope="module")
def pool() -> Iterator[Workers]:
    from fsr.workers.ray import ray_workers

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSR_TEST_API_KEY", "hidden")
        patch.setenv("PYTHONPATH", ".")  # actors import the tests' task functions
        with ray_workers(2, 1, GPUS) as workers:
            yield workers


class TestRayWorkers(WorkersConformance):
    @pytest.fixture
    def workers(self, pool: Workers) -> Workers:
        one(pool, "device", "where", None, fresh=True)
        return pool

    @pytest.fixture
    def own_workers(self, pool: Workers) -> Iterator[Workers]:
        from fsr.workers.ray import cluster_workers

        with cluster_workers(AUTO, 2, 1, gpu=False) as workers:
            yield workers

    def test_process_ids_are_told(self, workers: Workers) -> None:
        assert len(workers.pids("compile")) == 2


def test_an_address_without_a_cluster_is_told(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsr.workers import ray as module

    def refuse(**_: object) -> None:
        raise ConnectionError("nobody there")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(UsageError, match="no Ray cluster answers"):
        module.RayBackend(ClusterName("127.0.0.1:1"))


def test_every_device_worker_of_a_cluster_has_a_gpu_of_its_own(pool: Workers) -> None:
    from fsr.workers.ray import cluster_workers

    first = one(pool, "device", "environment", "CUDA_VISIBLE_DEVICES")
    with cluster_workers(AUTO, 1, 2, gpu=None) as workers:
        seen = {
            one(workers, "device", "environment", "CUDA_VISIBLE_DEVICES", 120.0, worker=index) for index in (0, 1)
        }  # an actor waits for its GPU, and for a busy machine to start it
    assert seen | {first} == set(GPUS)
    assert os.environ.get("CUDA_VISIBLE_DEVICES") is None


@pytest.mark.parametrize("chosen", [None, "", "3"])
@pytest.mark.parametrize("gpus", [(), GPUS])
def test_the_environment_is_afterwards_what_it_was(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, gpus: tuple[str, ...]
) -> None:
    from fsr.workers.ray import _environment_of_ray

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    monkeypatch.setenv("FSR_TEST_API_KEY", "hidden")
    with _environment_of_ray(gpus):
        assert "FSR_TEST_API_KEY" not in os.environ
        assert os.environ.get("CUDA_VISIBLE_DEVICES") == (",".join(gpus) if gpus else chosen)
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == chosen
    assert os.environ["FSR_TEST_API_KEY"] == "hidden"


def test_a_cluster_tells_how_many_workers_it_has_room_for(pool: Workers) -> None:
    from fsr.workers.ray import cluster_workers

    assert cluster_workers(AUTO, None, None, gpu=None).size("device") == len(GPUS)
    assert cluster_workers(AUTO, None, None, gpu=None).size("compile") == int(ray.cluster_resources()["CPU"])
    assert cluster_workers(AUTO, 5, None, gpu=False).size("device") == max(1, int(ray.cluster_resources()["CPU"]) // 2)
    assert cluster_workers(AUTO, 5, None, gpu=False).size("compile") == 5


def test_a_cluster_without_gpus_is_told(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsr.workers import ray as module

    monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True, "Resources": {"CPU": 2.0}}])
    with pytest.raises(MissingToolError, match="has no GPU"):
        module.cluster_workers(AUTO, 1, None, gpu=True)
    with module.cluster_workers(AUTO, 1, None, gpu=None) as workers:
        assert one(workers, "device", "double", 2) == 4
