"""What every kind of workers must do; run against local processes and against Ray."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fsr.workers.protocol import Completion, Pool, Task, WorkerFault, Workers

TASKS = "tests.workers.tasks"


def drain(workers: Workers, timeout_s: float = 280.0) -> list[Completion]:
    """Everything that is pending, in the order of completion."""
    found: list[Completion] = []
    deadline = time.monotonic() + timeout_s
    while workers.pending("compile") + workers.pending("device"):
        assert time.monotonic() < deadline, "tasks did not finish"
        found += workers.wait(0.5)
    return found


def one(workers: Workers, pool: Pool, name: str, payload: Any, timeout_s: float = 200.0, **more: Any) -> Any:
    """The result of a single task."""
    ticket = workers.submit(pool, Task(f"{TASKS}:{name}", payload, timeout_s, **more))
    (completion,) = drain(workers)
    assert completion.ticket == ticket
    return completion.result


class WorkersConformance:
    """Subclass it with its two fixtures: two compile workers, one device worker, entered."""

    @pytest.fixture
    def workers(self) -> Iterator[Workers]:
        raise NotImplementedError

    @pytest.fixture
    def own_workers(self) -> Iterator[Workers]:
        """The same, for one test alone."""
        raise NotImplementedError

    def test_every_ticket_is_reported_once_with_its_result(self, workers: Workers) -> None:
        tickets = {workers.submit("compile", Task(f"{TASKS}:double", i, 200)): i for i in range(30)}
        found = drain(workers)
        assert {c.ticket: c.result for c in found} == {ticket: 2 * i for ticket, i in tickets.items()}
        assert len(found) == 30

    def test_sizes_and_pending(self, workers: Workers) -> None:
        assert (workers.size("compile"), workers.size("device")) == (2, 1)
        workers.submit("device", Task(f"{TASKS}:sleep", 0.05, 200))
        assert workers.pending("device") == 1
        assert workers.pending("compile") == 0
        drain(workers)
        assert workers.pending("device") == 0

    def test_a_killed_worker_costs_its_task_only(self, workers: Workers) -> None:
        lost = workers.submit("compile", Task(f"{TASKS}:die", int(signal.SIGKILL), 200))
        kept = [workers.submit("compile", Task(f"{TASKS}:double", i, 200)) for i in range(6)]
        found = {c.ticket: c.result for c in drain(workers)}
        assert isinstance(found[lost], WorkerFault)
        assert found[lost].kind == "crashed"
        assert [found[ticket] for ticket in kept] == [0, 2, 4, 6, 8, 10]

    def test_an_exit_is_a_crash(self, workers: Workers) -> None:
        fault = one(workers, "device", "leave", 3)
        assert isinstance(fault, WorkerFault)
        assert fault.kind == "crashed"
        assert one(workers, "device", "double", 4) == 8

    def test_a_task_past_its_time_is_killed_and_its_worker_replaced(self, workers: Workers) -> None:
        before = one(workers, "device", "where", None)
        fault = one(workers, "device", "sleep", 3600.0, timeout_s=0.5)  # longer than any test may take
        assert isinstance(fault, WorkerFault)
        assert fault.kind == "timed_out"
        assert "0.5 s" in fault.detail
        assert one(workers, "device", "where", None) != before

    def test_an_exception_is_told_and_the_worker_stays(self, workers: Workers) -> None:
        before = one(workers, "device", "where", None)
        fault = one(workers, "device", "fail", "no such kernel")
        assert isinstance(fault, WorkerFault)
        assert fault.kind == "raised"
        assert "no such kernel" in fault.detail
        assert isinstance(fault.error, ValueError)
        assert one(workers, "device", "where", None) == before

    def test_a_fatal_exception_replaces_the_worker(self, workers: Workers) -> None:
        before = one(workers, "device", "where", None)
        fault = one(workers, "device", "lose", "context gone")
        assert isinstance(fault, WorkerFault)
        assert fault.kind == "raised"
        assert one(workers, "device", "where", None) != before

    def test_a_result_that_does_not_pickle_is_a_fault(self, workers: Workers) -> None:
        fault = one(workers, "device", "unpicklable", None)
        if isinstance(fault, WorkerFault):  # local: pickle refuses; Ray's cloudpickle may carry it
            assert "pickle" in fault.detail
        else:
            assert fault() is None

    def test_state_stays_in_the_process_until_it_is_made_fresh(self, workers: Workers) -> None:
        assert one(workers, "device", "count", None) == 1
        assert one(workers, "device", "count", None) == 2
        assert one(workers, "device", "count", None, fresh=True) == 1

    def test_pinned_tasks_go_to_their_worker(self, workers: Workers) -> None:
        pids = set()
        for _ in range(6):
            pids.add(one(workers, "compile", "where", None, worker=1))
        assert len(pids) == 1

    def test_a_worker_that_was_left_out_gets_nothing_more(self, own_workers: Workers) -> None:
        workers = own_workers
        workers.leave_out("compile", 0)
        assert (workers.size("compile"), workers.size("device")) == (1, 1)
        left = one(workers, "compile", "where", None, worker=1)
        for i in range(3):
            ticket = workers.submit("compile", Task(f"{TASKS}:where", i, 200))
            (done,) = drain(workers)
            assert (done.ticket, done.result, done.worker) == (ticket, left, 1)
        assert one(workers, "device", "double", 4) == 8

    def test_secrets_do_not_reach_workers(self, workers: Workers) -> None:
        assert os.environ["FSR_TEST_API_KEY"] == "hidden"
        assert one(workers, "device", "environment", "FSR_TEST_API_KEY") is None
        assert one(workers, "device", "environment", "PATH")

    def test_cancel_drops_what_runs_and_waits(self, workers: Workers) -> None:
        for _ in range(4):
            workers.submit("device", Task(f"{TASKS}:sleep", 60.0, 90))
        workers.cancel_all()
        assert workers.pending("device") == 0
        assert one(workers, "device", "double", 21) == 42

    def test_busy_share_counts_time_in_tasks(self, workers: Workers) -> None:
        one(workers, "device", "double", 1)
        assert 0.0 <= workers.busy_share("device") <= 1.0
        one(workers, "device", "sleep", 0.5)
        assert workers.busy_share("device") > 0.0

    def test_an_unknown_function_is_a_fault_not_a_crash(self, workers: Workers) -> None:
        fault = one(workers, "device", "absent", None)
        assert isinstance(fault, WorkerFault)
        assert fault.kind == "raised"
        assert "absent" in fault.detail
