"""Tasks, awaited: for what is done before and after a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from fsr.workers.protocol import Completion, Pool, Task, WorkerFault, Workers

TICK_S = 0.1


def completed(
    workers: Workers, pool: Pool, task: Task, tick: Callable[[], None] = lambda: None, *, tries: int = 1
) -> Completion:
    """The task's completion; ``tick`` is called while it runs. ``tries``: how often it is begun in all when the
    worker's process dies under it, which need not be the task's doing; all within the task's time."""
    return all_completed(workers, pool, [task], lambda _: True, tick, tries=tries)[0]


def all_completed(
    workers: Workers,
    pool: Pool,
    tasks: Sequence[Task],
    good: Callable[[Any], bool],
    tick: Callable[[], None] = lambda: None,
    *,
    tries: int = 1,
) -> list[Completion]:
    """The completions of tasks that may run side by side, in their order; or the first alone whose result is not
    ``good``: the others are given up then. Otherwise as :func:`completed`."""
    under_way = {workers.submit(pool, task): (number, tries) for number, task in enumerate(tasks)}
    found: dict[int, Completion] = {}
    while True:
        for completion in workers.wait(TICK_S):
            if completion.ticket not in under_way:
                continue
            number, left = under_way.pop(completion.ticket)
            if died(completion) and left > 1:
                again = replace(tasks[number], timeout_s=max(TICK_S, tasks[number].timeout_s - completion.seconds))
                under_way[workers.submit(pool, again)] = number, left - 1
                continue
            found[number] = completion
            if not good(completion.result):
                if under_way:
                    workers.cancel_all()
                return [completion]
            if not under_way:
                return [found[number] for number in sorted(found)]
        tick()


def died(completion: Completion) -> bool:
    """Whether the worker's process ended under the task: killed from outside, out of memory, or crashed."""
    return isinstance(completion.result, WorkerFault) and completion.result.kind == "crashed"
