"""Which devices a run uses: one, all GPUs of a model, or the host; and which of them are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fsr.backends.backend import Gpu
from fsr.backends.seats import Seat
from fsr.errors import MissingToolError, UsageError
from fsr.runs import fleet
from fsr.runs.fleet import open_fleet
from fsr.runs.options import RefineOptions
from fsr.workers.protocol import Completion, Task, WorkerFault
from tests.nvidia import FakeDriver, use_driver, uuid

H200 = Gpu(uuid(0), "NVIDIA H200", "sm_90")
OTHER_H200 = Gpu(uuid(1), "NVIDIA H200", "sm_90")
L4 = Gpu(uuid(2), "NVIDIA L4", "sm_89")


class Seated:
    """Device workers that answer with these seats, the last one first."""

    def __init__(self, seats: Sequence[Seat | WorkerFault]) -> None:
        self.seats = dict(enumerate(seats))
        self.asked: list[int] = []

    def size(self, pool: str) -> int:
        return len(self.seats) if pool == "device" else 2

    def submit(self, pool: str, task: Task) -> int:
        assert (pool, task.function) == ("device", "fsr.backends.seats:seat_task")
        assert task.worker is not None
        self.asked.append(task.worker)
        return 70 + task.worker

    def wait(self, timeout_s: float) -> list[Completion]:
        index = self.asked.pop()
        return [Completion(70 + index, self.seats[index], 2 + index, 0.1)]

    def leave_out(self, pool: str, worker: int) -> None:
        del self.seats[worker]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked of open_workers; the workers answer with one seat for every GPU they were given."""
    asked: list[Any] = []
    known: Mapping[str, Gpu] = {gpu.uuid: gpu for gpu in (H200, OTHER_H200, L4)}

    @contextmanager
    def open_workers(
        count: int | None, ray: str | None, gpus: Sequence[str] = (), device_workers: int = 1
    ) -> Iterator[Seated]:
        asked.append((ray, list(gpus)))
        yield Seated([Seat(known.get(gpu, L4)) for gpu in gpus])

    monkeypatch.setattr(fleet, "open_workers", open_workers)
    return asked


def options(device: str = "auto", ray: str | None = None) -> RefineOptions:
    return RefineOptions(Path("kernel.cu"), device, ray=ray)


def seated(monkeypatch: pytest.MonkeyPatch, *seats: Seat | WorkerFault) -> Seated:
    """A cluster whose device workers are these."""
    workers = Seated(seats)

    @contextmanager
    def cluster_workers(*_: Any, **__: Any) -> Iterator[Seated]:
        yield workers

    monkeypatch.setattr("fsr.workers.ray.cluster_workers", cluster_workers)
    return workers


def test_all_gpus_of_the_first_ones_model_are_used(monkeypatch: pytest.MonkeyPatch, opened: list[Any]) -> None:
    use_driver(monkeypatch, FakeDriver("NVIDIA H200", "NVIDIA H200", "NVIDIA L4"))
    with open_fleet(options(), None) as found:
        assert (found.device, found.target) == ("cuda:0", "sm_90")
        assert found.notes == ("searched on 2 GPUs: NVIDIA H200",)
    assert opened == [(None, [uuid(0), uuid(1)])]


@pytest.mark.parametrize(
    ("device", "ray", "single", "asked", "called"),
    [
        ("cuda:1", None, False, (None, []), "cuda:1"),  # one GPU needs no Ray, and keeps its number
        ("auto", None, True, (None, []), "cuda:0"),
        ("cuda:1", "local", False, ("local", [uuid(1)]), "cuda:0"),
        ("host", "local", False, ("local", []), "host"),
    ],
)
def test_one_device(
    monkeypatch: pytest.MonkeyPatch, opened: list[Any], device: str, ray: str | None, single: bool, asked: Any,
    called: str,
) -> None:  # fmt: skip
    use_driver(monkeypatch, FakeDriver("NVIDIA H200", "NVIDIA H200"))
    with open_fleet(options(device, ray), None, single=single) as found:
        assert (found.device, found.notes) == (called, ())
    assert opened == [asked]


def test_without_a_gpu_the_host_device_predicts(monkeypatch: pytest.MonkeyPatch, opened: list[Any]) -> None:
    use_driver(monkeypatch, None)
    with open_fleet(options(), None) as found:
        assert (found.device, found.target) == ("host", "sm_90")
    with pytest.raises(UsageError), open_fleet(RefineOptions(Path("k.cu"), "host", target="sm_1"), None):
        pass
    assert len(opened) == 1


def test_what_cannot_be_compared_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = seated(
        monkeypatch, Seat(H200, "process 7"), Seat(OTHER_H200), Seat(L4), Seat(OTHER_H200), Seat(None, node="n3"),
        WorkerFault("timed_out", "no answer\nfsr.backends.seats:seat_task ran longer than 60 s"),
    )  # fmt: skip
    with open_fleet(options(ray="10.0.0.1:6379"), None) as found:
        assert (found.device, found.target) == ("cuda:0", "sm_90")
        assert found.notes == (
            "GPU 0 is left out: in use by process 7",
            "GPU 2 is left out: NVIDIA L4 is not the model of the first",
            "GPU 3 is left out: it is GPU 1 again",
            "GPU 4 is left out: the driver of n3 shows none",
            "GPU 5 is left out: fsr.backends.seats:seat_task ran longer than 60 s",
        )
    assert list(workers.seats) == [1]


def test_when_all_are_in_use_the_first_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = seated(monkeypatch, Seat(H200, "process 7"), Seat(OTHER_H200, "process 8"))
    with open_fleet(options(ray="auto"), None):
        assert list(workers.seats) == [0]


def test_a_cluster_without_gpus_executes_on_the_host_device(monkeypatch: pytest.MonkeyPatch) -> None:
    seated(monkeypatch, Seat(None, node="n1"))
    with open_fleet(options(ray="auto"), None) as found:
        assert found.device == "host"
    with (
        pytest.raises(MissingToolError, match="found a GPU: the driver of n1 shows none"),
        open_fleet(options("cuda", ray="auto"), None),
    ):
        pass


def test_a_cluster_chooses_the_gpu_itself() -> None:
    with pytest.raises(UsageError, match="on a Ray cluster"), open_fleet(options("cuda:1", ray="auto"), None):
        pass
    with pytest.raises(MissingToolError, match="cuda and host only"), open_fleet(options("hip", ray="auto"), None):
        pass


@pytest.mark.parametrize(
    ("cores", "gigabytes", "workers"),
    [(1, 64, 1), (2, 64, 2), (4, 64, 3), (16, 64, 8), (64, 512, 8), (16, 9, 2), (16, 1, 1)],
)
def test_host_devices_take_three_cores_in_four_as_far_as_memory_goes(
    monkeypatch: pytest.MonkeyPatch, cores: int, gigabytes: int, workers: int
) -> None:
    monkeypatch.setattr(fleet, "_available_bytes", lambda: gigabytes << 30)
    monkeypatch.setattr(fleet.os, "sched_getaffinity", lambda _: set(range(cores)))
    assert fleet.host_workers() == workers


def test_available_memory_counts_what_the_cache_would_give_back(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8000 kB\nMemFree: 10 kB\nMemAvailable:   4000 kB\n")
    assert fleet._available_bytes(tmp_path / "meminfo") == 4000 * 1024
    (tmp_path / "old").write_text("MemTotal: 8000 kB\n")
    assert fleet._available_bytes(tmp_path / "old") == 0
    assert fleet._available_bytes() > 0
