"""Along which of a launch's ids the memory of a kernel runs."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from fsr.analysis.threads import AXES
from fsr.analysis.written_out import plain
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.source.form import Index
from fsr.source.walk import base_name, walk_exprs
from fsr.transform.target import Target


def contiguous(target: Target) -> dict[str, int]:
    """How many elements of buffers lie along each id, such as ``blockIdx.x``: those of each buffer, as timed, as often
    as an index into it goes up by one with the id."""
    found = dict[str, int]()
    read = replace(target, kernel=plain(target.kernel, target.source))
    buffers = {p.name for p in target.kernel.params if p.is_pointer}
    for e in set(walk_exprs(read.kernel.body)):
        name = base_name(e) if isinstance(e, Index) else None
        if name is None or name not in buffers or not isinstance(e, Index):
            continue
        index = read.known.poly(e.index, read.numbers)
        for id_ in (f"{base}.{axis}" for base in ("threadIdx", "blockIdx") for axis in AXES):
            step = index.coefficient(id_)
            if step is not None and step.value == 1:
                found[id_] = found.get(id_, 0) + _elements(target.contract, target.passed.get(name, ""))
    return found


def _elements(contract: Contract, buffer: str) -> int:
    """Of a buffer as timed; 1 of one that the contract does not tell."""
    declared = next((a for a in contract.buffers() if a.name == buffer), None)
    if declared is None:
        return 1
    try:
        return max(prod(contract.shape(declared, sizes)) for sizes in contract.timed_sizes())
    except ContractError:
        return 1
