"""From a plan and a case's data to what a device takes: concrete launches and buffers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fsr.backends.protocol import Buffer, DeviceFault
from fsr.contract.model import Contract, concrete_launches
from fsr.expressions import evaluate_int
from fsr.hardware.dtypes import numpy_dtype
from fsr.records import Case, ConcreteLaunch, Fault, FaultKind, Plan, Role
from fsr.testgen.scalars import scalars_of
from fsr.testgen.values import CaseData, poison


def place(
    contract: Contract, plan: Plan, case: Case, data: CaseData, poison_seed: int = 0, *, some: bool = False
) -> tuple[tuple[ConcreteLaunch, ...], tuple[Buffer, ...]]:
    """The launches and buffers (scratch last, poisoned unless zeroed) of one case. ``some``: of repeated launches two,
    for a recording; see :func:`concrete_launches`.

    Buffers stand at 256 bytes, or, in an alignment case, those of them that it sets apart at exactly the larger of the
    case's alignment and what the contract promises for that pointer. Of buffers that share memory only the first is
    placed, as inout.
    """
    sizes = case.size_map()
    launches = concrete_launches(plan, contract, sizes, data.scalars, some=some)
    if case.aliased:
        leader = case.aliased[0]
        launches = tuple(
            replace(launch, args=tuple(leader if a in case.aliased else a for a in launch.args)) for launch in launches
        )
    buffers = [
        Buffer(
            name,
            array,
            _role(contract, case, name),
            _alignment(contract, case, name),
            False,
            data.draws.get(name),
            contract.argument(name).symbol,
        )
        for name, array in data.arrays.items()
    ]
    for scratch in plan.scratch:
        count = evaluate_int(scratch.count, sizes)
        try:
            array = np.empty(count, numpy_dtype(scratch.dtype))
            filled = np.zeros_like(array) if scratch.zeroed else poison(array, poison_seed + 101)
        except (MemoryError, ValueError):  # negative, or more than can be addressed
            raise DeviceFault(Fault(FaultKind.MEMORY, f"scratch buffer {scratch.name} of {count} elements")) from None
        buffers.append(Buffer(scratch.name, filled, None, 256, scratch.zeroed))
    return launches, tuple(buffers)


def launched(contract: Contract, plan: Plan, case: Case) -> tuple[ConcreteLaunch, ...]:
    """The launches alone: no array is made for them."""
    scalars = scalars_of(contract, case)
    return concrete_launches(plan, contract, case.size_map(), scalars)


def _role(contract: Contract, case: Case, name: str) -> Role:
    sharing = case.aliased if name in case.aliased else (name,)
    roles = {contract.argument(n).role for n in sharing}
    return roles.pop() if len(roles) == 1 else Role.INOUT


def _alignment(contract: Contract, case: Case, name: str) -> int:
    sharing = case.aliased if name in case.aliased else (name,)
    if case.alignment_bytes >= 256 or (case.apart and not set(case.apart) & set(sharing)):
        return 256
    promised = max(max(a.alignment, numpy_dtype(a.dtype).itemsize) for a in map(contract.argument, sharing))
    return max(case.alignment_bytes, promised)
