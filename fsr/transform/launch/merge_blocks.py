"""merge-blocks: the work of several small blocks in one, for threads that do not cooperate, or as one warp alone.

A block of one thread, or of a few, fills a warp in part and takes one of the few places that a multiprocessor has for
blocks. Neighbouring blocks become neighbouring lanes; each thread is told the ids that it had. A block of one
warp becomes a warp of many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.threads import AXES
from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import Binary, Comment, Declare, Expr, If, Literal, Member, Name, Param
from fsr.source.walk import Block, fresh
from fsr.transform.launch.contiguous import nearest
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.one_warp import as_warps
from fsr.transform.launch.pointwise import pointwise
from fsr.transform.launch.told_ids import as_told, taken_apart, with_ids
from fsr.transform.plan import along, rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, largest, largest_timed
from fsr.transform.target import Target, target_of, targets

THREADS = (256, 128, 64)
_WARP = 32
_SMALL = 64  # threads; larger blocks leave no place for blocks unused
_MOST_GAIN, _GAIN = 8.0, 1.05
_WARP_GAIN = 1.2  # of blocks of a warp: a multiprocessor has places for twice as many warps as for blocks


@dataclass(frozen=True)
class _Small:
    """``extents``: of the blocks, x first; ``axis``: of the grid, along which neighbours are merged; ``blocks``: how
    many there are along it, as a size expression; ``body``: of the kernel, for blocks that are not alone."""

    extents: tuple[int, int, int]
    axis: str
    blocks: str
    body: Block

    @property
    def threads(self) -> int:
        """Of a block."""
        return math.prod(self.extents)


class MergeBlocks:
    """The same threads, each with the ids that it had, in one block for several of before."""

    name = "merge-blocks"
    aims_at = frozenset({"occupancy", "latency", "launch", "uncoalesced"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a size; none with keep_launch, and none of kernels over global ids, which block-size gives any
        block."""
        for target in () if subject.keep_launch else map(as_told, targets(subject)):
            small = _small(target)
            if small is None:
                continue
            least = _GAIN if small.threads > _WARP else _WARP_GAIN
            gain = max(least, min(_MOST_GAIN, _WARP / small.threads))
            for rank, threads in enumerate(THREADS):
                if threads > small.threads and (largest_timed(target.contract, small.blocks) or 0) > 1:
                    yield Move(self.name, target.region, (("threads", threads),), gain - 0.02 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with merged blocks."""
        target = as_told(target_of(subject, move))
        small, kernel = _small(target), target.kernel
        assert small is not None
        each = int(move.param("threads")) // small.threads
        count, params, args = _passed(target, small)
        body = _merged(target, small, each, count)
        bounds = (str(each * small.threads),) if kernel.launch_bounds else ()
        changed = replace(kernel, body=body, params=(*kernel.params, *params), launch_bounds=bounds)
        return rewritten(target, move, changed, launch=lambda one: _relaunched(one, small, each, args))


def _small(target: Target) -> _Small | None:
    """The blocks of a kernel, where they are small; None where threads cooperate, as one warp excepted, or their ids
    stand for elements."""
    launch = target.launch
    if not all(extent.isdigit() for extent in launch.block) or pointwise(target) is not None:
        return None
    body = _apart(target)
    if body is None:
        return None
    x, y, z = (int(extent) for extent in launch.block)
    several = [a for a, extent in zip(AXES, launch.grid, strict=True) if extent != "1"]
    if x * y * z > _SMALL or not several:
        return None
    axis = nearest(target, [f"blockIdx.{a}" for a in several])[-1] if x == 1 else several[0]
    blocks = launch.grid[AXES.index(axis)]
    most = largest(target.contract, f"({blocks}) * {x * y * z}")
    return _Small((x, y, z), axis, blocks, body) if most is not None and most <= INT_LIMIT else None


def _apart(target: Target) -> Block | None:
    """The body as it is for blocks that stand beside others; None where they may have to be alone."""
    if not cooperates(target):
        return target.kernel.body
    return as_warps(target) if target.launch.shared_bytes == "0" else None


def _passed(target: Target, small: _Small) -> tuple[Expr, tuple[Param, ...], tuple[ScalarArgument, ...]]:
    """The number of blocks of before, and what the kernel is passed for it."""
    if small.blocks.isdigit():
        return Literal(f"{small.blocks}u"), (), ()
    name = fresh(f"blocks_{small.axis}", target.names)
    return Name(name), (Param("unsigned int", name),), (ScalarArgument("uint32", small.blocks),)


def _merged(target: Target, small: _Small, each: int, count: Expr) -> Block:
    """The body, with the ids of before told from those of the merged block."""
    taken = set(target.names) | ({count.text} if isinstance(count, Name) else set())
    block = fresh(f"block_{small.axis}", taken)
    lane: Expr = Member(Name("threadIdx"), "x")
    first = Binary("*", Member(Name("blockIdx"), small.axis), Literal(f"{each}u"))
    index = Binary("+", first, lane if small.threads == 1 else Binary("/", lane, Literal(f"{small.threads}u")))
    told = taken_apart(lane, small.extents, within=False)
    told |= {("blockIdx", small.axis): Name(block), ("gridDim", small.axis): count}
    return (
        Comment(f"// {each} neighbouring blocks of before are one"),
        Declare("const unsigned int", block, index),
        If(Binary("<", Name(block), count), with_ids(small.body, told)),
    )


def _relaunched(launch: Launch, small: _Small, each: int, args: tuple[ScalarArgument, ...]) -> Launch:
    grid = along(launch.grid, small.axis, f"ceil_div({small.blocks}, {each})")
    return replace(launch, grid=grid, block=(str(each * small.threads), "1", "1"), args=(*launch.args, *args))
