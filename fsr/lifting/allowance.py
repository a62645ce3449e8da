"""How long a lifting may take: its own thread's CPU time, and the time that it waits for watched runs. What else the
machine does meanwhile does not count against it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Allowance:
    """``seconds`` from now on, for the thread that makes it. ``most``: so many times as long by the clock at most."""

    def __init__(self, seconds: float, most: float = 2.0) -> None:
        self._seconds, self._began, self._waited = seconds, time.thread_time(), 0.0
        self._last = time.monotonic() + most * seconds

    @property
    def left_s(self) -> float:
        """Seconds left; not positive when it is used up."""
        if math.isinf(self._seconds):
            return math.inf
        spent = time.thread_time() - self._began + self._waited
        return min(self._seconds - spent, self._last - time.monotonic())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While another process works for it."""
        began, own = time.monotonic(), time.thread_time()
        try:
            yield
        finally:
            self._waited += max(0.0, time.monotonic() - began - (time.thread_time() - own))


def unlimited() -> Allowance:
    """One that is never used up."""
    return Allowance(math.inf)
