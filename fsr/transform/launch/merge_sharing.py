"""merge-sharing-blocks: the work of several blocks in one, for threads that share memory and wait for one another.

A block of half a warp leaves places of a multiprocessor empty, and blocks whose numbers run along memory read it
across: a list an atom, a column a block. Each block of before keeps a part of the shared memory for itself, its threads
are told the ids that they had, and a barrier waits for a few more of them. Where the blocks' numbers run along memory,
they become neighbouring lanes.

A barrier waits for all threads of a block that did not leave (CUDA C++ Programming Guide, Independent Thread
Scheduling), so that all blocks of before have to come to as many; those that leave early do no harm. Blocks of one warp
may do otherwise, one after the other: they become warps, and wait for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.threads import AXES
from fsr.hardware.limits import MAX_THREADS, STATIC_SHARED_BYTES
from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import Binary, Comment, Declare, Expr, If, Literal, Member, Name, Param, Return
from fsr.source.walk import Block, fresh
from fsr.transform.launch.contiguous import contiguous
from fsr.transform.launch.merged_memory import Many, Memory, shared_memory
from fsr.transform.launch.met_alike import met_alike
from fsr.transform.launch.one_warp import as_warps
from fsr.transform.launch.told_ids import Ids, as_told, taken_apart, with_ids
from fsr.transform.plan import along, rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import largest, largest_timed, timed_blocks
from fsr.transform.target import Target, target_of, targets

MANY = (8, 16, 32, 4, 2)
_MOST_TIMED = 512  # threads of the new block at the timed sizes, where nothing but their number is gained
_FEWEST_TIMED = 64  # as many fill the places of a multiprocessor with 32 blocks
_MOST_ALONE = 48  # threads of a block that leaves places empty
_MOST_CROWDED, _CROWD = 128, 1 << 14  # threads of one whose start takes as long as what it does, of so many blocks
_TYPE = "unsigned int"
_SECTOR = 8  # elements: as many neighbours make the most of what is read
_MOST_GAIN = 4.0


@dataclass(frozen=True)
class _Sharing:
    """``threads``: of a block, as a size expression; ``extents``: the same by axes where these are numbers, else None.
    ``memory``: what the block shares; ``body``: the kernel's; ``warps``: whether blocks have to stay warps."""

    threads: str
    extents: tuple[int, int, int] | None
    memory: Memory
    body: Block
    warps: bool


class MergeSharingBlocks:
    """The same threads, each with the ids that it had and its part of the shared memory, in one block for several."""

    name = "merge-sharing-blocks"
    aims_at = frozenset({"occupancy", "latency", "launch", "uncoalesced", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Side by side along an axis whose numbers run along memory, one after the other where blocks are small."""
        for target in () if subject.keep_launch else map(as_told, targets(subject)):
            found = _sharing(target)
            if found is None:
                continue
            timed, most = (of(target.contract, found.threads) or 0 for of in (largest_timed, largest))
            lanes, small = contiguous(target), _small(target, timed)
            for axis, grid in zip(AXES, target.launch.grid, strict=True):
                blocks = largest_timed(target.contract, grid) or 0
                across = lanes.get(f"blockIdx.{axis}", 0) >= max(lanes.get("threadIdx.x", 0), 1)
                orders = [("inner", 0)] * (across and not found.warps) + [("outer", _FEWEST_TIMED)] * small
                for order, fewest in orders:
                    for many in MANY if blocks > 1 else ():
                        room = many * found.memory.static_bytes <= STATIC_SHARED_BYTES
                        limit = _MOST_TIMED if many * most <= MAX_THREADS and order == "outer" else MAX_THREADS
                        if room and most <= MAX_THREADS and timed and fewest <= many * timed <= limit:
                            gain = _gain(order, many, timed)
                            params = (("axis", axis), ("order", order), ("blocks", many))
                            yield Move(self.name, target.region, params, gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with merged blocks."""
        target = as_told(target_of(subject, move))
        found = _sharing(target)
        assert found is not None
        axis, many, inner = str(move.param("axis")), int(move.param("blocks")), move.param("order") == "inner"
        names = _Names(target, axis)
        blocks = target.launch.grid[AXES.index(axis)]
        count, threads = (_known(text, name) for text, name in ((blocks, names.count), (found.threads, names.threads)))
        merged = _merged(target, found.threads, many)
        given = [(name, text) for name, text in
                 ((names.count, blocks), (names.threads, found.threads), (names.many, merged))
                 if not text.isdigit()]  # fmt: skip
        each = _known(merged, names.many)
        room = found.memory.room(Name(names.part), Many(many, each, merged), names.room, inner=inner)
        given += [(names.room, room.stride)] if room.stride is not None else []
        told = _ids(found, Name(names.thread), threads) | {
            ("blockIdx", axis): Name(names.block), ("gridDim", axis): count,
        }  # fmt: skip
        lane = Member(Name("threadIdx"), "x")
        part, thread = (Binary("%", lane, each), Binary("/", lane, each)) if inner else (
            Binary("/", lane, threads), Binary("%", lane, threads))  # fmt: skip
        body: Block = (
            Comment(_told(merged, many, inner=inner)),
            Declare(f"const {_TYPE}", names.part, part),
            Declare(f"const {_TYPE}", names.thread, thread),
            Declare(f"const {_TYPE}", names.block,
                    Binary("+", Binary("*", Member(Name("blockIdx"), axis), each), Name(names.part))),
            If(Binary(">=", Name(names.block), count), (Return(),)),
            *room.within(with_ids(found.body, told)),
        )  # fmt: skip
        changed = replace(target.kernel, body=body, launch_bounds=(),
                          params=(*target.kernel.params, *(Param(_TYPE, name) for name, _ in given)))  # fmt: skip

        def launch(one: Launch) -> Launch:
            grid = along(one.grid, axis, f"ceil_div({blocks}, {merged})")
            args = (*one.args, *(ScalarArgument("uint32", text) for _, text in given))
            return replace(one, grid=grid, block=(_times(found.threads, merged), "1", "1"), args=args,
                           shared_bytes=room.bytes(one.shared_bytes))  # fmt: skip

        return rewritten(target, move, changed, launch=launch)


def _small(target: Target, threads: int) -> bool:
    """Whether blocks leave places of a multiprocessor empty, or are so many that what takes the time is starting
    them."""
    if threads <= _MOST_ALONE:
        return True
    return threads <= _MOST_CROWDED and timed_blocks(target.contract, target.launch) >= _CROWD


class _Names:
    """Names that are free in a kernel, for what it is told."""

    def __init__(self, target: Target, axis: str) -> None:
        taken = set(target.names)

        def free(name: str) -> str:
            taken.add(found := fresh(name, taken))
            return found

        self.part, self.thread, self.block = free("block_of_before"), free("thread_of_block"), free(f"block_{axis}")
        self.count, self.threads, self.room = free(f"blocks_{axis}"), free("block_threads"), free("block_room")
        self.many = free("blocks_in_one")


def _sharing(target: Target) -> _Sharing | None:
    """How a kernel's blocks share, where several can be one; None where the blocks do not share anything, or are more
    than a warp and do not come to as many barriers."""
    kernel, launch = target.kernel, target.launch
    memory = shared_memory(target)
    if memory is None:
        return None
    alike = met_alike(target, memory.outside(kernel.body))
    body = kernel.body if alike else as_warps(target, memory.arrays)
    if body is None:
        return None
    if all(extent.isdigit() for extent in launch.block):
        x, y, z = (int(extent) for extent in launch.block)
        return _Sharing(str(x * y * z), (x, y, z), memory, body, not alike)
    return _Sharing(launch.block[0], None, memory, body, not alike) if launch.block[1:] == ("1", "1") else None


def _ids(found: _Sharing, thread: Expr, threads: Expr) -> dict[tuple[str, str], Expr]:
    if found.extents is not None:
        return taken_apart(thread, found.extents, within=True)
    told: Ids = {("threadIdx", "x"): thread, ("blockDim", "x"): threads}
    rest = {(name, axis): Literal(text) for axis in "yz" for name, text in (("threadIdx", "0u"), ("blockDim", "1u"))}
    return {**told, **rest}


def _known(text: str, name: str) -> Expr:
    return Literal(f"{text}u") if text.isdigit() else Name(name)


def _merged(target: Target, threads: str, many: int) -> str:
    """How many blocks are one, as a size expression: fewer than asked at sizes where a block has no room for them."""
    if many * (largest(target.contract, threads) or 0) <= MAX_THREADS:
        return str(many)
    return f"min({many}, {MAX_THREADS} // ({threads}))"


def _told(merged: str, many: int, *, inner: bool) -> str:
    most = "" if merged.isdigit() else "up to "
    return f"// {most}{many} blocks of before are one, {'side by side' if inner else 'one after the other'}"


def _times(text: str, many: str) -> str:
    return str(int(text) * int(many)) if text.isdigit() else f"({text}) * {many}"


def _gain(order: str, many: int, threads: int) -> float:
    if order == "inner":
        return 1.0 + (_MOST_GAIN - 1.0) * min(many, _SECTOR) / _SECTOR - 0.01 * many
    return max(1.2, min(_MOST_GAIN, _FEWEST_TIMED / threads)) - 0.01 * abs(many - _FEWEST_TIMED * 4 // threads)


__all__ = ["MANY", "MergeSharingBlocks"]
