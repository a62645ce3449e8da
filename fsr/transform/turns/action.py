"""more-blocks: what a block goes through in turns is shared by several blocks.

``for (int j = threadIdx.x; j < m; j += blockDim.x)``, one block an image: other blocks may have some of the turns,
along an axis that the grid does not use; all ids stay what they were, and all else is done by each block. Where nothing
but the strides knows of threads, blocks may be smaller, too. So may the turns of a loop within another be shared. Where
the blocks have turns in strides themselves (``i += gridDim.x * blockDim.x``), more of them are another grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.macros import expanded, hides_names
from fsr.records import Candidate, Launch
from fsr.source.counted import counted
from fsr.source.form import Binary, Comment, Expr, KernelForm, Literal, Member, Name
from fsr.source.mapping import replace_stmt
from fsr.source.shadows import unshadowed
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.plan import along, rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import largest_timed
from fsr.transform.target import Target, part_of, region_in, target_of, targets
from fsr.transform.turns.grid import StridedGrid, strided_grid
from fsr.transform.turns.room import Room, room_of
from fsr.transform.turns.shared import SharedTurns, shared_turns

SHAPES = ((0, 2), (0, 8), (0, 32), (64, 8), (64, 32), (64, 128), (128, 16), (128, 64), (256, 32), (32, 64))
"""Threads of a block (0: as before) and parts, where threads go through turns in strides."""
PARTS = (2, 4, 8, 16, 32)
"""Of a loop in another."""
THREADS = (0, 128, 256)
ROUNDS = (2, 4, 1, 8)  # how many times over the grid fills a quarter of the GPU, the best first
GATHERING = (1, 2, 0.5, 0.25, 4)  # where each block adds something afterwards
_MOST_GAIN, _GAIN = 6.0, 1.05


class MoreBlocks:
    """Several blocks for the turns that one goes through."""

    name = "more-blocks"
    aims_at = frozenset({"occupancy", "latency"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a number of blocks, and a size of them, as long as multiprocessors are left without work."""
        for target in () if subject.keep_launch else targets(subject):
            room = room_of(subject, target)
            if room.fill <= 1:
                continue
            found = self._found(subject, target)
            for shared in found.shared:
                if shared.strided:
                    yield from self._parts(target, shared, room)
                else:
                    yield from self._inner(target, shared, room)
            if found.grid is not None:
                yield from self._blocks(target, found.grid, room)

    def _found(self, subject: Subject, target: Target) -> _Found:
        return subject.once((self.name, target.region), lambda: _found(target))

    def _parts(self, target: Target, shared: SharedTurns, room: Room) -> Iterator[Move]:
        for threads, parts in SHAPES:
            if threads and (not shared.any_size or threads >= room.threads):
                continue
            turns = parts if shared.length is None else -(-shared.length // (threads or room.threads))
            wanted = max(room.blocks, room.fill * room.threads / (threads or room.threads))
            gain = min(parts, wanted, turns, _MOST_GAIN)
            if gain > 1:
                wanted = min(wanted, turns)
                rank = abs(parts - wanted) / (parts + wanted) + (parts >= 2 * turns)
                params = (("parts", parts), *([("threads", threads)] if threads else []))
                yield Move(self.name, target.region, params, max(_GAIN, gain - 0.1 * rank))

    def _blocks(self, target: Target, grid: StridedGrid, room: Room) -> Iterator[Move]:
        now = largest_timed(target.contract, target.launch.grid["xyz".index(grid.axis)]) or 1
        beside = room.grid // now or 1
        for threads in THREADS:
            if threads and (not grid.any_size or threads == room.threads):
                continue
            most = largest_timed(target.contract, _turns(grid, threads) or "") or 2**31
            for rank, rounds in enumerate(GATHERING if grid.gathers else ROUNDS):
                count = int(room.half / 2 * rounds) // ((threads or room.threads) * beside) or 1
                if min(count, most) > now:
                    gain = min(min(count, most) / now, 2 * room.fill, _MOST_GAIN)
                    params = (("blocks", count), *([("threads", threads)] if threads else []))
                    yield Move(self.name, target.region, params, max(_GAIN, gain - 0.1 * rank))

    def _inner(self, target: Target, shared: SharedTurns, room: Room) -> Iterator[Move]:
        for parts in PARTS:
            turns = parts if shared.length is None else shared.length
            gain = min(parts, room.fill, turns, _MOST_GAIN)
            if gain > 1 and parts <= turns:
                rank = abs(parts - room.fill) / (parts + room.fill)
                gain = max(_GAIN, 0.8 * gain - 0.1 * rank)
                yield Move(self.name, region_in(target, shared.part), (("parts", parts),), gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose blocks share turns."""
        found = self._found(subject, target_of(subject, move))
        target, params = found.target, dict(move.params)
        threads = int(params.get("threads", 0))
        if "blocks" in params:
            grid = found.grid
            assert grid is not None
            count = _grid_text(target, grid, int(params["blocks"]), threads)
            kernel = _bounded(target, threads)
            return rewritten(target, move, kernel, launch=lambda one: _relaunched(one, grid.axis, count, threads))
        part = part_of(move) if part_of(move).startswith("loop:") else ""
        return _dealt(target, move, next(s for s in found.shared if s.part == part), threads)


@dataclass(frozen=True)
class _Found:
    """``target``: with the kernel as it is read."""

    target: Target
    shared: tuple[SharedTurns, ...]
    grid: StridedGrid | None


def _found(target: Target) -> _Found:
    """What may be shared, as the kernel stands, or with its macros written out."""
    plain, written = target.kernel, expanded(target.kernel, target.source)
    for kernel in (plain,) if written == plain else (plain, written):
        body = unshadowed(counted(kernel.body), (p.name for p in kernel.params))
        read = replace(target, kernel=replace(kernel, body=body))
        if hides_names(kernel, target.source):
            continue
        found = _Found(read, tuple(shared_turns(read)), strided_grid(read))
        if found.shared or found.grid:
            return found
    return _Found(target, (), None)


def _dealt(target: Target, move: Move, shared: SharedTurns, threads: int) -> Candidate:
    part, parts = Member(Name("blockIdx"), shared.free), Member(Name("gridDim"), shared.free)
    told = {("blockIdx", shared.free): Literal("0u"), ("gridDim", shared.free): Literal("1u")}
    body = target.kernel.body
    for loop in shared.loops:
        step: Expr = loop.step
        one = loop.step == Literal("1")
        first = part if one else Binary("*", part, step)
        start = first if one and loop.start == Literal("0") else Binary("+", loop.start, first)
        stride = parts if one else Binary("*", step, parts)
        dealt = replace(loop, start=start, step=stride, pragmas=(), body=with_ids(loop.body, told))
        body = replace_stmt(body, loop, (Comment(f"// a part of the turns each, along {shared.free}"), dealt))
    kernel = replace(_bounded(target, threads) or target.kernel, body=body)
    count = str(move.param("parts"))
    return rewritten(target, move, kernel, launch=lambda one: _relaunched(one, shared.free, count, threads))


def _bounded(target: Target, threads: int) -> KernelForm | None:
    """The kernel with its launch bound, if it has one, at another number of threads; None where it stays as it is."""
    return replace(target.kernel, launch_bounds=(str(threads),)) if threads and target.kernel.launch_bounds else None


def _turns(grid: StridedGrid, threads: int) -> str | None:
    """How many blocks have a turn, as a size expression."""
    stride = str(threads) if threads else grid.stride
    return None if grid.turns is None or stride is None else f"ceil_div({grid.turns}, {stride})"


def _grid_text(target: Target, grid: StridedGrid, blocks: int, threads: int) -> str:
    """The new grid: never fewer blocks than there were."""
    before, turns = target.launch.grid["xyz".index(grid.axis)], _turns(grid, threads)
    return f"max({before}, {blocks if turns is None else f'min({turns}, {blocks})'})"


def _relaunched(launch: Launch, axis: str, count: str, threads: int) -> Launch:
    block = (str(threads), "1", "1") if threads else launch.block
    return replace(launch, grid=along(launch.grid, axis, count), block=block)
