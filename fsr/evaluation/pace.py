"""Which cases a candidate meets in the time there is, on a device on which each thread costs time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fsr.backends.backend import Limits
from fsr.contract.model import Contract
from fsr.records import Case, CaseKind
from fsr.testgen.fitting import halved

LARGE_TOTAL_S, LARGE_SHARE = 9.0, 0.03  # on all cases at the upper end: seconds, and of the run's budget
SOON_S = 3.0  # one case of many threads, by what the largest before took
PARTS_SHARE, PARTS_LEAST = 0.05, 8  # what cases in parts may take of the run's budget, but so many always
TELLING = 1 << 12  # threads from which on a case says what one costs


@dataclass
class Pace:
    """Of one candidate on a list of cases. ``own``: the threads that it launches for a case; ``original``: that the
    original does; ``cramped``: there are no smaller cases."""

    limits: Limits
    budget_s: float
    cramped: bool
    own: Callable[[Case], int]
    original: Callable[[Case], int]
    _large_since: float = 0.0
    _most: int = 0
    _thread_s: float = 0.0
    _parts: int = 0
    _parts_s: float = 0.0
    _families: set[str] = field(default_factory=set)  # of values, met so far

    def fitting(self, case: Case, contract: Contract) -> Case | None:
        """The case; where it launches too many threads, a smaller one of its values, if there was none yet, or None."""
        while self.crowded(case):
            if case.kind is CaseKind.LARGE or case.family in self._families:
                return None
            less = halved(contract, case.size_map())
            if less is None:
                return None
            case = replace(case, sizes=tuple(less.items()))
        return case

    def over(self, case: Case) -> bool:
        """Whether the time for cases at the upper end is over, or for those in parts, which this is one of."""
        if case.parts:
            return self._parts >= PARTS_LEAST and self._parts_s > PARTS_SHARE * self.budget_s
        if case.kind is not CaseKind.LARGE:
            return False
        self._large_since = self._large_since or time.monotonic()
        return time.monotonic() - self._large_since > min(LARGE_TOTAL_S, LARGE_SHARE * self.budget_s)

    def crowded(self, case: Case) -> bool:
        """Whether a case launches more threads than the device takes through barriers in a second or two, where the
        same sizes come in smaller cases; but a size that the candidate names is one that it may treat apart, and large
        ones come as long as the original, or what the candidate's threads cost so far, allows."""
        if not self.limits.threads or self.cramped:
            return False
        own = self.own(case)
        if own <= self.limits.threads:
            return False
        if case.kind is CaseKind.LARGE:
            return own > 2 * self.original(case) and not 0.0 < self._thread_s * own < SOON_S
        return not case.kind.unusual

    def limit_s(self, case: Case) -> float:
        """What the threads of a case may take beside all else."""
        return self.own(case) * self.limits.thread_s if self.limits.threads else 0.0

    def took(self, case: Case, seconds: float) -> None:
        """Note what a case took in all."""
        self._families.add(case.family)
        if case.parts:
            self._parts += 1
            self._parts_s += seconds
            return
        own = self.own(case) if self.limits.threads else 0
        if own >= max(TELLING, self._most):
            self._most, self._thread_s = own, seconds / own
