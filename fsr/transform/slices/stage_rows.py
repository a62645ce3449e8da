"""stage-rows: threads that go through rows of their own, ``out[thread * n + t]``, do so in tiles of shared memory.

32 lanes at the same step of 32 rows touch as many sectors, at every step again. The tile of a warp holds some steps of
its lanes' rows; when it is full, and at the end, the lanes write it out together, along the rows, and likewise read the
next one ahead (Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA": the tile with a column more).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fsr.analysis.guards import structured
from fsr.analysis.macros import expanded
from fsr.analysis.polynomial import Poly
from fsr.records import Candidate
from fsr.source.counting import counted
from fsr.source.form import Call, Expr, For, If, Index, OpaqueExpr, Scope, Unary
from fsr.source.walk import (
    Block,
    contains_return,
    jumps,
    loop_regions,
    names_assigned,
    names_in,
    names_mentioned,
    walk_expr,
)
from fsr.transform.collectives import missing_helpers
from fsr.transform.details.shared_locals import room_of
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.slices.grid_turns import macros_that_leave
from fsr.transform.slices.moved_pointers import with_own_pointers
from fsr.transform.slices.row_text import StagedRows
from fsr.transform.slices.row_tiles import RowBuffers, RowTile, same_for_block
from fsr.transform.target import Target, part_of, region_in, target_of, targets

_TURNS = (32, 16, 8)  # of a tile; of words, 8 still fill a sector
_WARP = 32
_GAINS = {True: 2.5, False: 1.4}  # where rows are written; what is read stays in the L1 cache for some turns
_OFFERED = 2  # sizes of a tile


@dataclass(frozen=True)
class _Found:
    """A loop that goes through rows. ``uneven``: the loops around it that threads leave at different turns."""

    target: Target
    loop: For
    tiles: list[RowTile]
    uneven: tuple[For, ...]

    def chosen(self, what: str) -> list[RowTile]:
        """The tiles that a move is about."""
        return [t for t in self.tiles if what == "all" or t.written]


@dataclass(frozen=True, slots=True)
class StageRows:
    """All buffers that a loop goes through in rows, or those of them that are written."""

    name: str = "stage-rows"
    aims_at: frozenset[str] = frozenset(["uncoalesced", "bandwidth", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """For each loop the largest tiles that fit a block."""
        for target in targets(subject):
            for region, found in _found(target).items():
                ways = ["all", "writes"] if {t.written for t in found.tiles} == {True, False} else ["all"]
                for what in ways:
                    chosen = found.chosen(what)
                    fitting = [n for n in _TURNS if _bytes(chosen, target, n) <= room_of(target)][:_OFFERED]
                    for rank, turns in enumerate(fitting):
                        params = (("what", what), ("turns", turns))
                        gain = _GAINS[any(t.written for t in chosen)] - 0.05 * rank - 0.01 * ways.index(what)
                        yield Move(self.name, region_in(target, region), params, gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose warps go through tiles."""
        target = target_of(subject, move)
        found = _found(target)[part_of(move)]
        chosen = found.chosen(str(move.param("what")))
        made = StagedRows(found.target, found.loop, chosen, int(move.param("turns")), found.uneven)
        names = {"fsr_load_rows"} if any(t.read for t in chosen) else set()
        names |= {"fsr_store_rows"} if any(t.written for t in chosen) else set()
        kernel = replace(target.kernel, body=made.body())
        return rewritten(target, move, kernel, helpers=missing_helpers(target.source, names))


def _bytes(chosen: Sequence[RowTile], target: Target, turns: int) -> int:
    """Of a block's shared memory, with what may be left free between arrays."""
    return sum(-(-t.stride(turns) * (target.threads or 0) * t.bytes // 16) * 16 for t in chosen)


# ---------------------------------------------------------------- which may be


def _found(target: Target) -> dict[str, _Found]:
    """By region, the loops of a kernel that go through rows; with macros written out where none does else."""
    if target.threads is None or target.threads % _WARP:
        return {}
    plain = expanded(target.kernel, target.source)
    for kernel in [target.kernel, *([plain] if plain.body != target.kernel.body else [])]:
        body = structured(counted(kernel.body))
        if body is None or contains_return(body) or macros_that_leave(target.source) & names_mentioned(body):
            continue
        other = replace(target, kernel=with_own_pointers(replace(kernel, body=body)))
        regions = {id(loop): region for region, loop in loop_regions(other.kernel).items()}
        loops = {
            regions[id(one.loop)]: one for one in _loops(RowBuffers(other), other.kernel.body, ((), {}, frozenset()))
        }
        if loops:
            return loops
    return {}


_Around = tuple[tuple[For, ...], Mapping[str, Poly], frozenset[str]]
"""Loops that threads leave at different turns, the first values of all loops' variables, and which of these are one
number for a block."""


def _loops(buffers: RowBuffers, body: Block, around: _Around) -> Iterator[_Found]:
    """Loops that a warp's lanes come to together, or of which it can be told which do."""
    uneven, outer, uniform = around
    for s in body:
        if isinstance(s, Scope):
            yield from _loops(buffers, s.body, around)
        elif isinstance(s, If) and not s.constexpr:
            for block in (s.then, s.orelse):
                yield from _loops(buffers, block, around)
        elif isinstance(s, For):
            tiles = buffers.tiles(s, outer, uniform)
            if tiles:
                yield _Found(buffers.target, s, tiles, uneven)
            elif (inside := _inside(buffers.target, s, around)) is not None:
                yield from _loops(buffers, s.body, inside)


def _inside(target: Target, loop: For, around: _Around) -> _Around | None:
    """What is around the loops within a loop; None where it cannot be told which lanes go on."""
    uneven, outer, uniform = around
    head = (loop.start, loop.bound, loop.step)
    moved = names_in(loop.bound) | names_in(loop.step) | names_assigned(loop.body)
    if loop.type in (None, "auto") or loop.var in moved or jumps(loop.body) or not all(map(_steady, head)):
        return None
    firsts = {**outer, loop.var: target.poly(loop.start)}
    if frozenset(n for e in head for n in target.poly(e).names()) <= uniform | same_for_block(target):
        return uneven, firsts, uniform | {loop.var}
    return (*uneven, loop), firsts, uniform


def _steady(e: Expr) -> bool:
    """Whether an expression may be evaluated once more."""
    return not any(
        isinstance(x, Index | Call | OpaqueExpr) or (isinstance(x, Unary) and x.op == "*") for x in walk_expr(e)
    )
