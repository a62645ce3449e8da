"""One task, awaited: for what is done before and after a search, one thing at a time."""

from __future__ import annotations

from collections.abc import Callable

from fsr.workers.protocol import Completion, Pool, Task, WorkerFault, Workers

TICK_S = 0.1


def completed(
    workers: Workers, pool: Pool, task: Task, tick: Callable[[], None] = lambda: None, *, tries: int = 1
) -> Completion:
    """The task's completion; ``tick`` is called while it runs. ``tries``: how often it is begun in all when the
    worker's process dies under it, which need not be the task's doing."""
    ticket = workers.submit(pool, task)
    while True:
        for completion in workers.wait(TICK_S):
            if completion.ticket != ticket:
                continue
            tries -= 1
            if not died(completion) or not tries:
                return completion
            ticket = workers.submit(pool, task)
        tick()


def died(completion: Completion) -> bool:
    """Whether the worker's process ended under the task: killed from outside, out of memory, or crashed."""
    return isinstance(completion.result, WorkerFault) and completion.result.kind == "crashed"
