"""Smaller sizes for what is run, or watched, after runs that took long.

What a kernel of all pairs does grows faster than its elements, and watching takes far longer than running. What depends
on an order, and nearly all else, shows at half the size as well, as long as several blocks are launched.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fsr.contract.model import Contract
from fsr.records import Case, CaseKind, Plan
from fsr.testgen.cases import divisible
from fsr.testgen.fitting import elements, halved
from fsr.testgen.placing import launched

WATCHED_LONG_S = 0.5  # of a watched run: there are some thirty, mostly of 0.2 s and less


@dataclass(slots=True)
class Lighter:
    """Which sizes took long so far, of one plan. ``long_s``: what a run may take before those that follow are
    smaller."""

    contract: Contract
    plan: Plan
    long_s: float
    _long: list[tuple[dict[str, int], float]] = field(default_factory=list)

    def took(self, case: Case, seconds: float) -> None:
        """Note how long a case took."""
        if seconds >= self.long_s:
            self._long.append((case.size_map(), seconds))

    @property
    def noted(self) -> int:
        """How many cases took long."""
        return len({tuple(sizes.items()) for sizes, _ in self._long})

    def smaller(self, case: Case) -> Case:
        """The case, or the same at the largest of its halves that should not take long, if time is a share of elements
        at the most, and still is launched in several blocks if it was. A size that a candidate names, and one at which
        buffers lie apart, is what it is."""
        return self._less(case, lambda one: self.seconds(one) >= self.long_s)

    def fewer(self, case: Case, threads: int) -> Case:
        """The case, or the same at the largest of its halves that is launched with no more threads, as above."""
        return self._less(case, lambda one: self._threads(one) > threads)

    def _less(self, case: Case, too_much: Callable[[Case], bool]) -> Case:
        if case.kind is CaseKind.NAMED or case.apart:
            return case
        vectors, found = case.sizes == divisible(self.contract, case), case
        several = self._in_several_blocks(case)
        while too_much(found):
            less = halved(self.contract, found.size_map())
            if less is None:
                break
            following = replace(found, sizes=tuple(less.items()))
            if vectors:  # what moves whole vectors does so at such sizes only
                following = replace(following, sizes=divisible(self.contract, following))
            if following.sizes == found.sizes or (several and not self._in_several_blocks(following)):
                break
            found = following
        return found

    def seconds(self, case: Case) -> float:
        """What a case may take, by those that took long; 0 where none of them tells."""
        sizes = case.size_map()
        count = elements(self.contract, sizes)
        known = [(s, elements(self.contract, k)) for k, s in self._long if _comparable(sizes, k)]
        return max((seconds * count / of for seconds, of in known), default=0.0)

    def _threads(self, case: Case) -> int:
        return sum(math.prod(x.grid) * math.prod(x.block) for x in launched(self.contract, self.plan, case))

    def _in_several_blocks(self, case: Case) -> bool:
        return any(math.prod(launch.grid) > 1 for launch in launched(self.contract, self.plan, case))


def _comparable(sizes: dict[str, int], others: dict[str, int]) -> bool:
    """Whether one of them is nowhere smaller than the other."""
    pairs = [(sizes[name], value) for name, value in others.items()]
    return all(a >= b for a, b in pairs) or all(a <= b for a, b in pairs)
