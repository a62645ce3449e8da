"""A guess of what lanes gain: threads where they were few, and neighbours read where they were not.

Checked against predictions for spmv, PageRank, k-means, nearest points, n-body and column sums: of the same order, and
in the order of their gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log2

from fsr.analysis.accesses import Access
from fsr.hardware.gpus import Target as Gpu
from fsr.source.form import Declare, For
from fsr.source.walk import names_in, walk_stmts
from fsr.transform.lanes.loops import Shared
from fsr.transform.sizes import largest_timed
from fsr.transform.target import Target

_DATA_TURNS = 32  # of a loop that data ends, and how far such a guess is to be trusted
_TRUST = 0.6
_ENOUGH = 4  # so much less than all threads that a GPU holds hides most of what they wait for
_SECTOR = 8  # lanes that read one sector of 32 bytes together
_NEAR = 1.2  # the gain of neighbours read, beside more threads
_FOLD = 0.5  # a step of a fold, in turns
_LEFT = 0.2  # what is left of a gain where lanes go through other loops alike
_SURE = 6.0  # a gain from which on more of it tells little


def gain(gpu: Gpu, target: Target, shared: Sequence[Shared], lanes: int, *, alone: bool) -> float:
    """How many times as fast so many lanes may be. ``alone``: other loops are not shared."""
    threads = largest_timed(target.contract, " * ".join(f"({e})" for e in (*target.launch.grid, *target.launch.block)))
    fill = gpu.sm_count * gpu.max_threads_per_sm / _ENOUGH / max(threads or 1, 1)
    turns = [s.turns for s in shared]
    longest = max(t if t is not None else _DATA_TURNS for t in turns)
    found = max(1.0, min(lanes, fill, longest / 4))
    side_by_side, apart = _walks(target, shared)
    if side_by_side:
        found = _NEAR * max(found, min(lanes, _SECTOR, longest / 2) ** 0.5)
    elif apart:
        found /= min(lanes, _SECTOR) ** 0.4
    each = longest / lanes
    found *= each / (each + _FOLD * log2(lanes))
    if None in turns:
        found *= _TRUST
    if alone:
        found = 1.0 + (found - 1.0) * _LEFT
    return found if found < _SURE else _SURE + (found - _SURE) / 10


def _walks(target: Target, shared: Sequence[Shared]) -> tuple[bool, bool]:
    """Whether neighbouring turns of the loops read neighbours that neighbouring threads do not, and whether it is the
    other way round."""
    known, ids = target.known, _ids(target)
    by_turn = by_thread = False
    for one in shared:
        counters = {s.var for s in walk_stmts((one.loop,)) if isinstance(s, For)}
        begins = known.poly(one.loop.start, target.constants)
        for access in one.accesses:
            place = known.poly(access.offset, target.constants)
            turn = place.coefficient(one.loop.var)
            if turn is None or not turn.terms:
                continue
            steps = [c for i in ids - counters if (c := place.coefficient(i)) is not None and c.value == 1]
            of_thread = ((place + begins).names() | _names_of(access, target)) - counters - _same_for_all(target)
            by_turn |= turn.value == 1 and not steps and bool(of_thread)
            by_thread |= bool(steps)
    return by_turn, by_thread and not by_turn


def _names_of(access: Access, target: Target) -> frozenset[str]:
    """What tells where a local pointer points that an access goes through."""
    inits = (s.init for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and s.name == access.pointer)
    return frozenset(n for e in inits if e is not None for n in names_in(e))


def _ids(target: Target) -> frozenset[str]:
    """What numbers a warp's threads: the id along x, and counters that begin at it."""
    every = (s for s in walk_stmts(target.kernel.body) if isinstance(s, For))
    return frozenset({"threadIdx.x", *(s.var for s in every if "threadIdx" in _expanded(target, s))})


def _expanded(target: Target, loop: For) -> frozenset[str]:
    return names_in(target.known.expand(loop.start))


def _same_for_all(target: Target) -> frozenset[str]:
    """What is the same for a warp's threads, for all that is known."""
    return frozenset(_uniform(target)) - target.known.changed


def _uniform(target: Target) -> Iterator[str]:
    yield from (p.name for p in target.kernel.params)
    yield from target.constants
    for variable in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
        yield from (f"{variable}.{axis}" for axis in "xyz" if (variable, axis) != ("threadIdx", "x"))
