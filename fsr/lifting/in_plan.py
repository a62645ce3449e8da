"""What a launch computes by itself, held against what it makes in its plan of that which the launches before it left.

Scratch memory has no limits of its own: data that is drawn for it hardly ever holds what a stage before has made, a
few codes, say, and the branches on these are not seen. Here they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice, open_host_device
from fsr.backends.protocol import DeviceFault
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.hardware.dtypes import numpy_dtype
from fsr.lifting.check import RUN_S, Checker
from fsr.lifting.sampling import checked_sizes, shape_at, view, watched_sizes
from fsr.records import Candidate, Case, Image, Launch, Role
from fsr.testgen.placing import place
from fsr.testgen.values import CaseData, build
from fsr.transform.launch_alone import Alone, buffers_of, passable

Array = np.ndarray[Any, Any]
_FAMILIES = ("normal", "uniform", "repeated")


def differs_in_plan(contract: Contract, candidate: Candidate, one: Alone) -> str:
    """Where the launch does something else in the plan, in words; '' where it does what is known of it."""
    image = HostToolchain().compile(candidate, timeout_s=RUN_S)
    watched = watched_sizes(contract)
    if not isinstance(image, Image) or one.computation is None or not watched:
        return "it could not be held against its plan"
    sizes = checked_sizes(contract, watched[0])[0]

    def cases(place: int) -> list[Case]:
        told = {n: evaluate_int(v, sizes) for n, v in one.told.values(candidate.plan.launches[place]).items()}
        every = tuple({**sizes, **told}.items())
        return [Case("in its plan", every, family, 2001 + n) for n, family in enumerate(_FAMILIES)]

    places = [n for n, x in enumerate(candidate.plan.launches) if x in one.launches]
    device = open_host_device()
    try:
        for place_ in dict.fromkeys((places[0], places[-1])):
            checker = _InPlan(contract, candidate, image, device, (one, place_))
            wrong = checker.disagreement(one.computation, cases(place_))
            if wrong:
                return wrong
        return ""
    finally:
        device.close()


class _InPlan(Checker):
    """Compares a computation with a launch of a plan: which, and the number of the launch."""

    def __init__(
        self, contract: Contract, candidate: Candidate, image: Image, device: HostDevice, which: tuple[Alone, int]
    ) -> None:
        self._one, self._place = which
        super().__init__(self._one.contract, candidate, image, device)
        self._plan, self._whole = candidate.plan, contract

    def _original(self, case: Case) -> tuple[CaseData, dict[str, Array]] | str:
        try:
            before = self._before(case)
            once = replace(self._plan.launches[self._place], repeat="1")
            after = self._run(case, before, (once,))
            names = self._one.passed(self._plan.launches[self._place], passable(self._whole, self._plan))
            own = {a.name: names.get(a.name, a.name) for a in self.contract.buffers()}
            numbers = {name: before.scalars[names.get(name, name)] for name in before.scalars}
            data = replace(before, arrays={n: before.arrays[there] for n, there in own.items()}, scalars=numbers)
            return data, {name: after.get(there, before.arrays[there]) for name, there in own.items()}
        except (DeviceFault, ContractError) as fault:
            return f"the plan could not be run for the check: {fault}"

    def _before(self, case: Case) -> CaseData:
        """What the buffers hold when the launch begins."""
        data = build(self._whole, case)
        sizes = case.size_map()
        cleared = {
            s.name: np.zeros(shape_at(view((s.count,)), sizes), numpy_dtype(s.dtype)) for s in self._plan.scratch
        }
        data = replace(data, arrays={**data.arrays, **cleared})
        made = self._run(case, data, self._plan.launches[: self._place]) if self._place else {}
        return replace(data, arrays={**data.arrays, **made})

    def _run(self, case: Case, data: CaseData, launches: tuple[Launch, ...]) -> Mapping[str, Array]:
        """What some launches of the plan leave of these data."""
        buffers = buffers_of(self._whole, self._plan)
        scalars = tuple(a for a in self._whole.args if a.role is Role.SCALAR)
        args = (*(replace(a, role=Role.INOUT) for a in buffers.values()), *scalars)
        plan = replace(self._plan, launches=launches, scratch=())
        made, placed = place(replace(self._whole, args=args, plan=plan), plan, case, data)
        with self.device.prepare(self.image, made, placed) as prepared:
            prepared.run(self.run_s)
            return prepared.read()
