"""Many tasks on many cores until a time is over: each in a process of its own, ended with all that it started."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

T = TypeVar("T")
POLL_S = 1.0
_FORK = multiprocessing.get_context("fork")  # what the caller has imported costs a task nothing


@dataclass(frozen=True)
class Lost:
    """What stands in a result's place: the task raised, died, or took longer than it may."""

    why: str


@dataclass
class _Running:
    task: Any
    process: Any
    began: float


def each(
    work: Callable[[T], Any], tasks: Sequence[T], workers: int, *, seconds: float, limit_s: float
) -> Iterator[tuple[T, Any]]:
    """(task, result or Lost) in the order in which they end, ``workers`` at a time. After ``seconds`` it stops: tasks
    under way are ended and not told. A task may take ``limit_s``."""
    deadline = time.monotonic() + seconds
    left, running = list(reversed(tasks)), dict[Connection, _Running]()
    try:
        while (left or running) and time.monotonic() < deadline:
            while left and len(running) < workers:
                receive, started = _start(work, left.pop())
                running[receive] = started
            for receive in wait(list(running), min(POLL_S, max(deadline - time.monotonic(), 0.0))):
                assert isinstance(receive, Connection)
                one = running.pop(receive)
                yield one.task, _received(receive)
                _end(one)
            for receive, one in list(running.items()):
                if time.monotonic() - one.began > limit_s:
                    _end(running.pop(receive))
                    yield one.task, Lost(f"took over {limit_s:g} s")
    finally:
        for one in running.values():
            _end(one)


def _start(work: Callable[[T], Any], task: T) -> tuple[Connection, _Running]:
    receive, send = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_child, args=(work, task, send))
    process.start()
    send.close()
    return receive, _Running(task, process, time.monotonic())


def _child(work: Callable[[T], Any], task: T, send: Connection) -> None:
    os.setsid()  # a group of its own, to be ended whole
    try:
        result = work(task)
    except Exception as fault:
        result = Lost(repr(fault))
    send.send(result)


def _received(receive: Connection) -> Any:
    try:
        return receive.recv()
    except EOFError:
        return Lost("its process died")


def _end(one: _Running) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(one.process.pid, signal.SIGKILL)
    one.process.kill()
    one.process.join()
