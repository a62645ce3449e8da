"""Smaller sizes for what is watched after a run that took long.

What a kernel of all pairs does grows faster than its elements, and watching takes far longer than running. What depends
on an order shows at half the size as well, as long as several blocks are launched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from fsr.contract.model import Contract
from fsr.records import Case, CaseKind, Plan
from fsr.testgen.cases import divisible
from fsr.testgen.fitting import halved
from fsr.testgen.placing import launched

LONG_S = 1.0  # of a run after which those that follow are smaller: there are some thirty


@dataclass(slots=True)
class WatchingPace:
    """Which sizes took long so far, of one plan."""

    contract: Contract
    plan: Plan
    _long: list[dict[str, int]] = field(default_factory=list)

    def took(self, case: Case, seconds: float) -> None:
        """Note how long a case was watched."""
        if seconds >= LONG_S:
            self._long.append(case.size_map())

    def smaller(self, case: Case) -> Case:
        """The case, or the same at the largest of its halves that is not known to take long and still is launched in
        several blocks. A size that a candidate names, and one at which buffers lie apart, is what it is."""
        if case.kind is CaseKind.NAMED or case.apart:
            return case
        vectors, found = case.sizes == divisible(self.contract, case), case
        while self._takes_long(found):
            less = halved(self.contract, found.size_map())
            if less is None:
                break
            following = replace(found, sizes=tuple(less.items()))
            if vectors:  # what moves whole vectors does so at such sizes only
                following = replace(following, sizes=divisible(self.contract, following))
            if following.sizes == found.sizes or not self._in_several_blocks(following):
                break
            found = following
        return found

    def _takes_long(self, case: Case) -> bool:
        sizes = case.size_map()
        return any(all(sizes[name] >= value for name, value in known.items()) for known in self._long)

    def _in_several_blocks(self, case: Case) -> bool:
        return any(math.prod(launch.grid) > 1 for launch in launched(self.contract, self.plan, case))
