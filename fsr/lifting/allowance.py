"""How long a lifting may take: its own thread's CPU time, and that of the watched runs which it waits for. What else
the machine does meanwhile does not count against it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TICK_S = 0.02


class Allowance:
    """``seconds`` from now on, for the thread that makes it. ``most``: so many times as long by the clock at most.
    ``stopped``: whether nobody waits for it any more, and it is used up."""

    def __init__(self, seconds: float, most: float = 2.0, stopped: Callable[[], bool] = lambda: False) -> None:
        self._stopped = stopped
        self._seconds, self._began, self._waited = seconds, time.thread_time(), 0.0
        self._looked, self._spent = -math.inf, 0.0
        self._last = time.monotonic() + most * seconds

    @property
    def left_s(self) -> float:
        """Seconds left; not positive when it is used up."""
        if self._stopped():
            return 0.0
        if math.isinf(self._seconds):
            return math.inf
        now = time.monotonic()
        if now > self._looked + _TICK_S:  # asking for a thread's time takes as long as some work
            self._looked, self._spent = now, time.thread_time() - self._began
        return min(self._seconds - self._spent - self._waited, self._last - now)

    @contextmanager
    def waiting(self, used_s: Callable[[], float] | None = None) -> Iterator[None]:
        """While another process works for it, which has used so many seconds of a CPU; by the clock where that is not
        told, or it was another process before."""
        began, own, before = time.monotonic(), time.thread_time(), used_s() if used_s else 0.0
        try:
            yield
        finally:
            passed = max(0.0, time.monotonic() - began - (time.thread_time() - own))
            used = used_s() - before if used_s else passed
            self._waited += min(used, passed) if used >= 0 else passed


def unlimited() -> Allowance:
    """One that is never used up."""
    return Allowance(math.inf)
