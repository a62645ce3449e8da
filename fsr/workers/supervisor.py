"""Queues, deadlines and replacement of workers, the same for every kind of worker process.

A backend knows how to start one worker and how to notice its answers; the supervisor decides who gets what,
kills what overran its time, and replaces what died. It runs in the caller's thread, inside ``submit`` and
``wait``: nothing happens between calls, and no lock is needed.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from fsr.errors import MissingToolError
from fsr.workers.protocol import Completion, Pool, Task, WorkerFault

POOLS: tuple[Pool, ...] = ("compile", "device")
LOOK_S = 0.2  # between two looks at workers that start
PLACE_S = 300.0  # how long a pool may be without a worker that has a place


class Worker(Protocol):
    """One worker process of a backend."""

    @property
    def pid(self) -> int | None:
        """Its process id on this machine; None when it runs elsewhere."""

    def ready(self, timeout_s: float = 0.0) -> bool:
        """Whether it has a place to run, after waiting for it so long at most."""

    def send(self, task: Task) -> None:
        """Start the task; the worker is idle when this is called."""

    def release(self) -> None:
        """Tell an idle worker that nothing more will come, and return at once; ``kill`` follows."""

    def kill(self) -> None:
        """End the process and its children at once, after a moment for one that was released; no answer follows."""


class Backend(Protocol):
    """Starts workers and waits for their answers."""

    def start(self, pool: Pool, index: int) -> Worker:
        """A new worker for slot ``index`` of the pool; may return before it is ready."""

    def poll(self, busy: list[Worker], timeout_s: float) -> list[tuple[Worker, Any, bool]]:
        """(worker, result or WorkerFault, still usable) of those that answered or died within the time."""

    def close(self) -> None:
        """Release what the backend itself holds, after all workers were killed."""


@dataclass(slots=True)
class _Slot:
    pool: Pool
    index: int
    worker: Worker | None = None
    ticket: int | None = None
    task: Task | None = None
    started: float = 0.0
    worker_started: float = 0.0


@dataclass(slots=True)
class _Queue:
    waiting: deque[tuple[int, Task]] = field(default_factory=deque)
    unreported: int = 0
    busy_s: float = 0.0


class Supervisor:
    """The Workers protocol over any backend."""

    def __init__(self, backend: Backend, sizes: dict[Pool, int]) -> None:
        self._backend = backend
        self._slots = [_Slot(pool, i) for pool in POOLS for i in range(sizes.get(pool, 0))]
        self._compilers = sizes.get("compile", 0)  # device workers are numbered after these
        self._queues: dict[Pool, _Queue] = {pool: _Queue() for pool in POOLS}
        self._done: list[Completion] = []
        self._next_ticket = 0
        self._opened = time.monotonic()

    # ------------------------------------------------------------ life

    def __enter__(self) -> Self:
        for slot in self._slots:
            self._start(slot)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for slot in self._slots:  # idle workers leave by themselves, all at once, and so free what they hold on a GPU
            if slot.worker is not None and slot.ticket is None:
                slot.worker.release()
        for slot in self._slots:
            if slot.worker is not None:
                slot.worker.kill()
                slot.worker = None
        self._backend.close()

    # ------------------------------------------------------------ the protocol

    def size(self, pool: Pool) -> int:
        """How many workers the pool has."""
        return sum(slot.pool == pool for slot in self._slots)

    def submit(self, pool: Pool, task: Task) -> int:
        """Queue a task; returns its ticket. Raises ValueError for a pool without workers."""
        if not self.size(pool):
            raise ValueError(f"the {pool} pool has no workers")
        ticket = self._next_ticket
        self._next_ticket += 1
        self._queues[pool].waiting.append((ticket, task))
        self._queues[pool].unreported += 1
        self._dispatch()
        return ticket

    def wait(self, timeout_s: float) -> list[Completion]:
        """Completions since the last call, oldest first; waits up to timeout_s for at least one. Raises
        MissingToolError when a pool has had no place for any of its workers for PLACE_S."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._dispatch()
            self._collect(0.0 if self._done else max(0.0, min(deadline - time.monotonic(), self._until_overrun())))
            self._kill_overrun()
            self._require_places()
            if self._done or time.monotonic() >= deadline or not (self._busy() or self._starting()):
                break
        self._dispatch()
        done, self._done = self._done, []
        for completion in done:
            self._queues[self._pool_of(completion)].unreported -= 1
        return done

    def pending(self, pool: Pool) -> int:
        """Tasks submitted and not yet reported by ``wait``."""
        return self._queues[pool].unreported

    def busy_share(self, pool: Pool) -> float:
        """Share of the pool's wall time so far spent inside tasks, 0 to 1."""
        now = time.monotonic()
        running = sum(now - s.started for s in self._busy() if s.pool == pool)
        total = max(now - self._opened, 1e-9) * max(self.size(pool), 1)
        return min(1.0, (self._queues[pool].busy_s + running) / total)

    def cancel_all(self) -> None:
        """Drop queued tasks and kill running ones; none of them is reported."""
        for slot in self._busy():
            self._replace(slot)
        for queue in self._queues.values():
            queue.waiting.clear()
            queue.unreported = 0
        self._done.clear()

    def leave_out(self, pool: Pool, worker: int) -> None:
        """End an idle worker, with what waits for it alone, and give it nothing more; the others keep their numbers."""
        slot = next(s for s in self._slots if s.pool == pool and s.index == worker)
        if slot.worker is not None:
            slot.worker.kill()
        self._slots.remove(slot)
        queue = self._queues[pool]
        kept = [(ticket, task) for ticket, task in queue.waiting if task.worker != worker]
        queue.unreported -= len(queue.waiting) - len(kept)
        queue.waiting = deque(kept)

    def pids(self, pool: Pool) -> list[int]:
        """Process ids of the pool's workers on this machine."""
        found = [s.worker.pid for s in self._slots if s.pool == pool and s.worker is not None]
        return [pid for pid in found if pid is not None]

    # ------------------------------------------------------------ inside

    def _busy(self) -> list[_Slot]:
        return [slot for slot in self._slots if slot.ticket is not None]

    def _pool_of(self, completion: Completion) -> Pool:
        return "compile" if completion.worker < self._compilers else "device"

    def _number(self, slot: _Slot) -> int:
        return slot.index if slot.pool == "compile" else self._compilers + slot.index

    def _dispatch(self) -> None:
        for slot in self._slots:
            if slot.ticket is not None or not self._queues[slot.pool].waiting or not _placed(slot):
                continue
            picked = self._pick(slot)
            if picked is None:
                continue
            slot.ticket, slot.task = picked
            if slot.task.fresh or slot.worker is None:
                if slot.worker is not None:
                    slot.worker.kill()
                self._start(slot)
            assert slot.worker is not None
            slot.started = time.monotonic()
            slot.worker.send(slot.task)

    def _start(self, slot: _Slot) -> None:
        slot.worker, slot.worker_started = self._backend.start(slot.pool, slot.index), time.monotonic()

    def _starting(self) -> list[_Slot]:
        """Slots that would be given a task if they had a place."""
        return [s for s in self._slots if s.ticket is None and self._queues[s.pool].waiting and not _placed(s)]

    def _pick(self, slot: _Slot) -> tuple[int, Task] | None:
        waiting = self._queues[slot.pool].waiting
        for position, (_, task) in enumerate(waiting):
            if task.worker is None or task.worker == slot.index:
                picked = waiting[position]
                del waiting[position]
                return picked
        return None

    def _collect(self, timeout_s: float) -> None:
        by_worker = {id(s.worker): s for s in self._busy()}
        busy = [s.worker for s in self._busy() if s.worker is not None]
        starting = self._starting()
        if starting:
            timeout_s = min(timeout_s, LOOK_S)
        if not busy:
            if starting and starting[0].worker is not None:
                starting[0].worker.ready(timeout_s)
            return
        for worker, result, usable in self._backend.poll(busy, timeout_s):
            slot = by_worker[id(worker)]
            self._finish(slot, result)
            if not usable:
                self._replace(slot)

    def _until_overrun(self) -> float:
        now = time.monotonic()
        left = [s.started + s.task.timeout_s - now for s in self._busy() if s.task is not None]
        return max(0.0, min(left, default=60.0))

    def _require_places(self) -> None:
        for pool, queue in self._queues.items():
            slots = [slot for slot in self._slots if slot.pool == pool]
            if not queue.unreported or not slots or any(_placed(slot) for slot in slots):
                continue
            if time.monotonic() - max(slot.worker_started for slot in slots) > PLACE_S:
                raise MissingToolError(
                    f"no machine has had room for a {pool} worker for {PLACE_S:g} s",
                    expected="nodes with what the run began with",
                    fix="`ray status` says what the cluster has; then go on with --resume RUN",
                )

    def _kill_overrun(self) -> None:
        now = time.monotonic()
        for slot in self._busy():
            if not _placed(slot):
                slot.started = now  # its time begins with its place: waiting for one is not the task's doing
            if slot.task is not None and now > slot.started + slot.task.timeout_s:
                detail = f"{slot.task.function} ran longer than {slot.task.timeout_s:g} s"
                self._finish(slot, WorkerFault("timed_out", detail))
                self._replace(slot)

    def _finish(self, slot: _Slot, result: Any) -> None:
        seconds = time.monotonic() - slot.started
        self._queues[slot.pool].busy_s += seconds
        if slot.ticket is not None:
            self._done.append(Completion(slot.ticket, result, self._number(slot), seconds))
        slot.ticket = slot.task = None

    def _replace(self, slot: _Slot) -> None:
        if slot.worker is not None:
            slot.worker.kill()
        self._start(slot)
        slot.ticket = slot.task = None


def _placed(slot: _Slot) -> bool:
    return slot.worker is None or slot.worker.ready()
