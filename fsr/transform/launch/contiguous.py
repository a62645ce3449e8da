"""Along which of a launch's ids the memory of a kernel runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from fsr.analysis.polynomial import Poly
from fsr.analysis.threads import AXES
from fsr.analysis.written_out import plain
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.source.form import Declare, Expr, Index, Name
from fsr.source.mapping import map_expr
from fsr.source.walk import Block, base_name, names_assigned, walk_exprs, walk_stmts
from fsr.transform.target import Target

_DEEPEST = 4  # variables made of variables


def contiguous(target: Target) -> dict[str, int]:
    """How many elements of buffers lie along each id, such as ``blockIdx.x``: those of each buffer, as timed, as often
    as an index into it goes up by one with the id."""
    found = dict[str, int]()
    for index, elements in _indices(target):
        for id_ in (f"{base}.{axis}" for base in ("threadIdx", "blockIdx") for axis in AXES):
            step = index.coefficient(id_)
            if step is not None and step.value == 1:
                found[id_] = found.get(id_, 0) + elements
    return found


def nearest(target: Target, ids: Sequence[str]) -> str:
    """Of some ids the one whose neighbours lie nearest in buffers, by as many elements as these have: its step divides
    the other's, in elements or in records of several. The first where nothing tells."""
    votes = dict.fromkeys(ids, 0)
    for index, elements in _indices(target):
        steps = {id_: step for id_ in ids if (step := index.coefficient(id_)) is not None and step.terms}
        for one, step in steps.items():
            others = [other.over(step) for id_, other in steps.items() if id_ != one]
            if others and all(times is not None and times.value is None for times in others):
                votes[one] += elements
    return max(ids, key=lambda id_: votes[id_])


def _indices(target: Target) -> Iterator[tuple[Poly, int]]:
    """The indices into buffers, each once, and how many elements of that buffer there are as timed."""
    read = replace(target, kernel=plain(target.kernel, target.source))
    buffers = {p.name for p in target.kernel.params if p.is_pointer}
    once = _set_once(read.kernel.body)
    for e in set(walk_exprs(read.kernel.body)):
        name = base_name(e) if isinstance(e, Index) else None
        if name is None or name not in buffers or not isinstance(e, Index):
            continue
        index = e.index
        for _ in range(_DEEPEST):
            index = map_expr(index, lambda x: once.get(x.text, x) if isinstance(x, Name) else x)
        yield read.known.poly(index, read.numbers), _elements(target.contract, target.passed.get(name, ""))


def _set_once(body: Block) -> dict[str, Expr]:
    """What variables are declared as, in loops too, that are not changed: ``const int at = z + y * 9`` for any z. One
    of several loops' own is meant where all are declared alike."""
    declared = [s for s in walk_stmts(body) if isinstance(s, Declare)]
    changed, kinds = names_assigned(body), Counter(s.name for s in {replace(s, span=None) for s in declared})
    return {
        s.name: s.init
        for s in declared
        if s.init is not None and not s.dims and "*" not in s.type and kinds[s.name] == 1 and s.name not in changed
    }


def _elements(contract: Contract, buffer: str) -> int:
    """Of a buffer as timed; 1 of one that the contract does not tell."""
    declared = next((a for a in contract.buffers() if a.name == buffer), None)
    if declared is None:
        return 1
    try:
        return max(prod(contract.shape(declared, sizes)) for sizes in contract.timed_sizes())
    except ContractError:
        return 1
