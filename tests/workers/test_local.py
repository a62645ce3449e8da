"""Local worker processes: the conformance suite, and what only processes of this machine can show."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsr.sandbox.environment import clean_environment
from fsr.workers.local import local_workers
from fsr.workers.protocol import Task, WorkerFault, Workers
from tests.conformance.workers import TASKS, WorkersConformance, drain, one


@pytest.fixture(scope="module")
def pool() -> Iterator[Workers]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSR_TEST_API_KEY", "hidden")
        with local_workers(2, 1) as workers:
            yield workers


class TestLocalWorkers(WorkersConformance):
    @pytest.fixture
    def workers(self, pool: Workers) -> Workers:
        one(pool, "device", "where", None, fresh=True)
        return pool

    @pytest.fixture
    def own_workers(self) -> Iterator[Workers]:
        with local_workers(2, 1) as workers:
            yield workers

    def test_killed_from_outside_while_idle(self, workers: Workers) -> None:
        for pid in [*workers.pids("compile"), *workers.pids("device")]:
            os.kill(pid, 9)
        time.sleep(0.1)
        for i in range(4):
            workers.submit("compile", Task(f"{TASKS}:double", i, 30))
        workers.submit("device", Task(f"{TASKS}:double", 9, 30))
        results = [c.result for c in drain(workers)]
        faults = [r for r in results if isinstance(r, WorkerFault)]
        assert len(results) == 5
        assert len(faults) <= 3  # a task sent to a dead process is told as crashed, not lost
        assert one(workers, "compile", "double", 5) == 10


def test_every_device_worker_of_several_sees_its_own_gpu_only() -> None:
    gpus = ("GPU-a0", "GPU-b0")
    with local_workers(1, 2, gpus) as workers:
        for index, gpu in enumerate(gpus):
            for fresh in (False, True):
                assert one(workers, "device", "environment", "CUDA_VISIBLE_DEVICES", worker=index, fresh=fresh) == gpu
        assert one(workers, "compile", "environment", "CUDA_VISIBLE_DEVICES") is None


def test_what_a_kernel_prints_does_not_reach_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    with local_workers(1, 1) as workers:
        assert one(workers, "device", "say", "index out of bound 720") == 22
        assert one(workers, "device", "say", "again", fresh=True) == 5
    assert capfd.readouterr().out == ""


def test_processes_and_their_children_end_with_the_pool() -> None:
    with local_workers(1, 1) as workers:
        pids = [*workers.pids("compile"), *workers.pids("device")]
        grandchild = one(workers, "compile", "spawn_child", "600")
    while any(alive(pid) for pid in [*pids, grandchild]):  # the test's own limit ends it where they never do
        time.sleep(0.05)


def test_idle_workers_leave_by_themselves_and_busy_ones_are_killed(tmp_path: Path) -> None:
    with local_workers(2, 1) as workers:
        one(workers, "compile", "say_when_ended", str(tmp_path / "idle"), worker=0)
        one(workers, "compile", "say_when_ended", str(tmp_path / "busy"), worker=1)
        workers.submit("compile", Task(f"{TASKS}:sleep", 3600.0, 3600, worker=1))  # longer than any test may take
    assert (tmp_path / "idle").read_text() == "ended"
    assert not (tmp_path / "busy").exists()


def test_a_pool_without_workers_is_refused() -> None:
    with local_workers(1, 0) as workers, pytest.raises(ValueError, match="device pool has no workers"):
        workers.submit("device", Task(f"{TASKS}:double", 1, 1))


def test_secrets_are_left_out_of_the_environment() -> None:
    given = {"PATH": "/bin", "OPENAI_API_KEY": "x", "HF_TOKEN": "x", "AWS_SECRET_ACCESS_KEY": "x", "LANG": "C"}
    assert clean_environment(given) == {"PATH": "/bin", "LANG": "C"}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
