"""Which large cases are tried on a device that judges by itself, in the time there is."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fsr.testgen.shaking import PERTURBED_RUNS

# Runs of the original that a comparison takes where the bits differ: once more, on perturbed inputs, and in float64,
# which counts as two.
MORE_RUNS = 1 + PERTURBED_RUNS + 2
TELLING_S = 1e-3  # a run below this is a launch's cost, and says nothing of how larger ones grow


class JudgingPace:
    """What a larger case will take, from those before: drawing and comparing in proportion to its size, the runs of the
    original by the power that they were seen to grow with, between 1 and 2, and by the square where none was seen."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._rest = dict[int, float]()  # elements -> seconds beside the runs
        self._runs = dict[int, tuple[float, float]]()  # elements -> seconds of one run of the original, and of all
        self._now: list[float] = []

    def allows(self, size: int) -> bool:
        """Whether a case of so many elements is expected to end before the deadline."""
        return time.monotonic() + self._expected_s(size) <= self._deadline

    @contextmanager
    def noting(self, size: int) -> Iterator[None]:
        """Note what is run inside as a case of so many elements."""
        started, self._now = time.monotonic(), []
        yield
        runs = sum(self._now)
        self._rest[size] = max(self._rest.get(size, 0.0), time.monotonic() - started - runs)
        if self._now and runs >= self._runs.get(size, (0.0, 0.0))[1]:
            self._runs[size] = self._now[0], runs

    def ran(self, seconds: float) -> None:
        """The original ran once on the case that is being noted; its first run comes first."""
        self._now.append(seconds)

    def bears(self) -> bool:
        """Whether as many runs more as a comparison takes would end before the deadline."""
        return time.monotonic() + MORE_RUNS * self._now[0] <= self._deadline if self._now else True

    def _expected_s(self, size: int) -> float:
        runs = {n: whole for n, (_, whole) in self._runs.items()}
        return _grown(self._rest, size, 1.0) + _grown(runs, size, self._power())

    def _power(self) -> float:
        telling = {n: once for n, (once, _) in self._runs.items() if once >= TELLING_S}
        largest = max(telling, default=0)
        smaller = max((n for n in telling if 2 * n <= largest), default=0)
        if not smaller:
            return 2.0
        return growth(telling[smaller], telling[largest], largest / smaller)


def growth(before_s: float, after_s: float, times: float) -> float:
    """The power, between 1 and 2, that a time was seen to grow with, on so many ``times`` the elements, more than 1."""
    return min(max(math.log(max(after_s / max(before_s, 1e-6), 1.0)) / math.log(times), 1.0), 2.0)


def _grown(taken: dict[int, float], size: int, power: float) -> float:
    if not taken:
        return 0.0
    largest = max(taken)
    return taken[largest] * math.pow(max(size, 1) / largest, power)
