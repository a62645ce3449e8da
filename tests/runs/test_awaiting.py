"""Several tasks awaited at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fsr.runs.awaiting import all_completed
from fsr.workers.protocol import Completion, Task, WorkerFault


@dataclass
class Scripted:
    """Workers whose tasks end in the order of ``results``: (what was asked, how it ended)."""

    results: list[tuple[str, Any]]
    waiting: dict[str, list[int]] = field(default_factory=dict)
    submitted: int = 0
    cancelled: bool = False

    def submit(self, pool: str, task: Task) -> int:
        self.submitted += 1
        self.waiting.setdefault(task.payload, []).append(self.submitted)
        return self.submitted

    def wait(self, timeout_s: float) -> list[Completion]:
        payload, result = self.results.pop(0)
        return [Completion(99, "of somebody else", 0, 0.0), Completion(self.waiting[payload].pop(0), result, 0, 1.0)]

    def cancel_all(self) -> None:
        self.cancelled = True


TASKS = [Task("m:f", "tests", 1.0), Task("m:f", "times", 1.0)]
DIED = WorkerFault("crashed", "signal 9")


def ended(workers: Scripted, tries: int = 1) -> list[Any]:
    done = all_completed(workers, "device", TASKS, lambda result: result == "good", tries=tries)  # type: ignore[arg-type]
    return [one.result for one in done]


def test_all_are_given_in_the_order_of_the_tasks() -> None:
    assert ended(Scripted([("times", "good"), ("tests", "good")])) == ["good", "good"]


def test_the_first_that_is_not_good_ends_the_others() -> None:
    workers = Scripted([("tests", "wrong")])
    assert ended(workers) == ["wrong"]
    assert workers.cancelled


def test_a_task_whose_worker_died_is_begun_again() -> None:
    workers = Scripted([("tests", DIED), ("times", "good"), ("tests", "good")])
    assert ended(workers, tries=2) == ["good", "good"]
    assert workers.submitted == 3
    assert ended(Scripted([("tests", DIED), ("tests", DIED)]), tries=2) == [DIED]
