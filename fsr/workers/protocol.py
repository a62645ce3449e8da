"""Who does the work: one protocol for supervised local processes and for Ray.

A task names a function by import path and carries a picklable payload; the workers know nothing of kernels.
There are two pools: 'compile' (many processes, never open a device) and 'device' (one process a device, the
device's exclusive owner). State between tasks lives in the worker process, in the task function's module.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self

Pool = Literal["compile", "device"]


@dataclass(frozen=True, slots=True)
class Task:
    """``function`` is 'package.module:name', called with ``payload`` as its only argument. ``timeout_s`` is
    wall time in the worker: past it the process is killed. ``worker``: pin to that worker index of the pool.
    ``fresh``: replace the worker's process first. An escaping exception with a true ``fatal`` attribute makes the
    worker's process unusable (a lost GPU context); it is replaced after the completion."""

    function: str
    payload: Any
    timeout_s: float
    worker: int | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class WorkerFault:
    """The task did not return: 'crashed' (the process died: signal or exit code in detail), 'timed_out'
    (killed at its limit) or 'raised' (an exception escaped; detail holds the traceback, ``error`` the
    exception when it pickles). A fault of the task, told as a value; the pool has already replaced the worker."""

    kind: Literal["crashed", "timed_out", "raised"]
    detail: str
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished task: exactly one for every submitted ticket that was not cancelled."""

    ticket: int
    result: Any  # what the function returned, or a WorkerFault
    worker: int
    seconds: float


class Workers(Protocol):
    """A running set of pools; a context manager that ends every process, and their children, on exit."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def size(self, pool: Pool) -> int:
        """How many workers the pool has."""

    def submit(self, pool: Pool, task: Task) -> int:
        """Queue a task; returns its ticket. Never blocks."""

    def wait(self, timeout_s: float) -> list[Completion]:
        """Completions since the last call, oldest first; waits up to timeout_s for at least one."""

    def pending(self, pool: Pool) -> int:
        """Tasks submitted and not yet reported by ``wait``."""

    def busy_share(self, pool: Pool) -> float:
        """Share of the pool's wall time so far spent inside tasks, 0 to 1."""

    def cancel_all(self) -> None:
        """Drop queued tasks and kill running ones; none of them is reported."""

    def leave_out(self, pool: Pool, worker: int) -> None:
        """End an idle worker and give it nothing more; the others keep their numbers."""

    def pids(self, pool: Pool) -> list[int]:
        """Process ids of the pool's workers (tests kill them); may be empty for remote workers."""
