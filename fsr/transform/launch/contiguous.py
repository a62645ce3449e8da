"""Along which of a launch's ids the memory of a kernel runs."""

from __future__ import annotations

from fsr.analysis.threads import AXES
from fsr.source.form import Index
from fsr.source.walk import base_name, walk_exprs
from fsr.transform.target import Target


def contiguous(target: Target) -> dict[str, int]:
    """How many elements of buffers are named by indices that go up by one with each id, such as ``blockIdx.x``."""
    found = dict[str, int]()
    buffers = {p.name for p in target.kernel.params if p.is_pointer}
    for e in set(walk_exprs(target.kernel.body)):
        if not isinstance(e, Index) or base_name(e) not in buffers:
            continue
        index = target.known.poly(e.index, target.numbers)
        for id_ in (f"{base}.{axis}" for base in ("threadIdx", "blockIdx") for axis in AXES):
            step = index.coefficient(id_)
            if step is not None and step.value == 1:
                found[id_] = found.get(id_, 0) + 1
    return found
