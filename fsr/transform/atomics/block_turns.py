"""A block that does what several blocks of before did, one after another, so that what it gathers is added to memory
once for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsr.analysis.threads import AXES
from fsr.records import Launch, ScalarArgument
from fsr.source.form import Expr, For, Literal, Member, Name, Param
from fsr.source.walk import Block
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.pointwise import continuing
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.plan import along
from fsr.transform.protocol import Subject
from fsr.transform.sizes import INT_LIMIT, largest, largest_timed
from fsr.transform.target import Target

_LEAST = 2  # blocks of before for one, so that it is worth while
_FEWER = (1, 2, 4)  # the blocks that an SM holds at once, and so many times fewer: each adds its tables to memory
_MOST = 2  # of these that are offered, where the grid is large enough for more


@dataclass(frozen=True, slots=True)
class Turns:
    """The blocks of before along an ``axis`` of the grid. ``body``: what one does, as the body of a loop over them."""

    target: Target
    axis: str
    body: Block

    @property
    def count(self) -> str:
        """How many there are, as a size expression."""
        return self.target.launch.grid[AXES.index(self.axis)]

    @property
    def passed(self) -> tuple[str, ...]:
        """What the kernel has to be told of them: their count, unless it is a number."""
        return () if self.count.isdigit() else (self.count,)

    def numbers(self, subject: Subject) -> list[int]:
        """How many blocks may do the work of all of them."""
        others = [f"({g})" for a, g in zip(AXES, self.target.launch.grid, strict=True) if a != self.axis]
        timed = largest_timed(self.target.contract, f"({self.count})") or 0
        beside = largest_timed(self.target.contract, " * ".join(others)) or 1
        resident = subject.gpu.sm_count * max(1, subject.gpu.max_threads_per_sm // (self.target.threads or 1))
        found = [max(1, resident // fewer // beside) for fewer in _FEWER]
        return [number for number in dict.fromkeys(found) if timed >= _LEAST * number][:_MOST]

    def params(self, name: str) -> tuple[Param, ...]:
        """The parameter for what is :attr:`passed`."""
        return tuple(Param("unsigned int", name) for _ in self.passed)

    def looped(self, block: str, name: str) -> Block:
        """The loop. ``name``: the parameter's."""
        whole: Expr = Name(name) if self.passed else Literal(f"{self.count}u")
        told: dict[tuple[str, str], Expr] = {("blockIdx", self.axis): Name(block), ("gridDim", self.axis): whole}
        first, step = (Member(Name(id_), self.axis) for id_ in ("blockIdx", "gridDim"))
        return (For("unsigned int", block, first, "<", whole, step, with_ids(self.body, told)),)

    def launch(self, old: Launch, blocks: int) -> Launch:
        """The launch of so many blocks."""
        grid = along(old.grid, self.axis, f"min({self.count}, {blocks})")
        args = tuple(ScalarArgument("uint32", count) for count in self.passed)
        return replace(old, grid=grid, args=(*old.args, *args))


def turns(target: Target) -> Turns | None:
    """The blocks along the axis that has most; None where a block's threads have to do with one another, which a loop
    would have wait once a turn."""
    sized = [(largest_timed(target.contract, g) or 0, a) for g, a in zip(target.launch.grid, AXES, strict=True)]
    timed, axis = max(sized, key=lambda one: one[0])
    most = largest(target.contract, target.launch.grid[AXES.index(axis)])
    if timed < _LEAST or most is None or most > INT_LIMIT or cooperates(target):
        return None
    body = continuing(target.kernel.body)
    return None if body is None else Turns(target, axis, body)
