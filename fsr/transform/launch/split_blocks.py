"""split-blocks: smaller blocks, and more of them, for threads that do not cooperate, whatever they take their ids for.

A block of as many threads as there are channels, one block an image, leaves most multiprocessors without work where
images are few. Where no thread waits for another of its block, the block may be cut: along one axis the launch gets
several blocks in the place of one, and the kernel's threadIdx, blockDim and blockIdx of old are told from theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.threads import AXES
from fsr.records import Candidate, Launch
from fsr.source.form import Binary, Cast, Comment, Declare, Expr, If, Literal, Member, Name
from fsr.source.walk import fresh
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.pointwise import pointwise
from fsr.transform.launch.told_ids import Ids, with_ids
from fsr.transform.plan import along, rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import always, largest, largest_timed, timed_blocks
from fsr.transform.target import Target, target_of, targets

THREADS = (64, 32, 128, 256)
_PARTS = 65535  # blocks along y or z
_MOST_GAIN, _GAIN = 3.0, 1.03
_FULL = 2  # blocks a multiprocessor, from which on more of them change little


@dataclass(frozen=True)
class _Cut:
    """``axis``: of the block that is cut. ``free``: of the grid, along which there was one block only. ``width``: the
    block's extent along the axis, in the kernel and as a size expression; ``beside``: threads along the others."""

    axis: str
    free: str
    width: Expr
    extent: str
    beside: int


class SplitBlocks:
    """The same threads, each with the ids that it had, in several blocks for each one of before."""

    name = "split-blocks"
    aims_at = frozenset({"occupancy", "latency", "launch"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a size smaller than the present one; none with keep_launch, and none of kernels over global ids, which
        block-size gives any block."""
        for target in () if subject.keep_launch else targets(subject):
            cut = _cut(target)
            if cut is None:
                continue
            contract = target.contract
            across = largest_timed(contract, cut.extent) or 0
            blocks = timed_blocks(contract, target.launch)
            for rank, threads in enumerate(THREADS):
                rows = threads // cut.beside
                if rows and rows * cut.beside == threads and rows < across and blocks:
                    gain = max(_GAIN, min(_MOST_GAIN, across / rows, _FULL * subject.gpu.sm_count / blocks))
                    yield Move(self.name, target.region, (("threads", threads),), gain - 0.02 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with cut blocks."""
        target = target_of(subject, move)
        cut = _cut(target)
        assert cut is not None
        rows, kernel = int(move.param("threads")) // cut.beside, target.kernel
        thread = fresh(f"thread_{cut.axis}", target.names)
        index = Binary("+", Binary("*", Member(Name("blockIdx"), cut.free), Member(Name("blockDim"), cut.axis)),
                       Member(Name("threadIdx"), cut.axis))  # fmt: skip
        told: Ids = {
            ("threadIdx", cut.axis): Name(thread),
            ("blockDim", cut.axis): _unsigned(cut.width),
            ("blockIdx", cut.free): Literal("0u"),
            ("gridDim", cut.free): Literal("1u"),
        }
        body = with_ids(kernel.body, told)
        whole = (
            Comment(f"// a block of before is {cut.free}'s blocks in a row"),
            Declare("const unsigned int", thread, index),
            If(Binary("<", Name(thread), _unsigned(cut.width)), body),
        )
        bounds = (str(move.param("threads")),) if kernel.launch_bounds else ()
        return rewritten(
            target, move, replace(kernel, body=whole, launch_bounds=bounds),
            launch=lambda one: _relaunched(one, cut, rows),
        )  # fmt: skip


def _cut(target: Target) -> _Cut | None:
    """How a kernel's blocks can be cut; None where threads cooperate, the block's extent is not known in the kernel, or
    no axis of the grid is left."""
    launch = target.launch
    if cooperates(target) or pointwise(target) is not None:
        return None
    wide = [n for n, extent in enumerate(launch.block) if extent != "1"]
    free = next((a for a, g in zip("yz", launch.grid[1:], strict=True) if g == "1"), None)
    if not wide or free is None:
        return None
    at = wide[-1]
    beside = [launch.block[n] for n in wide[:-1]]
    if not all(b.isdigit() for b in beside):
        return None
    width = _in_kernel(target, launch.block[at])
    most = largest(target.contract, launch.block[at])
    if width is None or most is None or most > _PARTS:
        return None
    threads = 1
    for extent in beside:
        threads *= int(extent)
    return _Cut(AXES[at], free, width, launch.block[at], threads)


def _in_kernel(target: Target, extent: str) -> Expr | None:
    """What the kernel may write for an extent of its launch: a number, or a parameter that always holds it."""
    if extent.isdigit():
        return Literal(extent)
    for p in target.kernel.params:
        text = None if p.is_pointer else target.size_text(Name(p.name))
        if text is not None and always(target.contract, f"({text}) == ({extent})"):
            return Name(p.name)
    return None


def _unsigned(width: Expr) -> Expr:
    """The width as blockDim is: unsigned, so that comparisons and divisions stay what they were."""
    return Literal(f"{width.text}u") if isinstance(width, Literal) else Cast("unsigned int", width, "c")


def _relaunched(launch: Launch, cut: _Cut, rows: int) -> Launch:
    grid = along(launch.grid, cut.free, f"ceil_div({cut.extent}, {rows})")
    return replace(launch, grid=grid, block=along(launch.block, cut.axis, str(rows)))
