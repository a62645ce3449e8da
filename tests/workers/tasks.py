"""Task functions that the worker tests run in worker processes."""

from __future__ import annotations

import atexit
import os
import signal
import time
from pathlib import Path
from typing import Any


def double(payload: int) -> int:
    return 2 * payload


def where(payload: Any) -> int:
    return os.getpid()


def say(payload: str) -> int:
    """What a library writes, past Python's own output."""
    return os.write(1, payload.encode())


def sleep(payload: float) -> str:
    time.sleep(payload)
    return "slept"


def die(payload: int) -> None:
    os.kill(os.getpid(), payload)
    time.sleep(5)


def leave(payload: int) -> None:
    os._exit(payload)


def fail(payload: str) -> None:
    raise ValueError(payload)


class LostError(Exception):
    """An error after which the process is of no use."""

    fatal = True


def lose(payload: str) -> None:
    raise LostError(payload)


def unpicklable(payload: Any) -> Any:
    return lambda: None


COUNT = 0


def count(payload: Any) -> int:
    global COUNT
    COUNT += 1
    return COUNT


def environment(payload: str) -> str | None:
    return os.environ.get(payload)


def spawn_child(payload: str) -> int:
    """Start a grandchild that would outlive its parent, and say its process id."""
    import subprocess

    return subprocess.Popen(["sleep", payload]).pid


def say_when_ended(payload: str) -> None:
    """Leave a file when the process ends by itself."""
    atexit.register(lambda: Path(payload).write_text("ended"))


KILL = signal.SIGKILL
