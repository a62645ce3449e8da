"""stage-rows: threads that go through rows of their own, ``out[thread * n + t]``, do so in tiles of shared memory.

32 lanes at the same step of 32 rows touch as many sectors, at every step again. The tile of a warp holds some steps of
its lanes' rows; when it is full, and at the end, the lanes write it out together, along the rows, and likewise read the
next one ahead (Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA": the tile with a column more).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fsr.analysis.guards import structured
from fsr.analysis.macros import expanded
from fsr.analysis.polynomial import Poly
from fsr.records import Candidate
from fsr.source.counting import counted
from fsr.source.form import For, If, Scope
from fsr.source.moved_pointers import with_own_pointers
from fsr.source.walk import (
    Block,
    contains_return,
    jumps,
    loop_regions,
    names_assigned,
    names_in,
    names_mentioned,
)
from fsr.transform.collectives import missing_helpers
from fsr.transform.details.shared_locals import room_of
from fsr.transform.launch.block_size import BlockSize
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.slices.action import in_blocks
from fsr.transform.slices.grid_turns import macros_that_leave
from fsr.transform.slices.plain_locals import with_plain_locals
from fsr.transform.slices.row_loop import RowLoop
from fsr.transform.slices.row_text import StagedRows, slots
from fsr.transform.slices.row_tiles import RowBuffers, may_repeat, same_for_block, same_turns
from fsr.transform.slices.told_heads import with_told_heads
from fsr.transform.target import Target, part_of, region_in, target_of, targets

_TURNS = (32, 16, 8, 4)  # of a tile
_PLAIN_TURNS = 8  # from which on a tile is as good as it gets for what is smaller than a word, too
_SECTOR = 32  # bytes
_WARP = 32
_GAINS = {True: 2.5, False: 1.4}  # where rows are written; what is read stays in the L1 cache for some turns
_OF_ALL = 0.1  # more, for all loops of a kernel
_OFFERED = 2  # sizes of a tile


@dataclass(frozen=True)
class _Found:
    """The loops of a kernel that go through rows, by region; no loop is within another that is there."""

    target: Target
    loops: Mapping[str, RowLoop]

    def chosen(self, part: str, what: str) -> list[RowLoop]:
        """The loops of a region, or all of them, with the tiles that a move is about."""
        loops = [self.loops[part]] if part in self.loops else list(self.loops.values())
        tiles = ([t for t in one.tiles if what == "all" or t.written] for one in loops)
        return [replace(one, tiles=some) for one, some in zip(loops, tiles, strict=True) if some]


@dataclass(frozen=True, slots=True)
class StageRows:
    """All buffers that a loop, or each of a kernel's loops, goes through in rows, or those of them that are written."""

    name: str = "stage-rows"
    aims_at: frozenset[str] = frozenset(["uncoalesced", "bandwidth", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """For each loop, and all of several, the largest tiles that fit a block; in a smaller block where none do."""
        for target in targets(subject):
            found = _found(target)
            if found is None:
                continue
            regions = {region_in(target, part): part for part in found.loops}
            if len(regions) > 1:
                regions[target.region] = ""
            for region, part in regions.items():
                yield from _moves_of(subject, found, region, part)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose warps go through tiles."""
        threads = dict(move.params).get("threads")
        target = target_of(subject, move) if threads is None else in_blocks(subject, move, int(threads))
        found = _found(target)
        assert found is not None
        chosen = found.chosen(part_of(move), str(move.param("what")))
        made = StagedRows(found.target, chosen, int(move.param("turns")))
        every = [t for one in chosen for t in one.tiles]
        names = {"fsr_load_rows"} if any(t.read for t in every) else set()
        names |= {"fsr_store_rows"} if any(t.written for t in every) else set()
        kernel = replace(target.kernel, body=made.body())
        return rewritten(target, move, kernel, helpers=missing_helpers(target.source, names))


def _moves_of(subject: Subject, found: _Found, region: str, part: str) -> Iterator[Move]:
    """The moves for a loop, or for all."""
    target, every = found.target, found.chosen(part, "all")
    written = {t.written for one in every for t in one.tiles}
    for rank, what in enumerate(["all", "writes"] if written == {True, False} else ["all"]):
        chosen = found.chosen(part, what)
        tiles = [t for one in chosen for t in one.tiles]
        several = part in found.loops and len(found.loops) > 1  # then rather all at once
        for turns, threads in _fitting(subject, target, chosen)[: 1 if several else _OFFERED]:
            block = (("threads", threads),) if threads else ()
            params: tuple[tuple[str, int | str], ...] = (("what", what), ("turns", turns), *block)
            gain = _GAINS[any(t.written for t in tiles)] - 0.05 * (turns < _TURNS[0]) - 0.01 * rank
            yield Move(StageRows().name, region, params, gain + _OF_ALL * (part == ""))


def _fitting(subject: Subject, target: Target, chosen: Sequence[RowLoop]) -> list[tuple[int, int]]:
    """Turns of a tile, and threads of another block or 0, with which a block has room."""
    room, most = room_of(target), target.threads or 0
    fitting = [(n, 0) for n in _TURNS if _bytes(chosen, n, most) <= room and _fills_sectors(chosen, n)]
    if not fitting:
        free = {int(m.param("threads")) for m in BlockSize().moves(subject) if m.region == target.region}
        smaller = sorted((t for t in free if t < most and t % _WARP == 0), reverse=True)
        fitting = [
            (n, t) for t in smaller for n in _TURNS if _bytes(chosen, n, t) <= room and _fills_sectors(chosen, n)
        ]
    return fitting


def _fills_sectors(chosen: Sequence[RowLoop], turns: int) -> bool:
    """Whether what is copied of a row at a time is a sector, at least where turns are as few as that."""
    return turns >= _PLAIN_TURNS or all(turns * t.width * t.bytes >= _SECTOR for one in chosen for t in one.tiles)


def _bytes(chosen: Sequence[RowLoop], turns: int, threads: int) -> int:
    """Of a block's shared memory, with what may be left free between arrays."""
    return sum(-(-s[0].stride(turns) * threads * s[0].bytes // 16) * 16 for s in slots(chosen, turns))


# ---------------------------------------------------------------- which may be


@lru_cache(maxsize=32)  # each move asks for what offered it
def _found(target: Target) -> _Found | None:
    """The loops of a kernel that go through rows; with macros written out where none does else."""
    if target.threads is None or target.threads % _WARP:
        return None
    plain = expanded(target.kernel, target.source)
    for kernel in [target.kernel, *([plain] if plain.body != target.kernel.body else [])]:
        body = structured(counted(kernel.body))
        if body is None or contains_return(body) or macros_that_leave(target.source) & names_mentioned(body):
            continue
        plain_kernel = with_plain_locals(replace(kernel, body=body), target.source)
        other = with_told_heads(replace(target, kernel=with_own_pointers(plain_kernel)))
        regions = {id(loop): region for region, loop in loop_regions(other.kernel).items()}
        loops = {
            regions[id(one.loop)]: one for one in _loops(RowBuffers(other), other.kernel.body, ((), {}, frozenset()))
        }
        if loops:
            return _Found(other, loops)
    return None


_Around = tuple[tuple[For, ...], Mapping[str, Poly], frozenset[str]]
"""Loops that threads leave at different turns, the first values of all loops' variables, and which of these are one
number for a block."""


def _loops(buffers: RowBuffers, body: Block, around: _Around) -> Iterator[RowLoop]:
    """Loops that a warp's lanes come to together, or of which it can be told which do."""
    uneven, outer, uniform = around
    for s in body:
        if isinstance(s, Scope):
            yield from _loops(buffers, s.body, around)
        elif isinstance(s, If) and not s.constexpr:
            for block in (s.then, s.orelse):
                yield from _loops(buffers, block, around)
        elif isinstance(s, For):
            inside = _inside(buffers.target, s, around)
            within = [] if inside is None else list(_loops(buffers, s.body, inside))
            tiles = buffers.tiles(s, outer, uniform)
            even = same_turns(buffers.target, s, uniform)
            if tiles and (even or not within):
                yield RowLoop(s, tiles, even, uneven)
            else:
                yield from within


def _inside(target: Target, loop: For, around: _Around) -> _Around | None:
    """What is around the loops within a loop; None where it cannot be told which lanes go on."""
    uneven, outer, uniform = around
    head = (loop.start, loop.bound, loop.step)
    moved = names_in(loop.bound) | names_in(loop.step) | names_assigned(loop.body)
    if loop.type in (None, "auto") or loop.var in moved or jumps(loop.body) or not all(map(may_repeat, head)):
        return None
    firsts = {**outer, loop.var: target.poly(loop.start)}
    if frozenset(n for e in head for n in target.poly(e).names()) <= uniform | same_for_block(target):
        return uneven, firsts, uniform | {loop.var}
    return (*uneven, loop), firsts, uniform
