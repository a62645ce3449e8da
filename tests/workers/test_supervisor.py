"""Workers that have to wait for a place: what is theirs goes to others, and waiting is nobody's fault."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fsr.errors import MissingToolError
from fsr.workers import supervisor as module
from fsr.workers.protocol import Pool, Task
from fsr.workers.supervisor import Supervisor, Worker


class Placed:
    """A worker that answers with its name once its backend has a place for it."""

    pid = None

    def __init__(self, backend: Cluster, name: str) -> None:
        self.backend, self.name, self.task = backend, name, None

    def ready(self, timeout_s: float = 0.0) -> bool:
        if self.name not in self.backend.places and timeout_s:
            time.sleep(0.001)
        return self.name in self.backend.places

    def send(self, task: Task) -> None:
        self.task = task

    def release(self) -> None: ...
    def kill(self) -> None: ...


class Cluster:
    """Has places for the workers that it names."""

    def __init__(self, *places: str) -> None:
        self.places = set(places)

    def start(self, pool: Pool, index: int) -> Placed:
        return Placed(self, f"{pool} {index}")

    def poll(self, busy: list[Worker], timeout_s: float) -> list[tuple[Worker, Any, bool]]:
        return [(worker, worker.name, True) for worker in busy if isinstance(worker, Placed) and worker.ready()]

    def close(self) -> None: ...


TASK = Task("m:f", None, 0.02)


def test_a_task_goes_to_a_worker_that_has_a_place() -> None:
    cluster = Cluster("device 1")
    with Supervisor(cluster, {"device": 2}) as workers:
        tickets = [workers.submit("device", TASK) for _ in range(3)]
        found = [completion for _ in range(3) for completion in workers.wait(1.0)]
        assert [(done.ticket, done.result) for done in found] == [(ticket, "device 1") for ticket in tickets]
        cluster.places.add("device 0")  # a node has joined
        workers.submit("device", TASK)
        assert workers.wait(1.0)[0].result == "device 0"


@pytest.mark.parametrize("fresh", [False, True])
def test_the_time_of_a_task_begins_with_the_place_of_its_worker(fresh: bool) -> None:
    cluster = Cluster("device 0")
    with Supervisor(cluster, {"device": 1}) as workers:
        if not fresh:
            cluster.places.clear()
        workers.submit("device", Task("m:f", None, 0.02, fresh=fresh))
        cluster.places.clear()
        assert workers.wait(0.1) == []
        assert workers.pending("device") == 1
        cluster.places.add("device 0")
        assert [done.result for done in workers.wait(1.0)] == ["device 0"]


@pytest.mark.parametrize("fresh", [False, True])
def test_a_pool_that_is_nowhere_is_told(monkeypatch: pytest.MonkeyPatch, fresh: bool) -> None:
    monkeypatch.setattr(module, "PLACE_S", 0.05)
    cluster = Cluster("compile 0", "device 0")
    with Supervisor(cluster, {"compile": 1, "device": 2}) as workers:
        workers.submit("device", Task("m:f", None, 30.0, fresh=fresh))
        cluster.places.discard("device 0")
        with pytest.raises(MissingToolError, match="no machine has had room for a device worker"):
            workers.wait(5.0)


def test_what_waits_for_a_worker_that_is_left_out_goes_with_it() -> None:
    with Supervisor(Cluster("device 0"), {"device": 2}) as workers:
        workers.submit("device", Task("m:f", None, 1.0, worker=1))
        workers.leave_out("device", 1)
        assert workers.pending("device") == 0
        workers.submit("device", TASK)
        assert [done.result for done in workers.wait(1.0)] == ["device 0"]
